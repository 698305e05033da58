"""Counts and broken invariants of the policies. Transient (mpy_kv/transient.py); allocates, changes nothing.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

# fields: policy, lfu, hybrid, sieve, s3fifo
_HELD = const(0)
_PROTECTED = const(1)
_INSERTED = const(2)
_EVICTED = const(3)
_REMOVED = const(4)
_LEAST = const(5)
_LAST = const(6)
_FRESH = const(8)
_OLDEST = const(9)
_HAND = const(5)
_SMALL = const(6)
_GHOSTS = const(7)
_BUCKETS = const(8)
# end of fields


_IS_HELD, _IS_PROTECTED, _IS_MAIN = 1, 2, 4  # of a state


def stats(policy):
    """As Policy.stats."""
    meta = policy._meta
    return {
        "policy": policy.name,
        "entries": policy.n,
        "held": meta[_HELD],
        "protected": meta[_PROTECTED],
        "inserted": meta[_INSERTED],
        "evicted": meta[_EVICTED],
        "removed": meta[_REMOVED],
    }


def check(policy):
    """As Policy.check."""
    nxt = policy._nxt
    where = rings(nxt, policy._prv, policy.n, len(nxt) - policy.n)
    if where is None:
        return 1
    meta = policy._meta
    bad = (meta[_HELD] - meta[_INSERTED] + meta[_EVICTED] + meta[_REMOVED]) & 0x3FFFFFFF != 0
    return bad + _OF[policy.name](policy, where)


def rings(nxt, prv, n, anchors):
    """For each of n entries the anchor of the list that it is in, -1: none. None: no sound lists."""
    where = [-1] * n
    for a in range(n, n + anchors):
        before, i = a, nxt[a]
        while i != a:
            if i >= n or where[i] >= 0 or prv[i] != before:
                return None
            where[i] = a
            before, i = i, nxt[i]
        if prv[a] != before:
            return None
    return where


def _linked(nxt, prv, n, where):
    """How many entries in no list are not their own neighbours."""
    return len([i for i in range(n) if where[i] < 0 and not nxt[i] == prv[i] == i])


def _counted(policy, held, protected):
    meta = policy._meta
    return (meta[_HELD] != held) + (meta[_PROTECTED] != protected)


def lru(policy, where):
    """Out of the list: not held, or protected."""
    n = policy.n
    bad = protected = 0
    for i in range(n):
        if where[i] < 0:
            x = policy._nxt[i]
            bad += policy._prv[i] != i or x not in (i, n)
            protected += x == n
    return bad + _counted(policy, protected + n - where.count(-1), protected)


def lfu(policy, where):
    """Each held entry that is not protected is in the list of its rank."""
    n = policy.n
    meta = policy._meta
    bad = held = protected = 0
    for i in range(n):
        r = policy._rank[i]
        held += r != 0
        if where[i] >= 0:
            bad += where[i] != r or r < meta[_LEAST]
        else:
            bad += policy._prv[i] != i or policy._nxt[i] != i
            protected += r != 0
        bad += r != 0 and not n <= r <= meta[_LAST]
    return bad + _counted(policy, held, protected)


def hybrid(policy, where):
    """As lfu; the second list has each held entry, its newest ones are the window."""
    n = policy.n
    meta = policy._meta
    bad = lfu(policy, where)
    order = rings(policy._newer, policy._older, n, 1)
    if order is None:
        return bad + 1
    bad += _linked(policy._newer, policy._older, n, order)
    bad += len([i for i in range(n) if (order[i] == n) != (policy._rank[i] != 0)])
    window, i, oldest = 0, policy._older[n], n
    while i != n and window < policy.window:
        bad += policy._fresh[i] != 1
        window, oldest, i = window + 1, i, policy._older[i]
    bad += sum(policy._fresh) != window
    bad += meta[_FRESH] != window
    return bad + (window > 0 and meta[_OLDEST] != oldest)


def fifo(policy, where):
    """Whatever is held is in a list; what is in none is its own neighbour."""
    state = policy._state
    bad = _linked(policy._nxt, policy._prv, policy.n, where)
    bad += len([i for i in range(policy.n) if (where[i] >= 0) != (state[i] & _IS_HELD != 0)])
    bad += len([s for s in state if s and not s & _IS_HELD])
    held, protected = len([s for s in state if s]), len([s for s in state if s & _IS_PROTECTED])
    return bad + _counted(policy, held, protected)


def sieve(policy, where):
    """As fifo; the hand is at an entry of the queue, or at none."""
    hand = policy._meta[_HAND]
    return fifo(policy, where) + (hand != policy.n and where[hand] < 0)


def s3fifo(policy, where):
    """As fifo; of the two queues the one that the state names; each ghost in the chain of its key."""
    n = policy.n
    meta = policy._meta
    bad = fifo(policy, where)
    for i in range(n):
        bad += where[i] >= 0 and (where[i] == n + 1) != (policy._state[i] & _IS_MAIN != 0)
    bad += meta[_SMALL] != where.count(n)
    ghosts, mask = meta[_GHOSTS], meta[_BUCKETS]
    seen = [False] * ghosts
    for b in range(mask + 1):
        j = policy._chain[ghosts + b]
        while j != ghosts:
            if seen[j]:
                return bad + 1
            seen[j] = True
            bad += policy._ghost[j] & mask != b
            j = policy._chain[j]
    return bad + len([j for j in range(ghosts) if seen[j] != (policy._ghost[j] >= 0)])


_OF = {"lru": lru, "lfu": lfu, "hybrid": hybrid, "fifo": fifo, "sieve": sieve, "s3fifo": s3fifo}
