"""The simulated bus where the answer is known: each of these has a closed form in bounds.py to be held to.

Times that are returned are microseconds.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Generator
from math import log
from typing import Any

import simpy

from kvlab.bus.facts import Figures
from kvlab.bus.kinds import IO
from kvlab.bus.wire import PS_PER_US, Wire

Steps = Generator[simpy.Event, Any, None]


def md1_waiting(figures: Figures, nbytes: int, load: float, transfers: int, seed: int = 1) -> float:
    """The mean waiting of equal transfers that come at random and take the bus for `load` of the time.

    Half of them come by the mirror image of the other half's random numbers: what one has too many of, the
    other has too few.
    """
    took = figures.transfer_ps(nbytes, IO)
    source = random.Random(seed)
    numbers = [source.random() for _ in range(transfers // 2)]
    waited = sum(_waited(figures, nbytes, took / load, part) for part in (numbers, [1 - x for x in numbers]))
    return waited / (2 * len(numbers)) / PS_PER_US


def _waited(figures: Figures, nbytes: int, mean_ps: float, numbers: list[float]) -> int:
    env = simpy.Environment()
    wire = Wire(env, figures)

    def arrivals() -> Steps:
        for number in numbers:
            yield env.timeout(round(-log(1 - number or 1e-300) * mean_ps))
            wire.transfer("", IO, nbytes)

    env.process(arrivals())
    env.run()
    return wire.waited_ps[IO]


def bucket(figures: Figures, burst: int, rate: int, piece: int, latency_us: int) -> tuple[float, float]:
    """(delay, backlog in bytes) of a task that asks the device's tracker for as much as it gets, on a bus
    that something else has just taken for so long."""
    return _greedy(figures, burst, rate, piece, lambda now: (max(now, latency_us * PS_PER_US), None))


def tdma(figures: Figures, burst: int, rate: int, piece: int, slot_us: int, cycle_us: int) -> float:
    """The delay of such a task that has a slot of each cycle, which has just ended."""
    slot, cycle = slot_us * PS_PER_US, cycle_us * PS_PER_US

    def window(now: int) -> tuple[int, int | None]:
        into = now % cycle
        begins = now if into >= cycle - slot else now - into + cycle - slot
        return begins, begins - begins % cycle + cycle

    delay, _backlog = _greedy(figures, burst, rate, piece, window)
    return delay


Window = Callable[[int], tuple[int, int | None]]


def _greedy(figures: Figures, burst: int, rate: int, piece: int, window: Window) -> tuple[float, float]:
    """window: from a time on, when the bus is the task's next and until when."""
    from mpy_kv.bus import tracker

    env = simpy.Environment()
    wire = Wire(env, figures)
    track = tracker.Tracker(figures.peak)
    task = track.task(tracker.IO, rate, burst, limit=rate)
    waiting: deque[int] = deque()
    arrived = env.event()
    most, longest = 0, 0
    pieces = 3 * burst // piece

    def asks() -> Steps:
        nonlocal arrived, most
        for _ in range(pieces):
            while wait := track.request(wire.now_us, task, piece):
                yield env.timeout(wait * PS_PER_US)
            waiting.append(int(env.now))
            most = max(most, len(waiting))
            arrived.succeed()
            arrived = env.event()

    def served() -> Steps:
        nonlocal longest
        took = figures.transfer_ps(piece, IO)
        while True:
            while not waiting:
                yield arrived
            begins, ends = window(int(env.now))
            if begins > env.now:
                yield env.timeout(begins - int(env.now))
            elif ends is not None and int(env.now) + took > ends:
                yield env.timeout(ends - int(env.now))
            else:
                yield wire.transfer("", IO, piece)
                longest = max(longest, int(env.now) - waiting.popleft())

    env.process(served())
    env.process(asks())
    env.run()
    return longest / PS_PER_US, most * piece


def blackout(budget_us: int, period_us: int, periods: int, seed: int = 1) -> float:
    """The longest time without service where a period gives the budget at its begin, its end or between."""
    env = simpy.Environment()
    source = random.Random(seed)
    longest, last = 0, 0

    def gives() -> Steps:
        nonlocal longest, last
        for k in range(periods):
            free = period_us - budget_us
            place = k * period_us + source.choice((0, source.randint(0, free), free))
            yield env.timeout(place - int(env.now))
            longest = max(longest, int(env.now) - last)
            yield env.timeout(budget_us)
            last = int(env.now)

    env.process(gives())
    env.run()
    return float(longest)


def event_rate_ratio(seconds: float = 0.3) -> float:
    """Events a second of tokens and other tasks on one bus, over those of a process that does nothing, each
    for so long, a part of it by turns, so that both have the same computer."""
    from kvlab.bus import contention, facts

    def empty(env: simpy.Environment) -> Steps:
        while True:
            yield env.timeout(1)

    work = contention.Work(8, 400_000, 3_400, 2_000_000, 40_000, pieces=10)
    counts, took = [0, 0], [0.0, 0.0]
    while min(took) < seconds:
        idle = simpy.Environment()
        idle.process(empty(idle))
        model = contention.environment(facts.figures("rp2040"), work)
        for which, env in enumerate((idle, model)):
            began = time.process_time()
            for _ in range(2000):
                env.step()
            took[which] += time.process_time() - began
            counts[which] += 2000
    ours, theirs = (count / spent for count, spent in zip(reversed(counts), reversed(took)))
    return ours / theirs
