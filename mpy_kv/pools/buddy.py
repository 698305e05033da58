"""Buddy pool: contiguous blocks of 2^k units, split and merged by halves.

A unit is `min_block` bytes. A pool of n units starts as one root for each bit set in n, the largest first, so
that a block of 2^k units begins at a multiple of 2^k units: its other half (its buddy) is found by one bit of
its index, and halves of different roots never are buddies. A request takes one block of the next power of
two; the rest of it is internal waste, which stats() reports. alloc, free and grow cost O(log n): a list of
free blocks for each order k, doubly linked in arrays. None allocates.

Arrays, by unit: `word` as in units.py; `_order`, 1 + k of the block that begins here, 0 inside of one;
`_link`, two rows: of a free block the next in its list, -1 at the end, and the one before (anything for the
first); of a block in use the bytes asked for, and its owner as layer << 14 | low bits of batch, the two
high bits of which are bits 5 and 6 of `_order`. 13 bytes a unit.

Alignment is that of the block's own size, in real memory up to `max_align`, to which the pool's start is
aligned; a larger alignment than the size takes a larger block.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..port import ints
from ..transient import load_module
from .moving import move_down
from .units import MOVES, UnitPool, find, words

# fields: units, buddy
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
_ORDER = const(15)
_HEADS = const(16)
# end of fields


@micropython.native
def take(meta, word, order, link, size, align):
    """A block of at least `size` and `align` bytes; its handle, or FULL."""
    u = ((size if size > align else align) - 1) >> meta[_SHIFT]
    k = 0
    while u:
        u >>= 1
        k += 1
    top = meta[_ORDER]
    j = k
    while j <= top and meta[_HEADS + j] < 0:
        j += 1
    if j > top:
        return -1
    i = meta[_HEADS + j]
    meta[_HEADS + j] = link[i]
    # Split: the lists of the orders below are empty, or the block would have come from there.
    while j > k:
        j -= 1
        half = i + (1 << j)
        order[half] = j + 1
        link[half] = -1
        meta[_HEADS + j] = half
    order[i] = k + 1
    link[i] = size
    link[meta[_N] + i] = 0
    meta[_ALLOCS] = (meta[_ALLOCS] + 1) & 0x3FFFFFFF
    meta[_USED] += 1
    if meta[_USED] > meta[_HIGH]:
        meta[_HIGH] = meta[_USED]
    meta[_FREE] -= 1 << k
    if meta[_UNITS] - meta[_FREE] > meta[_HIGH_UNITS]:
        meta[_HIGH_UNITS] = meta[_UNITS] - meta[_FREE]
    meta[_WASTE] += (1 << k + meta[_SHIFT]) - size
    handle = -1 - word[i]
    word[i] = handle
    return handle


@micropython.native
def give(meta, word, order, link, handle):
    """Free the block of a handle and merge it with its free buddies; 0, or BAD."""
    n = meta[_N]
    i = handle & meta[_MASK]
    if i >= n or word[i] != handle or handle > meta[_WRAP]:
        return -2
    word[i] = -1 - ((handle + meta[_STEP]) & meta[_WRAP])
    k = (order[i] & 31) - 1
    meta[_FREES] = (meta[_FREES] + 1) & 0x3FFFFFFF
    meta[_USED] -= 1
    meta[_FREE] += 1 << k
    meta[_WASTE] -= (1 << k + meta[_SHIFT]) - link[i]
    # A root's would-be buddy lies in the next root or outside: never free and as large.
    top = meta[_ORDER]
    while k < top:
        buddy = i ^ (1 << k)
        if buddy >= n or order[buddy] != k + 1 or word[buddy] >= 0:
            break
        after = link[buddy]
        if meta[_HEADS + k] == buddy:
            meta[_HEADS + k] = after
        else:
            before = link[n + buddy]
            link[before] = after
            if after >= 0:
                link[n + after] = before
        if buddy < i:
            order[i] = 0
            i = buddy
        else:
            order[buddy] = 0
        k += 1
    order[i] = k + 1
    after = meta[_HEADS + k]
    link[i] = after
    if after >= 0:
        link[n + after] = i
    meta[_HEADS + k] = i
    return 0


@micropython.native
def extend(meta, word, order, link, handle, size):
    """Make a block hold `size` bytes where it is, with the free buddies to its right; 0, MOVES if it cannot,
    or BAD."""
    n = meta[_N]
    i = handle & meta[_MASK]
    if i >= n or handle > meta[_WRAP]:
        return -2
    locked = word[i] == handle | 0x20000000
    if word[i] != handle and not locked:
        return -2
    asked = link[i]
    if size <= asked:
        return 0
    u = (size - 1) >> meta[_SHIFT]
    m = 0
    while u:
        u >>= 1
        m += 1
    k = (order[i] & 31) - 1
    if m < k:
        m = k
    j = k
    while j < m:
        buddy = i + (1 << j)
        if (i >> j) & 1 or buddy >= n or order[buddy] != j + 1 or word[buddy] >= 0:
            return -3
        j += 1
    j = k
    while j < m:
        buddy = i + (1 << j)
        after = link[buddy]
        if meta[_HEADS + j] == buddy:
            meta[_HEADS + j] = after
        else:
            before = link[n + buddy]
            link[before] = after
            if after >= 0:
                link[n + after] = before
        order[buddy] = 0
        j += 1
    order[i] += m - k
    link[i] = size
    more = (1 << m) - (1 << k)
    meta[_FREE] -= more
    if meta[_UNITS] - meta[_FREE] > meta[_HIGH_UNITS]:
        meta[_HIGH_UNITS] = meta[_UNITS] - meta[_FREE]
    meta[_WASTE] += (more << meta[_SHIFT]) - (size - asked)
    if locked:
        meta[_LOCKED] += more
    return 0


@micropython.native
def hold(meta, word, order, handle, on):
    """Lock (on = 1) or unlock a block; 0, also if it is so already, or BAD."""
    i = handle & meta[_MASK]
    if i >= meta[_N] or handle > meta[_WRAP]:
        return -2
    if word[i] == handle | 0x20000000:
        if not on:
            word[i] = handle
            meta[_LOCKS] -= 1
            meta[_LOCKED] -= 1 << (order[i] & 31) - 1
        return 0
    if word[i] != handle:
        return -2
    if on:
        word[i] = handle | 0x20000000
        meta[_LOCKS] += 1
        meta[_LOCKED] += 1 << (order[i] & 31) - 1
    return 0


@micropython.native
def room(meta, link, n, size, align):
    """How many of `n` blocks of that kind can be had now. O(n + log units)."""
    u = ((size if size > align else align) - 1) >> meta[_SHIFT]
    k = 0
    while u:
        u >>= 1
        k += 1
    found = 0
    j = k
    while j <= meta[_ORDER] and found < n:
        i = meta[_HEADS + j]
        while i >= 0 and found < n:
            found += 1 << j - k
            i = link[i]
        j += 1
    return found if found < n else n


class BuddyPool(UnitPool):
    """`total_bytes` of the arena in blocks of min_block * 2^k bytes.

    min_block: a power of two from 4 up. What is left of total_bytes below min_block is not taken from the
    arena: `lost_bytes`. max_align: the largest alignment that alloc honours, a power of two; by default
    min_block or 64, whichever is more, or as much of it as the arena has room to align the pool to.
    tag: 0..7, the pool's mark in its handles (default: counted up from pool to pool).
    Raises BadArgument, and NoRoom of the arena.
    """

    name = "buddy"

    def __init__(self, arena, total_bytes, min_block=64, max_align=None, tag=None):
        make = load_module("mpy_kv.pools.units_make")
        units, self.base, self.max_align = make.buddy(arena, total_bytes, min_block, max_align, tag)
        self.buffer = arena.buffer
        self.min_block = min_block
        self.total_bytes = units * min_block
        self.lost_bytes = total_bytes - self.total_bytes
        self._meta, self._word = words(units, 0, _HEADS + 21, tag)
        self._order = bytearray(units)
        self._link = ints((), 2 * units)
        self.max_block_bytes = make.roots(self._meta, self._order, self._link, units, min_block)

    def metadata_bytes(self):
        """Bytes of bookkeeping a unit of min_block bytes (word 4, order 1, links 8)."""
        return 13

    def overhead_bytes(self, size):
        """Bytes that a block of `size` takes beyond them. An alignment above that block's size takes more."""
        if type(size) is not int or not 1 <= size <= self.max_block_bytes:
            self._refuse_size(size, 4)
        block = self.min_block
        while block < size:
            block <<= 1
        return block - size

    def alloc(self, size, align=4):
        """One block of at least `size` bytes at a multiple of `align`; its handle. BadArgument, PoolFull."""
        if type(size) is not int or size < 1 or size > self.max_block_bytes:
            self._refuse_size(size, align)
        if type(align) is not int or align != 4:
            self._check_align(align)
        h = take(self._meta, self._word, self._order, self._link, size, align)
        if h < 0:
            self._refuse_full(size)
        return h

    def free(self, handle):
        """Give a block back. Refused (BadHandle, Locked): foreign, stale, twice, locked."""
        if type(handle) is not int:
            self._refuse(handle)
        if give(self._meta, self._word, self._order, self._link, handle) < 0:
            self._refuse(handle)

    def grow(self, handle, size):
        """Make a block hold at least `size` bytes; its handle, which is a new one if it had to move.

        It stays where it is if its own bytes or free buddies to its right are enough, a locked one or not.
        Otherwise a larger block takes over contents, owner and alignment (counted as alloc and free); a
        locked one is refused. Nothing has changed when PoolFull, Locked, BadHandle or BadArgument is
        raised. It never shrinks.
        """
        if type(size) is not int or size < 1:
            self._refuse_size(size, 4)
        done = -2
        if type(handle) is int:
            done = extend(self._meta, self._word, self._order, self._link, handle, size)
        if done == MOVES:
            return self._move(handle, size)
        if done < 0:
            self._refuse(handle)
        return handle

    def _move(self, handle, size):
        i = find(self._meta, self._word, handle)
        if self._word[i] != handle:
            self._refuse(handle)
        new = self.alloc(size)  # a larger block: aligned no worse
        self._note(new & self._meta[_MASK], self._link[self._meta[_N] + i], self._order[i] & 96)
        move_down(self.offset(new), self.offset(handle), self._link[i] + 3 >> 2, self.buffer)
        self.free(handle)
        return new

    def _note(self, i, low, high):
        self._link[self._meta[_N] + i] = low
        self._order[i] = self._order[i] & 31 | high

    def lock(self, handle):
        """Guard a block against free and a move; idempotent."""
        if type(handle) is not int or hold(self._meta, self._word, self._order, handle, 1) < 0:
            self._refuse(handle)

    def unlock(self, handle):
        if type(handle) is not int or hold(self._meta, self._word, self._order, handle, 0) < 0:
            self._refuse(handle)

    def set_owner(self, handle, layer, batch=0):
        """Note whose block it is; layer, batch: 0..65535."""
        i = self._index(handle)
        self._check_owner(layer, batch)
        self._note(i, layer << 14 | batch & 16383, batch >> 14 << 5)

    def owner(self, handle):
        """(layer, batch) of a block, 0 at first; a new tuple (allocates)."""
        i = self._index(handle)
        low = self._link[self._meta[_N] + i]
        return low >> 14, low & 16383 | (self._order[i] & 96) << 9

    def offset(self, handle):
        """Byte offset of a block's data in the arena's buffer."""
        return self.base + (self._index(handle) << self._meta[_SHIFT])

    def size(self, handle):
        """Usable bytes of a block."""
        return self.min_block << (self._order[self._index(handle)] & 31) - 1

    def _room(self, n, size, align):
        if type(size) is not int or size < 1 or size > self.max_block_bytes:
            self._refuse_size(size, align)
        self._check_align(align)
        return room(self._meta, self._link, n, size, align)

    def _largest(self):
        k = self._meta[_ORDER]
        while k >= 0 and self._meta[_HEADS + k] < 0:
            k -= 1
        return 1 << k if k >= 0 else 0

    def check(self):
        """Number of broken invariants (0 = sound). O(units), allocates."""
        inspect = load_module("mpy_kv.pools.units_inspect")
        return inspect.check_buddy(self._meta, self._word, self._order, self._link)
