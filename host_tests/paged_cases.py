"""Requests to test with: small shapes on the plain kernels, steps that fill bytes by their tokens."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.paged import PagedGeometry, Requests

CODECS = ("int8", "int8-int4", "sparse", "float16")  # what is stored in blocks
LAYERS, HEADS, KV_HEADS, HEAD_DIM = 2, 2, 1, 8
SHAPE = {"layers": LAYERS, "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM}
WIDTH = KV_HEADS * HEAD_DIM


def requests_of(blocks: int, capacity: int | None = 64, block_tokens: int = 4, **options: Any) -> Requests:
    """capacity None: give window and sinks."""
    shape = {key: options.pop(key) for key in ("window", "sinks", "codec") if key in options}
    if capacity is not None:
        shape["capacity"] = capacity
    g = PagedGeometry(**SHAPE, **shape, block_tokens=block_tokens)
    return Requests(g, blocks, kernels=kernels.of(g.codec).get("plain"), **options)


def ring_like(requests: Requests) -> KVCache:
    """A KVCache of the same shape and element type."""
    g = requests.geometry
    shape = {"capacity": g.capacity} if g.capacity is not None else {"window": g.window, "sinks": g.sinks}
    return KVCache(Geometry(**SHAPE, **shape, codec=g.codec), kernels=kernels.of(g.codec).get("plain"))


def vector(token: int, position: int, layer: int, role: int, width: int = WIDTH) -> array:
    """Values that depend on all of these."""
    seed = (token * 31 + position * 7 + layer * 3 + role + 1) * 2654435761 & 0xFFFFFFFF
    values = array("f")
    for _ in range(width):
        seed = (seed * 1664525 + 1013904223) & 0xFFFFFFFF
        values.append(((seed >> 16) - 32768) / 16384)
    return values


def step(sequence: Any, token: int, ids: bool = True) -> list[float]:
    """Run one token through every layer of a Request or KVCache; what it saw."""
    position = sequence.length
    seen: list[float] = []
    for layer in range(LAYERS):
        q = vector(token, position, layer, 2, HEADS * HEAD_DIM)
        out = array("f", bytes(4 * HEADS * HEAD_DIM))
        sequence.append(layer, vector(token, position, layer, 0), vector(token, position, layer, 1))
        sequence.attend(layer, q, out)
        seen += out
    if isinstance(sequence, KVCache) or not ids:
        sequence.commit()
    else:
        sequence.commit(token)
    return seen


def run(sequence: Any, tokens: Sequence[int], ids: bool = True) -> list[list[float]]:
    """What each token saw, those that are there already left out."""
    return [step(sequence, token, ids) for token in tokens[sequence.length :]]


def prefill(sequence: Any, tokens: Sequence[int]) -> list[float]:
    """Run several tokens in one step."""
    n, first = len(tokens), sequence.length
    seen: list[float] = []
    for layer in range(LAYERS):
        rows = [
            array("f", [x for i, t in enumerate(tokens) for x in vector(t, first + i, layer, role, width)])
            for role, width in ((0, WIDTH), (1, WIDTH), (2, HEADS * HEAD_DIM))
        ]
        out = array("f", bytes(4 * HEADS * HEAD_DIM * n))
        sequence.prefill(layer, rows[0], rows[1], n)
        sequence.attend(layer, rows[2], out, None, n)
        seen += out
    if isinstance(sequence, KVCache):
        sequence.commit()
    else:
        sequence.commit(list(tokens))
    return seen


def stored(sequence: Any) -> bytes:
    """Codes and scales of every visible token."""
    g, buffer, found = sequence.geometry, sequence.buffer, bytearray()
    for position in sequence.visible():
        for layer in range(LAYERS):
            for which in "kv":
                codes, scales = sequence.place(layer, which, position)
                stride, row = g.head_stride, g.row_bytes
                if which == "v":
                    stride, row = g.v_head_stride, g.v_row_bytes
                for head in range(KV_HEADS):
                    at = codes + head * stride
                    found += buffer[at : at + row]
                for group in range(g.groups):
                    at = scales + group * g.scale_stride
                    found += buffer[at : at + 2]
    return bytes(found)


def alone(tokens: Sequence[int], like: Requests) -> list[list[float]]:
    """What the tokens see in a cache of their own."""
    return run(ring_like(like), tokens)
