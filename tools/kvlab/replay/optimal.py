"""The most hits that any policy can have: evict what is used again last (Belady), which takes the future.

For objects of one size, every miss inserted. With objects of many sizes the best choice is a hard problem,
and this one is not it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from kvlab.engine import compiled

NAME = "optimal"


def next_uses(ids: Any, distinct: int) -> Any:
    """For each access the time of the next one to the same key, len(ids) if there is none; int32."""
    found = np.empty(len(ids), np.int32)
    _compiled(_next_uses)(ids, np.full(distinct, len(ids), np.int32), found)
    return found


class Optimal:
    """One replay; `feed` takes the accesses in parts, in order."""

    def __init__(self, capacity: int, distinct: int) -> None:
        self._where = np.full(distinct, -1, np.int32)
        self._holds, self._due, self._heap, self._place = (np.zeros(capacity, np.int32) for _ in range(4))
        self._counts = np.zeros(3, np.int64)

    def feed(self, ids: Any, following: Any, victims: Any = None) -> None:
        """following: the part of next_uses for `ids`; victims: as of loops.alike."""
        if victims is None:
            victims = np.zeros(0, np.int32)
        state = self._where, self._holds, self._due, self._heap, self._place
        _compiled(_replay)(*state, self._counts, ids, following, victims)

    @property
    def hits(self) -> int:
        return int(self._counts[0])

    @property
    def evicted(self) -> int:
        return int(self._counts[1])


@cache
def _compiled(function: Any) -> Any:
    return compiled.compiled(function)


# mypy: disable-error-code="no-untyped-def"


def _next_uses(ids, coming, found):
    for t in range(len(ids) - 1, -1, -1):
        k = ids[t]
        found[t] = coming[k]
        coming[k] = t


def _replay(where, holds, due, heap, place, counts, ids, following, victims):
    """A heap of entries, the one used again last at its top; place[i]: where entry i is in it."""
    hits, evicted, taken = counts[0], counts[1], counts[2]
    for t in range(len(ids)):
        k = ids[t]
        i = where[k]
        down = False
        if i >= 0:
            hits += 1
        elif taken < len(heap):
            i = np.int32(taken)
            place[i] = i
            taken += 1
        else:
            i = heap[0]
            where[holds[i]] = -1
            evicted += 1
            down = True
            if len(victims) > 0:
                victims[t] = holds[i]
        where[k] = i
        holds[i] = k
        mine = following[t]
        due[i] = mine
        at = place[i]
        if down:
            while True:
                child = 2 * at + 1
                if child >= taken:
                    break
                if child + 1 < taken and due[heap[child + 1]] > due[heap[child]]:
                    child += 1
                if due[heap[child]] <= mine:
                    break
                heap[at] = heap[child]
                place[heap[at]] = at
                at = child
        else:
            # Of a hit the old time was now, the lowest of all: it can only rise.
            while at > 0:
                parent = (at - 1) // 2
                if due[heap[parent]] >= mine:
                    break
                heap[at] = heap[parent]
                place[heap[at]] = at
                at = parent
        heap[at] = i
        place[i] = at
    counts[0], counts[1], counts[2] = hits, evicted, taken
