"""Tokens by position: of a ring, of one with a type a layer, or with a capacity.

What each form has (blocks.py, chosen.py and pages.py are the others):
  state()         length, first visible position behind the sinks, evicted, visible tokens, recent, policy
  position(i, h)  of the i-th visible token
  parts(h)        tags and indexes of the sections, in order
  move(pipe, tag, index, h)   one of them, from the cache or into it
  admit(h)        before anything is moved into the cache; abandon(): after an exception, for it to be
                  between steps, empty or, where the store of the length was behind it, loaded
  broken(h)       of what was moved in, how much no program writes
  publish(h)      make it the state. Whatever is written before is not seen by a cache of length 0.
Transient (mpy_kv/transient.py).
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..transient import load_module

planes = load_module("mpy_kv.snapshot.planes")
POSITIONS = load_module("mpy_kv.snapshot.header").POSITIONS

# fields: turn
_HIGH = const(2)
_GONE_THEN = const(4)
_THEN = const(5)
# end of fields

KV = b"KV  "


class Positions:
    number = POSITIONS

    def __init__(self, cache):
        self.cache = cache

    def settle(self):
        """Before it is saved, what the next step would do first."""

    def state(self):
        cache = self.cache
        length = cache.length
        tokens = cache._visible_count()
        first = length - (tokens - min(cache.geometry.sinks, length))
        return [length, first, cache.evicted_tokens, tokens, 0, ""]

    def position(self, i, h):
        """Of the i-th visible token."""
        sinks = min(h.sinks, h.length)
        return i if i < sinks else h.first + i - sinks

    def parts(self, h):
        return [(KV, layer) for layer in range(h.layers)]

    def runs(self, layer, h):
        one = self.cache.attention[layer]
        return planes.ring_runs(one.geometry, one.codes[layer], min(h.sinks, h.length), h.first, h.length)

    def move(self, pipe, tag, layer, h):
        one = self.cache.attention[layer]
        planes.move(pipe, one.buffer, one.geometry, self.runs(layer, h))

    def admit(self, h):
        pass

    def abandon(self):
        self.cache.abort()

    def broken(self, h):
        bad = 0
        for layer in range(h.layers):
            one = self.cache.attention[layer]
            bad += planes.broken(one.buffer, one.geometry, self.runs(layer, h))
        return bad

    def publish(self, h):
        """The store of the length decides. Cut before it, the next step finds one broken off: see _HIGH."""
        cache = self.cache
        turn = cache._turn
        turn[_HIGH] = h.length + 1
        for one in cache.attention:
            one.runs_of = -1
        cache.placement.floor = h.first
        turn[_GONE_THEN] = h.evicted - h.length + h.tokens
        turn[_THEN] = h.length
        cache.length = h.length
        cache._settle_gone()
        turn[_HIGH] = h.length
