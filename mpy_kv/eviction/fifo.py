"""FIFO: the entry goes that was inserted first. A list in the order of insertion; use changes nothing.

state, a byte an entry: 1 held, 2 protected, and what sieve and s3fifo, whose queues are kept here too, add.
The anchor is n.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from .policy import MAX_ENTRIES, Policy, number

# fields: policy
_HELD = const(0)
_PROTECTED = const(1)
_INSERTED = const(2)
_EVICTED = const(3)
_REMOVED = const(4)
# end of fields


@micropython.native
def touch(state, n, i):
    if i < 0 or i >= n or state[i] == 0:
        return -1
    return 0


@micropython.native
def insert(meta, nxt, prv, state, n, i):
    if i < 0 or i >= n or state[i] != 0:
        return -1
    p = prv[n]
    prv[i] = p
    nxt[i] = n
    nxt[p] = i
    prv[n] = i
    state[i] = 1
    meta[_HELD] += 1
    meta[_INSERTED] = (meta[_INSERTED] + 1) & 0x3FFFFFFF
    return 0


@micropython.native
def evict(meta, nxt, prv, state, n):
    i = nxt[n]
    while i != n and state[i] & 2:
        i = nxt[i]
    if i == n:
        return -1
    p = prv[i]
    x = nxt[i]
    nxt[p] = x
    prv[x] = p
    nxt[i] = i
    prv[i] = i
    state[i] = 0
    meta[_HELD] -= 1
    meta[_EVICTED] = (meta[_EVICTED] + 1) & 0x3FFFFFFF
    return i


@micropython.native
def remove(meta, nxt, prv, state, n, i):
    if i < 0 or i >= n or (state[i] & 3) != 1:
        return -1
    p = prv[i]
    x = nxt[i]
    nxt[p] = x
    prv[x] = p
    nxt[i] = i
    prv[i] = i
    state[i] = 0
    meta[_HELD] -= 1
    meta[_REMOVED] = (meta[_REMOVED] + 1) & 0x3FFFFFFF
    return 0


@micropython.native
def protect(meta, state, n, i):
    if i < 0 or i >= n or state[i] == 0:
        return -1
    s = state[i]
    if s & 2 == 0:
        state[i] = s | 2
        meta[_PROTECTED] += 1
    return 0


@micropython.native
def unprotect(meta, state, n, i):
    if i < 0 or i >= n or state[i] == 0:
        return -1
    s = state[i]
    if s & 2:
        state[i] = s & 253
        meta[_PROTECTED] -= 1
    return 0


class Queue(Policy):
    """Base of the policies that keep insertion order: a protected entry keeps its place.

    queues: lists, whose anchors are n, n + 1, ...; own, beside: as of Policy.
    """

    def __init__(self, n, queues=1, own=(), beside=0):
        super().__init__(n, n + queues, own, beside)
        self._state = bytearray(n)

    def protect(self, i):
        return protect(self._meta, self._state, self.n, i)

    def unprotect(self, i):
        return unprotect(self._meta, self._state, self.n, i)


class FIFO(Queue):
    """First in, first out. evict takes a step more for each protected entry that is older than the victim."""

    name = "fifo"

    def __init__(self, n):
        super().__init__(number("n", n, 1, MAX_ENTRIES))

    def metadata_bytes(self):
        """Bytes of bookkeeping an entry: two links, its state."""
        return 2 * self.index_bytes() + 1

    def touch(self, i):
        return touch(self._state, self.n, i)

    def insert(self, i, key=-1):
        return insert(self._meta, self._nxt, self._prv, self._state, self.n, i)

    def evict(self):
        return evict(self._meta, self._nxt, self._prv, self._state, self.n)

    def remove(self, i):
        return remove(self._meta, self._nxt, self._prv, self._state, self.n, i)
