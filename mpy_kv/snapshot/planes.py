"""Where the bytes of stored tokens lie, in the order in which a snapshot has them.

A run is (base, slot, count): that many slots from `slot` on of the layer's block that begins at `base`.
Transient (mpy_kv/transient.py).
"""

from ..transient import load_module


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
    codec = load_module("mpy_kv.codecs").named(codec or g.codec)
    bad = 0
    v = g.plane_bytes
    for base, slot, n in runs:
        for s in range(slot, slot + n):
            bad += codec.broken(buffer, g, "k", base + s * g.row_bytes, base + g.codes_bytes + 2 * s)
            at = base + v
            bad += codec.broken(buffer, g, "v", at + s * g.v_row_bytes, at + g.v_codes_bytes + 2 * s)
    return bad
