"""Fixed-size pool: equal blocks in one region of an arena.

All state lives in arrays made at construction; alloc, free, lock and unlock allocate nothing and are
O(1): a stack of free indexes gives the block, a bitmap (bit set = free) refuses what the stack cannot
see. The pool owns the region's layout, the arena its memory.

A handle is generation | tag | index (from the high bits down), a small int (< 2^30) on every board. The
generation of a block changes whenever it is freed, so a handle kept too long is refused, not obeyed; the
3-bit tag differs between pools made one after another, so a handle of another pool is refused too.
Fragmentation is zero by construction: every free block serves every request.

The transitions are native module-level functions of ints and arrays that return a small int, negative for a
refusal. The methods turn refusals into exceptions; they are bytecode, a third of native code's memory, with
frames below the 12 words from which on they are allocated.
"""

try:
    import micropython
except ImportError:
    from .. import cpython as micropython

from array import array

from ..arena import Arena
from ..errors import BadArgument, BadHandle, Locked, PoolFull
from ..lend import lend

# meta: counters of a pool, in one array so that a transition touches no object. ALLOCS and FREES wrap at
# 2^30, the last small int of a 32-bit board.
FREE, ALLOCS, HIGH, BITS, BLOCKS, LOCKS, FREES, TAG, GEN_MASK = range(9)
EMPTY, FOREIGN, STALE = -1, -2, -3
_TAG_BITS = 3
_serial = 0


@micropython.native
def take_block(meta, stack, bitmap, gens):
    """Pop a free block; its handle, or EMPTY."""
    n = meta[0]
    if n == 0:
        return -1
    n -= 1
    i = stack[n]
    bitmap[i >> 3] &= 255 - (1 << (i & 7))
    meta[0] = n
    meta[1] = (meta[1] + 1) & 0x3FFFFFFF
    used = meta[4] - n
    if used > meta[2]:
        meta[2] = used
    return (((gens[i] << 3) | meta[7]) << meta[3]) | i


@micropython.native
def find_block(meta, bitmap, gens, handle):
    """Index of a live handle, or FOREIGN / STALE."""
    if handle < 0:
        return -2
    bits = meta[3]
    i = handle & ((1 << bits) - 1)
    if i >= meta[4] or handle >> 30 or (handle >> bits) & 7 != meta[7]:
        return -2
    if gens[i] != handle >> bits + 3 or bitmap[i >> 3] >> (i & 7) & 1:
        return -3
    return i


@micropython.native
def give_block(meta, stack, bitmap, gens, i):
    """Push block `i` (checked by the caller) back under its next generation."""
    gens[i] = (gens[i] + 1) & meta[8]
    bitmap[i >> 3] |= 1 << (i & 7)
    stack[meta[0]] = i
    meta[0] += 1
    meta[6] = (meta[6] + 1) & 0x3FFFFFFF
    return 0


class FixedPool:
    """`n_blocks` blocks of `block_bytes` each at `base` of the arena.

    Block record: pool, data offset, size, layer, batch, locked: all found by handle.
    tag: 0..7, the pool's mark in its handles (default: counted up from pool to pool).
    """

    def __init__(self, arena, n_blocks, block_bytes, tag=None):
        global _serial
        if not isinstance(arena, Arena):
            raise BadArgument("arena must be an Arena, got %s" % type(arena).__name__)
        if type(n_blocks) is not int or not 1 <= n_blocks <= 1 << 20:
            raise BadArgument("n_blocks must be 1..%d, got %r" % (1 << 20, n_blocks))
        if type(block_bytes) is not int or block_bytes < 4 or block_bytes % 4:
            raise BadArgument("block_bytes must be a positive multiple of 4, got %r" % (block_bytes,))
        if tag is not None and (type(tag) is not int or not 0 <= tag <= 7):
            raise BadArgument("tag must be 0..7, got %r" % (tag,))
        self.block_bytes = block_bytes
        self.n_blocks = n_blocks
        self.total_bytes = n_blocks * block_bytes
        self.base = arena.take(self.total_bytes)
        if tag is None:
            tag = _serial & 7
            _serial += 1
        bits = 1
        while 1 << bits < n_blocks:
            bits += 1
        gen_mask = (1 << min(16, 30 - _TAG_BITS - bits)) - 1
        self._meta = array("i", (n_blocks, 0, 0, bits, n_blocks, 0, 0, tag, gen_mask))
        # Popped from the top: blocks come out in ascending order at first.
        self._stack = array("I", range(n_blocks - 1, -1, -1))
        self._free = bytearray((n_blocks + 7) // 8)
        for i in range(n_blocks):
            self._free[i >> 3] |= 1 << (i & 7)
        self._gens = array("H", bytes(2 * n_blocks))
        self._layer = array("H", bytes(2 * n_blocks))
        self._batch = array("H", bytes(2 * n_blocks))
        self._locked = bytearray(n_blocks)

    def metadata_bytes(self):
        """Bytes of bookkeeping a block (stack 4, generation 2, owner 4, lock 1, bitmap 1/8)."""
        return 4 + 2 + 4 + 1 + 1

    def alloc(self, size, align=4):
        """One block of at least `size` bytes; returns its handle. O(1), allocates nothing."""
        if type(size) is not int or size < 1 or size > self.block_bytes:
            self._refuse_size(size)
        if align != 4:
            self._refuse_align(align)
        h = take_block(self._meta, self._stack, self._free, self._gens)
        if h < 0:
            self._refuse_full(size)
        return h

    def _refuse_size(self, size):
        if type(size) is not int or size < 1:
            raise BadArgument("size must be 1..%d bytes, got %r" % (self.block_bytes, size))
        raise PoolFull(
            "block_bytes %d is too small" % self.block_bytes,
            size,
            self.free_bytes(),
            self.block_bytes if self._meta[FREE] else 0,
            pinned=self._meta[LOCKS] * self.block_bytes,
            unit="bytes",
        )

    def _refuse_align(self, align):
        raise BadArgument("align of a fixed pool is 4, got %r" % (align,))

    def _refuse_full(self, size):
        raise PoolFull(
            "all %d blocks are in use" % self.n_blocks,
            size,
            0,
            pinned=self._meta[LOCKS] * self.block_bytes,
            unit="bytes",
        )

    def _index(self, handle):
        i = -2
        if type(handle) is int:
            i = find_block(self._meta, self._free, self._gens, handle)
        if i < 0:
            self._refuse_handle(handle, i)
        return i

    def _refuse_handle(self, handle, why):
        if why == FOREIGN:
            raise BadHandle("handle %r is not of this pool of %d blocks" % (handle, self.n_blocks))
        raise BadHandle("handle %r is stale: its block was freed" % (handle,))

    def free(self, handle):
        """Give a block back. Refused: foreign, stale, twice, locked. O(1), allocates nothing."""
        i = self._index(handle)
        if self._locked[i]:
            self._refuse_locked(handle)
        give_block(self._meta, self._stack, self._free, self._gens, i)

    def _refuse_locked(self, handle):
        raise Locked("handle %r is locked: unlock it before freeing" % (handle,))

    def lock(self, handle):
        """Guard a block against free and eviction; idempotent."""
        i = self._index(handle)
        if not self._locked[i]:
            self._locked[i] = 1
            self._meta[5] += 1

    def unlock(self, handle):
        i = self._index(handle)
        if self._locked[i]:
            self._locked[i] = 0
            self._meta[5] -= 1

    def is_locked(self, handle):
        return bool(self._locked[self._index(handle)])

    def set_owner(self, handle, layer, batch=0):
        """Note whose block it is; layer, batch: 0..65535."""
        i = self._index(handle)
        for name, value in (("layer", layer), ("batch", batch)):
            if type(value) is not int or not 0 <= value <= 65535:
                raise BadArgument("%s must be 0..65535, got %r" % (name, value))
        self._layer[i] = layer
        self._batch[i] = batch

    def owner(self, handle):
        """(layer, batch) of a block."""
        i = self._index(handle)
        return self._layer[i], self._batch[i]

    def offset(self, handle):
        """Byte offset of a block's data in the arena's buffer."""
        return self.base + self._index(handle) * self.block_bytes

    def free_bytes(self):
        return self._meta[FREE] * self.block_bytes

    def stats(self):
        """Sizes in bytes, counts in blocks; a new dict (allocates)."""
        return lend("mpy_kv.pools.audit").stats(self._meta, self.block_bytes)

    def check(self):
        """Number of broken invariants (0 = sound). O(n), allocates."""
        return lend("mpy_kv.pools.audit").check(self._meta, self._stack, self._free, self._locked)
