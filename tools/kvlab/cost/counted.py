"""The table of counts by the shape of a model, which `kvlab docs --write counts` renews: counts.json.

Beside the code of this tree it has that of the tree on which cycles were measured (measured.json): commit
f276be2, also with the model as a file, by marks.py on firmware built with MICROPY_VFS_LFS2. These stay.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kvlab.cost.cycles import CYCLES, Counts

FOLDER = Path(__file__).parent
PATH = FOLDER / "counts.json"
MEASURED = FOLDER / "measured.json"

NOW, THEN = "of this tree", "as it was measured"

SHAPE = ("dim", "hidden", "layers", "heads", "kv_heads", "vocab")


@dataclass(frozen=True)
class Entry:
    """Counts of one shape and element type, by the position of a token; see count.story."""

    window: int
    sinks: int
    start: Counts
    token: Mapping[int, Counts]
    prompt: Mapping[int, Counts]
    file: Mapping[int, Counts]  # a token where the model is a file on littlefs; empty where not counted
    remembered: Counts | None  # a start that finds its kernels checked; None where not counted


def key(shape: Any, codec: str, code: str = NOW) -> str:
    """Of an entry. shape: anything with the fields SHAPE, a checkpoint's Config or a model's."""
    return ", ".join([*(f"{name} {getattr(shape, name)}" for name in SHAPE), codec, code])


def find(shape: Any, codec: str, code: str = NOW) -> Entry | None:
    """The entry of that shape; None where nothing like it was counted."""
    return entries().get(key(shape, codec, code))


@cache
def entries() -> dict[str, Entry]:
    return {name: _entry(found) for name, found in json.loads(PATH.read_text("utf-8"))["entries"].items()}


@cache
def measured() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(MEASURED.read_text("utf-8"))
    return found


def at(by_visible: Mapping[int, Counts], position: float) -> Counts:
    """Counts at a position: between two that were counted, or behind the last, on the line through them."""
    places = sorted(by_visible)
    i = min(max(bisect_left(places, position), 1), len(places) - 1)
    if position > places[-1]:
        i, first = len(places) - 1, 0  # the last are close together: a line through all
    else:
        first = i - 1
    a, b = places[first], places[i]
    part = (position - a) / (b - a)
    return by_visible[a].times(1 - part) + by_visible[b].times(part)


def renewed(found: Mapping[str, Any], path: Path = PATH) -> str:
    """The table's text with the entries of `found` (see count.entries) in place of theirs; those of the tree
    that was measured stay."""
    old = json.loads(path.read_text("utf-8"))["entries"] if path.exists() else {}
    kept = {name: entry for name, entry in old.items() if name.endswith(THEN)}
    table = {
        "what": "Instructions of the stories app on the emulated Cortex-M3, by class and position, and"
        " lines that a flash cache of 16 KiB misses: kvlab docs --write counts",
        "classes": list(CYCLES),
        "entries": dict(sorted({**kept, **found}.items())),
    }
    return short(json.dumps(table, indent=1)) + "\n"


def short(text: str) -> str:
    """JSON with each list of numbers in one line."""
    out: list[str] = []
    inside = False
    for line in text.split("\n"):
        bare = line.strip()
        if inside:
            out[-1] += bare + (" " if bare.endswith(",") and not bare.startswith("]") else "")
            inside = not bare.startswith("]")
        else:
            out.append(line)
            inside = bare.endswith("[")
    return "\n".join(out)


def _entry(found: Mapping[str, Any]) -> Entry:
    return Entry(
        found["window"],
        found["sinks"],
        unpacked(found["start"]),
        {int(place): unpacked(n) for place, n in found["token"].items()},
        {int(place): unpacked(n) for place, n in found["prompt"].items()},
        {int(place): unpacked(n) for place, n in found.get("file", {}).items()},
        unpacked(found["remembered"]) if "remembered" in found else None,
    )


def unpacked(found: Mapping[str, Any]) -> Counts:
    return Counts(
        dict(zip(CYCLES, found["firmware"])),
        dict(zip(CYCLES, found["kernels"])),
        float(found["misses"]),
        float(found.get("copied", 0)),
    )
