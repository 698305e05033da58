"""float16: IEEE halves, [kv_heads][slots][head_dim], no scales; a row is padded with zeros to whole words."""

from .scales import half


def read(buffer, g, which, at_codes, at_scales):
    values = []
    for head in range(g.kv_heads):
        at = at_codes + head * g.head_stride
        for c in range(at, at + 2 * g.head_dim, 2):
            high = buffer[c + 1]
            values.append((-1 if high >> 7 else 1,) + half(buffer[c] | high << 8 & 0x7F00))
    return values


def broken(buffer, g, which, at_codes, at_scales):
    """What is not finite, padding that is not zero."""
    bad = 0
    for head in range(g.kv_heads):
        at = at_codes + head * g.head_stride
        for c in range(1, 2 * g.head_dim, 2):
            bad += buffer[at + c] & 0x7C == 0x7C
        bad += len([c for c in range(2 * g.head_dim, g.row_bytes) if buffer[at + c]])
    return bad
