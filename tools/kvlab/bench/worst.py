"""The dearest call of each operation among very many, in instructions of the emulated board."""

from __future__ import annotations

from typing import Any

from kvlab.bench import targets
from kvlab.bench.targets import Steps

CALLS = 100_000

OPERATIONS = (
    *("append_int16", "append_float32", "append_again", "attend", "commit", "rollback"),
    *("pool_alloc", "pool_free"),
)
COLUMNS = ("calls", "min", "mean", "max", "max_at_call")


def measure(calls: int, done: Steps) -> dict[str, Any]:
    """{"operations": {name: {"calls", "min", "mean", "max", "max_at_call"}}, "rounds", "kernels"}."""
    figures = targets.run(targets.QEMU, "worst.py", [calls], done)
    return {"target": targets.QEMU, **targets.ordered(figures, "operations", *OPERATIONS, *COLUMNS)}
