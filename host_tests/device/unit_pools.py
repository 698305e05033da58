"""Random operations on the buddy or the region pool, the same on every interpreter.

usage: unit_pools.py buddy|region OPERATIONS SEED    prints a line about every handle, place and refusal
After each operation the pool checks itself; a block is full of a byte of its own, which is looked at before
it is freed or grown, and in all blocks every 16 operations.
"""

import sys

from mpy_kv.arena import Arena
from mpy_kv.errors import Locked, PoolFull
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.port import addressof


class Run:
    def __init__(self, kind, seed):
        # Alignment counts from the same place everywhere.
        buffer = bytearray(8188 + 64)
        arena = Arena(8188, memoryview(buffer)[-addressof(buffer) % 64 :])
        arena.take(20)
        if kind == "buddy":
            self.pool = BuddyPool(arena, 8100, 32, tag=3)
        else:
            self.pool = RegionPool(arena, 8100, 40, tag=3)
        self.seed = seed
        self.live = []  # [handle, bytes asked for, byte]
        self.digest = self.faults = 0

    def random(self, below):
        self.seed = (self.seed * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.seed >> 12) % below

    def note(self, value):
        self.digest = (self.digest * 31 + value) % 1000003

    def intact(self, block):
        at = self.pool.offset(block[0])
        if bytes(self.pool.buffer[at : at + block[1]]) != bytes([block[2]]) * block[1]:
            self.faults += 1

    def fill(self, block, size):
        block[1] = size
        block[2] = self.random(256)
        at = self.pool.offset(block[0])
        self.pool.buffer[at : at + size] = bytes([block[2]]) * size
        self.note(block[0])
        self.note(at)

    def alloc(self):
        size = 1 + self.random(1 << 3 + self.random(8))
        try:
            handle = self.pool.alloc(size, 4 << self.random(3))
        except PoolFull as full:
            self.note(full.largest)
            return
        self.live.append([handle, 0, 0])
        self.fill(self.live[-1], size)

    def change(self, what):
        k = self.random(len(self.live))
        block = self.live[k]
        self.intact(block)
        try:
            if what < 4:
                self.pool.free(block[0])
                self.live.pop(k)
            elif what == 4:
                size = 1 + self.random(1200)
                block[0] = self.pool.grow(block[0], size)
                self.fill(block, max(size, block[1]))
            elif what == 5:
                self.pool.lock(block[0])
            else:
                self.pool.unlock(block[0])
        except (PoolFull, Locked) as error:
            self.note(isinstance(error, Locked))

    def operation(self, turn):
        what = self.random(12)
        if what < 7 and self.live:
            self.change(what)
        elif what == 7 and self.pool.name == "region":
            limit = self.random(3)
            self.note(self.pool.compact(limit * 400 if limit else None))
        else:
            self.alloc()
        self.faults += self.pool.check()
        if turn % 16 == 0:
            for block in self.live:
                self.intact(block)
                self.note(self.pool.offset(block[0]))


def run(kind, operations, seed):
    """What main prints."""
    job = Run(kind, seed)
    for turn in range(operations):
        job.operation(turn)
    stats = job.pool.stats()
    names = "alloc_count", "used_bytes", "high_water_bytes", "internal_waste_bytes"
    counts = [stats[name] for name in names]
    return "%s %d faults, digest %d, %s\n" % (kind, job.faults, job.digest, counts)


if __name__ == "__main__":
    print(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), end="")
