"""The fixed pool against a model of a dozen lines; double, stale and foreign frees; the collector."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from mpy_kv.arena import Arena
from mpy_kv.errors import BadHandle, Locked, PoolFull
from mpy_kv.pools.fixed import FixedPool

BLOCK = 64


def pool_of(blocks: int, tag: int | None = None) -> FixedPool:
    return FixedPool(Arena(blocks * BLOCK), blocks, BLOCK, tag)


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
    max_examples=100, stateful_step_count=40, deadline=None, derandomize=True
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


def test_counters_outlive_a_billion_allocations() -> None:
    """They wrap at 2^30, the last small int of a 32-bit board, and stay consistent."""
    pool = pool_of(3)
    a = pool.alloc(8)
    pool._meta[1], pool._meta[6] = (1 << 30) - 1, (1 << 30) - 2
    b = pool.alloc(8)
    assert pool._meta[1] == 0
    assert pool.check() == 0
    pool.free(a)
    pool.free(b)
    assert pool.check() == 0


CORRUPTIONS = {
    "a block listed twice": lambda p: p._stack.__setitem__(0, p._stack[1]),
    "a block that does not exist": lambda p: p._stack.__setitem__(0, 99),
    "a free bit lost": lambda p: p._free.__setitem__(0, p._free[0] & 254 | (~p._free[0] & 1)),
    "a count too high": lambda p: p._meta.__setitem__(0, 99),
    "a lock miscounted": lambda p: p._meta.__setitem__(5, 1),
    "a free block locked": lambda p: p._locked.__setitem__(2, 1),
    "an allocation miscounted": lambda p: p._meta.__setitem__(1, 7),
}


@pytest.mark.parametrize("corrupt", CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_the_checker_sees(corrupt: Any) -> None:
    pool = pool_of(4)
    pool.alloc(8)
    assert pool.check() == 0
    corrupt(pool)
    assert pool.check() > 0


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
