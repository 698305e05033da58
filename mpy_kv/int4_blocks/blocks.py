"""Blocks: where the tokens of a sealed cache lie, which are sealed, and how one form is made of the other.

As Ring (mpy_kv/cache.py), of a ring of 32 fresh slots, and the rows of sealed blocks. cache.py has the
invariants. Allocates a few small objects.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from array import array

from ..cache import Ring

_BLOCK = const(16)
_SHIFT = const(4)

# fields: attend, run, encode, attend4, seal
_N = const(0)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_SEALED = const(57)
_FIRST = const(58)
_CODES4 = const(62)
_RANGES = const(63)
_VCODES4 = const(64)
_POWERS = const(65)
_VSCALES4 = const(66)
_TOTAL = const(76)
_S_K = const(0)
_S_KS = const(1)
_S_V = const(2)
_S_VS = const(3)
_S_K4 = const(12)
_S_HEADER = const(13)
_S_V4 = const(15)
_S_VS4 = const(16)
_S_TOKEN = const(23)
# end of fields


class Blocks(Ring):
    """one: the Attention; s: parameters of sealing; again: as its `e`, those by which a token is encoded that
    was re-opened.

    over: per layer, blocks below it are sealed whatever the length. uneven: whether one of these may be too
    large for the length. kept: per layer, blocks from kept_from on and below it have a sealed form that is
    made of the tokens they have, even where fresh rows, opened from it, say less: it is not made again."""

    def __init__(self, one, s, again):
        g = one.geometry
        Ring.__init__(self, g, [one.e])
        self.over = array("i", [0] * g.layers)
        self.kept = array("i", [0] * g.layers)
        self.kept_from = array("i", [0] * g.layers)
        self.uneven = False
        one.form = self
        one.call_by_name()  # kernels of the sealed form are none that the assembler's loop knows
        self._one = one
        self._s = s
        self._again = again
        self._opened_k = array("f", [0] * g.width)
        self._opened_v = array("f", [0] * g.width)

    def lost(self, high):
        """A sealed block is overwritten by the one `blocks` further on, sealed when the second after that is
        full; without sealed blocks a half of the fresh ring is, when the second after it begins."""
        g = self.geometry
        if g.capacity is not None:
            return 0
        return g.sinks + _BLOCK * ((high - g.sinks) // _BLOCK - 1 - g.blocks)

    @micropython.native
    def look(self, p, a):
        """Runs of fresh slots as of a ring; besides, rows of sealed blocks, oldest first."""
        g = self.geometry
        sinks = g.sinks
        low = self.low(p + 1)
        fresh = sinks + ((p - sinks) >> _SHIFT << _SHIFT) - _BLOCK
        sealed = 0
        if fresh > low:
            sealed = fresh - low
            a[_FIRST] = (low - sinks) % (_BLOCK * g.blocks)
        Ring.look(self, p, a, sealed)
        a[_TOTAL] = a[_N] + sealed
        a[_SEALED] = sealed

    @micropython.native
    def begin(self, codes):
        """Before a layer whose K codes begin there is attended: how many sealed tokens are seen."""
        a = self._one.a
        a[_N] = a[_TOTAL]  # whatever a row broken off has left
        g = self.geometry
        powers = codes + g.at_headers
        a[_CODES4] = codes + g.at_codes4
        a[_RANGES] = powers + g.powers_bytes
        a[_VCODES4] = codes + g.at_v_codes4
        a[_POWERS] = powers
        a[_VSCALES4] = codes + g.at_v_scales4
        return a[_SEALED]

    @micropython.native
    def next(self, same_scales):
        """On to those of the next KV head; same_scales: it has the scales of the one before."""
        a = self._one.a
        g = self.geometry
        a[_CODES4] += g.head4_stride
        a[_VCODES4] += g.head4_stride
        a[_RANGES] += 4 * g.head_dim
        if same_scales == 0:
            a[_POWERS] += 2 * g.slices
            a[_VSCALES4] += g.slices * g.scale4_stride

    def is_sealed(self, layer, position, length):
        """Whether the token at that position is in sealed form when `length` tokens are there. I1."""
        g = self.geometry
        if position < g.sinks:
            return False
        block = (position - g.sinks) >> _SHIFT
        return block < g.full(length) - 1 or block < self.over[layer]

    @micropython.native
    def _aim_block(self, layer, j):
        """Have the kernels seal, or open, block j of a layer."""
        g = self.geometry
        s = self._s
        base = self._one.codes[layer]
        slot = g.sinks + (j & 1) * _BLOCK
        s[_S_K] = base + slot * g.row_bytes
        s[_S_KS] = base + g.codes_bytes + slot * 2
        base_v = base + g.plane_bytes
        s[_S_V] = base_v + slot * g.v_row_bytes
        s[_S_VS] = base_v + g.v_codes_bytes + slot * 2
        j %= g.blocks
        row = j * _BLOCK
        s[_S_K4] = base + g.at_codes4 + row * g.row4_bytes
        s[_S_HEADER] = base + g.at_headers + j * g.header_bytes
        s[_S_V4] = base + g.at_v_codes4 + row * g.row4_bytes
        s[_S_VS4] = base + g.at_v_scales4 + row * 2

    @micropython.native
    def seal(self, layer, j):
        """Make the sealed form of block j, unless it is there. Its fresh rows stay."""
        blocks = self.geometry.blocks
        kept = self.kept[layer]
        first = self.kept_from[layer]
        if blocks and not first <= j < kept:
            self.kept[layer] = 0
            if j != kept or first > j:
                first = j
            elif first <= j - blocks:
                first = j - blocks + 1
            self.kept_from[layer] = first
            self._aim_block(layer, j)
            buf = self._one.buffer
            kernels = self._one.kernels
            group = self.geometry.groups
            while group:
                group -= 1
                kernels.seal_keys(buf, buf, group, self._s)
                kernels.seal_values(buf, buf, group, self._s)
            self.kept[layer] = j + 1

    @micropython.native
    def mend(self, length):
        """Re-open what is sealed and should be fresh. Each store leaves a state that I1 describes."""
        g = self.geometry
        full = g.full(length)
        fresh = full - 1
        if fresh < 0:
            fresh = 0
        used = full
        if length > g.sinks and (length - g.sinks) & (_BLOCK - 1):
            used += 1
        over = self.over
        layer = g.layers
        while layer:
            layer -= 1
            if self.kept[layer] > full:
                self.kept[layer] = full
            if over[layer] > used:
                over[layer] = used
            while over[layer] > fresh:
                if g.blocks:
                    self._open(layer, over[layer] - 1)
                over[layer] -= 1
            if used > full and self.floor >= length:
                self._blank(layer, length)
        self.uneven = False

    @micropython.native
    def _open(self, layer, j):
        """Make fresh rows of block j from its sealed form, which stays."""
        self._aim_block(layer, j)
        e = self._again
        kernels = self._one.kernels
        buf = self._one.buffer
        e[_E_LAYER] = layer
        e[_E_AT] = 0
        slot = self.geometry.sinks + (j & 1) * _BLOCK
        t = 0
        while t < _BLOCK:
            self._s[_S_TOKEN] = t
            kernels.open_row(buf, self._opened_k, self._opened_v, self._s)
            e[_E_SLOT] = slot + t
            kernels.encode(buf, self._opened_k, self._opened_v, e)
            t += 1

    @micropython.native
    def _blank(self, layer, length):
        """Zeros for the open block's tokens before `length`, all lost: once full it is sealed with them."""
        g = self.geometry
        e = self._again
        k = self._opened_k
        i = g.width
        while i:
            i -= 1
            k[i] = 0
        e[_E_LAYER] = layer
        e[_E_AT] = 0
        slot = g.slot(length)
        left = (length - g.sinks) & (_BLOCK - 1)
        while left:
            left -= 1
            slot -= 1
            e[_E_SLOT] = slot
            self._one.kernels.encode(self._one.buffer, k, k, e)
