"""The model against figures that were measured elsewhere, measured.json; the one fit that it has."""

from __future__ import annotations

from typing import Any, NamedTuple

from kvlab.cost import counted, cycles

IN_PLACE, FILE = "in place", "file on littlefs"


class Compared(NamedTuple):
    position: int
    miss_cycles: int
    place: str  # of the model
    measured: float  # cycles of a token: its step, and the mean of sampling and printing
    modelled: float

    @property
    def error(self) -> float:
        return self.modelled / self.measured - 1


def compare(shape: Any, codec: str = "int8", firmware: float = cycles.FIRMWARE) -> list[Compared]:
    """At each position that was measured."""
    entry = counted.find(shape, codec, counted.THEN)
    assert entry is not None
    found = counted.measured()
    by = {IN_PLACE: entry.token, FILE: entry.file}
    per_us = found["clock_hz"] / 1e6
    return [
        Compared(
            int(place),
            run["flash_miss_cycles"],
            run["model"],
            (us + run["mean_sample_print_us"]) * per_us,
            counted.at(by[run["model"]], int(place)).cycles(run["flash_miss_cycles"], firmware),
        )
        for run in found["runs"]
        for place, us in run["position_step_us"].items()
    ]


def firmware_factor(shape: Any, codec: str = "int8") -> float:
    """What FIRMWARE is by least squares over the positions without misses, the model in place."""
    none, one = (
        [line for line in compare(shape, codec, factor) if line.place == IN_PLACE and not line.miss_cycles]
        for factor in (0, 1)
    )
    parts = [(b.modelled - a.modelled, a.measured - a.modelled) for a, b in zip(none, one)]
    return sum(x * y for x, y in parts) / sum(x * x for x, _ in parts)
