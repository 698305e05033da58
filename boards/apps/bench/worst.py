"""The dearest call of each operation among many, in instructions, and which call it was.

usage: worst.py CALLS    runs on the emulated board alone; prints JSON
Values, and what is done in which order, are drawn from a fixed seed. Counts are right to within four and
include the call itself from native code. The cache has one layer of stories260K's shape (2 x 32 values, 8
query heads) and a window of 8, so that it ends; the pool has 64 blocks. Prints "+N" for N rounds.
"""

import gc
import json
import sys
from array import array

import exact
import micropython
from mpy_kv import Geometry, KVCache
from mpy_kv.arena import Arena
from mpy_kv.pools.fixed import FixedPool

OPERATIONS = (
    "append_int16",
    "append_float32",
    "append_again",
    "attend",
    "commit",
    "rollback",
    "pool_alloc",
    "pool_free",
)
CHUNK = 500  # rounds between looks at the sums: these must stay small ints
BLOCKS = 64
SHIFT = 9  # of the int16 cache: values up to 64
ARRAYS = (("h", 32), ("h", 32), ("h", 64), ("h", 64), ("f", 32), ("f", 32))  # k, v, q, out; k and v of floats


@micropython.viper
def fill16(x: ptr16, n: int, state: int) -> int:
    """n random int16 of all magnitudes; returns the next state."""
    while n:
        state = state ^ (state << 13)
        state = state ^ (state >> 17 & 0x7FFF)
        state = state ^ (state << 5)
        x[0] = state << 16 >> (16 + (state >> 16 & 15))
        x = ptr16(int(x) + 2)
        n -= 1
    return state & 0x3FFFFFFF | 1


@micropython.viper
def fill32(x: ptr32, n: int, state: int) -> int:
    """n random float32 of both signs and 32 exponents below 2^5, with a zero now and then."""
    while n:
        state = state ^ (state << 13)
        state = state ^ (state >> 17 & 0x7FFF)
        state = state ^ (state << 5)
        x[0] = 0
        if state >> 26 & 31:
            x[0] = (state >> 31 << 31) + ((state >> 26 & 31) + 100 << 23) + (state & 0x7FFFFF)
        x = ptr32(int(x) + 4)
        n -= 1
    return state & 0x3FFFFFFF | 1


class Record:
    """Of one operation. note() allocates nothing; sums are moved on by fold(), which does."""

    def __init__(self):
        self.calls = self.low = self.high = self.at = self.some = self.total = 0

    @micropython.native
    def note(self, n):
        n -= self.overhead
        if self.calls == 0 or n < self.low:
            self.low = n
        if n > self.high:
            self.high = n
            self.at = self.calls
        self.some += n
        self.calls += 1

    overhead = exact.overhead

    def fold(self):
        self.total += self.some
        self.some = 0

    def figures(self):
        self.fold()
        return {
            "calls": self.calls,
            "min": self.low,
            "mean": self.total / self.calls,
            "max": self.high,
            "max_at_call": self.at,
        }


class Worst:
    """One round calls each operation, in an order and with values that differ from round to round."""

    def __init__(self):
        self.records = [Record() for _ in OPERATIONS]
        self.of_cache, self.of_pool = self.records[:6], self.records[6:]
        g = Geometry(1, 8, 4, 8, window=8)
        self.ints = KVCache(g, kv_shift=SHIFT)
        self.floats = KVCache(g)
        self.arrays = tuple([array(kind, [0] * n) for kind, n in ARRAYS])
        self.pool = FixedPool(Arena(BLOCKS * 16), BLOCKS, 16)
        self.handles = array("i", [0] * BLOCKS)
        self.held = 0
        self.state = 0x2545F491
        for _ in range(16):  # what happens only once happens here
            self.round()
        for record in self.records:
            record.__init__()

    @micropython.native
    def round(self):
        append_int16, append_float32, append_again, attend, commit, rollback = self.of_cache
        ints, floats = self.ints, self.floats
        k, v, q, out, fk, fv = self.arrays
        state = fill16(k, 32, self.state)
        state = fill16(v, 32, state)
        state = fill16(q, 64, state)
        state = fill32(fk, 32, state)
        state = fill32(fv, 32, state)
        self.state = state

        start = exact.begin()
        ints.append(0, k, v)
        append_int16.note(exact.end(start))
        if state & 2:
            start = exact.begin()
            ints.append(0, v, k)
            append_again.note(exact.end(start))
        start = exact.begin()
        ints.attend(0, q, out)
        attend.note(exact.end(start))
        start = exact.begin()
        ints.commit()
        commit.note(exact.end(start))
        if state & 4 and ints.length > 3:
            n = state >> 4 & 3
            start = exact.begin()
            ints.rollback(n)
            rollback.note(exact.end(start))

        start = exact.begin()
        floats.append(0, fk, fv)
        append_float32.note(exact.end(start))
        floats.commit()

        if state & 8:
            self.take()
            self.give(state >> 6 & 0xFFFF)
        else:
            self.give(state >> 6 & 0xFFFF)
            self.take()
        if state & 0x300 == 0x300 and self.held > 1:  # now and then one more, or one less, is held
            self.give(state >> 6 & 0xFFFF)
        elif state & 0x300 == 0x200:
            self.take()

    @micropython.native
    def take(self):
        pool = self.pool
        if self.held < BLOCKS:
            start = exact.begin()
            handle = pool.alloc(16)
            self.of_pool[0].note(exact.end(start))
            self.handles[self.held] = handle
            self.held += 1

    @micropython.native
    def give(self, random):
        pool = self.pool
        if self.held:
            i = random % self.held
            handle = self.handles[i]
            start = exact.begin()
            pool.free(handle)
            self.of_pool[1].note(exact.end(start))
            self.held -= 1
            self.handles[i] = self.handles[self.held]

    def run(self, rounds):
        while rounds:
            n = min(rounds, CHUNK)
            micropython.heap_lock()
            for _ in range(n):
                self.round()
            micropython.heap_unlock()
            for record in self.records:
                record.fold()
            gc.collect()
            rounds -= n
            print("+%d" % n)


def main(calls):
    worst = Worst()
    worst.run(calls)
    if worst.ints.check() or worst.floats.check() or worst.pool.check():
        raise RuntimeError("an invariant is broken")
    figures = {}
    for name, record in zip(OPERATIONS, worst.records):
        figures[name] = record.figures()
    print(json.dumps({"rounds": calls, "kernels": worst.ints.kernels.name, "operations": figures}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
