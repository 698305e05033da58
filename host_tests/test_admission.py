"""The admission queue against a model of lists, its promises one by one, asyncio, memory, bad input."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mpy_kv.admission.admission import RUNNING, WAITING, Admission
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.errors import BadArgument, BadHandle, NeverFits, NoRoom, QueueFull, StepError

DEVICE = Path(__file__).parent / "device"
SIZE = 4  # tokens of a block


@dataclass
class Asked:
    """A ticket as the model knows it."""

    ticket: int
    priority: int
    arrival: int
    blocks: int
    most: int


class Model:
    """The rules, written the simplest way: lists, sorted anew each time."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.waiting: list[Asked] = []
        self.running: list[Asked] = []  # in order of admission

    def free(self) -> int:
        return self.total - sum(each.blocks for each in self.running)

    def victims(self, priority: int, missing: int) -> list[Asked]:
        """Lowest priority first, newest first; then without those that are not needed. [] if too few."""
        lower = [each for each in reversed(self.running) if each.priority < priority]
        lower.sort(key=lambda each: each.priority)
        chosen: list[Asked] = []
        while lower and sum(each.blocks for each in chosen) < missing:
            chosen.append(lower.pop(0))
        if sum(each.blocks for each in chosen) < missing:
            return []
        for each in reversed(chosen[:-1]):
            if sum(other.blocks for other in chosen if other is not each) >= missing:
                chosen.remove(each)
        return chosen

    def preempt(self, victims: list[Asked]) -> None:
        for each in victims:
            self.running.remove(each)
            self.waiting.append(each)

    def step(self, available: int | None) -> tuple[list[Asked], list[Asked]]:
        """(admitted, preempted)"""
        room = self.free() if available is None else min(self.free(), available)
        admitted: list[Asked] = []
        preempted: list[Asked] = []
        blocked: set[int] = set()
        while True:
            heads = [each for each in self.waiting if each.priority not in blocked]
            if not heads:
                return admitted, preempted
            first = min(heads, key=lambda each: (-each.priority, each.arrival))
            if first.blocks > room:
                victims = self.victims(first.priority, first.blocks - room)
                room += sum(each.blocks for each in victims)
                self.preempt(victims)
                preempted += victims
            if first.blocks > room:
                blocked.add(first.priority)
                continue
            room -= first.blocks
            self.waiting.remove(first)
            self.running.append(first)
            admitted.append(first)

    def grow(self, asked: Asked, blocks: int, available: int | None) -> tuple[bool, list[Asked]]:
        """(grown, preempted)"""
        room = self.free() if available is None else min(self.free(), available)
        victims = self.victims(asked.priority, blocks - room) if blocks > room else []
        self.preempt(victims)
        asked_for = room + sum(each.blocks for each in victims) >= blocks
        if not asked_for:
            self.preempt([asked])
            victims = [*victims, asked]
        asked.blocks += blocks
        return asked_for, victims


AVAILABLE = st.none() | st.integers(0, 40)


class QueueAgainstModel(RuleBasedStateMachine):
    @initialize(total=st.integers(1, 40), tickets=st.integers(1, 9), levels=st.integers(1, 3), data=st.data())
    def make(self, total: int, tickets: int, levels: int, data: Any) -> None:
        limit = data.draw(st.none() | st.integers(1, total))
        rule = data.draw(st.sampled_from(["maximum", "nothing", "predict"]))
        self.predictor = LengthPredictor(tasks=2, least=2, memory=32) if rule == "predict" else None
        self.rule = rule
        self.queue = Admission(total, SIZE, tickets, levels, limit, self.predictor or rule)
        self.limit = limit or total
        self.model = Model(total)
        self.arrivals = 0
        self.dead: list[int] = []

    def live(self) -> list[Asked]:
        return self.model.waiting + self.model.running

    def pick(self, data: Any, of: list[Asked]) -> Asked:
        return data.draw(st.sampled_from(sorted(of, key=lambda each: each.ticket)))

    @rule(
        task=st.integers(0, 3), prompt=st.integers(1, 80), most=st.integers(1, 80), priority=st.integers(0, 2)
    )
    def submit(self, task: int, prompt: int, most: int, priority: int) -> None:
        priority %= self.queue.levels
        worst = -(-(prompt + most) // SIZE)
        if worst > self.limit or len(self.live()) == self.queue.tickets:
            expected = NeverFits if worst > self.limit else QueueFull
            with pytest.raises(expected) as refused:
                self.queue.submit(task, prompt, most, priority)
            error = refused.value
            if expected is NeverFits:
                assert (error.needed, error.free, error.largest) == (worst, self.model.free(), self.limit)
            return
        output = {"maximum": most, "nothing": 1}.get(self.rule)
        if output is None:
            output = self.predictor.predict(task, most)
        ticket = self.queue.submit(task, prompt, most, priority)
        assert ticket not in {each.ticket for each in self.live()}
        assert 0 <= ticket < 1 << 29
        self.arrivals += 1
        self.model.waiting.append(
            Asked(ticket, priority, self.arrivals, -(-(prompt + output) // SIZE), worst)
        )

    @rule(available=AVAILABLE)
    def step(self, available: int | None) -> None:
        admitted, preempted = self.model.step(available)
        assert self.queue.step(available) == len(admitted)
        assert list(self.queue.admitted[: len(admitted)]) == [each.ticket for each in admitted]
        assert self.queue.n_preempted == len(preempted)
        assert set(self.queue.preempted[: len(preempted)]) == {each.ticket for each in preempted}
        assert not {each.ticket for each in admitted} & {each.ticket for each in preempted}
        # All that could be done was done: another step finds nothing, nor would a third.
        if available is None:
            assert (self.queue.step(), self.queue.n_preempted) == (0, 0)

    @precondition(lambda self: self.model.running)
    @rule(data=st.data(), blocks=st.integers(1, 8), available=AVAILABLE)
    def grow(self, data: Any, blocks: int, available: int | None) -> None:
        asked = self.pick(data, self.model.running)
        if asked.blocks + blocks > asked.most:
            with pytest.raises(NeverFits):
                self.queue.growth(asked.ticket, blocks, available)
            return
        grown, preempted = self.model.grow(asked, blocks, available)
        assert self.queue.growth(asked.ticket, blocks, available) is grown
        assert set(self.queue.preempted[: self.queue.n_preempted]) == {each.ticket for each in preempted}
        assert all(each.priority < asked.priority for each in preempted if each is not asked)

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def want(self, data: Any) -> None:
        asked = self.pick(data, self.live())
        wanted = self.queue.wanted(asked.ticket, 0)
        assert (wanted == 0) == (asked.blocks == asked.most)
        assert asked.blocks + wanted <= asked.most

    @precondition(lambda self: self.model.running)
    @rule(data=st.data(), learns=st.booleans())
    def finish(self, data: Any, learns: bool) -> None:
        asked = self.pick(data, self.model.running)
        self.queue.finish(asked.ticket, 1 if learns else None)
        self.model.running.remove(asked)
        self.dead.append(asked.ticket)

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        asked = self.pick(data, self.live())
        self.queue.cancel(asked.ticket)
        (self.model.running if asked in self.model.running else self.model.waiting).remove(asked)
        self.dead.append(asked.ticket)

    @precondition(lambda self: self.model.waiting)
    @rule(data=st.data())
    def what_only_a_running_one_may(self, data: Any) -> None:
        ticket = self.pick(data, self.model.waiting).ticket
        for call in (lambda: self.queue.finish(ticket), lambda: self.queue.growth(ticket, 1)):
            with pytest.raises(StepError, match=f"ticket {ticket} waits"):
                call()

    @precondition(lambda self: self.dead)
    @rule(data=st.data())
    def what_has_ended(self, data: Any) -> None:
        ticket = data.draw(st.sampled_from(self.dead))
        for call in (self.queue.finish, self.queue.cancel, self.queue.state, self.queue.blocks):
            with pytest.raises(BadHandle):
                call(ticket)

    @invariant()
    def same_as_the_model(self) -> None:
        if not hasattr(self, "queue"):
            return
        assert self.queue.check() == 0
        model = self.model
        for state, group in ((WAITING, model.waiting), (RUNNING, model.running)):
            for each in group:
                assert self.queue.state(each.ticket) == state
                assert self.queue.blocks(each.ticket) == each.blocks
        stats = self.queue.stats()
        assert (stats["waiting"], stats["running"]) == (len(model.waiting), len(model.running))
        assert stats["reserved_blocks"] == model.total - model.free() <= model.total
        slots = [self.queue.slot(each.ticket) for each in self.live()]
        assert len(set(slots)) == len(slots)


QueueAgainstModel.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, derandomize=True
)
TestQueueAgainstModel = QueueAgainstModel.TestCase


def queue_of(total: int = 10, **options: Any) -> Admission:
    return Admission(total, SIZE, **{"tickets": 8, "levels": 3, **options})


def ask(queue: Admission, blocks: int, priority: int = 0) -> int:
    """A ticket that reserves so many blocks at once."""
    return queue.submit(0, blocks * SIZE - 1, 1, priority)


def states(queue: Admission, *tickets: int) -> str:
    return "".join("wr"[queue.state(ticket)] for ticket in tickets)


def test_what_never_fits_is_refused_at_once_with_numbers() -> None:
    queue = queue_of(10, limit_blocks=6)
    ask(queue, 4)
    queue.step()
    before = queue.stats()
    with pytest.raises(NeverFits, match="limit_blocks 6 of 10 blocks of 4 tokens") as refused:
        queue.submit(0, 5, 20)  # 25 tokens, 7 blocks
    error = refused.value
    assert isinstance(error, NoRoom)
    assert (error.needed, error.free, error.largest, error.unit) == (7, 6, 6, "blocks")
    assert queue.stats() == {**before, "refused": 1}
    assert queue.blocks(queue.submit(0, 4, 20)) == 6  # exactly the limit


def test_the_queue_is_bounded() -> None:
    queue = queue_of(tickets=2)
    ask(queue, 1)
    first = ask(queue, 1)
    with pytest.raises(QueueFull, match="all 2 tickets are out: try again later"):
        ask(queue, 1)
    queue.cancel(first)
    ask(queue, 1)
    assert queue.check() == 0


def test_nobody_overtakes_within_a_priority() -> None:
    """Small ones that would fit keep behind a large one."""
    queue = queue_of(10)
    holder, large, small = ask(queue, 6), ask(queue, 8), ask(queue, 1)
    assert queue.step() == 1
    assert states(queue, holder, large, small) == "rww"
    queue.finish(holder)
    assert queue.step() == 2
    assert list(queue.admitted[:2]) == [large, small]


def test_a_lower_priority_may_use_what_a_higher_one_cannot() -> None:
    """And gives it back as soon as the higher one fits with it."""
    queue = queue_of(10)
    holder, large, low = ask(queue, 6, 1), ask(queue, 8, 1), ask(queue, 4, 0)
    queue.step()
    assert states(queue, holder, large, low) == "rwr"
    queue.finish(holder)
    assert queue.step() == 1
    assert states(queue, large, low) == "rw"
    assert list(queue.preempted[: queue.n_preempted]) == [low]


def test_equal_priorities_never_preempt() -> None:
    queue = queue_of(10, reserve="nothing")
    a, b = queue.submit(0, 16, 24), queue.submit(0, 16, 24)  # five blocks each, ten in the end
    assert queue.step() == 2
    for _ in range(5):
        assert (queue.step(), queue.n_preempted) == (0, 0)
    assert queue.growth(a, 1) is False  # gives way itself
    assert list(queue.preempted[: queue.n_preempted]) == [a]
    assert states(queue, a, b) == "wr"
    assert (queue.step(), queue.blocks(a)) == (0, 6)
    assert queue.growth(b, 5) is True


def test_victims_are_of_the_lowest_priority_and_the_newest() -> None:
    queue = queue_of(12)
    old, middle, new = ask(queue, 3, 0), ask(queue, 3, 1), ask(queue, 3, 0)
    queue.step()
    high = ask(queue, 6, 2)
    queue.step()
    assert states(queue, old, middle, new, high) == "rrwr"
    higher = ask(queue, 6, 2)
    queue.step()
    assert states(queue, old, middle, new, high, higher) == "wwwrr"


def test_who_is_not_needed_is_spared() -> None:
    """The newest alone is too small; with the next it is not needed any more."""
    queue = queue_of(10)
    large, small = ask(queue, 8, 0), ask(queue, 2, 0)
    queue.step()
    high = ask(queue, 7, 1)
    queue.step()
    assert states(queue, large, small, high) == "wrr"


def test_nothing_is_preempted_in_vain() -> None:
    queue = queue_of(10)
    equal, low = ask(queue, 6, 1), ask(queue, 4, 0)
    queue.step()
    high = ask(queue, 5, 1)
    assert (queue.step(), queue.n_preempted) == (0, 0)
    assert states(queue, equal, low, high) == "rrw"


def test_the_preempted_keep_their_places() -> None:
    queue = queue_of(9)
    first, second, third = (ask(queue, 3, 0) for _ in range(3))
    queue.step()
    late = ask(queue, 3, 0)
    high = ask(queue, 9, 1)
    queue.step()
    assert states(queue, first, second, third, late, high) == "wwwwr"
    queue.finish(high)
    assert queue.step() == 3
    assert list(queue.admitted[:3]) == [first, second, third]


def test_blocks_that_cannot_be_had_now_are_not_promised() -> None:
    queue = queue_of(10)
    a, b = ask(queue, 4), ask(queue, 4)
    assert queue.step(7) == 1
    assert states(queue, a, b) == "rw"
    assert queue.step(3) == 0
    assert queue.step(100) == 1  # never more than is not reserved
    c = ask(queue, 4)
    assert queue.step(100) == 0
    assert states(queue, c) == "w"


def test_cancelled_in_any_state_everything_comes_back() -> None:
    """Queued, running, preempted: the counts are those of the start."""

    def counts(queue: Admission) -> dict:
        kept = ("reserved_blocks", "waiting", "running", "total_blocks")
        return {key: queue.stats()[key] for key in kept}

    queue = queue_of(10)
    start = counts(queue)
    for when in ("queued", "running", "preempted", "preempted by its growth"):
        ticket = queue.submit(0, 16, 8)
        other = None
        if when != "queued":
            assert queue.step() == 1
        if when == "preempted":
            other = ask(queue, 10, 2)
            queue.step()
            assert states(queue, ticket, other) == "wr"
        queue.cancel(ticket)
        if other is not None:
            queue.finish(other)
        assert counts(queue) == start, when
        assert queue.check() == 0
    growing = queue_of(10, reserve="nothing")
    a, b = growing.submit(0, 16, 24), growing.submit(0, 16, 24)
    growing.step()
    assert growing.growth(b, 1) is False
    growing.cancel(b)
    growing.cancel(a)
    assert counts(growing) == start
    assert growing.step() == 0


def test_a_waiting_one_is_not_held_up_by_later_ones_without_end() -> None:
    """A ticket for the whole pool gets in when those before it have ended, however many small ones of its own
    and lower priorities keep coming."""
    queue = queue_of(10, tickets=32)
    running = [ask(queue, 2, 1) for _ in range(5)]
    queue.step()
    whole = ask(queue, 10, 1)
    later: list[int] = []
    for ticket in running:
        later += [ask(queue, 1, 1), ask(queue, 1, 0)]
        queue.step()
        assert queue.state(whole) == WAITING
        queue.finish(ticket)
    queue.step()
    assert queue.state(whole) == RUNNING


@pytest.mark.parametrize("reserve", ["nothing", "predict"])
@pytest.mark.parametrize("levels", [1, 3])
def test_an_overfull_pool_ends_all_the_same(reserve: str, levels: int) -> None:
    """Each needs the whole pool in the end. All finish, and give way no oftener than their blocks allow."""
    if reserve == "predict":
        reserve = LengthPredictor(tasks=1, per_mille=100, least=1)
        reserve.observe(0, 1)
    queue = queue_of(10, levels=levels, reserve=reserve)
    tickets = [queue.submit(0, 4, 36, i % levels) for i in range(8)]
    done = dict.fromkeys(tickets, 0)
    rounds = 0
    while tickets:
        rounds += 1
        assert rounds < 8 * 40, "it never ends"
        queue.step()
        for ticket in list(tickets):
            if queue.state(ticket) != RUNNING:
                continue
            done[ticket] = max(done[ticket], queue.blocks(ticket) * SIZE - 4)
            if done[ticket] >= 36:
                queue.finish(ticket, 36)
                tickets.remove(ticket)
            else:
                queue.growth(ticket, queue.wanted(ticket, done[ticket]))
        assert queue.check() == 0
    assert queue.stats()["finished"] == 8
    assert queue.stats()["preempted"] <= 8 * 9


def test_predictions_are_reserved_and_learnt_from() -> None:
    predictor = LengthPredictor(least=2, per_mille=1000)
    queue = Admission(100, SIZE, reserve=predictor)
    for _ in range(2):
        ticket = queue.submit(5, 8, 92)
        assert queue.blocks(ticket) == 25  # nothing known: the maximum
        queue.step()
        queue.finish(ticket, 12)
    ticket = queue.submit(5, 8, 92)
    assert queue.blocks(ticket) == 5
    queue.step()
    assert queue.wanted(ticket, 12) == 3  # twice what is there: no answer was longer
    cancelled = queue.submit(5, 8, 92)
    queue.cancel(cancelled)
    assert predictor.seen(5) == 2


@pytest.mark.parametrize("value", [-1, 1 << 29, 1 << 30, 1 << 31, 1.5, "4", None, True, ()])
def test_wrong_arguments_change_nothing(value: object) -> None:
    queue = queue_of(reserve="nothing")
    waiting, running = ask(queue, 10), queue.submit(0, 4, 30, 1)
    queue.step()
    before = queue.stats()
    calls = [
        ("task", lambda: queue.submit(value, 5, 5)),
        ("prompt_tokens", lambda: queue.submit(0, value, 5)),
        ("max_tokens", lambda: queue.submit(0, 5, value)),
        ("priority", lambda: queue.submit(0, 5, 5, value)),
        ("tokens", lambda: queue.wanted(running, value)),
        ("total_blocks", lambda: Admission(value, 4)),
        ("block_tokens", lambda: Admission(4, value)),
        ("tickets", lambda: Admission(4, 4, value)),
        ("levels", lambda: Admission(4, 4, 4, value)),
        ("reserve", lambda: Admission(4, 4, reserve=value)),
    ]
    if value is not None:  # which stands for the default there
        calls += [
            ("available_blocks", lambda: queue.step(value)),
            ("available_blocks", lambda: queue.growth(running, 1, value)),
            ("limit_blocks", lambda: Admission(4, 4, limit_blocks=value)),
            ("tokens", lambda: queue.finish(running, value)),
        ]
    for name, call in calls:
        with pytest.raises(BadArgument, match=name):
            call()
    with pytest.raises((BadArgument, NeverFits), match="blocks|growth"):
        queue.growth(running, value)
    for call in (queue.finish, queue.cancel, queue.state, queue.blocks, queue.slot):
        with pytest.raises(BadHandle, match="is not of this queue of 8 tickets"):
            call(value)
    assert queue.stats() == before
    assert states(queue, waiting, running) == "wr"
    assert queue.check() == 0


def test_a_ticket_of_another_queue_is_refused() -> None:
    one, other = queue_of(), queue_of()
    ticket = ask(one, 1)
    ask(other, 1)
    with pytest.raises(BadHandle, match="is not of this queue"):
        other.cancel(ticket)


def test_a_stale_ticket_is_refused_when_its_slot_is_taken_again() -> None:
    queue = queue_of(tickets=1)
    tickets = []
    for _ in range(300):
        tickets.append(ask(queue, 1))
        queue.cancel(tickets[-1])
    assert len(set(tickets)) == 300
    live = ask(queue, 1)
    for stale in tickets:
        with pytest.raises(BadHandle, match="is stale: it was finished or cancelled"):
            queue.cancel(stale)
    assert queue.state(live) == WAITING


def test_arrivals_count_on_past_their_limit() -> None:
    """The count of arrivals wraps at 2^30: the order stays."""
    queue = queue_of(4)
    queue._meta[4] = (1 << 30) - 2
    tickets = [ask(queue, 1) for _ in range(4)]
    queue.step()
    high = ask(queue, 4, 1)
    queue.step()
    assert queue.check() == 0
    queue.finish(high)
    queue.step()
    assert list(queue.admitted[:4]) == tickets


def test_check_sees_damage() -> None:
    def damaged(damage: Any) -> int:
        queue = queue_of()
        ask(queue, 4, 1)
        queue.step()
        ask(queue, 10, 1)
        assert queue.check() == 0
        damage(queue)
        return queue.check()

    assert damaged(lambda q: q._blocks.__setitem__(0, 5)) > 0
    assert damaged(lambda q: q._running.__setitem__(0, 0)) > 0
    assert damaged(lambda q: q._level.__setitem__(1, 2)) > 0
    assert damaged(lambda q: q._word.__setitem__(2, 99)) > 0
    assert damaged(lambda q: q._nxt.__setitem__(3, 3)) > 0
    assert damaged(lambda q: q._meta.__setitem__(2, 0)) > 0


def test_memory_is_what_it_says() -> None:
    queue = queue_of(tickets=20, levels=4)
    arrays = [each for each in vars(queue).values() if hasattr(each, "itemsize")]
    size = sum(len(each) * each.itemsize for each in arrays)
    assert queue.memory_bytes() == size + len(queue._running) + len(queue._level)


@pytest.mark.parametrize("interpreter", ["upy", "qemu"])
def test_nothing_is_allocated(request, interpreter: str) -> None:
    """By mem_total; with preemptions in steps and growths."""
    run = request.getfixturevalue(interpreter).run
    measured, stats = json.loads(run(DEVICE / "admission.py", ["memory"], heap_bytes=1 << 20))
    assert measured.pop("control") > 0, "the counter sees nothing"
    assert measured == dict.fromkeys(("observe", "predict", "submit", "step", "growth", "end"), 0)
    assert stats["preempted"] > 100


WITHOUT_EMITTER = """
import sys
sys.path.append("{root}/host_tests/device")
import without_emitter
import admission, json
assert type(sys.modules["mpy_kv.admission.admission"]).__name__ == "_Names"
print(json.dumps(admission.trace(5, 300)))
"""


def test_the_same_without_a_native_emitter(upy) -> None:
    said = upy.run(WITHOUT_EMITTER.format(root=DEVICE.parents[1]))
    assert json.loads(said) == json.loads(upy.run(DEVICE / "admission.py", ["trace", 5, 300]))


WAITING_TASKS = """
import asyncio
from mpy_kv.admission.admission import RUNNING, Admission
from mpy_kv.admission.waiting import Gate
from mpy_kv.errors import BadHandle

log = []

async def job(gate, name, blocks, priority, hold):
    ticket = gate.admission.submit(0, 4 * blocks - 1, 1, priority)
    gate.step()
    try:
        await gate.wait(ticket)
    except BadHandle:
        log.append(name + " cancelled")
        return
    log.append(name)
    await hold.wait()
    if gate.admission.state(ticket) != RUNNING:
        log.append(name + " preempted")
        await gate.wait(ticket)
        log.append(name + " again")
    gate.finish(ticket, 1)

async def rest():
    for _ in range(5):
        await asyncio.sleep(0)

async def main():
    told = []
    gate = Gate(Admission(4, 4, 6), told.append)
    go, later, last = asyncio.Event(), asyncio.Event(), asyncio.Event()
    go.set()
    low = asyncio.create_task(job(gate, "low", 4, 0, later))
    await rest()
    asked = [asyncio.create_task(job(gate, n, 4, p, go)) for n, p in (("b", 0), ("given up", 0), ("c", 0))]
    await rest()
    asked[1].cancel()
    cancelled = gate.admission.submit(0, 3, 1, 0)
    watcher = asyncio.create_task(watch(gate, cancelled))
    twice = asyncio.create_task(watch(gate, cancelled))
    await rest()
    gate.cancel(cancelled)
    twice.cancel()
    high = asyncio.create_task(job(gate, "high", 4, 1, last))
    await rest()
    later.set()
    await rest()
    last.set()
    for task in [low, high, watcher, twice] + asked:
        try:
            await task
        except asyncio.CancelledError:
            log.append("given up")
    stats = gate.admission.stats()
    print(log, len(told), gate.admission.check())
    print([stats[k] for k in ("finished", "cancelled", "preempted", "reserved_blocks", "waiting")])

async def watch(gate, ticket):
    try:
        await gate.wait(ticket)
    except BadHandle:
        log.append("watcher told")

asyncio.run(main())
"""


def test_tasks_wait_without_asking(upy, capsys) -> None:
    """Admitted, preempted and admitted again, cancelled by others, given up: alike on both interpreters."""
    exec(compile(WAITING_TASKS, "waiting", "exec"), {})
    here = capsys.readouterr().out
    assert here.splitlines() == [
        "['low', 'watcher told', 'high', 'low preempted', 'low again', 'b', 'given up', 'given up', 'c'] 1 0",
        "[4, 2, 1, 0, 0]",
    ]
    assert upy.run(WAITING_TASKS) == here
