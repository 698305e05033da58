"""Asyncio tasks that wait for the bus, on the unix port or CPython.

usage: bus_awaiting.py CASE    prints what it saw as JSON
Time goes by only where it is asked for, so that nothing depends on how fast the machine is.
"""

import asyncio
import json
import sys

from mpy_kv.bus.awaiting import Bus
from mpy_kv.bus.tracker import IO, WEIGHTS, Tracker
from mpy_kv.errors import BadArgument, QueueFull

try:
    from asyncio import CancelledError, TimeoutError
except ImportError:
    CancelledError, TimeoutError = asyncio.CancelledError, asyncio.TimeoutError

log = []
clock = 0
asked = 0


def later(us):
    global clock, asked
    asked += 1
    clock = (clock + us) & 0x3FFFFFFF
    return clock


def a_little_each():
    return later(100)


def a_millisecond_each():
    return later(1000)


def made(waiters=8):
    """A byte a microsecond for two tasks, half of it each."""
    tracker = Tracker(1000000, 1000000)
    tasks = tracker.task(WEIGHTS, 500000, 2000), tracker.task(IO, 500000, 2000)
    return tracker, tasks, Bus(tracker, waiters, a_little_each)


async def job(bus, name, task, nbytes, count=1):
    try:
        for _ in range(count):
            await bus.use(task, nbytes)
            log.append(name)
    except CancelledError:
        log.append(name + " cancelled")
        raise


async def joined(tasks):
    for task in tasks:
        try:
            await task
        except CancelledError:
            pass


async def in_order():
    """A small request does not pass a large one of its task that came first; another task's does."""
    _, (weights, io), bus = made()
    await bus.use(weights, 2000)
    tasks = [asyncio.create_task(job(bus, name, weights, n)) for name, n in (("large", 2000), ("small", 1))]
    tasks.append(asyncio.create_task(job(bus, "other", io, 2000)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting = bus.waiting(weights), bus.waiting(io)
    await joined(tasks)
    return [waiting, bus.waiting(weights)]


async def cancelled(which):
    """Of three that wait for one task, `which` is cancelled: the others come in, in their order."""
    _, (weights, _), bus = made(3)
    await bus.use(weights, 2000)
    tasks = [asyncio.create_task(job(bus, "%d" % i, weights, 500)) for i in range(3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    before = bus.waiting(weights)
    for i in which:
        tasks[i].cancel()
    await joined(tasks)
    after = bus.waiting(weights)
    # All places are there again.
    await joined([asyncio.create_task(job(bus, "again", weights, 100)) for i in range(3)])
    return [before, after]


async def given_up():
    """wait_for() gives up, at the first place and behind it; its place is free, and nothing is taken."""
    tracker, (weights, _), bus = made(2)
    await bus.use(weights, 2000)
    first = asyncio.create_task(job(bus, "first", weights, 2000))
    await asyncio.sleep(0)
    found = []
    for _ in range(3):
        try:
            await asyncio.wait_for(job(bus, "late", weights, 2000), 0.001)
        except TimeoutError:
            found.append(bus.waiting(weights))
    first.cancel()
    await joined([first])
    return [found, bus.waiting(weights), tracker.total(WEIGHTS)]


async def full():
    """No more wait than there are places for; what is refused takes none."""
    _, (weights, _), bus = made(1)
    found = []
    for nbytes in (0, 2001):
        try:
            bus.use(weights, nbytes)
        except BadArgument as error:
            found.append(str(error).split(",")[0])
    await bus.use(weights, 2000)
    task = asyncio.create_task(job(bus, "one", weights, 1000))
    await asyncio.sleep(0)
    try:
        await bus.use(weights, 1)
    except QueueFull as error:
        found.append(str(error).split(",")[0])
    await joined([task])
    await bus.use(weights, 1)
    return found


def never():
    raise RuntimeError("asked for the time")


async def off():
    """Without a tracker all is admitted and no time is asked for."""
    bus = Bus(None, 1, never)
    for _ in range(5):
        await bus.use(3, 1 << 29)
    return bus.tracker is None


async def rounds():
    """Bytes allocated by as many waits as sleeps: each takes one round of the scheduler."""
    global asked
    import micropython

    tracker = Tracker(1000000, 1000000)
    task = tracker.task(IO, 1000000, 2000)
    bus = Bus(tracker, 2, a_millisecond_each)
    await bus.use(task, 2000)
    found = []
    a = b = i = 0
    for _ in range(3):
        a = micropython.mem_total()
        i = 0
        while i < 40:
            await asyncio.sleep_ms(1)
            i += 1
        b = micropython.mem_total()
        found.append(b - a)
        asked = 0
        a = micropython.mem_total()
        i = 0
        while i < 40:
            await bus.use(task, 2000)
            i += 1
        b = micropython.mem_total()
        found.append(b - a)
        # Each is refused once, sleeps, and is admitted.
        assert asked == 80
    return found


CASES = {
    "in_order": in_order,
    "first": lambda: cancelled((0,)),
    "behind": lambda: cancelled((1,)),
    "last": lambda: cancelled((2,)),
    "first_two": lambda: cancelled((0, 1)),
    "all": lambda: cancelled((0, 1, 2)),
    "given_up": given_up,
    "full": full,
    "off": off,
    "rounds": rounds,
}
if __name__ == "__main__":
    print(json.dumps([asyncio.run(CASES[sys.argv[1]]()), log]))
