"""Region pool: variable contiguous regions in address order, one a request, say; compact() closes the gaps.

A region begins at a multiple of its alignment in real memory and takes whole units: 4 bytes in a pool below
256 KiB, else the power of two that cuts the pool into at most 65535. alloc takes the lowest gap that holds
the request (first fit); gaps are not kept but lie between neighbours, so those of freed regions are one at
once. alloc, free, a grow that moves and largest_free_bytes cost O(regions), at most max_regions steps; lock,
owner, offset, retain and a grow in place O(1). None of them allocates, and compact() does not either where
there is native code (see moving.py).

A handle stays valid until the region is freed, wherever it moves: after grow() and compact() ask again for
offset(). A region has a header: size, holders, locked, owner. retain() adds a holder, free() takes one
away, the last one frees the region.

Arrays, by region: `word` as in units.py; `_node`, rows of 16 bits, those of the table `node`
(python tools/fields.py --list). 16 bytes a region. The last is followed by the index meta[MASK], which no
region has. Unused entries are chained through their starts.
`node[i]` is signed for the host's compiler, to which unsigned and signed together are a float.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..transient import load_module
from .moving import move_down
from .units import MOVES, UnitPool, words

# fields: units, region, node
_N = const(0)
_MASK = const(1)
_STEP = const(2)
_WRAP = const(3)
_ALLOCS = const(4)
_FREES = const(5)
_USED = const(6)
_HIGH = const(7)
_HIGH_UNITS = const(8)
_FREE = const(9)
_WASTE = const(10)
_LOCKS = const(11)
_LOCKED = const(12)
_UNITS = const(13)
_SHIFT = const(14)
_BITS = const(15)
_HEAD = const(16)
_SPARE = const(17)
_SKEW = const(18)
_BEFORE = const(19)
_START = const(20)
_COME = const(21)
_GAP = const(22)
_LEFT = const(23)
_LIMIT = const(24)
_REGION_END = const(25)
_REST = const(2)
_LINK = const(3)
_LAYER = const(4)
_BATCH = const(5)
_NODE_ROWS = const(6)
# end of fields


@micropython.native
def seek(meta, node, size, align, skip):
    """Lowest start for `size` bytes at a multiple of `align`, its predecessor in meta[BEFORE]; or FULL.

    skip: a region to be taken for absent, or -1: then it is a new one, and NO_ENTRY when they are used up.
    """
    n = meta[_N]
    end = meta[_MASK]
    if skip < 0 and meta[_SPARE] == end:
        return -4
    shift = meta[_SHIFT]
    need = ((size - 1) >> shift) + 1
    code = 0
    while align > 1 << code + shift:
        code += 1
    skew = meta[_SKEW]
    before = end
    i = meta[_HEAD]
    at = 0
    while 1:
        if i != end and i == skip:
            i = node[_LINK * n + i] & end
            continue
        start = ((at + skew + (1 << code) - 1) >> code << code) - skew
        top = meta[_UNITS] if i == end else node[i]
        if start + need <= top:
            meta[_BEFORE] = before
            return start
        if i == end:
            return -1
        at = node[i] + node[n + i]
        before = i
        i = node[_LINK * n + i] & end
    return -1


@micropython.native
def take(meta, word, node, start, size, align):
    """A new region at the place that seek() found; its handle."""
    n = meta[_N]
    end = meta[_MASK]
    shift = meta[_SHIFT]
    bits = meta[_BITS]
    i = meta[_SPARE]
    meta[_SPARE] = node[i]
    need = ((size - 1) >> shift) + 1
    code = 0
    while align > 1 << code + shift:
        code += 1
    waste = (need << shift) - size
    node[i] = start
    node[n + i] = need
    node[_REST * n + i] = code << shift | waste
    before = meta[_BEFORE]
    if before == end:
        after = meta[_HEAD]
        meta[_HEAD] = i
    else:
        link = node[_LINK * n + before]
        after = link & end
        node[_LINK * n + before] = link - after + i
    node[_LINK * n + i] = 1 << bits | after
    node[_LAYER * n + i] = 0
    node[_BATCH * n + i] = 0
    meta[_ALLOCS] = (meta[_ALLOCS] + 1) & 0x3FFFFFFF
    meta[_USED] += 1
    if meta[_USED] > meta[_HIGH]:
        meta[_HIGH] = meta[_USED]
    meta[_FREE] -= need
    if meta[_UNITS] - meta[_FREE] > meta[_HIGH_UNITS]:
        meta[_HIGH_UNITS] = meta[_UNITS] - meta[_FREE]
    meta[_WASTE] += waste
    handle = -1 - word[i]
    word[i] = handle
    return handle


@micropython.native
def give(meta, word, node, handle):
    """Take a holder away, with the last one the region. Holders left, or BAD."""
    n = meta[_N]
    end = meta[_MASK]
    i = handle & end
    if i >= n or word[i] != handle or handle > meta[_WRAP]:
        return -2
    link = node[_LINK * n + i]
    held = (link >> meta[_BITS]) - 1
    if held:
        node[_LINK * n + i] = link - (1 << meta[_BITS])
        return held
    after = link & end
    before = end
    j = meta[_HEAD]
    while j != i:
        before = j
        j = node[_LINK * n + j] & end
    if before == end:
        meta[_HEAD] = after
    else:
        node[_LINK * n + before] += after - i
    word[i] = -1 - ((handle + meta[_STEP]) & meta[_WRAP])
    meta[_FREES] = (meta[_FREES] + 1) & 0x3FFFFFFF
    meta[_USED] -= 1
    meta[_FREE] += node[n + i]
    meta[_WASTE] -= node[_REST * n + i] & (1 << meta[_SHIFT]) - 1
    node[i] = meta[_SPARE]
    meta[_SPARE] = i
    return 0


@micropython.native
def extend(meta, word, node, handle, size):
    """Make a region hold `size` bytes where it is, with the gap behind it; 0, MOVES if it cannot, or BAD."""
    n = meta[_N]
    end = meta[_MASK]
    i = handle & end
    if i >= n or handle > meta[_WRAP]:
        return -2
    locked = word[i] == handle | 0x20000000
    if word[i] != handle and not locked:
        return -2
    shift = meta[_SHIFT]
    have = node[n + i]
    code = node[_REST * n + i] >> shift
    waste = node[_REST * n + i] & (1 << shift) - 1
    if size <= (have << shift) - waste:
        return 0
    need = ((size - 1) >> shift) + 1
    after = node[_LINK * n + i] & end
    top = meta[_UNITS] if after == end else node[after]
    if node[i] + need > top:
        return -3
    node[n + i] = need
    node[_REST * n + i] = code << shift | (need << shift) - size
    meta[_FREE] -= need - have
    if meta[_UNITS] - meta[_FREE] > meta[_HIGH_UNITS]:
        meta[_HIGH_UNITS] = meta[_UNITS] - meta[_FREE]
    meta[_WASTE] += (need << shift) - size - waste
    if locked:
        meta[_LOCKED] += need - have
    return 0


@micropython.native
def settle(meta, node, i, start):
    """Region `i`, its bytes moved, now begins at `start`, behind meta[BEFORE]."""
    n = meta[_N]
    end = meta[_MASK]
    node[i] = start
    before = meta[_BEFORE]
    link = meta[_HEAD] if before == end else node[_LINK * n + before]
    if link & end == i:
        return 0
    old = end
    j = meta[_HEAD]
    while j != i:
        old = j
        j = node[_LINK * n + j] & end
    after = node[_LINK * n + i] & end
    if old == end:
        meta[_HEAD] = after
    else:
        node[_LINK * n + old] += after - i
    if before == end:
        behind = meta[_HEAD]
        meta[_HEAD] = i
    else:
        behind = node[_LINK * n + before] & end
        node[_LINK * n + before] += i - behind
    node[_LINK * n + i] += behind - after
    return 0


@micropython.native
def next_move(meta, word, node):
    """Go on to the next region that can move down; it, with its place in meta[BEFORE] and meta[START], or
    FULL when there is none or what is left of the limit is too small for it.

    meta[COME] is the last region that stays, so that the next one slides down to it; or it goes into a gap
    further down that a region that does not move has left. A region above the limit is such a one.
    """
    n = meta[_N]
    end = meta[_MASK]
    shift = meta[_SHIFT]
    skew = meta[_SKEW]
    before = meta[_COME]
    while 1:
        at = 0
        i = meta[_HEAD]
        if before != end:
            at = node[before] + node[n + before]
            i = node[_LINK * n + before] & end
        if i == end:
            return -1
        length = node[n + i]
        if word[i] < 0x20000000 and length <= meta[_LIMIT]:
            code = node[_REST * n + i] >> shift
            start = ((at + skew + (1 << code) - 1) >> code << code) - skew
            behind = before
            if length <= meta[_GAP]:
                low = 0
                last = end
                j = meta[_HEAD]
                while j != i:
                    place = ((low + skew + (1 << code) - 1) >> code << code) - skew
                    if place + length <= node[j]:
                        start = place
                        behind = last
                        break
                    low = node[j] + node[n + j]
                    last = j
                    j = node[_LINK * n + j] & end
            if start < node[i]:
                if length > meta[_LEFT]:
                    return -1
                meta[_LEFT] -= length
                meta[_BEFORE] = behind
                meta[_START] = start
                if behind == before:
                    if start - at > meta[_GAP]:
                        meta[_GAP] = start - at
                    meta[_COME] = i
                return i
        if node[i] - at > meta[_GAP]:
            meta[_GAP] = node[i] - at
        before = i
        meta[_COME] = i


@micropython.native
def hold(meta, word, node, handle, on):
    """Lock (on = 1) or unlock a region; 0, also if it is so already, or BAD."""
    i = handle & meta[_MASK]
    if i >= meta[_N] or handle > meta[_WRAP]:
        return -2
    if word[i] == handle | 0x20000000:
        if not on:
            word[i] = handle
            meta[_LOCKS] -= 1
            meta[_LOCKED] -= node[meta[_N] + i]
        return 0
    if word[i] != handle:
        return -2
    if on:
        word[i] = handle | 0x20000000
        meta[_LOCKS] += 1
        meta[_LOCKED] += node[meta[_N] + i]
    return 0


@micropython.native
def room(meta, node, size, align):
    """How many regions of that kind can be had now: in the gaps, and of the entries."""
    n = meta[_N]
    end = meta[_MASK]
    shift = meta[_SHIFT]
    need = ((size - 1) >> shift) + 1
    code = 0
    while align > 1 << code + shift:
        code += 1
    skew = meta[_SKEW]
    found = 0
    at = 0
    i = meta[_HEAD]
    while 1:
        top = meta[_UNITS] if i == end else node[i]
        start = ((at + skew + (1 << code) - 1) >> code << code) - skew
        if start + need <= top:
            step = ((need + (1 << code) - 1) >> code) << code
            found += (top - start - need) // step + 1
        if i == end:
            break
        at = node[i] + node[n + i]
        i = node[_LINK * n + i] & end
    return found if found < n - meta[_USED] else n - meta[_USED]


@micropython.native
def largest_gap(meta, node):
    """Units of the largest gap."""
    n = meta[_N]
    end = meta[_MASK]
    best = 0
    at = 0
    i = meta[_HEAD]
    while i != end:
        if node[i] - at > best:
            best = node[i] - at
        at = node[i] + node[n + i]
        i = node[_LINK * n + i] & end
    return best if best > meta[_UNITS] - at else meta[_UNITS] - at


class RegionPool(UnitPool):
    """`total_bytes` of the arena for up to `max_regions` (1..4095) regions.

    unit_bytes: what sizes are rounded up to, see above. lost_bytes: of total_bytes, what is not a whole unit,
    or lies before the first whole one in real memory; 0..3 in a pool below 256 KiB.
    tag: 0..7, the pool's mark in its handles (default: counted up from pool to pool).
    Raises BadArgument, and NoRoom of the arena.
    """

    name = "region"
    max_align = 1 << 16

    def __init__(self, arena, total_bytes, max_regions, tag=None):
        make = load_module("mpy_kv.pools.units_make")
        units, shift, self.base, skew = make.region(arena, total_bytes, max_regions, tag)
        self.buffer = arena.buffer
        self.unit_bytes = 1 << shift
        self.max_regions = max_regions
        self.total_bytes = self.max_block_bytes = units << shift
        self.lost_bytes = total_bytes - self.total_bytes
        self._meta, self._word = words(max_regions, 1, _REGION_END, tag)
        self._node = array("H", bytes(2 * _NODE_ROWS * max_regions))
        make.entries(self._meta, self._node, units, shift, skew)
        self.max_holders = (1 << 16 - self._meta[_BITS]) - 1

    def metadata_bytes(self):
        """Bytes of bookkeeping a region (word 4, six rows of 2)."""
        return 16

    def overhead_bytes(self, size):
        """Bytes that a region of `size` takes beyond them. An alignment may leave a gap before it."""
        if type(size) is not int or not 1 <= size <= self.total_bytes:
            self._refuse_size(size, 4)
        return -size & self.unit_bytes - 1

    def alloc(self, size, align=4):
        """A region of at least `size` bytes at a multiple of `align`, at most 65536, with one holder; its
        handle. BadArgument, PoolFull."""
        if type(size) is not int or size < 1 or size > self.total_bytes:
            self._refuse_size(size, align)
        if type(align) is not int or align != 4:
            self._check_align(align)
        h = seek(self._meta, self._node, size, align, -1)
        if h < 0:
            self._refuse_full(size, h)
        return take(self._meta, self._word, self._node, h, size, align)

    def free(self, handle):
        """Take a holder away; with the last one the region is free. Refused (BadHandle, Locked): foreign,
        stale, twice, locked."""
        if type(handle) is not int or give(self._meta, self._word, self._node, handle) < 0:
            self._refuse(handle)

    def retain(self, handle):
        """One holder more; PoolFull at max_holders (15 to 32767, the more the fewer max_regions)."""
        at = _LINK * self._meta[_N] + self._index(handle)
        if self._node[at] >> self._meta[_BITS] == self.max_holders:
            load_module("mpy_kv.pools.units_inspect").refuse_holder(self)
        self._node[at] += 1 << self._meta[_BITS]

    def holders(self, handle):
        """How many times free() must be called."""
        return self._node[_LINK * self._meta[_N] + self._index(handle)] >> self._meta[_BITS]

    def grow(self, handle, size):
        """Make a region hold at least `size` bytes; the same handle.

        It stays where it is if the gap behind it is large enough, a locked one or not. Otherwise it moves to
        the lowest place, which may overlap its present one, with its contents and alignment: ask again for
        offset(). A locked one is refused then. Nothing has changed when PoolFull, Locked, BadHandle or
        BadArgument is raised. It never shrinks.
        """
        if type(size) is not int or size < 1:
            self._refuse_size(size, 4)
        done = -2
        if type(handle) is int:
            done = extend(self._meta, self._word, self._node, handle, size)
        if done == MOVES:
            self._move(handle, size)
        elif done < 0:
            self._refuse(handle)
        return handle

    def _move(self, handle, size):
        i = handle & self._meta[_MASK]
        if self._word[i] != handle:
            self._refuse(handle)
        if size > self.total_bytes:
            self._refuse_size(size, 4)
        start = self._lowest(i, size)
        if start < 0:
            self._refuse_full(size)
        self._shift(i, start)
        extend(self._meta, self._word, self._node, handle, size)

    def _lowest(self, i, size):
        align = self.unit_bytes << (self._node[_REST * self._meta[_N] + i] >> self._meta[_SHIFT])
        return seek(self._meta, self._node, size, align, i)

    def _shift(self, i, start):
        """Move region `i` to unit `start`, behind meta[BEFORE]; what is there is free or its own."""
        shift = self._meta[_SHIFT]
        length = self._node[self._meta[_N] + i] << shift - 2
        to = self.base + (start << shift)
        move_down(to, self.base + (self._node[i] << shift), length, self.buffer)
        settle(self._meta, self._node, i, start)

    def compact(self, limit_bytes=None):
        """Move regions down into the gaps below them, with their bytes; how many bytes were moved.

        Locked regions stay; alignments are kept; handles stay valid, offsets do not: ask again for offset().
        limit_bytes: move no more than that in this call; a region larger than that stays. Call again until
        0 is returned. Besides, a call takes O(regions) steps, times the regions that stay if there are any.
        """
        meta = self._meta
        limit = meta[_UNITS]
        if limit_bytes is not None:
            if type(limit_bytes) is not int or limit_bytes < 0:
                load_module("mpy_kv.pools.units_inspect").refuse_limit(limit_bytes)
            limit = min(limit, limit_bytes >> meta[_SHIFT])
        meta[_LIMIT] = meta[_LEFT] = limit
        meta[_COME] = meta[_MASK]
        meta[_GAP] = 0
        i = next_move(meta, self._word, self._node)
        while i >= 0:
            self._shift(i, meta[_START])
            i = next_move(meta, self._word, self._node)
        return limit - meta[_LEFT] << meta[_SHIFT]

    def lock(self, handle):
        """Guard a region against free and any move; idempotent."""
        if type(handle) is not int or hold(self._meta, self._word, self._node, handle, 1) < 0:
            self._refuse(handle)

    def unlock(self, handle):
        if type(handle) is not int or hold(self._meta, self._word, self._node, handle, 0) < 0:
            self._refuse(handle)

    def set_owner(self, handle, layer, batch=0):
        """Note whose region it is; layer, batch: 0..65535."""
        i = self._index(handle)
        self._check_owner(layer, batch)
        self._node[_LAYER * self._meta[_N] + i] = layer
        self._node[_BATCH * self._meta[_N] + i] = batch

    def owner(self, handle):
        """(layer, batch) of a region, 0 at first; a new tuple (allocates)."""
        i = self._index(handle)
        n = self._meta[_N]
        return self._node[_LAYER * n + i], self._node[_BATCH * n + i]

    def offset(self, handle):
        """Byte offset of a region's data in the arena's buffer, until the next grow() or compact()."""
        return self.base + (self._node[self._index(handle)] << self._meta[_SHIFT])

    def size(self, handle):
        """Usable bytes of a region."""
        return self._node[self._meta[_N] + self._index(handle)] << self._meta[_SHIFT]

    def header(self, handle):
        """size_bytes (asked for), holders, locked, layer, batch of a region; a new dict (allocates)."""
        i = self._index(handle)
        return load_module("mpy_kv.pools.units_inspect").header(self._meta, self._word, self._node, i)

    def _room(self, n, size, align):
        if type(size) is not int or size < 1 or size > self.total_bytes:
            self._refuse_size(size, align)
        self._check_align(align)
        return room(self._meta, self._node, size, align)

    def _largest(self):
        return largest_gap(self._meta, self._node)

    def check(self):
        """Number of broken invariants (0 = sound). O(regions), allocates."""
        return load_module("mpy_kv.pools.units_inspect").check_region(self._meta, self._word, self._node)
