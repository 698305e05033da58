"""Tokens that a policy chose: the slots they lie in, for attention goes by these, and what each is worth.
Transient (mpy_kv/transient.py).

As positions.py. SLOT: per slot of the ring 1 + position of its token, 0 if it has none; then per slot its
worth, 0 if it has no token; then how often all of them were halved, and the largest.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..transient import load_module
from . import BadSnapshot

Positions = load_module("mpy_kv.snapshot.positions").Positions
CHOSEN = load_module("mpy_kv.snapshot.header").CHOSEN

# fields: turn, plan
_HIGH = const(2)
_RING = const(0)
_RECENT = const(2)
_HOLE = const(10)
_SINCE = const(16)
_BANK = const(17)
_NEXT_BANK = const(18)
_EVICTED = const(19)
_NEXT_EVICTED = const(20)
# end of fields

SLOT = b"SLOT"
_BEST = const((1 << 29) + 1)  # of worths
_MOST_HALVED = const(20)


class Chosen(Positions):
    number = CHOSEN

    def __init__(self, cache):
        Positions.__init__(self, cache)
        self.loading = False
        self._order = None

    def state(self):
        cache = self.cache
        tokens = min(cache.geometry.sinks, cache.length)
        for x in cache.at:
            tokens += 0 < x <= cache.length
        return [cache.length, 0, cache.evicted_tokens, tokens, cache.plan[_RECENT], cache.policy]

    def settle(self):
        self.cache.settle()

    def position(self, i, h):
        if self._order is None:
            self._order = sorted([x - 1 for x in self.cache.at if 0 < x <= h.length])
        sinks = min(h.sinks, h.length)
        return i if i < sinks else self._order[i - sinks]

    def parts(self, h):
        return [(SLOT, 0)] + Positions.parts(self, h)

    def admit(self, h):
        at = self.cache.at
        for r in range(len(at)):
            at[r] = 0
        self.loading = True

    def runs(self, layer, h):
        """Slots that follow one another and have tokens."""
        base = self.cache.attention[layer].codes[layer]
        at = self.cache.at
        runs = [(base, 0, min(h.sinks, h.length))] if min(h.sinks, h.length) else []
        r = 0
        while r < len(at):
            n = 0
            while r + n < len(at) and 0 < at[r + n] <= h.length:
                n += 1
            if n:
                runs.append((base, h.sinks + r, n))
            r += n + 1
        return runs

    def move(self, pipe, tag, layer, h):
        if tag != SLOT:
            Positions.move(self, pipe, tag, layer, h)
            return
        plan, at = self.cache.plan, self.cache.at
        ring = plan[_RING]
        # What is loaded is worth that in the bank which the next step would bring in force.
        worth = self.cache.worth[1 - plan[_BANK] if self.loading else plan[_BANK]]
        live = 0
        for r in range(ring):
            x = pipe.number(at[r] if at[r] <= h.length else 0)
            if x > h.length:
                raise BadSnapshot("damaged: a token beyond the length")
            live += x != 0
            if self.loading:
                at[r] = x
        for r in range(ring + 2):
            there = live and (r >= ring or 0 < at[r] <= h.length)
            x = pipe.number(worth[r] if there else 0)
            if x > (_MOST_HALVED if r == ring else _BEST) or x and not there:
                raise BadSnapshot("damaged: a worth that no policy gives")
            if self.loading:
                worth[r] = x

    def admit_numbers(self, h):
        """Once SLOT is read."""
        found = [x for x in self.cache.at if x]
        if len(found) != h.tokens - min(h.sinks, h.length) or len(found) != len(set(found)):
            raise BadSnapshot("damaged: another number of tokens in slots")
        if found and min(found) <= h.sinks:
            raise BadSnapshot("damaged: a sink in a slot of the ring")

    def publish(self, h):
        cache = self.cache
        plan, turn = cache.plan, cache._turn
        turn[_HIGH] = h.length + 1
        cache.attention[0].runs_of = -1
        if h.length:
            plan[_HOLE] = plan[_RING]
            plan[_NEXT_BANK] = 1 - plan[_BANK]
            plan[_NEXT_EVICTED] = h.evicted
            plan[_SINCE] = h.length  # from which on it is in force
            cache.length = h.length
        else:
            plan[_EVICTED] = h.evicted
        cache.settle()
        turn[_HIGH] = h.length
