"""What the calls cost by which work is admitted to the bus, put off and queued for it.

usage: bus.py CALLS MODEL    prints JSON: {"calls": {name: cost}, "unit": "instructions" or "ns"}
Of each call, itself included, the mean of so many in native code, the least of some rounds; "call" is an
empty method's. "start" is of a chain that is seen to be done, "descriptor" what each of its descriptors adds
to that. "layer" is what a token of MODEL told in slots that are entered takes more than one told at once,
shared out among its layers. Prints "+1" for each of NAMES.
"""

import gc
import json
import sys

import micropython
from micropython import const

from mpy_kv.bus.queue import Queue
from mpy_kv.bus.schedule import IO, WEIGHTS, Schedule
from mpy_kv.bus.tracker import KV_READ, Tracker
from stories.layered import DONE, Layered
from stories.telling import open_model

try:
    import instructions
except ImportError:  # no emulator
    import time

    instructions = None

NAMES = ("call", "request", "record", "stats", "enter", "may")
NAMES += ("push", "push_joined", "start", "descriptor", "layer")
ROUNDS = 7
ROOM = const(32768)  # bytes of either side of the queue
LEAST = 1 if instructions else 4000  # calls where a clock of microseconds tells how long they take
THERE = 12  # tokens in a story's cache
FEW, MANY = 4, 20  # descriptors of a chain
PUSHES = 1000


class Nothing:
    """A method, and a backend of a queue that does nothing."""

    @micropython.native
    def call(self, now, task, nbytes):
        return 0

    @micropython.native
    def begin(self, queue, first, descriptors=0):
        return None

    @micropython.native
    def done(self):
        return True

    def stop(self):
        return None


class Bench:
    def __init__(self):
        self.nothing = Nothing()
        self.tracker = Tracker(1000000000)
        self.task = self.tracker.task(KV_READ, 900000000, 1 << 20)
        self.schedule = Schedule([(1000, 20), (1000, 20), (1000, 20), (512, 10)])
        self.other = self.schedule.task(256)
        self.queue = Queue(PUSHES, (bytearray(ROOM), bytearray(ROOM)))

    @micropython.native
    def empty(self, n):
        f = self.nothing.call
        now = 0
        while n:
            now += 1
            n -= 1
        return f

    @micropython.native
    def call(self, n):
        f = self.nothing.call
        now = 0
        while n:
            f(now, 0, 64)
            now += 1
            n -= 1

    @micropython.native
    def request(self, n):
        f = self.tracker.request
        task = self.task
        now = 0
        while n:
            f(now, task, 64)
            now += 1
            n -= 1

    @micropython.native
    def record(self, n):
        f = self.tracker.record
        task = self.task
        now = 0
        while n:
            f(now, task, 64)
            now += 1
            n -= 1

    @micropython.native
    def stats(self, n):
        f = self.tracker.stats
        now = 0
        while n:
            f(now)
            now += 1
            n -= 1

    @micropython.native
    def enter(self, n):
        f = self.schedule.enter
        now = 0
        while n:
            f(WEIGHTS, now)
            now += 1
            n -= 1

    @micropython.native
    def may(self, n):
        self.schedule.enter(IO, 0)
        f = self.schedule.may
        task = self.other
        now = 0
        while n:
            f(now, task, 256)
            now += 1
            n -= 1

    @micropython.native
    def push(self, n):
        """None joins: from piece to piece there is a gap."""
        f = self.queue.push
        at = 0
        to = ROOM
        while n:
            f(at, to, 16)
            at += 32
            to += 32
            n -= 1

    @micropython.native
    def push_joined(self, n):
        f = self.queue.push
        at = 0
        to = ROOM
        while n:
            f(at, to, 16)
            at += 16
            to += 16
            n -= 1

    @micropython.native
    def chains(self, n):
        """Each pushed, started and seen to be done."""
        q = self.queue
        nothing = self.nothing
        push = self.push
        descriptors = self.descriptors
        while n:
            push(descriptors)
            q.start(nothing)
            q.done()
            n -= 1

    def cost(self, f, n):
        if instructions is not None:
            return instructions.count(f, n)
        start = time.ticks_us()
        f(n)
        return time.ticks_diff(time.ticks_us(), start) * 1000

    def mean(self, f, n):
        """Of a call in a loop over f."""
        seen, less = [], []
        gc.collect()
        for _ in range(ROUNDS):
            self.queue.clear()
            seen.append(self.cost(f, n))
            less.append(self.cost(self.empty, n))
        return (min(seen) - min(less)) / n

    def chain(self, descriptors, n):
        """Of one with so many."""
        self.descriptors = descriptors
        return self.mean(self.chains, n)


class Story:
    """A token of a model, told at once and in slots; it stays the same."""

    def __init__(self, model):
        with open(model, "rb") as file:
            self.llama = open_model(file.read(), window=64, sinks=4)
        self.layered = Layered(self.llama)
        self.schedule = Schedule([(1000, 20), (1000, 20), (1000, 20), (512, 10)])
        for _ in range(THERE):
            self.at_once(self.llama.image.bos)

    @micropython.native
    def at_once(self, token):
        self.llama.step(token)

    @micropython.native
    def in_slots(self, token):
        """As boards/apps/stories/beside.py goes about it, but for the turns of others."""
        step = self.layered
        enter = self.schedule.enter
        step.begin(token)
        now = 0
        while step.slot != DONE:
            while enter(step.slot, now):
                now += 1
            if step.part() == WEIGHTS:
                enter(IO, now)
        enter(IO, now)
        step.commit()

    def cost(self, f, bench):
        """The logits must be those of the other way: RuntimeError."""
        seen = []
        for _ in range(ROUNDS):
            gc.collect()
            seen.append(bench.cost(f, self.llama.image.bos))
            self.llama.cache.rollback(1)
        return min(seen), bytes(self.llama.logits)

    def layer(self, bench):
        whole, logits = self.cost(self.at_once, bench)
        parts, same = self.cost(self.in_slots, bench)
        if logits != same:
            raise RuntimeError("a token in slots is another one")
        return (parts - whole) / self.llama.layers


def main(calls, model):
    bench = Bench()
    calls = max(int(calls), LEAST)
    found = {}
    for name in NAMES:
        if name == "layer":
            found[name] = Story(model).layer(bench)
        elif name == "start":
            few, many = bench.chain(FEW, calls // 8), bench.chain(MANY, calls // 8)
            found["descriptor"] = (many - few) / (MANY - FEW) - found["push"]
            found["start"] = few - FEW * (found["push"] + found["descriptor"])
        elif name in ("push", "push_joined"):
            # No more than there is room for.
            found[name] = bench.mean(getattr(bench, name), PUSHES)
        elif name != "descriptor":
            found[name] = bench.mean(getattr(bench, name), calls)
        print("+1")
    print(json.dumps({"calls": found, "unit": "ns" if instructions is None else "instructions"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
