"""SIEVE: a FIFO queue whose hand goes from old to new, forgives what was used and takes what was not.

One list in the order of insertion, one bit an entry: used since it came or the hand last passed. The hand
takes the bit away from those that have it and evicts the first that has none; there it stays, and new entries
come in behind it at the newest end. So a scan of things used once leaves what is used again alone, and a
touch writes one byte. Reference: Zhang et al., SIEVE is simpler than LRU, NSDI 2024.

state: 1 held, 2 protected, 4 used.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from .fifo import Queue, insert, remove
from .policy import MAX_ENTRIES, number

# fields: policy, sieve
_HELD = const(0)
_PROTECTED = const(1)
_EVICTED = const(3)
_HAND = const(5)
# end of fields


@micropython.native
def touch(state, n, i):
    if i < 0 or i >= n:
        return -1
    s = state[i]
    if s == 0:
        return -1
    state[i] = s | 4
    return 0


@micropython.native
def evict(meta, nxt, prv, state, n):
    if meta[_HELD] == meta[_PROTECTED]:
        return -1
    i = meta[_HAND]
    while True:
        if i == n:
            i = nxt[n]
        s = state[i]
        x = nxt[i]
        if s == 1:
            break
        if s == 5:
            state[i] = 1
        i = x
    p = prv[i]
    nxt[p] = x
    prv[x] = p
    nxt[i] = i
    prv[i] = i
    state[i] = 0
    meta[_HAND] = x
    meta[_HELD] -= 1
    meta[_EVICTED] = (meta[_EVICTED] + 1) & 0x3FFFFFFF
    return i


@micropython.native
def leave(meta, nxt, state, n, i):
    """The hand does not stay at i, which is about to be removed."""
    if i >= 0 and i < n and meta[_HAND] == i and (state[i] & 3) == 1:
        meta[_HAND] = nxt[i]
    return 0


class Sieve(Queue):
    """Lazy promotion, quick demotion. evict takes a step for each entry passed: at most two rounds, and over
    many calls one for each touch and each insertion, besides the protected ones."""

    name = "sieve"

    def __init__(self, n):
        super().__init__(number("n", n, 1, MAX_ENTRIES), own=(n,))

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
        leave(self._meta, self._nxt, self._state, self.n, i)
        return remove(self._meta, self._nxt, self._prv, self._state, self.n, i)
