"""LRU: the entry goes that was used longest ago. A list in order of use; insertion is the first use.

An index in no list is its own neighbour: of an entry that is not held `nxt` too, of a protected one only
`prv`, and nxt names the anchor. The anchor is n.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from .policy import MAX_ENTRIES, Policy, fast, number

# fields: policy
_HELD = const(0)
_PROTECTED = const(1)
_INSERTED = const(2)
_EVICTED = const(3)
_REMOVED = const(4)
# end of fields


@micropython.native
def touch(nxt, prv, n, i):
    if i < 0 or i >= n:
        return -1
    p = prv[i]
    x = nxt[i]
    if p == i:
        if x == i:
            return -1
        return 0
    nxt[p] = x
    prv[x] = p
    p = prv[n]
    prv[i] = p
    nxt[i] = n
    nxt[p] = i
    prv[n] = i
    return 0


@micropython.native
def insert(meta, nxt, prv, n, i):
    if i < 0 or i >= n or nxt[i] != i:
        return -1
    p = prv[n]
    prv[i] = p
    nxt[i] = n
    nxt[p] = i
    prv[n] = i
    meta[_HELD] += 1
    meta[_INSERTED] = (meta[_INSERTED] + 1) & 0x3FFFFFFF
    return 0


@micropython.native
def evict(meta, nxt, prv, n):
    i = nxt[n]
    if i == n:
        return -1
    x = nxt[i]
    nxt[n] = x
    prv[x] = n
    nxt[i] = i
    prv[i] = i
    meta[_HELD] -= 1
    meta[_EVICTED] = (meta[_EVICTED] + 1) & 0x3FFFFFFF
    return i


@micropython.native
def remove(meta, nxt, prv, n, i):
    if i < 0 or i >= n or prv[i] == i:
        return -1
    p = prv[i]
    x = nxt[i]
    nxt[p] = x
    prv[x] = p
    nxt[i] = i
    prv[i] = i
    meta[_HELD] -= 1
    meta[_REMOVED] = (meta[_REMOVED] + 1) & 0x3FFFFFFF
    return 0


@micropython.native
def protect(meta, nxt, prv, n, i):
    if i < 0 or i >= n or nxt[i] == i:
        return -1
    p = prv[i]
    if p != i:
        x = nxt[i]
        nxt[p] = x
        prv[x] = p
        prv[i] = i
        nxt[i] = n
        meta[_PROTECTED] += 1
    return 0


@micropython.native
def unprotect(meta, nxt, prv, n, i):
    if i < 0 or i >= n or nxt[i] == i:
        return -1
    if prv[i] == i:
        p = prv[n]
        prv[i] = p
        nxt[i] = n
        nxt[p] = i
        prv[n] = i
        meta[_PROTECTED] -= 1
    return 0


use = fast("touch_lru", touch)


class LRU(Policy):
    """Least recently used."""

    name = "lru"

    def __init__(self, n):
        super().__init__(number("n", n, 1, MAX_ENTRIES), n + 1)

    def metadata_bytes(self):
        """Bytes of bookkeeping an entry: two links."""
        return 2 * self.index_bytes()

    def touch(self, i):
        return use(self._nxt, self._prv, self.n, i)

    def insert(self, i, key=-1):
        return insert(self._meta, self._nxt, self._prv, self.n, i)

    def evict(self):
        return evict(self._meta, self._nxt, self._prv, self.n)

    def remove(self, i):
        return remove(self._meta, self._nxt, self._prv, self.n, i)

    def protect(self, i):
        return protect(self._meta, self._nxt, self._prv, self.n, i)

    def unprotect(self, i):
        return unprotect(self._meta, self._nxt, self._prv, self.n, i)
