"""What a token can cost at the least on each board: the limit of its core, and that of its buses.

Core: the clock over the instructions of a token, as counted on the emulated Cortex-M3, one cycle an
instruction. No Arm core of a board here is faster than that; loads and branches take more on all of them.
Stated for boards with an Arm core only, since other cores run other instructions. Bus: the bytes that
a token reads, over the bandwidth of the memory it lies in (boards/*/board.json).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvlab import boards
from kvlab.plan import models, targets
from kvlab.plan.planner import Question, plan

ARM_PORTS = ("rp2",)  # MicroPython ports whose boards have Arm cores


def of_boards(model: Path, visible: int, instructions: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Board -> {"core_tokens_per_s": {kernels: ...}, "bus_tokens_per_s", bytes read per token}.

    `instructions`: of a token with `visible` tokens in view, by kernel set.
    """
    shape = models.from_file(model)
    found: dict[str, dict[str, Any]] = {}
    for name in boards.names():
        board = boards.load(name)
        if board.emulated:
            continue
        target = targets.of_board(board)
        answer = plan(shape, target, Question(visible, target.codec))
        clock = board.machine.clock_hz if board.port in ARM_PORTS else None
        found[name] = {
            "clock_hz": board.machine.clock_hz,
            "core_tokens_per_s": {each: clock / n for each, n in instructions.items()} if clock else {},
            "bus_tokens_per_s": answer.tokens_per_s,
            "weights_read_bytes": answer.weights_read_bytes,
            "kv_read_bytes": answer.kv_read_bytes,
        }
    return found
