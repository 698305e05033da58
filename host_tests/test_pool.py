"""The fixed pool against a model of a dozen lines; double, stale and foreign frees; the collector."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import pool_cases
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from field_tables import tables
from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, Locked, PoolFull
from mpy_kv.pools import batch, raise_errors
from mpy_kv.pools.fixed import FixedPool

META = tables.of("fixed")

BLOCK = 64


def pool_of(blocks: int, tag: int | None = None) -> FixedPool:
    return FixedPool(Arena(blocks * BLOCK), blocks, BLOCK, tag)


FIXED = pool_cases.add(
    pool_cases.Maker(
        "fixed",
        make=lambda arena: FixedPool(arena, 37, 192, align=64),
        four=lambda arena: FixedPool(arena, 4, BLOCK),
        max_size=192,
        max_align=64,
    )
)
TestFixed = pool_cases.machine(FIXED)


def _above_the_stack(found: dict[str, list[int]]) -> None:
    del found["_word"][found["_meta"][META.TOP] :]


pool_cases.LEFTOVERS[FixedPool] = _above_the_stack


@pytest.mark.parametrize("case", pool_cases.CASES.values(), ids=pool_cases.CASES)
def test_contract(case: Callable[[pool_cases.Maker], None]) -> None:
    case(FIXED)


class Blocks:
    """What a pool must do: live handles, with what was written about them."""

    def __init__(self, n: int) -> None:
        self.n, self.live, self.dead, self.most, self.allocs = n, {}, [], 0, 0

    def take(self, handle: int) -> None:
        assert handle not in self.live
        self.live[handle] = {"locked": False, "owner": None}
        self.most, self.allocs = max(self.most, len(self.live)), self.allocs + 1

    def give(self, handle: int) -> None:
        del self.live[handle]
        self.dead.append(handle)


class PoolAgainstModel(RuleBasedStateMachine):
    @initialize(n=st.integers(1, 40))
    def make(self, n: int) -> None:
        self.pool, self.model = pool_of(n), Blocks(n)

    def pick(self, data: Any) -> int | None:
        live = sorted(self.model.live)
        return data.draw(st.sampled_from(live)) if live else None

    @rule(size=st.integers(1, BLOCK))
    def alloc(self, size: int) -> None:
        if len(self.model.live) == self.model.n:
            with pytest.raises(PoolFull) as full:
                self.pool.alloc(size)
            locked = sum(b["locked"] for b in self.model.live.values())
            error = full.value
            assert (error.needed, error.free, error.largest) == (size, 0, 0)
            assert (error.evictable, error.pinned) == (0, locked * BLOCK)
        else:
            self.model.take(self.pool.alloc(size))

    @rule(size=st.integers(BLOCK + 1, 1 << 40))
    def alloc_too_large(self, size: int) -> None:
        with pytest.raises(PoolFull) as full:
            self.pool.alloc(size)
        assert full.value.needed == size
        assert full.value.free == (self.model.n - len(self.model.live)) * BLOCK

    @rule(data=st.data())
    def free(self, data: Any) -> None:
        handle = self.pick(data)
        if handle is None:
            return
        if self.model.live[handle]["locked"]:
            with pytest.raises(Locked):
                self.pool.free(handle)
        else:
            self.pool.free(handle)
            self.model.give(handle)

    @rule(data=st.data())
    def free_again(self, data: Any) -> None:
        if self.model.dead:
            stale = data.draw(st.sampled_from(self.model.dead))
            with pytest.raises(BadHandle):
                self.pool.free(stale)

    @rule(handle=st.integers(-(1 << 40), 1 << 40))
    def free_rubbish(self, handle: int) -> None:
        if handle not in self.model.live:
            with pytest.raises(BadHandle):
                self.pool.free(handle)

    @rule(data=st.data(), locked=st.booleans())
    def lock(self, data: Any, locked: bool) -> None:
        handle = self.pick(data)
        if handle is not None:
            (self.pool.lock if locked else self.pool.unlock)(handle)
            self.model.live[handle]["locked"] = locked

    @rule(data=st.data(), layer=st.integers(0, 65535), batch=st.integers(0, 65535))
    def own(self, data: Any, layer: int, batch: int) -> None:
        handle = self.pick(data)
        if handle is not None:
            self.pool.set_owner(handle, layer, batch)
            self.model.live[handle]["owner"] = (layer, batch)

    @invariant()
    def same_as_the_model(self) -> None:
        if not hasattr(self, "pool"):
            return
        assert self.pool.check() == 0
        live = self.model.live
        for handle, block in live.items():
            assert 0 <= handle < 1 << 30
            assert self.pool.is_locked(handle) == block["locked"]
            if block["owner"]:
                assert self.pool.owner(handle) == block["owner"]
        offsets = [self.pool.offset(handle) for handle in live]
        assert len(set(offsets)) == len(live)
        assert all(o % BLOCK == 0 and 0 <= o < self.model.n * BLOCK for o in offsets)
        stats = self.pool.stats()
        assert stats["used_blocks"] == len(live)
        assert stats["used_bytes"] == len(live) * BLOCK
        assert stats["total_bytes"] - stats["used_bytes"] == self.pool.free_bytes()
        assert stats["largest_free_bytes"] == (BLOCK if len(live) < self.model.n else 0)
        assert stats["high_water_blocks"] == self.model.most
        assert stats["alloc_count"] == self.model.allocs
        assert stats["free_count"] == len(self.model.dead)
        assert stats["locked_blocks"] == sum(b["locked"] for b in live.values())


PoolAgainstModel.TestCase.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None, derandomize=True
)
TestPoolAgainstModel = PoolAgainstModel.TestCase


def state(pool: FixedPool) -> dict:
    return {**pool.stats(), "check": pool.check()}


def test_double_free() -> None:
    pool = pool_of(4)
    a = pool.alloc(BLOCK)
    pool.free(a)
    before = state(pool)
    assert (before["used_blocks"], pool.free_bytes()) == (0, 4 * BLOCK)
    with pytest.raises(BadHandle, match="stale: its block was freed"):
        pool.free(a)
    assert state(pool) == before
    handles = [pool.alloc(BLOCK) for _ in range(4)]
    assert len({pool.offset(h) for h in handles}) == 4
    with pytest.raises(PoolFull, match="all 4 blocks are in use"):
        pool.alloc(BLOCK)
    assert state(pool)["used_blocks"] == 4


def test_handles_that_were_never_issued_here() -> None:
    pool, other = pool_of(4), pool_of(4)
    mine, theirs = pool.alloc(BLOCK), other.alloc(BLOCK)
    before = state(pool)
    for handle in (
        -1,
        4,
        mine + 1,
        mine + 5,
        mine ^ 1 << 29,
        theirs,
        1 << 30,
        1 << 70,
        pool.offset(mine) + 8,
    ):
        if handle == mine:
            continue
        for call in (pool.free, pool.lock, pool.unlock, pool.is_locked, pool.owner, pool.offset):
            with pytest.raises(BadHandle):
                call(handle)
        with pytest.raises(BadHandle):
            pool.set_owner(handle, 1)
    assert state(pool) == before
    # Even a pool with the same tag refuses what it has not given out.
    twin_a, twin_b = pool_of(4, tag=3), pool_of(4, tag=3)
    handle = twin_a.alloc(BLOCK)
    with pytest.raises(BadHandle):
        twin_b.free(handle)


def test_a_handle_whose_block_was_issued_anew() -> None:
    pool = pool_of(1)
    seen = set()
    for _ in range(1000):
        handle = pool.alloc(BLOCK)
        assert handle not in seen
        for old in list(seen)[-3:]:
            with pytest.raises(BadHandle):
                pool.free(old)
        seen.add(handle)
        pool.free(handle)
    assert pool.check() == 0


def test_a_locked_block_stays() -> None:
    pool = pool_of(2)
    a = pool.alloc(8)
    pool.lock(a)
    pool.lock(a)
    with pytest.raises(Locked, match="unlock it before freeing"):
        pool.free(a)
    assert pool.stats()["locked_blocks"] == 1
    pool.unlock(a)
    pool.unlock(a)
    pool.free(a)
    assert state(pool)["locked_blocks"] == 0
    assert pool.check() == 0


@pytest.mark.parametrize("blocks", [1, 2, 3, 8, 9, 255, 256, 257, 5000])
def test_sizes_around_powers_of_two(blocks: int) -> None:
    pool = pool_of(blocks)
    handles = [pool.alloc(BLOCK) for _ in range(blocks)]
    assert sorted(pool.offset(h) for h in handles) == list(range(0, blocks * BLOCK, BLOCK))
    assert max(handles) < 1 << 30
    for handle in handles[::2]:
        pool.free(handle)
    assert pool.check() == 0
    assert pool.stats()["used_blocks"] == blocks // 2


def test_5000_random_operations() -> None:
    """free + used = total, no block listed twice, no count below zero: after every single one."""
    rng = random.Random(20)
    pool = pool_of(17)
    live: list[int] = []
    for _ in range(5000):
        if live and rng.random() < 0.5:
            handle = live.pop(rng.randrange(len(live)))
            pool.free(handle)
            if rng.random() < 0.2:  # the same block twice in one release
                with pytest.raises(BadHandle):
                    pool.free(handle)
        elif len(live) < 17:
            live.append(pool.alloc(rng.randrange(1, BLOCK + 1)))
        stats = pool.stats()
        assert pool.check() == 0
        assert stats["used_blocks"] == len(live)
        assert stats["used_bytes"] + pool.free_bytes() == stats["total_bytes"]


def aged(pool: FixedPool, i: int, left: int) -> FixedPool:
    """`pool`, in which free block `i` will come round to its first generations after `left` more."""
    step, w = pool._meta[META.STEP], pool._word[i]
    pool._word[i] = w % step - (1 << 29) + left * step
    assert pool.check() == 0
    return pool


@pytest.mark.parametrize("left", [2, 3, 4])
def test_counts_outlive_every_generation(left: int) -> None:
    """Generations come round again, of each block apart; counts are derived from them and stay exact."""
    pool = aged(pool_of(4), 0, left)
    before = pool.stats()["free_count"]
    seen = set()
    for n in range(1, 9):
        handle = pool.alloc(BLOCK)
        many = array("i", [0, 0])
        pool.alloc_many(2, BLOCK, many)
        assert all(pool._meta[META.STEP] <= h < 1 << 29 for h in (handle, *many))
        assert handle not in seen
        seen.add(handle)
        pool.free_many([many[1], many[0]], 2)
        if n % 2:  # by either transition, in turns; the next one to be given out
            pool.free(handle)
        else:
            pool.free_many([handle], 1)
        assert pool.stats()["free_count"] == before + 3 * n
        assert pool.check() == 0
    assert pool._meta[META.WRAPS] == 1
    assert pool.stats()["high_water_blocks"] == 3


CORRUPTIONS = {
    "a block listed twice": lambda p: p._word.__setitem__(4, p._word[5]),
    "a block that does not exist": lambda p: p._word.__setitem__(4, 99),
    "a block lost": lambda p: p._word.__setitem__(1, -1 - p._word[1]),
    "a count too high": lambda p: p._meta.__setitem__(META.TOP, 99),
    "a lock miscounted": lambda p: p._meta.__setitem__(META.LOCKS, 1),
    "a free block locked": lambda p: p._word.__setitem__(2, -1 - p._word[2] | 1 << 29),
    "another block's handle": lambda p: p._word.__setitem__(2, p._word[3]),
    "another pool's handle": lambda p: p._word.__setitem__(2, p._word[2] - 8),
    "wraps half counted": lambda p: p._meta.__setitem__(META.WRAPS, -2),
    "waste miscounted": lambda p: p._meta.__setitem__(META.WASTE, 3),
    "waste of a free block": lambda p: p._meta.__setitem__(META.FIRST + 3, 4),
    "more waste than there is": lambda p: p._meta.__setitem__(META.FIRST, 64),
    "blocks taken out of order": lambda p: p._word.__setitem__(3, p._word[3] - p._meta[META.STEP]),
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_the_checker_sees(corrupt: Any) -> None:
    pool = pool_of(4)
    pool.alloc(8)
    assert pool.check() == 0
    corrupt(pool)
    assert pool.check() > 0


def test_what_a_locked_block_looks_like_is_no_handle() -> None:
    """Nor is what a free one looks like; also in the last generation, where the next one wraps."""
    for left in (1, 2, 5):
        pool = aged(pool_of(4, tag=7), 0, left)
        handle = pool.alloc(BLOCK)
        pool.lock(handle)
        before = pool.stats()
        for wrong in (handle | 1 << 29, -1 - handle, pool._word[2], handle + (1 << 29)):
            for call in (pool.free, pool.lock, pool.offset):
                with pytest.raises(BadHandle):
                    call(wrong)
            with pytest.raises(BadHandle):
                pool.free_many([wrong], 1)
        assert pool.stats() == before
        assert pool.check() == 0


@pytest.mark.parametrize("blocks", [1, 2, 3, 5, 17])
def test_every_int_that_is_no_handle_is_refused(blocks: int) -> None:
    """Also those whose index bits name a place of the stack behind the blocks."""
    pool = pool_of(blocks, tag=0)
    live = {pool.alloc(BLOCK) for _ in range((blocks + 1) // 2)}
    before = pool.stats()
    step = pool._meta[META.STEP]
    near = [*range(-3 * step, 3 * step), *(x | 1 << 29 for x in range(3 * step))]
    for handle in set(near) - live:
        with pytest.raises(BadHandle):
            pool.free(handle)
    assert pool.stats() == before
    assert pool.check() == 0


def test_alignment_is_the_pool_s() -> None:
    pool = FixedPool(Arena(4096), 4, 192, align=64)
    assert [pool.offset(pool.alloc(1, align)) % 64 for align in (1, 4, 32, 64)] == [0] * 4
    for align in (48, 2, 0, True, 4.0, "4"):
        with pytest.raises(BadArgument, match="align"):
            FixedPool(Arena(4096), 4, 192, align=align)
    with pytest.raises(BadArgument, match="multiple of 128"):
        FixedPool(Arena(4096), 4, 192, align=128)


@pytest.mark.parametrize("freeing", [False, True])
def test_a_batch_that_is_cut_short_is_done_or_undone(freeing: bool) -> None:
    """KeyboardInterrupt before each line of the transition: all blocks moved, or none did. Blocks are in
    their first generation, in the last but one or in the last, whose next is the first again."""
    where = batch.give_blocks if freeing else batch.take_blocks
    for ages in ((), (1, 1, 0, 1, 0, 0)):
        for lines in range(80):
            pool = pool_of(8)
            pool._meta[META.WRAPS] = 5
            for i, left in enumerate(ages):
                aged(pool, i, left)
            keep = [pool.alloc(BLOCK) for _ in range(2)]
            out = [0] * 4
            move = partial(pool.alloc_many, 4, BLOCK, out)
            if freeing:
                pool.alloc_many(4, 60, out)
                move = partial(pool.free_many, out, 4)
            freed = pool.stats()["free_count"]
            if not pool_cases.cut_short(where, lines, move):
                break
            assert pool.check() == 0
            assert pool.stats()["used_blocks"] in (2, 6)
            given = 6 - pool.stats()["used_blocks"] if freeing else 0
            assert pool.stats()["free_count"] == freed + given
            if pool.stats()["used_blocks"] == (6 if freeing else 2):
                move()
            for handle in keep:
                pool.free(handle)
            if freeing:
                assert pool.stats()["used_blocks"] == 0
            assert pool.check() == 0
        else:
            raise AssertionError("never ran to its end")
        assert lines > 20


def test_a_cut_batch_leaves_a_stale_handle_stale() -> None:
    """What give_blocks began to free is told from what was freed before, which looks the same."""
    pool = pool_of(8)
    a, b = pool.alloc(BLOCK), pool.alloc(BLOCK)
    pool.free(b)
    pool._word[a & pool._meta[META.MASK]] = -1 - a - pool._meta[META.STEP]  # begun, not in the stack
    assert raise_errors.half_given(pool._meta, pool._word, [a, b], 2) == 0
    assert pool.check() == 0
    pool.free(a)
    with pytest.raises(BadHandle):
        pool.free(b)


@pytest.mark.parametrize("count", [5, 0x3FFFFFFE, 0x3FFFFFFF])
@pytest.mark.parametrize("listed", [False, True])
def test_a_cut_batch_counts_what_came_round_if_it_was_done(count: int, listed: bool) -> None:
    """Cut before or after its blocks are in the stack. Two of three come round; the count does at 2^30."""
    pool = pool_of(4)
    for i, left in enumerate((1, 1, 3)):
        aged(pool, i, left)
    for _ in range(2):  # the second time, if not before
        handles = [pool.alloc(BLOCK) for _ in range(3)]
        before = list(pool._word[:3])
        pool._meta[META.WRAPS] = count
        pool.free_many(handles[::-1], 3)
        if pool._meta[META.WRAPS] != count:
            break
    after = list(pool._word[:3])
    come_round = (count + 2) & 0x3FFFFFFF
    assert pool._meta[META.WRAPS] == come_round
    pool._meta[META.WRAPS] = -1 - come_round
    if not listed:
        pool._meta[META.TOP] -= 3
    assert raise_errors.half_given(pool._meta, pool._word, handles[::-1], 3) == 0
    assert pool._meta[META.WRAPS] == (come_round if listed else count)
    assert list(pool._word[:3]) == (after if listed else before)
    assert pool.check() == 0


def test_a_refused_batch_says_why() -> None:
    """Of each place: there before, stale, of another pool, no handle, locked."""
    for k in range(1, 4):
        pool = pool_of(8, tag=1)
        good = [pool.alloc(BLOCK) for _ in range(6)]
        stale, locked = good.pop(), good[4]
        pool.free(stale)
        pool.lock(locked)
        for wrong, kind, why in [
            (good[0], BadHandle, "there twice"),
            (stale, BadHandle, "stale"),
            (stale ^ 2 * pool._meta[META.MASK] + 2, BadHandle, "not of this pool"),
            (None, BadHandle, "not of this pool"),
            (locked, Locked, "locked"),
        ]:
            with pytest.raises(kind, match=why):
                pool.free_many([*good[:k], wrong], k + 1)
            assert pool.stats()["used_blocks"] == 5


@pytest.mark.parametrize("blocks", [1, 2, 5, 8])
def test_a_cut_batch_changes_only_what_it_began(blocks: int) -> None:
    """Whatever the items are, also ints whose index bits name a place of the stack, or what stands there."""
    for first in range(blocks):
        pool = pool_of(blocks, tag=0)
        pool.free([pool.alloc(BLOCK) for _ in range(blocks)][first])
        before = [*pool._meta, *pool._word]
        step = pool._meta[META.STEP]
        for item in range(-3 * step, 3 * step):
            assert raise_errors.half_given(pool._meta, pool._word, [item], 1) == 0
            assert [*pool._meta, *pool._word] == before


CHURN = """
import gc
from mpy_kv.arena import Arena
from mpy_kv.pools.fixed import FixedPool
arena = Arena(8 * 256)
pool = FixedPool(arena, 8, 256)
handles = [pool.alloc(256) for _ in range(8)]
for n, h in enumerate(handles):
    at = pool.offset(h)
    for i in range(256):
        arena.buffer[at + i] = (n * 31 + i * 7) & 255
want = bytes(arena.buffer)
view = memoryview(memoryview(arena.buffer)[0:])[0:]
del arena
for _ in range(5):
    gc.collect()
    junk = [bytearray(64) for _ in range(2000)]
    for j in junk:
        for i in range(64):
            j[i] = 0xEE
    del junk, j
    gc.collect()
ok = 0
for h in handles:
    at = pool.offset(h)
    ok += bytes(view[at:at + 256]) == want[at:at + 256]
print(ok, pool.check())
"""


def test_churn_of_the_heap_leaves_blocks_alone(upy) -> None:
    """Only a view of a view of the buffer and the handles are kept."""
    assert upy.run(CHURN, heap_bytes=1 << 20).split() == ["8", "0"]


def test_check_sees_a_free_block_that_is_listed_twice() -> None:
    """Nothing else is wrong then: as many are listed as are free, and each of them is."""
    pool = pool_of(4)
    pool.alloc(BLOCK)
    assert pool.check() == 0
    word, meta = pool._word, pool._meta
    word[meta[META.TOP]] = word[meta[META.TOP] - 1]
    meta[META.TOP] += 1
    assert pool.check() == 1
