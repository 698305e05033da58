"""The tokens of a request of mpy_kv.paged: by position, as a ring has them, in the blocks of its table.

As positions.py; a snapshot of one can be loaded into the other, and into blocks of another size.
Transient (mpy_kv/transient.py)."""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..transient import load_module
from . import BadSnapshot

Positions = load_module("mpy_kv.snapshot.positions").Positions

# fields: requests, request
_REUSED = const(5)
_KNOWN = const(0)
_SINCE = const(6)
_ID_BITS = const(8)
# end of fields


class Pages(Positions):
    def _pieces(self, h):
        """(page, slot, count) of the visible tokens, by position."""
        t = self.cache.geometry.block_tokens
        found = []
        for p, end in ((0, min(h.sinks, h.length)), (h.first, h.length)):
            while p < end:
                n = min(end - p, t - p % t)
                found.append((p // t, p % t, n))
                p += n
        return found

    def _cell(self, page):
        """The block of a page, as the request's table has it."""
        request = self.cache
        return request.ledger.table[request.row * request.geometry.pages + request.geometry.entry(page)]

    def runs(self, layer, h):
        request = self.cache
        own = request.attention[layer].codes[layer]
        at = request.ledger.blocks.at
        return [(at[self._cell(page)] + own, slot, n) for page, slot, n in self._pieces(h)]

    def ids(self):
        """What has the ids of its tokens, or None where one is not known."""
        request = self.cache
        return self if request.length and request._own[_KNOWN] == request.length else None

    def __getitem__(self, position):
        t = self.cache.geometry.block_tokens
        return self.cache.ledger.blocks.ids[self._cell(position // t) * t + position % t]

    def admit(self, h):
        """Take blocks for what is visible, as a step would that is yet to be committed."""
        request = self.cache
        sinks = min(h.sinks, h.length)
        if sinks:
            request._own_pages(0, sinks)
        if h.length > h.first:
            request._own_pages(h.first, h.length - h.first)
        request._own[_SINCE] = 0  # given back by abort() while the length is that

    def abandon(self):
        self.cache._own[_SINCE] = 0
        self.cache.abort()

    def publish(self, h):
        Positions.publish(self, h)
        request = self.cache
        if h.length:
            request._end()
        request.ledger.state[_REUSED] += h.tokens

    def know(self, h, ids):
        """Once published, and no token is missing: later requests find its full blocks by their ids."""
        request = self.cache
        if h.length and request._own[_KNOWN] == 0:
            request._note(0, h.length, ids)

    def check_ids(self, ids):
        if max(ids) >> self.cache._own[_ID_BITS]:
            raise BadSnapshot("has token id %d: these requests take it with wide_ids" % max(ids))
