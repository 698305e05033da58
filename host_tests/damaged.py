"""Structures in the middle of their life, and every word of theirs changed, one at a time."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import lives
import policies as device
from paged_cases import LAYERS, requests_of, run, step

from mpy_kv import eviction
from mpy_kv.admission import admission as admission_module
from mpy_kv.admission.admission import Admission
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.arena import Arena
from mpy_kv.errors import KVError
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool
from mpy_kv.sequence import Sequence

LOCK = 1 << 29
CACHES = ("ring", "whole", "mixed", "sealed", "window-lru", "heavy-hitters")
# What check() does not look at: contents, owners, what the next call is told, parameters of kernels.
UNREAD = (
    "buffer", "_layer", "_batch", "_task", "_prompt", "_output", "_chosen", "admitted", "preempted", "codes",
    "locked", "priority", "owner", "root", "at", "ids",
    "salt_serial", "salt_used", "pin_limit", "_key", "_s", "_again",
    "_opened_k", "_opened_v", "_mark", "_rows", "_e", "start",
)  # fmt: skip
SEQUENCES = ("length", "_gone")


def _used(pool: Any, sizes: tuple[int, ...], seed: int = 4) -> Any:
    """Blocks of those sizes in use, freed, locked; one with an alignment, one that has grown."""
    rng = random.Random(seed)
    live: list[int] = []
    for turn in range(60):
        try:
            if live and turn < 50 and rng.random() < 0.45:
                pool.free(live.pop(rng.randrange(len(live))))
            else:
                live.append(pool.alloc(rng.choice(sizes), rng.choice((4, 4, 8))))
        except KVError:
            continue
    for handle in live[-2:]:
        pool.free(handle)
    live = live[:-2]
    for handle in live[::3]:
        pool.lock(handle)
    live[1] = pool.grow(live[1], pool.size(live[1]))
    assert len(live) >= 4, len(live)
    return pool


def fixed() -> Any:
    return _used(FixedPool(Arena(9 * 64), 9, 64, tag=3, align=8), (64, 40, 1))


def slab() -> Any:
    return _used(SlabPool(Arena(8 * 256), 256, 8, (16, 64, 120), tag=3), (1, 16, 50, 64, 120))


def slab_region() -> Any:
    pool = SlabRegionPool(Arena(10 * 256), 256, 10, (16, 64, 120), 4, tag=3)
    one, two = pool.open_region(4, 2, 7), pool.open_region(3, 3, 9)
    pool.retain_region(two)
    pool.close_region(pool.open_region(1))
    for region, size in ((one, 16), (one, 60), (two, 100), (two, 100), (two, 100), (two, 3)):
        pool.alloc(size, region=region)
    pool.lock(pool.alloc(64, region=one))
    return _used(pool, (1, 16, 64))


def buddy() -> Any:
    return _used(BuddyPool(Arena(23 * 64), 23 * 64, tag=3), (1, 60, 64, 100, 200, 256))


def region() -> Any:
    pool = RegionPool(Arena(1200), 1200, 12, tag=3)
    pool.retain(pool.alloc(30, 32))
    return _used(pool, (1, 30, 64, 100, 200))


def admission() -> Any:
    admission_module._serial = 3  # the mark in its tickets
    queue = Admission(20, 4, 9, 3)
    for k in range(8):
        queue.submit(k, 4 + k, 8 + k, k % 3)
        if k == 4:
            queue.step()
    queue.finish(queue.admitted[0], 3)
    queue.step()
    return queue


def predictor() -> Any:
    one = LengthPredictor(tasks=4, memory=20, least=2)
    for k in range(30):
        one.observe((k * k) % 3, 1 + k * k)
    return one


def requests() -> Any:
    """Blocks of every kind: shared, of a share, pinned, reusable with and without children, free."""
    all_of = requests_of(12, max_requests=3, max_pins=1)
    for tokens in ([*range(9), 10, 11, 12, 13], [*range(9), 20, 21, 22, 23]):
        request = all_of.open(tokens=tokens)
        run(request, tokens)
        request.close()
    one = all_of.open(reserve_tokens=16, pin_tokens=8)
    run(one, list(range(20, 29)))
    all_of.pin(one, 8)
    two = one.fork()
    step(two, 50)
    step(two, 51)
    return all_of


def cache(name: str) -> Callable[[], Any]:
    def made() -> Any:
        one = lives.LIVES[name][0](3)
        assert isinstance(one, lives.Steps)
        for _ in lives.Steps.lines(one, 40):
            pass
        one.cache.abort()
        one.cache.rollback(1)
        one.step(1, LAYERS)
        return one.cache

    return made


class Own:
    """Numbers that are attributes of a structure, as words of an array."""

    def __init__(self, made: Any, names: tuple[str, ...]) -> None:
        self.made, self.names = made, names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> int:
        return int(getattr(self.made, self.names[i]))

    def __setitem__(self, i: int, word: int) -> None:
        setattr(self.made, self.names[i], word)


def policy(name: str, **options: int) -> Callable[[], Any]:
    def made() -> Any:
        n = 8
        one = eviction.make(name, n, **options)
        cache = device.Cache(one, n)
        dice = device.Dice(5)
        for _ in range(120):
            cache.access(dice.below(3 * n))
            cache.disturb(dice.below(9), dice.below(n))
        for i in (1, 4):
            one.protect(i)
        one.evict()
        one.remove(next(i for i in range(n) if one.remove(i) == 0))
        return one

    return made


MADE: dict[str, Callable[[], Any]] = {
    "fixed": fixed,
    "slab": slab,
    "slab+region": slab_region,
    "buddy": buddy,
    "region": region,
    "admission": admission,
    "predictor": predictor,
    "requests": requests,
    **{name: policy(name) for name in eviction.POLICIES},
    "hybrid 3": policy("hybrid", window=3),
    "s3fifo 3": policy("s3fifo", small=3, ghosts=3),
    **{f"cache: {name}": cache(name) for name in CACHES},
}


def words_of(made: Any) -> dict[str, Any]:
    """Every array or list of ints, by name."""
    found: dict[str, Any] = {}
    ledger = getattr(made, "_ledger", None)
    for owner in (made, ledger, getattr(ledger, "blocks", None), getattr(made, "placement", None)):
        if not hasattr(owner, "__dict__") or callable(owner):
            continue
        for name, value in vars(owner).items():
            if (
                isinstance(value, (array, bytearray))
                and getattr(value, "typecode", "B") in "BHi"
                or type(value) is list
                and value
                and all(type(x) is int for x in value)
            ):
                found[name] = value
            elif name == "worth":
                found |= {f"{name}[{at}]": each for at, each in enumerate(value)}
    if isinstance(made, Sequence):
        found["own"] = Own(made, SEQUENCES)
        found["placement"] = Own(made.placement, ("floor",))
        if hasattr(made, "at"):
            found["slots"] = made.at
    return {name: value for name, value in found.items() if name not in UNREAD}


def changes(word: int, large: bool) -> Iterator[int]:
    """What stands in place of a word: its neighbours, the opposite state, locked, what none is. large: also
    what lets a count of words grow beyond them."""
    for new in sorted(
        {word + 1, word - 1, word ^ 1, word ^ 8, 0, 3} | ({-1 - word, word ^ LOCK} if large else set())
    ):
        if new != word:
            yield new


def damages(made: Any) -> Iterator[tuple[str, int, int, int]]:
    """(array, index, word, what stands there now), one after the other; put right again after each."""
    for name, words in words_of(made).items():
        for i in range(len(words)):
            was = words[i]
            small = ("_doors", "own", "placement", "plan", "_turn")
            for now in changes(was, "meta" not in name and name not in small):
                try:
                    words[i] = now
                except (OverflowError, ValueError):
                    continue
                yield name, i, was, now
                words[i] = was
