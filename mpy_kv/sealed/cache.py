"""SealedCache: one sequence in 4 bits a number, its newest tokens and its sinks in 8.

Memory, cost, ownership and calls are those of KVCache (mpy_kv/cache.py). What is its own:

Blocks of 16 tokens are counted after the sinks. full(n) of them are full when n tokens are there. A block is
fresh while it is the open one or the newest full one: int8 rows, in one half of a ring of 32 slots. All
before are sealed: 4 bits, made from those rows at once. When the block that follows is full, commit seals:
every 16th costs more than the others. Everything that is visible keeps its form for all layers and steps
alike, so the bytes and results of n tokens are the same however they are cut into steps.

  I1  Block j of a layer lies in sealed form iff j < full(length) - 1, or j < _over[layer].
  I2  Whatever is written is not visible before the one store that says so: what a commit seals, to its
  length;
      what a longer prefill seals, or _mend() re-opens, to _over, which changes nothing but the form.
  I3  Between steps _over may be too large for the length: after a rollback, and where a longer prefill, which
      must seal on its way, was aborted. Then _uneven is set, from before the first such store until _mend()
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

from array import array

from ..cache import KVCache
from ..kernels.tables import TABLES
from ..lend import lend
from ..sequence import Sequence

_BLOCK = const(16)
_SHIFT = const(4)

# fields: mark, turn, attend, run, encode, attend4, seal
_STORED = const(1)
_STAGED = const(2)
_CUT = const(3)
_RUNS_OF = const(2)
_RUNS_FLOOR = const(3)
_HIGH = const(4)
_STEP = const(5)
_N = const(0)
_RUNS = const(1)
_CODES = const(5)
_VCODES = const(6)
_SCALES = const(7)
_VSCALES = const(8)
_QUERY = const(17)
_SINK_QUERY = const(18)
_SLICE = const(19)
_OUT_SHIFT = const(29)
_Q_AT = const(30)
_QUERY_BYTES = const(33)
_SETS = const(34)
_Q_SHIFT = const(35)
_QUERIES = const(42)
_RUN = const(43)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_SINKS = const(3)
_RUN_WORDS = const(4)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_SEALED = const(55)
_FIRST = const(56)
_CODES4 = const(60)
_RANGES = const(61)
_VCODES4 = const(62)
_POWERS = const(63)
_VSCALES4 = const(64)
_TOTAL = const(72)
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

# Of kernels/params.py.
_MASK = const(0x00FF00FF)


class SealedCache(Sequence):
    """`geometry`: a SealedGeometry; everything else as KVCache. kernels: a set of kernels.of("int4")."""

    # Named here for the same reason as in KVCache.
    append = Sequence.append
    attend = Sequence.attend
    _low = Sequence._low
    _drop = Sequence._drop
    _aim = KVCache._aim

    def __init__(self, geometry, buffer=None, kv_shift=None, q_shift=None, out_shift=None, kernels=None):
        made = lend("mpy_kv.sealed.setup").parts(geometry, buffer, kv_shift, q_shift, out_shift, kernels)
        kernels, buffer, self.pool, codes, a, e, q_shift, out_shift, self._s, self._again = made
        self._over = array("i", [0] * geometry.layers)
        self._uneven = False
        self._opened_k = array("f", [0] * geometry.width)
        self._opened_v = array("f", [0] * geometry.width)
        Sequence.__init__(
            self, geometry, kernels, buffer, codes, a, e, kv_shift is not None, q_shift, out_shift
        )

    @property
    def kv_bytes(self):
        """Codes, scales, minima and powers of the visible tokens, all layers; a block counts whole."""
        g = self.geometry
        fresh = 0
        blocks = []
        for p in self.visible():
            if self.sealed(0, p):
                block = (p - g.sinks) // _BLOCK
                if block not in blocks:
                    blocks.append(block)
            else:
                fresh += 1
        return fresh * g.token_bytes() + len(blocks) * g.block_bytes()

    # Forms

    def sealed(self, layer, position):
        """Whether the token at that position is in sealed form in this layer. I1."""
        g = self.geometry
        if position < g.sinks:
            return False
        block = (position - g.sinks) >> _SHIFT
        return block < g.full(self.length) - 1 or block < self._over[layer]

    @micropython.native
    def _aim_block(self, layer, j):
        """Have the kernels seal, or open, block j of a layer."""
        g = self.geometry
        s = self._s
        base = self._codes[layer]
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
    def _seal(self, layer, j):
        """Make the sealed form of block j. Its fresh rows stay."""
        if self.geometry.blocks:
            self._aim_block(layer, j)
            buf = self.buffer
            kernels = self.kernels
            group = self.geometry.groups
            while group:
                group -= 1
                kernels.seal_keys(buf, buf, group, self._s)
                kernels.seal_values(buf, buf, group, self._s)

    @micropython.native
    def _store(self, layer, i):
        """As Sequence._store; seals the block whose fresh rows the first row of another will overwrite."""
        g = self.geometry
        p = self.length + i
        at = p - g.sinks
        if i and at >= 2 * _BLOCK and not at & (_BLOCK - 1):
            j = (at >> _SHIFT) - 2
            if j >= g.full(self.length) - 1 and j >= self._over[layer]:
                if p >= self._turn[_HIGH]:
                    self._turn[_HIGH] = p + 1
                self._uneven = True
                self._seal(layer, j)
                self._over[layer] = j + 1
        Sequence._store(self, layer, i)

    # The step

    @micropython.native
    def _begin(self, n):
        if self._uneven:
            g = self.geometry
            if g.capacity is None or self.length + n <= g.capacity:
                if self._turn[_STEP] or self._turn[_HIGH] > self.length:
                    self.abort()
                self._mend()
        Sequence._begin(self, n)

    @micropython.native
    def commit(self):
        """As KVCache.commit; where it fills a block, the one before is sealed in all layers."""
        n = self._turn[_STEP]
        g = self.geometry
        at = self.length - g.sinks
        if n and (at + n) >> _SHIFT != at >> _SHIFT:
            self._complete(n)
        Sequence.commit(self)

    @micropython.native
    def _complete(self, n):
        """Seal what is to be sealed once the step's n tokens are there, if no layer lacks them. I2: none of
        it is seen before commit has stored the length."""
        mark = self._mark
        layer = self._layers
        while layer:
            layer -= 1
            if mark[layer] != _STORED:
                if mark[layer] != _STAGED:
                    return  # commit will refuse
                self._check_staged(layer, n)
        g = self.geometry
        before = g.full(self.length) - 1
        after = g.full(self.length + n) - 1
        while layer < self._layers:
            if mark[layer] == _STAGED:
                mark[layer] = _CUT
                i = 0
                while i < n:
                    self._store(layer, i)
                    i += 1
                mark[layer] = _STORED
            j = self._over[layer]
            if before > j:
                j = before
            if j < 0:
                j = 0
            while j < after:
                self._seal(layer, j)
                j += 1
            layer += 1

    def rollback(self, n):
        """As KVCache.rollback. Blocks that are then the open or the newest full one are re-opened by the next
        step: what they read back is stored as int8."""
        if type(n) is int and 0 <= n <= self.length:
            self._uneven = True
            sealed = self.geometry.full(self.length) - 1
            layer = self._layers
            while layer:
                layer -= 1
                if self._over[layer] < sealed:
                    self._over[layer] = sealed
        Sequence.rollback(self, n)

    @micropython.native
    def _mend(self):
        """Re-open what is sealed and should be fresh. Each store leaves a state that I1 describes."""
        g = self.geometry
        length = self.length
        full = g.full(length)
        fresh = full - 1
        if fresh < 0:
            fresh = 0
        used = full
        if length > g.sinks and (length - g.sinks) & (_BLOCK - 1):
            used += 1
        over = self._over
        layer = self._layers
        while layer:
            layer -= 1
            if over[layer] > used:
                over[layer] = used
            while over[layer] > fresh:
                if g.blocks:
                    self._open(layer, over[layer] - 1)
                over[layer] -= 1
            if used > full and self._floor >= length:
                self._blank(layer, length)
        self._uneven = False

    @micropython.native
    def _open(self, layer, j):
        """Make fresh rows of block j from its sealed form, which stays."""
        self._aim_block(layer, j)
        e = self._again
        kernels = self.kernels
        buf = self.buffer
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
            self.kernels.encode(self.buffer, k, k, e)

    def _lost(self, high):
        """A sealed block is overwritten by the one `blocks` further on, sealed when the second after that is
        full; without sealed blocks a half of the fresh ring is, when the second after it begins."""
        g = self.geometry
        if g.capacity is not None:
            return 0
        return g.sinks + _BLOCK * ((high - g.sinks) // _BLOCK - 1 - g.blocks)

    # Attention

    @micropython.native
    def _look(self, p):
        """What the token at position p sees: runs of fresh slots, sinks first, itself last; rows of sealed
        blocks, oldest first."""
        g = self.geometry
        a = self._a
        sinks = g.sinks
        row = g.row_bytes
        j = _RUN
        n = sinks
        if p < sinks:
            n = p + 1
        total = n
        if n:
            a[j] = 0
            a[j + _RUN_SCALES] = 0
            a[j + _RUN_COUNT] = n
            a[j + _RUN_SINKS] = 1
            j += _RUN_WORDS
        sealed = 0
        if p >= sinks:
            low = self._low(p + 1)
            fresh = sinks + ((p - sinks) >> _SHIFT << _SHIFT) - _BLOCK
            if fresh < low:
                fresh = low
            sealed = fresh - low
            if sealed:
                a[_FIRST] = (low - sinks) % (_BLOCK * g.blocks)
            n = p + 1 - fresh
            total += n + sealed
            at = (fresh - sinks) & (2 * _BLOCK - 1)
            k = 2 * _BLOCK - at
            if k > n:
                k = n
            a[j] = (sinks + at) * row
            a[j + _RUN_SCALES] = (sinks + at) * 2
            a[j + _RUN_COUNT] = k
            a[j + _RUN_SINKS] = 0
            j += _RUN_WORDS
            if n > k:
                a[j] = sinks * row
                a[j + _RUN_SCALES] = sinks * 2
                a[j + _RUN_COUNT] = n - k
                a[j + _RUN_SINKS] = 0
                j += _RUN_WORDS
        a[_TOTAL] = total
        a[_SEALED] = sealed
        a[_RUNS] = (j - _RUN) >> 2

    @micropython.native
    def _attend_row(self, layer, q, out, qs, i):
        # As Sequence's: fresh tokens by the kernels of int8, then sealed ones, whose scores, weights and sums
        # stand behind or are added. While av() runs, N counts the fresh ones alone.
        p = self.length + i
        turn = self._turn
        if p != turn[_RUNS_OF] or self._floor != turn[_RUNS_FLOOR]:
            turn[_RUNS_OF] = -1
            self._look(p)
            turn[_RUNS_FLOOR] = self._floor
            turn[_RUNS_OF] = p
        g = self.geometry
        a = self._a
        buf = self.buffer
        kernels = self.kernels
        qk = kernels.qk
        qk4 = kernels.qk4
        score = kernels.score
        center = kernels.center
        weights = kernels.weights
        av = kernels.av
        av4 = kernels.av4
        emit = kernels.emit
        tables = TABLES
        a[_Q_AT] = i * self._q_row
        sets = 1
        if qs is not q:
            sets = 2
        if a[_SETS] != sets:
            a[_SETS] = 0  # neither, should an exception part the two
            a[_SINK_QUERY] = g.query_words if sets == 2 else 0
            a[_SETS] = sets
        if self._int16:
            a[_Q_SHIFT] = self._q_shift[layer]
            a[_OUT_SHIFT] = self._out_shift[layer]
        if kernels.query(buf, q, qs, a) < 0:
            self._refuse("value", "q", layer, i)
        slices = g.slices
        codes = self._codes[layer]
        v_codes = codes + g.plane_bytes
        scales = codes + g.codes_bytes
        v_scales = v_codes + g.v_codes_bytes
        codes4 = codes + g.at_codes4
        powers = codes + g.at_headers
        ranges = powers + g.powers_bytes
        v_codes4 = codes + g.at_v_codes4
        v_scales4 = codes + g.at_v_scales4
        stride = g.head_stride
        stride4 = g.head4_stride
        slice_scales = slices * g.scale_stride
        query = a[_QUERIES]
        query_bytes = a[_QUERY_BYTES]
        n = a[_TOTAL]
        a[_N] = n  # whatever a row broken off has left
        sealed = a[_SEALED]
        kv = g.kv_heads
        per_kv = g.heads // kv
        per_scales = g.group // g.head_dim  # KV heads that share their scales
        same_scales = 0
        while kv:
            kv -= 1
            a[_CODES] = codes
            a[_VCODES] = v_codes
            a[_CODES4] = codes4
            a[_RANGES] = ranges
            a[_VCODES4] = v_codes4
            codes += stride
            v_codes += stride
            codes4 += stride4
            v_codes4 += stride4
            ranges += 4 * g.head_dim
            if same_scales == 0:
                a[_SCALES] = scales
                a[_VSCALES] = v_scales
                a[_POWERS] = powers
                a[_VSCALES4] = v_scales4
                scales += slice_scales
                v_scales += slice_scales
                powers += 2 * slices
                v_scales4 += slices * g.scale4_stride
                kernels.scales(buf, buf, 0, a)
                kernels.scales(buf, buf, 1, a)
                same_scales = per_scales
            if same_scales:
                same_scales -= 1
            h = per_kv
            while h:
                h -= 1
                a[_QUERY] = query
                query += query_bytes
                s = 0
                while s < slices:
                    a[_SLICE] = s
                    qk(buf, buf, _MASK, a)
                    if sealed:
                        qk4(buf, buf, _MASK, a)
                    score(buf, buf, 0, a)
                    s += 1
                s = 0
                while s < slices:
                    a[_SLICE] = s
                    if sealed:
                        center(buf, buf, tables, a)
                        weights(buf, buf, tables, a)
                        a[_N] = n - sealed
                        av(buf, buf, _MASK, a)
                        a[_N] = n
                        av4(buf, buf, _MASK, a)
                    else:
                        weights(buf, buf, tables, a)
                        av(buf, buf, _MASK, a)
                    emit(buf, a, out)
                    s += 1

    # Looking

    def place(self, layer, which, position):
        """As KVCache.place, of the form the token has: where it is sealed, SealedGeometry.place4."""
        self._check_place(layer, which, position)
        g = self.geometry
        if self.sealed(layer, position):
            return g.place4(self._codes[layer], which, position)
        return g.place(self._codes[layer], which, position)

    def codec_of(self, layer, position):
        """Name of the codec that reads a token at its place: "int4" if it is sealed, else "int8"."""
        return "int4" if self.sealed(layer, position) else "int8"

    def check(self):
        """As KVCache.check; besides, that nothing is sealed that should be fresh, unless the next step is to
        mend it."""
        bad = Sequence.check(self)
        if not self._uneven:
            bad += len([n for n in self._over if n > max(self.geometry.full(self.length) - 1, 0)])
        return bad
