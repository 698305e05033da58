"""Has the package compute cases: its native kernels on the unix port, or any kernel set in this process."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from commandline.errors import FellShort
from kvlab import paths
from kvlab.bench.accuracy.inputs import Array, Case
from unix_port import port

# The results of cases, each of Case.shape.
Run = Callable[[Sequence[Case]], list[Array]]

TIMEOUT_S = 600
_LEAST_HEAP = 4 << 20


def on_unix(cases: Sequence[Case], kernels: str = "best") -> list[Array]:
    """By the kernels of the unix port, viper where there are such, in one process. FellShort."""
    if not cases:
        return []
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        place = Path(folder)
        (place / "list").write_text("\n".join(case.line for case in cases))
        with (place / "data").open("wb") as data:
            for case in cases:
                data.write(case.data)
        # Beside the data of a case its cache, which has less than two bytes for one, and as much scratch.
        heap = _LEAST_HEAP + 5 * max(len(case.data) + 40 * len(case.keys) for case in cases)
        words = [str(place / name) for name in ("list", "data", "out")]
        script = str(paths.APPS / "bench" / "accuracy.py")
        done = port.run([script, *words, kernels], heap_bytes=heap, timeout_s=TIMEOUT_S)
        if done.status != 0:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise FellShort(f"the run on the unix port failed: {said[-1] if said else 'no word'}")
        raw = np.fromfile(place / "out", "<f4").astype(np.float64)
    return _split(raw, cases)


def here(cases: Sequence[Case], kernels_of: Callable[[str], Any]) -> list[Array]:
    """In this process; kernels_of: a kernel set by the name of an element type."""
    return [_here(case, kernels_of(case.codec)) for case in cases]


def _here(case: Case, kernels: Any) -> Array:
    from mpy_kv import cache_for, geometry_for

    tokens, head_dim = len(case.keys), case.queries.shape[1]
    room = {"window": tokens - case.sinks, "sinks": case.sinks} if case.sinks else {"capacity": tokens}
    g = geometry_for(case.codec, len(case.value_sets), len(case.queries), case.kv_heads, head_dim, **room)
    cache = cache_for(g, kernels=kernels)
    queries = array("f", case.queries.astype(np.float32).tobytes())
    rows = [np.asarray(x, np.float32) for x in (case.keys, *case.value_sets)]
    found = []
    for token in range(tokens):
        key, *values = (array("f", x[token].tobytes()) for x in rows)
        for layer, value in enumerate(values):
            cache.append(layer, key, value)
            if token == tokens - 1:
                out = array("f", bytes(4 * len(queries)))
                cache.attend(layer, queries, out)
                found.append(np.array(out, np.float64).reshape(case.queries.shape))
        cache.commit()
    return np.stack(found)


def _split(raw: Array, cases: Sequence[Case]) -> list[Array]:
    found, at = [], 0
    for case in cases:
        size = int(np.prod(case.shape))
        found.append(raw[at : at + size].reshape(case.shape))
        at += size
    if at != len(raw):
        raise FellShort(f"the run on the unix port gave {len(raw):,} numbers, not {at:,}")
    return found
