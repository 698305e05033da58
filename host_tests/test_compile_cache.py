"""What was compiled once is found by the next process, functions made of other compiled ones included."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import json
import numpy as np
from kvlab.engine import compiled, drivers
from kvlab.engine.catalogue import POOLS
from kvlab.engine.state import widened
from kvlab.replay import catalogue, loops

fixed = POOLS["fixed"]
pairs = drivers.loop(drivers.pairs, fixed.compiled())
with compiled.swapped(fixed.modules):
    pairs(fixed.state(widened(fixed.pool(8))), 64, 10)
found = {"pairs": pairs}
for name in ("fifo", "sieve"):
    entry = catalogue.POLICIES[name]
    alike = found[name] = loops.loop(loops.alike, entry.compiled())
    holds, counts, nobody = np.zeros(2, np.int32), np.zeros(6, np.int64), np.zeros(0, np.int32)
    ids = np.array([0, 1, 0, 2, 0], np.int32)
    alike(entry.state(catalogue.make(name, 2)), 2, ids, np.full(3, -1, np.int32), holds, counts, nobody)
    found[name].hits = int(counts[0])
print(json.dumps({
    name: [*(sum(counted.values()) for counted in each.stats[1:]), getattr(each, "hits", 0)]
    for name, each in found.items()
}))
"""


def test_the_next_process_compiles_nothing(tmp_path: Path) -> None:
    """And what is found is the right one: fifo and sieve are made of the same adapters."""

    def run() -> dict[str, list[int]]:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        found: dict[str, list[int]] = json.loads(done.stdout)
        return found

    def files() -> int:
        return sum(path.is_file() for path in tmp_path.rglob("*"))

    assert run() == {"pairs": [0, 1, 0], "fifo": [0, 1, 1], "sieve": [0, 1, 2]}
    written = files()
    assert run() == {"pairs": [1, 0, 0], "fifo": [1, 0, 1], "sieve": [1, 0, 2]}
    assert files() == written
