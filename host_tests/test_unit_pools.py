"""The buddy and the region pool do the same on every interpreter, and blocks keep their bytes."""

from __future__ import annotations

from typing import Any

import pytest
import unit_pools
from known_cases import DEVICE

SCRIPT = DEVICE / "unit_pools.py"
KINDS = ("buddy", "region")


@pytest.mark.parametrize("kind", KINDS)
def test_a_soak(kind: str, upy: Any) -> None:
    """Growth, locks and compaction included; checked after each operation."""
    told = unit_pools.run(kind, 2500, 1)
    assert told.startswith(f"{kind} 0 faults, ")
    assert upy.run(SCRIPT, [kind, 2500, 1]) == told
    assert unit_pools.run(kind, 2500, 2) != told


@pytest.mark.parametrize("machine", ["qemu", "qemu_riscv"])
def test_the_same_on_32_bits(machine: str, request: pytest.FixtureRequest) -> None:
    board = request.getfixturevalue(machine)
    for kind in KINDS:
        assert board.run(SCRIPT, [kind, 100, 3]) == unit_pools.run(kind, 100, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_soak_sees_a_byte_that_changed(kind: str) -> None:
    job = unit_pools.Run(kind, 1)
    while len(job.live) < 3:
        job.alloc()
    at = job.pool.offset(job.live[1][0])
    job.pool.buffer[at] ^= 1
    for block in job.live:
        job.intact(block)
    assert job.faults == 1


CHURN = """
import gc
from mpy_kv.arena import Arena
from mpy_kv.port import addressof
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.region import RegionPool
wrong = 0
for shift in range(4):
    arena = Arena(4096, memoryview(bytearray(4200))[shift:])
    arena.take(12)
    pools = [BuddyPool(arena, 1500), RegionPool(arena, 2400, 9)]
    del arena
    handles = []
    for pool in pools:
        pool.free_many([pool.alloc(80), pool.alloc(1), pool.alloc(30)], 1)
        handles.append(pool.alloc(24, 32))
        pool.alloc(4)
        at = pool.offset(handles[-1])
        pool.buffer[at : at + 24] = b"0123456789abcdefghijklmn"
    for turn in range(3):
        gc.collect()
        junk = [bytearray(b"\\xee" * 64) for _ in range(2000)]
        del junk
        gc.collect()
        if turn == 1:
            handles = [pool.grow(handle, 200) for pool, handle in zip(pools, handles)]
        if turn == 2:
            wrong += not pools[1].compact()
        for pool, handle in zip(pools, handles):
            at = pool.offset(handle)
            wrong += (addressof(pool.buffer) + at) % 32 != 0
            wrong += bytes(pool.buffer[at : at + 24]) != b"0123456789abcdefghijklmn"
            wrong += pool.check()
print(wrong)
"""


def test_churn_of_the_heap_and_odd_buffers(upy: Any) -> None:
    """Only the pools are kept; alignment is of real memory, whatever moves."""
    assert upy.run(CHURN, heap_bytes=1 << 20).split() == ["0"]
