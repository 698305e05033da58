"""Pools in pairs of alloc and free: in CPython, compiled, and against a twin that checks nothing.

Ours and the twin take turns within a round, and of each the best round counts, so that what else the machine
does in a moment hits both or neither.
"""

from __future__ import annotations

import gc
import time
from array import array
from collections.abc import Callable, Sequence
from typing import Any

from kvlab.bench.targets import Steps
from kvlab.bench.twin_pool import TwinPool
from kvlab.engine import compiled, drivers
from kvlab.engine.catalogue import BLOCK_BYTES, POOLS, Entry
from kvlab.engine.state import widened

BLOCKS = 4096
BY_BLOCKS = (1_000, 10_000, 100_000, 1_000_000)
BATCH = 16

ROUNDS = 41

# A round of one contender: long enough for the clock, and so short that most rounds are left undisturbed.
_ROUND_S = 0.002
_MOST_PAIRS = 1 << 20

# Random places come from a fixed multiplier: an order that no cache foresees, the same each run.
_STRIDE = 2_654_435_761

KINDS = ("python", "compiled", "python_scattered", "compiled_scattered")

# Seconds that so many pairs take; the count is a multiple of BATCH.
Timed = Callable[[int], float]


def steps(names: Sequence[str]) -> int:
    """What `measure` reports."""
    return sum(1 + len(_sizes(POOLS[name])) for name in names)


def _sizes(entry: Entry) -> list[int]:
    return [blocks for blocks in BY_BLOCKS if blocks <= entry.most_blocks]


def measure(names: Sequence[str], done: Steps) -> dict[str, Any]:
    """{pool: figures at BLOCKS, and under "by_blocks" {blocks: figures}}; pairs a second."""
    figures: dict[str, Any] = {"block_bytes": BLOCK_BYTES}
    for name in names:
        entry = POOLS[name]
        figures[name] = of_pool(entry, min(BLOCKS, entry.most_blocks))
        done(1)
        by_blocks: dict[str, Any] = {}
        for blocks in _sizes(entry):
            by_blocks[str(blocks)] = of_pool(entry, blocks)
            done(1)
        figures[name]["by_blocks"] = by_blocks
        figures[name]["cost_ratio"] = cost_ratio(list(by_blocks.values()))
    return figures


def cost_ratio(by_blocks: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Cost of a pair with the most blocks over that with the fewest."""
    few, many = by_blocks[0], by_blocks[-1]
    return {kind: few[f"{kind}_pairs_per_s"] / many[f"{kind}_pairs_per_s"] for kind in KINDS}


def of_pool(entry: Entry, blocks: int) -> dict[str, Any]:
    """Of one pool of `blocks` blocks, half of them in use and one more: at just half a slab ends, and a buddy
    pool splits or merges all the way.

    In a row: the block freed last is the next one given, which the processor has at hand. Scattered: blocks
    all over a full pool are freed and taken anew, and what that costs on top are cache misses.
    """
    pool, twin = entry.pool(blocks), TwinPool(blocks)
    for _ in range(_filled(blocks)):
        pool.alloc(BLOCK_BYTES)
        twin.get_new_block()
    single = best(
        {
            "python": lambda pairs: python_pairs(pool, pairs),
            "reference": lambda pairs: twin_pairs(twin, pairs),
            "reference_as_lists": lambda pairs: twin_batches(twin, pairs, 1),
        }
    )
    batch = best(
        {
            "python": lambda pairs: python_batches(pool, pairs),
            "reference": lambda pairs: twin_batches(twin, pairs, BATCH),
        }
    )
    scattered = best({"python_scattered": python_scattered(entry, blocks)})
    fast = of_compiled(entry, blocks)
    return {
        "blocks": blocks,
        **single,
        "python_over_reference": single["python_pairs_per_s"] / single["reference_pairs_per_s"],
        **scattered,
        **fast["single"],
        "metadata_bytes_per_block": pool.metadata_bytes(),
        "batch16": {
            **batch,
            "python_over_reference": batch["python_pairs_per_s"] / batch["reference_pairs_per_s"],
            **fast["batch"],
        },
    }


def _filled(blocks: int) -> int:
    return blocks // 2 + 1


def best(runs: dict[str, Timed]) -> dict[str, float]:
    """Pairs a second of each in its best round; the rounds of all alternate."""
    rates = dict.fromkeys(runs, 0.0)
    collecting = gc.isenabled()
    gc.disable()
    try:
        counts = {name: enough(run) for name, run in runs.items()}
        for _ in range(ROUNDS):
            for name, run in runs.items():
                rates[name] = max(rates[name], counts[name] / run(counts[name]))
    finally:
        if collecting:
            gc.enable()
    return {f"{name}_pairs_per_s": rate for name, rate in rates.items()}


def enough(run: Timed) -> int:
    """Pairs that fill a round. The first call compiles."""
    pairs = BATCH
    run(pairs)
    while run(pairs) < _ROUND_S / 2 and pairs < _MOST_PAIRS:
        pairs *= 2
    return pairs


# --- CPython -------------------------------------------------------------------------------------


def python_pairs(pool: Any, pairs: int) -> float:
    alloc, free, size = pool.alloc, pool.free, BLOCK_BYTES
    start = time.perf_counter()
    for _ in range(pairs):
        free(alloc(size))
    return time.perf_counter() - start


def python_batches(pool: Any, pairs: int) -> float:
    alloc_many, free_many, size, count = pool.alloc_many, pool.free_many, BLOCK_BYTES, BATCH
    handles = [0] * count
    start = time.perf_counter()
    for _ in range(pairs // count):
        alloc_many(count, size, handles)
        free_many(handles, count)
    return time.perf_counter() - start


def twin_pairs(twin: TwinPool, pairs: int) -> float:
    get, put = twin.get_new_block, twin.free_block
    start = time.perf_counter()
    for _ in range(pairs):
        put(get())
    return time.perf_counter() - start


def twin_batches(twin: TwinPool, pairs: int, count: int) -> float:
    get, put = twin.get_new_blocks, twin.free_blocks
    start = time.perf_counter()
    for _ in range(pairs // count):
        put(get(count))
    return time.perf_counter() - start


def python_scattered(entry: Entry, blocks: int) -> Timed:
    pool = entry.pool(blocks)
    held = [pool.alloc(BLOCK_BYTES) for _ in range(blocks)]

    def run(pairs: int) -> float:
        alloc, free, size = pool.alloc, pool.free, BLOCK_BYTES
        order = scattered(blocks, pairs)
        start = time.perf_counter()
        for place in order:
            free(held[place])
            held[place] = alloc(size)
        return time.perf_counter() - start

    return run


def scattered(blocks: int, count: int) -> Any:
    """`count` places below `blocks`, as int32 of numpy."""
    import numpy as np

    mixed = np.arange(1, count + 1, dtype=np.uint64) * _STRIDE % (1 << 32)
    return (mixed * blocks >> 32).astype(np.int32)


# --- compiled ------------------------------------------------------------------------------------


def of_compiled(entry: Entry, blocks: int) -> dict[str, dict[str, float]]:
    """The same, compiled: {"single": ..., "batch": ...}."""
    native = entry.compiled()
    pairs, batches, shuffled = (
        drivers.loop(kind, native) for kind in (drivers.pairs, drivers.batches, drivers.shuffled)
    )
    pool, full = widened(entry.pool(blocks)), widened(entry.pool(blocks))
    with compiled.swapped(entry.modules), compiled.told(f"the {entry.name} pool"):
        for _ in range(_filled(blocks)):
            pool.alloc(BLOCK_BYTES)
        held = array("i", [full.alloc(BLOCK_BYTES) for _ in range(blocks)])
        few = array("i", bytes(4 * BATCH))
        order = scattered(blocks, _MOST_PAIRS)
        state, busy = entry.state(pool), entry.state(full)
        single = best(
            {
                "compiled": lambda count: timed(pairs, state, BLOCK_BYTES, count),
                "compiled_scattered": lambda count: timed(shuffled, busy, BLOCK_BYTES, held, order[:count]),
            }
        )
        batch = best({"compiled": lambda count: timed(batches, state, BLOCK_BYTES, few, count // BATCH)})
    return {"single": single, "batch": batch}


def timed(loop: drivers.Loop, *arguments: Any) -> float:
    start = time.perf_counter()
    refused = loop(*arguments)
    taken = time.perf_counter() - start
    if refused:
        raise AssertionError(f"{refused} operations of a compiled pool were refused")
    return taken
