"""float32: IEEE single precision, [kv_heads][slots][head_dim], no scales."""


def read(buffer, g, which, at_codes, at_scales):
    values = []
    for head in range(g.kv_heads):
        at = at_codes + head * g.head_stride
        for c in range(at, at + g.row_bytes, 4):
            m = buffer[c] | buffer[c + 1] << 8 | (buffer[c + 2] & 127) << 16
            e = buffer[c + 3] << 1 & 254 | buffer[c + 2] >> 7
            values.append((-1 if buffer[c + 3] >> 7 else 1, m | 1 << 23 if e else m, max(e, 1) - 150))
    return values


def broken(buffer, g, which, at_codes, at_scales):
    """What no encoder writes: 2^127 and more, what is not finite."""
    bad = 0
    for head in range(g.kv_heads):
        at = at_codes + head * g.head_stride
        for c in range(at, at + g.row_bytes, 4):
            bad += (buffer[c + 3] << 1 & 254 | buffer[c + 2] >> 7) > 253
    return bad
