"""The largest arrays of a model, made before anything else is: modules and small objects fit into gaps.

Transient (mpy_kv/transient.py), for a model is made once.
"""

from array import array

from mpy_kv.transient import load_module

U = load_module("stories.kernels.layout")


def padded(n):
    return (n + U.GROUP - 1) // U.GROUP * U.GROUP


def made(image, row_buffer_bytes):
    """(workspace, act, o, rows): the array of all 32-bit vectors, see plan.py, the elements where activation
    vector and short-lived vectors begin, and a bytearray for rows of an image that is not mapped, or None."""
    rows = None if image.buffer is not None else bytearray(row_buffer_bytes // 4 * 4)
    q, kv = image.heads * image.head_dim, image.kv_heads * image.head_dim
    act = image.dim
    o = act + U.ACT_HEADER + U.ACT_GROUP * (padded(max(image.dim, image.hidden, q)) // U.GROUP)
    size = max(padded(image.dim), padded(q), q + 2 * kv, 2 * padded(image.hidden), image.vocab)
    return array("i", bytes(4 * (o + size))), act, o, rows
