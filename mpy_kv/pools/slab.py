"""Slab pool: equal slabs, each cut on demand into objects of one size class.

A slab belongs to the common stock until a request of some class finds no free object; it returns there when
its last object is freed. A request takes the smallest class that holds it at its alignment; if that class
has no free object and the stock no slab, the next larger class that has one. alloc, free and a grow in
place are O(1) in slabs and objects, O(classes) to find the class; nothing allocates.

An object's alignment in real memory is what divides its class, the slab and the pool's start.

Arrays: `word` by object as in units.py, an object's index being slab * PER + its number in the slab, PER
how many of the smallest class a slab holds. `_lost` by object: of one in use the bytes not asked for, and
from bit 25 on log2 of the alignment / 4; of a freed one the number of the next freed one. `_slab`, six
16-bit fields a slab: next and previous in its list, whose it is (region << 5 | class), objects in use,
first freed object, objects ever in use since it was given to its class (those behind are free too).
`_table`: size, objects a slab and alignment of each class; then the record of a region: heads of the lists
of partly used slabs, one a class, and of full slabs; slabs held, guaranteed, allowed; region << 5. This
pool has one region; see slab_region.py for more. ALLOCS in meta is not kept: it is FREES and USED. A slab in
the stock is as it will leave it: no objects, no neighbours but the next of the stock.

An object takes 12 bytes, a slab 12: with three of the smallest class a slab 16 an object.
"""

try:
    import micropython
except ImportError:
    from .. import cpython as micropython

from array import array

from ..lend import lend
from ..port import ints
from .moving import move_down
from .units import HIGH_UNITS, MASK, OWN, UnitPool, words

# Own entries of meta. PER: see above; KINDS: classes; STOCK: first free slab, SPARE: how many there are;
# UNFILLED: slabs guaranteed to regions and not yet held; SLAB: bytes of one; RECORDS: where in `_table` the
# first region is, RECORD: entries of one.
PER, KINDS, STOCK, SPARE, UNFILLED, SLAB, RECORDS, RECORD = range(OWN, OWN + 8)
LEAST = HIGH_UNITS  # in its place: the fewest bytes that were free
NONE = 65535
EMPTY, REFUSED, MOVES = -1, -2, -3


@micropython.native
def take_object(meta, word, lost, slab, table, at, size, align):
    """An object of at least `size` and `align` bytes for the region whose record is at `at`; its handle.

    EMPTY: the region holds all slabs it may, or none is left that is nobody else's by guarantee.
    REFUSED: no class is as large at that alignment.
    """
    kinds = meta[16]
    c = 0
    t = 0
    while table[t] < size or table[t + 2] < align:
        c += 1
        t += 3
        if c == kinds:
            return -2
    s = table[at + c]
    if s == 65535:
        place = at + kinds + 1
        held = table[place]
        if held < table[place + 1]:
            meta[19] -= 1
        elif held >= table[place + 2] or meta[18] <= meta[19]:
            place = 0
        if place:
            table[place] = held + 1
            meta[18] -= 1
            s = meta[17]
            f = 6 * s
            meta[17] = slab[f]
            slab[f] = 65535
            slab[f + 2] = table[place + 3] | c
            table[at + c] = s
            meta[9] -= meta[20] - table[t] * table[t + 1]  # the tail that no object uses
        else:
            while s == 65535:
                c += 1
                t += 3
                if c == kinds:
                    return -1
                if table[t + 2] >= align:
                    s = table[at + c]
    f = 6 * s
    i = s * meta[15]
    k = slab[f + 4]
    if k == 65535:
        k = slab[f + 5]
        slab[f + 5] = k + 1
        i += k
    else:
        i += k
        slab[f + 4] = lost[i]
    used = slab[f + 3] + 1
    slab[f + 3] = used
    if used == table[t + 1]:
        after = slab[f]
        table[at + c] = after
        if after != 65535:
            slab[6 * after + 1] = 65535
        after = table[at + kinds]
        slab[f] = after
        if after != 65535:
            slab[6 * after + 1] = s
        table[at + kinds] = s
    # From the change of the first field on there is no loop: signals of CPython wait for the end.
    full = table[t]
    size = full - size
    lost[i] = size
    meta[10] += size
    used = meta[6] + 1
    meta[6] = used
    if used > meta[7]:
        meta[7] = used
    free = meta[9] - full
    meta[9] = free
    if free < meta[8]:
        meta[8] = free
    handle = -1 - word[i]
    word[i] = handle
    return handle


def note_align(meta, lost, handle, align):
    """Remember, for grow, the alignment beyond 4 that an object just taken was asked with."""
    log = 0
    while 4 << log < align:
        log += 1
    lost[handle & meta[1]] += log << 25


@micropython.native
def give_object(meta, word, lost, slab, table, handle):
    """Free the object of a handle in use and unlocked, and its slab with the last one. 0, or REFUSED."""
    i = handle & meta[1]
    if i >= meta[0] or word[i] != handle or handle > meta[3]:
        return -2
    word[i] = -1 - ((handle + meta[2]) & meta[3])
    s = i // meta[15]
    f = 6 * s
    where = slab[f + 2]
    c = where & 31
    t = 3 * c
    full = table[t]
    if lost[i]:
        meta[10] -= lost[i] & 0x1FFFFFF
    meta[6] -= 1
    meta[5] = (meta[5] + 1) & 0x3FFFFFFF
    used = slab[f + 3]
    was_full = used == table[t + 1]
    if was_full or used == 1:
        kinds = meta[16]
        at = meta[21] + (where >> 5) * meta[22]
        # Out of its list: of full slabs, or of partly used ones.
        after = slab[f]
        before = slab[f + 1]
        if before != 65535:
            slab[6 * before] = after
        elif was_full:
            table[at + kinds] = after
        else:
            table[at + c] = after
        if after != 65535:
            slab[6 * after + 1] = before
        if used == 1:
            slab[f] = meta[17]
            slab[f + 1] = 65535
            slab[f + 2] = 65535
            slab[f + 3] = 0
            slab[f + 4] = 65535
            slab[f + 5] = 0
            meta[17] = s
            meta[18] += 1
            place = at + kinds + 1
            held = table[place] - 1
            table[place] = held
            if held < table[place + 1]:
                meta[19] += 1
            meta[9] += full + meta[20] - full * table[t + 1]
            return 0
        after = table[at + c]
        slab[f] = after
        slab[f + 1] = 65535
        if after != 65535:
            slab[6 * after + 1] = s
        table[at + c] = s
    lost[i] = slab[f + 4]
    slab[f + 4] = i - s * meta[15]
    slab[f + 3] = used - 1
    meta[9] += full
    return 0


@micropython.native
def extend_object(meta, word, lost, slab, table, handle, size):
    """Make an object hold `size` bytes where it is. 0; MOVES if its class is too small; or REFUSED."""
    i = handle & meta[1]
    if i >= meta[0] or handle > meta[3] or (word[i] != handle and word[i] != handle | 0x20000000):
        return -2
    spare = table[3 * (slab[6 * (i // meta[15]) + 2] & 31)] - size
    if spare < 0:
        return -3
    less = (lost[i] & 0x1FFFFFF) - spare
    if less > 0:
        meta[10] -= less
        lost[i] -= less
    return 0


@micropython.native
def hold_object(meta, word, slab, table, handle, on):
    """Lock (on = 1) or unlock an object; 0, also if it is so already, or REFUSED."""
    i = handle & meta[1]
    if i >= meta[0] or handle > meta[3] or (word[i] != handle and word[i] != handle | 0x20000000):
        return -2
    if (word[i] != handle) != on:
        word[i] = handle | on << 29
        meta[11] += 2 * on - 1
        meta[12] += (2 * on - 1) * table[3 * (slab[6 * (i // meta[15]) + 2] & 31)]
    return 0


@micropython.native
def room(meta, slab, table, at, size, align, n):
    """How many of `n` such objects the region at `at` can have; REFUSED as take_object. O(n + classes)."""
    kinds = meta[16]
    c = 0
    while c < kinds and (table[3 * c] < size or table[3 * c + 2] < align):
        c += 1
    if c == kinds:
        return -2
    place = at + kinds + 1
    held = table[place]
    slabs = table[place + 2] - held
    mine = table[place + 1] - held
    if mine < 0:
        mine = 0
    if slabs > meta[18] - meta[19] + mine:
        slabs = meta[18] - meta[19] + mine
    found = slabs * table[3 * c + 1]
    while c < kinds and found < n:
        if table[3 * c + 2] >= align:
            s = table[at + c]
            while s != 65535 and found < n:
                found += table[3 * c + 1] - slab[6 * s + 3]
                s = slab[6 * s]
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
        make = lend("mpy_kv.pools.slab_make")
        self.base, align = make.place(arena, slab_bytes, n_slabs, classes, max_align, tag, regions)
        self.buffer = arena.buffer
        self.slab_bytes, self.n_slabs = slab_bytes, n_slabs
        self.total_bytes = n_slabs * slab_bytes
        self.max_block_bytes = classes[-1]
        objects = n_slabs * (slab_bytes // classes[0])
        self._meta, self._word = words(objects, 0, 8, tag)
        self._lost = ints((), objects)
        self._slab = ints((), 6 * n_slabs, "H")
        record = len(classes) + self._extra
        self._table = ints((), 3 * len(classes) + regions * record)
        self._layer = array("H", bytes(2 * objects))
        self._batch = array("H", bytes(2 * objects))
        self.max_align = make.empty(
            self._meta, self._slab, self._table, slab_bytes, n_slabs, classes, align, record
        )
        self._all = self._meta[RECORDS]

    def metadata_bytes(self):
        """Bytes of bookkeeping an object of the smallest class: 12, and its share of the slab's 12."""
        return 12 - -12 // self._meta[PER]

    def overhead_bytes(self, size):
        """Bytes that an object of `size` takes beyond them, if its class has one."""
        c = 0
        if type(size) is int and size > 0:
            while c < self._meta[KINDS]:
                if self._table[3 * c] >= size:
                    return self._table[3 * c] - size
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
        i = handle & meta[MASK]
        if self._word[i] != handle:
            self._refuse(handle)
        at = self._record(i)
        align = 4 << (self._lost[i] >> 25)
        h = take_object(meta, self._word, self._lost, self._slab, self._table, at, size, align)
        if h < 0:
            self._refuse_room(h, at, size, align)
        note_align(meta, self._lost, h, align)
        try:
            new = h & meta[MASK]
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
        return self._slab[6 * (i // meta[PER]) + 2] & 31

    def _record(self, i):
        """Where in `_table` the record of the region of object `i` is."""
        meta = self._meta
        return meta[RECORDS] + (self._slab[6 * (i // meta[PER]) + 2] >> 5) * meta[RECORD]

    def _refuse_room(self, why, at, size, align, n=1):
        lend("mpy_kv.pools.slab_audit").refuse_room(self, why, at, size, align, n)

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
        s = i // self._meta[PER]
        return self.base + s * self.slab_bytes + (i - s * self._meta[PER]) * self._table[3 * self._class(i)]

    def size(self, handle):
        """Usable bytes of an object."""
        return self._table[3 * self._class(self._index(handle))]

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
        c = self._meta[KINDS]
        while c:
            c -= 1
            if self._room_at(at, 1, self._table[3 * c], 4):
                return self._table[3 * c]
        return 0

    def stats(self):
        """Sizes in bytes, counts in objects of the smallest class; a new dict (allocates). O(slabs)."""
        return lend("mpy_kv.pools.slab_audit").stats(self)

    def _fragmentation(self, servable, free):
        return 1 - servable / free if free else 0.0

    def check(self):
        """Number of broken invariants (0 = sound). O(objects), allocates."""
        return lend("mpy_kv.pools.slab_audit").check(
            self._meta, self._word, self._lost, self._slab, self._table
        )
