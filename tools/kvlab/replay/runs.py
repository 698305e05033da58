"""Accesses against policies and capacities: hits and misses of each pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from commandline.errors import BadInput
from kvlab.engine import compiled
from kvlab.replay import catalogue, loops, optimal
from kvlab.replay.source import Accesses
from mpy_kv.eviction.policy import MAX_ENTRIES

NAMES = (*catalogue.POLICIES, optimal.NAME)

# Up to which lfu and hybrid count here: so far that it never decides.
MOST_COUNT = (1 << 16) - 1

_PART = 1 << 20  # accesses of a call
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)  # of all that is in the trace

Figures = dict[str, Any]
Done = Callable[[int], None]


def default_capacities(accesses: Accesses) -> list[int]:
    """Shares of what the whole trace uses, in its unit."""
    whole = accesses.distinct if accesses.sizes is None else int(_least_sizes(accesses).sum())
    return sorted({max(1, round(share * whole)) for share in _SHARES})


def parts(accesses: Accesses) -> int:
    """What `replay` reports for each policy and capacity."""
    return -(-len(accesses) // _PART)


def replay(
    accesses: Accesses,
    names: Sequence[str],
    capacities: Sequence[int],
    window: int | None = None,
    done: Done = lambda _: None,
) -> dict[str, dict[str, Figures]]:
    """{policy: {capacity: {"accesses", "hits", "misses", "miss_ratio", "evictions"}}}; of many sizes also
    "refused" (never admitted: too large, or no room to be had) and "replaced" (came back with another size).

    window: of hybrid, default an eighth of the entries. optimal is left out where sizes differ. BadInput.
    """
    check(accesses, names, capacities, window)
    following = None
    found: dict[str, dict[str, Figures]] = {}
    for name in names:
        if name == optimal.NAME:
            if accesses.sizes is not None:
                continue
            if following is None:
                following = optimal.next_uses(accesses.ids, accesses.distinct)
        found[name] = {}
        for capacity in capacities:
            if name == optimal.NAME:
                figures = of_optimal(accesses, following, capacity, done)
            else:
                figures = of_policy(accesses, name, capacity, window, done)
            found[name][str(capacity)] = figures
    return found


def check(accesses: Accesses, names: Sequence[str], capacities: Sequence[int], window: int | None) -> None:
    """BadInput where a pair cannot be run, before the first of them is."""
    if accesses.sizes is not None and tuple(names) == (optimal.NAME,):
        raise BadInput("--policies optimal: is known only for objects of one size; add --count, or others")
    for capacity in capacities:
        n = entries(accesses, capacity)
        if n > MAX_ENTRIES:
            raise BadInput(f"--capacities {capacity}: {n:,} entries; at most {MAX_ENTRIES:,}")
        if window is not None and "hybrid" in names and window >= n:
            raise BadInput(
                f"--window {window}: with --capacities {capacity} there are {n:,} entries at most, none of"
                " which could ever go; take fewer"
            )


def entries(accesses: Accesses, capacity: int) -> int:
    """Of a policy: as many objects as may be held at once."""
    if accesses.sizes is None:
        return min(capacity, accesses.distinct)
    filled = np.cumsum(np.sort(_least_sizes(accesses)), dtype=np.int64)
    return max(1, int(np.searchsorted(filled, capacity, "right")))


def of_policy(
    accesses: Accesses, name: str, capacity: int, window: int | None, done: Done, victims: Any = None
) -> Figures:
    """One pair. victims: as the loops take it."""
    entry = catalogue.POLICIES[name]
    n = entries(accesses, capacity)
    state = entry.state(catalogue.make(name, n, **policy_options(accesses, name, capacity, window)))
    where = np.full(accesses.distinct, -1, np.int32)
    holds = np.zeros(n, np.int32)
    counts = np.zeros(6, np.int64)
    told = 0
    nobody = np.zeros(0, np.int32)
    with compiled.told(f"the {name} policy"):
        if accesses.sizes is None:
            run = loops.loop(loops.alike, entry.compiled())
            for part in _slices(accesses, done):
                heard = nobody if victims is None else victims[part]
                if run(state, n, accesses.ids[part], where, holds, counts, heard):
                    raise AssertionError(f"{name}: no victim among {n} entries")
            return _figures(len(accesses), counts)
        run = loops.loop(loops.sized, entry.compiled())
        room, free = np.zeros(n, np.int32), np.arange(n - 1, -1, -1, dtype=np.int32)
        counts[loops.FREE] = n
        for part in _slices(accesses, done):
            heard = nobody if victims is None else victims[told:]
            told += run(
                *(state, n, accesses.ids[part], accesses.sizes[part], capacity),
                *(where, holds, room, free, counts, heard),
            )
    return {
        **_figures(len(accesses), counts),
        "refused": int(counts[loops.REFUSED]),
        "replaced": int(counts[loops.REPLACED]),
    }


def policy_options(accesses: Accesses, name: str, capacity: int, window: int | None) -> Figures:
    """What a policy is made with. Shares are of the entries that fill the capacity if objects are of mean
    size: the usual number, where that of entries is the most that can be."""
    n = usual = entries(accesses, capacity)
    if accesses.sizes is not None:
        usual = min(n, max(1, capacity * accesses.distinct // int(_least_sizes(accesses).sum())))
    most_count = min(MOST_COUNT, len(accesses))
    if name == "lfu":
        return {"most_count": most_count}
    if name == "hybrid":
        return {"most_count": most_count, "window": usual // 8 if window is None else window}
    if name == "s3fifo":
        return {"small": max(1, usual // 10), "ghosts": max(1, usual * 9 // 10)}
    return {}


def of_optimal(accesses: Accesses, following: Any, capacity: int, done: Done, victims: Any = None) -> Figures:
    """The same for optimal; following: of optimal.next_uses."""
    run = optimal.Optimal(entries(accesses, capacity), accesses.distinct)
    with compiled.told("the optimal policy"):
        for part in _slices(accesses, done):
            run.feed(accesses.ids[part], following[part], None if victims is None else victims[part])
    return _figures(len(accesses), (run.hits, run.evicted))


def _slices(accesses: Accesses, done: Done) -> Iterator[slice]:
    for start in range(0, len(accesses), _PART):
        yield slice(start, start + _PART)
        done(1)


def _figures(accesses: int, counts: Any) -> Figures:
    hits = int(counts[loops.HITS])
    return {
        "accesses": accesses,
        "hits": hits,
        "misses": accesses - hits,
        "miss_ratio": (accesses - hits) / accesses,
        "evictions": int(counts[loops.EVICTED]),
    }


def _least_sizes(accesses: Accesses) -> Any:
    """Of each object."""
    least = np.full(accesses.distinct, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(least, accesses.ids, accesses.sizes)
    return least
