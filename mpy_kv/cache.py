"""KVCache: keys and values of one sequence, in place, in one buffer.

Memory: everything that grows with the model or the window lies in one bytearray, the caller's or one
allocated here at construction. After the first token append, prefill, attend, commit and rollback
allocate nothing (prove it with micropython.mem_total) where two things hold. The kernels are native: the
plain ones allocate. And each argument of a layer is one of the last two arrays passed there: any other is
checked anew, which makes some hundred bytes of garbage a call. Views are compared by address in a prefill:
that allocates on boards whose RAM lies above 2^30. Nobody may resize or move the buffer.
Cost: append O(width), attend O(visible tokens), commit O(layers), rollback O(1); none depends on how
many tokens have passed.
Ownership: k and v of a prefill are read until attend or commit, all other arguments are read or written
within the call. The last two arrays of each argument and layer stay referenced, so as to know them again.
Not for use from interrupts or two threads.

One step of a model:  for each layer  append(layer, k, v); attend(layer, q, out)  then  commit().
Only commit moves the length. Any exception before it leaves the committed tokens as they were; just
append the step again.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from . import cpython as micropython
    from .cpython import const

from array import array

from . import kernels as kernel_sets
from .arena import Arena
from .codecs import BY_NAME
from .errors import BadArgument, StepError
from .geometry import MAX_BYTES, MAX_VISIBLE, Geometry
from .kernels import params as P
from .kernels.tables import EXP2, log_scale
from .pools.fixed import FixedPool
from .port import MICROPYTHON, addressof

# What a layer holds in this step. _CUT: a staged layer is being stored; after an exception its window
# may be overwritten, so that it must be staged again before it is attended.
_NOTHING = const(0)
_STORED = const(1)
_STAGED = const(2)
_CUT = const(3)

# Those of kernels/params.py that run per token, as constants: a test holds the two together.
_N = const(0)
_RUNS = const(1)
_CODES = const(5)
_VCODES = const(6)
_SCALES = const(7)
_VSCALES = const(8)
_QUERY = const(17)
_SINK_QUERY = const(18)
_SLICE = const(19)
_OUT_AT = const(28)
_OUT_SHIFT = const(29)
_Q_AT = const(30)
_HEADS = const(31)
_HEAD_DIM = const(32)
_SETS = const(34)
_Q_SHIFT = const(35)
_QUERIES = const(39)
_E_CODES = const(0)
_E_SCALES = const(2)
_E_COUNT = const(4)
_E_AT = const(9)
_E_SHIFT = const(10)

_UNSEEN = object()  # no array, and not None


def _per_layer(name, value, layers):
    """`value` as a list with one entry a layer."""
    if type(value) is int:
        return [value] * layers
    if not isinstance(value, (list, tuple)):
        raise BadArgument("%s must be a whole number or a list, got %r" % (name, value))
    if len(value) != layers:
        raise BadArgument("%s must be one number or %d (one a layer), got %d" % (name, layers, len(value)))
    return list(value)


def _shifts(name, value, layers, default):
    """Per-layer array of BIAS + shift."""
    if value is None:
        return default
    value = _per_layer(name, value, layers)
    for s in value:
        if type(s) is not int or s < -31 or s > 31:
            raise BadArgument("%s must be whole numbers in -31..31, got %r" % (name, s))
    return array("i", [P.BIAS + s for s in value])


class KVCache:
    """`geometry`: shape; `buffer`: bytearray of at least geometry.bytes() to use (default: own).

    kv_shift None: k, v, q, out are array('f'). Else int16 arrays, value = int16 * 2^-shift: one
    number, or per layer a number or (k_shift, v_shift). q_shift defaults to k's, out_shift to v's.
    kernels: a set from mpy_kv.kernels (default: the fastest that passes the self-check).
    """

    def __init__(self, geometry, buffer=None, kv_shift=None, q_shift=None, out_shift=None, kernels=None):
        if not isinstance(geometry, Geometry):
            raise BadArgument("geometry must be a Geometry, got %s" % type(geometry).__name__)
        g = self.geometry = geometry
        if g.codec not in BY_NAME:
            raise BadArgument(
                "codec %r is for sizes only; a cache takes %s" % (g.codec, ", ".join(sorted(BY_NAME)))
            )
        what = "window" if g.capacity is None else "capacity"
        if g.max_visible > MAX_VISIBLE:
            raise BadArgument(
                "%d tokens visible at once: at most %d; lower %s %d"
                % (g.max_visible, MAX_VISIBLE, what, g.window)
            )
        if g.bytes() >= MAX_BYTES:
            raise BadArgument(
                "the buffer needs %d bytes, a board addresses less than 2^30; lower %s %d"
                % (g.bytes(), what, g.window)
            )
        if kernels is None:
            kernels = kernel_sets.best()
        if not hasattr(kernels, "qk"):
            raise BadArgument("kernels must be a set from mpy_kv.kernels.get(name), got %r" % (kernels,))
        self.kernels = kernels

        floats = array("i", [0] * g.layers)
        self._k_shift = self._v_shift = self._q_shift = self._out_shift = floats
        self._int16 = kv_shift is not None
        if self._int16:
            pairs = _per_layer("kv_shift", kv_shift, g.layers)
            pairs = [(s, s) if type(s) is int else s for s in pairs]
            for s in pairs:
                if not isinstance(s, (list, tuple)) or len(s) != 2:
                    raise BadArgument(
                        "kv_shift of a layer must be a whole number or (k_shift, v_shift), got %r" % (s,)
                    )
            self._k_shift = _shifts("kv_shift", [s[0] for s in pairs], g.layers, None)
            self._v_shift = _shifts("kv_shift", [s[1] for s in pairs], g.layers, None)
            self._q_shift = _shifts("q_shift", q_shift, g.layers, self._k_shift)
            self._out_shift = _shifts("out_shift", out_shift, g.layers, self._v_shift)
        elif q_shift is not None or out_shift is not None:
            raise BadArgument("q_shift and out_shift need kv_shift (int16 input)")

        arena = Arena(g.bytes(), buffer)
        self.buffer = arena.buffer
        self.pool = FixedPool(arena, g.layers, g.layer_bytes)
        self._codes = array("i", [0] * g.layers)  # offset of a layer's K codes
        for layer in range(g.layers):
            block = self.pool.alloc(g.layer_bytes)
            self.pool.set_owner(block, layer)
            self.pool.lock(block)
            self._codes[layer] = self.pool.offset(block)
        arena.take(arena.free_bytes())
        first = arena.start

        self._runs = array("i", [0] * 12)
        self._runs_at = -1
        self._runs_floor = -1
        a = self._a = array("i", [0] * P.A_COUNT)
        a[P.ROW] = g.row_bytes
        a[P.SLICES] = g.slices
        a[P.WIDTH] = g.slice_bytes
        a[P.SLICE_WIDTH] = g.slice_width
        a[P.SCALE_STRIDE] = g.scale_stride
        a[P.SCORES] = first + g.at_scores
        a[P.DOTS] = first + g.at_dots
        a[P.KSCALE] = first + g.at_kscale
        a[P.VSCALE] = first + g.at_vscale
        a[P.SCALE_ROW] = g.scale_row
        a[P.UNITS] = first + g.at_units
        a[P.SUMS] = first + g.at_sums
        a[P.QUERIES] = first + g.at_queries
        a[P.QUERY_BYTES] = g.query_bytes
        a[P.QUERY_SET] = g.query_words
        a[P.HEADS] = g.heads
        a[P.HEAD_DIM] = g.head_dim
        a[P.MASK31] = 0x7FFFFFFF
        a[P.LOG_SCALE], a[P.LOG_EXP] = log_scale(g.head_dim)
        e = self._e = array("i", [0] * P.E_PARAMS)
        e[P.E_HEAD] = g.head_stride
        e[P.E_STRIDE] = g.scale_stride
        e[P.E_COUNT] = g.width
        e[P.E_GROUP] = g.group
        e[P.E_WIDTH] = g.slice_width
        e[P.E_BYTES] = g.slice_bytes
        e[P.E_SLICES] = g.slices
        e[P.E_MASK31] = 0x7FFFFFFF

        # State. Each change is ordered so that an exception between any two lines (KeyboardInterrupt may
        # come anywhere) leaves the state before it, or the state after it: the store that decides comes last.
        self.length = 0  # tokens committed = position of the next one; written by commit, rollback, seek
        self._gone = 0  # evicted tokens less the positions that show them: see evicted_tokens
        self._floor = 0  # no ring token before this position is visible; beyond length: the window is empty
        self._high = 0  # at least 1 + highest position whose slot may have been written since
        self._n = 0  # tokens of this step; 0: none is begun, and the marks mean nothing
        self._mark = bytearray(g.layers)
        self._staged_k = [None] * g.layers
        self._staged_v = [None] * g.layers
        # Arrays seen and found good, by role and layer: checked once, as checking allocates. First the one
        # of each layer used last, then the one of each layer before it: two may alternate.
        self._ok_k, self._ok_v, self._ok_q, self._ok_qs, self._ok_out = [
            [_UNSEEN] * (2 * g.layers) for _ in range(5)
        ]

    # Sizes

    @property
    def buffer_bytes(self):
        """Bytes of the whole buffer."""
        return len(self.buffer)

    @property
    def kv_bytes(self):
        """Codes and scales of the visible tokens, all layers."""
        return self.geometry.kv_bytes(self._visible_count())

    @property
    def evicted_tokens(self):
        """Tokens that were committed and left the window for good (not those rolled back)."""
        return self._gone + self.length - self._visible_count()

    # Storing

    @micropython.native
    def append(self, layer, k, v):
        """Store one token's k and v (kv_heads*head_dim values each) of `layer` in the spare slot.

        Keys come rotated at position `length`. Raises BadArgument, OutOfRange (a value not finite or
        beyond the scale range), CacheFull (no window and `capacity` reached); visible state unchanged.
        """
        if type(layer) is not int or not 0 <= layer < len(self._mark):
            self._refuse("layer", layer)
        if k is not self._ok_k[layer]:
            self._admit(self._ok_k, layer, k, "k")
        if v is not self._ok_v[layer]:
            self._admit(self._ok_v, layer, v, "v")
        w = self._e[_E_COUNT]
        if len(k) != w or len(v) != w:
            self._refuse("length", len(k), len(v), 1)
        self._begin(layer, 1)
        self._store(layer, k, v, 0)
        self._mark[layer] = _STORED

    @micropython.native
    def prefill(self, layer, k, v, n):
        """Stage n tokens of `layer` (k, v: n rows of kv_heads*head_dim); keeps references until commit.

        attend(layer, q, out, q_sinks, n), or commit where attend is not called, stores them one by
        one, so bytes and results equal n single steps, whatever n and the window. `out` may then be q, but
        lie over no other rows yet to be read. Raises BadArgument if k or v has shrunk since.
        """
        if type(n) is not int or n < 1:
            self._refuse("n", n)
        if type(layer) is not int or not 0 <= layer < len(self._mark):
            self._refuse("layer", layer)
        if k is not self._ok_k[layer]:
            self._admit(self._ok_k, layer, k, "k")
        if v is not self._ok_v[layer]:
            self._admit(self._ok_v, layer, v, "v")
        w = self._e[_E_COUNT] * n
        if len(k) < w or len(v) < w:
            self._refuse("length", len(k), len(v), n)
        self._begin(layer, n)
        self._staged_k[layer] = k
        self._staged_v[layer] = v
        self._mark[layer] = _STAGED

    @micropython.native
    def _begin(self, layer, n):
        """Enter `layer` into the step; a layer that is in already begins the step anew."""
        mark = self._mark
        if self.geometry.capacity is not None and self.length + n > self.geometry.capacity:
            self._refuse("full", n)
        if self._n == 0 or mark[layer] or n != self._n:
            if self._n or self._high > self.length:
                self.abort()
            i = len(mark)
            while i:
                i -= 1
                mark[i] = 0
            if self._floor > self.length:
                self._floor = self.length
            self._n = n

    @micropython.native
    def _store(self, layer, k, v, i):
        """Encode row i of k and v at position length + i."""
        g = self.geometry
        e = self._e
        p = self.length + i
        if p >= self._high:
            self._high = p + 1  # before the first byte is written
        slot = p
        if p >= g.sinks:
            slot = g.sinks + (p - g.sinks) % g.ring_slots
        codes = self._codes[layer]
        e[_E_AT] = i * g.width
        e[_E_CODES] = codes + slot * g.row_bytes
        e[_E_SCALES] = codes + g.codes_bytes + slot * 2
        e[_E_SHIFT] = self._k_shift[layer]
        if self.kernels.encode(self.buffer, k, e) < 0:
            self._refuse("value", "k", layer, i)
        e[_E_CODES] += g.plane_bytes
        e[_E_SCALES] += g.plane_bytes
        e[_E_SHIFT] = self._v_shift[layer]
        if self.kernels.encode(self.buffer, v, e) < 0:
            self._refuse("value", "v", layer, i)

    # Attention

    @micropython.native
    def attend(self, layer, q, out, q_sinks=None, n=1):
        """softmax(q K^T / sqrt(head_dim)) V over what each of the step's n tokens sees, into `out`.

        q, out: n rows of heads*head_dim. q_sinks: the same queries rotated at sink_query_position(i),
        read only if the geometry has sinks; without it sinks are scored with q. Query head h uses KV
        head h // (heads / kv_heads). int16 results saturate.
        """
        if type(layer) is not int or not 0 <= layer < len(self._mark):
            self._refuse("layer", layer)
        if q is not self._ok_q[layer]:
            self._admit(self._ok_q, layer, q, "q")
        if out is not self._ok_out[layer]:
            self._admit(self._ok_out, layer, out, "out")
        qs = q_sinks
        if qs is None or self.geometry.sinks == 0:
            qs = q
        elif qs is not self._ok_qs[layer]:
            self._admit(self._ok_qs, layer, qs, "q_sinks")
        mark = self._mark[layer]
        if n != self._n or mark == _NOTHING or mark == _CUT or (mark == _STORED and n != 1):
            self._refuse_attend(layer, mark, n)
        n = self._n
        w = n * self._a[_HEADS] * self._a[_HEAD_DIM]
        if len(q) < w or len(out) < w or len(qs) < w or (n == 1 and len(q) != w):
            self._refuse("rows", len(q), len(out), len(qs), w)
        if mark == _STAGED:
            self._check_staged(layer, n)
            self._check_apart(layer, q, out, qs)
            self._mark[layer] = _CUT
        i = 0
        while i < n:
            if mark == _STAGED:
                self._store(layer, self._staged_k[layer], self._staged_v[layer], i)
            self._attend_row(layer, q, out, qs, i)
            i += 1
        self._mark[layer] = _STORED

    @micropython.native
    def _attend_row(self, layer, q, out, qs, i):
        g = self.geometry
        a = self._a
        buf = self.buffer
        kernels = self.kernels
        runs = self._runs
        self._look(self.length + i)
        heads = g.heads
        row = heads * g.head_dim
        a[_Q_AT] = i * row
        a[_SETS] = 1
        a[_SINK_QUERY] = 0
        if qs is not q:
            a[_SETS] = 2
            a[_SINK_QUERY] = g.query_words
        a[_Q_SHIFT] = self._q_shift[layer]
        a[_OUT_SHIFT] = self._out_shift[layer]
        if kernels.query(buf, q, qs, a) < 0:
            self._refuse("value", "q", layer, i)
        codes = self._codes[layer]
        slices = g.slices
        share = heads // g.kv_heads
        last = -1
        h = 0
        while h < heads:
            kv = h // share
            a[_CODES] = codes + kv * g.head_stride
            a[_VCODES] = a[_CODES] + g.plane_bytes
            a[_QUERY] = a[_QUERIES] + h * g.query_bytes
            a[_OUT_AT] = i * row + h * g.head_dim
            first = kv * g.head_dim // g.group
            if first != last:
                a[_SCALES] = codes + g.codes_bytes + first * g.scale_stride
                a[_VSCALES] = a[_SCALES] + g.plane_bytes
                kernels.scales(buf, a, runs, 0)
                kernels.scales(buf, a, runs, 1)
                last = first
            s = 0
            while s < slices:
                a[_SLICE] = s
                kernels.qk(buf, buf, a, runs)
                kernels.score(buf, a)
                s += 1
            kernels.weights(buf, a, EXP2)
            s = 0
            while s < slices:
                a[_SLICE] = s
                kernels.share(buf, a)
                kernels.av(buf, buf, a, runs)
                kernels.emit(buf, a, out)
                s += 1
            h += 1

    @micropython.native
    def _look(self, p):
        """Runs of slots that the token at position p sees, oldest first, itself last."""
        if p == self._runs_at and self._floor == self._runs_floor:
            return
        self._runs_at = -1
        g = self.geometry
        r = self._runs
        sinks = g.sinks
        row = g.row_bytes
        j = 0
        n = sinks
        if p < sinks:
            n = p + 1
        total = n
        if n:
            r[0] = 0
            r[1] = 0
            r[2] = n
            r[3] = 1
            j = 4
        low = self._low(p + 1)
        n = p + 1 - low
        if n > 0:
            total += n
            at = (low - sinks) % g.ring_slots
            k = g.ring_slots - at
            if k > n:
                k = n
            r[j] = (sinks + at) * row
            r[j + 1] = (sinks + at) * 2
            r[j + 2] = k
            r[j + 3] = 0
            j += 4
            if n > k:
                r[j] = sinks * row
                r[j + 1] = sinks * 2
                r[j + 2] = n - k
                r[j + 3] = 0
                j += 4
        self._a[_N] = total
        self._a[_RUNS] = j >> 2
        self._runs_floor = self._floor
        self._runs_at = p

    @micropython.native
    def _low(self, length):
        """Oldest ring position visible when `length` tokens are there."""
        low = length - self.geometry.window
        if self._floor > low:
            low = self._floor
        if self.geometry.sinks > low:
            low = self.geometry.sinks
        return low

    # The step

    @micropython.native
    def commit(self):
        """Make the step's tokens part of the sequence in all layers. Raises StepError if one is missing."""
        mark = self._mark
        layers = len(mark)
        n = self._n
        layer = 0
        while layer < layers:
            if n == 0 or mark[layer] != _STORED:
                self._check_unstored(layer, n)
            layer += 1
        layer = 0
        while layer < layers:
            if mark[layer] == _STAGED:
                mark[layer] = _CUT
                i = 0
                while i < n:
                    self._store(layer, self._staged_k[layer], self._staged_v[layer], i)
                    i += 1
                mark[layer] = _STORED
            layer += 1
        self._drop()
        # Until here the old state, with nothing pending; this one store makes it the new one.
        self.length += n

    @micropython.native
    def _drop(self):
        """End the step: nothing is pending."""
        self._n = 0
        layer = len(self._mark)
        while layer:
            layer -= 1
            self._staged_k[layer] = None
            self._staged_v[layer] = None

    @micropython.native
    def abort(self):
        """Forget the uncommitted step. What a long prefill has overwritten is gone in all layers alike."""
        low = self._high - self.geometry.ring_slots
        if low > self.length:
            low = self.length
        if low > self._floor:
            self._floor = low
        self._drop()
        self._high = self.length

    @micropython.native
    def rollback(self, n):
        """Forget the n newest tokens (and any uncommitted step). What the ring had evicted stays gone:
        no token becomes visible that was not visible before. Raises BadArgument if n > length."""
        if type(n) is not int or n < 0 or n > self.length:
            self._refuse("rollback", n)
        self.abort()
        length = self.length - n
        # Nothing below what was visible comes back; _begin lowers a floor that is beyond the length.
        low = self._low(self.length)
        self._floor = low
        if low > self.length:
            low = self.length
        kept = length if length > self.geometry.sinks else self.geometry.sinks
        if low > kept:
            self._gone += low - kept
        self.length = length
        self._high = length

    def seek(self, position):
        """Drop the window, keep the sinks, go on at `position` (>= length). For tests and context jumps."""
        if type(position) is not int or position < self.length or position >= 1 << 29:
            raise BadArgument(
                "position %r must be a whole number from length %d to 2^29" % (position, self.length)
            )
        if self.geometry.capacity is not None or self.length < self.geometry.sinks:
            raise StepError(
                "seek needs a window and all %d sinks stored, length is %d"
                % (self.geometry.sinks, self.length)
            )
        self.abort()
        self._floor = position
        skipped = position - self.length
        self._high = position
        self.length = position
        self._gone -= skipped

    # Looking

    @micropython.native
    def sink_query_position(self, i=0):
        """Position at which to rotate the query of the step's token i for the sinks: as if the cache
        held only what it sees (StreamingLLM, arXiv:2309.17453)."""
        p = self.length + i
        most = self.geometry.max_visible - 1
        return p if p < most else most

    @micropython.native
    def _visible_count(self):
        g = self.geometry
        n = g.sinks
        if self.length < n:
            return self.length
        low = self._low(self.length)
        lost = self._high - g.ring_slots
        if lost > low:
            low = lost
        if low < self.length:
            n += self.length - low
        return n

    def visible(self):
        """Positions of the committed tokens that are there, ascending; a new list (allocates)."""
        ring = self._visible_count() - min(self.geometry.sinks, self.length)
        return list(range(min(self.geometry.sinks, self.length))) + list(
            range(self.length - ring, self.length)
        )

    def read(self, layer, which, position):
        """Stored vector of a visible token as floats, kv_heads*head_dim long; which: "k" or "v".

        Exact: code * scale. Allocates; for tests and tools."""
        if which not in ("k", "v"):
            raise BadArgument("which must be 'k' or 'v', got %r" % (which,))
        if position not in self.visible():
            raise BadArgument("position %r is not visible" % (position,))
        codes, scales = self._at(layer, which == "v", position)
        return [
            c * m * 2.0**e
            for c, m, e in BY_NAME[self.geometry.codec].read(self.buffer, self.geometry, codes, scales)
        ]

    def _at(self, layer, value, position):
        g = self.geometry
        if type(layer) is not int or not 0 <= layer < g.layers:
            self._refuse("layer", layer)
        slot = g.slot(position)
        base = self._codes[layer] + (g.plane_bytes if value else 0)
        return base + slot * g.row_bytes, base + g.codes_bytes + slot * 2

    def stats(self):
        """A new dict (allocates)."""
        return {
            "tokens": self.length,
            "visible_tokens": self._visible_count(),
            "evicted_tokens": self.evicted_tokens,
            "kv_bytes": self.kv_bytes,
            "buffer_bytes": self.buffer_bytes,
            "pending_layers": sum([1 for m in self._mark if m]) if self._n else 0,
            "kernels": self.kernels.name,
            "pool": self.pool.stats(),
        }

    def check(self):
        """Number of broken invariants (0 = sound). O(visible bytes), allocates."""
        g = self.geometry
        bad = self.pool.check()
        positions = self.visible()
        if len(positions) > g.max_visible or len(positions) != self._visible_count():
            bad += 1
        if positions != sorted(set(positions)) or (positions and positions[-1] != self.length - 1):
            # The newest token may be gone only after seek, rollback or a long prefill cut short.
            if not self._floor >= self.length and not self._high - g.ring_slots >= self.length:
                bad += 1
        if self._floor < 0 or self.length > self._high or self._n < 0:
            bad += 1
        if not 0 <= self.evicted_tokens:
            bad += 1
        slots = [g.slot(p) for p in positions]
        if len(set(slots)) != len(slots):
            bad += 1
        codec = BY_NAME[g.codec]
        for layer in range(g.layers):
            for value in (False, True):
                for p in positions:
                    codes, scales = self._at(layer, value, p)
                    bad += codec.broken(self.buffer, g, codes, scales)
        return bad

    # Checks that few tokens need. Bytecode, which takes a fifth of native code's memory; its frames stay
    # below the 12 words from which on they are allocated.

    def _admit(self, seen, layer, x, name):
        """Make x the array that `seen` holds for this layer, checked unless it was there before."""
        before = layer + len(self._mark)
        if x is not seen[before]:
            self._accept(x, name)
        seen[before] = seen[layer]
        seen[layer] = x

    def _accept(self, x, name):
        """Element type of an array the kernels will read through a raw pointer."""
        want = 2 if self._int16 else 4
        kind = "int16 ('h'), as kv_shift was given"
        if not self._int16:
            kind = "float32 ('f'); give kv_shift for int16"
        size, fits = 0, False
        try:
            view = memoryview(x)
            size = len(bytes(view[0:1]))
            fits = size == want and isinstance(x[0], float) != self._int16
            if hasattr(view, "format"):
                fits = fits and view.format == ("h" if self._int16 else "f")
            elif fits and self._int16:
                one = x[0:1]  # a copy, or a view of the same element
                first = one[0]
                one[0] = -1  # does it hold a sign?
                fits = one[0] == -1
                one[0] = first
        except (TypeError, ValueError, IndexError, OverflowError):
            fits = False
        if not fits:
            raise BadArgument(
                "%s must be a non-empty array of %s; got %s%s"
                % (name, kind, type(x).__name__, " of %d-byte items" % size if size else "")
            )

    def _check_unstored(self, layer, n):
        """Refuse to commit a layer that is not stored, unless it is staged."""
        if n == 0 or self._mark[layer] != _STAGED:
            self._refuse_commit(layer, n)
        self._check_staged(layer, n)

    def _check_staged(self, layer, n):
        """Staged arrays may have shrunk since prefill: kernels would read beyond them."""
        k = len(self._staged_k[layer])
        v = len(self._staged_v[layer])
        if min(k, v) < n * self._e[_E_COUNT]:
            self._refuse("length", k, v, n)

    def _check_apart(self, layer, q, out, qs):
        """A prefill writes row i of `out` before it reads the rows after i."""
        if (
            self._spoils(out, self._staged_k[layer], True)
            or self._spoils(out, self._staged_v[layer], True)
            or self._spoils(out, q, False)
            or self._spoils(out, qs, False)
        ):
            self._refuse("overlap")

    def _spoils(self, out, x, kv):
        """Whether writing `out` row by row changes rows of x (k or v; or a query) before they are read.

        Two arrays are the same or apart; views are compared by address, on ports that have one.
        """
        if out is x:
            return kv  # a row of q is read before its result is written
        if not MICROPYTHON or not (type(out) is memoryview or type(x) is memoryview):
            return False
        d = addressof(out) - addressof(x)
        size = self._n * (2 if self._int16 else 4)
        if kv:
            return 0 - self._a[_HEADS] * self._a[_HEAD_DIM] * size < d < self._e[_E_COUNT] * size
        return 0 < d < self._a[_HEADS] * self._a[_HEAD_DIM] * size

    def _refuse_attend(self, layer, mark, n):
        if self._n == 0 or mark == _NOTHING:
            self._refuse("attend_early", layer)
        if n != self._n:
            self._refuse("attend_other", n, self._n)
        self._refuse("attend_cut" if mark == _CUT else "attend_again", layer)

    def _refuse_commit(self, layer, n):
        ready = len([m for m in self._mark if m == _STORED or m == _STAGED]) if n else 0
        self._refuse("commit", ready, layer, n and self._mark[layer] == _CUT)

    def _refuse(self, what, *about):
        """Raise the error `what`. Its texts are loaded by the first: most programs meet none."""
        from . import refusals

        getattr(refusals, what)(self, *about)
