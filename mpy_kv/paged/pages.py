"""Pages: where the tokens of a request lie, as Ring (mpy_kv/cache.py). Allocates one small object."""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..cache import Ring

# fields: attend, run, encode, layer, request
_N = const(0)
_RUNS = const(1)
_ROW = const(2)
_RUN = const(45)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_SINKS = const(3)
_RUN_WORDS = const(4)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_E_TABLE = const(21)
_LAYER_WORDS = const(3)
_AIMED = const(5)
_IDS_AT = const(7)
# end of fields


class Pages(Ring):
    """By the table of a row of the ledger, which begins at `base`; own: what the Request knows."""

    def __init__(self, ledger, base, own, one):
        self.geometry = ledger.geometry
        self.floor = 0
        self._ledger = ledger
        self._base = base
        self._own = own
        self._e = one.e
        self._codes = one.codes

    @micropython.native
    def aim(self, p, at):
        g = self.geometry
        e = self._e
        t = g.block_tokens
        own = self._own
        page = p // t
        if page >= g.sink_pages:
            page = g.sink_pages + (page - g.sink_pages) % g.ring_pages
        ledger = self._ledger
        i = ledger.table[self._base + page]
        own[_IDS_AT] = i * t
        place = ledger.blocks.at[i]
        if place != own[_AIMED]:
            own[_AIMED] = -1
            codes = self._codes
            layer = g.layers
            while layer:
                layer -= 1
                e[_E_TABLE + _LAYER_WORDS * layer] = place + codes[layer]
            own[_AIMED] = place
        e[_E_SLOT] = p % t
        e[_E_AT] = at * e[_E_COUNT]

    @micropython.native
    def look(self, p, a):
        """One run a page, and one more where the sinks end within a page."""
        g = self.geometry
        t = g.block_tokens
        sinks = g.sinks
        row = a[_ROW]
        ledger = self._ledger
        table = ledger.table
        places = ledger.blocks.at
        base = self._base
        j = _RUN
        total = 0
        at = 0
        end = sinks
        if p < sinks:
            end = p + 1
        by_sinks = 1
        while True:
            while at < end:
                page = at // t
                slot = at - page * t
                k = t - slot
                if k > end - at:
                    k = end - at
                if page >= g.sink_pages:
                    page = g.sink_pages + (page - g.sink_pages) % g.ring_pages
                place = places[table[base + page]]
                a[j] = place + slot * row
                a[j + _RUN_SCALES] = place + slot * 2
                a[j + _RUN_COUNT] = k
                a[j + _RUN_SINKS] = by_sinks
                j += _RUN_WORDS
                total += k
                at += k
            if not by_sinks:
                break
            by_sinks = 0
            at = self.low(p + 1)
            end = p + 1
        a[_N] = total
        a[_RUNS] = (j - _RUN) >> 2

    def lost(self, high):
        g = self.geometry
        if g.capacity is not None or high < 1:
            return 0
        return ((high - 1) // g.block_tokens - g.ring_pages + 1) * g.block_tokens
