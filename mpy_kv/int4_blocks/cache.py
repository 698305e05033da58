"""SealedCache: one sequence in 4 bits a number, its newest tokens and its sinks in 8.

Memory, cost, ownership and calls are those of KVCache (mpy_kv/cache.py). What is its own:

Blocks of 16 tokens are counted after the sinks. full(n) of them are full when n tokens are there. A block is
fresh while it is the open one or the newest full one: int8 rows, in one half of a ring of 32 slots. All
before are sealed: 4 bits, made from those rows at once. When the block that follows is full, commit seals:
every 16th costs more than the others. Everything that is visible keeps its form for all layers and steps
alike, so the bytes and results of n tokens are the same however they are cut into steps.

  I1  Block j of a layer lies in sealed form iff j < full(length) - 1, or j < over[layer] (blocks.py).
  I2  Whatever is written is not visible before the one store that says so: what a commit seals, to the
      length; what a longer prefill seals, or mend() re-opens, to `over`, which changes nothing but the form.
  I3  Between steps `over` may be too large for the length: after a rollback, and where a longer prefill, that
      must seal on its way, was aborted. Then `uneven` is set, from before the first such store until mend()
      has re-opened what is too much: decoded, and stored again as int8. It happens in the next _begin.

So a rollback across the end of a block, and an aborted prefill of more than one, cost a little precision of
at most 32 tokens; they never cost a token that is not overwritten.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..sequence import Sequence
from ..transient import load_module
from .blocks import Blocks

_BLOCK = const(16)
_SHIFT = const(4)

# fields: mark, turn
_HIGH = const(2)
_STEP = const(3)
# end of fields


class SealedCache(Sequence):
    """`geometry`: a SealedGeometry; everything else as KVCache. kernels: a set of kernels.of("int4")."""

    # Named here for the same reason as in KVCache.
    append = Sequence.append
    attend = Sequence.attend
    _drop = Sequence._drop

    def __init__(self, geometry, buffer=None, kv_shift=None, q_shift=None, out_shift=None, kernels=None):
        self.pool, one, s, again = load_module("mpy_kv.int4_blocks.setup").parts(
            geometry, buffer, kv_shift, q_shift, out_shift, kernels
        )
        Sequence.__init__(self, geometry, [one] * geometry.layers, Blocks(one, s, again))

    @property
    def kv_bytes(self):
        """Codes, scales, minima and powers of the visible tokens, all layers; a block counts whole."""
        g = self.geometry
        n = self._visible_count()
        fresh = min(g.sinks, self.length)
        low = p = self.length - n + fresh
        while p < self.length and self.sealed(0, p):
            p += 1
        blocks = 0
        if p > low:  # sealed tokens are the oldest of the ring
            blocks = (p - 1 - g.sinks) // _BLOCK - (low - g.sinks) // _BLOCK + 1
        return (fresh + self.length - p) * g.token_bytes() + blocks * g.block_bytes()

    # Forms

    def sealed(self, layer, position):
        """Whether the token at that position is in sealed form in this layer. I1."""
        return self.placement.is_sealed(layer, position, self.length)

    @micropython.native
    def _store(self, layer, i):
        """As Sequence._store; seals the block whose fresh rows the first row of another will overwrite."""
        g = self.geometry
        p = self.length + i
        at = p - g.sinks
        if i and at >= 2 * _BLOCK and not at & (_BLOCK - 1):
            j = (at >> _SHIFT) - 2
            blocks = self.placement
            if j >= g.full(self.length) - 1 and j >= blocks.over[layer]:
                if p >= self._turn[_HIGH]:
                    self._turn[_HIGH] = p + 1
                blocks.uneven = True
                blocks.seal(layer, j)
                blocks.over[layer] = j + 1
        Sequence._store(self, layer, i)

    # The step

    @micropython.native
    def _begin(self, n):
        if self.placement.uneven:
            g = self.geometry
            if g.capacity is None or self.length + n <= g.capacity:
                if self._turn[_STEP] or self._turn[_HIGH] > self.length:
                    self.abort()
                self.placement.mend(self.length)
        Sequence._begin(self, n)

    @micropython.native
    def commit(self):
        """As KVCache.commit; where it fills a block, the one before is sealed in all layers."""
        if self.commit_seals():
            layer = 0
            while layer < self._layers:
                self.seal_ahead(layer)
                layer += 1
        Sequence.commit(self)

    @micropython.native
    def commit_seals(self):
        """Whether the step fills a block behind another, so that commit has one to seal."""
        n = self._turn[_STEP]
        g = self.geometry
        at = self.length - g.sinks
        if (at + n) >> _SHIFT == at >> _SHIFT:
            return False
        return g.full(self.length + n) > 1

    @micropython.native
    def seal_ahead(self, layer):
        """Seal of a layer what commit would, which then finds it done, if no layer lacks the step's tokens:
        for a program that has other things to do. I2: none of it is seen before commit has stored the
        length."""
        n = self._turn[_STEP]
        self._store_staged(n)
        g = self.geometry
        blocks = self.placement
        j = blocks.over[layer]
        before = g.full(self.length) - 1
        if before > j:
            j = before
        if j < 0:
            j = 0
        after = g.full(self.length + n) - 1
        while j < after:
            blocks.seal(layer, j)
            j += 1

    def rollback(self, n):
        """As KVCache.rollback. Blocks that are then the open or the newest full one are re-opened by the next
        step: what they read back is stored as int8."""
        if type(n) is int and 0 <= n <= self.length:
            self.placement.uneven = True
            over = self.placement.over
            sealed = self.geometry.full(self.length) - 1
            layer = self._layers
            while layer:
                layer -= 1
                if over[layer] < sealed:
                    over[layer] = sealed
        Sequence.rollback(self, n)

    # Looking

    def place(self, layer, which, position):
        """As KVCache.place, of the form the token has: where it is sealed, SealedGeometry.place4."""
        load_module("mpy_kv.inspect").check_place(self, layer, which, position)
        g = self.geometry
        codes = self.attention[layer].codes[layer]
        return (g.place4 if self.sealed(layer, position) else g.place)(codes, which, position)

    def codec_of(self, layer, position):
        """Name of the codec that reads a token at its place: "int4" if it is sealed, else "int8"."""
        return "int4" if self.sealed(layer, position) else "int8"

    def check(self):
        """As KVCache.check; besides, that nothing is sealed that should be fresh, unless the next step is to
        mend it."""
        bad = Sequence.check(self)
        if not self.placement.uneven:
            bad += len([n for n in self.placement.over if n > max(self.geometry.full(self.length) - 1, 0)])
        return bad
