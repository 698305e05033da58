"""Random jobs for device/budget_job.py, and what the plain kernels make of them here."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import budget_job
from known_cases import DEVICE
from token_reference import POLICIES, expected

SHAPES = (
    {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 8, "group": 16},
    {"layers": 1, "heads": 2, "kv_heads": 1, "head_dim": 16, "group": 8},
    {"layers": 2, "heads": 2, "kv_heads": 2, "head_dim": 4, "group": 8},
    {"layers": 1, "heads": 3, "kv_heads": 1, "head_dim": 12, "group": 4},
)
STEPS = 12  # of these many operations one is something else than a step, each kind
OTHERS = ("append-only", "abort", "rollback", "compress", "prefill", "silent")

Job = dict[str, Any]


def drawn(policy: str, seed: int, codec: str = "int8", **chosen: Any) -> tuple[Job, dict[str, Any]]:
    """A job that wraps its budget several times, and its result by the plain kernels."""
    rng = random.Random(f"{policy} {seed} {codec}")
    geometry = {
        **rng.choice(SHAPES),
        "window": rng.choice([1, 2, 3, 5, 9, 16]),
        "sinks": rng.choice([0, 0, 1, 3]),
    }
    geometry |= {"codec": codec} | chosen
    cache = {"policy": policy, "int16": rng.random() < 0.5}
    job: Job = {"geometry": geometry, "cache": cache, "ops": [], "seed": seed}
    driver = budget_job.Driver(job, "plain")
    for _ in range(20 + 4 * geometry["window"]):
        op = possible(rng.choice(["step"] * STEPS + list(OTHERS)), driver.cache, rng)
        job["ops"].append(op)
        driver.do(*op)
    return job, driver.found()


def possible(name: str, cache: Any, rng: random.Random) -> list[Any]:
    """The operation with arguments that this cache takes now."""
    sinks = cache.geometry.sinks
    if name == "rollback":
        return [name, rng.randint(0, min(cache.length, 6))]
    if name == "compress":
        return [name, rng.choice([0.5, 0.3, 1]), rng.choice([0, 1, 3])]
    if name in ("prefill", "silent"):
        kept = len([p for p in cache.visible() if p >= sinks])
        room = cache.geometry.window - kept + max(0, sinks - cache.length)
        return [name, rng.randint(1, max(room, 1))]
    return [name]


@functools.cache
def some(seeds: int, codec: str = "int8") -> list[tuple[Job, dict[str, Any]]]:
    """Jobs of every policy."""
    return [drawn(policy, seed, codec) for policy in POLICIES for seed in range(seeds)]


def device(
    board: Any, jobs: Sequence[Job], kernels: str, folder: Path, **options: Any
) -> list[dict[str, Any]]:
    """The same jobs' results on the unix port, or an emulated board."""
    listed = folder / "jobs"
    listed.write_text("".join(json.dumps(job) + "\n" for job in jobs))
    lines = board.run(DEVICE / "budget_job.py", [listed, kernels], timeout=300, **options).splitlines()
    return [json.loads(line) for line in lines]


def compare(found: dict[str, Any], job: Job) -> None:
    """With the model in numpy."""
    want = expected(job)
    for key in ("visible", "evicted", "worth", "outputs"):
        assert found[key] == want[key], (key, job)
