"""What boards/*/board.json says of each board's heap."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvlab import boards
from kvlab.docs.registry import Cost, Producer, named


def _facts(wanted: Collection[str]) -> Mapping[str, str]:
    made = {}
    for name in boards.names():
        machine = boards.load(name).machine
        made[f"heap_{name}"] = f"{machine.heap_bytes:,}"
        made[f"object_{name}"] = f"{machine.largest_object_bytes:,}"
    return made


PRODUCERS = (
    Producer(
        "boards",
        "kvlab boards",
        Cost.CHEAP,
        named(*(f"{what}_{name}" for name in boards.names() for what in ("heap", "object"))),
        _facts,
    ),
)
