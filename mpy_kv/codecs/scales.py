"""Scales of symmetric groups: float16, [groups][slots]."""


def half(h):
    """(mantissa, exponent) of the finite non-negative float16 with bits h: mantissa * 2^exponent."""
    e = h >> 10
    return ((h & 1023) | 1024, e - 25) if e else (h & 1023, -24)


def scaled(codes, buffer, g, at_scales):
    """The codes of a vector, each with its group's scale: (code, mantissa, exponent)."""
    values = []
    for i in range(g.width):
        s = at_scales + i // g.group * g.scale_stride
        values.append((codes[i],) + half(buffer[s] | buffer[s + 1] << 8))
    return values


def not_finite(buffer, g, at_scales):
    """How many scales at a slot are none."""
    at = [at_scales + group * g.scale_stride for group in range(g.groups)]
    return len([s for s in at if buffer[s + 1] >= 0x7C])
