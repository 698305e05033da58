"""Counts the calls of a story as a task on the emulated 32-bit board, with the heap of a Pico; turns.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from commandline.errors import FellShort
from kvlab import boards, paths, shipped
from kvlab.cost import counted
from kvlab.cost.count import SINKS, WINDOW, between, marked, packed
from kvlab.cost.cycles import CYCLES, Counts, miss_cycles
from kvlab.element_types import HELD, USUAL
from qemu_port.launcher import firmware_heap_bytes

WINDOWS = (WINDOW, WINDOW // 2)  # the first that fits
BOARD = "rp2040"

Marked = tuple[list[dict[str, Any]], str]


def table() -> str:
    """turns.json: models that ship in int8, the first of them in every type."""
    from kvlab.models.image import Image

    found = {}
    for name in shipped.NAMES:
        image = Image.read(shipped.image(name))
        for codec in HELD if name == shipped.NAMES[0] else (USUAL,):
            found[counted.key(image.config, codec)] = entry(image.data, codec)
    said = {
        "what": "Instructions of the longest of each call of a story as a task on the emulated Cortex-M3, by"
        " class, at a full window: kvlab docs --write turns",
        "classes": list(CYCLES),
        "entries": dict(sorted(found.items())),
    }
    return counted.short(json.dumps(said, indent=1)) + "\n"


def heap_bytes() -> int:
    """Of the firmware that is counted."""
    return firmware_heap_bytes(boards.load(BOARD).machine.heap_bytes)


def entry(image: bytes, codec: str = USUAL, run: Callable[..., Marked] = marked) -> dict[str, Any]:
    """Of a model in place, the longest of each; FellShort as the last run."""
    script = paths.APPS / "bench" / "calls.py"
    for window in WINDOWS:
        try:
            words = [window, SINKS, codec if codec != USUAL else ""]
            seen, said = run(script, words, image, heap_bytes=heap_bytes())
            break
        except FellShort as error:
            if window == WINDOWS[-1] or "MemoryError" not in str(error):
                raise
    names = json.loads(said)
    pairs = [between(before, after) for before, after in zip(seen[::2], seen[1::2], strict=True)]
    longest: dict[str, Counts] = {}
    for name, counts in zip(names, pairs, strict=True):
        if name not in longest or _us(longest[name]) < _us(counts):
            longest[name] = counts
    return {"window": window, "sinks": SINKS, **{name: packed(counts) for name, counts in longest.items()}}


def _us(counts: Counts) -> float:
    clock = boards.load(BOARD).machine.clock_hz
    assert clock
    return counts.cycles(miss_cycles(clock))
