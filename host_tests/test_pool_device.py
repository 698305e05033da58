"""Pools on the port and on 32-bit firmware: nothing is allocated, the same is done, memory left alone."""

from __future__ import annotations

import json
from typing import Any

import pool_trace
import pytest
from known_cases import DEVICE


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    from conftest import Upy

    found: dict[str, Any] = json.loads(Upy().run(DEVICE / "pool_allocation.py", heap_bytes=2 << 20))
    return found


def test_nothing_is_allocated_per_block(measured: dict[str, Any]) -> None:
    """Counted by mem_total (which sees frames that heap_lock lets pass) and by mem_alloc, the collector off;
    a run with the heap locked has passed before."""
    calls = dict(measured["calls"])
    assert min(calls.pop("control")) > 0, "the counters see nothing"
    assert len(calls) == 5 * 5
    assert calls == {name: [0, 0] for name in calls}


def test_bookkeeping_on_a_device(measured: dict[str, Any]) -> None:
    """What the arrays really take is what metadata_bytes() says, and half a KB a pool."""
    assert set(measured["metadata"]) == {"fixed", "slab", "slab+region", "buddy", "region"}
    for arrays, told in measured["metadata"].values():
        assert 0 < arrays <= told + 512


@pytest.mark.parametrize("machine", ["qemu", "qemu_riscv"])
def test_the_same_on_32_bits(machine: str, request: pytest.FixtureRequest) -> None:
    board = request.getfixturevalue(machine)
    for name in ("fixed", "slab", "slab+region"):
        told = json.loads(board.run(DEVICE / "pool_trace.py", [name, 5, 300]))
        assert told == pool_trace.run(name, 5, [300])


CHURN = """
import gc
from mpy_kv.arena import Arena
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool
left = []
for kind, last in ((FixedPool, ()), (SlabPool, ((64, 256),)), (SlabRegionPool, ((64, 256), 2))):
    arena = Arena(4096, memoryview(bytearray(4100))[1:])
    pool = kind(arena, 4, 768, *last[:0]) if kind is FixedPool else kind(arena, 768, 4, *last)
    sizes = (768, 700, 700) if kind is FixedPool else (256, 64, 13)
    handles = [pool.alloc(n) for n in sizes]
    for h in handles:
        for i in range(pool.size(h)):
            arena.buffer[pool.offset(h) + i] = (h * 31 + i * 7) & 255
    left.append((pool, memoryview(memoryview(arena.buffer)[0:])[0:], handles))
    del arena
for _ in range(3):
    gc.collect()
    junk = [bytearray(64) for _ in range(2000)]
    for j in junk:
        for i in range(64):
            j[i] = 0xEE
    del junk, j
    gc.collect()
wrong = 0
for pool, view, handles in left:
    for h in handles:
        at = pool.offset(h)
        wrong += any(view[at + i] != (h * 31 + i * 7) & 255 for i in range(pool.size(h)))
        wrong += at % 4 != 3
    wrong += pool.check()
print(wrong)
"""


def test_churn_of_the_heap_leaves_blocks_alone(upy: Any) -> None:
    """Only a view of a view of the buffer, which begins off a word, and the handles are kept."""
    assert upy.run(CHURN, heap_bytes=1 << 20) == "0\n"
