"""Compiled loops: accesses to numbered keys, on the compiled transitions of a policy.

An entry of the policy is a place in the cache. What is where is kept beside it: `where`, the entry of each
key or -1, and `holds`, the key of each entry. counts: see the constants; it goes on from call to call, so
that a trace may come in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kvlab.engine.compiled import compiled
from kvlab.replay.catalogue import Compiled
from kvlab.replay.prefetch import prefetch

# counts. FREE: entries taken at least once (of one size), or entries on the stack of free ones (sized).
HITS, EVICTED, FREE, USED, REFUSED, REPLACED = range(6)

# Accesses between the steps of asking for memory ahead.
AHEAD = 8

Loop = Callable[..., int]


@cache
def loop(kind: Callable[[Compiled], Loop], policy: Compiled) -> Loop:
    """The loop of a kind below for a policy, made once."""
    return kind(policy)


def alike(policy: Compiled) -> Loop:
    """loop(state, n, ids, where, holds, counts, victims): objects of one size, each takes an entry.

    victims[t]: the key evicted at access t, or -1; an empty array takes none. 0, or -1 where the policy had
    no victim.
    """
    touch, insert, evict, soon = policy.touch, policy.insert, policy.evict, policy.soon

    def run(state, n, ids, where, holds, counts, victims):  # type: ignore[no-untyped-def]
        a, b, c, d, e, f, g = state
        hits, evicted, taken = counts[0], counts[1], counts[2]
        telling = len(victims) > 0
        failed = 0
        for t in range(len(ids)):
            if t + 3 * AHEAD < len(ids):
                prefetch(where, ids[t + 3 * AHEAD])
                k = ids[t + 2 * AHEAD]
                soon(a, b, c, d, e, f, g, n, where[k], k, 1)
                k = ids[t + AHEAD]
                soon(a, b, c, d, e, f, g, n, where[k], k, 2)
            k = ids[t]
            i = where[k]
            if i >= 0:
                touch(a, b, c, d, e, f, g, n, i)
                hits += 1
                continue
            if taken < n:
                i = taken
                taken += 1
            else:
                i = evict(a, b, c, d, e, f, g, n)
                if i < 0:
                    failed = -1
                    break
                evicted += 1
                where[holds[i]] = -1
                if telling:
                    victims[t] = holds[i]
            insert(a, b, c, d, e, f, g, n, i, k)
            where[k] = i
            holds[i] = k
        counts[0], counts[1], counts[2] = hits, evicted, taken
        return failed

    return compiled(run)


def sized(policy: Compiled) -> Loop:
    """loop(state, n, ids, sizes, capacity, where, holds, room, free, counts, victims): objects of many sizes.

    room[i]: size of what entry i holds; free: a stack of the other entries, counts[FREE] of them. An object
    larger than the capacity is not admitted and evicts nothing, nor is one for which the policy gives no
    victim any more. One that comes back with another size is another one: the old is dropped, a miss.
    """
    touch, insert, evict, remove = policy.touch, policy.insert, policy.evict, policy.remove

    def run(state, n, ids, sizes, capacity, where, holds, room, free, counts, victims):  # type: ignore[no-untyped-def]
        a, b, c, d, e, f, g = state
        told = 0
        for t in range(len(ids)):
            k = ids[t]
            size = sizes[t]
            i = where[k]
            if i >= 0:
                if room[i] == size:
                    touch(a, b, c, d, e, f, g, n, i)
                    counts[0] += 1
                    continue
                remove(a, b, c, d, e, f, g, n, i)
                counts[3] -= room[i]
                counts[5] += 1
                where[k] = -1
                free[counts[2]] = i
                counts[2] += 1
            if size > capacity:
                counts[4] += 1
                continue
            fits = True
            while counts[3] + size > capacity:
                i = evict(a, b, c, d, e, f, g, n)
                if i < 0:
                    fits = False
                    break
                counts[1] += 1
                counts[3] -= room[i]
                where[holds[i]] = -1
                if told < len(victims):
                    victims[told] = holds[i]
                    told += 1
                free[counts[2]] = i
                counts[2] += 1
            if not fits:
                counts[4] += 1
                continue
            counts[2] -= 1
            i = free[counts[2]]
            insert(a, b, c, d, e, f, g, n, i, k)
            where[k] = i
            holds[i] = k
            room[i] = size
            counts[3] += size
        return told

    return compiled(run)
