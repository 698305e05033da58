"""What admission to the bus, its schedule and its queue of copies cost a call."""

from __future__ import annotations

from typing import Any

from kvlab import paths
from kvlab.bench import targets
from kvlab.bench.targets import Steps

CALLS = 200
TITLES = {
    "call": "an empty method, to compare with",
    "request": "tracker: request",
    "record": "tracker: record",
    "stats": "tracker: stats",
    "enter": "schedule: enter a slot",
    "may": "schedule: may another task go",
    "push": "queue: push a copy",
    "push_joined": "queue: push what goes on",
    "start": "queue: start a chain, and see it done",
    "descriptor": "queue: more for each descriptor of a chain",
    "layer": "a token told in slots: more for each layer",
}
STEPS = len(TITLES)


def measure(target: str, calls: int, done: Steps) -> dict[str, Any]:
    """What costs() tells, and "event_rate_ratio"."""
    from kvlab.bus import closed  # slow to import

    return {**costs(target, calls, done), "event_rate_ratio": closed.event_rate_ratio()}


def costs(target: str, calls: int, done: Steps) -> dict[str, Any]:
    """{"calls": {name: cost}, "ratios": {name: times an empty method's}, "unit"}: in instructions on the
    emulated board, elsewhere in nanoseconds, of which only the ratios tell much."""
    found = targets.run(target, "bus.py", [calls, paths.SHIPPED], done)
    by = targets.ordered(found["calls"], *TITLES)
    ratios = {name: cost / by["call"] for name, cost in by.items()}
    return {"target": target, "unit": found["unit"], "calls": by, "ratios": ratios}


def rows(figures: dict[str, Any]) -> list[tuple[str, ...]]:
    """For a table: what, cost, times an empty method's."""
    return [
        (TITLES[name], f"{cost:,.0f}", f"{figures['ratios'][name]:.1f}")
        for name, cost in figures["calls"].items()
    ]
