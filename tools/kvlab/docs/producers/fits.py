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

MEASURED = "tools/kvlab/plan/measured.json"
CODECS = ("int8", "float16", "int8-int4", "int4", "sparse")


def _name(board: str, codec: str) -> str:
    return f"fits_{board}" if codec == "int8" else f"fits_{board}_{codec.replace('-', '_')}"


def _fits(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab import story
    from kvlab.plan import models, planner, targets

    model = models.find(shipped.NAMES[0])
    known = {name: boards.load(name) for name in boards.names()}

    def largest(board: str, codec: str) -> int:
        question = planner.Question(1, codec, window=1, sinks=story.USUAL_SINKS)
        return planner.largest_window(model, targets.of_board(known[board]), question)

    made = {_name(board, codec): f"{largest(board, codec):,}" for board in known for codec in CODECS}
    rows = [("board", "heap, bytes", "largest object", "largest window"), ("---", "---:", "---:", "---:")]
    for name in boards.real_names():
        board, firmware = known[name], boards.firmware_of(known[name])
        window = made[_name(name, "int8")]
        if firmware is not None:
            window += f"; {made[_name(firmware.name, 'int8')]} with 32-bit objects (`{firmware.name}`)"
        machine = board.machine
        rows.append((f"`{name}`", f"{machine.heap_bytes:,}", f"{machine.largest_object_bytes:,}", window))
    made["fits"] = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return made


def _measured(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab.plan import measure

    found = {name: measure.measure(name) for name in measure.BOARDS}
    return {MEASURED: (json.dumps(found, indent=2) + "\n").encode()}


PRODUCERS = (
    Producer(
        "fits",
        "kvlab plan --model stories --board BOARD --codec CODEC",
        Cost.CHEAP,
        named("fits", *(_name(board, codec) for board in boards.names() for codec in CODECS)),
        _fits,
    ),
    Producer(
        "measured",
        "kvlab docs --write measured",
        Cost.LONG,
        named(MEASURED, tolerance=HEAP),
        _measured,
        needs_firmware,
    ),
)
