"""Pools, for worst.py: blocks of random sizes and lifetimes, from empty to full and back again.

A round allocates and frees one block, in either order, and now and then one more of what the pool is on its
way to: full, until nothing more fits, or empty. Every pool has 4 KiB: 64 blocks of 64 bytes (of which all is
asked for, or a part), 8 slabs with classes of 64 and 256 bytes, buddies from 64 bytes up, 16 regions of at
most 512 bytes. Of slab+region up to four regions and the default one have blocks, and one is opened or closed
now and then.
"""

from array import array

import micropython
from bench.tally import Record, begin, end, following
from mpy_kv.arena import Arena
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool

TOTAL = 4096
BLOCK = 64
BLOCKS = TOTAL // BLOCK
SLAB = 512
REGIONS = 16
QUOTAS = 4  # regions of slab+region beside the default one
LIMIT = 4  # slabs that each may hold
BATCH = 16


class Churn:
    """A pool whose blocks have sizes from `least` to `largest`, at most `blocks` of them at a time; one in
    four is asked for at a multiple of up to `align`."""

    def __init__(self, name, pool, blocks, least, largest, align):
        self.operations = (name + "_alloc", name + "_free")
        self.pool = pool
        self.blocks = blocks
        self.least = least
        self.largest = largest
        self.align = align
        self.handles = array("i", [0] * blocks)
        self.held = 0
        self.filling = True
        self.state = 1
        self.records = self.alloc, self.free = Record(), Record()

    def first(self):
        for _ in range(64):
            self.round()

    @micropython.native
    def draw(self):
        """A number at random below 2^22."""
        self.state = following(self.state)
        return self.state >> 8

    @micropython.native
    def round(self):
        order = self.draw()
        if order & 1:
            self.take()
            self.give()
        else:
            self.give()
            self.take()
        if order & 2:
            if self.filling:
                self.take()
            else:
                self.give()

    @micropython.native
    def size(self, random):
        """Of all magnitudes."""
        return self.least + (random >> 8) % ((self.largest - self.least >> (random >> 4 & 3)) + 1)

    @micropython.native
    def take(self):
        random = self.draw()
        align = 4
        if not random & 3:
            align = self.align >> (random >> 2 & 3)
            if align < 4:
                align = 4
        size = self.size(random)
        room = self.room(random) - (align - 4)
        if room < size:
            size = room
        if self.held == self.blocks or size < 1:
            self.filling = False
            return
        handle = self.allocate(size, align)
        self.handles[self.held] = handle
        self.held += 1

    @micropython.native
    def room(self, _random):
        """The most that can be asked for."""
        return self.pool.largest_free_bytes()

    @micropython.native
    def allocate(self, size, align):
        go, stop = begin, end
        pool = self.pool
        if align == 4:
            start = go()
            handle = pool.alloc(size)
            n = stop(start)
        else:
            start = go()
            handle = pool.alloc(size, align)
            n = stop(start)
        self.alloc.note(n)
        return handle

    @micropython.native
    def give(self):
        if self.held == 0:
            self.filling = True
            return
        i = self.draw() % self.held
        handle = self.handles[i]
        self.forget(i)
        go, stop = begin, end
        pool = self.pool
        start = go()
        pool.free(handle)
        n = stop(start)
        self.free.note(n)

    @micropython.native
    def forget(self, i):
        """The last handle takes the place of handle i."""
        self.held -= 1
        self.handles[i] = self.handles[self.held]

    def check(self):
        return self.pool.check()


class Many(Churn):
    """BATCH blocks of one size at a time, which do not come back together; handles in a list."""

    def __init__(self, name, pool, blocks, least, largest):
        Churn.__init__(self, name, pool, blocks, least, largest, 4)
        self.operations = ("%s_alloc_many_%d" % (name, BATCH), "%s_free_many_%d" % (name, BATCH))
        self.batch = [0] * BATCH

    @micropython.native
    def take(self):
        if self.held + BATCH > self.blocks:
            self.filling = False
            return
        size = self.size(self.draw())
        go, stop = begin, end
        pool = self.pool
        batch = self.batch
        start = go()
        pool.alloc_many(BATCH, size, batch)
        n = stop(start)
        self.alloc.note(n)
        for i in range(BATCH):
            self.handles[self.held + i] = batch[i]
        self.held += BATCH

    @micropython.native
    def give(self):
        if self.held < BATCH:
            self.filling = True
            return
        batch = self.batch
        handles = self.handles
        held = self.held
        state = self.state
        for k in range(BATCH):
            state = following(state)
            i = (state >> 8) % held
            held -= 1
            batch[k] = handles[i]
            handles[i] = handles[held]
        self.held = held
        self.state = state
        go, stop = begin, end
        pool = self.pool
        start = go()
        pool.free_many(batch, BATCH)
        n = stop(start)
        self.free.note(n)


class Quotas(Churn):
    """Blocks in regions, which are opened and closed now and then, with whatever they hold."""

    def __init__(self, name, pool, blocks, least, largest, align):
        Churn.__init__(self, name, pool, blocks, least, largest, align)
        self.operations += (name + "_open_region", name + "_close_region")
        self.records += (Record(), Record())
        self.open, self.close = self.records[2:]
        self.regions = [None] * (QUOTAS + 1)  # the default one last
        self.where = bytearray(blocks)  # of each handle the index of its region
        self.chosen = QUOTAS

    @micropython.native
    def round(self):
        Churn.round(self)
        random = self.draw()
        if not random & 15:
            self.turn((random >> 4) % QUOTAS)

    @micropython.native
    def turn(self, i):
        """Open region i, or close it."""
        go, stop = begin, end
        pool = self.pool
        region = self.regions[i]
        if region is None:
            start = go()
            region = pool.open_region(LIMIT, 0, i)
            n = stop(start)
            self.open.note(n)
            self.regions[i] = region
            return
        start = go()
        pool.close_region(region)
        n = stop(start)
        self.close.note(n)
        self.regions[i] = None
        k = self.held
        while k:
            k -= 1
            if self.where[k] == i:
                self.forget(k)

    @micropython.native
    def room(self, random):
        """Chooses the region, too."""
        i = random % (QUOTAS + 1)
        if self.regions[i] is None:
            i = QUOTAS
        self.chosen = i
        return self.pool.largest_free_bytes(self.regions[i])

    @micropython.native
    def allocate(self, size, align):
        go, stop = begin, end
        pool = self.pool
        region = self.regions[self.chosen]
        start = go()
        handle = pool.alloc(size, align, region)
        n = stop(start)
        self.alloc.note(n)
        self.where[self.held] = self.chosen
        return handle

    @micropython.native
    def forget(self, i):
        Churn.forget(self, i)
        self.where[i] = self.where[self.held]


def parts():
    """One of each pool, in an arena of its own; of the fixed one four."""

    def arena():
        return Arena(TOTAL + 64)

    def fixed():
        return FixedPool(arena(), BLOCKS, BLOCK)

    classes = (BLOCK, 4 * BLOCK)
    slabs = TOTAL // SLAB
    quotas = SlabRegionPool(arena(), SLAB, slabs, classes, QUOTAS)
    return (
        Churn("fixed", fixed(), BLOCKS, BLOCK, BLOCK, 4),
        Churn("fixed_part", fixed(), BLOCKS, 1, BLOCK - 1, 4),
        Many("fixed", fixed(), BLOCKS, BLOCK, BLOCK),
        Many("fixed_part", fixed(), BLOCKS, 1, BLOCK - 1),
        Churn("slab", SlabPool(arena(), SLAB, slabs, classes), BLOCKS, 1, classes[-1], 32),
        Quotas("slab_region", quotas, BLOCKS, 1, classes[-1], 32),
        Churn("buddy", BuddyPool(arena(), TOTAL, BLOCK), BLOCKS, 1, TOTAL, 64),
        Churn("region", RegionPool(arena(), TOTAL, REGIONS), REGIONS, 1, TOTAL // 8, 64),
    )
