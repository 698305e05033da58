"""Eviction policies in accesses a second: in CPython, compiled, and on the unix port against a dict.

Accesses follow Zipf's law (exponent 1) over ten times as many keys as there are entries, from a fixed seed;
keys are numbers in the order of first use, as a replay makes them. Counted are the accesses after the cache
has filled, a miss with its eviction and insertion like a hit. Of several rounds the best counts.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from kvlab.bench import targets
from kvlab.bench.targets import Steps
from kvlab.engine import compiled
from kvlab.replay import catalogue, loops
from kvlab.replay.keys import Numbering
from kvlab.replay.runs import MOST_COUNT

NAMES = tuple(catalogue.POLICIES)
ENTRIES = 1_000_000
BY_ENTRIES = (1_000, 10_000, 100_000, ENTRIES)
DEVICE_ENTRIES = 1_000
PYTHON_ENTRIES = 10_000

_KEYS_PER_ENTRY = 10
_ROUND = 1 << 18
_ROUNDS = 12
_PYTHON_ROUND = 50_000

STEPS = len(NAMES) * (len(BY_ENTRIES) + 2)


def measure(done: Steps) -> dict[str, Any]:
    """{policy: {"python_accesses_per_s", "compiled_accesses_per_s" (ENTRIES), "by_entries", "device"}}."""
    figures: dict[str, Any] = {
        "entries": ENTRIES,
        "python_entries": PYTHON_ENTRIES,
        "device_entries": DEVICE_ENTRIES,
    }
    device = targets.run(targets.UNIX, "policies.py", [DEVICE_ENTRIES], done)
    for name in NAMES:
        figures[name] = {"by_entries": {}, "device": device[name]}
    for entries in BY_ENTRIES:
        ids = accesses(entries)
        for name in NAMES:
            figures[name]["by_entries"][str(entries)] = of_compiled(name, entries, ids)
            done(1)
        if entries == PYTHON_ENTRIES:
            for name in NAMES:
                figures[name]["python_accesses_per_s"] = of_python(name, entries, ids)
                done(1)
    for name in NAMES:
        figures[name]["compiled_accesses_per_s"] = figures[name]["by_entries"][str(ENTRIES)]["accesses_per_s"]
    return figures


def warm(entries: int) -> int:
    """Accesses until the cache is full for sure: with ten keys an entry about six an entry are needed."""
    return 8 * entries + _ROUND


def accesses(entries: int) -> Any:
    """Numbers of keys, int32: `warm` and then _ROUNDS rounds."""
    count = warm(entries) + _ROUNDS * _ROUND
    chances = np.random.default_rng(7).random(count)
    # With its logarithm evenly spread a rank r has a chance of ln((r + 1) / r), but for the first 1 / r.
    ranks = np.floor((_KEYS_PER_ENTRY * entries) ** chances).astype(np.int64)
    return Numbering().numbers(ranks)


def of_compiled(name: str, entries: int, ids: Any) -> dict[str, float]:
    """{"accesses_per_s", "miss_ratio"}, of the rounds."""
    entry = catalogue.POLICIES[name]
    state = entry.state(catalogue.make(name, entries, **_options(name)))
    run = loops.loop(loops.alike, entry.compiled())
    where = np.full(int(ids.max()) + 1, -1, np.int32)
    holds = np.zeros(entries, np.int32)
    counts, nobody = np.zeros(6, np.int64), np.zeros(0, np.int32)
    start = warm(entries)
    best = 0.0
    with compiled.told(f"the {name} policy"):
        run(state, entries, ids[:start], where, holds, counts, nobody)
        if counts[loops.FREE] != entries:
            raise AssertionError(f"{counts[loops.FREE]} of {entries} entries in use after {start} accesses")
        before = int(counts[loops.HITS])
        for at in range(start, len(ids), _ROUND):
            part = ids[at : at + _ROUND]
            begun = time.perf_counter()
            run(state, entries, part, where, holds, counts, nobody)
            best = max(best, len(part) / (time.perf_counter() - begun))
    misses = len(ids) - start - (int(counts[loops.HITS]) - before)
    return {"accesses_per_s": best, "miss_ratio": misses / (len(ids) - start)}


def of_python(name: str, entries: int, ids: Any) -> float:
    """Accesses a second through the policy's own methods, keys found in a list."""
    policy = catalogue.make(name, entries, **_options(name))
    touch, insert, evict = policy.touch, policy.insert, policy.evict
    where = [-1] * (int(ids.max()) + 1)
    holds: list[int] = []
    best = 0.0
    numbers = ids[: warm(entries) + _PYTHON_ROUND].tolist()
    for at in range(0, len(numbers), _PYTHON_ROUND):
        part = numbers[at : at + _PYTHON_ROUND]
        begun = time.perf_counter()
        for k in part:
            i = where[k]
            if i >= 0:
                touch(i)
                continue
            if len(holds) < entries:
                i = len(holds)
                holds.append(k)
            else:
                i = evict()
                where[holds[i]] = -1
                holds[i] = k
            insert(i, k)
            where[k] = i
        if len(holds) == entries:
            best = max(best, len(part) / (time.perf_counter() - begun))
    return best


def _options(name: str) -> dict[str, int]:
    return {"most_count": MOST_COUNT} if name in ("lfu", "hybrid") else {}
