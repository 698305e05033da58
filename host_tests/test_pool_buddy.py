"""The buddy pool: small cases worked by hand, and a model that knows only which units are in use."""

from __future__ import annotations

import random
from typing import Any

import pool_cases
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from field_tables import tables
from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, Locked, NoRoom, PoolFull
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.units import LOCK

META = tables.of("units", "buddy")

UNIT = 64
MAKER = pool_cases.add(
    pool_cases.Maker(
        "buddy",
        make=lambda arena: BuddyPool(arena, 63 * 64, 16, max_align=64),
        four=lambda arena: BuddyPool(arena, 256),
        max_size=600,
        max_align=64,
    )
)
TestBuddyContract = pool_cases.machine(MAKER, 15)


@pytest.mark.parametrize("case", pool_cases.CASES.values(), ids=pool_cases.CASES)
def test_contract(case: Any) -> None:
    case(MAKER)


def pool_of(units: int, unit: int = UNIT, **options: Any) -> BuddyPool:
    return BuddyPool(Arena(units * unit), units * unit, unit, **options)


def at(pool: BuddyPool, handle: int) -> tuple[int, int]:
    """(first unit, units) of a block."""
    return (pool.offset(handle) - pool.base) // pool.min_block, pool.size(handle) // pool.min_block


def test_seven_units_are_roots_of_4_2_1() -> None:
    pool = pool_of(7)
    assert (pool.total_bytes, pool.max_block_bytes, pool.largest_free_bytes()) == (448, 256, 256)
    three = pool.alloc(3 * UNIT)
    assert at(pool, three) == (0, 4)  # 4 taken for 3
    assert pool.stats()["internal_waste_bytes"] == pool.overhead_bytes(3 * UNIT) == UNIT
    assert pool.largest_free_bytes() == 2 * UNIT
    two = pool.alloc(2 * UNIT)
    assert at(pool, two) == (4, 2)
    one = pool.alloc(1)
    assert at(pool, one) == (6, 1)
    assert pool.free_bytes() == 0
    assert pool.stats()["internal_waste_bytes"] == UNIT + UNIT - 1
    with pytest.raises(PoolFull) as full:
        pool.alloc(1)
    assert (full.value.needed, full.value.free, full.value.largest) == (1, 0, 0)
    # Three free units in a row, of two roots: they are not one block, and never become one of 4.
    pool.free(two)
    pool.free(one)
    assert (pool.free_bytes(), pool.largest_free_bytes()) == (3 * UNIT, 2 * UNIT)
    with pytest.raises(PoolFull) as full:
        pool.alloc(3 * UNIT)
    assert (full.value.free, full.value.largest) == (3 * UNIT, 2 * UNIT)
    assert pool.stats()["fragmentation"] == pytest.approx(1 / 3)
    pool.free(three)
    assert pool.largest_free_bytes() == 4 * UNIT
    assert pool.check() == 0


@pytest.mark.parametrize("units", [1, 2, 3, 5, 6, 7, 8, 9, 31, 32, 33, 100, 1023, 1025])
def test_as_many_blocks_as_units_and_back_to_the_roots(units: int) -> None:
    pool = pool_of(units, 4)
    fresh = pool.stats()
    assert fresh["max_block_bytes"] == 4 << units.bit_length() - 1 == fresh["largest_free_bytes"]
    handles = [pool.alloc(1) for _ in range(units)]
    assert sorted(pool.offset(h) for h in handles) == [pool.base + 4 * i for i in range(units)]
    assert max(handles) < 1 << 29
    assert pool.check() == 0
    random.Random(units).shuffle(handles)
    for handle in handles:
        pool.free(handle)
    assert pool.check() == 0
    assert pool.largest_free_bytes() == pool.max_block_bytes
    # All roots are whole again: one block of each is had, largest first.
    roots = [1 << k for k in reversed(range(units.bit_length())) if units >> k & 1]
    assert [at(pool, pool.alloc(4 * root))[1] for root in roots] == roots
    assert pool.free_bytes() == 0


def test_a_block_comes_from_the_smallest_that_is_free() -> None:
    pool = pool_of(16)
    a, b, c = pool.alloc(UNIT), pool.alloc(UNIT), pool.alloc(4 * UNIT)
    assert [at(pool, h) for h in (a, b, c)] == [(0, 1), (1, 1), (4, 4)]
    pool.free(a)
    assert at(pool, pool.alloc(UNIT)) == (0, 1)  # not from 2..3, nor from 8..15
    assert at(pool, pool.alloc(2 * UNIT)) == (2, 2)


def test_what_is_below_a_unit_stays_in_the_arena() -> None:
    arena = Arena(1000)
    pool = BuddyPool(arena, 1000, 64)
    assert (pool.total_bytes, pool.lost_bytes, arena.free_bytes()) == (960, 40, 40)
    assert pool.stats()["lost_bytes"] == 40


def test_alignment_is_the_size_of_a_block() -> None:
    arena = Arena(1 << 13)
    arena.take(20)
    pool = BuddyPool(arena, 4096, 16, max_align=1024)
    assert pool.base % 1024 == 0
    for align in (1, 2, 4, 8, 16, 32, 64, 256, 1024):
        handle = pool.alloc(24, align)
        assert pool.offset(handle) % align == 0
        assert pool.size(handle) == max(32, align)
    with pytest.raises(BadArgument, match="power of two 1..1024, got 2048"):
        pool.alloc(24, 2048)
    assert pool.check() == 0


def test_the_start_is_aligned_as_far_as_the_arena_has_room() -> None:
    arena = Arena(1024 + 16)
    arena.take(16)
    pool = BuddyPool(arena, 1024)
    assert (pool.base, pool.max_align) == (16, 16)
    assert pool.offset(pool.alloc(8, 16)) % 16 == 0
    with pytest.raises(BadArgument, match="1..16"):
        pool.alloc(8, 32)
    arena = Arena(1024 + 16)
    arena.take(16)
    with pytest.raises(NoRoom):
        BuddyPool(arena, 1024, max_align=64)
    assert arena.free_bytes() == 1024


def fill(pool: BuddyPool, handle: int, size: int, seed: int) -> bytes:
    pattern = random.Random(seed).randbytes(size)
    pool.buffer[pool.offset(handle) : pool.offset(handle) + size] = pattern
    return pattern


def holds(pool: BuddyPool, handle: int, pattern: bytes) -> bool:
    start = pool.offset(handle)
    return bytes(pool.buffer[start : start + len(pattern)]) == pattern


def test_growth_in_place_and_by_moving() -> None:
    pool = pool_of(16)
    a = pool.alloc(10)
    pattern = fill(pool, a, 10, 1)
    pool.set_owner(a, 65535, 7)
    assert pool.grow(a, 64) == a  # its own bytes are enough
    assert pool.grow(a, 65) == a  # 1 free buddy to the right
    assert pool.grow(a, 500) == a  # 2 and 4 more
    assert at(pool, a) == (0, 8)
    assert pool.stats()["internal_waste_bytes"] == 12
    b = pool.alloc(1)
    assert at(pool, b) == (8, 1)
    with pytest.raises(PoolFull) as full:  # its right is in use, and nothing else has 16
        pool.grow(a, 513)
    assert (full.value.needed, full.value.largest) == (513, 4 * UNIT)
    pool.free(a)
    # A right half moves, however free the left one is.
    left, right = pool.alloc(1), pool.alloc(50)
    assert (at(pool, left), at(pool, right)) == ((9, 1), (10, 1))
    right2 = pool.alloc(33)
    assert at(pool, right2) == (11, 1)
    pool.free(right)
    pattern = fill(pool, right2, 33, 2)
    pool.set_owner(right2, 3, 4)
    before = pool.stats()
    moved = pool.grow(right2, 70)
    assert moved != right2
    assert at(pool, moved)[1] == 2
    assert holds(pool, moved, pattern)
    assert pool.owner(moved) == (3, 4)
    with pytest.raises(BadHandle):
        pool.free(right2)
    stats = pool.stats()
    assert stats["alloc_count"] == before["alloc_count"] + 1
    assert stats["used_blocks"] == before["used_blocks"]
    assert pool.check() == 0


def test_a_right_half_never_grows_in_place() -> None:
    pool = pool_of(8)
    a, b, c, d = (pool.alloc(1) for _ in range(4))
    pool.free(c)
    moved = pool.grow(b, 100)  # unit 2, free and as large, is no buddy of unit 1
    assert at(pool, moved) == (4, 2)
    assert pool.check() == 0
    assert [at(pool, h) for h in (a, d)] == [(0, 1), (3, 1)]


@pytest.mark.parametrize("which", [1, 3, 5])
def test_growth_takes_a_buddy_from_anywhere_in_its_list(which: int) -> None:
    pool = pool_of(8)
    handles = [pool.alloc(1) for _ in range(8)]
    for k in (1, 3, 5):
        pool.free(handles[k])
    assert pool.grow(handles[which - 1], 100) == handles[which - 1]
    assert pool.check() == 0
    assert {pool.offset(pool.alloc(1)) // UNIT for _ in range(2)} == {1, 3, 5} - {which}
    assert pool.check() == 0


def test_owners_and_contents_move_to_the_last_byte() -> None:
    pool = pool_of(4)
    pool.alloc(1)
    handle = pool.alloc(63)
    pattern = fill(pool, handle, 63, 9)
    for owner in ((65535, 65535), (1, 16384), (40000, 32768)):
        pool.set_owner(handle, *owner)
        assert pool.owner(handle) == owner
    moved = pool.grow(handle, 65)
    assert moved != handle
    assert pool.owner(moved) == (40000, 32768)
    assert holds(pool, moved, pattern)
    assert pool.check() == 0


def test_growth_keeps_the_alignment() -> None:
    pool = BuddyPool(Arena(1 << 12), 1 << 12, 16, max_align=512)
    pool.alloc(1)
    a = pool.alloc(24, 256)
    pattern = fill(pool, a, 24, 3)
    pool.alloc(256 * 3)  # no room to the right
    for size in (200, 300, 1000):
        a = pool.grow(a, size)
        assert pool.offset(a) % 256 == 0
        assert holds(pool, a, pattern)
    assert pool.check() == 0


def test_a_locked_block_grows_in_place_only() -> None:
    pool = pool_of(8)
    a = pool.alloc(1)
    pool.lock(a)
    assert pool.grow(a, 100) == a
    assert pool.stats()["locked_bytes"] == 2 * UNIT
    pool.alloc(2 * UNIT)
    before = pool.stats()
    with pytest.raises(Locked):
        pool.grow(a, 129)
    assert pool.stats() == before
    with pytest.raises(PoolFull) as full:
        pool.alloc(8 * UNIT)
    assert full.value.pinned == 2 * UNIT
    pool.unlock(a)
    assert at(pool, pool.grow(a, 129)) == (4, 4)
    assert pool.check() == 0


def test_the_mark_of_a_lock_is_part_of_no_handle() -> None:
    pool = pool_of(8)
    a = pool.alloc(8)
    pool.lock(a)
    for call in (pool.free, pool.offset, pool.unlock, pool.owner):
        with pytest.raises(BadHandle):
            call(a | LOCK)
    with pytest.raises(BadHandle):
        pool.grow(a | LOCK, 100)
    assert pool.is_locked(a)
    assert pool.check() == 0


def test_many_are_had_or_none() -> None:
    pool = pool_of(7)
    out = [0] * 8
    before, words = pool.stats(), list(pool._word)
    with pytest.raises(PoolFull, match="room for 3 of 4 blocks"):
        pool.alloc_many(4, 2 * UNIT, out)
    assert (pool.stats(), pool._word, out) == (before, words, [0] * 8)
    pool.alloc_many(3, 2 * UNIT, out)
    assert sorted(at(pool, h) for h in out[:3]) == [(0, 2), (2, 2), (4, 2)]
    pool.free_many(out, 3)
    assert pool.check() == 0
    assert pool.largest_free_bytes() == 4 * UNIT


def test_wrong_constructions() -> None:
    arena = Arena(4096)
    for wrong, words in (
        (lambda: BuddyPool(None, 64), "arena must be an Arena"),
        (lambda: BuddyPool(arena, 0), "total_bytes"),
        (lambda: BuddyPool(arena, True), "total_bytes"),
        (lambda: BuddyPool(arena, 64.0), "total_bytes"),
        (lambda: BuddyPool(arena, 63), "min_block must be a power of two from 4 to total_bytes 63"),
        (lambda: BuddyPool(arena, 4096, 48), "min_block"),
        (lambda: BuddyPool(arena, 4096, 2), "min_block"),
        (lambda: BuddyPool(arena, 4096, max_align=3), "max_align"),
        (lambda: BuddyPool(arena, 4096, tag=8), "tag"),
        (lambda: BuddyPool(arena, (1 << 20) * 4 + 4, 4), "raise min_block"),
    ):
        with pytest.raises(BadArgument, match=words):
            wrong()
    with pytest.raises(NoRoom):
        BuddyPool(arena, 8192)
    assert arena.free_bytes() == 4096


def free_blocks(units: int, used: dict[int, int]) -> list[tuple[int, int]]:
    """The free blocks (length, start) of a pool in which blocks {start: length} are in use: each root halved
    until a piece is all free or all in use."""
    taken = {u for start, length in used.items() for u in range(start, start + length)}
    found = []

    def look(start: int, length: int) -> None:
        inside = [u in taken for u in range(start, start + length)]
        if not any(inside):
            found.append((length, start))
        elif length > 1 and not all(inside):
            look(start, length // 2)
            look(start + length // 2, length // 2)

    start = 0
    for k in reversed(range(units.bit_length())):
        if units >> k & 1:
            look(start, 1 << k)
            start += 1 << k
    return sorted(found)


class BuddyAgainstUnits(RuleBasedStateMachine):
    """After every operation: the pool's free blocks are the model's, every live block holds its bytes."""

    @initialize(units=st.integers(1, 40))
    def make(self, units: int) -> None:
        self.pool = pool_of(units, 8)
        self.units, self.live, self.seed = units, {}, 0

    def used(self) -> dict[int, int]:
        return dict(at(self.pool, h) for h in self.live)

    def pick(self, data: Any) -> int | None:
        return data.draw(st.sampled_from(sorted(self.live))) if self.live else None

    def note(self, handle: int, size: int) -> None:
        self.seed += 1
        self.live[handle] = (fill(self.pool, handle, size, self.seed), self.pool.is_locked(handle))

    @rule(size=st.integers(1, 330), align=st.sampled_from([1, 4, 8, 16, 64]))
    def alloc(self, size: int, align: int) -> None:
        need = 1
        while need * 8 < max(size, align):
            need *= 2
        fit = [b for b in free_blocks(self.units, self.used()) if b[0] >= need]
        if not fit:
            with pytest.raises(PoolFull):
                self.pool.alloc(size, align)
            return
        handle = self.pool.alloc(size, align)
        assert handle not in self.live
        start, length = at(self.pool, handle)
        assert length == need
        assert (start * 8) % align == 0
        # Inside of one of the smallest that fit.
        assert any(s <= start < s + n for n, s in fit if n == fit[0][0])
        self.note(handle, size)

    @rule(data=st.data())
    def free(self, data: Any) -> None:
        handle = self.pick(data)
        if handle is None:
            return
        if self.live[handle][1]:
            with pytest.raises(Locked):
                self.pool.free(handle)
            return
        self.pool.free(handle)
        del self.live[handle]
        with pytest.raises(BadHandle):
            self.pool.free(handle)

    @rule(data=st.data(), lock=st.booleans())
    def lock(self, data: Any, lock: bool) -> None:
        handle = self.pick(data)
        if handle is not None:
            (self.pool.lock if lock else self.pool.unlock)(handle)
            self.live[handle] = (self.live[handle][0], lock)

    @rule(data=st.data(), size=st.integers(1, 330))
    def grow(self, data: Any, size: int) -> None:
        handle = self.pick(data)
        if handle is None:
            return
        pattern, locked = self.live[handle]
        place, before = at(self.pool, handle), self.pool.stats()
        refused: type[Exception] | None = None
        try:
            new = self.pool.grow(handle, size)
        except (PoolFull, Locked) as error:
            refused = type(error)
        if refused:
            assert (refused is Locked) == locked
            assert self.pool.stats() == before
            assert at(self.pool, handle) == place
            return
        assert not locked or new == handle
        assert (new == handle) == (at(self.pool, new)[0] == place[0])
        assert self.pool.size(new) >= max(size, len(pattern))
        assert holds(self.pool, new, pattern)
        del self.live[handle]
        self.note(new, max(size, len(pattern)))

    @invariant()
    def sound(self) -> None:
        if not hasattr(self, "pool"):
            return
        assert self.pool.check() == 0
        free = free_blocks(self.units, self.used())
        assert self.pool.free_bytes() == 8 * sum(n for n, _ in free)
        assert self.pool.largest_free_bytes() == 8 * max([n for n, _ in free], default=0)
        stats = self.pool.stats()
        assert stats["used_bytes"] + self.pool.free_bytes() == stats["total_bytes"]
        assert stats["used_blocks"] == len(self.live) == stats["alloc_count"] - stats["free_count"]
        assert stats["locked_blocks"] == sum(locked for _, locked in self.live.values())
        asked = sum(len(pattern) for pattern, _ in self.live.values())
        assert stats["internal_waste_bytes"] == stats["used_bytes"] - asked
        for handle, (pattern, _) in self.live.items():
            assert holds(self.pool, handle, pattern)


TestBuddyAgainstUnits = BuddyAgainstUnits.TestCase
TestBuddyAgainstUnits.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)


def unmerge(pool: BuddyPool) -> None:
    """The root 0..3 as two free halves, everything else as it should be."""
    for start, after, before in ((4, 0, -1), (0, 2, 4), (2, -1, 0)):
        pool._order[start], pool._link[start], pool._link[7 + start] = 2, after, before
    pool._meta[META.HEADS + 2] = -1


def swap_lists(pool: BuddyPool) -> None:
    """The free blocks of 2 and of 4 units, each the only one of its list, in that of the other."""
    heads = pool._meta[META.HEADS + 1], pool._meta[META.HEADS + 2]
    pool._meta[META.HEADS + 2], pool._meta[META.HEADS + 1] = heads


CORRUPTIONS = {  # of seven units with a block in the last one
    "lists of the wrong lengths": swap_lists,
    "a free block not listed": lambda p: p._meta.__setitem__(META.HEADS + 1, -1),
    "a list that goes round": lambda p: p._link.__setitem__(0, 0),
    "a block of another length": lambda p: p._order.__setitem__(0, 2),
    "a block that reaches into the next root": lambda p: p._order.__setitem__(4, 3),
    "a block inside of another": lambda p: p._order.__setitem__(5, 1),
    "two buddies not merged": unmerge,
    "a free block that seems in use": lambda p: p._word.__setitem__(0, -1 - p._word[0]),
    "a word of another block": lambda p: p._word.__setitem__(3, p._word[2]),
    "a count of units": lambda p: p._meta.__setitem__(META.FREE, 1),
    "a lock that is not counted": lambda p: p._word.__setitem__(6, p._word[6] | LOCK),
    "bytes asked for": lambda p: p._link.__setitem__(6, 1),
    "an allocation": lambda p: p._meta.__setitem__(META.ALLOCS, 7),
    "a high-water mark": lambda p: p._meta.__setitem__(META.HIGH, 0),
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_the_checker_sees(corrupt: Any) -> None:
    pool = pool_of(7)
    assert at(pool, pool.alloc(8)) == (6, 1)
    assert pool.check() == 0
    corrupt(pool)
    assert pool.check() > 0


HEAP = """
import gc, micropython
from array import array
from mpy_kv.arena import Arena
from mpy_kv.pools.buddy import BuddyPool
pool = BuddyPool(Arena(100 * 64), 100 * 64)
out = array("i", [0] * 8)
def operations(count):
    while count:
        count -= 1
        a = pool.alloc(100)
        b = pool.alloc(3, 32)
        a = pool.grow(a, 128)
        a = pool.grow(a, 700)
        b = pool.grow(b, 500)
        c = pool.alloc(64)
        b = pool.grow(b, 1100)
        pool.lock(a)
        pool.set_owner(a, 65535, 65535)
        pool.is_locked(a)
        pool.unlock(a)
        pool.offset(b)
        pool.size(b)
        pool.free_bytes()
        pool.largest_free_bytes()
        pool.overhead_bytes(77)
        pool.alloc_many(8, 70, out, 16)
        pool.free_many(out, 8)
        pool.free(c)
        pool.free(a)
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
