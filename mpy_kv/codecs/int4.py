"""int4: a token of a sealed block of 16. Two values a byte, the first in its low nibble, padding 0.

Keys: value = (16 M + S n) P / 4096 of nibble n, with M and S a channel and P a power of two a group, the same
for the block. Values: m + s n, with float16 m and s a group of the token. A token that is not sealed yet is
int8's. at_scales: of keys the block's header, of values group 0's s (SealedGeometry.place4).
"""

from .scales import half


def _nibbles(buffer, g, at_codes):
    found = []
    for head in range(g.kv_heads):
        for piece in range(g.slices):
            at = at_codes + head * g.head4_stride + piece * g.slice4_bytes
            found += [buffer[at + c // 2] >> 4 * (c & 1) & 15 for c in range(g.slice_width)]
    return found


def _get16(buffer, at):
    return buffer[at] | buffer[at + 1] << 8


def read(buffer, g, which, at_codes, at_scales):
    values = []
    for i, n in enumerate(_nibbles(buffer, g, at_codes)):
        if which == "k":
            power, e = half(_get16(buffer, at_scales + 2 * (i // g.group)))
            at = at_scales + g.powers_bytes + 4 * i
            least = (_get16(buffer, at + 2) ^ 0x8000) - 0x8000
            values.append(((least << 4) + _get16(buffer, at) * n, power, e - 12))
            continue
        at = at_scales + i // g.group * g.scale4_stride
        s, e = half(_get16(buffer, at))
        least = _get16(buffer, at + g.minima_gap)
        m, e_least = half(least & 0x7FFF)
        low = min(e, e_least)
        m <<= e_least - low
        values.append(((s * n << e - low) + (-m if least >> 15 else m), 1, low))
    return values


def broken(buffer, g, which, at_codes, at_scales):
    """Padding that is not 0; of keys a power that is none; of values a scale or a minimum not finite."""
    bad = 0
    for head in range(g.kv_heads):
        for c in range(2 * g.row4_bytes):
            nibble = buffer[at_codes + head * g.head4_stride + c // 2] >> 4 * (c & 1) & 15
            bad += nibble != 0 and c % (2 * g.slice4_bytes) >= g.slice_width
    for group in range(g.groups):
        if which == "k":
            m, _ = half(_get16(buffer, at_scales + 2 * group))
            bad += m & (m - 1) != 0 or m == 0 or _get16(buffer, at_scales + 2 * group) >= 0x7C00
            continue
        at = at_scales + group * g.scale4_stride
        bad += _get16(buffer, at) >= 0x7C00
        bad += _get16(buffer, at + g.minima_gap) & 0x7C00 == 0x7C00
    return bad
