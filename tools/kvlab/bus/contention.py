"""A model's tokens and other tasks on one bus, in simulated time: the device's own tracker admits the other
tasks, its schedule says when they may go, and its queue joins what is written.

What a token does is the same in each layer: K and V of the new token are written, those of all tokens
read, and meanwhile the weights of the next layer are fetched into the second of two buffers. Without a
schedule each of these goes as soon as it can, so that they meet. With one they take turns, and other tasks go
in between. Where the core reads weights in place it reads them when it computes with them: nothing of the
model's meets, with a schedule or without.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import simpy

from kvlab.bus.chains import Writer
from kvlab.bus.facts import Figures
from kvlab.bus.kinds import IO, KINDS, KV_READ, KV_WRITE, WEIGHTS
from kvlab.bus.wire import PS_PER_US, Span, Wire

OTHERS = 4  # other tasks of the user's program
BUFFERS = 2  # of a layer's weights
MOST_BURST = 1 << 40

Steps = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Work:
    """What a token moves, by kind, in bytes of all layers; `io`: of other tasks, while a token is made.

    pieces: contiguous pieces of K and V that a layer's append writes. compute_us: what a token takes where
    the bus takes no time, start_us: what a start of a chain takes the core. vectors: what goes in and out of
    the kernels that read weights.
    """

    layers: int
    kv_read: int
    kv_write: int
    weights: int
    io: int
    pieces: int = 2
    compute_us: float = 0.0
    start_us: float = 0.0
    vectors: int = 0

    def by_kind(self) -> dict[str, int]:
        """Bytes by the names of kinds."""
        return dict(zip(KINDS, (self.kv_read, self.kv_write, self.weights, self.io)))


@dataclass
class Outcome:
    """What happened, in microseconds."""

    token_us: float = 0.0
    waits_us: list[float] = field(default_factory=list)  # of other tasks: from the request to the last byte
    bound_us: float = 0.0  # of those waits, proven
    transfers: int = 0
    starts: int = 0
    overhead_us: float = 0.0  # the bus was taken and moved nothing, or the core started a transfer
    contention_us: float = 0.0  # waits of the model's own transfers for the bus
    busy_pct: float = 0.0
    spans: list[Span] = field(default_factory=list)
    tracked: dict[str, int] = field(default_factory=dict)  # bytes that the tracker has counted, by kind

    @property
    def worst_us(self) -> float:
        return max(self.waits_us, default=0.0)

    def figures(self) -> dict[str, Any]:
        """As JSON takes it."""
        told = ("token_us", "bound_us", "worst_us", "transfers", "starts", "overhead_us", "contention_us")
        return {**{name: getattr(self, name) for name in told}, "busy_pct": self.busy_pct}


@dataclass(frozen=True)
class Tail:
    """How long other tasks wait where the model takes the bus for `load` of the time."""

    load: float
    p50_us: float
    p99_us: float
    max_us: float
    bound_us: float


def run(
    figures: Figures,
    work: Work,
    *,
    staggered: bool,
    batched: bool,
    tokens: int = 4,
    keep: bool = True,
    hostile: bool = False,
    seed: int = 1,
    began_us: int = 0,
    others: int = OTHERS,
    greedy: int = 0,
) -> Outcome:
    """So many tokens, one after another. keep: what went over the bus. hostile: the other tasks ask all
    together, when the longest that the model does at once has just begun, as soon as the tracker lets them;
    else now and then. began_us: what the clock shows first. greedy: so many of the others ask anew as soon as
    they are served; their own waits do not count."""
    how = _How(staggered, batched, tokens, keep, hostile, seed, began_us, others, greedy)
    return _Run(figures, work, how).outcome()


def bus_us(figures: Figures, work: Work) -> float:
    """What a token's own transfers take the bus, if none of them meet."""
    layer = _layer(work)
    took = figures.transfer_ps(layer.kv_read, KV_READ)
    took += figures.transfer_ps(layer.weights, WEIGHTS, vectors=layer.vectors)
    took += work.pieces * figures.transfer_ps(-(-layer.kv_write // work.pieces), KV_WRITE)
    return work.layers * took / PS_PER_US


def at_load(figures: Figures, work: Work, load: float) -> Work:
    """The same with as much to compute that its transfers take the bus for `load` of the time."""
    return replace(work, compute_us=bus_us(figures, work) * (1 / load - 1))


def tail(
    figures: Figures, work: Work, loads: Iterable[float], *, staggered: bool, tokens: int = 40, seed: int = 1
) -> list[Tail]:
    """Other tasks' waits by load of the bus."""
    found = []
    for load in loads:
        made = at_load(figures, work, load)
        done = run(figures, made, staggered=staggered, batched=True, tokens=tokens, keep=False, seed=seed)
        waits = sorted(done.waits_us)
        found.append(Tail(load, at(waits, 0.5), at(waits, 0.99), done.worst_us, done.bound_us))
    return found


def searched(figures: Figures, work: Work, *, staggered: bool = True, seed: int = 1) -> tuple[float, float]:
    """(bound, the longest that is found) of other tasks' waits, in microseconds: who asks when it is worst
    and who asks at any time, on a bus that has more and less to do."""
    found = []
    for load in (None, 0.3, 0.9):
        made = work if load is None else at_load(figures, work, load)
        for hostile in (True, False):
            done = run(
                *(figures, made),
                staggered=staggered,
                batched=True,
                tokens=20,
                keep=False,
                hostile=hostile,
                seed=seed,
            )
            found.append((done.bound_us, done.worst_us))
    return max(bound for bound, _ in found), max(worst for _, worst in found)


def at(waits: list[float], part: float) -> float:
    """The value that so large a part of them, sorted, does not exceed."""
    return waits[max(1, ceil(part * len(waits))) - 1] if waits else 0.0


def _layer(work: Work) -> Work:
    """Of one layer: whole bytes, no fewer than there are."""
    each = {
        name: -(-getattr(work, name) // work.layers) for name in ("kv_read", "kv_write", "weights", "vectors")
    }
    return replace(work, layers=1, compute_us=work.compute_us / work.layers, **each)


def environment(figures: Figures, work: Work) -> simpy.Environment:
    """Tokens without end and other tasks, to be stepped by whoever asks."""
    made = _Run(figures, work, _How(staggered=False, batched=True, tokens=1 << 40))
    made.begin()
    return made.env


@dataclass(frozen=True)
class _How:
    """What run() is asked for."""

    staggered: bool
    batched: bool
    tokens: int
    keep: bool = False
    hostile: bool = False
    seed: int = 1
    began_us: int = 0
    others: int = OTHERS
    greedy: int = 0


class _Run:
    """One run; what happens between two of its events is instantaneous."""

    def __init__(self, figures: Figures, work: Work, how: _How) -> None:
        from mpy_kv.bus import tracker

        self.figures, self.work, self.layer = figures, work, _layer(work)
        self.tokens, self.hostile, self.greedy = how.tokens, how.hostile, how.greedy
        self.began_ps = how.began_us * PS_PER_US
        self.env = simpy.Environment(self.began_ps)
        self.wire = Wire(self.env, figures, how.keep)
        self.writer = Writer(self.wire, self.layer.kv_write, work.pieces, how.batched, work.start_us)
        self.found = Outcome()
        self.cue = self.env.event()  # of hostile tasks: the longest has begun
        self.source = random.Random(how.seed)
        self.compute_ps = round(self.layer.compute_us * PS_PER_US)
        # Each task has a burst in as much time as all of them have a layer, and all at most half of the bus.
        self.burst = burst(work)
        token_us = bus_us(figures, work) + work.compute_us
        self.pause_ps = max(
            PS_PER_US,
            round(OTHERS * token_us * PS_PER_US / work.layers),
            2 * OTHERS * figures.transfer_ps(self.burst, IO),
        )
        self.tracker = tracker.Tracker(figures.peak)
        self.model = [self.tracker.task(kind, 0, MOST_BURST) for kind in (KV_READ, KV_WRITE, WEIGHTS)]
        rate = -(-self.burst * 10**12 // self.pause_ps)
        self.others = [self.tracker.task(IO, rate, self.burst) for _ in range(how.others)]
        self.slots = slots = _slots_ps(figures, self.layer, how.batched)
        self.ahead = not figures.weights  # weights are fetched while the layer before is computed
        self.longest = max(slots, key=lambda kind: slots[kind])
        self.schedule: Any = _schedule(figures, work, how.batched) if how.staggered else None
        # Of the schedule's: a burst is so many of its bytes.
        self.counted = -(-self.burst // _unit(self.burst, max(planned_us(figures, work)[1])))
        self.turns = [self.schedule.task(self.counted) for _ in self.others] if self.schedule else []

    def begin(self) -> simpy.Event:
        """What happens when the last token is done."""
        env = self.env
        story: simpy.Event = env.process(self.in_turns() if self.schedule else self.at_will())
        for i in range(len(self.others)):
            env.process(self.other(i))
        return story

    def outcome(self) -> Outcome:
        found, env = self.found, self.env
        env.run(until=self.begin())
        took_ps = int(env.now) - self.began_ps
        found.token_us = took_ps / PS_PER_US / self.tokens
        found.transfers, found.starts = sum(self.wire.transfers), self.writer.starts
        set_up = found.transfers - (0 if self.ahead else self.wire.transfers[WEIGHTS])
        overhead_ps = set_up * self.figures.overhead_ns * 1000
        found.overhead_us = overhead_ps / PS_PER_US + self.writer.starts * self.work.start_us
        found.busy_pct = 100 * min(sum(self.wire.busy_ps), took_ps) / took_ps
        found.bound_us = float(self.schedule.bound_us()) if self.schedule else self.unscheduled_us()
        found.spans = self.wire.spans or []
        for kind, name in enumerate(KINDS):
            high, low = self.tracker.total(kind)
            found.tracked[name] = (high << 30) + low
        found.contention_us = (sum(self.wire.waited_ps) - self.wire.waited_ps[IO]) / PS_PER_US
        return found

    # With a schedule the model's transfers take turns.

    def in_turns(self) -> Steps:
        env, layer, layers = self.env, self.layer, self.work.layers
        if self.ahead:
            yield from self.slot(WEIGHTS, self.read(WEIGHTS, layer.weights, 0))
        for i in range(self.tokens * layers):
            at = i % layers
            yield from self.slot(KV_WRITE, self.write(at))
            yield from self.slot(KV_READ, self.read(KV_READ, layer.kv_read, at))
            computed = env.timeout(self.compute_ps) if self.ahead else None
            fetched = (at + 1) % layers if self.ahead else at
            yield from self.slot(WEIGHTS, self.read(WEIGHTS, layer.weights, fetched))
            computed = computed or env.timeout(self.compute_ps)
            if not computed.processed:
                self.schedule.enter(IO, self.wire.now_us)
                yield computed
                yield env.timeout(self.whole_us(0))

    def slot(self, kind: int, steps: Steps) -> Steps:
        """One of the schedule's, from a whole microsecond of the clock to another: it ends when the model
        asks for the next, or says that it has no more to do for now."""
        while wait := self.schedule.enter(kind, self.wire.now_us):
            yield self.env.timeout(wait * PS_PER_US)
        yield from steps
        yield self.env.timeout(self.whole_us(0))

    # Without one they go as soon as they can.

    def at_will(self) -> Steps:
        env = self.env
        room = simpy.Container(env, capacity=BUFFERS, init=BUFFERS)
        ready = simpy.Container(env, capacity=BUFFERS)
        if self.ahead:
            env.process(self.fetches(room, ready))
        for i in range(self.tokens * self.work.layers):
            at = i % self.work.layers
            if self.ahead:
                yield ready.get(1)
            yield from self.write(at)
            yield from self.read(KV_READ, self.layer.kv_read, at)
            if not self.ahead:
                yield from self.read(WEIGHTS, self.layer.weights, at)
            yield env.timeout(self.compute_ps)
            if self.ahead:
                yield room.put(1)

    def fetches(self, room: simpy.Container, ready: simpy.Container) -> Steps:
        for i in range(self.tokens * self.work.layers):
            yield room.get(1)
            yield from self.read(WEIGHTS, self.layer.weights, i % self.work.layers)
            yield ready.put(1)

    def unscheduled_us(self) -> float:
        """What another task waits at most without a schedule: whoever else may have asked before has asked
        once, the fetch of weights, what reads or writes K and V, and each other task; or instead of the two
        what the core does."""
        slots = self.slots
        io = self.figures.transfer_ps(self.burst, IO, self.layer.kv_write)
        model = max(slots[KV_READ], slots[KV_WRITE]) + slots[WEIGHTS] if self.ahead else max(slots.values())
        return (model + OTHERS * io) / PS_PER_US

    def read(self, kind: int, nbytes: int, layer: int) -> Steps:
        if nbytes:
            self.tracker.record(self.wire.now_us, self.model[kind], nbytes)
            vectors = self.layer.vectors if kind == WEIGHTS else 0
            done = self.wire.transfer("model", kind, nbytes, layer, vectors=vectors)
            self.begins(kind)
            yield done

    def write(self, layer: int) -> Steps:
        self.tracker.record(self.wire.now_us, self.model[KV_WRITE], self.layer.kv_write)
        self.begins(KV_WRITE)
        yield from self.writer.write(layer)

    def begins(self, kind: int) -> None:
        if kind == self.longest:
            began, self.cue = self.cue, self.env.event()
            began.succeed()

    def other(self, i: int) -> Steps:
        """One of the other tasks: a burst now and then, never sooner than what the tracker guarantees it."""
        env, wire, task, schedule = self.env, self.wire, self.others[i], self.schedule
        name = f"task {i + 1}"
        yield env.timeout(self.whole_us(self.source.uniform(0, self.pause_ps)))
        while True:
            came = int(env.now)
            while wait := self.tracker.request(wire.now_us, task, self.burst):
                yield env.timeout(wait * PS_PER_US)
            while schedule and (wait := schedule.may(wire.now_us, self.turns[i], self.counted)):
                yield env.timeout(wait * PS_PER_US)
            yield wire.transfer(name, IO, self.burst, asked_ps=came)
            if i < self.greedy:
                yield env.timeout(self.whole_us(0))
                continue
            self.found.waits_us.append((int(env.now) - came) / PS_PER_US)
            pause = self.pause_ps * (1 if self.hostile else 1 + self.source.expovariate(3.0))
            yield env.timeout(self.whole_us(max(0, came + pause - int(env.now))))
            if self.hostile:
                yield self.cue
                yield env.timeout(self.whole_us(1))

    def whole_us(self, ps: float) -> int:
        """From now on, to a whole microsecond, as programs of boards see the clock."""
        return -(-(int(self.env.now) + round(ps)) // PS_PER_US) * PS_PER_US - int(self.env.now)


def _slots_ps(figures: Figures, layer: Work, batched: bool) -> dict[int, int]:
    """The longest that each kind takes in a layer, whatever went over the bus before."""
    each = -(-layer.kv_write // layer.pieces)
    write = figures.transfer_ps(each, KV_WRITE, each) + (layer.pieces - 1) * figures.transfer_ps(
        each, KV_WRITE
    )
    return {
        KV_READ: figures.transfer_ps(layer.kv_read, KV_READ, each),
        KV_WRITE: write + (1 if batched else layer.pieces) * round(layer.start_us * PS_PER_US),
        WEIGHTS: figures.transfer_ps(layer.weights, WEIGHTS, each, layer.vectors),
    }


def planned_us(figures: Figures, work: Work, batched: bool = True) -> tuple[list[int], list[int]]:
    """(the slots of a layer by kind, a burst of each other task), as a schedule has them: whole microseconds.
    A slot that takes as long as is planned counts as longer, so one more is planned."""
    layer = _layer(work)
    slots = [ceil(took / PS_PER_US) + 1 for took in _slots_ps(figures, layer, batched).values()]
    burst_ps = figures.transfer_ps(burst(work), IO, layer.kv_write)
    return slots, [ceil(burst_ps / PS_PER_US)] * OTHERS


def burst(work: Work) -> int:
    """Bytes of another task's: each has as many a layer."""
    return max(1, work.io // (OTHERS * work.layers))


def _unit(burst: int, us: int) -> int:
    """Bytes that the schedule counts as one, of bursts so large that it could not multiply them with their
    time: it does so in small ints of a board."""
    return 1 + (burst * us >> 28)


def _schedule(figures: Figures, work: Work, batched: bool) -> Any:
    """The device's, of what a layer's slots take on that bus."""
    from mpy_kv.bus.schedule import Schedule

    layer = _layer(work)
    slots, bursts = planned_us(figures, work, batched)
    unit = _unit(burst(work), max(bursts))
    nbytes = (layer.kv_read, layer.kv_write, layer.weights + layer.vectors)
    planned = [(-(-n // unit), us) for n, us in zip(nbytes, slots)]
    return Schedule([*planned, (OTHERS * -(-burst(work) // unit), sum(bursts))], tasks=OTHERS)
