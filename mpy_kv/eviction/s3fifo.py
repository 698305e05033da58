"""S3-FIFO: a small queue on trial, a main queue, and the names of those that failed the trial.

New entries come into the small queue. While that has its share, a tenth of all, its oldest goes on to the
main queue if it was used twice or more since, else it is evicted and its key remembered; what comes again
while remembered goes straight to the main queue. There the oldest is evicted if it was not used, else it is
put behind the newest, worth one use less. So most of what is used once never takes a place in the main queue.
Reference: Yang et al., FIFO queues are all you need for cache eviction, SOSP 2023.

state: 1 held, 2 protected, 4 in the main queue, and from 8 on uses, up to 3. Anchors: n small, n + 1 main.
key: of each entry; ghost: a ring of the keys of the last that failed; -1: none. chain: for each ghost the
next of its bucket, then a first one for each bucket; the number of ghosts ends a chain.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..port import ints
from .fifo import Queue, remove
from .policy import MAX_ENTRIES, number

# fields: policy, s3fifo
_HELD = const(0)
_PROTECTED = const(1)
_INSERTED = const(2)
_EVICTED = const(3)
_TRIAL = const(5)
_SMALL = const(6)
_GHOSTS = const(7)
_BUCKETS = const(8)
_GHOST = const(9)
# end of fields


@micropython.native
def touch(state, n, i):
    if i < 0 or i >= n:
        return -1
    s = state[i]
    if s == 0:
        return -1
    if s < 24:
        state[i] = s + 8
    return 0


@micropython.native
def insert(meta, nxt, prv, state, key, ghost, chain, n, i, k):
    if i < 0 or i >= n or state[i] != 0:
        return -1
    a = n
    s = 1
    if k >= 0:
        k &= 0x3FFFFFFF
        ghosts = meta[_GHOSTS]
        b = ghosts + (k & meta[_BUCKETS])
        j = chain[b]
        while j != ghosts and ghost[j] != k:
            b = j
            j = chain[b]
        if j != ghosts:
            chain[b] = chain[j]
            ghost[j] = -1
            a = n + 1
            s = 5
    if a == n:
        meta[_SMALL] += 1
    key[i] = k
    state[i] = s
    p = prv[a]
    prv[i] = p
    nxt[i] = a
    nxt[p] = i
    prv[a] = i
    meta[_HELD] += 1
    meta[_INSERTED] = (meta[_INSERTED] + 1) & 0x3FFFFFFF
    return 0


@micropython.native
def evict(meta, nxt, prv, state, key, ghost, chain, n):
    if meta[_HELD] == meta[_PROTECTED]:
        return -1
    a = n
    if meta[_SMALL] < meta[_TRIAL]:
        a = n + 1
    i = nxt[a]
    while True:
        while i == a:  # its end: what is left here is protected
            a = n + n + 1 - a
            i = nxt[a]
        s = state[i]
        x = nxt[i]
        if s & 2:
            i = x
            continue
        p = prv[i]
        nxt[p] = x
        prv[x] = p
        if a == n:
            meta[_SMALL] -= 1
            if s < 16:
                break
            state[i] = 5
        else:
            if s < 8:
                break
            state[i] = s - 8
        # To the main queue's newest end.
        m = n + 1
        p = prv[m]
        prv[i] = p
        nxt[i] = m
        nxt[p] = i
        prv[m] = i
        i = x
        if x == m:
            i = nxt[m]
    nxt[i] = i
    prv[i] = i
    state[i] = 0
    meta[_HELD] -= 1
    meta[_EVICTED] = (meta[_EVICTED] + 1) & 0x3FFFFFFF
    k = key[i]
    if a == n and k >= 0:
        ghosts = meta[_GHOSTS]
        j = meta[_GHOST]
        old = ghost[j]
        if old >= 0:
            b = ghosts + (old & meta[_BUCKETS])
            while chain[b] != j:
                b = chain[b]
            chain[b] = chain[j]
        ghost[j] = k
        b = ghosts + (k & meta[_BUCKETS])
        chain[j] = chain[b]
        chain[b] = j
        j += 1
        if j == ghosts:
            j = 0
        meta[_GHOST] = j
    return i


@micropython.native
def leave(meta, state, n, i):
    """i is about to be removed: the small queue is one shorter."""
    if i >= 0 and i < n and (state[i] & 7) == 1:
        meta[_SMALL] -= 1
    return 0


class S3FIFO(Queue):
    """Three FIFO queues, one of them of names. evict takes a step for each entry that it passes or moves on:
    at most four rounds, and over many calls one for each touch and each insertion, besides the protected
    ones.

    small: entries that the queue on trial keeps, default a tenth of n; ghosts: names remembered, default nine
    tenths of n. Keys are told apart by their lower 30 bits.
    """

    name = "s3fifo"

    def __init__(self, n, small=None, ghosts=None):
        number("n", n, 1, MAX_ENTRIES)
        small = number("small", max(1, n // 10) if small is None else small, 1, n)
        ghosts = number("ghosts", max(1, n * 9 // 10) if ghosts is None else ghosts, 1, MAX_ENTRIES)
        buckets = 1
        while buckets * 5 <= ghosts * 2:
            buckets *= 2
        super().__init__(n, 2, (small, 0, ghosts, buckets - 1, 0), ghosts + buckets)
        self._key = ints((), n)
        self._ghost = ints((), ghosts)
        for i in range(ghosts):
            self._ghost[i] = -1
        self._chain = self.indexes((), ghosts + buckets)
        for i in range(ghosts + buckets):
            self._chain[i] = ghosts

    def metadata_bytes(self):
        """Bytes of bookkeeping an entry: two links, its state and key, and those of the ghosts."""
        at = self.index_bytes()
        rest = 4 * (self.n + len(self._ghost)) + at * len(self._chain)
        return 2 * at + 1 + (rest + self.n - 1) // self.n

    def touch(self, i):
        return touch(self._state, self.n, i)

    @micropython.native
    def insert(self, i, key=-1):
        meta = self._meta
        state = self._state
        return insert(meta, self._nxt, self._prv, state, self._key, self._ghost, self._chain, self.n, i, key)

    @micropython.native
    def evict(self):
        meta = self._meta
        state = self._state
        return evict(meta, self._nxt, self._prv, state, self._key, self._ghost, self._chain, self.n)

    def remove(self, i):
        leave(self._meta, self._state, self.n, i)
        return remove(self._meta, self._nxt, self._prv, self._state, self.n, i)
