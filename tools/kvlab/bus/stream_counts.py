"""The table of what streamed weights take the core, streamed.json: `kvlab docs --write streamed` renews it.

Counted as kvlab.cost counts a story, on the emulated 32-bit board, with the fetching left out: what fetches
is other hardware.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kvlab import paths, shipped
from kvlab.cost import count, counted
from kvlab.cost.cycles import CYCLES, Counts, table
from kvlab.element_types import USUAL

PATH = Path(__file__).with_name("streamed.json")

# Bytes of RAM that weights are streamed through, in how many places.
RINGS = ((8192, 4), (16384, 4), (24576, 4), (32768, 4), (49152, 4))
USUAL_RING = 16384

_BLOCK_BYTES = 16  # of a control block, of which a chunk has three; one more closes the circle
_GATE_BYTES = 4  # that the copying core has in the place of them


@dataclass(frozen=True)
class Entry:
    """Of one shape and ring."""

    ring_bytes: int
    places: int
    ram_bytes: int  # on a chip: places, records, state, control blocks
    matrices: tuple[int, ...]  # chunks of each matrix, in the order in which a token takes them
    chunk_bytes: tuple[int, ...]
    chunk_cycles: tuple[int, ...]  # of matvec() alone, no miss
    step: Mapping[int, Counts]  # a token's step by its position, fetching and waiting left out
    beside: Mapping[int, Counts]  # sampling and printing it


def find(shape: Any, codec: str, ring_bytes: int) -> Entry | None:
    """The entry of that shape; None where nothing like it was counted."""
    return entries().get((counted.key(shape, codec), ring_bytes))


@cache
def entries() -> dict[tuple[str, int], Entry]:
    found = json.loads(PATH.read_text("utf-8"))["entries"]
    return {(name, each["ring_bytes"]): _entry(each) for name, rings in found.items() for each in rings}


def measured() -> str:
    """The table's text: models that ship, in int8, through each ring."""
    from kvlab.models.image import Image

    found = {}
    for name in shipped.NAMES:
        image = Image.read(shipped.image(name))
        found[counted.key(image.config, USUAL)] = [_of(image.data, *ring) for ring in RINGS]
    text = {
        "what": "Instructions of the stories app with streamed weights on the emulated Cortex-M3, by class"
        " and position, lines that a flash cache of 16 KiB misses, cycles of each chunk's matvec():"
        " kvlab docs --write streamed",
        "classes": list(CYCLES),
        "entries": found,
    }
    return counted.short(json.dumps(text, indent=1)) + "\n"


def _of(image: bytes, ring_bytes: int, places: int) -> dict[str, Any]:
    tokens = max(count.POSITIONS) + 1
    script = paths.APPS / "bench" / "stream" / "marks.py"
    words = [count.WINDOW, count.SINKS, tokens, ring_bytes, places]
    seen, printed = count.marked(script, words, image)
    said = json.loads(printed.strip().splitlines()[-1])
    told, rest = seen[: 4 * tokens], seen[4 * tokens :]
    by = {p: told[4 * p : 4 * p + 4] for p in count.POSITIONS}
    chunks = [count.between(*pair) for pair in zip(rest[::2], rest[1::2])]
    return {
        "ring_bytes": ring_bytes,
        "places": places,
        "ram_bytes": said["ram_bytes"] - _GATE_BYTES + _BLOCK_BYTES * (3 * len(chunks) + 1),
        "matrices": said["counts"],
        "chunk_bytes": said["chunks"],
        "chunk_cycles": [round(table(each.kernels)) for each in chunks],
        "step": {str(p): count.packed(count.between(marks[1], marks[2])) for p, marks in by.items()},
        "beside": {
            str(p): count.packed(count.between(*marks[:2]) + count.between(*marks[2:]))
            for p, marks in by.items()
        },
    }


def _entry(found: Mapping[str, Any]) -> Entry:
    return Entry(
        found["ring_bytes"],
        found["places"],
        found["ram_bytes"],
        tuple(found["matrices"]),
        tuple(found["chunk_bytes"]),
        tuple(found["chunk_cycles"]),
        {int(place): counted.unpacked(n) for place, n in found["step"].items()},
        {int(place): counted.unpacked(n) for place, n in found["beside"].items()},
    )
