"""The bus tracker by cases worked out by hand, clocks that wrap, stand and go back, what it refuses; the same
on every interpreter, with nothing allocated."""

from __future__ import annotations

import inspect as python_inspect
import json
from typing import Any

import bus_trace
import pytest
from known_cases import DEVICE

from mpy_kv.bus import rates, tracker
from mpy_kv.bus.rates import Rates
from mpy_kv.bus.tracker import IO, KV_READ, KV_WRITE, WEIGHTS, Tracker
from mpy_kv.bus.tracking import inspect, plain, setup
from mpy_kv.errors import BadArgument

PERIOD = 1 << 30


def whole(words: tuple[int, int]) -> int:
    high, low = words
    assert 0 <= low < 1 << 30
    return high << 30 | low


# --- requests ------------------------------------------------------------------------------------


def test_a_bucket_by_hand() -> None:
    """One task, 1 byte in 10 us and a burst of 100: all at once, then a byte each 10 us, and never more than
    the burst again."""
    bus = Tracker(100_000, 100_000)
    task = bus.task(IO, 100_000, 100)
    assert bus.request(5, task, 100) == 0
    assert bus.request(5, task, 1) == 10
    assert bus.request(5, task, 100) == 1000
    assert bus.request(14, task, 1) == 1
    assert bus.request(15, task, 1) == 0
    assert bus.request(19, task, 2) == 16
    assert bus.request(35, task, 2) == 0
    assert bus.request(1_000_000, task, 100) == 0
    assert bus.request(1_000_000, task, 1) == 10
    assert inspect.check(bus) == 0


def test_two_buckets_by_hand() -> None:
    """10 bytes a us: 2 for the first task, 4 for the second, and the rest of 4 in halves while both lack
    some. Once the second is full, all of it is the first one's."""
    bus = Tracker(10_000_000, 10_000_000)
    first, second = bus.task(KV_READ, 2_000_000, 1000), bus.task(WEIGHTS, 4_000_000, 300)
    assert bus.request(0, first, 1000) == 0
    assert bus.request(0, second, 300) == 0
    assert bus.request(0, first, 40) == 10
    assert bus.request(0, second, 60) == 10
    assert bus.request(9, first, 40) == 1
    assert bus.request(10, first, 40) == 0
    assert bus.request(10, second, 60) == 0
    # After 50 us the second is full, the first has 200; after 30 us more, in which it gets 10 a us, 500.
    assert bus.request(60, second, 300) == 0
    assert bus.request(60, first, 200) == 0
    assert bus.request(110, second, 1) == 0
    assert bus.request(110, first, 201) == 1
    assert bus.request(111, second, 5) == 0
    assert inspect.check(bus) == 0


def test_what_a_full_bucket_does_not_take_goes_on_within_one_step() -> None:
    bus = Tracker(10_000_000, 10_000_000)
    first, second = bus.task(KV_READ, 2_000_000, 1000), bus.task(WEIGHTS, 4_000_000, 300)
    assert bus.request(0, first, 1000) == 0
    assert bus.request(0, second, 300) == 0
    # 800 come in 80 us: 160 and 320 as guarantees, of which 20 are too many, and of the 340 all to the first.
    assert bus.request(80, first, 500) == 0
    assert bus.request(80, first, 1) > 0
    assert bus.request(80, second, 300) == 0


def test_bounds_by_hand() -> None:
    bus = Tracker(1_000_000, 1_000_000)
    tasks = [bus.task(IO, 100_000, 500), bus.task(IO, 300_000, 500, 350_000), bus.task(IO, 0, 500, 0, True)]
    # 600,000 are left: 200,000 each, if the own limit lets it; the optional one has 1/16 of a million.
    assert [inspect.least_rate(bus, task) for task in tasks] == [300_000, 350_000, 62_500]
    assert [inspect.bound(bus, task, 500) for task in tasks] == [1667, 1429, 8000]


def test_recorded_traffic_is_owed() -> None:
    """It is admitted, and used, and the task waits until it has paid for it."""
    bus = Tracker(1_000_000, 1_000_000)
    task, other = bus.task(WEIGHTS, 500_000, 100), bus.task(IO, 400_000, 100)
    bus.record(0, task, 1100)
    assert inspect.owed(bus, task) == 1000
    assert bus.request(0, other, 100) == 0
    # It gets the rest, too: but as the other's bucket lacks some now, a half of that.
    assert bus.request(0, task, 100) == 2000
    # In 1,101 us as many bytes come, of which the other takes the 100 that it lacks.
    assert bus.request(1100, task, 1) == 1
    assert whole(bus.total(WEIGHTS)) == 1100
    assert bus.request(1101, task, 1) == 0


def test_optional_traffic_yields_step_by_step_and_its_guarantee_stays() -> None:
    def got(part: int) -> int:
        """In 100 ms, of 1,000 bytes a ms, 200 of which are guaranteed."""
        bus = Tracker(1_000_000, 1_000_000)
        task = bus.task(IO, 200_000, 100, 0, True)
        bus.yield_optional(part)
        now, found = 0, 0
        while now < 100_000:
            wait = bus.request(now, task, 50)
            found += 0 if wait else 50
            now += wait
        assert inspect.check(bus) == 0
        return found

    amounts = [got(part) for part in range(1, 17)]
    due = [100 * (200 + 800 * part // 16) for part in range(1, 17)]
    assert all(abs(a - b) <= 200 for a, b in zip(amounts, due)), amounts


def test_others_do_not_yield() -> None:
    bus = Tracker(1_000_000, 1_000_000)
    task = bus.task(WEIGHTS, 0, 100)
    bus.yield_optional(1)
    assert bus.request(0, task, 100) == 0
    assert bus.request(0, task, 50) == 50


def test_a_part_of_tasks_that_come_later() -> None:
    bus = Tracker(1_000_000, 1_000_000)
    bus.yield_optional(8)
    task = bus.task(IO, 0, 100, 0, True)
    assert bus.request(0, task, 100) == 0
    assert bus.request(0, task, 50) == 100


def test_cancel_changes_nothing() -> None:
    """There is nothing that a waiter holds: its state is that of one that never asked."""
    seen = []
    for asks in (False, True):
        bus = Tracker(1_000_000, 1_000_000)
        tasks = [bus.task(IO, 0, 100), bus.task(IO, 0, 100)]
        for task in tasks:
            bus.request(0, task, 100)
        if asks:
            assert bus.request(10, tasks[1], 100) > 0
            bus.cancel(tasks[1])
        seen.append([bus.request(50 + now, tasks[0], 10) for now in range(0, 100, 10)])
    assert seen[0] == seen[1]


# --- clocks --------------------------------------------------------------------------------------


def test_the_wrap_of_the_ticks() -> None:
    bus = Tracker(1_000_000, 1_000_000)
    task = bus.task(IO, 0, 1000)
    assert bus.request(PERIOD - 100, task, 1000) == 0
    assert bus.request(PERIOD - 1, task, 100) == 1
    assert bus.request(0, task, 100) == 0
    assert bus.request(400, task, 400) == 0
    assert bus.request(400, task, 1) == 1
    assert bus.stats(400).bandwidth_used == 15_000


def test_a_caller_that_was_overtaken() -> None:
    """A time up to a second behind the last counts as the last: no negative time, no time twice."""
    bus = Tracker(1_000_000, 1_000_000)
    task = bus.task(IO, 0, 100)
    assert bus.request(PERIOD - 10, task, 100) == 0
    assert bus.request(20, task, 30) == 0
    assert bus.request(PERIOD - 5, task, 1) == 1
    assert bus.request(20, task, 1) == 1
    assert bus.request(21, task, 1) == 0
    assert bus.request(21 - 1_000_000, task, 1) == 1
    assert bus.request(22, task, 1) == 0


def test_silences() -> None:
    """Up to 1,072 s are told as they are; a longer one may look like none, and never like more."""
    bus = Tracker(1000, 1000)
    task = bus.task(IO, 10, 10_000)
    for gone, due in ((536, 10_000), (1072, 10_000), (1075, 0)):
        assert bus.request(7, task, 10_000) == 0
        now = 7 + gone * 1_000_000
        wait = bus.request(now % PERIOD, task, 10_000)
        assert (wait == 0) == (due == 10_000)
        bus = Tracker(1000, 1000)
        task = bus.task(IO, 10, 10_000)


def test_equal_times() -> None:
    bus = Tracker(1_000_000, 1_000_000)
    task = bus.task(IO, 0, 100)
    assert [bus.request(3, task, 50) for _ in range(4)] == [0, 0, 50, 50]
    assert bus.stats(3).bandwidth_used == 1000


# --- what is told --------------------------------------------------------------------------------


def test_stats_have_the_document_s_fields() -> None:
    bus = Tracker(1_000_000, window_ms=16)
    bus.task(WEIGHTS, 400_000, 8000)
    bus.task(IO, 100_000, 8000)
    found = bus.stats(0)
    assert vars(found) == {
        "bandwidth_allocated": 500_000,
        "bandwidth_used": 0,
        "peak_bandwidth": 1_000_000,
        "window_ms": 16,
    }
    assert bus.limit == 950_000
    assert bus.stats(1) is found


def test_the_window_by_hand() -> None:
    """16 slices of 1 ms: bytes count until the last of the slice that they are in is out of the window."""
    bus = Tracker(1_000_000, 1_000_000, window_ms=16)
    task = bus.task(IO, 0, 8000)
    bus.stats(0)
    assert bus.request(500, task, 16) == 0
    used = {now: bus.stats(now).bandwidth_used for now in (500, 999, 1000, 15_999, 16_500, 16_999, 17_000)}
    assert used == {500: 1000, 999: 1000, 1000: 1000, 15_999: 1000, 16_500: 1000, 16_999: 1000, 17_000: 0}
    bus.record(17_100, task, 1)
    assert bus.stats(17_100).bandwidth_used == 63  # rounded up
    assert bus.stats(17_100 + 500_000_000).bandwidth_used == 0


def test_totals_go_beyond_a_word_and_by_kind() -> None:
    bus = Tracker(1_000_000)
    tasks = [bus.task(kind, 1, 100) for kind in (KV_READ, KV_WRITE, WEIGHTS, IO)]
    for i in range(9):
        bus.record(0, tasks[KV_WRITE], (1 << 29) - i)
    assert bus.request(0, tasks[IO], 7) == 0
    assert bus.total(KV_WRITE)[0] == 4
    assert [whole(bus.total(kind)) for kind in range(4)] == [0, 9 * (1 << 29) - 36, 0, 7]
    bus.reset()
    assert [bus.total(kind) for kind in range(4)] == [(0, 0)] * 4
    assert bus.stats(1).bandwidth_used == 0
    assert bus.request(1, tasks[KV_WRITE], 1) > 1_000_000, "what is owed stays owed"


# --- rates of tiers ------------------------------------------------------------------------------


def test_a_transfer_over_the_wrap() -> None:
    tiers = Rates()
    flash = tiers.tier()
    assert tiers.transfer(flash, PERIOD - 100, 400, 1000) == 2_000_000
    assert tiers.elapsed == 500


def test_a_transfer_within_a_tick_tells_no_rate() -> None:
    tiers = Rates()
    flash = tiers.tier()
    assert tiers.transfer(flash, 77, 77, 1000) is None
    assert tiers.transfer(flash, 0, 0, 0) is None
    assert (tiers.elapsed, tiers.average(flash)) == (0, None)
    assert json.dumps({"rate": tiers.average(flash)}) == '{"rate": null}'
    assert whole(tiers.total(flash)) == 1000


def test_a_transfer_without_bytes() -> None:
    """Its rate is 0; that a tier is slow it does not say."""
    tiers = Rates()
    flash = tiers.tier(1000, 1000)
    assert tiers.transfer(flash, 0, 500, 0) == 0
    assert tiers.average(flash) is None
    assert not tiers.slow(flash)


def test_an_hour_in_steps_of_a_second() -> None:
    tiers = Rates()
    flash = tiers.tier()
    for second in range(3600):
        start = second * 1_000_000
        assert tiers.transfer(flash, start % PERIOD, (start + 1_000_000) % PERIOD, 5) == 5
    assert whole(tiers.time(flash)) == 3_600_000_000
    assert whole(tiers.total(flash)) == 18_000


def test_a_single_subtraction_is_valid_below_half_a_period() -> None:
    tiers = Rates()
    flash = tiers.tier()
    assert tiers.transfer(flash, 100, (1 << 29) + 99, 1 << 28) == 500_000
    for stop in ((1 << 29) + 100, 99):
        with pytest.raises(BadArgument, match="stop"):
            tiers.transfer(flash, 100, stop, 5)
    assert whole(tiers.total(flash)) == 1 << 28, "refused before anything changes"


def test_each_tier_and_kind_is_counted_apart() -> None:
    """The sums are those of a fake that copies them."""
    bus = Tracker(1_000_000)
    reads, writes = bus.task(KV_READ, 0, 1000), bus.task(KV_WRITE, 0, 1000)
    tiers = Rates(bus)
    numbers = [tiers.tier() for _ in range(3)]
    copied = {"read": 0, "write": 0, 0: 0, 1: 0, 2: 0}
    for i in range(60):
        n, tier = 384 + i, i % 3
        bus.record(i, reads if i % 2 else writes, n)
        tiers.transfer(numbers[tier], i, i + 5, n)
        copied["read" if i % 2 else "write"] += n
        copied[tier] += n
    assert whole(bus.total(KV_READ)) == copied["read"]
    assert whole(bus.total(KV_WRITE)) == copied["write"]
    assert [whole(tiers.total(tier)) for tier in numbers] == [copied[0], copied[1], copied[2]]
    tiers.reset()
    assert [whole(tiers.total(tier)) + whole(tiers.time(tier)) for tier in numbers] == [0, 0, 0]
    assert (tiers.elapsed, tiers.average(0)) == (0, None)


def test_the_average_arrives_and_its_two_thresholds() -> None:
    tiers = Rates()
    flash = tiers.tier(low=500, high=800)
    now = 0

    def at(rate: int, times: int) -> list[bool]:
        nonlocal now
        found = []
        for _ in range(times):
            tiers.transfer(flash, now % PERIOD, (now + 1_000_000) % PERIOD, rate)
            now += 1_000_000
            found.append(tiers.slow(flash))
        return found

    assert not any(at(1003, 5))
    assert tiers.average(flash) == 1003
    assert not any(at(501, 60))
    assert tiers.average(flash) == 501
    falls = at(97, 60)
    assert falls == sorted(falls)
    assert falls[-1]
    assert tiers.average(flash) == 97
    assert all(at(799, 80)), "between the two it stays as it was"
    assert tiers.average(flash) == 799
    assert not at(803, 60)[-1]
    assert not any(at(500, 60)), "and here too"


def test_optional_traffic_yields_on_a_ramp() -> None:
    """A step of a 16th in 10 ms while a tier is slow, down to one; the same way back."""
    bus = Tracker(1_000_000)
    bus.task(IO, 0, 100, 0, True)
    tiers = Rates(bus, ramp_ms=10)
    flash, other = tiers.tier(low=500_000), tiers.tier(low=500_000)
    now = PERIOD - 50_000
    parts = []

    def transfers(nbytes: int, tier: int, count: int) -> None:
        nonlocal now
        for _ in range(count):
            tiers.transfer(tier, now % PERIOD, (now + 1000) % PERIOD, nbytes)
            now += 1000
            parts.append(bus.optional_part)

    transfers(1000, other, 30)
    assert set(parts) == {16}
    transfers(100, flash, 200)
    steps = [b - a for a, b in zip(parts, parts[1:]) if a != b]
    assert steps == [-1] * 15
    changes = [i for i in range(1, len(parts)) if parts[i] != parts[i - 1]]
    assert all(b - a == 10 for a, b in zip(changes, changes[1:]))
    assert inspect.check(bus) == 0
    del parts[:]
    transfers(1000, other, 20)
    assert set(parts) == {1}, "one slow tier is enough"
    transfers(1000, flash, 200)
    steps = [b - a for a, b in zip(parts, parts[1:]) if a != b]
    assert steps == [1] * 15


@pytest.mark.parametrize(
    ("nbytes", "elapsed", "rate"),
    [
        (1, 1, 10**6),
        (1, 3, 333_333),
        (0, 9, 0),
        (7, (1 << 29) - 1, 0),
        (537, (1 << 29) - 1, 1),
        (1 << 28, 1, None),
    ],
)
def test_speeds(nbytes: int, elapsed: int, rate: int | None) -> None:
    tiers = Rates()
    tiers.tier()
    assert tiers.transfer(0, 0, elapsed, nbytes) == (nbytes * 10**6 // elapsed if rate is None else rate)


# --- what is refused -----------------------------------------------------------------------------


REFUSED = {
    "0 bytes": (lambda bus: bus.request(0, 0, 0), "nbytes must be 1..100, the task's burst, got 0"),
    "negative": (lambda bus: bus.request(0, 0, -5), "nbytes must be 1..100"),
    "more than the burst": (lambda bus: bus.request(0, 0, 101), "give the task a larger burst"),
    "no small int": (lambda bus: bus.request(0, 0, (1 << 32) + 5), "nbytes must be 1..100"),
    "no task": (lambda bus: bus.request(0, 2, 5), r"task must be a number that task\(\) gave, 0..1"),
    "negative task": (lambda bus: bus.request(0, -1, 5), "task must be"),
    "cancelled": (lambda bus: bus.cancel(7), "task must be"),
    "allowed": (lambda bus: bus.allow(0, None), "nbytes must be"),
    "recorded": (lambda bus: bus.record(0, 0, -1), "record parts"),
    "recorded task": (lambda bus: bus.record(0, 9, 1), "task must be"),
    "kind": (lambda bus: bus.total(4), "KV_READ, KV_WRITE, WEIGHTS or IO"),
    "kind of a task": (lambda bus: bus.task("io", 0, 5), "KV_READ, KV_WRITE, WEIGHTS or IO"),
    "part": (lambda bus: bus.yield_optional(0), "part must be 1..16"),
    "guarantee": (lambda bus: bus.task(0, 600_000, 5), "lower it or another task's"),
    "burst": (lambda bus: bus.task(0, 0, 0), "burst must be"),
    "limit": (lambda bus: bus.task(0, 10, 5, 9), "limit must be at least the guarantee, 10, got 9"),
    "a limit above all": (lambda bus: bus.task(0, 10, 5, 10**6), "limit must be 0..950000"),
    "for ever": (lambda bus: bus.task(0, 450_000, 5), "could wait for ever; give it one"),
    "peak": (lambda _: Tracker(0), "peak must be"),
    "no peak": (lambda _: Tracker(1.5), "peak must be"),
    "limit of a bus": (lambda _: Tracker(10, 11), "limit must be 1..10, got 11; a bus brings no more"),
    "window": (lambda _: Tracker(10, window_ms=0), "window_ms must be"),
    "tasks": (lambda _: Tracker(10, tasks=0), "tasks must be"),
    "tier": (lambda _: Rates().transfer(0, 0, 1, 1), "tier must be"),
    "tiers": (lambda _: [each.tier() for each in [Rates(None, 1)] * 2], "give Rates more"),
    "high": (lambda _: Rates().tier(5, 4), "high must be"),
    "ramp": (lambda _: Rates(None, 1, -1), "ramp_ms must be"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_what_to_change(case: str) -> None:
    """And change nothing."""
    what, says = REFUSED[case]
    bus = Tracker(1_000_000, tasks=3)
    bus.task(IO, 500_000, 100)
    bus.task(IO, 0, 100)
    before = list(bus._bus)  # type: ignore[attr-defined]
    with pytest.raises(BadArgument, match=says):
        what(bus)
    assert list(bus._bus) == before  # type: ignore[attr-defined]
    assert (bus.tasks, bus.stats(0).bandwidth_allocated) == (2, 500_000)


def test_no_more_tasks_than_there_is_room_for() -> None:
    bus = Tracker(1_000_000, tasks=1)
    bus.task(IO, 0, 100)
    with pytest.raises(BadArgument, match="give the Tracker more"):
        bus.task(IO, 0, 100)


@pytest.mark.parametrize("nbytes", [5.0, None, "x", [5]])
def test_what_is_no_int_is_refused_before_anything_is_taken(nbytes: Any) -> None:
    bus = Tracker(1_000_000)
    bus.task(IO, 0, 100)
    for _ in range(2):
        with pytest.raises(TypeError):
            bus.request(0, 0, nbytes)
        assert bus.total(IO)[1] in (0, 100)
        bus.request(0, 0, 100)


# --- on devices ----------------------------------------------------------------------------------


def test_no_clock_is_asked() -> None:
    """Times are passed in: nothing of it imports time."""
    for module in (tracker, rates, plain, setup, inspect):
        assert "import time" not in python_inspect.getsource(module)
        assert "from time" not in python_inspect.getsource(module)


@pytest.fixture
def small_ints(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most that a device holds, in CPython."""
    monkeypatch.setattr(setup, "MOST", bus_trace.MOST)
    monkeypatch.setattr(plain, "MOST", bus_trace.MOST)
    monkeypatch.setattr(setup, "MOST_RECORDED", 1 << 29)


def traced(board: Any, seed: int, calls: int) -> None:
    assert json.loads(board.run(DEVICE / "bus_trace.py", [seed, calls])) == bus_trace.run(seed, calls)


@pytest.mark.parametrize("seed", range(6))
def test_the_same_on_the_unix_port(seed: int, small_ints: None, upy: Any) -> None:
    traced(upy.shared, seed, 200)


@pytest.mark.exhaustive
def test_the_same_on_the_unix_port_for_long(small_ints: None, upy: Any) -> None:
    for seed in range(10, 60):
        traced(upy.shared, seed, 500)


@pytest.mark.parametrize("machine", ["qemu", "qemu_riscv"])
def test_the_same_on_32_bits(machine: str, small_ints: None, request: pytest.FixtureRequest) -> None:
    board = request.getfixturevalue(machine)
    for seed in (2, 5):
        traced(board, seed, 100)


def test_nothing_is_allocated_on_the_unix_port(upy: Any) -> None:
    nothing_allocated(upy.shared)


@pytest.mark.parametrize("machine", ["qemu", "qemu_riscv"])
def test_nothing_is_allocated_on_32_bits(machine: str, request: pytest.FixtureRequest) -> None:
    nothing_allocated(request.getfixturevalue(machine))


def nothing_allocated(board: Any) -> None:
    """By mem_total; a run with the heap locked has passed before."""
    found = json.loads(board.run(DEVICE / "bus_allocation.py"))
    assert found.pop("control") > 0, "the counter sees nothing"
    assert found == dict.fromkeys(("requests", "silences", "records", "stats", "transfers"), 0)


NO_EMITTER = """
import sys
sys.path.insert(0, sys.argv[1])
import without_emitter
sys.argv[1:] = sys.argv[2:]
import bus_trace, json
from mpy_kv.bus import tracker
print(json.dumps(bus_trace.run(4, 100)))
"""


def test_a_port_without_an_emitter(upy: Any, small_ints: None) -> None:
    assert json.loads(upy.run(NO_EMITTER, [DEVICE])) == bus_trace.run(4, 100)
