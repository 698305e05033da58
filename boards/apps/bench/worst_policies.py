"""Eviction policies of blocks, for worst.py: what each call costs by what it finds.

A round touches one entry at random, now and then protects one or lets it go, and puts a new entry in the
place of the one that is evicted. Once in STORM rounds every entry is touched as often as any count goes, so
that the next evictions find nothing but what was used; all those touches count as well, so that the mean
holds what an eviction costs over many calls. Keys, which s3fifo remembers, are at times multiples of 64: they
meet in one bucket of its table.
"""

from array import array

import micropython
from bench.tally import Record, begin, end, following
from mpy_kv import eviction

ENTRIES = 64
FEW = 16  # beside it, to tell what grows with the entries
MOST_COUNT = 15  # of lfu and hybrid, so that a storm reaches it
STORM = 500
STORM_AT = 20  # the first one's round
PROTECTED = 8  # at most, an eighth of ENTRIES
KEYS = 128

NAMES = ("lru", "fifo", "lfu", "hybrid", "sieve", "s3fifo")


class Turnover:
    """A full table of n entries under one policy. With `few` only its evictions are told of."""

    def __init__(self, name, n, few=False):
        options = {"most_count": MOST_COUNT} if name in ("lfu", "hybrid") else {}
        self.policy = eviction.make(name, n, **options)
        self.n = n
        self.touching, self.inserting, self.evicting = Record(), Record(), Record()
        if few:
            self.operations = ("%s_%d_evict" % (name, n),)
            self.records = (self.evicting,)
        else:
            self.operations = (name + "_touch", name + "_insert", name + "_evict")
            self.records = self.touching, self.inserting, self.evicting
        self.guarded = array("h", [-1] * (PROTECTED * n // ENTRIES))
        self.rounds = 0
        self.state = 1

    def first(self):
        for i in range(self.n):
            self.policy.insert(i, i)
        for _ in range(2 * self.n):
            self.round()
        self.rounds = 0
        self.touching.__init__()
        self.inserting.__init__()

    @micropython.native
    def draw(self):
        """A number at random below 2^22."""
        self.state = following(self.state)
        return self.state >> 8

    @micropython.native
    def round(self):
        random = self.draw()
        self.touch(random % self.n)
        if self.rounds % STORM == STORM_AT:
            self.storm()
        self.rounds += 1
        if random & 0x3C0 == 0:
            self.guard((random >> 10) % len(self.guarded))
        go, stop = begin, end
        policy = self.policy
        start = go()
        i = policy.evict()
        n = stop(start)
        self.evicting.note(n)
        key = (random >> 10) % KEYS
        if self.rounds & 64:
            key *= 64
        start = go()
        policy.insert(i, key)
        n = stop(start)
        self.inserting.note(n)

    @micropython.native
    def touch(self, i):
        go, stop = begin, end
        policy = self.policy
        start = go()
        policy.touch(i)
        n = stop(start)
        self.touching.note(n)

    @micropython.native
    def storm(self):
        """Whatever counts, or is a bit, is at its most."""
        for i in range(self.n):
            for _ in range(MOST_COUNT):
                self.touch(i)

    @micropython.native
    def guard(self, k):
        """Let go what place k protects, and protect the entry that is drawn for it."""
        if self.guarded[k] >= 0:
            self.policy.unprotect(self.guarded[k])
        i = self.draw() % self.n
        for j in range(len(self.guarded)):
            if self.guarded[j] == i:
                i = -1
        if i >= 0:
            self.policy.protect(i)
        self.guarded[k] = i

    def check(self):
        return self.policy.check()


def parts():
    """Of each policy a table of ENTRIES, and one of FEW."""
    return [Turnover(name, n, n == FEW) for name in NAMES for n in (ENTRIES, FEW)]
