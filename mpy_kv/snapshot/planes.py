"""Where the bytes of stored tokens lie, in the order in which a snapshot has them.

A run is (base, slot, count): that many slots from `slot` on of the layer's block that begins at `base`.
Transient (mpy_kv/transient.py).
"""

from ..geometry import CODECS
from ..transient import load_module

_PIECE = 256


def planes(g):
    """Of a layer's block: (offset of slot 0, bytes a slot, how many such planes, their stride); K then V."""
    scales = (2, g.groups, g.scale_stride)
    v = g.plane_bytes
    values = (v, g.v_row_bytes, g.kv_heads, g.v_head_stride)
    if g.kept:
        values = (v, g.v_row_bytes, g.groups, g.v_group_stride)
    return (
        (0, g.row_bytes, g.kv_heads, g.head_stride),
        (g.codes_bytes,) + scales,
        values,
        (v + g.v_codes_bytes,) + scales,
    )


def move(pipe, buffer, g, runs):
    """All that a layer has of the tokens in those runs, plane by plane."""
    for first, size, count, stride in planes(g):
        for i in range(count):
            for base, slot, n in runs:
                pipe.move(buffer, base + first + i * stride + slot * size, n * size)


def ring_runs(g, base, sinks, first, length):
    """The first `sinks` positions, then those from `first` on, in a ring or with a slot each."""
    runs = [(base, 0, sinks)] if sinks else []
    while first < length:
        slot = g.slot(first)
        n = min(length - first, g.slots - slot)
        runs.append((base, slot, n))
        first += n
    return runs


def broken(buffer, g, runs, codec=None):
    """How many codes and scales in those runs no encoder writes."""
    name = codec or g.codec
    keys, key_scales, values, value_scales = planes(g)
    k_bits, v_bits = CODECS[name][:2]
    if name == "float16" and g.row_bytes == 2 * g.head_dim:
        return infinite(buffer, keys, runs, True) + infinite(buffer, values, runs, True)
    bad = 0
    slow = ("k", "v")
    if k_bits == 8:  # a code is a byte and never 0: few calls tell
        bad += _zeros(buffer, keys, runs) + infinite(buffer, key_scales, runs)
        slow = ("v",)
        if v_bits == 8:
            return bad + _zeros(buffer, values, runs) + infinite(buffer, value_scales, runs)
        if v_bits == 4 and g.slice_width == 2 * g.v_slice_bytes:
            return bad + _zero_nibbles(buffer, values, runs) + infinite(buffer, value_scales, runs)
    codec = load_module("mpy_kv.codecs").named(name)
    for base, slot, n in runs:
        for s in range(slot, slot + n):
            for which in slow:
                codes, scales = (keys, key_scales) if which == "k" else (values, value_scales)
                at = base + codes[0] + s * codes[1]
                bad += codec.broken(buffer, g, which, at, base + scales[0] + 2 * s)
    return bad


def _spans(plane, runs):
    """(begin, end) of what a plane has in each run."""
    first, size, count, stride = plane
    for i in range(count):
        for base, slot, n in runs:
            at = base + first + i * stride + slot * size
            yield at, at + n * size


def _zeros(buffer, plane, runs):
    """Bytes of 0, looked for by pieces of a chunk's size."""
    view = memoryview(buffer)
    found = 0
    for at, end in _spans(plane, runs):
        while at < end:
            found += bytes(view[at : min(at + _PIECE, end)]).count(b"\0")
            at += _PIECE
    return found


def _zero_nibbles(buffer, plane, runs):
    """Bytes with a nibble of 0."""
    view = memoryview(buffer)
    found = 0
    for at, end in _spans(plane, runs):
        for x in view[at:end]:
            if x < 16 or not x & 15:
                found += 1
    return found


def infinite(buffer, plane, runs, signed=False):
    """float16 numbers that are not finite, or below 0 unless they may be."""
    mask = 0x7F if signed else 0xFF
    found = 0
    for at, end in _spans(plane, runs):
        for high in range(at + 1, end, 2):
            if buffer[high] & mask >= 0x7C:
                found += 1
    return found
