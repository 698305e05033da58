"""Each wait three times: in closed form, as the worst that a search finds, and in simulation."""

from __future__ import annotations

from dataclasses import dataclass

from kvlab.bus import bounds, closed, contention, facts
from kvlab.bus.contention import Work
from kvlab.bus.facts import Figures
from kvlab.bus.kinds import IO

_US = 10**6  # picoseconds


@dataclass(frozen=True)
class Row:
    """`found`: by the search, None where a mean is told; in `unit`."""

    what: str
    unit: str
    bound: float
    found: float | None
    simulated: float

    @property
    def off(self) -> float:
        """How far the simulation is from the closed form, as a part of it."""
        return abs(self.simulated - self.bound) / self.bound


def rows() -> list[Row]:
    """On a bus of 10 MB/s, as microseconds are easy to follow there."""
    bus = Figures("made", "RAM", 10_000_000, 10_000_000)
    burst, rate, latency, slot, cycle, piece = 4000, 1_000_000, 300, 100, 400, 20
    flow = (burst, rate // _US, bus.peak // _US, latency)
    bucket = bounds.token_bucket(*flow)
    delay, backlog = closed.bucket(bus, burst, rate, piece, latency)
    worst_delay, worst_backlog = bounds.worst_token_bucket(*flow)
    share = (burst, rate // _US, slot, cycle, bus.peak // _US)
    budget, period, load, nbytes = 30, 100, 0.6, 64
    took_us = bus.transfer_ps(nbytes, IO) / _US
    return [
        Row(
            f"bucket of {burst:,} bytes and 1 MB/s, the bus taken for {latency} µs: delay",
            "µs",
            float(bucket.delay),
            float(worst_delay),
            delay,
        ),
        Row("the same: backlog", "bytes", float(bucket.backlog), float(worst_backlog), backlog),
        Row(
            f"the same in a slot of {slot} of every {cycle} µs: delay",
            "µs",
            float(bounds.tdma_stairs(*share)),
            float(bounds.worst_tdma(*share)),
            closed.tdma(bus, burst, rate, piece, slot, cycle),
        ),
        Row(
            f"a budget of {budget} of every {period} µs: without service",
            "µs",
            float(bounds.blackout(budget, period)),
            float(bounds.worst_blackout(budget, period)),
            closed.blackout(budget, period, 400),
        ),
        Row(
            f"{nbytes} bytes at random, {100 * load:.0f} % of the time: mean waiting",
            "µs",
            bounds.md1_waiting(load, took_us),
            None,
            closed.md1_waiting(bus, nbytes, load, 100_000),
        ),
    ]


def staggered(name: str, work: Work) -> Row:
    """Other tasks between a model's slots on that board: the schedule's bound, the worst by the formula's
    search, and in simulation by the device's own schedule."""
    bus = facts.figures(name)
    slots, bursts = contention.planned_us(bus, work)
    bound, simulated = contention.searched(bus, work)
    found = float(bounds.worst_staggered_io(slots, sum(bursts)))
    return Row("between a model's slots: request to last byte", "µs", bound, found, simulated)
