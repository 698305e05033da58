"""What is proven of the bus tracker, whoever asks; and a model of its rules in exact rationals."""

from __future__ import annotations

import math
import random
from collections import deque
from fractions import Fraction
from typing import Any

import pytest
from bus_reference import PERIOD, Curve, Model, Task
from hypothesis import given, settings
from hypothesis import strategies as st

from field_tables import tables
from mpy_kv.bus.tracker import Tracker
from mpy_kv.bus.tracking import inspect

RECORD = tables.of("bus", "bus task")
KINDS = 4


class Run:
    """A tracker under true times, watched: look() looks at every promise. `modelled`: each answer is compared
    with the model's, too, which knows no silence that is longer than the ticks can tell."""

    def __init__(
        self,
        limit: int,
        tasks: list[dict[str, Any]],
        start: int = 0,
        window_ms: int = 100,
        modelled: bool = True,
    ) -> None:
        self.modelled = modelled
        self.tracker = Tracker(limit, limit, window_ms=window_ms, tasks=len(tasks))
        self.model = Model(limit)
        self.now = start
        self.seen = start  # the latest true time that the tracker was told
        self.tasks = []
        for kind, task in enumerate(tasks):
            self.tasks.append(self.tracker.task(kind % KINDS, **task))
            cap = task.get("limit") or limit
            self.model.tasks.append(Task(task["guarantee"], task["burst"], cap))
        bursts = [task["burst"] for task in tasks]
        self.curves = [Curve(task.cap) for task in self.model.tasks]
        self.bursts = bursts
        self.whole = Curve(limit)
        self.window_us = 1000 * window_ms
        self.slice_us = -(-self.window_us // 16)
        self.counted: deque[tuple[int, int]] = deque()
        self.totals = [0] * KINDS
        self.steps = 0
        self.tracker.stats(start % PERIOD)
        self.model.pour(start)

    def move(self, microseconds: int) -> None:
        self.now += microseconds

    def ask(self, i: int, nbytes: int, late: int = 0) -> int:
        """request() at the time that it was `late` us ago."""
        self.steps += 1
        at = self.now - late
        self.seen = max(self.seen, at)
        wait: int = self.tracker.request(at % PERIOD, self.tasks[i], nbytes)
        if self.modelled:
            self.compare(i, nbytes, wait)
        if wait == 0:
            self.count(i, nbytes)
        return wait

    def compare(self, i: int, nbytes: int, wait: int) -> None:
        self.model.pour(self.seen)
        missing = self.model.missing(i, nbytes)
        # Each step may put off fewer millionths of a byte than there are tasks, each by a part of one.
        slack = Fraction(self.steps * len(self.tasks), 1_000_000)
        if abs(missing) > slack:
            assert (wait == 0) == (missing <= 0), (wait, float(missing))
        unsure = any(
            task.burst - task.tokens <= slack and level(self.tracker, own)
            for task, own in zip(self.model.tasks, self.tasks)
        )
        if wait and not unsure:
            rate = math.floor(self.model.rate(i))
            expected = min(math.ceil(missing * 1_000_000 / rate), (1 << 29) - 1)
            assert abs(wait - expected) <= 1 + slack * 1_000_000 / rate
        if wait == 0:
            self.model.tasks[i].tokens -= nbytes

    def record(self, i: int, nbytes: int) -> None:
        self.steps += 1
        self.seen = max(self.seen, self.now)
        self.tracker.record(self.now % PERIOD, self.tasks[i], nbytes)
        if self.modelled:
            self.model.pour(self.seen)
            self.model.tasks[i].tokens -= nbytes
        self.counted.append((self.seen, nbytes))
        self.totals[i % KINDS] += nbytes

    def count(self, i: int, nbytes: int) -> None:
        self.curves[i].note(self.seen, nbytes)
        self.whole.note(self.seen, nbytes)
        self.counted.append((self.seen, nbytes))
        self.totals[i % KINDS] += nbytes

    def look(self) -> None:
        """At all that holds at any time."""
        assert self.whole.within(sum(self.bursts))
        assert all(curve.within(burst) for curve, burst in zip(self.curves, self.bursts))
        self.seen = max(self.seen, self.now)
        told = self.tracker.stats(self.now % PERIOD).bandwidth_used
        if self.modelled:
            self.model.pour(self.seen)
            self.steps += 1
        inside = sum(n for at, n in self.counted if at > self.seen - self.window_us)
        most = sum(n for at, n in self.counted if at > self.seen - 17 * self.slice_us)
        assert inside * 1_000_000 <= told * self.window_us, "too low"
        assert told * self.window_us < most * 1_000_000 + self.window_us
        assert [high << 30 | low for high, low in map(self.tracker.total, range(KINDS))] == self.totals
        assert inspect.check(self.tracker) == 0


def level(tracker: Tracker, task: int) -> int:
    """Millionths of a byte that are missing in the bucket."""
    bus = tracker._bus  # type: ignore[attr-defined]
    at = RECORD.RECORDS + task * RECORD.RECORD_WORDS
    return bus[at + RECORD.LEVEL_HIGH] << 30 | bus[at + RECORD.LEVEL_LOW]


RATES = st.one_of(st.integers(1, 50), st.integers(1, 10**4), st.integers(10**6, 10**9))


@st.composite
def settings_of_tasks(draw: st.DrawFn) -> tuple[int, list[dict[str, Any]]]:
    """A limit and tasks that go with it; one in two with a limit of its own, or without a guarantee."""
    limit = draw(RATES)
    n = draw(st.integers(1, 5))
    left = limit
    tasks = []
    for _ in range(n):
        guarantee = draw(st.integers(0, max(0, (left - n) // n)))
        left -= guarantee
        task: dict[str, Any] = {"guarantee": guarantee, "burst": draw(st.integers(1, 5000))}
        if draw(st.booleans()):
            task["limit"] = draw(st.integers(max(1, guarantee), limit))
        tasks.append(task)
    if left < n:
        for task in tasks:
            task["guarantee"] = max(1, task["guarantee"]) if limit >= n else 0
        tasks = tasks[: max(1, min(n, limit))]
        if sum(task["guarantee"] for task in tasks) > limit:
            tasks = [{"guarantee": 0, "burst": 100}]
        for task in tasks:
            if 0 < task.get("limit", 0) < task["guarantee"]:
                task["limit"] = task["guarantee"]
    return limit, tasks


STEPS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["ask", "ask", "all", "late", "record", "poll", "cancel"]),
        st.integers(1, 5000),
        st.one_of(
            st.just(0), st.just(1), st.integers(0, 10**4), st.integers(0, 10**6), st.integers(0, 10**9)
        ),
    ),
    max_size=60,
)


@settings(max_examples=60, deadline=None)
@given(settings_of_tasks(), STEPS, st.sampled_from([0, PERIOD - 5000, 7]), st.sampled_from([1, 16, 100]))
def test_promises_and_model(
    given_: tuple[int, list[dict[str, Any]]],
    steps: list[tuple[int, str, int, int]],
    start: int,
    window_ms: int,
) -> None:
    """Callers that ask early, late, for all there can be, out of order, or never come back; time that stands,
    goes by and wraps. Admitted, bytes used, totals and who is admitted when are what they are said to be."""
    limit, tasks = given_
    run = Run(limit, tasks, start, window_ms)
    for which, what, size, microseconds in steps:
        i = which % len(tasks)
        burst = tasks[i]["burst"]
        run.move(min(microseconds, 1_072_000_000))
        if what == "ask":
            run.ask(i, 1 + size % burst)
        elif what == "all":
            while run.ask(i, burst) == 0:
                pass
        elif what == "late":
            run.ask(i, 1 + size % burst, min(run.now, 200 * size))
        elif what == "record":
            run.record(i, size)
        elif what == "poll":
            before = run.ask(i, burst)
            assert run.ask(i, burst) == before or before == 0
        else:
            run.tracker.cancel(run.tasks[i])
        run.look()


@settings(max_examples=30, deadline=None)
@given(settings_of_tasks(), st.lists(st.tuples(st.integers(0, 4), st.integers(0, 10**10)), max_size=40))
def test_promises_after_any_silence(
    given_: tuple[int, list[dict[str, Any]]], steps: list[tuple[int, int]]
) -> None:
    """A silence of more than a period looks shorter than it was: never is too much admitted, nor too little
    told."""
    limit, tasks = given_
    run = Run(limit, tasks, modelled=False)
    for which, microseconds in steps:
        i = which % len(tasks)
        run.move(microseconds)
        if -(1 << 20) <= run.now % PERIOD - run.seen % PERIOD < 0:
            run.move(1 << 20)  # it would seem late
        while run.ask(i, tasks[i]["burst"]) == 0:
            pass
        assert run.whole.within(sum(run.bursts))
        inside = sum(n for at, n in run.counted if at > run.now - run.window_us)
        assert run.tracker.stats(run.now % PERIOD).bandwidth_used * run.window_us >= inside * 1_000_000
        assert inspect.check(run.tracker) == 0


@settings(max_examples=40, deadline=None)
@given(settings_of_tasks(), st.integers(0, 4), st.integers(1, 5000), st.randoms(use_true_random=False))
def test_nobody_waits_longer_than_its_bound(
    given_: tuple[int, list[dict[str, Any]]], which: int, size: int, rng: random.Random
) -> None:
    """One that keeps to the answers, among others that take what they can at any time."""
    limit, tasks = given_
    run = Run(limit, tasks, rng.randrange(PERIOD))
    i = which % len(tasks)
    nbytes = 1 + size % tasks[i]["burst"]
    bound = inspect.bound(run.tracker, run.tasks[i], nbytes)
    for k in range(len(tasks)):
        run.ask(k, tasks[k]["burst"])
    begun = run.now
    asked = 0
    wait = run.ask(i, nbytes)
    while wait:
        asked += 1
        assert asked < 200
        assert run.now + wait <= begun + bound
        until = run.now + wait
        for _ in range(rng.randrange(8)):
            run.move(rng.randrange(until - run.now + 1))
            k = rng.randrange(len(tasks))
            if k != i:
                run.ask(k, rng.randint(1, tasks[k]["burst"]))
        run.move(until - run.now)
        wait = run.ask(i, nbytes)
    assert run.now - begun <= bound
    run.look()


def always_asking(run: Run, sizes: list[int], until: int) -> list[int]:
    """Bytes that each got; all come back exactly when they are told to."""
    due = [run.now] * len(sizes)
    got = [0] * len(sizes)
    while min(due) < until:
        i = due.index(min(due))
        run.move(due[i] - run.now)
        wait = run.ask(i, sizes[i])
        if wait == 0:
            got[i] += sizes[i]
        due[i] += max(wait, 0)
    return got


@pytest.mark.parametrize("sizes", [(1000, 1000), (100, 1000), (1000, 7)])
@pytest.mark.parametrize("guarantees", [(0, 0), (300_000, 100_000), (0, 500_000)])
def test_two_that_always_ask_share_what_is_free(sizes: tuple[int, int], guarantees: tuple[int, int]) -> None:
    """Their guarantees and a half each of the rest, whatever sizes they ask for."""
    limit = 1_000_000
    run = Run(limit, [{"guarantee": g, "burst": 2000} for g in guarantees])
    microseconds = 100_000
    got = always_asking(run, list(sizes), microseconds)
    free = limit - sum(guarantees)
    for bytes_, guarantee in zip(got, guarantees):
        due = (guarantee + free // 2) * microseconds // 1_000_000
        assert due - 2000 <= bytes_ <= due + 2000
    run.look()


def test_what_idle_ones_leave_is_had_by_who_asks() -> None:
    """The guarantee of one that asks for nothing is used by the other, once its bucket is full; and is there
    again the moment it asks."""
    run = Run(1_000_000, [{"guarantee": 100_000, "burst": 2000}, {"guarantee": 800_000, "burst": 2000}])
    got = 0
    while run.now < 100_000:
        wait = run.ask(0, 500)
        got += 0 if wait else 500
        run.move(wait)
    assert 100_000 - 2000 <= got <= 100_000 + 2000
    assert run.ask(1, 2000) == 0
    run.look()


def test_a_limit_of_its_own_holds_and_the_rest_is_the_others() -> None:
    tasks = [{"guarantee": 0, "burst": 500, "limit": 100_000}, {"guarantee": 0, "burst": 500}]
    run = Run(1_000_000, tasks)
    got = always_asking(run, [500, 500], 100_000)
    assert got[0] == 10_000  # 500 at once, and the last 500 would come at the end
    assert 90_000 - 500 <= got[1] <= 90_000 + 500  # all that the first one cannot take
    run.look()


# A waiter's answer divides by the rate that it has if all goes on. Where others come in, it asks again.
@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("n", [1, 2, 8])
@pytest.mark.parametrize(("limit", "guarantee"), [(1_000_000, 50_000), (95_000_000, 0), (10_000, 1_250)])
def test_the_worst_wait_is_nearly_the_bound(limit: int, guarantee: int, n: int, optional: bool) -> None:
    """A search: others take all that they have whenever something is there, in pieces of several sizes and at
    several paces, while one with an empty bucket waits for all of a burst."""
    worst = 0
    for piece in (1, 7, 100, 512):
        for pace in (1, 100):
            tasks = [{"guarantee": guarantee, "burst": 512, "optional": optional}]
            tasks += [{"guarantee": guarantee, "burst": 512}] * (n - 1)
            run = Run(limit, tasks)
            if optional:
                run.tracker.yield_optional(1)
                run.model.tasks[0].cap = guarantee + (limit - guarantee + 15) // 16
            bound = inspect.bound(run.tracker, run.tasks[0], 512)
            for i in range(n):
                assert run.ask(i, 512) == 0
            wait = run.ask(0, 512)
            until = run.now + wait
            while wait:
                run.move(max(1, min(until - run.now, wait * pace // 200)))
                for i in range(1, n):
                    while run.ask(i, piece) == 0:
                        pass
                if run.now >= until:
                    wait = run.ask(0, 512)
                    until = run.now + wait
            assert run.now <= bound
            worst = max(worst, run.now)
    assert worst >= 0.9 * bound


@pytest.mark.parametrize("requests", [10_000, pytest.param(10**6, marks=pytest.mark.exhaustive)])
def test_nothing_drifts(requests: int) -> None:
    """Over a million requests at odd rates and moments, a wrap of the ticks among them, not a millionth of a
    byte more or less is admitted than was poured."""
    rates = [(7, 1_000_000, 0), (123_457, 4999, 0), (0, 77, 0), (250_000, 1021, 500_001)]
    limit = 999_983
    tasks = [dict(zip(("guarantee", "burst", "limit"), each)) for each in rates]
    run = Run(limit, tasks, PERIOD - 1_000_000, modelled=False)
    rng = random.Random(5)
    for i, task in enumerate(tasks):
        assert run.ask(i, task["burst"]) == 0
    begun = run.now
    for _ in range(requests):
        # Less than the first bucket gives by far, so that it is never full and nothing is lost.
        run.move(rng.randrange(1, 700))
        i = rng.randrange(len(tasks))
        if run.ask(i, rng.randint(1, min(tasks[i]["burst"], 5000))) == 0:
            run.counted.clear()
    asked = run.whole.total - sum(level(run.tracker, task) for task in run.tasks)
    carry = run.tracker._bus[RECORD.CARRY]  # type: ignore[attr-defined]
    assert asked + carry == limit * (run.now - begun)
    assert run.whole.within(sum(run.bursts))
    assert all(curve.within(burst) for curve, burst in zip(run.curves, run.bursts))
    assert [high << 30 | low for high, low in map(run.tracker.total, range(KINDS))] == run.totals
    assert inspect.check(run.tracker) == 0
