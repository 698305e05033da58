"""A predictor and an admission queue under seeded operations; the same under CPython and MicroPython.

usage: admission.py trace SEED OPERATIONS    prints what `trace` returns, as JSON
       admission.py memory                   prints bytes allocated by operation, as JSON (MicroPython)
"""

import json
import sys

from mpy_kv.admission.admission import RUNNING, WAITING, Admission
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.errors import NeverFits, QueueFull


class Chance:
    """A generator that gives the same numbers everywhere."""

    def __init__(self, seed):
        self.x = seed

    def below(self, n):
        self.x = (self.x * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.x >> 8) % n


def predictions(seed, operations):
    """[hash of all predictions, broken invariants, answers held] of a predictor with more tasks than rows."""
    chance = Chance(seed)
    predictor = LengthPredictor(tasks=5, per_mille=875, least=4, memory=200)
    said = bad = 0
    for n in range(operations):
        task = chance.below(9) * 1000003
        predictor.observe(task, chance.below(1 << chance.below(19)))
        task = chance.below(9) * 1000003
        limit = 1 + chance.below(5000)
        said = (said * 31 + predictor.predict(task, limit)) & 0x3FFFFFFF
        said = (said * 31 + predictor.predict(task, limit, chance.below(limit))) & 0x3FFFFFFF
        if n % 64 == 0:
            bad += predictor.check()
    return [said, bad, predictor.seen(None)]


def admissions(seed, operations):
    """[hash of all answers, broken invariants, stats] of a queue of three priorities."""
    chance = Chance(seed)
    queue = Admission(
        *(60, 4),
        tickets=12,
        levels=3,
        limit_blocks=40,
        reserve=LengthPredictor(tasks=4, per_mille=500, least=2, memory=64),
    )
    live = []
    said = bad = 0

    def say(value):
        nonlocal said
        said = (said * 31 + value) & 0x3FFFFFFF

    for _ in range(operations):
        what = chance.below(8)
        ticket = live[chance.below(len(live))] if live else None
        if what < 3 or ticket is None:
            try:
                live.append(
                    queue.submit(
                        chance.below(6), 1 + chance.below(70), 1 + chance.below(100), chance.below(3)
                    )
                )
                # Tags count up from queue to queue: leave them out.
                say(queue.slot(live[-1]))
            except NeverFits as error:
                say(error.needed)
            except QueueFull:
                say(7)
        elif what < 5:
            say(queue.step(None if what == 3 else chance.below(60)))
            for i in range(queue.n_admitted):
                say(queue.slot(queue.admitted[i]))
            for i in range(queue.n_preempted):
                say(1000 + queue.slot(queue.preempted[i]))
        elif what == 5 and queue.state(ticket) == RUNNING:
            blocks = queue.wanted(ticket, 0)
            say(blocks)
            if blocks:
                say(queue.growth(ticket, blocks, 60 if chance.below(2) else None))
                say(queue.n_preempted)
        elif what == 6 and queue.state(ticket) == RUNNING:
            queue.finish(ticket, 0)
            live.remove(ticket)
        elif what == 7 and queue.state(ticket) == WAITING:
            queue.cancel(ticket)
            live.remove(ticket)
        bad += queue.check()
    return [said, bad, sorted(queue.stats().items())]


def trace(seed, operations):
    return [predictions(seed, operations), admissions(seed, operations)]


def memory():
    """{operation: bytes of mem_total over 50 rounds}, after a round that warms up."""
    import gc

    import micropython

    predictor = LengthPredictor(tasks=4, least=2)
    queue = Admission(40, 4, tickets=8, levels=2, reserve=predictor)
    tickets = [0] * 4

    def observe():
        predictor.observe(3, 100)

    def predict():
        predictor.predict(3, 500)
        predictor.predict(9, 500, 17)

    def submit():
        tickets[0] = queue.submit(1, 60, 60)
        tickets[1] = queue.submit(1, 60, 60)
        queue.step(38)
        tickets[2] = queue.submit(1, 50, 60, 1)
        tickets[3] = queue.submit(1, 20, 60, 1)

    def step():
        queue.step(30)
        queue.step()

    def growth():
        for i in range(4):
            ticket = tickets[i]
            if queue.state(ticket) == RUNNING:
                blocks = queue.wanted(ticket, 12)
                if blocks:
                    queue.growth(ticket, blocks)

    def end():
        for i in range(4):
            ticket = tickets[i]
            if queue.state(ticket) == RUNNING:
                queue.finish(ticket, 10)
            else:
                queue.cancel(ticket)

    found = {}
    operations = [observe, predict, submit, step, growth, end]
    for operation in operations:
        operation()
        found[operation.__name__] = 0
    gc.collect()
    gc.disable()
    for _ in range(50):
        for operation in operations:
            before = micropython.mem_total()
            operation()
            after = micropython.mem_total()
            found[operation.__name__] += after - before
    before = micropython.mem_total()
    operations = operations[:]
    found["control"] = micropython.mem_total() - before
    gc.enable()
    return found, queue.stats()


if __name__ == "__main__":
    if sys.argv[1] == "trace":
        print(json.dumps(trace(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(memory()))
