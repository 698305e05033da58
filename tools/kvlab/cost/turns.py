"""What other tasks of a program see while a Raspberry Pi Pico tells a story as a task, modelled: the longest
call, the longest time between two awaits, the longest garbage collection.

Counted at a full window: no token takes longer. Of other chips there is no figure, and the reason why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from kvlab.boards import Board
from kvlab.cost import counted, cycles
from kvlab.cost.cycles import Counts
from kvlab.cost.model import CHIP

PATH = Path(__file__).with_name("turns.json")

# Of a token: what is called between two awaits.
CALLS = ("choose", "begin", "layer", "rest", "classifier", "seal", "commit")  # not all have blocks to seal
TURN = "turn"
SLOTS = ("weights", "kv_write", "kv_read")  # in the order of a layer
ALONE, FULL = "collection", "collection of a full heap"
COLLECTIONS = (ALONE, FULL)


@dataclass(frozen=True)
class Turns:
    """Microseconds, modelled; `note` names the clock and what was counted, or why there is no figure."""

    longest_call_us: float | None = None
    longest_between_awaits_us: float | None = None
    longest_collection_us: float | None = None  # the story's heap, and all else full of what is to be freed
    collection_us: float | None = None  # the story's heap alone
    calls_us: Mapping[str, float] = field(default_factory=dict)
    slots_us: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    def figures(self) -> dict[str, Any]:
        return {
            "longest_call_us": self.longest_call_us,
            "longest_between_awaits_us": self.longest_between_awaits_us,
            "longest_collection_us": self.longest_collection_us,
            "collection_us": self.collection_us,
            "calls_us": dict(self.calls_us),
            "slots_us": dict(self.slots_us),
            "turns_modelled": self.note,
        }


@dataclass(frozen=True)
class Entry:
    """Counts of a shape and an element type, the longest of each by name."""

    window: int
    sinks: int
    counts: Mapping[str, Counts]


def modelled(
    board: Board,
    shape: Any,
    codec: Any,
    *,
    window: int = 256,
    sinks: int = 4,
    clock_hz: int | None = None,
    why_not: str = "",
) -> Turns:
    """Of a model in place and the fastest kernels. shape: has the fields counted.SHAPE. why_not: a reason
    for which there is none."""
    if board.chip != CHIP:
        return Turns(note=f"no figure: counted for the Cortex-M0+ of an {CHIP}, which {board.title} has not")
    clock = clock_hz or board.machine.clock_hz
    entry = entries().get(counted.key(shape, codec)) if isinstance(codec, str) else None
    if why_not or entry is None or not clock:
        return Turns(note=why_not or "no figure: what such a model and cache take was not counted")
    if window + sinks > entry.window + entry.sinks:
        return Turns(note=f"no figure: no window longer than {entry.window:,} was counted")
    miss = cycles.miss_cycles(clock)
    us = {name: counts.cycles(miss) / clock * 1e6 for name, counts in entry.counts.items()}
    return Turns(
        max(us[name] for name in CALLS if name in us),
        us[TURN],
        max(us[name] for name in COLLECTIONS),
        us[ALONE],
        {name: us[name] for name in CALLS if name in us},
        {name: us[name] for name in SLOTS},
        f"{clock / 1e6:g} MHz, the fastest kernels, the model in flash and read in place, {entry.window:,}"
        f" tokens and {entry.sinks} sinks in view; what asyncio itself takes at a turn is not counted",
    )


def rows_of(f: Mapping[str, Any]) -> list[tuple[str, str]]:
    """For a table: figures of Turns, among others."""
    if f["longest_call_us"] is None:
        return [("turns, modelled", f["turns_modelled"])]
    longest = max(f["calls_us"], key=f["calls_us"].__getitem__)
    return [
        ("longest call", f"{said_ms(f['longest_call_us'])}: {SAID[longest]}"),
        ("longest between two awaits", said_ms(f["longest_between_awaits_us"])),
        (
            "longest garbage collection",
            f"{said_ms(f['longest_collection_us'])} where all of the heap but the story is garbage,"
            f" {said_ms(f['collection_us'])} without any; the story makes none",
        ),
        ("turns, modelled", f["turns_modelled"]),
    ]


SAID = {
    "choose": "a token is drawn",
    "begin": "a step begins",
    "layer": "a layer of a token",
    "rest": "what is behind the last layer's attention",
    "classifier": "the classifier, or a piece of it",
    "seal": "a layer's block is sealed",
    "commit": "the token's commit",
}


def said(f: Mapping[str, Any]) -> str:
    """Figures of Turns in a sentence."""
    return (
        f"no call longer than {said_ms(f['longest_call_us'])}, at most"
        f" {said_ms(f['longest_between_awaits_us'])} between two awaits, a garbage collection of at most"
        f" {said_ms(f['longest_collection_us'])}"
    )


def said_ms(us: float | None) -> str:
    return "-" if us is None else f"{us / 1000:.1f} ms"


@cache
def entries() -> dict[str, Entry]:
    if not PATH.exists():  # while it is made for the first time
        return {}
    found = json.loads(PATH.read_text("utf-8"))["entries"]
    return {name: _entry(one) for name, one in found.items()}


def _entry(found: Mapping[str, Any]) -> Entry:
    names = [name for name in (*CALLS, TURN, *SLOTS, *COLLECTIONS) if name in found]
    return Entry(found["window"], found["sinks"], {name: counted.unpacked(found[name]) for name in names})
