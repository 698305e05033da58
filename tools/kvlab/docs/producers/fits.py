"""What fits a board: the largest window of the story, by the plan, and the constants that the plan stands on.

The question is `kvlab stories --board B --window W --tokens 40` with the shipped model, default sampling and
no prompt. host_tests/test_fits.py holds the plan against the emulators.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from kvlab import boards, shipped
from kvlab.docs.registry import Cost, Producer, named, needs_firmware
from kvlab.docs.tolerance import HEAP
from kvlab.element_types import HELD, USUAL
from kvlab.plan.program import BOARDS

MEASURED = "tools/kvlab/plan/measured"


def _name(board: str, codec: str) -> str:
    return f"fits_{board}" if codec == USUAL else f"fits_{board}_{codec.replace('-', '_')}"


def _fits(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab import story
    from kvlab.plan import models, planner, targets

    model = models.find(shipped.NAMES[0])
    known = {name: boards.load(name) for name in boards.names()}

    def largest(board: str, codec: str) -> int:
        question = planner.Question(1, codec, window=1, sinks=story.USUAL_SINKS)
        return planner.largest_window(model, targets.of_board(known[board]), question)

    made = {_name(board, codec): f"{largest(board, codec):,}" for board in known for codec in HELD}
    rows = [("board", "heap, bytes", "largest object", "largest window"), ("---", "---:", "---:", "---:")]
    for name in boards.real_names():
        board, firmware = known[name], boards.firmware_of(known[name])
        window = made[_name(name, USUAL)]
        if firmware is not None:
            window += f"; {made[_name(firmware.name, USUAL)]} with 32-bit objects (`{firmware.name}`)"
        machine = board.machine
        rows.append((f"`{name}`", f"{machine.heap_bytes:,}", f"{machine.largest_object_bytes:,}", window))
    made["fits"] = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return made


def _measured(board: str) -> Producer:
    """Of the constants of that board."""
    path = f"{MEASURED}/{board}.json"

    def make(_wanted: Collection[str]) -> Mapping[str, bytes]:
        from kvlab.plan import measure

        return {path: (json.dumps(measure.measure(board), indent=2) + "\n").encode()}

    name = f"measured_{board}"
    command = f"kvlab docs --write {name}"
    missing = needs_firmware if boards.load(board).emulated else lambda: None
    return Producer(name, command, Cost.LONG, named(path, tolerance=HEAP), make, missing, group="measured")


PRODUCERS = (
    Producer(
        "fits",
        "kvlab plan --model stories --board BOARD --codec CODEC",
        Cost.CHEAP,
        named("fits", *(_name(board, codec) for board in boards.names() for codec in HELD)),
        _fits,
    ),
    *map(_measured, BOARDS),
)
