"""Chains of the bus's queue on the emulated controller: what they cost, cut at every step, and in error."""

import bus_lists
import rp2
from emu import dma

from mpy_kv.bus import rp2_dma
from mpy_kv.bus.copying import Copying
from mpy_kv.bus.queue import Queue

dma.held = True


def let(queue):
    while not queue.done():
        dma.step(100)


def opened():
    dma.held = False
    one = rp2_dma.Chained()
    dma.held = True
    return one


def costs(one):
    """A chain of so many descriptors: starts of the core, transfers, cycles."""
    source, to = bytearray(1024), bytearray(1024)
    queue = Queue(16, (source, to), one.ctrl)
    for n in (1, 4, 16):
        for i in range(n):
            queue.push(64 * i, 1024 + 60 * i, 32)
        before = (dma.transfers, dma.begins, dma.cycles)
        queue.start(one)
        busy = not queue.done()
        let(queue)
        print(n, busy, [after - b for after, b in zip((dma.transfers, dma.begins, dma.cycles), before)])


def cut(one):
    """Stopped after each number of cycles: of what was to be copied a part is, nothing else, and no more
    later; the next chain is done as ever."""
    worst = 0
    cycles = 0
    ends = 0
    while not ends:
        copies = bus_lists.lists(5, 10)
        plain, queued = bus_lists.buffers(), bus_lists.buffers()
        untouched = [bytes(whole) for whole in queued]
        bus_lists.one_by_one(bus_lists.regions(plain), copies)
        queue = Queue(12, bus_lists.regions(queued), one.ctrl)
        for copy in copies:
            queue.push(*copy)
        queue.start(one)
        if cycles:
            dma.step(cycles)
        ends = queue.done()
        queue.give_up()
        after = [bytes(whole) for whole in queued]
        dma.step(1000)
        left = [bytes(whole) for whole in queued] == after
        inside = True
        written = set()
        for read, write, size in copies:
            written.update(range(write, write + size))
        at = 0
        for i in range(3):
            for k in range(len(after[i])):
                if after[i][k] != untouched[i][k] and at + k - 8 not in written:
                    inside = False
            at += bus_lists.SIZES[i]
        if not left or not inside or (ends and [bytes(whole) for whole in plain] != after):
            worst += 1
        # The same queue and channels go on.
        for i in range(3):
            queued[i][:] = untouched[i]
        for copy in copies:
            queue.push(*copy)
        queue.start(one)
        let(queue)
        worst += [bytes(whole) for whole in plain] != [bytes(whole) for whole in queued]
        cycles += 1
    print("cuts", cycles > 100, "wrong", worst)


def errors(one):
    """A bus error in the middle of a chain: it is told, and the next chain is whole."""
    source, to = bytearray(range(64)), bytearray(64)
    queue = Queue(8, (source, to), one.ctrl)
    for i in range(3):
        queue.push(20 * i, 64 + 20 * i + 1, 8)
    queue.words[queue.words[2] + 4] = 0x08000000  # where nothing is
    queue.start(one)
    try:
        let(queue)
    except OSError as error:
        print("error", error, queue.started, queue.passed, queue.check())
    print(to[1:9] == source[0:8], sum(to[21:]))
    queue.push(0, 64, 64)
    queue.start(one)
    let(queue)
    print(to == source, one.data.ctrl >> 29, one.control.ctrl >> 29)


def choices():
    """No channels left, or a controller that does nothing: the core copies."""
    held = [rp2.DMA() for _ in range(dma.CHANNELS - 1)]
    print(type(rp2_dma.best()) is Copying)
    for channel in held[:2]:
        channel.close()
    one = rp2_dma.best()  # held: no time passes
    print(type(one) is Copying)
    one.close()
    dma.held = False
    one = rp2_dma.best()
    print(type(one) is rp2_dma.Chained, sum(dma._claimed))
    one.close()
    one.close()
    print(sum(dma._claimed))


one = opened()
for part in (costs, cut, errors):
    print("--", part.__name__)
    part(one)
one.close()
print("-- choices")
choices()
