"""Slab pool: equal slabs, each cut on demand into objects of one size class.

A slab belongs to the common stock until a request of some class finds no free object; it returns there when
its last object is freed. A request takes the smallest class that holds it at its alignment; if that class
has no free object and the stock no slab, the next larger class that has one. alloc, free and a grow in
place are O(1) in slabs and objects, O(classes) to find the class; nothing allocates.

An object's alignment in real memory is what divides its class, the slab and the pool's start.

Arrays: `word` by object as in units.py, an object's index being slab * PER + its number in the slab, PER
how many of the smallest class a slab holds. `_lost` by object: of one in use the bytes not asked for, and
from bit 25 on log2 of the alignment / 4; of a freed one the number of the next freed one. `_slab`, numbers
of 16 bits: those of the table `slab` (python tools/fields.py --list) a slab. `_table`: those of `class` a
class, then the record of a region: heads of the lists of partly used slabs, one a class, and of full slabs,
and the numbers of `record`. This pool has one region; see slab_region.py for more. ALLOCS in meta is not
kept: it is FREES and USED. A slab in the stock is as it will leave it: no objects, no neighbours but the next
of the stock.

An object takes 12 bytes, a slab 12: with three of the smallest class a slab 16 an object.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..port import ints
from ..transient import load_module
from .moving import move_down
from .units import UnitPool, words

# fields: units, slab_least, slab_pool, slab, class, record
_N = const(0)
_MASK = const(1)
_STEP = const(2)
_WRAP = const(3)
_FREES = const(5)
_USED = const(6)
_HIGH = const(7)
_FREE = const(9)
_WASTE = const(10)
_LOCKS = const(11)
_LOCKED = const(12)
_LEAST = const(8)
_PER = const(15)
_KINDS = const(16)
_STOCK = const(17)
_SPARE = const(18)
_UNFILLED = const(19)
_SLAB = const(20)
_RECORDS = const(21)
_RECORD = const(22)
_SLAB_POOL_END = const(23)
_SLAB_PREVIOUS = const(1)
_SLAB_WHOSE = const(2)
_SLAB_USED = const(3)
_SLAB_FREED = const(4)
_SLAB_EVER = const(5)
_SLAB_WORDS = const(6)
_CLASS_OBJECTS = const(1)
_CLASS_ALIGN = const(2)
_CLASS_WORDS = const(3)
_GUARANTEED = const(1)
_ALLOWED = const(2)
_MARK = const(3)
# end of fields

NONE = 65535
EMPTY, REFUSED, MOVES = -1, -2, -3


@micropython.native
def take_object(meta, word, lost, slab, table, at, size, align):
    """An object of at least `size` and `align` bytes for the region whose record is at `at`; its handle.

    EMPTY: the region holds all slabs it may, or none is left that is nobody else's by guarantee.
    REFUSED: no class is as large at that alignment.
    """
    kinds = meta[_KINDS]
    c = 0
    t = 0
    while table[t] < size or table[t + _CLASS_ALIGN] < align:
        c += 1
        t += _CLASS_WORDS
        if c == kinds:
            return -2
    s = table[at + c]
    if s == 65535:
        place = at + kinds + 1
        held = table[place]
        if held < table[place + _GUARANTEED]:
            meta[_UNFILLED] -= 1
        elif held >= table[place + _ALLOWED] or meta[_SPARE] <= meta[_UNFILLED]:
            place = 0
        if place:
            table[place] = held + 1
            meta[_SPARE] -= 1
            s = meta[_STOCK]
            f = _SLAB_WORDS * s
            meta[_STOCK] = slab[f]
            slab[f] = 65535
            slab[f + _SLAB_WHOSE] = table[place + _MARK] | c
            table[at + c] = s
            meta[_FREE] -= meta[_SLAB] - table[t] * table[t + _CLASS_OBJECTS]  # the tail that no object uses
        else:
            while s == 65535:
                c += 1
                t += _CLASS_WORDS
                if c == kinds:
                    return -1
                if table[t + _CLASS_ALIGN] >= align:
                    s = table[at + c]
    f = _SLAB_WORDS * s
    i = s * meta[_PER]
    k = slab[f + _SLAB_FREED]
    if k == 65535:
        k = slab[f + _SLAB_EVER]
        slab[f + _SLAB_EVER] = k + 1
        i += k
    else:
        i += k
        slab[f + _SLAB_FREED] = lost[i]
    used = slab[f + _SLAB_USED] + 1
    slab[f + _SLAB_USED] = used
    if used == table[t + _CLASS_OBJECTS]:
        after = slab[f]
        table[at + c] = after
        if after != 65535:
            slab[_SLAB_WORDS * after + _SLAB_PREVIOUS] = 65535
        after = table[at + kinds]
        slab[f] = after
        if after != 65535:
            slab[_SLAB_WORDS * after + _SLAB_PREVIOUS] = s
        table[at + kinds] = s
    # From the change of the first field on there is no loop: signals of CPython wait for the end.
    full = table[t]
    size = full - size
    lost[i] = size
    meta[_WASTE] += size
    used = meta[_USED] + 1
    meta[_USED] = used
    if used > meta[_HIGH]:
        meta[_HIGH] = used
    free = meta[_FREE] - full
    meta[_FREE] = free
    if free < meta[_LEAST]:
        meta[_LEAST] = free
    handle = -1 - word[i]
    word[i] = handle
    return handle


def note_align(meta, lost, handle, align):
    """Remember, for grow, the alignment beyond 4 that an object just taken was asked with."""
    log = 0
    while 4 << log < align:
        log += 1
    lost[handle & meta[_MASK]] += log << 25


@micropython.native
def give_object(meta, word, lost, slab, table, handle):
    """Free the object of a handle in use and unlocked, and its slab with the last one. 0, or REFUSED."""
    i = handle & meta[_MASK]
    if i >= meta[_N] or word[i] != handle or handle > meta[_WRAP]:
        return -2
    word[i] = -1 - ((handle + meta[_STEP]) & meta[_WRAP])
    s = i // meta[_PER]
    f = _SLAB_WORDS * s
    where = slab[f + _SLAB_WHOSE]
    c = where & 31
    t = _CLASS_WORDS * c
    full = table[t]
    if lost[i]:
        meta[_WASTE] -= lost[i] & 0x1FFFFFF
    meta[_USED] -= 1
    meta[_FREES] = (meta[_FREES] + 1) & 0x3FFFFFFF
    used = slab[f + _SLAB_USED]
    was_full = used == table[t + _CLASS_OBJECTS]
    if was_full or used == 1:
        kinds = meta[_KINDS]
        at = meta[_RECORDS] + (where >> 5) * meta[_RECORD]
        # Out of its list: of full slabs, or of partly used ones.
        after = slab[f]
        before = slab[f + _SLAB_PREVIOUS]
        if before != 65535:
            slab[_SLAB_WORDS * before] = after
        elif was_full:
            table[at + kinds] = after
        else:
            table[at + c] = after
        if after != 65535:
            slab[_SLAB_WORDS * after + _SLAB_PREVIOUS] = before
        if used == 1:
            slab[f] = meta[_STOCK]
            slab[f + _SLAB_PREVIOUS] = 65535
            slab[f + _SLAB_WHOSE] = 65535
            slab[f + _SLAB_USED] = 0
            slab[f + _SLAB_FREED] = 65535
            slab[f + _SLAB_EVER] = 0
            meta[_STOCK] = s
            meta[_SPARE] += 1
            place = at + kinds + 1
            held = table[place] - 1
            table[place] = held
            if held < table[place + _GUARANTEED]:
                meta[_UNFILLED] += 1
            meta[_FREE] += full + meta[_SLAB] - full * table[t + _CLASS_OBJECTS]
            return 0
        after = table[at + c]
        slab[f] = after
        slab[f + _SLAB_PREVIOUS] = 65535
        if after != 65535:
            slab[_SLAB_WORDS * after + _SLAB_PREVIOUS] = s
        table[at + c] = s
    lost[i] = slab[f + _SLAB_FREED]
    slab[f + _SLAB_FREED] = i - s * meta[_PER]
    slab[f + _SLAB_USED] = used - 1
    meta[_FREE] += full
    return 0


@micropython.native
def extend_object(meta, word, lost, slab, table, handle, size):
    """Make an object hold `size` bytes where it is. 0; MOVES if its class is too small; or REFUSED."""
    i = handle & meta[_MASK]
    if i >= meta[_N] or handle > meta[_WRAP] or (word[i] != handle and word[i] != handle | 0x20000000):
        return -2
    c = slab[_SLAB_WORDS * (i // meta[_PER]) + _SLAB_WHOSE] & 31
    spare = table[_CLASS_WORDS * c] - size
    if spare < 0:
        return -3
    less = (lost[i] & 0x1FFFFFF) - spare
    if less > 0:
        meta[_WASTE] -= less
        lost[i] -= less
    return 0


@micropython.native
def hold_object(meta, word, slab, table, handle, on):
    """Lock (on = 1) or unlock an object; 0, also if it is so already, or REFUSED."""
    i = handle & meta[_MASK]
    if i >= meta[_N] or handle > meta[_WRAP] or (word[i] != handle and word[i] != handle | 0x20000000):
        return -2
    if (word[i] != handle) != on:
        word[i] = handle | on << 29
        meta[_LOCKS] += 2 * on - 1
        c = slab[_SLAB_WORDS * (i // meta[_PER]) + _SLAB_WHOSE] & 31
        meta[_LOCKED] += (2 * on - 1) * table[_CLASS_WORDS * c]
    return 0


@micropython.native
def room(meta, slab, table, at, size, align, n):
    """How many of `n` such objects the region at `at` can have; REFUSED as take_object. O(n + classes)."""
    kinds = meta[_KINDS]
    c = 0
    while c < kinds and (table[_CLASS_WORDS * c] < size or table[_CLASS_WORDS * c + _CLASS_ALIGN] < align):
        c += 1
    if c == kinds:
        return -2
    place = at + kinds + 1
    held = table[place]
    slabs = table[place + _ALLOWED] - held
    mine = table[place + _GUARANTEED] - held
    if mine < 0:
        mine = 0
    if slabs > meta[_SPARE] - meta[_UNFILLED] + mine:
        slabs = meta[_SPARE] - meta[_UNFILLED] + mine
    found = slabs * table[_CLASS_WORDS * c + _CLASS_OBJECTS]
    while c < kinds and found < n:
        if table[_CLASS_WORDS * c + _CLASS_ALIGN] >= align:
            s = table[at + c]
            while s != 65535 and found < n:
                found += table[_CLASS_WORDS * c + _CLASS_OBJECTS] - slab[_SLAB_WORDS * s + _SLAB_USED]
                s = slab[_SLAB_WORDS * s]
        c += 1
    return found if found < n else n


class SlabPool(UnitPool):
    """`n_slabs` slabs of `slab_bytes` in the arena, cut into objects of the sizes `classes`.

    slab_bytes, classes: multiples of 4, classes rising; a slab holds at least three of the smallest class and
    one of the largest. max_align: what the pool's start is aligned to, a power of two; by default 64, or as
    much of it as the arena has room for. tag: 0..7, the pool's mark in its handles (default: counted up).
    Raises BadArgument, and NoRoom of the arena.

    Fragmentation is 1 - servable / free: of all free bytes, those in free slabs serve a request of any
    class; free objects in slabs that belong to a class serve only requests that fit it.
    """

    name = "slab"
    _extra = 5  # entries of a region's record beside its lists of partly used slabs

    def __init__(self, arena, slab_bytes, n_slabs, classes=(64, 256), max_align=None, tag=None):
        self._make(arena, slab_bytes, n_slabs, classes, max_align, tag, 1)

    def _make(self, arena, slab_bytes, n_slabs, classes, max_align, tag, regions):
        make = load_module("mpy_kv.pools.slab_make")
        self.base, align = make.place(arena, slab_bytes, n_slabs, classes, max_align, tag)
        self.buffer = arena.buffer
        self.slab_bytes, self.n_slabs = slab_bytes, n_slabs
        self.total_bytes = n_slabs * slab_bytes
        self.max_block_bytes = classes[-1]
        objects = n_slabs * (slab_bytes // classes[0])
        self._meta, self._word = words(objects, 0, _SLAB_POOL_END, tag)
        self._lost = ints((), objects)
        self._slab = ints((), _SLAB_WORDS * n_slabs, "H")
        record = len(classes) + self._extra
        self._table = ints((), _CLASS_WORDS * len(classes) + regions * record)
        self._layer = array("H", bytes(2 * objects))
        self._batch = array("H", bytes(2 * objects))
        self.max_align = make.empty(
            self._meta, self._slab, self._table, slab_bytes, n_slabs, classes, align, record
        )
        self._all = self._meta[_RECORDS]

    def metadata_bytes(self):
        """Bytes of bookkeeping an object of the smallest class: 12, and its share of the slab's 12."""
        return 12 - -12 // self._meta[_PER]

    def overhead_bytes(self, size):
        """Bytes that an object of `size` takes beyond them, if its class has one."""
        c = 0
        if type(size) is int and size > 0:
            while c < self._meta[_KINDS]:
                if self._table[_CLASS_WORDS * c] >= size:
                    return self._table[_CLASS_WORDS * c] - size
                c += 1
        self._refuse_size(size, 4)

    @micropython.native
    def alloc(self, size, align=4):
        """An object of at least `size` bytes at a multiple of `align`; its handle. BadArgument, PoolFull."""
        if type(size) is not int or size < 1 or type(align) is not int or align < 1 or align & (align - 1):
            self._refuse_size(size, align)
        h = take_object(
            self._meta, self._word, self._lost, self._slab, self._table, self._all, size, align
        )
        if h < 0:
            self._refuse_room(h, self._all, size, align)
        if align > 4:
            note_align(self._meta, self._lost, h, align)
        return h

    def free(self, handle):
        """Give an object back. Refused (BadHandle, Locked): foreign, stale, twice, locked."""
        if type(handle) is not int:
            self._refuse(handle)
        if give_object(self._meta, self._word, self._lost, self._slab, self._table, handle):
            self._refuse(handle)

    @micropython.native
    def grow(self, handle, size):
        """Make an object hold at least `size` bytes; its handle, which is a new one if it had to move.

        It stays where it is if its class holds them, a locked one or not. Otherwise one of a larger class, in
        the same region, takes over contents, owner and alignment (counted as alloc and free); a locked one is
        refused. Nothing has changed when PoolFull, Locked, BadHandle or BadArgument is raised. It never
        shrinks.
        """
        if type(size) is not int or size < 1:
            self._refuse_size(size, 4)
        done = -2
        if type(handle) is int:
            done = extend_object(
                self._meta, self._word, self._lost, self._slab, self._table, handle, size
            )
        if done == -3:
            return self._move(handle, size)
        if done:
            self._refuse(handle)
        return handle

    @micropython.native
    def _move(self, handle, size):
        meta = self._meta
        i = handle & meta[_MASK]
        if self._word[i] != handle:
            self._refuse(handle)
        at = self._record(i)
        align = 4 << (self._lost[i] >> 25)
        h = take_object(meta, self._word, self._lost, self._slab, self._table, at, size, align)
        if h < 0:
            self._refuse_room(h, at, size, align)
        note_align(meta, self._lost, h, align)
        try:
            new = h & meta[_MASK]
            self._layer[new] = self._layer[i]
            self._batch[new] = self._batch[i]
            move_down(self.offset(h), self.offset(handle), self.size(handle) >> 2, self.buffer)
        except BaseException as error:
            give_object(meta, self._word, self._lost, self._slab, self._table, h)
            raise error
        give_object(meta, self._word, self._lost, self._slab, self._table, handle)
        return h

    def _class(self, i):
        """Of object `i`, which is in use."""
        meta = self._meta
        return self._slab[_SLAB_WORDS * (i // meta[_PER]) + _SLAB_WHOSE] & 31

    def _record(self, i):
        """Where in `_table` the record of the region of object `i` is."""
        meta = self._meta
        where = self._slab[_SLAB_WORDS * (i // meta[_PER]) + _SLAB_WHOSE]
        return meta[_RECORDS] + (where >> 5) * meta[_RECORD]

    def _refuse_room(self, why, at, size, align, n=1):
        load_module("mpy_kv.pools.slab_inspect").refuse_room(self, why, at, size, align, n)

    def lock(self, handle):
        """Guard an object against free and a move; idempotent."""
        self._hold(handle, 1)

    def unlock(self, handle):
        self._hold(handle, 0)

    def _hold(self, handle, on):
        if type(handle) is not int:
            self._refuse(handle)
        if hold_object(self._meta, self._word, self._slab, self._table, handle, on):
            self._refuse(handle)

    def set_owner(self, handle, layer, batch=0):
        """Note whose object it is; layer, batch: 0..65535."""
        i = self._index(handle)
        self._check_owner(layer, batch)
        self._layer[i] = layer
        self._batch[i] = batch

    def owner(self, handle):
        """(layer, batch) of an object; a new tuple (allocates)."""
        i = self._index(handle)
        return self._layer[i], self._batch[i]

    def offset(self, handle):
        """Byte offset of an object's data in the arena's buffer."""
        i = self._index(handle)
        s = i // self._meta[_PER]
        size = self._table[_CLASS_WORDS * self._class(i)]
        return self.base + s * self.slab_bytes + (i - s * self._meta[_PER]) * size

    def size(self, handle):
        """Usable bytes of an object."""
        return self._table[_CLASS_WORDS * self._class(self._index(handle))]

    def _room(self, n, size, align):
        return self._room_at(self._all, n, size, align)

    @micropython.native
    def _room_at(self, at, n, size, align):
        if type(size) is not int or size < 1 or type(align) is not int or align < 1 or align & (align - 1):
            self._refuse_size(size, align)
        n = room(self._meta, self._slab, self._table, at, size, align, n)
        if n < 0:
            self._refuse_room(n, at, size, align)
        return n

    def _largest(self):
        return self._largest_at(self._all)

    def _largest_at(self, at):
        c = self._meta[_KINDS]
        while c:
            c -= 1
            if self._room_at(at, 1, self._table[_CLASS_WORDS * c], 4):
                return self._table[_CLASS_WORDS * c]
        return 0

    def stats(self):
        """Sizes in bytes, counts in objects of the smallest class; a new dict (allocates). O(slabs)."""
        return load_module("mpy_kv.pools.slab_inspect").stats(self)

    def _fragmentation(self, servable, free):
        return 1 - servable / free if free else 0.0

    def check(self):
        """Number of broken invariants (0 = sound). O(objects), allocates."""
        return load_module("mpy_kv.pools.slab_inspect").check(
            self._meta, self._word, self._lost, self._slab, self._table
        )
