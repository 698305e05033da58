"""The tables that the modelled figures of a Raspberry Pi Pico stand on: instructions by class."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvlab.docs.registry import Cost, Producer, named, needs_firmware
from kvlab.docs.tolerance import INSTRUCTIONS

TABLE = "tools/kvlab/cost/counts.json"
TURNS = "tools/kvlab/cost/turns.json"


def _counts(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab.cost import count, counted

    return {TABLE: counted.renewed(count.entries()).encode()}


def _turns(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab.cost import count_turns

    return {TURNS: count_turns.table().encode()}


PRODUCERS = (
    Producer(
        "counts",
        "kvlab docs --write counts",
        Cost.LONG,
        named(TABLE, tolerance=INSTRUCTIONS),
        _counts,
        needs_firmware,
    ),
    Producer(
        "turns",
        "kvlab docs --write turns",
        Cost.MINUTES,
        named(TURNS, tolerance=INSTRUCTIONS),
        _turns,
        needs_firmware,
    ),
)
