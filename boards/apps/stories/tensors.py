"""Entries of an image's tables (docs/SPEC.md has every byte). Transient (mpy_kv/transient.py): a model is
made once.

An entry of the tensor table is a tuple: offset, rows, columns, bytes of a row, exponent, kind, groups. A row
is codes (padded columns), scales, padding to a word.
"""

import struct
from array import array

# Order of a layer's tensors.
ATT_NORM, WQ, WK, WV, WO, FFN_NORM, W_GATE, W_DOWN, W_UP = range(9)
LAYER_TENSORS = 9


def entry(image, i):
    """Entry i: 0 embedding, 1 + 9 * layer + ATT_NORM.., final norm, classifier."""
    return struct.unpack_from("<IIIIiHH", image.bytes_at(image.tensors_at + 24 * i, 24))


def of_layer(image, layer, which):
    return entry(image, 1 + LAYER_TENSORS * layer + which)


def final_norm(image):
    return entry(image, 1 + LAYER_TENSORS * image.layers)


def classifier(image):
    return entry(image, 0 if image.shared else 2 + LAYER_TENSORS * image.layers)


def rope_increments(image):
    """array('i') of head_dim / 2 phase increments, turns * 2^32 per position, mod 2^32."""
    return array("i", image.bytes_at(image.rope_at, 2 * image.head_dim))


def shifts(image):
    """(k_shift, v_shift, q_shift) per layer."""
    data = image.bytes_at(image.shifts_at, 4 * image.layers)
    return [struct.unpack_from("bbb", data, 4 * i) for i in range(image.layers)]
