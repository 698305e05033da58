"""Bytes that a story moves over the bus, counted by its kernels as they run on the unix port."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlab.bench import targets
from kvlab.bench.targets import Steps
from kvlab.bus import formula
from kvlab.bus.formula import ByStage, Bytes


@dataclass(frozen=True)
class Counted:
    """Of a told token by how many were there, and of a whole prompt."""

    tokens: Mapping[int, ByStage]
    prompt: ByStage
    prompt_tokens: int


def steps(positions: Sequence[int], prompt: int) -> int:
    """Of the progress bar."""
    return 2 * prompt + max(positions) - 1 + 2 * len(set(positions))


def count(
    image: bytes,
    positions: Sequence[int],
    prompt: int,
    *,
    window: int = 256,
    sinks: int = 4,
    codec: str = "int8",
    done: Steps = lambda _n: None,
) -> Counted:
    """Of the model in a board image; FellShort where it cannot be told or the kernels differ."""
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "model.mkvm"
        path.write_bytes(image)
        words = [path, window, sinks, ",".join(map(str, positions)), prompt, codec]
        found = targets.run(targets.UNIX, "access.py", words, done)
    return Counted(
        {int(place): _by_stage(by) for place, by in sorted(found["tokens"].items(), key=lambda i: int(i[0]))},
        _by_stage(found["prompt"]),
        found["prompt_tokens"],
    )


def _by_stage(found: Mapping[str, Mapping[str, Any]]) -> ByStage:
    kinds = ("kv_read", "kv_write", "weights", "io_read", "io_write")
    return {stage: Bytes(*(found[stage][kind] for kind in kinds)) for stage in formula.STAGES}
