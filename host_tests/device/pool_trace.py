"""A seeded trace of pool operations, the same on every interpreter.

usage: pool_trace.py POOL|blocks SEED COUNT ...    prints a list of {"sum", "stats", "arrays"} as JSON
One for each COUNT of operations, rising. sum: checksum over what every operation gave, refusals included, and
where the blocks lie. arrays: a checksum of each array of the pool. CPython imports this file and calls `run`.
"""

import binascii
import json
import sys
from array import array

from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, KVError, Locked, PoolFull
from mpy_kv.port import addressof
from mpy_kv.paged.blocks import Blocks
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

# fields: blocks
_FREE = const(2)
_REUSABLE = const(3)
_USED = const(4)
_ENTRIES = const(7)
# end of fields

BLOCKS = 48
MOST_BYTES = 256


def arena(size):
    """An arena whose first byte lies at a multiple of 2^16 everywhere: alignments are of real memory."""
    room = bytearray(size + 0x10000)
    at = -addressof(room) & 0xFFFF
    return Arena(size, memoryview(room)[at : at + size])


def fixed():
    return FixedPool(arena(BLOCKS * MOST_BYTES), BLOCKS, MOST_BYTES, tag=5, align=8)


def buddy():
    return BuddyPool(arena(BLOCKS * 64), BLOCKS * 64, 16, tag=3)


def region():
    return RegionPool(arena(BLOCKS * 64), BLOCKS * 64, BLOCKS, tag=7)


def slab():
    return SlabPool(arena(BLOCKS * 64), 512, BLOCKS // 8, (16, 48, 256), tag=2)


def slab_region():
    return SlabRegionPool(arena(BLOCKS * 64), 256, BLOCKS // 4, (16, 48, 256), 5, tag=6)


def blocks():
    """Lists and index of 40 blocks of 4 tokens."""
    return Blocks(FixedPool(arena(40 * 16), 40, 16, tag=1), 40, 16, 4, False, True)


MAKERS = {"fixed": fixed, "buddy": buddy, "region": region, "slab": slab, "slab+region": slab_region}


class Dice:
    """Marsaglia's xorshift of 32 bits."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        s = self.state
        s ^= (s << 13) & 0xFFFFFFFF
        s ^= s >> 17
        s ^= (s << 5) & 0xFFFFFFFF
        self.state = s
        return (s >> 4) % n


class Trace:
    """Random operations on `pool`. It knows no more than the handles that it was given."""

    def __init__(self, pool, seed):
        self.pool = pool
        self.dice = Dice(seed)
        self.handles = []
        self.sum = 0
        self.last = 0  # a handle that was given back
        self.batch = array("i", bytes(16))
        self.check = pool.check
        self.stats = pool.stats
        self.doing = (
            (self.alloc,) * 5
            + (self.free,) * 5
            + (self.grow, self.lock, self.unlock, self.alloc_many, self.free_many, self.stale)
        )
        self.regions = []
        if hasattr(pool, "compact"):
            self.doing += (self.compact,)
        if hasattr(pool, "open_region"):
            self.doing += (self.alloc_in,) * 3 + (self.open_region, self.close_region)

    def run(self, count):
        dice, doing = self.dice, self.doing
        for _ in range(count):
            which = dice.below(len(doing))
            try:
                got = doing[which]()
            except PoolFull as full:
                got = 1000 + full.free + full.largest
            except BadArgument:
                got = 4
            except Locked:
                got = 3
            except BadHandle:
                got = 2
            self.sum = (self.sum * 31 + which + got) & 0x3FFFFFFF

    def size(self):
        dice = self.dice
        return 1 + dice.below(1 + dice.below(MOST_BYTES))

    def pick(self):
        """Where a handle stands; there is one."""
        if not self.handles:
            self.alloc()
        return self.dice.below(len(self.handles))

    def drop(self, at):
        """The last takes its place: cheap, and the same everywhere."""
        handles = self.handles
        self.last = handles[at]
        handles[at] = handles[-1]
        handles.pop()

    def alloc(self):
        handle = self.pool.alloc(self.size(), 4 << self.dice.below(2))
        self.handles.append(handle)
        return handle + self.pool.offset(handle)

    def free(self):
        at = self.pick()
        self.pool.free(self.handles[at])
        self.drop(at)
        return self.pool.free_bytes()

    def grow(self):
        at = self.pick()
        handle = self.handles[at] = self.pool.grow(self.handles[at], self.size())
        return handle + self.pool.size(handle)

    def lock(self):
        self.pool.lock(self.handles[self.pick()])
        return 0

    def unlock(self):
        for _ in range(3):
            self.pool.unlock(self.handles[self.pick()])
        return 0

    def alloc_many(self):
        count = 1 + self.dice.below(4)
        self.pool.alloc_many(count, self.size(), self.batch)
        self.handles.extend(self.batch[:count])
        return self.batch[count - 1]

    def free_many(self):
        """Up to four, now and then one of them twice."""
        places = []
        for _ in range(1 + self.dice.below(4)):
            at = self.pick()
            if at not in places or self.dice.below(8) == 0:
                places.append(at)
        for k in range(len(places)):
            self.batch[k] = self.handles[places[k]]
        self.pool.free_many(self.batch, len(places))
        for at in sorted(places, reverse=True):
            self.drop(at)
        return self.pool.largest_free_bytes()

    def stale(self):
        self.pool.free(self.last)
        return 0

    def compact(self):
        return self.pool.compact(self.size())

    def open_region(self):
        self.regions.append(self.pool.open_region(1 + self.dice.below(6), self.dice.below(3)))
        return self.regions[-1]

    def close_region(self):
        """Its objects go with it."""
        if not self.regions:
            return 0
        self.pool.close_region(self.regions[0])
        self.regions.pop(0)
        left = []
        for handle in self.handles:
            try:
                self.pool.offset(handle)
                left.append(handle)
            except BadHandle:
                self.last = handle
        self.handles = left
        return len(left)

    def alloc_in(self):
        region = self.regions[self.dice.below(len(self.regions))] if self.regions else None
        self.handles.append(self.pool.alloc(self.size(), 4, region))
        return self.handles[-1]


class Chains:
    """Requests of the simplest kind on Blocks: chains that share the prefix that the index finds."""

    def __init__(self, blocks, seed):
        self.pool = self.blocks = blocks
        self.dice = Dice(seed)
        self.open = []
        self.sum = 0
        self.taken = 0
        self.tokens = array("i", [0] * 32)

    def run(self, count):
        """Opens and closes: so many blocks taken, found and dropped."""
        while count > 0:
            if self.open and self.dice.below(12) < len(self.open):
                chain = self.open.pop(self.dice.below(len(self.open)))
                for i in reversed(chain):
                    self.note(self.blocks.drop(i))
            else:
                chain = self.chain()
                self.open.append(chain)
            count -= 1 + len(chain)

    def note(self, got):
        self.sum = (self.sum * 31 + got) & 0x3FFFFFFF

    def chain(self):
        """A prompt of one of four families, which differ early or late; what is not found is taken and
        entered, its last block not always."""
        dice, blocks, tokens = self.dice, self.blocks, self.tokens
        family = dice.below(4)
        for k in range(32):
            tokens[k] = k if k < 8 * family else 100 * family + k
        if dice.below(3) == 0:
            tokens[dice.below(32)] = dice.below(65536)
        under, serial, h = -1 - family % 2, 1, 12345
        found = []
        for j in range(1 + dice.below(8)):
            h = blocks.hash_of(h, tokens, 4 * j)
            i = blocks.find(under, serial, h, tokens, 4 * j)
            if i >= 0:
                self.note(blocks.hold(i))
            else:
                i = blocks.take()
                if i < 0:
                    break
                self.taken += 1
                for k in range(4):
                    blocks.ids[4 * i + k] = tokens[4 * j + k]
                if dice.below(8) == 0:
                    found.append(i)
                    break
                self.note(blocks.enter(under, serial, h, i))
            self.note(i)
            found.append(i)
            under, serial = i, blocks.serial[i]
        return found

    def check(self):
        meta = self.blocks.meta
        return meta[_FREE] + meta[_REUSABLE] + meta[_USED] != self.blocks.n

    def stats(self):
        meta = self.blocks.meta
        return {"alloc_count": self.taken, "used": meta[_USED], "entries": meta[_ENTRIES]}


def arrays_of(pool, prefix=""):
    """Checksum of each array of a pool and of pools inside it, by name."""
    found = {}
    for name in sorted(pool.__dict__):
        value = pool.__dict__[name]
        if isinstance(value, (array, bytearray, list)):  # lists are CPython's, see mpy_kv.port.ints
            found[prefix + name] = binascii.crc32(array("i", list(value)))
        elif hasattr(value, "metadata_bytes"):
            found.update(arrays_of(value, prefix + name + "."))
    return found


def run(name, seed, counts, made=lambda pool: pool):
    """What a trace has come to after so many operations; `made` gets the pool first."""
    if name == "blocks":
        trace = Chains(made(blocks()), seed)
    else:
        trace = Trace(made(MAKERS[name]()), seed)
    found = []
    done = 0
    for count in counts:
        trace.run(count - done)
        done = count
        if trace.check():
            raise KVError("check() finds broken invariants")
        stats = trace.stats()
        for key in stats:
            if isinstance(stats[key], float):
                stats[key] = int(stats[key] * 1e6)
        found.append({"sum": trace.sum, "stats": stats, "arrays": arrays_of(trace.pool)})
    return found


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), [int(word) for word in sys.argv[3:]])))
