"""The policies by name: how the host makes one, and how its transitions are called.

A policy's transitions take its arrays in an order of their own; here it is said once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from kvlab.engine import compiled
from kvlab.replay.prefetch import prefetch
from mpy_kv import eviction

WIDTH = 7

Transitions = dict[str, Any]


@dataclass(frozen=True)
class Compiled:
    """touch(*state, n, i), insert(*state, n, i, key), evict(*state, n) -> i, remove(*state, n, i).

    soon(*state, n, i, key, step), step 1 and later 2: asks for the memory that an access to that key will go
    to, in entry i or, for i -1, in none. It changes nothing; 2 needs what 1 asked for.
    """

    touch: Callable[..., Any]
    insert: Callable[..., Any]
    evict: Callable[..., Any]
    remove: Callable[..., Any]
    soon: Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """A policy of the catalogue.

    arrays: names of those that its transitions work on, at most WIDTH; where a + stands between, they lie
    beside each other, an item of each in a row. adapters: of the compiled transitions of its modules makes
    what `Compiled` says. beside: modules with further transitions that its methods call; their names come
    first, the module's own override them.
    """

    name: str
    arrays: str
    adapters: Callable[[Transitions], tuple[Any, ...]]
    beside: tuple[str, ...] = ()

    @property
    def modules(self) -> tuple[str, ...]:
        files = (*self.beside, eviction.POLICIES[self.name][0])
        return tuple(f"mpy_kv.eviction.{file}" for file in files)

    def state(self, policy: Any) -> tuple[Any, ...]:
        """What compiled functions take: copies of the policy's arrays, and empty ones up to WIDTH.

        Indexes in 32 bits, which may be added and compared as the device does; bytes stay bytes. What is read
        together comes from memory together: with a million entries most of the time goes there.
        """
        arrays = [
            each
            for group in self.arrays.split()
            for each in _beside([getattr(policy, name) for name in group.split("+")])
        ]
        return (*arrays, *(np.zeros(0, np.int32) for _ in range(WIDTH - len(arrays))))

    def compiled(self) -> Compiled:
        return _compiled(self)


def make(name: str, entries: int, **options: Any) -> Any:
    """The policy object of mpy_kv; BadArgument as it raises it."""
    return eviction.make(name, entries, **options)


def _beside(arrays: list[Any]) -> list[Any]:
    """Copies of them; of several each is a column of one table, whose rows fill a power of two of bytes."""
    if len(arrays) == 1:
        return [np.array(arrays[0], np.uint8 if isinstance(arrays[0], bytearray) else np.int32)]
    width = 1 << (len(arrays) - 1).bit_length()
    table = np.zeros((max(map(len, arrays)), width), np.int32)
    columns = [table[: len(held), at] for at, held in enumerate(arrays)]
    for column, held in zip(columns, arrays, strict=True):
        column[:] = held
    return columns


@cache
def _compiled(entry: Entry) -> Compiled:
    native: Transitions = {}
    for module in entry.modules:
        native.update(compiled.transitions(module))
    return Compiled(*map(compiled.adapter, entry.adapters(native)))


# Arguments of the adapters below: the arrays in order, the rest of WIDTH, n, an entry, its key.
# mypy: disable-error-code="no-untyped-def"


def _nothing_soon(_a, _b, _c, _d, _e, _f, _g, _n, _i, _key, _step):
    return 0


def _links_soon(_a, nxt, prv, _d, _e, _f, _g, _n, i, _key, step):
    """An entry's links, then those of its neighbours."""
    if i >= 0:
        if step == 1:
            prefetch(nxt, i)
        else:
            prefetch(nxt, nxt[i])
            prefetch(nxt, prv[i])
    return 0


def _ghosts_soon(meta, nxt, _c, _d, _e, ghost, chain, n, i, key, step):
    """Of a key that will be looked for: its bucket, then its first ghost; the victim's links, and the bucket
    of a ghost about to be forgotten."""
    if i >= 0:
        return 0
    bucket = meta[7] + (key & meta[8])
    if step == 1:
        prefetch(chain, bucket)
        oldest = meta[9] + 16
        if oldest < meta[7]:
            prefetch(chain, meta[7] + (ghost[oldest] & meta[8]))
    else:
        prefetch(chain, chain[bucket])
        first = nxt[n]
        prefetch(nxt, nxt[first])
    return 0


def _lru(native: Transitions) -> tuple[Any, ...]:
    use, put, take, drop = native["touch"], native["insert"], native["evict"], native["remove"]

    def touch(meta, nxt, prv, _d, _e, _f, _g, n, i):
        return use(nxt, prv, n, i)

    def insert(meta, nxt, prv, _d, _e, _f, _g, n, i, key):
        return put(meta, nxt, prv, n, i)

    def evict(meta, nxt, prv, _d, _e, _f, _g, n):
        return take(meta, nxt, prv, n)

    def remove(meta, nxt, prv, _d, _e, _f, _g, n, i):
        return drop(meta, nxt, prv, n, i)

    return touch, insert, evict, remove, _links_soon


def _fifo(native: Transitions) -> tuple[Any, ...]:
    use, put, take, drop = native["touch"], native["insert"], native["evict"], native["remove"]

    def touch(meta, nxt, prv, state, _e, _f, _g, n, i):
        return use(state, n, i)

    def insert(meta, nxt, prv, state, _e, _f, _g, n, i, key):
        return put(meta, nxt, prv, state, n, i)

    def evict(meta, nxt, prv, state, _e, _f, _g, n):
        return take(meta, nxt, prv, state, n)

    def remove(meta, nxt, prv, state, _e, _f, _g, n, i):
        return drop(meta, nxt, prv, state, n, i)

    return touch, insert, evict, remove, _nothing_soon


def _sieve(native: Transitions) -> tuple[Any, ...]:
    touch, insert, evict, *_ = _fifo(native)
    leave, drop = native["leave"], native["remove"]

    def remove(meta, nxt, prv, state, _e, _f, _g, n, i):
        leave(meta, nxt, state, n, i)
        return drop(meta, nxt, prv, state, n, i)

    return touch, insert, evict, remove, _nothing_soon


def _lfu(native: Transitions) -> tuple[Any, ...]:
    use, put, take, drop = native["touch"], native["insert"], native["evict"], native["remove"]

    def touch(meta, nxt, prv, rank, _e, _f, _g, n, i):
        return use(nxt, prv, rank, n, meta[6], i)

    def insert(meta, nxt, prv, rank, _e, _f, _g, n, i, key):
        return put(meta, nxt, prv, rank, n, i)

    def evict(meta, nxt, prv, rank, _e, _f, _g, n):
        return take(meta, nxt, prv, rank)

    def remove(meta, nxt, prv, rank, _e, _f, _g, n, i):
        return drop(meta, nxt, prv, rank, n, i)

    return touch, insert, evict, remove, _links_soon


def _hybrid(native: Transitions) -> tuple[Any, ...]:
    touch = _lfu(native)[0]
    put, drop = native["insert"], native["remove"]
    admit, dismiss, take = native["admit"], native["dismiss"], native["evict"]

    def insert(meta, nxt, prv, rank, newer, older, fresh, n, i, key):
        if put(meta, nxt, prv, rank, n, i) < 0:
            return -1
        return admit(meta, newer, older, fresh, n, i)

    def evict(meta, nxt, prv, rank, newer, older, fresh, n):
        return take(meta, nxt, prv, rank, newer, older, fresh, n)

    def remove(meta, nxt, prv, rank, newer, older, fresh, n, i):
        if drop(meta, nxt, prv, rank, n, i) < 0:
            return -1
        return dismiss(meta, newer, older, fresh, n, i)

    return touch, insert, evict, remove, _links_soon


def _s3fifo(native: Transitions) -> tuple[Any, ...]:
    use, put, take, drop = native["touch"], native["insert"], native["evict"], native["remove"]
    leave = native["leave"]

    def touch(meta, nxt, prv, state, key, ghost, chain, n, i):
        return use(state, n, i)

    def insert(meta, nxt, prv, state, keys, ghost, chain, n, i, key):
        return put(meta, nxt, prv, state, keys, ghost, chain, n, i, key)

    def evict(meta, nxt, prv, state, key, ghost, chain, n):
        return take(meta, nxt, prv, state, key, ghost, chain, n)

    def remove(meta, nxt, prv, state, key, ghost, chain, n, i):
        leave(meta, state, n, i)
        return drop(meta, nxt, prv, state, n, i)

    return touch, insert, evict, remove, _ghosts_soon


POLICIES = {
    entry.name: entry
    for entry in (
        Entry("fifo", "_meta _nxt+_prv _state", _fifo),
        Entry("lru", "_meta _nxt+_prv", _lru),
        Entry("lfu", "_meta _nxt+_prv+_rank", _lfu),
        Entry("hybrid", "_meta _nxt+_prv+_rank _newer+_older _fresh", _hybrid, ("lfu",)),
        Entry("sieve", "_meta _nxt+_prv _state", _sieve, ("fifo",)),
        Entry("s3fifo", "_meta _nxt+_prv _state _key _ghost+_chain", _s3fifo, ("fifo",)),
    )
}
