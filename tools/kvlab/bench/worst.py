"""The dearest call of each operation among very many, in instructions of the emulated board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvlab.bench import targets
from kvlab.bench.targets import Steps

CALLS = 100_000
BLOCK_POLICIES = ("lru", "fifo", "lfu", "hybrid", "sieve", "s3fifo")
ENTRIES, FEW_ENTRIES = 64, 16

RING = ("append_int16", "append_float32", "append_again", "attend", "av_64", "commit", "rollback")
POOLS = (
    *("fixed_alloc", "fixed_free", "fixed_part_alloc", "fixed_part_free"),
    *("fixed_alloc_many_16", "fixed_free_many_16", "fixed_part_alloc_many_16", "fixed_part_free_many_16"),
    *("slab_alloc", "slab_free"),
    *("slab_region_alloc", "slab_region_free", "slab_region_open_region", "slab_region_close_region"),
    *("buddy_alloc", "buddy_free"),
    *("region_alloc", "region_free"),
)
REQUESTS = tuple(
    f"requests_{name}"
    for name in (
        *("append", "append_page", "append_page_evict", "append_page_own", "append_copy"),
        *("append_again", "append_first", "attend"),
        *("commit", "commit_replaced", "commit_full", "commit_full_known"),
        *("rollback", "open", "open_found", "fork", "close"),
    )
)
POLICIES = (
    *(f"{name}_{call}" for name in BLOCK_POLICIES for call in ("touch", "insert", "evict")),
    *(f"{name}_{FEW_ENTRIES}_evict" for name in BLOCK_POLICIES),
)
TOKENS = (
    *(f"budget_{call}" for call in ("append", "append_gaps", "attend", "commit", "rollback")),
    *(
        f"{kernel}_{ENTRIES}"
        for kernel in ("shares", "peaks", "survey", "watch_used", "watch_mass", "watch_decayed")
    ),
)
BUS = ("bus_request", "bus_request_refused", "bus_record", "bus_stats", "bus_transfer")
DMA = (
    *("dma_push", "dma_push_join", "dma_push_full", "dma_rows_30", "dma_planes_10", "dma_planes_20"),
    *("dma_start", "dma_done"),
)
OPERATIONS = {
    "a ring": RING,
    "pools of 4 KiB": POOLS,
    "requests in 10 blocks of 4 tokens": REQUESTS,
    f"eviction policies of {ENTRIES} entries": POLICIES,
    f"a budget of tokens, and its kernels over {ENTRIES} of them": TOKENS,
    "the bus tracker, for eight tasks": BUS,
    "the bus's queue of copies": DMA,
}
COLUMNS = ("calls", "min", "mean", "max", "max_at_call")

# Of boards/apps/bench/worst.py, each of so many rounds: the ring; fixed, parts of its blocks, both in batches
# of 16, the four other pools; requests; each policy with many entries and with few; a budget and its
# kernels; the bus's tracker and queue.
PARTS = 10 + 2 * len(BLOCK_POLICIES) + 2 + 2


def steps(calls: int) -> int:
    """What `measure` reports."""
    return PARTS * calls


def measure(calls: int, done: Steps) -> dict[str, Any]:
    """{"operations": {name: {"calls", "min", "mean", "max", "max_at_call"}}, "rounds", "kernels"}.

    An operation that so few rounds never came to is missing.
    """
    figures = targets.run(targets.QEMU, "worst.py", [calls], done)
    names = [name for part in OPERATIONS.values() for name in part]
    return {"target": targets.QEMU, **targets.ordered(figures, "operations", *names, *COLUMNS)}


def rows(figures: Mapping[str, Any], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Of a table with COLUMNS; a name first."""
    by_name = figures["operations"]
    return [
        (
            name,
            *(f"{by['calls']:,}", f"{by['min']:,}", f"{by['mean']:,.0f}"),
            *(f"{by['max']:,}", f"{by['max_at_call']:,}"),
        )
        for name in names
        if (by := by_name.get(name))
    ]
