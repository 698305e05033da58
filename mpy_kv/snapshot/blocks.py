"""Sealed blocks of int4: sinks and the newest tokens in 8 bits, the blocks before them as they are.

As positions.py. Blocks that a rollback has opened again have a sealed form beside their fresh rows, from
which they are to be sealed: KEPT says of each layer from which block on, and below which, a sealed form is
made of the tokens the block has. It may end with the newest full block. Transient (mpy_kv/transient.py).
"""

from array import array

from ..transient import load_module
from . import BadSnapshot

planes = load_module("mpy_kv.snapshot.planes")
Positions = load_module("mpy_kv.snapshot.positions").Positions
BLOCKS = load_module("mpy_kv.snapshot.header").BLOCKS

KEPT = b"KEPT"
_BLOCK = 16


class Sealed(Positions):
    number = BLOCKS

    def __init__(self, cache):
        Positions.__init__(self, cache)
        self._kept = None

    def settle(self):
        if self.cache.placement.uneven:
            self.cache.placement.mend(self.cache.length)

    def parts(self, h):
        return [(KEPT, 0)] + Positions.parts(self, h)

    def _full(self, h):
        """(first block of which a token is visible, first one that is fresh, one after the last full one)"""
        full = self.cache.geometry.full(h.length)
        low = full
        if h.first < h.length:
            low = min((h.first - h.sinks) // _BLOCK, full)
        return low, max(full - 1, 0), full

    def _mine(self, h):
        """(kept_from, kept) of each layer, as far as they matter, one after the other."""
        low, _, full = self._full(h)
        blocks = self.cache.placement
        found = array("i", [])
        for layer in range(h.layers):
            first, kept = max(blocks.kept_from[layer], low), min(blocks.kept[layer], full)
            if first >= kept or not self.cache.geometry.blocks:
                first = kept = low  # none: what a rollback has left of numbers means nothing
            found.append(first)
            found.append(kept)
        return found

    def runs(self, layer, h):
        """Of fresh rows, from the begin of a block on: what is sealed with a token that is visible."""
        g = self.cache.geometry
        low, fresh, _ = self._full(h)
        start = h.length
        if h.first < h.length:
            start = h.sinks + _BLOCK * max(low, fresh)
        sinks = min(h.sinks, h.length)
        return planes.ring_runs(g, self.cache.attention[layer].codes[layer], sinks, start, h.length)

    def _blocks(self, layer, h):
        """Runs of sealed blocks: (place in the ring of them, count)."""
        g = self.cache.geometry
        low, fresh, _ = self._full(h)
        end = max(fresh, self._kept[2 * layer + 1])
        runs = []
        while low < end:
            place = low % g.blocks
            n = min(end - low, g.blocks - place)
            runs.append((place, n))
            low += n
        return runs

    def move(self, pipe, tag, layer, h):
        if self._kept is None:
            # Numbers to be read count as none yet.
            self._kept = self._mine(h)
        if tag == KEPT:
            for i in range(2 * h.layers):
                self._kept[i] = pipe.number(self._kept[i]) & 0x3FFFFFFF
            return
        Positions.move(self, pipe, tag, layer, h)
        one = self.cache.attention[layer]
        if one.geometry.blocks:
            _move_sealed(pipe, one.buffer, one.geometry, one.codes[layer], self._blocks(layer, h))

    def admit_numbers(self, h):
        """Once KEPT is read."""
        low, fresh, full = self._full(h)
        most = self.cache.geometry.blocks
        for layer in range(h.layers):
            first, kept = self._kept[2 * layer], self._kept[2 * layer + 1]
            count = max(fresh, kept) - low
            none = first == kept == low
            if not (none or most and low <= first < kept <= full) or most and count > most:
                raise BadSnapshot("damaged: sealed blocks that no program writes")

    def broken(self, h):
        g = self.cache.geometry
        bad = 0
        for layer in range(h.layers):
            one = self.cache.attention[layer]
            bad += planes.broken(one.buffer, g, self.runs(layer, h), "int8")
            if g.blocks:
                bad += _broken_sealed(one.buffer, g, one.codes[layer], self._blocks(layer, h))
        return bad

    def keep(self, first, end):
        """Before publish(): blocks from `first` on and below `end` have a sealed form, and no others."""
        first = max(0, min(first, end))
        self._kept = array("i", [first, max(first, end)] * self.cache.geometry.layers)

    def publish(self, h):
        blocks = self.cache.placement
        fresh = self._full(h)[1]
        blocks.uneven = True  # what follows is too large for the length, until that is stored
        for layer in range(h.layers):
            blocks.over[layer] = fresh
            blocks.kept_from[layer] = self._kept[2 * layer]
            blocks.kept[layer] = self._kept[2 * layer + 1]
        Positions.publish(self, h)


def _move_sealed(pipe, buffer, g, base, runs):
    """The blocks of a layer: codes of K, headers, codes of V, scales of V, minima of V."""
    _planes(pipe, buffer, base + g.at_codes4, g.kv_heads, g.head4_stride, _BLOCK * g.row4_bytes, runs)
    for place, n in runs:
        for j in range(place, place + n):
            at = base + g.at_headers + j * g.header_bytes
            pipe.move(buffer, at, 2 * g.groups)
            pipe.move(buffer, at + g.powers_bytes, 4 * g.width)
    _planes(pipe, buffer, base + g.at_v_codes4, g.kv_heads, g.head4_stride, _BLOCK * g.row4_bytes, runs)
    at = base + g.at_v_scales4
    for first in (at, at + g.minima_gap):
        _planes(pipe, buffer, first, g.groups, g.scale4_stride, 2 * _BLOCK, runs)


def _broken_sealed(buffer, g, base, runs):
    """Of the blocks of a layer, how much no program seals: powers and numbers; of rows their padding."""
    codec = load_module("mpy_kv.codecs").named("int4")
    padded = g.slice_width != 2 * g.slice4_bytes
    bad = 0
    for place, n in runs:
        for row in range(_BLOCK * place, _BLOCK * (place + n), 1 if padded else _BLOCK):
            for which in ("k", "v") if padded else ("k",):
                at = g.place4(base, which, g.sinks + row)
                bad += codec.broken(buffer, g, which, at[0], at[1])
    for first, signed in ((g.at_v_scales4, False), (g.at_v_scales4 + g.minima_gap, True)):
        bad += planes.infinite(buffer, (first, 2, g.groups, g.scale4_stride), _rows(base, runs), signed)
    return bad


def _rows(base, runs):
    """Runs of tokens, of runs of blocks."""
    return [(base, _BLOCK * place, _BLOCK * n) for place, n in runs]


def _planes(pipe, buffer, at, count, stride, size, runs):
    for _ in range(count):
        for place, n in runs:
            pipe.move(buffer, at + place * size, n * size)
        at += stride
