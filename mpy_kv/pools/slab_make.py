"""Constructors' part of the slab pools: arguments checked, room taken, the empty pool written. Transient, see
transient.py.

Raises BadArgument before anything is taken from the arena, and the arena's NoRoom.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..arena import Arena
from ..errors import BadArgument, NoRoom
from .slab import NONE

# fields: units, slab_least, slab_pool, slab, class, record
_FREE = const(9)
_UNITS = const(13)
_LEAST = const(8)
_PER = const(15)
_KINDS = const(16)
_SPARE = const(18)
_SLAB = const(20)
_RECORDS = const(21)
_RECORD = const(22)
_SLAB_PREVIOUS = const(1)
_SLAB_WHOSE = const(2)
_SLAB_FREED = const(4)
_SLAB_WORDS = const(6)
_CLASS_OBJECTS = const(1)
_CLASS_ALIGN = const(2)
_CLASS_WORDS = const(3)
_ALLOWED = const(2)
_MARK = const(3)
# end of fields

MAX_OBJECTS = 1 << 20  # 20 bits of a handle
MAX_CLASSES = 32
MAX_CLASS = 1 << 25  # so that bytes not asked for and an alignment share a small int
MAX_ALIGN = 1 << 16
MAX_SLABS = 65534


def place(arena, slab_bytes, n_slabs, classes, max_align, tag):
    """(base, alignment of the base) of SlabPool's arguments."""
    if not isinstance(arena, Arena):
        raise BadArgument("arena must be an Arena, got %s" % type(arena).__name__)
    if type(slab_bytes) is not int or slab_bytes < 12 or slab_bytes % 4:
        raise BadArgument("slab_bytes must be a multiple of 4 from 12 up, got %r" % (slab_bytes,))
    if type(n_slabs) is not int or not 1 <= n_slabs <= MAX_SLABS:
        raise BadArgument("n_slabs must be 1..%d, got %r" % (MAX_SLABS, n_slabs))
    _check_classes(classes, slab_bytes, n_slabs)
    if max_align is not None and (
        type(max_align) is not int or not 4 <= max_align <= MAX_ALIGN or max_align & (max_align - 1)
    ):
        raise BadArgument("max_align must be a power of two 4..%d, got %r" % (MAX_ALIGN, max_align))
    if tag is not None and (type(tag) is not int or not 0 <= tag <= 7):
        raise BadArgument("tag must be 0..7, got %r" % (tag,))
    if n_slabs * slab_bytes >> 30:
        raise BadArgument("n_slabs * slab_bytes must be below 2^30, got %d" % (n_slabs * slab_bytes))
    align = max_align or 64
    while True:
        try:
            return arena.take(n_slabs * slab_bytes, align), align
        except NoRoom:
            if max_align is not None or align == 4:
                raise
        align >>= 1


def _check_classes(classes, slab_bytes, n_slabs):
    if not isinstance(classes, (tuple, list)) or not 1 <= len(classes) <= MAX_CLASSES:
        raise BadArgument("classes must be a tuple of 1..%d sizes, got %r" % (MAX_CLASSES, classes))
    before = 0
    for size in classes:
        if type(size) is not int or size % 4 or size <= before:
            raise BadArgument("classes must be rising multiples of 4, got %r" % (classes,))
        before = size
    if classes[0] * 3 > slab_bytes or classes[-1] > slab_bytes or classes[-1] > MAX_CLASS:
        raise BadArgument(
            "a slab of %d bytes must hold three of the smallest class, one of the largest, up to %d; got %r"
            % (slab_bytes, MAX_CLASS, classes)
        )
    per = slab_bytes // classes[0]
    if per >= NONE:
        most = NONE - 1
        raise BadArgument("%d objects of the smallest class in a slab: at most %d; raise it" % (per, most))
    if n_slabs * per > MAX_OBJECTS:
        raise BadArgument(
            "%d objects of the smallest class: at most %d; raise it" % (n_slabs * per, MAX_OBJECTS)
        )


def empty(meta, slab, table, slab_bytes, n_slabs, classes, align, record):
    """Write the empty pool, all its slabs in the stock; the largest alignment of its classes. record: entries
    of one region in `table`."""
    kinds = len(classes)
    meta[_PER] = slab_bytes // classes[0]
    meta[_KINDS] = kinds
    meta[_SPARE] = n_slabs
    meta[_SLAB] = slab_bytes
    meta[_RECORDS] = _CLASS_WORDS * kinds
    meta[_RECORD] = record
    meta[_FREE] = meta[_LEAST] = meta[_UNITS] = n_slabs * slab_bytes
    best = 4
    for c in range(kinds):
        natural = align
        while classes[c] % natural or slab_bytes % natural:
            natural >>= 1
        table[_CLASS_WORDS * c] = classes[c]
        table[_CLASS_WORDS * c + _CLASS_OBJECTS] = slab_bytes // classes[c]
        table[_CLASS_WORDS * c + _CLASS_ALIGN] = natural
        best = max(best, natural)
    for at in range(meta[_RECORDS], len(table), record):
        for k in range(kinds + 1):
            table[at + k] = NONE
        place = at + kinds + 1
        table[place + _MARK] = (at - meta[_RECORDS]) // record << 5
    place = meta[_RECORDS] + kinds + 1
    table[place + _ALLOWED] = n_slabs
    for s in range(n_slabs):
        f = _SLAB_WORDS * s
        slab[f] = s + 1
        slab[f + _SLAB_PREVIOUS] = slab[f + _SLAB_WHOSE] = slab[f + _SLAB_FREED] = NONE
    slab[f] = NONE
    return best
