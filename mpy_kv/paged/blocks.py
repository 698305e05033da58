"""Blocks: references to the blocks of a pool; free ones, and reusable ones in the order they will go.

A block is free (nobody's, its bytes mean nothing), referenced (by so many tables and pins) or reusable:
nobody holds it, but the prefix index finds it, until its memory is needed. All are one of these.
What goes first: free blocks; then reusable ones without children in the index, least recently used first, so
that a chain goes from its tail; last those whose children are still held, which only a window leaves behind.

All state lies in arrays made here; taking, holding and dropping a block is O(1) and allocates nothing. The
transitions are native functions of ints and arrays, for device and host; nothing in them checks arguments:
indexes come from the tables of requests.py.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..errors import PoolFull
from ..eviction.linked_list import clear
from .prefix import chain_hash, enter, find, forget

# fields: blocks
_N = const(0)
_TOP = const(1)
_FREE = const(2)
_REUSABLE = const(3)
_USED = const(4)
_PEAK = const(5)
_BLOCK_TOKENS = const(8)
# end of fields


@micropython.native
def take(meta, ref, nxt):
    """A free block, now with one reference; or -1 - the reusable block to forget first; or -1 - n: none."""
    n = meta[_N]
    i = meta[_TOP]
    if i == n:
        i = nxt[n]
        if i == n:
            i = nxt[n + 1]
        if i > n:
            i = n
        return -1 - i
    meta[_TOP] = nxt[i]
    meta[_FREE] -= 1
    ref[i] = 1
    used = meta[_USED] + 1
    meta[_USED] = used
    if used > meta[_PEAK]:
        meta[_PEAK] = used
    return i


@micropython.native
def hold(meta, ref, nxt, prv, i):
    """One more reference to a referenced or reusable block."""
    r = ref[i]
    if r == 0:
        p = prv[i]
        x = nxt[i]
        nxt[p] = x
        prv[x] = p
        meta[_REUSABLE] -= 1
        used = meta[_USED] + 1
        meta[_USED] = used
        if used > meta[_PEAK]:
            meta[_PEAK] = used
    ref[i] = r + 1
    return r


@micropython.native
def drop(meta, ref, nxt, prv, serial, children, i):
    """One reference less; how many are left."""
    r = ref[i] - 1
    ref[i] = r
    if r == 0:
        meta[_USED] -= 1
        if serial[i]:
            a = meta[_N]
            if children[i]:
                a += 1
            p = prv[a]
            prv[i] = p
            nxt[i] = a
            nxt[p] = i
            prv[a] = i
            meta[_REUSABLE] += 1
        else:
            nxt[i] = meta[_TOP]
            meta[_TOP] = i
            meta[_FREE] += 1
    return r


@micropython.native
def take_forgotten(meta, ref, i):
    """A block just forgotten, in no list: one reference."""
    ref[i] = 1
    used = meta[_USED] + 1
    meta[_USED] = used
    if used > meta[_PEAK]:
        meta[_PEAK] = used
    return i


class Blocks:
    """n blocks of block_bytes from `pool`, block_tokens tokens each, ids below 65536 unless wide_ids.

    keep: take all of them from the pool now and for good, so that no request ever waits for it; else each is
    taken when it is used and given back when it is free."""

    def __init__(self, pool, n, block_bytes, block_tokens, wide_ids, keep):
        kind = "H" if n < 65532 else "i"
        self.n = n
        self.kind = kind
        self.pool = pool
        self.block_bytes = block_bytes
        self.block_tokens = block_tokens
        self.keep = keep
        self.meta = array("i", [0] * 10)
        self.ref = array("H", bytes(2 * n))
        self.nxt = array(kind, [0] * (n + 2))
        self.prv = array(kind, [0] * (n + 2))
        self.handle = array("i", [-1] * n)
        self.at = array("i", [0] * n)
        self.serial = array("i", [0] * n)
        self.hash = array("i", [0] * n)
        self.parent = array("i", [0] * n)
        self.pserial = array("i", [0] * n)
        self.chain = array(kind, [0] * n)
        self.children = array(kind, [0] * n)
        self.ids = array("i" if wide_ids else "H", [0] * (n * block_tokens))
        buckets = 1
        while buckets < n:
            buckets *= 2
        self.bucket = array(kind, [n] * buckets)
        m = self.meta
        m[_N] = m[_TOP] = n
        m[_FREE] = n
        m[_BLOCK_TOKENS] = block_tokens
        for i in range(n - 1, -1, -1):
            if keep:
                self._fill(i)
            self.nxt[i] = m[_TOP]
            m[_TOP] = i
        clear(self.nxt, self.prv, n)
        clear(self.nxt, self.prv, n + 1)

    def _fill(self, i):
        """Get block i its memory."""
        self.handle[i] = self.pool.alloc(self.block_bytes)
        self.at[i] = self.pool.offset(self.handle[i])

    def locate(self):
        """Ask the pool where every block lies."""
        for i in range(self.n):
            if self.handle[i] >= 0:
                self.at[i] = self.pool.offset(self.handle[i])

    def _filled(self, i):
        """Whether free block i could get its memory."""
        try:
            self._fill(i)
        except PoolFull:
            return False
        return True

    def secure(self, count):
        """Whether so many take() will do, memory for free blocks taken from the pool now; else nothing is."""
        if self.keep:
            return True
        i = self.meta[_TOP]
        got = 0
        while got < count and i != self.n and (self.handle[i] >= 0 or self._filled(i)):
            got += 1
            i = self.nxt[i]
        if got + self.meta[_REUSABLE] >= count:
            return True
        i = self.meta[_TOP]
        while i != self.n and self.handle[i] >= 0:
            self.pool.free(self.handle[i])
            self.handle[i] = -1
            i = self.nxt[i]
        return False

    @micropython.native
    def take(self):
        """A block with one reference, the caller's; -1 if there is none. A reusable one is forgotten.
        Where the pool has no memory for a free block, a reusable one is taken with its own."""
        n = self.n
        i = take(self.meta, self.ref, self.nxt)
        if i >= 0 and self.handle[i] < 0 and not self._filled(i):
            drop(self.meta, self.ref, self.nxt, self.prv, self.serial, self.children, i)
            i = self.nxt[n]
            if i == n:
                i = self.nxt[n + 1]
            if i > n:
                i = n
            i = -1 - i
        if i < 0:
            i = -1 - i
            if i == n:
                return -1
            self.forget(i)
            take_forgotten(self.meta, self.ref, i)
        return i

    @micropython.native
    def hold(self, i):
        """One more reference; how many there were."""
        return hold(self.meta, self.ref, self.nxt, self.prv, i)

    @micropython.native
    def drop(self, i):
        """One reference less; how many are left."""
        r = drop(self.meta, self.ref, self.nxt, self.prv, self.serial, self.children, i)
        if r == 0 and not self.keep and not self.serial[i]:
            self.pool.free(self.handle[i])
            self.handle[i] = -1
        return r

    @micropython.native
    def forget(self, i):
        """Take block i out of the index."""
        return forget(
            self.meta,
            self.ref,
            self.nxt,
            self.prv,
            self.serial,
            self.hash,
            self.parent,
            self.pserial,
            self.chain,
            self.bucket,
            self.children,
            i,
        )

    def discard(self, i):
        """A block just forgotten, which nobody holds, is free."""
        take_forgotten(self.meta, self.ref, i)
        self.drop(i)

    @micropython.native
    def find(self, under, under_serial, h, tokens, at):
        """Block that holds tokens[at : at + block_tokens] after that parent; -1. h: hash of the chain."""
        return find(
            self.meta,
            self.hash,
            self.parent,
            self.pserial,
            self.chain,
            self.bucket,
            self.ids,
            under,
            under_serial,
            h,
            tokens,
            at,
        )

    @micropython.native
    def enter(self, under, under_serial, h, i):
        """Enter block i with its ids; its serial number."""
        return enter(
            self.meta,
            self.ref,
            self.nxt,
            self.prv,
            self.serial,
            self.hash,
            self.parent,
            self.pserial,
            self.chain,
            self.bucket,
            self.children,
            under,
            under_serial,
            h,
            i,
        )

    def hash_of(self, h, tokens, at):
        """Hash of a chain with one block more."""
        return chain_hash(h, tokens, at, self.block_tokens)
