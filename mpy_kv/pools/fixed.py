"""Fixed-size pool: equal blocks in one region of an arena.

All state lives in arrays made at construction; alloc, free, grow, lock and unlock allocate nothing and are
O(1), alloc_many and free_many O(1) a block. The pool owns the region's layout, the arena its memory.
Fragmentation is zero by construction: every free block serves every request.

A handle is generation | tag | index (from the high bits down), an int below 2^29. The generation of a block
changes whenever it is freed, so a handle kept too long is refused, not obeyed, until its generation comes
round again (after 2^26 / blocks frees of that block); the 3-bit tag differs between pools made one after
another, so a handle of another pool is refused too. Generations start at 1: no handle equals True or False.

`word`, the first n_blocks entries: a word of state a block,
    handle             in use
    handle | 2^29      in use and locked
    -1 - next handle   free; what the next alloc of it will issue
Behind them the stack of free indexes; meta[TOP] is where it ends. A handle's low bits may name a place of the
stack too: what is found there never equals the handle, as it is the index of a block, so of another place.

The transitions are module-level functions of ints and arrays that return a small int, negative for a refusal,
and change nothing then. The methods turn refusals into exceptions; most are bytecode, a third of native
code's memory, with frames below the 12 words from which on they are allocated.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..arena import Arena
from ..errors import BadArgument
from ..port import ints
from ..transient import load_module

# fields: fixed
_TOP = const(0)
_MASK = const(1)
_STEP = const(2)
_BLOCKS = const(3)
_WASTE = const(4)
_LOCKS = const(5)
_WRAPS = const(6)
_FIRST = const(7)
# end of fields

# High-water mark and counts are not in meta but derived, see inspect.py: they would cost each alloc and free.
EMPTY, REFUSED = -1, -2
MAX_BLOCKS = 1 << 20
_serial = 0
_batch = None


@micropython.native
def take_block(meta, word):
    """Pop a free block; its handle, or EMPTY."""
    top = meta[_TOP]
    if top == meta[_BLOCKS]:
        return -1
    top -= 1
    i = word[top]
    handle = -1 - word[i]
    word[i] = handle
    meta[_TOP] = top
    return handle


@micropython.native
def give_block(meta, word, handle):
    """Push the block of a handle in use and unlocked back under its next generation. 0, or REFUSED."""
    i = handle & meta[_MASK]
    if word[i] != handle:
        return -2
    following = handle + meta[_STEP]
    # Nothing comes between the stores from here on: native code without a loop or a call. A batch has loops.
    if following > 536870911:
        if handle > 536870911:  # what a locked block's word looks like is no handle
            return -2
        following -= 536870912 - 2 * meta[_STEP]
        meta[_WRAPS] = (meta[_WRAPS] + 1) & 0x3FFFFFFF
    if meta[_WASTE]:
        meta[_WASTE] -= meta[_FIRST + i]
        meta[_FIRST + i] = 0
    word[i] = -1 - following
    top = meta[_TOP]
    word[top] = i
    meta[_TOP] = top + 1
    return 0


def lock_block(meta, word, handle, lock):
    """Lock (1) or unlock (0) a block in use; idempotent. 0, or REFUSED."""
    i = handle & meta[_MASK]
    w = word[i]
    if i >= meta[_BLOCKS] or w < 0 or w & 536870911 != handle:
        return -2
    if w >> 29 != lock:
        word[i] = handle | lock << 29
        meta[_LOCKS] += 2 * lock - 1
    return 0


def note_block(meta, handle, lost):
    """`lost` bytes of a block in use were not asked for."""
    i = _FIRST + (handle & meta[_MASK])
    meta[_WASTE] += lost - meta[i]
    meta[i] = lost


def batch():
    """The module of many blocks at once, imported at the first call."""
    global _batch
    _batch = __import__("mpy_kv.pools.batch", None, None, ("x",))
    return _batch


def next_tag():
    """Mark of the next pool of any kind: 0..7 in turn."""
    global _serial
    _serial += 1
    return (_serial - 1) & 7


class FixedPool:
    """`n_blocks` blocks of `block_bytes` each at `base` of the arena, each on a multiple of `align`.

    Block record: pool, data offset, size, layer, batch, locked: all found by handle.
    tag: 0..7, the pool's mark in its handles (default: counted up from pool to pool).
    """

    name = "fixed"

    def __init__(self, arena, n_blocks, block_bytes, tag=None, align=4):
        if not isinstance(arena, Arena):
            raise BadArgument("arena must be an Arena, got %s" % type(arena).__name__)
        if type(n_blocks) is not int or not 1 <= n_blocks <= MAX_BLOCKS:
            raise BadArgument("n_blocks must be 1..%d, got %r" % (MAX_BLOCKS, n_blocks))
        if type(align) is not int or align < 4 or align & (align - 1):
            raise BadArgument("align must be a power of two from 4 on, got %r" % (align,))
        if type(block_bytes) is not int or block_bytes < 4 or block_bytes % align:
            raise BadArgument("block_bytes must be a positive multiple of %d, got %r" % (align, block_bytes))
        if tag is not None and (type(tag) is not int or not 0 <= tag <= 7):
            raise BadArgument("tag must be 0..7, got %r" % (tag,))
        self.block_bytes = block_bytes
        self.n_blocks = n_blocks
        self.total_bytes = n_blocks * block_bytes
        self.align = align
        self.base = arena.take(self.total_bytes, align)
        self.buffer = arena.buffer
        if tag is None:
            tag = next_tag()
        places = 2
        while places < n_blocks:
            places *= 2
        first = (8 + tag) * places  # generation 1
        self._meta = ints((2 * n_blocks, places - 1, 8 * places, n_blocks, 0, 0, 0), n_blocks)
        self._word = ints(range(-1 - first, -1 - first - n_blocks, -1), n_blocks)
        for i in range(n_blocks):
            self._word[2 * n_blocks - 1 - i] = i  # blocks come out in ascending order at first
        self._layer = array("H", bytes(2 * n_blocks))
        self._batch = array("H", bytes(2 * n_blocks))

    def metadata_bytes(self):
        """Bytes of bookkeeping a block: state 4, stack 4, what was not asked for 4, owner 4."""
        return 16

    def alloc(self, size, align=4):
        """One block of at least `size` bytes; returns its handle. O(1), allocates nothing."""
        if type(size) is not int or size != self.block_bytes or align != 4:
            return self._alloc_part(size, align)
        handle = take_block(self._meta, self._word)
        if handle < 0:
            self._refuse("full", size)
        return handle

    def _alloc_part(self, size, align):
        self._check(size, align)
        handle = take_block(self._meta, self._word)
        if handle < 0:
            self._refuse("full", size)
        note_block(self._meta, handle, self.block_bytes - size)
        return handle

    def _check(self, size, align):
        if type(size) is not int or size < 1 or size > self.block_bytes:
            self._refuse("size", size)
        if type(align) is not int or align < 1 or align & (align - 1) or align > self.align:
            self._refuse("align", align)

    def alloc_many(self, n, size, out, align=4):
        """`n` blocks of at least `size` bytes, all or none: handles into out[0:n], a list or array('i')."""
        if type(size) is not int or size != self.block_bytes or align != 4:
            self._check(size, align)
        if type(n) is not int or n < 1 or type(out) is not list or n > len(out):
            (_batch or batch()).check_out(self, n, out)
        if (_batch or batch()).take(self._meta, self._word, n, out):
            self._refuse("full", size, n)
        if size != self.block_bytes:
            while n:
                n -= 1
                note_block(self._meta, out[n], self.block_bytes - size)

    @micropython.native
    def free(self, handle):
        """Give a block back. Refused: foreign, stale, twice, locked. O(1), allocates nothing."""
        try:
            if give_block(self._meta, self._word, handle):
                self._refuse("free", handle)
        except TypeError:  # no int
            self._refuse("free", handle)

    def free_many(self, handles, n):
        """Free handles[0:n], all or none; refused as by free, and a handle that is there twice."""
        if type(handles) is not list and not isinstance(handles, array):
            self._refuse("out", n, handles)
        if type(n) is not int or n < 1 or n > len(handles):
            self._refuse("out", n, handles)
        n = (_batch or batch()).give(self._meta, self._word, handles, n)
        if n:
            self._refuse("free_many", handles, REFUSED - n)

    def grow(self, handle, size):
        """The same block, for at least `size` bytes; PoolFull beyond block_bytes."""
        i = self._index(handle)
        self._check(size, 4)
        if size > self.block_bytes - self._meta[_FIRST + i]:
            note_block(self._meta, handle, self.block_bytes - size)
        return handle

    def _refuse(self, why, *about):
        """Raises."""
        getattr(load_module("mpy_kv.pools.raise_errors"), why)(self, *about)

    def _index(self, handle):
        meta = self._meta
        if type(handle) is int:
            i = handle & meta[_MASK]
            if i < self.n_blocks and self._word[i] >= 0 and self._word[i] & 0x1FFFFFFF == handle:
                return i
        self._refuse("handle", handle)

    def lock(self, handle):
        """Guard a block against free and eviction; idempotent."""
        self._index(handle)
        lock_block(self._meta, self._word, handle, 1)

    def unlock(self, handle):
        self._index(handle)
        lock_block(self._meta, self._word, handle, 0)

    def is_locked(self, handle):
        return bool(self._word[self._index(handle)] >> 29)

    def set_owner(self, handle, layer, batch=0):
        """Note whose block it is; layer, batch: 0..65535."""
        i = self._index(handle)
        if type(layer) is not int or layer < 0 or layer >> 16:
            self._refuse("owner", "layer", layer)
        if type(batch) is not int or batch < 0 or batch >> 16:
            self._refuse("owner", "batch", batch)
        self._layer[i] = layer
        self._batch[i] = batch

    def owner(self, handle):
        """(layer, batch) of a block."""
        i = self._index(handle)
        return self._layer[i], self._batch[i]

    def offset(self, handle):
        """Byte offset of a block's data in the arena's buffer."""
        return self.base + self._index(handle) * self.block_bytes

    def size(self, handle):
        """Bytes of a block that may be used."""
        self._index(handle)
        return self.block_bytes

    def overhead_bytes(self, size):
        """Bytes taken for a request of `size`, beyond `size`."""
        self._check(size, 4)
        return self.block_bytes - size

    def free_bytes(self):
        return (self._meta[_TOP] - self.n_blocks) * self.block_bytes

    def largest_free_bytes(self):
        return self.block_bytes if self._meta[_TOP] > self.n_blocks else 0

    def stats(self):
        """Sizes in bytes, counts in blocks; a new dict. O(n), allocates."""
        return load_module("mpy_kv.pools.inspect").stats(self._meta, self._word, self.block_bytes)

    def check(self):
        """Number of broken invariants (0 = sound). O(n), allocates."""
        return load_module("mpy_kv.pools.inspect").check(self._meta, self._word, self.block_bytes)
