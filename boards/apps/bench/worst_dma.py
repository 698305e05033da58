"""The bus's DMA queue, for worst.py: runs of all lengths, many of which go on where the last one ends, rows
with gaps, the planes of a layer's tokens, and the start of a chain of a backend that copies nothing.

A push is counted as in a loop that has looked the method up once. What a batch takes is counted for 30 rows,
and for the 10 planes of a layer of the stories' model: planes_10 counts those alone, planes_20 those between
which the ring ends.
"""

from array import array

import micropython
from bench.tally import Record, begin, end, following
from mpy_kv import Geometry, KVCache
from mpy_kv.bus.queue import Queue
from mpy_kv.bus.rows import Rows

ROWS = 30
TOKENS = 16
DESCRIPTORS = 40
BYTES = 4096


class Nothing:
    """A backend whose chains are done at once."""

    ctrl = None

    @micropython.native
    def begin(self, queue, first, descriptors):
        pass

    @micropython.native
    def done(self):
        return True


class Copies:
    operations = ("dma_push", "dma_push_join", "dma_push_full", "dma_rows_30")
    operations += ("dma_planes_10", "dma_planes_20", "dma_start", "dma_done")

    def __init__(self):
        self.records = [Record() for _ in self.operations]
        self.cache = KVCache(Geometry(1, 8, 4, 8, window=40, sinks=4))
        self.packed = bytearray(BYTES)
        self.queue = Queue(DESCRIPTORS, (self.cache.buffer, self.packed, bytearray(BYTES)))
        self.rows = Rows(self.queue, self.cache, 0, self.queue.at(1), TOKENS)
        self.at = self.queue.at(1)
        self.backend = Nothing()
        self.queue.shape(60, 96, 128)
        self.state = 1
        self.last = array("i", [0, 0, 0])  # run: read, write, bytes

    def first(self):
        for _ in range(16):
            self.round()

    @micropython.native
    def draw(self, below):
        self.state = following(self.state)
        return (self.state >> 8) % below

    @micropython.native
    def round(self):
        self.push()
        self.push()
        if not self.draw(16):
            self.batch()
        if not self.draw(24):
            self.begin()

    @micropython.native
    def push(self):
        go, stop = begin, end
        queue = self.queue
        last = self.last
        n = 1 + self.draw(96)
        if self.draw(2):
            n = n & 0x7C or 4
        read = self.at + self.draw(BYTES - n)
        write = self.at + BYTES + self.draw(BYTES - n)
        how = self.draw(3)
        if how == 1 and last[2] and last[0] + last[2] + n < self.at + BYTES:
            if last[1] + last[2] + n < self.at + 2 * BYTES:
                read = last[0] + last[2]
                write = last[1] + last[2]
        elif how == 2 and last[0] - n >= self.at and last[1] - n >= self.at + BYTES:
            read = last[0] - n
            write = last[1] - n
        before = queue.waiting()
        push = queue.push
        start = go()
        taken = push(read, write, n)
        count = stop(start)
        if not taken:
            self.records[2].note(count)
            self.begin()
        elif queue.waiting() == before:
            self.records[1].note(count)
        else:
            self.records[0].note(count)
        last[0] = read
        last[1] = write
        last[2] = n

    @micropython.native
    def batch(self):
        go, stop = begin, end
        queue = self.queue
        if queue.waiting() > DESCRIPTORS - ROWS:
            self.begin()
        read = self.at + self.draw(BYTES - ROWS * 96)
        write = self.at + BYTES + self.draw(BYTES - ROWS * 128)
        start = go()
        queue.push_rows(read, write, ROWS)
        count = stop(start)
        self.records[3].note(count)
        self.begin()
        rows = self.rows
        first = self.draw(200)
        before = queue.waiting()
        start = go()
        rows.push(0, first, TOKENS)
        count = stop(start)
        self.records[4 if queue.waiting() - before == 10 else 5].note(count)
        self.last[2] = 0

    @micropython.native
    def begin(self):
        go, stop = begin, end
        queue = self.queue
        backend = self.backend
        start = go()
        queue.start(backend)
        count = stop(start)
        self.records[6].note(count)
        start = go()
        queue.done()
        count = stop(start)
        self.records[7].note(count)
        self.last[2] = 0

    def check(self):
        return self.queue.check()


def parts():
    return (Copies(),)
