"""Hybrid: LFU that leaves the newest entries alone, so that what came last gets the time to be used again.

The lists are those of lfu.py; a second pair of links keeps the order of insertion. fresh[i] is 1 for the
newest `window` of the held entries; evict passes those. When one of them is removed, the next older one takes
its place.

The list of count 1 is in order of insertion until a protected entry comes back into it (MIXED). While it is,
a first entry of the window means that the others are too. The anchor of the second list is n.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..port import ints
from . import lfu
from .lfu import LFU, MOST_COUNT
from .policy import MAX_ENTRIES, number

# fields: policy, lfu, hybrid
_HELD = const(0)
_PROTECTED = const(1)
_EVICTED = const(3)
_LEAST = const(5)
_LAST = const(6)
_WINDOW = const(7)
_FRESH = const(8)
_OLDEST = const(9)
_MIXED = const(10)
# end of fields


@micropython.native
def admit(meta, newer, older, fresh, n, i):
    """i, just inserted, is the newest of all."""
    p = older[n]
    older[i] = p
    newer[i] = n
    newer[p] = i
    older[n] = i
    window = meta[_WINDOW]
    if window == 0:
        return 0
    fresh[i] = 1
    if meta[_FRESH] < window:
        if meta[_FRESH] == 0:
            meta[_OLDEST] = i
        meta[_FRESH] += 1
    else:
        b = meta[_OLDEST]
        fresh[b] = 0
        meta[_OLDEST] = newer[b]
    return 0


@micropython.native
def dismiss(meta, newer, older, fresh, n, i):
    """i, held no more, leaves the order of insertion."""
    p = older[i]
    x = newer[i]
    newer[p] = x
    older[x] = p
    newer[i] = i
    older[i] = i
    if fresh[i] == 0:
        return 0
    fresh[i] = 0
    b = meta[_OLDEST]
    if b == i:
        b = x
    p = older[b]
    if p == n:
        meta[_FRESH] -= 1
    else:
        fresh[p] = 1
        b = p
    meta[_OLDEST] = b
    return 0


@micropython.native
def evict(meta, nxt, prv, rank, newer, older, fresh, n):
    top = meta[_LAST]
    a = meta[_LEAST]
    i = nxt[a]
    if nxt[n] == n:
        meta[_MIXED] = 0
    while i == a and a < top:
        a += 1
        i = nxt[a]
    meta[_LEAST] = a
    if a == n and i != a and fresh[i] and meta[_MIXED] == 0:
        i = a
    while True:
        while i != a and fresh[i]:
            i = nxt[i]
        if i != a:
            break
        if a == top:
            return -1
        a += 1
        i = nxt[a]
    p = prv[i]
    x = nxt[i]
    nxt[p] = x
    prv[x] = p
    nxt[i] = i
    prv[i] = i
    p = older[i]
    x = newer[i]
    newer[p] = x
    older[x] = p
    newer[i] = i
    older[i] = i
    rank[i] = 0
    meta[_HELD] -= 1
    meta[_EVICTED] = (meta[_EVICTED] + 1) & 0x3FFFFFFF
    return i


class Hybrid(LFU):
    """Window + LFU. evict takes, besides what LFU's does, at most a step for each entry of the window."""

    name = "hybrid"

    def __init__(self, n, window=None, most_count=MOST_COUNT):
        """window: 0..n - 1, default an eighth of n; with n or more nothing could ever go."""
        number("n", n, 1, MAX_ENTRIES)
        self.window = number("window", n // 8 if window is None else window, 0, n - 1)
        super().__init__(n, most_count)
        self._meta = ints(tuple(self._meta) + (self.window, 0, n, 0))
        self._newer = self.indexes(range(n + 1))
        self._older = self.indexes(range(n + 1))
        self._fresh = bytearray(n)

    def metadata_bytes(self):
        """Bytes of bookkeeping an entry: four links, its rank, whether it is in the window."""
        return 5 * self.index_bytes() + 1

    def insert(self, i, key=-1):
        if lfu.insert(self._meta, self._nxt, self._prv, self._rank, self.n, i) < 0:
            return -1
        return admit(self._meta, self._newer, self._older, self._fresh, self.n, i)

    @micropython.native
    def evict(self):
        meta = self._meta
        return evict(meta, self._nxt, self._prv, self._rank, self._newer, self._older, self._fresh, self.n)

    def remove(self, i):
        if lfu.remove(self._meta, self._nxt, self._prv, self._rank, self.n, i) < 0:
            return -1
        return dismiss(self._meta, self._newer, self._older, self._fresh, self.n, i)

    def unprotect(self, i):
        before = self._meta[_PROTECTED]
        done = super().unprotect(i)
        if self._meta[_PROTECTED] != before:
            self._meta[_MIXED] = 1
        return done
