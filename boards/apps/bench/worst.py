"""The dearest call of each operation among many, in instructions, and which call it was.

usage: worst.py CALLS    runs on the emulated board alone; prints JSON
Values, and what is done in which order, are drawn from fixed seeds. Counts are right to within four and
include the call itself from native code. Parts of CALLS rounds each: here a cache of one layer of
stories260K's shape (2 x 32 values, 8 query heads) with a window of 8, so that it ends, and in one round of
eight the sum over 64 tokens of one head, under queries of any size; then those of
worst_requests.py, worst_pools.py, worst_policies.py, worst_tokens.py, worst_bus.py and worst_dma.py. Prints
"+N" for N rounds.
"""

import json
import sys
from array import array

import micropython
from bench import tally
from bench.tally import Record, begin, end, fill16, fill32
from bench.worst_bus import parts as bus
from bench.worst_dma import parts as dma
from bench.worst_policies import parts as policies
from bench.worst_pools import parts as pools
from bench.worst_requests import Paged
from bench.worst_tokens import parts as token_policies

from mpy_kv import Geometry, KVCache
from mpy_kv.kernels.params import MASK

SHIFT = 9  # of the int16 cache: values up to 64
LONG = 64  # tokens
ARRAYS = (("h", 32), ("h", 32), ("h", 64), ("h", 64), ("f", 32), ("f", 32))  # k, v, q, out; k and v of floats


class Ring:
    """A KVCache of int16, and one of floats. One round calls each operation, in an order and with values that
    differ from round to round."""

    operations = ("append_int16", "append_float32", "append_again", "attend", "av_64", "commit", "rollback")

    def __init__(self):
        self.records = [Record() for _ in self.operations]
        g = Geometry(1, 8, 4, 8, window=8, sinks=0)
        self.ints = KVCache(g, kv_shift=SHIFT)
        self.floats = KVCache(g)
        self.long = KVCache(Geometry(1, 8, 4, 8, window=LONG, sinks=0), kv_shift=SHIFT)
        self.arrays = tuple([array(kind, [0] * n) for kind, n in ARRAYS])
        self.state = 0x2545F491

    def first(self):
        k, v, q, out, _, _ = self.arrays
        self.state = fill16(k, 32, self.state)
        for _ in range(LONG):
            self.long.append(0, k, v)
            self.long.attend(0, q, out)
            self.long.commit()
        self.of_av = self.long.kernel_arguments()
        for _ in range(16):
            self.round()

    @micropython.native
    def round(self):
        go, stop = begin, end
        append_int16, append_float32, append_again, attend, av_64, commit, rollback = self.records
        ints, floats = self.ints, self.floats
        k, v, q, out, fk, fv = self.arrays
        state = fill16(k, 32, self.state)
        state = fill16(v, 32, state)
        state = fill16(q, 64, state)
        state = fill32(fk, 32, state)
        state = fill32(fv, 32, state)
        self.state = state

        start = go()
        ints.append(0, k, v)
        n = stop(start)
        append_int16.note(n)
        if state & 2:
            start = go()
            ints.append(0, v, k)
            n = stop(start)
            append_again.note(n)
        start = go()
        ints.attend(0, q, out)
        n = stop(start)
        attend.note(n)
        start = go()
        ints.commit()
        n = stop(start)
        commit.note(n)
        if state & 4 and ints.length > 3:
            back = state >> 4 & 3
            start = go()
            ints.rollback(back)
            n = stop(start)
            rollback.note(n)

        if state & 0x380 == 0:
            # From weights that are all alike to one that takes all.
            down = state >> 10 & 15
            for i in range(64):
                q[i] = q[i] >> down
            long = self.long
            buf, a = self.of_av
            long.append(0, k, v)
            long.attend(0, q, out)
            start = go()
            long.kernels.av(buf, buf, MASK, a)
            n = stop(start)
            av_64.note(n)
            long.commit()

        start = go()
        floats.append(0, fk, fv)
        n = stop(start)
        append_float32.note(n)
        floats.commit()

    def check(self):
        return self.ints.check() + self.floats.check() + self.long.check()


def main(calls):
    ring = Ring()
    figures = tally.run(ring, calls)
    figures.update(tally.run(Paged(), calls))  # before the pools take their part of the heap
    for parts in (pools, policies, token_policies, bus, dma):
        for part in parts():
            figures.update(tally.run(part, calls))
    print(json.dumps({"rounds": calls, "kernels": ring.ints.kernels.name, "operations": figures}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
