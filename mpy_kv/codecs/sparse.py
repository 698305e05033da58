"""sparse: keys as in int8; of values the largest three quarters of each group, the others read 0.

A group has a row of its own: a bitmap, channel c bit c % 8 of byte c // 8, then the int8 codes of the
channels whose bit is set, then 128 up to a whole word.
"""

from . import int8
from .scales import not_finite, scaled


def _kept(buffer, g, row):
    """Channels of a group whose bit is set, ascending; beyond the group where bits are no encoder's."""
    return [c for c in range((g.group + 7) // 8 * 8) if buffer[row + c // 8] >> c % 8 & 1]


def read(buffer, g, which, at_codes, at_scales):
    if which == "k":
        return int8.read(buffer, g, which, at_codes, at_scales)
    codes = [0] * g.width
    for group in range(g.groups):
        row = at_codes + group * g.v_group_stride
        at = row + (g.group + 7) // 8
        for c in _kept(buffer, g, row):
            codes[group * g.group + c] = buffer[at] - 128
            at += 1
    return scaled(codes, buffer, g, at_scales)


def broken(buffer, g, which, at_codes, at_scales):
    """Of each row: another number of bits than are kept or one beyond the group, a code of zero, padding that
    is not 128; a scale not finite; of keys as int8."""
    if which == "k":
        return int8.broken(buffer, g, which, at_codes, at_scales)
    bad = not_finite(buffer, g, at_scales)
    for group in range(g.groups):
        row = at_codes + group * g.v_group_stride
        kept = _kept(buffer, g, row)
        if len(kept) != g.kept or kept[-1] >= g.group:
            bad += 1
        at = row + (g.group + 7) // 8
        for i in range(at, row + g.v_row_bytes):
            bad += buffer[i] == 0 if i < at + g.kept else buffer[i] != 128
    return bad
