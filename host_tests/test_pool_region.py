"""The region pool: small cases worked by hand, a model in a dozen lines, and no byte lost in compaction."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pool_cases
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from field_tables import tables
from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, Locked, NoRoom, PoolFull
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.units import LOCK

META = tables.of("units", "region")

MAKER = pool_cases.add(
    pool_cases.Maker(
        "region",
        make=lambda arena: RegionPool(arena, 4096, 1024),
        four=lambda arena: RegionPool(arena, 256, 4),
        max_size=600,
        max_align=64,
    )
)
TestRegionContract = pool_cases.machine(MAKER, 15)


@pytest.mark.parametrize("case", pool_cases.CASES.values(), ids=pool_cases.CASES)
def test_contract(case: Any) -> None:
    case(MAKER)


def pool_of(total_bytes: int, regions: int = 8, before: int = 0, **options: Any) -> RegionPool:
    """`before`: bytes of the arena in front of it."""
    arena = Arena(total_bytes + before)
    arena.take(before)
    return RegionPool(arena, total_bytes, regions, **options)


def starts(pool: RegionPool, *handles: int) -> list[int]:
    """Where regions begin, from the pool's start."""
    return [pool.offset(h) - pool.base for h in handles]


def fill(pool: RegionPool, handle: int, size: int, seed: int) -> bytes:
    pattern = random.Random(seed).randbytes(size)
    pool.buffer[pool.offset(handle) : pool.offset(handle) + size] = pattern
    return pattern


def holds(pool: RegionPool, handle: int, pattern: bytes) -> bool:
    start = pool.offset(handle)
    return bytes(pool.buffer[start : start + len(pattern)]) == pattern


def test_first_fit_and_gaps_that_are_one_at_once() -> None:
    pool = pool_of(104)
    a, b, c, d = (pool.alloc(n) for n in (10, 20, 30, 38))
    assert starts(pool, a, b, c, d) == [0, 12, 32, 64]  # whole words
    assert (pool.free_bytes(), pool.stats()["internal_waste_bytes"]) == (0, 2 + 0 + 2 + 2)
    assert pool.size(c) == 32
    pool.free(a)
    pool.free(c)
    assert (pool.free_bytes(), pool.largest_free_bytes()) == (44, 32)
    assert pool.stats()["fragmentation"] == pytest.approx(1 - 32 / 44)
    with pytest.raises(PoolFull, match=r"compact\(\) joins them") as full:
        pool.alloc(33)
    assert (full.value.needed, full.value.free, full.value.largest) == (33, 44, 32)
    pool.free(b)
    assert pool.largest_free_bytes() == 64
    assert starts(pool, pool.alloc(33)) == [0]
    assert pool.check() == 0


def test_alignment_in_memory_wherever_the_pool_begins() -> None:
    pool = pool_of(4096, 9, before=20)
    assert pool.base == 20
    pool.alloc(1)
    for align in (1, 2, 4, 8, 32, 64, 1024):
        handle = pool.alloc(24, align)
        assert pool.offset(handle) % align == 0
    assert pool.offset(pool.alloc(4)) == 120  # in the gap that an alignment of 32 has left
    for align in (0, 3, -4, 1 << 17, True, 4.0, None, "4"):
        with pytest.raises(BadArgument, match="align must be a power of two 1..65536"):
            pool.alloc(24, align)
    assert pool.check() == 0


def test_growth_in_place_then_down_then_elsewhere() -> None:
    pool = pool_of(256)
    a, b, c = pool.alloc(40), pool.alloc(24, 8), pool.alloc(40)
    assert starts(pool, a, b, c) == [0, 40, 64]
    pattern = fill(pool, b, 24, 1)
    pool.free(a)
    assert pool.grow(b, 60) == b  # down, over its own bytes
    assert starts(pool, b) == [0]
    assert holds(pool, b, pattern)
    assert pool.grow(b, 64) == b
    assert starts(pool, b) == [0]  # in place
    assert pool.grow(b, 65) == b
    assert starts(pool, b) == [104]  # behind c
    assert holds(pool, b, pattern)
    assert pool.stats()["alloc_count"] == 3
    before = pool.stats()
    with pytest.raises(PoolFull) as full:
        pool.grow(b, 153)
    assert (full.value.needed, full.value.free, full.value.largest) == (153, 148, 84)
    assert pool.stats() == before
    pool.lock(b)
    assert pool.grow(b, 152) == b
    assert pool.stats()["locked_bytes"] == 152
    with pytest.raises(Locked):
        pool.grow(b, 153)
    assert starts(pool, b, c) == [104, 64]
    assert pool.grow(b, 1) == b
    assert pool.size(b) == 152  # never less
    assert pool.check() == 0


def test_compaction_around_a_locked_region() -> None:
    pool = pool_of(400)
    gap, a, gap2, pinned, gap3, b, c, d = (pool.alloc(n) for n in (20, 20, 60, 40, 20, 80, 40, 60))
    assert starts(pool, a, pinned, b, c, d) == [20, 100, 160, 240, 280]
    patterns = {h: fill(pool, h, n, h) for h, n in ((a, 20), (pinned, 40), (b, 80), (c, 40), (d, 60))}
    pool.lock(pinned)
    for h in (gap, gap2, gap3):
        pool.free(h)
    # a slides to 0, which leaves 80 before the locked one: b fits exactly and goes there. c and d slide.
    assert pool.compact() == 20 + 80 + 40 + 60
    assert starts(pool, a, b, pinned, c, d) == [0, 20, 100, 140, 180]
    assert pool.largest_free_bytes() == pool.free_bytes() == 160
    assert pool.stats()["fragmentation"] == 0
    assert all(holds(pool, h, pattern) for h, pattern in patterns.items())
    assert pool.check() == 0
    assert pool.compact() == 0


def test_compaction_in_bounded_steps() -> None:
    pool = pool_of(400)
    hole, a, b, c = (pool.alloc(n) for n in (8, 100, 40, 60))
    pool.free(hole)
    patterns = {h: fill(pool, h, n, h) for h, n in ((a, 100), (b, 40), (c, 60))}
    assert pool.compact(0) == pool.compact(39) == 0
    assert starts(pool, a, b, c) == [8, 108, 148]
    # Under 99 the first stays; behind it there is no gap.
    assert pool.compact(99) == 0
    assert pool.compact(139) == 100  # 40 more are too many
    assert starts(pool, a, b, c) == [0, 108, 148]
    assert pool.compact(60) == 40
    assert pool.compact(60) == 60
    assert pool.compact(60) == 0
    assert starts(pool, a, b, c) == [0, 100, 140]
    assert all(holds(pool, h, pattern) for h, pattern in patterns.items())
    for wrong in (-1, True, 1.5, "4"):
        with pytest.raises(BadArgument, match="limit_bytes"):
            pool.compact(wrong)
    assert pool.check() == 0


def test_what_is_above_the_limit_stays_and_the_rest_closes_up() -> None:
    pool = pool_of(400)
    hole, a, hole2, b, c = (pool.alloc(n) for n in (8, 100, 12, 40, 8))
    pool.free(hole)
    pool.free(hole2)
    patterns = {h: fill(pool, h, n, h) for h, n in ((a, 100), (b, 40), (c, 8))}
    assert pool.compact(60) == 48
    assert starts(pool, a, b, c) == [8, 108, 0]  # c into the gap before a
    assert all(holds(pool, h, pattern) for h, pattern in patterns.items())
    assert pool.check() == 0


def test_growth_in_place_keeps_the_alignment_for_later() -> None:
    pool = pool_of(400)
    hole, a = pool.alloc(100), pool.alloc(8, 64)
    assert pool.grow(a, 30) == a
    pool.free(hole)
    pool.alloc(4)
    pool.compact()
    assert starts(pool, a) == [64]
    assert pool.check() == 0


def test_the_mark_of_a_lock_is_part_of_no_handle() -> None:
    pool = pool_of(100)
    a = pool.alloc(8)
    pool.lock(a)
    for call in (pool.free, pool.offset, pool.unlock, pool.retain, pool.owner):
        with pytest.raises(BadHandle):
            call(a | LOCK)
    with pytest.raises(BadHandle):
        pool.grow(a | LOCK, 20)
    assert pool.is_locked(a)
    assert pool.check() == 0


def test_compaction_keeps_alignments() -> None:
    pool = pool_of(1024, before=12)
    hole, a, b, c = pool.alloc(100), pool.alloc(10, 64), pool.alloc(5, 4), pool.alloc(30, 32)
    pool.free(hole)
    patterns = {h: fill(pool, h, n, h) for h, n in ((a, 10), (b, 5), (c, 30))}
    pool.compact()
    assert [pool.offset(h) for h in (a, b, c)] == [64, 12, 32]  # into the gap that a's alignment leaves
    assert all(holds(pool, h, pattern) for h, pattern in patterns.items())
    assert pool.check() == 0


def test_holders() -> None:
    pool = pool_of(100, 300)
    assert pool.max_holders == 127
    a = pool.alloc(10)
    pool.set_owner(a, 2, 3)
    pool.retain(a)
    assert pool.holders(a) == 2
    header = {"size_bytes": 10, "holders": 2, "locked": False, "layer": 2, "batch": 3}
    assert pool.header(a) == header
    pool.free(a)
    assert pool.stats()["free_count"] == 0
    assert pool.holders(a) == 1
    pool.free(a)
    with pytest.raises(BadHandle):
        pool.free(a)
    with pytest.raises(BadHandle):
        pool.retain(a)
    b = pool.alloc(10)
    for _ in range(126):
        pool.retain(b)
    with pytest.raises(PoolFull, match="at most 127 holders"):
        pool.retain(b)
    assert pool.holders(b) == 127
    assert pool.check() == 0
    for _ in range(127):
        pool.free(b)
    assert pool.stats()["used_blocks"] == 0


def test_as_many_regions_as_entries() -> None:
    pool = pool_of(4000, 5)
    handles = [pool.alloc(4) for _ in range(5)]
    with pytest.raises(PoolFull, match="max_regions 5 are in use"):
        pool.alloc(4)
    out = [0] * 3
    pool.free(handles[2])
    before = pool.stats()
    with pytest.raises(PoolFull, match="room for 1 of 2"):
        pool.alloc_many(2, 4, out)
    assert pool.stats() == before
    pool.alloc_many(1, 4, out)
    assert starts(pool, out[0]) == [8]
    assert pool.check() == 0


def as_many_as_fit(pool: RegionPool, size: int, align: int) -> int:
    made = 0
    with suppress(PoolFull):
        while pool.alloc(size, align) >= 0:
            made += 1
    return made


def test_many_aligned_ones_are_counted_as_they_are_placed() -> None:
    for before in (0, 4, 60):
        for size in (1, 30, 64, 65):
            pool, other = pool_of(1000, 40, before), pool_of(1000, 40, before)
            pool.free_many([pool.alloc(100), pool.alloc(36)], 1)
            other.free_many([other.alloc(100), other.alloc(36)], 1)
            most = as_many_as_fit(other, size, 64)
            out = [0] * (most + 1)
            with pytest.raises(PoolFull, match=f"room for {most} of {most + 1} "):
                pool.alloc_many(most + 1, size, out, 64)
            pool.alloc_many(most, size, out, 64)
            assert pool.check() == 0


@pytest.mark.parametrize("total", [262140, 262144, 1 << 23, (1 << 23) + 4])
def test_units_grow_with_the_pool(total: int) -> None:
    """65535 of them at most; whatever lies before the first whole one is lost."""
    pool = pool_of(total, 4, before=4)
    unit = pool.unit_bytes
    assert unit == {262140: 4, 262144: 8, 1 << 23: 256, (1 << 23) + 4: 256}[total]
    assert pool.base % unit == 0 or unit == 4
    assert 0 <= pool.lost_bytes < 2 * unit
    a = pool.alloc(1)
    assert pool.size(a) - 1 == pool.overhead_bytes(1) == pool.stats()["internal_waste_bytes"] == unit - 1
    b = pool.alloc(1, 65536)
    assert pool.offset(b) == 65536
    c = pool.alloc(pool.total_bytes // 2)
    pattern = fill(pool, c, 999, 5)
    pool.free(a)
    assert pool.compact() == 0  # b is where its alignment wants it, and c too large for the gap before it
    pool.free(b)
    pool.compact()
    assert starts(pool, c) == [0]
    assert holds(pool, c, pattern)
    assert pool.grow(c, pool.total_bytes) == c
    assert pool.free_bytes() == 0
    assert pool.check() == 0


def test_wrong_constructions() -> None:
    arena = Arena(4096)
    for wrong, words in (
        (lambda: RegionPool(None, 64, 4), "arena must be an Arena"),
        (lambda: RegionPool(arena, 3, 4), "total_bytes"),
        (lambda: RegionPool(arena, "64", 4), "total_bytes"),
        (lambda: RegionPool(arena, 64, 0), "max_regions must be 1..4095"),
        (lambda: RegionPool(arena, 64, 4096), "max_regions must be 1..4095"),
        (lambda: RegionPool(arena, 64, True), "max_regions"),
        (lambda: RegionPool(arena, 64, 4, tag=-1), "tag"),
    ):
        with pytest.raises(BadArgument, match=words):
            wrong()
    with pytest.raises(NoRoom):
        RegionPool(arena, 4100, 4)
    assert arena.free_bytes() == 4096


class Model:
    """Regions by handle: [start, size asked, alignment, locked, holders, bytes], sizes in bytes."""

    def __init__(self, total: int, base: int) -> None:
        self.total, self.base, self.live = total, base, {}

    def gaps(self, but: int | None = None) -> list[tuple[int, int]]:
        edges = [(0, 0)]
        edges += sorted((r[0], r[0] + -(-r[1] // 4) * 4) for h, r in self.live.items() if h != but)
        edges += [(self.total, self.total)]
        return [(one[1], other[0]) for one, other in pairwise(edges)]

    def place(self, size: int, align: int, but: int | None = None) -> int | None:
        for low, high in self.gaps(but):
            start = -(-(low + self.base) // align) * align - self.base
            if start + size <= high:
                return start
        return None

    def compact(self) -> None:
        """Each in turn to the lowest place where it fits, if that is below its own."""
        for handle, region in sorted(self.live.items(), key=lambda item: item[1][0]):
            if not region[3]:
                place = self.place(-(-region[1] // 4) * 4, region[2], handle)
                assert place is not None
                region[0] = place


class RegionsAgainstModel(RuleBasedStateMachine):
    @initialize(total=st.integers(1, 100), regions=st.integers(1, 12), before=st.integers(0, 9))
    def make(self, total: int, regions: int, before: int) -> None:
        self.pool = pool_of(4 * total, regions, 4 * before)
        self.model, self.regions, self.seed = Model(4 * total, self.pool.base), regions, 0

    def pick(self, data: Any) -> int | None:
        return data.draw(st.sampled_from(sorted(self.model.live))) if self.model.live else None

    def filled(self, handle: int, size: int) -> bytes:
        self.seed += 1
        return fill(self.pool, handle, size, self.seed)

    @rule(size=st.integers(1, 150), align=st.sampled_from([1, 4, 4, 8, 16, 32]))
    def alloc(self, size: int, align: int) -> None:
        live = self.model.live
        place = self.model.place(size, max(align, 4))
        if place is None or len(live) == self.regions:
            with pytest.raises(PoolFull):
                self.pool.alloc(size, align)
            return
        handle = self.pool.alloc(size, align)
        assert handle not in live
        assert starts(self.pool, handle) == [place]
        live[handle] = [place, size, max(align, 4), False, 1, self.filled(handle, size)]

    @rule(data=st.data())
    def free(self, data: Any) -> None:
        handle = self.pick(data)
        if handle is None:
            return
        region = self.model.live[handle]
        if region[3]:
            with pytest.raises(Locked):
                self.pool.free(handle)
            return
        self.pool.free(handle)
        region[4] -= 1
        if not region[4]:
            del self.model.live[handle]

    @rule(data=st.data())
    def retain(self, data: Any) -> None:
        handle = self.pick(data)
        if handle is not None:
            self.pool.retain(handle)
            self.model.live[handle][4] += 1

    @rule(data=st.data(), lock=st.booleans())
    def lock(self, data: Any, lock: bool) -> None:
        handle = self.pick(data)
        if handle is not None:
            (self.pool.lock if lock else self.pool.unlock)(handle)
            self.model.live[handle][3] = lock

    @rule(data=st.data(), size=st.integers(1, 200))
    def grow(self, data: Any, size: int) -> None:
        handle = self.pick(data)
        if handle is None:
            return
        region = self.model.live[handle]
        start, asked, align, locked = region[:4]
        if size <= asked:
            assert self.pool.grow(handle, size) == handle
            return
        high = next(high for low, high in self.model.gaps(handle) if low <= start < high)
        if start + size > high:
            place = self.model.place(size, align, handle)
            if locked or place is None:
                with pytest.raises(Locked if locked else PoolFull):
                    self.pool.grow(handle, size)
                return
            region[0] = place
        assert self.pool.grow(handle, size) == handle
        assert holds(self.pool, handle, region[5])
        region[1], region[5] = size, self.filled(handle, size)

    @rule(limit=st.none() | st.integers(0, 150))
    def compact(self, limit: int | None) -> None:
        """In any steps; at last with none: then all is where the model says."""
        moved = self.pool.compact(limit)
        assert limit is None or moved <= limit
        if limit is None:
            self.model.compact()
            return
        for handle, region in self.model.live.items():
            place = starts(self.pool, handle)[0]
            assert place == region[0] or (place < region[0] and not region[3])
            assert self.pool.offset(handle) % region[2] == 0
            region[0] = place

    @invariant()
    def sound(self) -> None:
        if not hasattr(self, "pool"):
            return
        pool, live = self.pool, self.model.live
        assert pool.check() == 0
        gaps = [high - low for low, high in self.model.gaps()]
        assert min(gaps) >= 0
        assert pool.free_bytes() == sum(gaps)
        assert pool.largest_free_bytes() == max(gaps)
        stats = pool.stats()
        assert stats["used_bytes"] + pool.free_bytes() == stats["total_bytes"]
        assert stats["used_blocks"] == len(live) == stats["alloc_count"] - stats["free_count"]
        assert stats["locked_blocks"] == sum(region[3] for region in live.values())
        assert stats["internal_waste_bytes"] == sum(-region[1] % 4 for region in live.values())
        for handle, (start, size, _, locked, holders, pattern) in live.items():
            assert starts(pool, handle) == [start]
            assert pool.header(handle)["size_bytes"] == size
            assert (pool.is_locked(handle), pool.holders(handle)) == (locked, holders)
            assert holds(pool, handle, pattern)


TestRegionsAgainstModel = RegionsAgainstModel.TestCase
TestRegionsAgainstModel.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)

CORRUPTIONS = {  # of a pool of 5 entries with two regions, 0..11 and 12..31
    "two regions overlap": lambda p: p._node.__setitem__(1, 2),
    "a region beyond the end": lambda p: p._node.__setitem__(5 + 1, 999),
    "a region without length": lambda p: p._node.__setitem__(5 + 1, 0),
    "a region out of alignment": lambda p: p._node.__setitem__(10 + 1, 3 << 2),
    "a list that goes round": lambda p: p._node.__setitem__(15 + 1, 1 << p._meta[META.BITS] | 0),
    "nobody holds it": lambda p: p._node.__setitem__(15, 1),
    "a region lost": lambda p: p._meta.__setitem__(META.HEAD, 1),
    "an entry lost": lambda p: p._meta.__setitem__(META.SPARE, 3),
    "a free entry in use": lambda p: p._word.__setitem__(2, -1 - p._word[2]),
    "a word of another region": lambda p: p._word.__setitem__(3, p._word[2]),
    "a count of units": lambda p: p._meta.__setitem__(META.FREE, 1),
    "a lock that is not counted": lambda p: p._word.__setitem__(0, p._word[0] | LOCK),
    "bytes asked for": lambda p: p._node.__setitem__(10, 2),
    "an allocation": lambda p: p._meta.__setitem__(META.ALLOCS, 7),
    "a high-water mark": lambda p: p._meta.__setitem__(META.HIGH, 1),
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_the_checker_sees(corrupt: Any) -> None:
    pool = pool_of(100, 5)
    assert starts(pool, pool.alloc(12), pool.alloc(20)) == [0, 12]
    assert pool.check() == 0
    corrupt(pool)
    assert pool.check() > 0


HEAP = """
import gc, micropython
from array import array
from mpy_kv.arena import Arena
from mpy_kv.pools.region import RegionPool
pool = RegionPool(Arena(100 * 64), 100 * 64, 20)
out = array("i", [0] * 8)
def operations(count):
    while count:
        count -= 1
        a = pool.alloc(100)
        b = pool.alloc(3, 32)
        c = pool.alloc(64)
        d = pool.alloc(77)
        c = pool.grow(c, 500)
        d = pool.grow(d, 300)
        d = pool.grow(d, 400)
        pool.retain(a)
        pool.holders(a)
        pool.free(a)
        pool.lock(c)
        pool.set_owner(c, 65535, 65535)
        pool.is_locked(c)
        pool.offset(b)
        pool.size(b)
        pool.free(a)
        pool.compact(200)
        pool.unlock(c)
        pool.compact()
        pool.free_bytes()
        pool.largest_free_bytes()
        pool.overhead_bytes(77)
        pool.alloc_many(8, 70, out, 16)
        pool.free_many(out, 8)
        pool.free(c)
        pool.free(d)
        pool.free(b)
operations(2)
gc.disable()
micropython.heap_lock()
operations(2)
micropython.heap_unlock()
before = after = 0
before = micropython.mem_total()
operations(50)
after = micropython.mem_total()
control = bytearray(64)
print(after - before, micropython.mem_total() > after, pool.check(), pool.free_bytes() == pool.total_bytes)
"""


def test_nothing_is_allocated(upy: Any) -> None:
    """With the heap locked, and then by mem_total, which sees frames that the lock lets pass."""
    assert upy.run(HEAP).split() == ["0", "True", "0", "True"]
