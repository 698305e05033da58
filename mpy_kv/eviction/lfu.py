"""LFU: the entry goes that was used least often; of equals the one used longest ago.

One list for each count from 1 to `most_count`, in order of use: a touch takes an entry out of its list and
puts it last in the next one, so it costs no more than LRU's. A count stops at most_count, where the order is
that of use; it dies with the entry. Insertion is the first use.

rank[i]: anchor of the list for the count of i, n - 1 + count; 0 where i is not held. A protected entry is in
no list (its own neighbour), and goes on counting.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from .policy import MAX_ENTRIES, Policy, fast, number

# fields: policy, lfu
_HELD = const(0)
_PROTECTED = const(1)
_INSERTED = const(2)
_EVICTED = const(3)
_REMOVED = const(4)
_LEAST = const(5)
_LAST = const(6)
# end of fields

MOST_COUNT = 255


@micropython.native
def touch(nxt, prv, rank, n, top, i):
    if i < 0 or i >= n:
        return -1
    r = rank[i]
    if r == 0:
        return -1
    if r != top:
        r += 1
        rank[i] = r
    p = prv[i]
    if p == i:
        return 0
    x = nxt[i]
    nxt[p] = x
    prv[x] = p
    p = prv[r]
    prv[i] = p
    nxt[i] = r
    nxt[p] = i
    prv[r] = i
    return 0


@micropython.native
def insert(meta, nxt, prv, rank, n, i):
    if i < 0 or i >= n or rank[i] != 0:
        return -1
    p = prv[n]
    prv[i] = p
    nxt[i] = n
    nxt[p] = i
    prv[n] = i
    rank[i] = n
    meta[_LEAST] = n
    meta[_HELD] += 1
    meta[_INSERTED] = (meta[_INSERTED] + 1) & 0x3FFFFFFF
    return 0


@micropython.native
def evict(meta, nxt, prv, rank):
    a = meta[_LEAST]
    top = meta[_LAST]
    i = nxt[a]
    while i == a and a < top:
        a += 1
        i = nxt[a]
    meta[_LEAST] = a
    if i == a:
        return -1
    x = nxt[i]
    nxt[a] = x
    prv[x] = a
    nxt[i] = i
    prv[i] = i
    rank[i] = 0
    meta[_HELD] -= 1
    meta[_EVICTED] = (meta[_EVICTED] + 1) & 0x3FFFFFFF
    return i


@micropython.native
def remove(meta, nxt, prv, rank, n, i):
    if i < 0 or i >= n or prv[i] == i:
        return -1
    p = prv[i]
    x = nxt[i]
    nxt[p] = x
    prv[x] = p
    nxt[i] = i
    prv[i] = i
    rank[i] = 0
    meta[_HELD] -= 1
    meta[_REMOVED] = (meta[_REMOVED] + 1) & 0x3FFFFFFF
    return 0


@micropython.native
def protect(meta, nxt, prv, rank, n, i):
    if i < 0 or i >= n or rank[i] == 0:
        return -1
    p = prv[i]
    if p != i:
        x = nxt[i]
        nxt[p] = x
        prv[x] = p
        nxt[i] = i
        prv[i] = i
        meta[_PROTECTED] += 1
    return 0


@micropython.native
def unprotect(meta, nxt, prv, rank, n, i):
    if i < 0 or i >= n or rank[i] == 0:
        return -1
    if prv[i] == i:
        r = rank[i]
        p = prv[r]
        prv[i] = p
        nxt[i] = r
        nxt[p] = i
        prv[r] = i
        if r < meta[_LEAST]:
            meta[_LEAST] = r
        meta[_PROTECTED] -= 1
    return 0


use = fast("touch_lfu", touch)


class LFU(Policy):
    """Least frequently used, counts up to `most_count`; four bytes each (eight from 65,536 indexes on).

    evict looks at empty lists below the victim's, at most most_count of them; over many calls no more than
    one for each touch.
    """

    name = "lfu"

    def __init__(self, n, most_count=MOST_COUNT):
        number("n", n, 1, MAX_ENTRIES)
        number("most_count", most_count, 1, MAX_ENTRIES)
        super().__init__(n, n + most_count, (n, n + most_count - 1))
        self._rank = self.indexes((), n)
        self._top = n + most_count - 1

    def metadata_bytes(self):
        """Bytes of bookkeeping an entry: two links, its rank."""
        return 3 * self.index_bytes()

    def count(self, i):
        """How often i was used, its insertion included; 0: not held."""
        return max(0, self._rank[i] - self.n + 1)

    def touch(self, i):
        return use(self._nxt, self._prv, self._rank, self.n, self._top, i)

    def insert(self, i, key=-1):
        return insert(self._meta, self._nxt, self._prv, self._rank, self.n, i)

    def evict(self):
        return evict(self._meta, self._nxt, self._prv, self._rank)

    def remove(self, i):
        return remove(self._meta, self._nxt, self._prv, self._rank, self.n, i)

    def protect(self, i):
        return protect(self._meta, self._nxt, self._prv, self._rank, self.n, i)

    def unprotect(self, i):
        return unprotect(self._meta, self._nxt, self._prv, self._rank, self.n, i)
