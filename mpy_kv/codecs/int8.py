"""int8 in symmetric groups: byte = code + 128, code -127..127, one float16 scale a group, rounded up.

Reading back allocates (it is for tests, snapshots and tools); storing is kernels.encode.
"""

NAME = "int8"


def half(h):
    """(mantissa, exponent) of the finite non-negative float16 with bits h: mantissa * 2^exponent."""
    e = h >> 10
    return ((h & 1023) | 1024, e - 25) if e else (h & 1023, -24)


def read(buffer, g, at_codes, at_scales):
    """One stored vector: g.width entries (code, scale mantissa, scale exponent).

    at_codes, at_scales: offsets of head 0 and group 0 at the token's slot.
    """
    values = []
    for i in range(g.width):
        head, d = divmod(i, g.head_dim)
        piece, c = divmod(d, g.slice_width)
        code = buffer[at_codes + head * g.head_stride + piece * g.slice_bytes + c] - 128
        s = at_scales + i // g.group * g.scale_stride
        m, e = half(buffer[s] | buffer[s + 1] << 8)
        values.append((code, m, e))
    return values


def broken(buffer, g, at_codes, at_scales):
    """Number of codes and scales at a slot that no encoder writes: a zero byte, a scale not finite."""
    bad = 0
    for head in range(g.kv_heads):
        for c in range(g.row_bytes):
            if buffer[at_codes + head * g.head_stride + c] == 0:
                bad += 1
    for group in range(g.groups):
        if buffer[at_scales + group * g.scale_stride + 1] >= 0x7C:
            bad += 1
    return bad
