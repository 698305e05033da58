"""A bus in simulated time (simpy): one transfer at a time, first come first served, never cut.

Time is whole picoseconds, so that sums are exact and what does not meet does not wait.
"""

from __future__ import annotations

from typing import NamedTuple

import simpy

from kvlab.bus.facts import Figures
from kvlab.bus.kinds import KINDS, KV_WRITE

PS_PER_US = 10**6
TICKS = (1 << 30) - 1  # of MicroPython's ticks_us(), which the device's objects are given


class Span(NamedTuple):
    """A transfer: who asked, for what, at which layer (of another task -1), how long it waited and took."""

    agent: str
    kind: int
    layer: int
    asked_ps: int
    begin_ps: int
    end_ps: int
    nbytes: int


class Wire:
    """The bus of `figures`. What it did is in `spans`, if they are kept, and in its counts, by kind."""

    def __init__(self, env: simpy.Environment, figures: Figures, keep: bool = False) -> None:
        self.env, self.figures = env, figures
        self.spans: list[Span] | None = [] if keep else None
        self.free_at = int(env.now)
        self.transfers = [0] * len(KINDS)
        self.waited_ps = [0] * len(KINDS)
        self.busy_ps = [0] * len(KINDS)
        self._wrote, self._before = False, 0
        self._takes: dict[tuple[int, int, int, int], int] = {}

    @property
    def now_us(self) -> int:
        """What a board's clock shows."""
        return int(self.env.now) // PS_PER_US & TICKS

    def transfer(
        self,
        agent: str,
        kind: int,
        nbytes: int,
        layer: int = -1,
        asked_ps: int | None = None,
        vectors: int = 0,
    ) -> simpy.Event:
        """Ask for the bus; what is returned happens when the last byte is through.

        asked_ps: from when on it waits, where that is not now: it follows another of its own, or was not let
        go at once. vectors: what is read and written beside weights.
        """
        now, writes = int(self.env.now), kind == KV_WRITE
        what = (nbytes, kind, self._before if writes is not self._wrote else 0, vectors)
        took = self._takes.get(what)
        if took is None:
            took = self._takes[what] = self.figures.transfer_ps(*what)
        asked = now if asked_ps is None else asked_ps
        begin = self.free_at
        if begin < now or begin < asked:
            begin = max(now, asked)
        self.free_at = end = begin + took
        self._wrote, self._before = writes, nbytes
        self.transfers[kind] += 1
        self.waited_ps[kind] += begin - asked
        self.busy_ps[kind] += took
        if self.spans is not None:
            self.spans.append(Span(agent, kind, layer, asked, begin, end, nbytes + vectors))
        return simpy.Timeout(self.env, end - now)
