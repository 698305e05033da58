"""The simulated bus: times by hand, closed forms, no contention where there is none, bounds that hold."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
import simpy

from kvlab.bus import bounds, closed, contention, facts, trace
from kvlab.bus.contention import Work
from kvlab.bus.facts import Figures
from kvlab.bus.kinds import IO, KINDS, KV_READ, KV_WRITE, WEIGHTS
from kvlab.bus.wire import Span, Wire
from mpy_kv.bus import tracker

US = 10**6  # picoseconds
MADE = Figures("made", "RAM", peak=10_000_000, write=5_000_000, overhead_ns=100, mixed_pct=80)
STORIES = Work(5, 68_000, 340, 284_000, 30_000, pieces=10, compute_us=8000, start_us=4)
QWEN = Work(28, 3_046_400, 15_232, 1_540_000_000, 80_000_000, pieces=2)
PLACES = {"rp2040": STORIES, "esp32s3_psram": STORIES, "soc": QWEN}


def test_kinds_are_numbered_as_the_tracker_has_them():
    assert (KV_READ, KV_WRITE, WEIGHTS, IO) == (
        tracker.KV_READ,
        tracker.KV_WRITE,
        tracker.WEIGHTS,
        tracker.IO,
    )


def test_transfers_wait_for_those_that_asked_before():
    """100 bytes are 10 us to read and 20 to write, 0.1 beside; a turn costs a quarter of what is mixed."""
    env = simpy.Environment()
    wire = Wire(env, MADE, keep=True)

    def asks():
        wire.transfer("a", WEIGHTS, 100, 3)
        yield env.timeout(4 * US)
        yield wire.transfer("b", IO, 50)
        assert env.now == 15.2 * US
        yield env.timeout(US)
        yield wire.transfer("a", KV_WRITE, 10, 3)
        assert env.now == 18.8 * US

    env.run(until=env.process(asks()))
    assert wire.spans == [
        Span("a", WEIGHTS, 3, 0, 0, 10_100_000, 100),
        Span("b", IO, -1, 4_000_000, 10_100_000, 15_200_000, 50),
        Span("a", KV_WRITE, 3, 16_200_000, 16_200_000, 18_800_000, 10),
    ]
    assert wire.waited_ps == [0, 0, 0, 6_100_000]
    assert wire.transfers == [0, 1, 1, 1]


@pytest.mark.parametrize("load", [0.3, 0.6])
def test_random_transfers_wait_as_long_as_the_formula_says(load):
    bus = facts.figures("rp2040")
    found = closed.md1_waiting(bus, 64, load, 100_000)
    assert found == pytest.approx(bounds.md1_waiting(load, bus.transfer_ps(64, IO) / US), rel=0.02)


def test_random_transfers_wait_to_the_picosecond_what_their_recursion_gives():
    """Each waits what the one before waited and took, less the time between them (Lindley)."""
    took = MADE.transfer_ps(64, IO)
    assert closed._waited(MADE, 64, took / 0.7, _numbers(500)) == _lindley(_numbers(500), took, 0.7)


def _numbers(n: int) -> list[float]:
    source = random.Random(5)
    return [source.random() for _ in range(n)]


def _lindley(numbers: list[float], took: int, load: float) -> int:
    total = wait = 0
    for i, number in enumerate(numbers):
        gap = round(-math.log(1 - number) * (took / load))
        wait = max(0, wait + took - gap) if i else 0
        total += wait
    return total


@pytest.mark.parametrize(
    ("burst", "rate", "latency_us"), [(4000, 1_000_000, 300), (640, 4_000_000, 50)], ids=str
)
def test_a_task_that_takes_all_it_gets_waits_as_its_bucket_says(burst, rate, latency_us):
    bus = Figures("made", "RAM", 10_000_000, 10_000_000)
    bound = bounds.token_bucket(burst, rate // US, 10, latency_us)
    delay, backlog = closed.bucket(bus, burst, rate, 20, latency_us)
    assert 0.98 * bound.delay <= delay <= bound.delay
    assert 0.98 * bound.backlog <= backlog <= bound.backlog


@pytest.mark.parametrize(("burst", "slot_us"), [(4000, 100), (900, 200), (5500, 90)], ids=str)
def test_a_task_with_a_slot_of_a_cycle_waits_as_its_stairs_say(burst, slot_us):
    bus = Figures("made", "RAM", 10_000_000, 10_000_000)
    bound = bounds.tdma_stairs(burst, 1, slot_us, 400, 10)
    assert 0.98 * bound <= closed.tdma(bus, burst, 1_000_000, 20, slot_us, 400) <= bound


@pytest.mark.parametrize("budget", [5, 30, 80])
def test_a_budget_is_away_for_as_long_as_the_formula_says(budget):
    bound = bounds.blackout(budget, 100)
    assert 0.98 * bound <= closed.blackout(budget, 100, 400) <= bound


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("batched", [True, False], ids=["batched", "one by one"])
def test_in_turns_the_model_never_waits_for_others(name, batched):
    """Exactly: sums of whole picoseconds."""
    found = contention.run(facts.figures(name), PLACES[name], staggered=True, batched=batched)
    assert found.contention_us == 0.0
    assert found.waits_us
    if not facts.figures(name).weights:  # which are fetched ahead
        at_will = contention.run(facts.figures(name), PLACES[name], staggered=False, batched=batched)
        assert at_will.contention_us > 0


@pytest.mark.parametrize("staggered", [True, False], ids=["in turns", "at will"])
def test_alone_nothing_waits(staggered):
    """K and V alone, written and then read, nobody else: exactly none, with transfers that are no whole
    microseconds."""
    work = Work(4, 1001, 43, 0, 0, pieces=2, compute_us=77.7)
    found = contention.run(MADE, work, staggered=staggered, batched=False, others=0)
    assert len(found.spans) == 4 * 4 * 3
    assert found.contention_us == 0.0
    assert found.waits_us == []


@pytest.mark.parametrize("staggered", [True, False], ids=["in turns", "at will"])
@pytest.mark.parametrize("name", PLACES)
def test_no_wait_is_longer_than_its_bound(name, staggered):
    bus, work = facts.figures(name), PLACES[name]
    for seed, load in enumerate((0.05, 0.3, 0.6, 0.95)):
        busy = contention.at_load(bus, work, load)
        for hostile in (False, True):
            found = contention.run(
                bus, busy, staggered=staggered, batched=True, tokens=8, keep=False, hostile=hostile, seed=seed
            )
            assert 0 < found.worst_us <= found.bound_us


LONG = Work(5, 20 * STORIES.kv_read, 340, 284_000, 30_000, pieces=10, compute_us=8000)
SLOW = Work(5, 68_000, 340, 284_000, 30_000, pieces=10, compute_us=8000, start_us=3000)


@pytest.mark.parametrize(
    ("name", "work"),
    [*PLACES.items(), ("esp32s3_psram", LONG), ("rp2040", SLOW)],
    ids=[*PLACES, "keys and values are the longest", "starts are the longest"],
)
def test_the_bound_of_the_schedule_is_reached_to_nine_tenths(name, work):
    bound, worst = contention.searched(facts.figures(name), work)
    assert 0.9 * bound <= worst <= bound


def any_bus(source: random.Random) -> Figures:
    peak = int(10 ** source.uniform(5, 11))
    return Figures(
        "made",
        "RAM",
        peak=peak,
        write=int(peak * source.uniform(0.2, 1)),
        overhead_ns=source.choice((0, 64, 5000)),
        mixed_pct=source.choice((100, 80, 40)),
        weights=source.choice((0, int(peak / source.uniform(1, 30)))),
    )


def any_work(source: random.Random, peak: int) -> Work:
    layers, most_us = source.randint(1, 6), 10 ** source.uniform(0, 5)

    def moved(part: float = 1.0) -> int:
        return int(source.random() ** 2 * part * most_us * peak / US * layers)

    return Work(
        layers,
        kv_read=moved(),
        kv_write=max(4, min(1 << 22, moved())),
        weights=moved(),
        io=moved(0.5),
        pieces=source.randint(1, 4),
        compute_us=source.choice((0, source.uniform(0, 3) * most_us * layers)),
        start_us=source.choice((0, 3.3, source.random() * most_us)),
        vectors=source.choice((0, moved())),
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_bus_and_no_work_break_a_bound(seed):
    """Twenty of each, from 100 KB/s to 100 GB/s, and other tasks of every kind."""
    source = random.Random(seed)
    for _ in range(20):
        bus = any_bus(source)
        work = any_work(source, bus.peak)
        for staggered in (True, False):
            found = contention.run(
                *(bus, work),
                staggered=staggered,
                batched=source.random() < 0.5,
                tokens=4,
                hostile=source.random() < 0.5,
                greedy=source.choice((0, 0, 3)),
                seed=source.randrange(99),
            )
            assert found.worst_us <= found.bound_us, (bus, work)
            assert not (staggered and found.contention_us), (bus, work)
            for one, other in zip(found.spans, found.spans[1:]):
                assert one.end_ps <= other.begin_ps, "two had the bus at once"


def test_the_others_leave_a_small_model_half_the_bus():
    """A layer of a few bytes, on which bursts of 512 would take all there is."""
    tiny = Work(2, 64, 16, 200, 2 * 4 * 512)
    for staggered in (True, False):
        found = contention.run(MADE, tiny, staggered=staggered, batched=True, tokens=50)
        io = sum(span.end_ps - span.begin_ps for span in found.spans if span.kind == IO)
        assert 0 < io <= 0.55 * (found.token_us * 50 * US)


@pytest.mark.parametrize("name", PLACES)
def test_tasks_that_never_rest_harm_nobody(name):
    """Three that ask anew at once: the fourth still waits no longer than is proven, and the model loses no
    more at a slot than the burst under way, one of each, and what the clock's whole microseconds take."""
    bus, work = facts.figures(name), PLACES[name]
    alone = contention.run(bus, work, staggered=True, batched=True, others=0)
    busy = contention.run(bus, work, staggered=True, batched=True, tokens=8, greedy=3)
    assert 0 < busy.worst_us <= busy.bound_us
    _slots, bursts = contention.planned_us(bus, work)
    assert busy.token_us <= alone.token_us + 3 * work.layers * (max(bursts) + sum(bursts) + 2)
    moved = sum(span.kind == IO for span in busy.spans)
    assert moved > 2 * len(busy.waits_us), "they were greedy indeed"


def test_a_chain_a_layer_is_started_once():
    bus = facts.figures("rp2040")
    single, batched = (
        contention.run(bus, STORIES, staggered=True, batched=batched, tokens=3) for batched in (False, True)
    )
    assert single.starts == 3 * 5 * 10
    assert batched.starts == 3 * 5
    assert single.overhead_us - batched.overhead_us == pytest.approx(3 * 5 * 9 * STORIES.start_us, rel=0.01)
    assert batched.token_us < single.token_us


@pytest.mark.parametrize("staggered", [True, False], ids=["in turns", "at will"])
def test_weights_in_place_are_read_with_what_computes_with_them(staggered):
    """No fetch ahead: a token takes what its transfers take and what it computes, one after another."""
    bus = facts.figures("rp2040")
    alone = contention.run(bus, STORIES, staggered=staggered, batched=True, others=0)
    order = [span.kind for span in alone.spans if span.kind != KV_WRITE]
    assert order == [KV_READ, WEIGHTS] * (4 * 5)
    assert alone.contention_us == 0.0
    # Ten descriptors and K and V read are set up, weights in place are not.
    set_up_us = (10 + 1) * 0.064
    assert alone.overhead_us == pytest.approx(4 * 5 * (set_up_us + STORIES.start_us))
    least = contention.bus_us(bus, STORIES) + STORIES.compute_us + 5 * STORIES.start_us
    # In turns a slot begins and ends with a microsecond of the clock.
    assert least - 1 <= alone.token_us <= least + (5 * 4 if staggered else 1)


def test_vectors_go_with_the_weights_but_at_their_own_rate():
    """80,000 bytes of vectors a token are 160 us of a Pico's RAM, and would be 4 ms of its flash."""
    bus = facts.figures("rp2040")
    with_them = contention.bus_us(bus, replace(STORIES, vectors=80_000))
    assert with_them - contention.bus_us(bus, STORIES) == pytest.approx(160)


def test_the_clock_may_go_round():
    """Ticks of 2^30: with a wrap in the third token all is as without."""
    bus = facts.figures("rp2040")
    for staggered in (True, False):
        plain, wrapped = (
            contention.run(bus, STORIES, staggered=staggered, batched=True, tokens=5, began_us=began)
            for began in (0, (1 << 30) - 25_000)
        )
        assert wrapped.figures() == plain.figures()
        assert wrapped.waits_us == plain.waits_us


def test_every_byte_goes_over_the_bus():
    for staggered in (True, False):
        found = contention.run(facts.figures("soc"), QWEN, staggered=staggered, batched=True, tokens=2)
        moved = [0] * len(KINDS)
        for span in found.spans:
            moved[span.kind] += span.nbytes
        fetched = QWEN.weights * (2 * 28 + 1) // 28 if staggered else 2 * QWEN.weights
        assert moved[:IO] == [2 * QWEN.kv_read, 2 * QWEN.kv_write, fetched]
        assert list(found.tracked.values())[:IO] == moved[:IO]
        # Some may be admitted, and wait for a slot's end.
        burst = contention.burst(QWEN)
        assert 0 <= found.tracked["I/O"] - moved[IO] <= contention.OTHERS * burst
        for one, other in zip(found.spans, found.spans[1:]):
            assert one.end_ps <= other.begin_ps, "two had the bus at once"


def test_the_model_keeps_up_with_an_empty_process():
    assert closed.event_rate_ratio(0.1) >= 0.1


def test_tails_are_of_the_waits():
    assert contention.at([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert contention.at([1.0, 2.0, 3.0, 4.0], 0.99) == 4.0
    assert contention.at([], 0.5) == 0.0
    for tail in contention.tail(facts.figures("rp2040"), STORIES, [0.2, 0.9], staggered=True, tokens=5):
        assert tail.p50_us <= tail.p99_us <= tail.max_us <= tail.bound_us


def test_a_trace_is_what_a_viewer_opens(tmp_path):
    runs = {
        name: contention.run(facts.figures("rp2040"), STORIES, staggered=staggered, batched=True, tokens=1)
        for name, staggered in (("at will", False), ("in turns", True))
    }
    trace.write(tmp_path / "made" / "trace.json", runs)
    events = json.loads((tmp_path / "made" / "trace.json").read_text())["traceEvents"]
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["at will", "in turns"]
    for pid in (1, 2):
        assert {name for (of, _), name in named.items() if of == pid} >= set(KINDS[:IO])
    done = [e for e in events if e["ph"] == "X"]
    assert len(done) + len(named) + 2 == len(events)
    for event in done:
        assert (event["pid"], event["tid"]) in named
        assert event["ts"] >= 0
        assert event["dur"] > 0
    moved = [e for e in done if e["cat"] == "transfer" and e["pid"] == 1 and e["name"] == "weights"]
    assert sum(e["args"]["bytes"] for e in moved) == STORIES.weights
    span = next(s for s in runs["at will"].spans if s.kind == WEIGHTS)
    first = moved[0]
    assert (first["ts"], first["dur"]) == (span.begin_ps / US, (span.end_ps - span.begin_ps) / US)
    # On one thread nothing begins before what came before is over: else viewers nest it.
    for pid, tid in named:
        mine = sorted((e["ts"], e["ts"] + e["dur"]) for e in done if (e["pid"], e["tid"]) == (pid, tid))
        assert all(a[1] <= b[0] + 1e-6 for a, b in zip(mine, mine[1:]))
