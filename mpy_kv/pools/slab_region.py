"""Slab and region pool: a region is a quota of slabs, wherever they lie.

A slab pool (slab.py) whose slabs go to regions. A region holds at most limit_slabs and is guaranteed
guaranteed_slabs of them: it gets a slab if it holds fewer than its guarantee, or if after that there are
still as many free slabs as other regions hold too few of theirs. So no region takes what another is
guaranteed, and opening one with a guarantee that cannot be kept is refused. meta[UNFILLED] is the sum of
what is guaranteed and not held, kept with every slab that changes hands: the decision is O(1).

Objects of different regions never share a slab. close_region() gives all slabs of a region back at once,
whatever lies in them: O(objects of these slabs). As any free slab serves any region, nothing is ever
fragmented between regions; free objects in the slabs of a region are its own.

The default region (None) is always open, may have every slab that is nobody else's, and is guaranteed none.
A region's handle carries generation and tag like an object's: a closed one is refused. Of a closed
region OWNER in its record (see slab.py) is the next closed one.
`_gate`: a word a region as in units.py. 4 * (classes + 8) bytes a region.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..errors import BadArgument
from ..transient import load_module
from .slab import SlabPool, note_align, take_object
from .units import UnitPool, find, words

# fields: units, slab_least, slab_pool, slab, class, record, doors
_STEP = const(2)
_WRAP = const(3)
_FREES = const(5)
_USED = const(6)
_FREE = const(9)
_WASTE = const(10)
_PER = const(15)
_KINDS = const(16)
_STOCK = const(17)
_SPARE = const(18)
_UNFILLED = const(19)
_SLAB = const(20)
_RECORDS = const(21)
_RECORD = const(22)
_SLAB_PREVIOUS = const(1)
_SLAB_WHOSE = const(2)
_SLAB_USED = const(3)
_SLAB_FREED = const(4)
_SLAB_EVER = const(5)
_SLAB_WORDS = const(6)
_CLASS_OBJECTS = const(1)
_CLASS_WORDS = const(3)
_GUARANTEED = const(1)
_ALLOWED = const(2)
_HOLDERS = const(4)
_OWNER = const(5)
_CLOSED = const(15)
_DOORS_END = const(16)
# end of fields

LOCKED_INSIDE = -3
MAX_REGIONS = 1023
NO_REGION = 65535


@micropython.native
def open_quota(meta, table, place, limit, guaranteed):
    """Give the region of the numbers at `place` its quota. 0, or EMPTY if the guarantee cannot be kept."""
    if guaranteed > meta[_SPARE] - meta[_UNFILLED]:
        return -1
    meta[_UNFILLED] += guaranteed
    table[place] = 0
    table[place + _GUARANTEED] = guaranteed
    table[place + _ALLOWED] = limit
    table[place + _HOLDERS] = 1
    return 0


@micropython.native
def close_quota(meta, word, lost, slab, table, at):
    """Free every object of the region at `at` and give its slabs to the stock, its quota to nobody. 0, or
    LOCKED_INSIDE. If it is stopped half-way, a second call does the rest."""
    kinds = meta[_KINDS]
    per = meta[_PER]
    for k in range(kinds + 1):
        s = table[at + k]
        while s != 65535:
            i = s * per
            for j in range(i, i + slab[_SLAB_WORDS * s + _SLAB_EVER]):
                if word[j] >= 0x20000000:
                    return -3
            s = slab[_SLAB_WORDS * s]
    step = meta[_STEP]
    wrap = meta[_WRAP]
    for k in range(kinds + 1):
        while table[at + k] != 65535:
            s = table[at + k]
            f = _SLAB_WORDS * s
            i = s * per
            for j in range(i, i + slab[f + _SLAB_EVER]):
                w = word[j]
                if w >= 0:
                    meta[_WASTE] -= lost[j] & 0x1FFFFFF
                    word[j] = -1 - ((w + step) & wrap)
            c = slab[f + _SLAB_WHOSE] & 31
            used = slab[f + _SLAB_USED]
            full = table[_CLASS_WORDS * c]
            meta[_USED] -= used
            meta[_FREE] += meta[_SLAB] - full * (table[_CLASS_WORDS * c + _CLASS_OBJECTS] - used)
            table[at + k] = slab[f]
            meta[_FREES] = (meta[_FREES] + used) & 0x3FFFFFFF
            slab[f] = meta[_STOCK]
            slab[f + _SLAB_PREVIOUS] = 65535
            slab[f + _SLAB_WHOSE] = 65535
            slab[f + _SLAB_USED] = 0
            slab[f + _SLAB_FREED] = 65535
            slab[f + _SLAB_EVER] = 0
            meta[_STOCK] = s
            meta[_SPARE] += 1
    place = at + kinds + 1
    if table[place] < table[place + _GUARANTEED]:
        meta[_UNFILLED] -= table[place + _GUARANTEED] - table[place]
    table[place] = 0
    table[place + _GUARANTEED] = 0
    table[place + _ALLOWED] = 0
    table[place + _HOLDERS] = 0
    return 0


class SlabRegionPool(SlabPool):
    """As SlabPool, in up to `max_regions` regions beside the default one.

    Fragmentation is 1 - servable / free in slabs: of those no region holds, the share that is in the stock.
    """

    name = "slab+region"
    _extra = 7

    def __init__(
        self, arena, slab_bytes, n_slabs, classes=(64, 256), max_regions=16, max_align=None, tag=None
    ):
        if type(max_regions) is not int or not 1 <= max_regions <= MAX_REGIONS:
            raise BadArgument("max_regions must be 1..1023, got %r" % (max_regions,))
        self._make(arena, slab_bytes, n_slabs, classes, max_align, tag, 1 + max_regions)
        self._doors, self._gate = words(max_regions, 0, _DOORS_END, tag)
        for k in range(max_regions):
            self._table[self._place(k) + _OWNER] = k + 1
        self._table[self._place(k) + _OWNER] = NO_REGION
        place = self._place(-1)
        self._table[place + _HOLDERS] = 1

    def _place(self, k):
        """Where in `_table` the numbers of region `k`, -1 the default one, begin, behind its lists."""
        return self._meta[_RECORDS] + (k + 1) * self._meta[_RECORD] + self._meta[_KINDS] + 1

    def _at(self, region):
        """Where in `_table` the record of a region is."""
        if region is None:
            return self._meta[_RECORDS]
        return self._meta[_RECORDS] + (self._door(region) + 1) * self._meta[_RECORD]

    def _door(self, region):
        i = -2
        if type(region) is int:
            i = find(self._doors, self._gate, region)
        if i < 0:
            load_module("mpy_kv.pools.regions_inspect").refuse_region(self, region)
        return i

    def open_region(self, limit_slabs, guaranteed_slabs=0, owner=0):
        """A region that holds at most `limit_slabs` and can always have `guaranteed_slabs`; its handle.

        owner: 0..65535. BadArgument; PoolFull if so many slabs are not free and unpromised, or all
        max_regions are open. O(1), allocates nothing.
        """
        if (
            type(limit_slabs) is not int
            or type(guaranteed_slabs) is not int
            or not 0 <= guaranteed_slabs <= limit_slabs <= self.n_slabs
            or limit_slabs == 0
            or type(owner) is not int
            or owner >> 16
        ):
            self._refuse_open("arguments", limit_slabs, guaranteed_slabs, owner)
        k = self._doors[_CLOSED]
        if k == NO_REGION:
            self._refuse_open("regions", limit_slabs, guaranteed_slabs, owner)
        if open_quota(self._meta, self._table, self._place(k), limit_slabs, guaranteed_slabs):
            self._refuse_open("slabs", limit_slabs, guaranteed_slabs, owner)
        return self._opened(k, owner)

    def _opened(self, k, owner):
        place = self._place(k) + _OWNER
        self._doors[_CLOSED] = self._table[place]
        self._table[place] = owner
        self._gate[k] = -1 - self._gate[k]
        return self._gate[k]

    def _refuse_open(self, why, limit, guaranteed, owner):
        load_module("mpy_kv.pools.regions_inspect").refuse_open(self, why, limit, guaranteed, owner)

    def retain_region(self, region):
        """One holder more: it takes as many close_region() to close it."""
        self._table[self._place(self._door(region)) + _HOLDERS] += 1

    def close_region(self, region):
        """Give up one hold; with the last one all slabs go back and every handle into them is stale.

        Holders left. Locked, and nothing has changed, if the last one leaves and something in it is locked.
        BadHandle, also for the default region. After an exception from outside the region may be empty and
        still open: close it again.
        """
        k = self._door(region)
        place = self._place(k)
        if self._table[place + _HOLDERS] > 1:
            self._table[place + _HOLDERS] -= 1
            return self._table[place + _HOLDERS]
        if self._shut(place - 1 - self._meta[_KINDS]):
            load_module("mpy_kv.pools.regions_inspect").refuse_close(self, region)
        self._gate[k] = -1 - (region + self._doors[_STEP] & self._doors[_WRAP])
        self._table[place + _OWNER] = self._doors[_CLOSED]
        self._doors[_CLOSED] = k
        return 0

    @micropython.native
    def _shut(self, at):
        try:
            return close_quota(self._meta, self._word, self._lost, self._slab, self._table, at)
        except BaseException as error:
            close_quota(self._meta, self._word, self._lost, self._slab, self._table, at)
            raise error

    @micropython.native
    def alloc(self, size, align=4, region=None):
        """As SlabPool.alloc, for a region; PoolFull also at its limit or where only what others are
        guaranteed is left."""
        at = self._all if region is None else self._at(region)
        if type(size) is not int or size < 1 or type(align) is not int or align < 1 or align & (align - 1):
            self._refuse_size(size, align)
        h = take_object(self._meta, self._word, self._lost, self._slab, self._table, at, size, align)
        if h < 0:
            self._refuse_room(h, at, size, align)
        if align > 4:
            note_align(self._meta, self._lost, h, align)
        return h

    @micropython.native
    def alloc_many(self, n, size, out, align=4, region=None):
        """As SlabPool.alloc_many, for a region."""
        self._all = self._at(region)
        try:
            UnitPool.alloc_many(self, n, size, out, align)
        finally:
            self._all = self._meta[_RECORDS]

    def largest_free_bytes(self, region=None):
        """The most that one request of a region can get now, asked with the least alignment."""
        return self._largest_at(self._all if region is None else self._at(region))

    def region_of(self, handle):
        """The region that an object is in, None for the default one."""
        i = self._index(handle)
        k = self._slab[_SLAB_WORDS * (i // self._meta[_PER]) + _SLAB_WHOSE] >> 5
        return self._gate[k - 1] if k else None

    def region_header(self, region):
        """A new dict of a region (None: the default one). `size`, `used`: bytes of its slabs and of its
        objects; `references`: holders; `locked`: locked objects; `objects`, `held_slabs`, `limit_slabs`,
        `guaranteed_slabs`, `owner`. O(objects), allocates."""
        return load_module("mpy_kv.pools.regions_inspect").header(self, self._at(region))

    def _fragmentation(self, servable, free):
        return load_module("mpy_kv.pools.regions_inspect").fragmentation(self)

    def stats(self):
        """As SlabPool.stats, and `regions`: how many are open beside the default one."""
        found = load_module("mpy_kv.pools.slab_inspect").stats(self)
        found["regions"] = len([w for w in self._gate if w >= 0])
        return found

    def check(self):
        """Number of broken invariants (0 = sound). O(objects), allocates."""
        return SlabPool.check(self) + load_module("mpy_kv.pools.regions_inspect").check(self)
