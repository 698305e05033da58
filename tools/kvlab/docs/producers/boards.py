"""What boards/*/board.json says of each board's heap and clocks."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvlab import boards, facts
from kvlab.docs.registry import Cost, Producer, named


def _facts(wanted: Collection[str]) -> Mapping[str, str]:
    made = {}
    for name in boards.names():
        board = boards.load(name)
        machine = board.machine
        made[f"heap_{name}"] = f"{machine.heap_bytes:,}"
        made[f"object_{name}"] = f"{machine.largest_object_bytes:,}"
        made[f"clocks_{name}"] = _clocks(board)
    return made


def _clocks(board: boards.Board) -> str:
    """The clocks, what they need, and who says so."""
    fact = board.facts["cpu.clocks_hz"]
    need = f": {fact.note}" if fact.note else ""
    return f"{facts.shown('clocks_hz', fact.value)}{need} (`{fact.source}`)"


PRODUCERS = (
    Producer(
        "boards",
        "kvlab boards",
        Cost.CHEAP,
        named(*(f"{what}_{name}" for name in boards.names() for what in ("heap", "object", "clocks"))),
        _facts,
    ),
)
