"""int8-int4: keys as in int8; values in symmetric groups of 4 bits, code -7..7 stored as code + 8.

Two values a byte, the first in its low nibble; a slice of a row starts on a word and is padded with 8.
"""

from . import int8
from .scales import not_finite, scaled


def read(buffer, g, which, at_codes, at_scales):
    if which == "k":
        return int8.read(buffer, g, which, at_codes, at_scales)
    codes = []
    for head in range(g.kv_heads):
        for piece in range(g.slices):
            at = at_codes + head * g.v_head_stride + piece * g.v_slice_bytes
            codes += [(buffer[at + c // 2] >> 4 * (c & 1) & 15) - 8 for c in range(g.slice_width)]
    return scaled(codes, buffer, g, at_scales)


def broken(buffer, g, which, at_codes, at_scales):
    """A nibble of zero, padding that is not 8, a scale not finite; of keys as int8."""
    if which == "k":
        return int8.broken(buffer, g, which, at_codes, at_scales)
    bad = not_finite(buffer, g, at_scales)
    for head in range(g.kv_heads):
        for c in range(2 * g.v_row_bytes):
            nibble = buffer[at_codes + head * g.v_head_stride + c // 2] >> 4 * (c & 1) & 15
            padding = c % (2 * g.v_slice_bytes) >= g.slice_width
            bad += nibble != 8 if padding else nibble == 0
    return bad
