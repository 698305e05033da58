"""The two tasks of the bus: JSON of what each part has found. usage: bus_tasks.py PART"""

import asyncio
import gc
import json
import sys
from array import array
from asyncio import core

import bus_lists
import micropython

from mpy_kv import Geometry, KVCache
from mpy_kv.bus.copying import Copying
from mpy_kv.bus.queue import Queue
from mpy_kv.bus.rows import Rows
from mpy_kv.bus.tasks import Copies, KVWriter
from mpy_kv.errors import StepError


class Made:
    """Copies of a random list through a small queue, by a backend that copies in bursts of 4 bytes."""

    def __init__(self, seed, backend=None, spare=None):
        self.copies = bus_lists.lists(seed)
        self.plain, self.queued = bus_lists.buffers(), bus_lists.buffers()
        bus_lists.one_by_one(bus_lists.regions(self.plain), self.copies)
        self.queue = Queue(3, bus_lists.regions(self.queued))
        self.two = Copies(self.queue, backend or Copying(4), spare)
        self.fence = self.two.fence()
        self.pushed = 0
        self.ends = []

    async def write(self):
        try:
            while self.pushed < len(self.copies):
                while not self.queue.push(*self.copies[self.pushed]):
                    await self.two.freed
                self.pushed += 1
            self.fence.mark()
            await self.fence
            self.ends.append("written")
        except StepError as error:
            self.ends.append(str(error))
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise

    def same(self):
        return self.plain == self.queued and self.queue.check() == 0


async def ended(task):
    try:
        await task
        return "ended"
    except asyncio.CancelledError:
        return "cancelled"
    except Exception as error:
        return "%s: %s" % (type(error).__name__, error)


def whole():
    """A list through the tasks is what copies one by one make of it."""

    async def main(seed):
        made = Made(seed)
        served = asyncio.create_task(made.two.serve())
        await made.write()
        served.cancel()
        return [await ended(served), made.same(), made.ends, made.queue.passed == made.queue.started]

    return [asyncio.run(main(seed)) for seed in range(20)]


def alone():
    """Who comes before serve() waits for it; two of them would be one too many."""

    async def main():
        made = Made(1)
        writer = asyncio.create_task(made.write())
        await asyncio.sleep_ms(0)
        before = len(made.ends)
        served = asyncio.create_task(made.two.serve())
        await asyncio.sleep_ms(0)
        again = await ended(asyncio.create_task(made.two.serve()))
        await writer
        served.cancel()
        return [before, made.ends, again, await ended(served), made.same()]

    return asyncio.run(main())


def prefix(made):
    """How many of the pushes are done, all of each and in their order; -1 if memory is otherwise."""
    plain = bus_lists.buffers()
    views = bus_lists.regions(plain)
    for n in range(len(made.copies) + 1):
        if plain == made.queued:
            return n
        if n < len(made.copies):
            bus_lists.one_by_one(views, made.copies[n : n + 1])
    return -1


def cancelled():
    """serve() is cancelled after each number of rounds: no chain is half done, who waits is told, and another
    serve() does the rest."""

    async def main(rounds):
        made = Made(3)
        served = asyncio.create_task(made.two.serve())
        writer = asyncio.create_task(made.write())
        for _ in range(rounds):
            await asyncio.sleep_ms(0)
        over = bool(made.ends)
        served.cancel()
        how = await ended(served)
        if over:
            return None
        halves = prefix(made) < 0 or not made.queue.done()
        told = "not begun"
        if made.two.over is not None:
            await writer
            told = made.ends.pop()
        served = asyncio.create_task(made.two.serve())
        if made.two.over is None:
            await writer
        else:
            await asyncio.sleep_ms(0)
            await made.write()
        served.cancel()
        return [how, halves, told, made.same(), made.ends]

    found = []
    rounds = 0
    while True:
        one = asyncio.run(main(rounds))
        core.new_event_loop()
        if one is None:
            return [rounds, found]
        if one not in found:
            found.append(one)
        rounds += 1


def writers_cancelled():
    """A writer that is cancelled while it waits: another one and serve() go on."""

    async def main(rounds):
        made = Made(3)
        served = asyncio.create_task(made.two.serve())
        writer = asyncio.create_task(made.write())
        for _ in range(rounds):
            await asyncio.sleep_ms(0)
        writer.cancel()
        how = await ended(writer)
        await made.write()
        served.cancel()
        await ended(served)
        return [how, made.same(), made.ends[-1]]

    found = []
    for rounds in range(1, 60):
        one = asyncio.run(main(rounds))
        core.new_event_loop()
        if one not in found:
            found.append(one)
    return found


class Failing(Copying):
    """Meets an error in its n-th burst, once."""

    def __init__(self, at):
        Copying.__init__(self, 4)
        self.left = at

    def done(self):
        self.left -= 1
        if self.left == 0:
            raise OSError(5)
        return Copying.done(self)


def errors():
    """An error ends serve(), and whoever waits is told; with a spare backend the chain is done anew."""

    async def main(at, spare):
        made = Made(3, Failing(at), spare)
        served = asyncio.create_task(made.two.serve())
        writer = asyncio.create_task(made.write())
        if spare is None:
            how = await ended(served)
            await writer
        else:
            await writer
            served.cancel()
            how = await ended(served)
        return [how, made.ends, made.queue.check(), made.two.failed, made.same() if spare else None]

    found = []
    for at in range(1, 40):
        for spare in (None, Copying()):
            one = asyncio.run(main(at, spare))
            core.new_event_loop()
            if one not in found:
                found.append(one)
    return found


def told(cache, t, layers):
    for layer in range(layers):
        x = array("f", [((t * 5 + layer + i * 3) % 23 - 11) / 8 for i in range(32)])
        cache.append(layer, x, x)
    cache.commit()


def kv_writer():
    """Blocks of 16 tokens to two records in turn, while the cache goes on; a chain a layer."""
    cache = KVCache(Geometry(5, 8, 4, 8, window=48, sinks=4))
    record = bytearray(30000)
    queue = Queue(20, (cache.buffer, record))
    rows = Rows(queue, cache, 0, queue.at(1), 16)
    two = Copies(queue, Copying(64))
    seen = []

    def ready(first, n, i):
        check = bytearray(rows.bytes)
        other = Queue(20, (cache.buffer, check))
        whole = Rows(other, cache, 0, other.at(1), 16)
        for layer in range(5):
            whole.push(layer, first, n)
            other.start(Copying())
        seen.append([first, n, i, check == record[i * rows.bytes : (i + 1) * rows.bytes]])

    async def main():
        writer = KVWriter(two, rows, cache, (queue.at(1), queue.at(1) + rows.bytes), ready)
        tasks = [asyncio.create_task(two.serve()), asyncio.create_task(writer.run())]
        for t in range(100):
            told(cache, t, 5)
            writer.appended()
            for _ in range(30):
                await asyncio.sleep_ms(0)
        tasks[0].cancel()
        return [await ended(tasks[0]), await ended(tasks[1])]

    ends = asyncio.run(main())
    return [ends, seen, queue.started, queue.descriptors, queue.pushes()]


class Counted:
    """The scheduler's queue of streams, which is asked once a round."""

    def __init__(self, real):
        self.real = real
        self.map = real.map
        self.rounds = 0

    def wait_io_event(self, dt):
        self.rounds += 1
        self.real.wait_io_event(dt)

    def remove(self, task):
        self.real.remove(task)


def allocation():
    """Bytes beyond those of so many rounds of tasks that only sleep."""
    core._io_queue = counted = Counted(core._io_queue)
    queue = Queue(3, (bytearray(256), bytearray(256)))
    two = Copies(queue, Copying(16))
    fence = two.fence()

    async def sleeps(n):
        while n:
            await asyncio.sleep_ms(0)
            n -= 1

    async def writes(n):
        while n:
            at = 0
            while at < 240:
                while not queue.push(at, 256 + at, 8):
                    await two.freed
                at += 24
            fence.mark()
            await fence
            n -= 1

    async def measured(task, n):
        gc.collect()
        rounds, before = counted.rounds, micropython.mem_total()
        await task(n)
        return micropython.mem_total() - before, counted.rounds - rounds

    async def main():
        served = asyncio.create_task(two.serve())
        await asyncio.sleep_ms(0)
        await writes(2)
        await sleeps(2)
        few, many = await measured(sleeps, 10), await measured(sleeps, 110)
        of_round = (many[0] - few[0]) / (many[1] - few[1])
        few, many = await measured(writes, 2), await measured(writes, 22)
        served.cancel()
        return [of_round, many[0] - few[0] - of_round * (many[1] - few[1]), many[1] - few[1]]

    return asyncio.run(main())


print(json.dumps(globals()[sys.argv[1]]()))
