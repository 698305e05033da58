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

Arrays, by region: `word` as in units.py; `_node`, six rows of 16 bits: start and length in units; bytes not
asked for, and above them, from bit SHIFT on, the alignment as a power of two of units; the next region in
address order, and above it, from bit BITS on, the holders; layer; batch. 16 bytes a region. The last is
followed by the index meta[MASK], which no region has. Unused entries are chained through their starts.
`node[i]` is signed for the host's compiler, to which unsigned and signed together are a float.
"""

try:
    import micropython
except ImportError:
    from .. import cpython as micropython

from array import array

from ..lend import lend
from .moving import move_down
from .units import MASK, MOVES, N, OWN, SHIFT, UNITS, UnitPool, words

# Own entries of meta. Of the list: bits of an index in a link, first region, first unused entry; of real
# memory: units by which the pool's start exceeds a multiple of the largest alignment; of a place found: its
# predecessor and start; of compact(): the region it has come to, the largest gap behind that, units it may
# still move, units it may move at once.
BITS, HEAD, SPARE, SKEW, BEFORE, START, COME, GAP, LEFT, LIMIT = range(OWN, OWN + 10)


@micropython.native
def seek(meta, node, size, align, skip):
    """Lowest start for `size` bytes at a multiple of `align`, its predecessor in meta[BEFORE]; or FULL.

    skip: a region to be taken for absent, or -1: then it is a new one, and NO_ENTRY when they are used up.
    """
    n = meta[0]
    end = meta[1]
    if skip < 0 and meta[17] == end:
        return -4
    shift = meta[14]
    need = ((size - 1) >> shift) + 1
    code = 0
    while align > 1 << code + shift:
        code += 1
    skew = meta[18]
    before = end
    i = meta[16]
    at = 0
    while 1:
        if i != end and i == skip:
            i = node[3 * n + i] & end
            continue
        start = ((at + skew + (1 << code) - 1) >> code << code) - skew
        top = meta[13] if i == end else node[i]
        if start + need <= top:
            meta[19] = before
            return start
        if i == end:
            return -1
        at = node[i] + node[n + i]
        before = i
        i = node[3 * n + i] & end
    return -1


@micropython.native
def take(meta, word, node, start, size, align):
    """A new region at the place that seek() found; its handle."""
    n = meta[0]
    end = meta[1]
    shift = meta[14]
    bits = meta[15]
    i = meta[17]
    meta[17] = node[i]
    need = ((size - 1) >> shift) + 1
    code = 0
    while align > 1 << code + shift:
        code += 1
    waste = (need << shift) - size
    node[i] = start
    node[n + i] = need
    node[2 * n + i] = code << shift | waste
    before = meta[19]
    if before == end:
        after = meta[16]
        meta[16] = i
    else:
        link = node[3 * n + before]
        after = link & end
        node[3 * n + before] = link - after + i
    node[3 * n + i] = 1 << bits | after
    node[4 * n + i] = 0
    node[5 * n + i] = 0
    meta[4] = (meta[4] + 1) & 0x3FFFFFFF
    meta[6] += 1
    if meta[6] > meta[7]:
        meta[7] = meta[6]
    meta[9] -= need
    if meta[13] - meta[9] > meta[8]:
        meta[8] = meta[13] - meta[9]
    meta[10] += waste
    handle = -1 - word[i]
    word[i] = handle
    return handle


@micropython.native
def give(meta, word, node, handle):
    """Take a holder away, with the last one the region. Holders left, or BAD."""
    n = meta[0]
    end = meta[1]
    i = handle & end
    if i >= n or word[i] != handle or handle > meta[3]:
        return -2
    link = node[3 * n + i]
    held = (link >> meta[15]) - 1
    if held:
        node[3 * n + i] = link - (1 << meta[15])
        return held
    after = link & end
    before = end
    j = meta[16]
    while j != i:
        before = j
        j = node[3 * n + j] & end
    if before == end:
        meta[16] = after
    else:
        node[3 * n + before] += after - i
    word[i] = -1 - ((handle + meta[2]) & meta[3])
    meta[5] = (meta[5] + 1) & 0x3FFFFFFF
    meta[6] -= 1
    meta[9] += node[n + i]
    meta[10] -= node[2 * n + i] & (1 << meta[14]) - 1
    node[i] = meta[17]
    meta[17] = i
    return 0


@micropython.native
def extend(meta, word, node, handle, size):
    """Make a region hold `size` bytes where it is, with the gap behind it; 0, MOVES if it cannot, or BAD."""
    n = meta[0]
    end = meta[1]
    i = handle & end
    if i >= n or handle > meta[3]:
        return -2
    locked = word[i] == handle | 0x20000000
    if word[i] != handle and not locked:
        return -2
    shift = meta[14]
    have = node[n + i]
    code = node[2 * n + i] >> shift
    waste = node[2 * n + i] & (1 << shift) - 1
    if size <= (have << shift) - waste:
        return 0
    need = ((size - 1) >> shift) + 1
    after = node[3 * n + i] & end
    top = meta[13] if after == end else node[after]
    if node[i] + need > top:
        return -3
    node[n + i] = need
    node[2 * n + i] = code << shift | (need << shift) - size
    meta[9] -= need - have
    if meta[13] - meta[9] > meta[8]:
        meta[8] = meta[13] - meta[9]
    meta[10] += (need << shift) - size - waste
    if locked:
        meta[12] += need - have
    return 0


@micropython.native
def settle(meta, node, i, start):
    """Region `i`, its bytes moved, now begins at `start`, behind meta[BEFORE]."""
    n = meta[0]
    end = meta[1]
    node[i] = start
    before = meta[19]
    link = meta[16] if before == end else node[3 * n + before]
    if link & end == i:
        return 0
    old = end
    j = meta[16]
    while j != i:
        old = j
        j = node[3 * n + j] & end
    after = node[3 * n + i] & end
    if old == end:
        meta[16] = after
    else:
        node[3 * n + old] += after - i
    if before == end:
        behind = meta[16]
        meta[16] = i
    else:
        behind = node[3 * n + before] & end
        node[3 * n + before] += i - behind
    node[3 * n + i] += behind - after
    return 0


@micropython.native
def next_move(meta, word, node):
    """Go on to the next region that can move down; it, with its place in meta[BEFORE] and meta[START], or
    FULL when there is none or what is left of the limit is too small for it.

    meta[COME] is the last region that stays, so that the next one slides down to it; or it goes into a gap
    further down that a region that does not move has left. A region above the limit is such a one.
    """
    n = meta[0]
    end = meta[1]
    shift = meta[14]
    skew = meta[18]
    before = meta[21]
    while 1:
        at = 0
        i = meta[16]
        if before != end:
            at = node[before] + node[n + before]
            i = node[3 * n + before] & end
        if i == end:
            return -1
        length = node[n + i]
        if word[i] < 0x20000000 and length <= meta[24]:
            code = node[2 * n + i] >> shift
            start = ((at + skew + (1 << code) - 1) >> code << code) - skew
            behind = before
            if length <= meta[22]:
                low = 0
                last = end
                j = meta[16]
                while j != i:
                    place = ((low + skew + (1 << code) - 1) >> code << code) - skew
                    if place + length <= node[j]:
                        start = place
                        behind = last
                        break
                    low = node[j] + node[n + j]
                    last = j
                    j = node[3 * n + j] & end
            if start < node[i]:
                if length > meta[23]:
                    return -1
                meta[23] -= length
                meta[19] = behind
                meta[20] = start
                if behind == before:
                    if start - at > meta[22]:
                        meta[22] = start - at
                    meta[21] = i
                return i
        if node[i] - at > meta[22]:
            meta[22] = node[i] - at
        before = i
        meta[21] = i
    return -1


@micropython.native
def hold(meta, word, node, handle, on):
    """Lock (on = 1) or unlock a region; 0, also if it is so already, or BAD."""
    i = handle & meta[1]
    if i >= meta[0] or handle > meta[3]:
        return -2
    if word[i] == handle | 0x20000000:
        if not on:
            word[i] = handle
            meta[11] -= 1
            meta[12] -= node[meta[0] + i]
        return 0
    if word[i] != handle:
        return -2
    if on:
        word[i] = handle | 0x20000000
        meta[11] += 1
        meta[12] += node[meta[0] + i]
    return 0


@micropython.native
def room(meta, node, size, align):
    """How many regions of that kind can be had now: in the gaps, and of the entries."""
    n = meta[0]
    end = meta[1]
    shift = meta[14]
    need = ((size - 1) >> shift) + 1
    code = 0
    while align > 1 << code + shift:
        code += 1
    skew = meta[18]
    found = 0
    at = 0
    i = meta[16]
    while 1:
        top = meta[13] if i == end else node[i]
        start = ((at + skew + (1 << code) - 1) >> code << code) - skew
        if start + need <= top:
            step = ((need + (1 << code) - 1) >> code) << code
            found += (top - start - need) // step + 1
        if i == end:
            break
        at = node[i] + node[n + i]
        i = node[3 * n + i] & end
    return found if found < n - meta[6] else n - meta[6]


@micropython.native
def largest_gap(meta, node):
    """Units of the largest gap."""
    n = meta[0]
    end = meta[1]
    best = 0
    at = 0
    i = meta[16]
    while i != end:
        if node[i] - at > best:
            best = node[i] - at
        at = node[i] + node[n + i]
        i = node[3 * n + i] & end
    return best if best > meta[13] - at else meta[13] - at


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
        make = lend("mpy_kv.pools.units_make")
        units, shift, self.base, skew = make.region(arena, total_bytes, max_regions, tag)
        self.buffer = arena.buffer
        self.unit_bytes = 1 << shift
        self.max_regions = max_regions
        self.total_bytes = self.max_block_bytes = units << shift
        self.lost_bytes = total_bytes - self.total_bytes
        self._meta, self._word = words(max_regions, 1, 10, tag)
        self._node = array("H", bytes(12 * max_regions))
        make.entries(self._meta, self._node, units, shift, skew)
        self.max_holders = (1 << 16 - self._meta[BITS]) - 1

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
        at = 3 * self._meta[N] + self._index(handle)
        if self._node[at] >> self._meta[BITS] == self.max_holders:
            lend("mpy_kv.pools.units_audit").refuse_holder(self)
        self._node[at] += 1 << self._meta[BITS]

    def holders(self, handle):
        """How many times free() must be called."""
        return self._node[3 * self._meta[N] + self._index(handle)] >> self._meta[BITS]

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
        i = handle & self._meta[MASK]
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
        align = self.unit_bytes << (self._node[2 * self._meta[N] + i] >> self._meta[SHIFT])
        return seek(self._meta, self._node, size, align, i)

    def _shift(self, i, start):
        """Move region `i` to unit `start`, behind meta[BEFORE]; what is there is free or its own."""
        shift = self._meta[SHIFT]
        length = self._node[self._meta[N] + i] << shift - 2
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
        limit = meta[UNITS]
        if limit_bytes is not None:
            if type(limit_bytes) is not int or limit_bytes < 0:
                lend("mpy_kv.pools.units_audit").refuse_limit(limit_bytes)
            limit = min(limit, limit_bytes >> meta[SHIFT])
        meta[LIMIT] = meta[LEFT] = limit
        meta[COME] = meta[MASK]
        meta[GAP] = 0
        i = next_move(meta, self._word, self._node)
        while i >= 0:
            self._shift(i, meta[START])
            i = next_move(meta, self._word, self._node)
        return limit - meta[LEFT] << meta[SHIFT]

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
        self._node[4 * self._meta[N] + i] = layer
        self._node[5 * self._meta[N] + i] = batch

    def owner(self, handle):
        """(layer, batch) of a region, 0 at first; a new tuple (allocates)."""
        i = self._index(handle)
        n = self._meta[N]
        return self._node[4 * n + i], self._node[5 * n + i]

    def offset(self, handle):
        """Byte offset of a region's data in the arena's buffer, until the next grow() or compact()."""
        return self.base + (self._node[self._index(handle)] << self._meta[SHIFT])

    def size(self, handle):
        """Usable bytes of a region."""
        return self._node[self._meta[N] + self._index(handle)] << self._meta[SHIFT]

    def header(self, handle):
        """size_bytes (asked for), holders, locked, layer, batch of a region; a new dict (allocates)."""
        i = self._index(handle)
        return lend("mpy_kv.pools.units_audit").header(self._meta, self._word, self._node, i)

    def _room(self, n, size, align):
        if type(size) is not int or size < 1 or size > self.total_bytes:
            self._refuse_size(size, align)
        self._check_align(align)
        return room(self._meta, self._node, size, align)

    def _largest(self):
        return largest_gap(self._meta, self._node)

    def check(self):
        """Number of broken invariants (0 = sound). O(regions), allocates."""
        return lend("mpy_kv.pools.units_audit").check_region(self._meta, self._word, self._node)
