"""The staggered schedule: I/O between any two slots, no later than the bound, which a search comes near."""

from __future__ import annotations

import json
import random
from itertools import pairwise

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from stories_fixtures import llama, tiny

from mpy_kv import Geometry
from mpy_kv.bus import slots
from mpy_kv.bus.schedule import IO, KV_READ, KV_WRITE, WEIGHTS, Schedule
from mpy_kv.bus.staggering.plain import left
from mpy_kv.bus.staggering.setup import MOST_TASKS
from mpy_kv.errors import BadArgument

PERIOD = 1 << 30
SLOTS = [(900, 90), (20, 5), (4000, 200), (64, 16)]  # KV read, KV write, weights, I/O


class World:
    """A model and tasks on one bus, event by event; what is due at one time comes in any order.

    Fails where a burst is begun in a slot or in another burst. worst: of a task's waits, from when it first
    asked until its burst was over.
    """

    def __init__(self, schedule: Schedule, seed: int, start: int, plan: float = 1.0) -> None:
        self.random = random.Random(seed)
        self.schedule = schedule
        self.start = start
        self.plan = plan  # how much of its planned time a slot may take
        self.worst = self.held = 0
        self.busy = 0  # until when a burst runs
        self.in_slot = False
        self.bursts = 0

    def ticks(self, now: int) -> int:
        return (self.start + now) % PERIOD

    def run(self, us: int, bursts: list[int], idle: float, patience: int) -> None:
        """Tasks of these bursts ask at random, now and then at once; the model goes from slot to slot."""
        r = self.random
        tasks = [self.schedule.task(burst) for burst in bursts]
        asked: dict[int, int | None] = dict.fromkeys(tasks)
        due: list[tuple[int, float, str, int]] = [(0, 0.0, "model", 0)]
        due += [(r.randrange(500), r.random(), "task", task) for task in tasks]
        wanted: int | None = None
        slot = WEIGHTS
        while True:
            due.sort(reverse=True)
            now, _, who, task = due.pop()
            if now > us:
                return
            if who == "model":
                if self.in_slot:
                    self.in_slot = False
                    if r.random() < idle:
                        assert self.schedule.enter(IO, self.ticks(now)) == 0
                        due.append((now + r.randrange(1, 300), r.random(), "model", 0))
                        continue
                    slot = r.choice((KV_READ, KV_WRITE, WEIGHTS))
                wanted = now if wanted is None else wanted
                wait = self.schedule.enter(slot, self.ticks(now))
                if wait == 0:
                    assert self.busy <= now
                    self.held = max(self.held, now - wanted)
                    wanted = None
                    self.in_slot = True
                    wait = max(1, int(self.schedule.slot(slot)[1] * (1 - r.random() * (1 - self.plan))) - 1)
                due.append((now + wait, r.random(), "model", 0))
                continue
            if asked[task] is None:
                asked[task] = now
            nbytes = bursts[task]
            wait = self.schedule.may(self.ticks(now), task, nbytes)
            if wait:
                due.append((now + wait, r.random(), "task", task))
                continue
            assert not self.in_slot, "a burst begins in a slot"
            assert self.busy <= now, "two bursts at a time"
            took = -(-nbytes * SLOTS[IO][1] // SLOTS[IO][0])
            self.busy = now + took
            self.bursts += 1
            self.worst = max(self.worst, self.busy - asked[task])
            asked[task] = None
            pause = r.choice((0, r.randrange(1, patience)))
            due.append((self.busy + pause, r.random(), "task", task))


def search(seeds: range, plan: float = 1.0, idle: float = 0.2) -> tuple[int, int, int]:
    """(worst wait found, bound, longest that the model waited)"""
    worst = bound = held = 0
    for seed in seeds:
        r = random.Random(seed)
        schedule = Schedule(SLOTS)
        bursts = r.choice(([64], [32, 32], [16, 16, 32], [8] * 8))
        world = World(schedule, seed, PERIOD - r.randrange(6000), plan)
        world.run(6000, bursts, idle, r.choice((10, 200, 1000)))
        assert world.bursts
        bound = schedule.bound_us()
        assert world.worst <= bound, seed
        worst, held = max(worst, world.worst), max(held, world.held)
    return worst, bound, held


@pytest.mark.parametrize("plan", [1.0, 0.3])
def test_no_wait_is_longer_than_the_bound(plan: float) -> None:
    """Ticks go round on the way. Nine tenths of it at least are found; the model waits for one burst of each
    at most, where its slots take what is planned."""
    worst, bound, held = search(range(60), plan)
    assert bound == 200 + 16
    assert 0.9 * bound <= worst <= bound
    assert held <= (SLOTS[IO][1] + 1 if plan == 1.0 else bound)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("plan", "idle"), [(1.0, 0.0), (1.0, 0.5), (0.1, 0.2), (0.7, 0.0)])
def test_no_wait_is_longer_in_a_long_search(plan: float, idle: float) -> None:
    search(range(1000, 2500), plan, idle)


def test_the_bound_is_reached() -> None:
    """Two ask as the longest slot begins; the second one's burst ends with the bound."""
    schedule = Schedule(SLOTS)
    first, second = schedule.task(32), schedule.task(32)
    assert schedule.enter(WEIGHTS, 0) == 0
    assert schedule.may(0, first, 32) == 200
    assert schedule.may(0, second, 32) == 208
    assert schedule.enter(KV_READ, 199) == 1 + 8 + 8
    assert schedule.may(200, first, 32) == 0
    assert schedule.may(208, second, 32) == 0
    assert schedule.enter(KV_READ, 216) == 0
    assert schedule.bound_us() == 216


def test_between_any_two_slots() -> None:
    """Also of one layer, where the model does not leave off."""
    schedule = Schedule(SLOTS)
    radio = schedule.task(64)
    now = 0
    for before, behind in pairwise((WEIGHTS, KV_WRITE, KV_READ, WEIGHTS, WEIGHTS)):
        assert schedule.enter(before, now) == 0
        wait = schedule.may(now, radio, 64)
        assert wait == SLOTS[before][1]
        assert schedule.may(now + 1, radio, 64) == wait - 1
        now += wait
        assert schedule.enter(behind, now - 1) == 1 + 16
        assert schedule.may(now, radio, 64) == 0
        assert schedule.may(now, radio, 64) == 16  # its own
        now += 16


def test_a_bus_that_the_model_does_not_use() -> None:
    schedule = Schedule(SLOTS)
    radio, card = schedule.task(32), schedule.task(32)
    assert schedule.may(5, radio, 32) == 0
    assert schedule.may(6, card, 4) == 7
    assert schedule.may(13, card, 4) == 0
    assert schedule.may(14, radio, 32) == 0  # a small one takes a microsecond
    assert schedule.enter(WEIGHTS, 15) == 7
    assert schedule.enter(WEIGHTS, 22) == 0
    assert schedule.enter(IO, 100) == 0
    assert schedule.may(100, card, 32) == 0


def test_what_is_cancelled_is_waited_for_no_more() -> None:
    schedule = Schedule(SLOTS)
    radio = schedule.task(64)
    assert schedule.enter(WEIGHTS, 0) == 0
    assert schedule.may(3, radio, 64) == 197
    schedule.cancel(radio)
    assert schedule.enter(KV_READ, 199) == 0
    schedule.cancel(radio)
    with pytest.raises(BadArgument, match="no task 1: there are 1"):
        schedule.cancel(1)


def test_who_does_not_come_is_waited_for_a_burst() -> None:
    schedule = Schedule(SLOTS)
    radio = schedule.task(64)
    schedule.enter(WEIGHTS, 0)
    schedule.may(3, radio, 64)
    assert schedule.enter(KV_READ, 150) == 50 + 16
    assert schedule.enter(KV_READ, 216) == 0
    assert schedule.may(220, radio, 64) == 216 + 90 - 220


def test_a_slot_that_takes_longer_is_planned_so() -> None:
    schedule = Schedule(SLOTS)
    radio = schedule.task(64)
    schedule.enter(KV_READ, 0)
    assert schedule.may(80, radio, 64) == 10
    assert schedule.may(90, radio, 64) == 16
    assert schedule.enter(IO, 100) == 0
    assert schedule.slot(KV_READ) == (900, 101)
    assert schedule.may(106, radio, 64) == 0
    assert schedule.bound_us() == 216
    schedule.enter(WEIGHTS, 200)
    schedule.enter(IO, 1200)
    assert schedule.bound_us() == 1001 + 16


def two() -> tuple[Schedule, int, int]:
    schedule = Schedule(SLOTS)
    return schedule, schedule.task(32), schedule.task(32)


def test_before_the_first_promise_whoever_is_done_by_then_may_go() -> None:
    """Such a burst costs nobody time, so its task may have another in that gap."""
    schedule, radio, card = two()
    schedule.enter(WEIGHTS, 0)
    assert schedule.may(0, radio, 32) == 200
    schedule.enter(IO, 150)
    assert schedule.may(160, card, 32) == 0
    assert schedule.enter(WEIGHTS, 165) == 35 + 8
    assert schedule.may(168, card, 32) == 0
    assert schedule.may(193, card, 32) == 7 + 8  # not done by then
    assert schedule.may(200, radio, 32) == 0
    assert schedule.may(208, card, 32) == 0
    assert schedule.enter(WEIGHTS, 216) == 0


def test_who_comes_late_delays_those_behind_it() -> None:
    schedule, radio, card = two()
    schedule.enter(WEIGHTS, 0)
    assert (schedule.may(0, radio, 32), schedule.may(0, card, 32)) == (200, 208)
    assert schedule.enter(KV_READ, 199) == 17
    assert schedule.may(203, radio, 32) == 0
    assert schedule.enter(KV_READ, 210) == 9
    assert schedule.may(208, card, 32) == 3


def test_promises_of_a_slot_that_takes_longer_are_kept_in_their_order() -> None:
    schedule, radio, card = two()
    schedule.enter(KV_READ, 0)
    assert (schedule.may(80, radio, 32), schedule.may(81, card, 32)) == (10, 17)
    schedule.enter(IO, 120)
    assert schedule.may(121, card, 32) == 7
    assert schedule.may(121, radio, 32) == 0


def test_a_model_that_gives_up_its_wish_is_waited_for_no_more() -> None:
    schedule = Schedule(SLOTS)
    radio = schedule.task(64)
    schedule.enter(WEIGHTS, 0)
    schedule.may(3, radio, 64)
    assert schedule.enter(KV_READ, 199) == 17
    assert schedule.may(200, radio, 64) == 0
    assert schedule.may(216, radio, 64) == 90
    schedule.enter(IO, 217)
    assert schedule.may(218, radio, 64) == 0


def test_long_after_nobody_waits() -> None:
    """Ticks have gone round, once and to any place; a wait may then begin with one that is not longer."""
    for later_on in (PERIOD // 2, PERIOD // 2 + 40, PERIOD - 30, PERIOD - 1):
        schedule = Schedule(SLOTS)
        radio = schedule.task(64)
        schedule.may(100, radio, 64)
        assert schedule.may((100 + later_on) % PERIOD, radio, 64) <= 16


def test_long_after_who_was_promised_a_time_did_not_come() -> None:
    """Seen from there that time is to come again; the model does not wait for it."""
    schedule = Schedule(SLOTS)
    radio = schedule.task(64)
    schedule.enter(WEIGHTS, 0)
    assert schedule.may(3, radio, 64) == 197
    schedule.enter(IO, 150)
    assert schedule.enter(WEIGHTS, PERIOD - 1000) == 0
    assert schedule.may(PERIOD - 900, radio, 64) == 100


def test_times_go_round() -> None:
    for a in (0, 1, PERIOD // 2 - 1, PERIOD // 2, PERIOD - 1):
        for us in (0, 1, 16, PERIOD // 2 - 1):
            assert left((a + us) % PERIOD, a) == us
            assert left(a, (a + us) % PERIOD) == -us


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda s: Schedule(SLOTS[:3]), "slots must be four pairs"),
        (lambda s: Schedule([*SLOTS[:3], (64, 0)]), "microseconds must be 1..67108863, got 0"),
        (lambda s: Schedule([*SLOTS[:3], (-1, 5)]), "bytes must be 0..1073741823, got -1"),
        (lambda s: Schedule(SLOTS, 0), f"tasks must be 1..{MOST_TASKS}, got 0"),
        (lambda s: s.task(65), "burst must be 1..64 bytes"),
        (lambda s: (s.task(60), s.task(5)), "burst must be 1..4 bytes, what other tasks leave, got 5"),
        (lambda s: [s.task(1) for _ in range(9)], "no more tasks than 8"),
        (lambda s: s.may(0, 0, 1), "no task 0: there are 0"),
        (lambda s: s.may(0, s.task(8), 9), "task 0 may ask for 1..8 bytes at a time, got 9"),
        (lambda s: s.may(0, s.task(8), 0), "got 0"),
        (lambda s: s.enter(4, 0), "slot must be KV_READ, KV_WRITE, WEIGHTS or IO"),
        (lambda s: Schedule([*SLOTS[:3], (1 << 25, 1 << 24)]).task(1 << 25), "is too long: make it smaller"),
    ],
)
def test_what_is_refused(make, said: str) -> None:
    with pytest.raises(BadArgument, match=said):
        make(Schedule(SLOTS))


# --- Made of a model and a board ------------------------------------------------------------------

RATES = {"kv_read": 10_000_000, "kv_write": 1_000_000, "weights": 11_000_000, "io": 1_000_000}


def test_slots_of_a_model() -> None:
    """Weights are those that a layer's matrices read, keys and values those of a full window."""
    m = llama(tiny("no multiple of 32")[2], window=20, sinks=2)
    of_layer = sum(a[1] * (a[2] * 32 + a[3]) for a in m.matrices[:7])
    g = m.cache.geometry
    made = slots.slots(m.image, g, RATES, 512)
    row = g.kv_bytes(1) // g.layers
    assert [nbytes for nbytes, _ in made] == [22 * row, row, of_layer, 512]
    assert [us for _, us in made] == [-(-22 * row // 10), row, -(-of_layer // 11), 512]
    schedule = slots.make(m.image, g, RATES)
    schedule.task(512)
    assert schedule.bound_us() == max(us for _, us in made[:3]) + 512


@pytest.mark.parametrize("rate", [0, -1, 1.5, None])
def test_rates_that_are_none(rate) -> None:
    m = llama(tiny()[2], window=20)
    with pytest.raises(BadArgument, match="rates: weights must be bytes a second"):
        slots.make(m.image, Geometry(2, 4, 2, 8, window=20), {**RATES, "weights": rate})


# --- On devices -----------------------------------------------------------------------------------

# As a program may go about it, and as none should: who asks comes when told, early, late or not.
DEVICE = """
import json
try:
    import micropython
    total = micropython.mem_total
except ImportError:
    def total():
        return 0
from mpy_kv.bus.schedule import Schedule

def draw(state, n):
    state[0] = (state[0] * 1103 + 12345) & 0x7ffff
    return (state[0] >> 4) % n

def run(seed, steps):
    state = [seed]
    schedule = Schedule([(900, 90), (20, 5), (4000, 200), (64, 16)])
    tasks = 1 + draw(state, 4)
    for _ in range(tasks):
        schedule.task(16)
    now = (1 << 30) - 1 - draw(state, 3000)
    seen = 0
    for i in range(steps):
        if i == 20:
            before = total()
        if draw(state, 3):
            task = draw(state, tasks)
            wait = schedule.may(now, task, 1 + draw(state, 16))
            if draw(state, 40) == 0:
                schedule.cancel(task)
        else:
            wait = schedule.enter(draw(state, 4), now)
        seen = (seen * 31 + wait) & 0xffffff
        forward = wait if draw(state, 2) else draw(state, 60)
        now = (now - (1 << 29) + forward) & 0x3fffffff
        now = now ^ 0x20000000
    return [seen, now, total() - before, schedule.bound_us()]

def runs():
    return [run(seed, 120) for seed in range(60)]
"""


def test_devices_do_the_same_and_allocate_nothing(upy) -> None:
    here: dict = {}
    exec(DEVICE, here)
    want = here["runs"]()
    assert {allocated for _, _, allocated, _ in want} == {0}
    assert len({tuple(one) for one in want}) == len(want)
    assert json.loads(upy.run(DEVICE + "print(json.dumps(runs()))")) == want


def test_32_bits_do_the_same_and_allocate_nothing(qemu) -> None:
    here: dict = {}
    exec(DEVICE, here)
    assert json.loads(qemu.run(DEVICE + "print(json.dumps(runs()))")) == here["runs"]()


COST = """
import json
from instructions import count
from mpy_kv.bus.schedule import IO, WEIGHTS, Schedule
schedule = Schedule([(900, 90), (20, 5), (4000, 200), (64, 16)])
radio, card = schedule.task(32), schedule.task(32)
enter, may = schedule.enter, schedule.may
found = []
now = 0
for i in range(6):
    found = [count(enter, WEIGHTS, now), count(may, now, radio, 32), count(may, now, card, 8)]
    now += 199
    found += [count(enter, WEIGHTS, now), count(may, now + 1, radio, 32)]
    now += 18
    enter(WEIGHTS, now)
    found.append(count(enter, IO, now + 100))
    now += 300
print(json.dumps(found))
"""


def test_instructions_of_a_call(qemu) -> None:
    """On the Cortex-M3: with seventeen slots one part in a hundred of a token of `stories`."""
    assert max(json.loads(qemu.run(COST))) < 1400
