"""Constructors' part of the buddy and the region pool: arguments checked, room taken. Transient, see
transient.py.

Raises BadArgument before anything is taken from the arena, and the arena's NoRoom.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..arena import Arena
from ..errors import BadArgument, NoRoom
from ..port import addressof

# fields: units, buddy, region, node
_N = const(0)
_MASK = const(1)
_FREE = const(9)
_UNITS = const(13)
_SHIFT = const(14)
_ORDER = const(15)
_HEADS = const(16)
_BITS = const(15)
_HEAD = const(16)
_SKEW = const(18)
# end of fields


MAX_UNITS = 1 << 20  # of a buddy pool: 20 bits of a handle
MAX_REGIONS = 4095  # 12 bits of a link, the other 4 count holders
MAX_ALIGN = 1 << 16


def _power(x):
    return type(x) is int and x > 0 and not x & (x - 1)


def _check(arena, total_bytes, tag):
    if not isinstance(arena, Arena):
        raise BadArgument("arena must be an Arena, got %s" % type(arena).__name__)
    if type(total_bytes) is not int or not 4 <= total_bytes < 1 << 30:
        raise BadArgument("total_bytes must be 4..2^30 - 1, got %r" % (total_bytes,))
    if tag is not None and (type(tag) is not int or not 0 <= tag <= 7):
        raise BadArgument("tag must be 0..7, got %r" % (tag,))


def buddy(arena, total_bytes, min_block, max_align, tag):
    """(units, base, max_align) of BuddyPool's arguments."""
    _check(arena, total_bytes, tag)
    if not _power(min_block) or min_block < 4 or min_block > total_bytes:
        raise BadArgument(
            "min_block must be a power of two from 4 to total_bytes %d, got %r" % (total_bytes, min_block)
        )
    if max_align is not None and not 4 <= (max_align if _power(max_align) else 0) <= MAX_ALIGN:
        raise BadArgument("max_align must be a power of two 4..%d, got %r" % (MAX_ALIGN, max_align))
    units = total_bytes // min_block
    if units > MAX_UNITS:
        raise BadArgument(
            "%d blocks of min_block %d: at most %d; raise min_block" % (units, min_block, MAX_UNITS)
        )
    align = max_align or min(max(min_block, 64), MAX_ALIGN)
    while True:
        try:
            return units, arena.take(units * min_block, align), align
        except NoRoom:
            if max_align is not None or align == 4:
                raise
        align >>= 1


def roots(meta, order, link, units, min_block):
    """Write the free pool; bytes of the largest root."""
    meta[_FREE] = meta[_UNITS] = units
    while 1 << meta[_SHIFT] < min_block:
        meta[_SHIFT] += 1
    top = 0
    while 2 << top <= units:
        top += 1
    meta[_ORDER] = top
    for k in range(_HEADS, len(meta)):
        meta[k] = -1
    at = 0
    for k in range(top, -1, -1):
        if units >> k & 1:
            meta[_HEADS + k] = at
            order[at] = k + 1
            link[at] = -1
            at += 1 << k
    return min_block << top


def region(arena, total_bytes, max_regions, tag):
    """(units, shift, base, skew) of RegionPool's arguments; see region.py."""
    _check(arena, total_bytes, tag)
    if type(max_regions) is not int or not 1 <= max_regions <= MAX_REGIONS:
        raise BadArgument("max_regions must be 1..%d, got %r" % (MAX_REGIONS, max_regions))
    shift = 2
    while total_bytes >> shift > 65535:
        shift += 1
    base = arena.take(total_bytes)
    at = (addressof(arena.buffer) + base) % MAX_ALIGN
    # What precedes the first whole unit of real memory is lost.
    lost = -at % (1 << shift)
    return (total_bytes - lost) >> shift, shift, base + lost, (at + lost) % MAX_ALIGN >> shift


def entries(meta, node, units, shift, skew):
    """Write the empty region pool."""
    n = meta[_N]
    meta[_FREE] = meta[_UNITS] = units
    meta[_SHIFT] = shift
    while meta[_MASK] >> meta[_BITS]:
        meta[_BITS] += 1
    meta[_HEAD] = meta[_MASK]
    meta[_SKEW] = skew
    for i in range(n):
        node[i] = i + 1
    node[i] = meta[_MASK]
