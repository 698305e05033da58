"""Sequence: the steps of one sequence of tokens, whatever holds their keys and values.

What KVCache (one ring), SealedCache, MixedCache, BudgetCache and paged.Request have in common: arguments
checked, tokens stored, attended and committed, all of a step or nothing. It owns
  an Attention for each layer (attention.py), the same one for all layers of an element type: what is computed
  a placement, such as Ring (cache.py): where a token lies, and what one sees
and a subclass says  place(layer, which, position)  and what else its steps do.
Allocates at construction only (see cache.py); owns the staged arrays of a prefill until commit or abort.

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

from .port import MICROPYTHON, addressof
from .transient import load_module

# fields: mark, turn, encode
_STORED = const(1)
_STAGED = const(2)
_CUT = const(3)
_NEXT = const(0)
_LAST = const(1)
_HIGH = const(2)
_STEP = const(3)
_GONE_THEN = const(4)
_THEN = const(5)
_ROW_VALUES = const(6)
_TURN_PLACES = const(7)
_E_LAYER = const(0)
_E_COUNT = const(3)
# end of fields

# Sequence._turn is an array because storing an attribute takes ten times as long in a class with properties.
# A layer that is the object at _NEXT or _LAST needs no check of type and range.


_UNSEEN = object()  # no array, and not None
_len = len  # a module's own name is found at once, a built-in one behind a hundred others


class Sequence:
    """geometry: shape; attention: the Attention of each layer, to be read; placement: where tokens lie."""

    def __init__(self, geometry, attention, placement):
        self.geometry = geometry
        self.attention = attention
        self.kernels = attention[0].kernels
        self.buffer = attention[0].buffer
        self.placement = placement

        # State. Each change is ordered so that an exception between any two lines (KeyboardInterrupt may
        # come anywhere) leaves the state before it, or the state after it: the store that decides comes last.
        self.length = 0  # tokens committed = position of the next one; written by commit, rollback, seek
        self._gone = 0  # evicted tokens less the positions that show them: see evicted_tokens, _GONE_THEN
        layers = self._layers = geometry.layers
        self._mark = bytearray(layers)
        self._turn = array("i", [0] * _TURN_PLACES)
        self._turn[_THEN] = -1
        self._turn[_ROW_VALUES] = geometry.heads * geometry.head_dim
        self._holding = False  # whether any of these may be an array
        self._staged_k = [None] * layers
        self._staged_v = [None] * layers
        # Arrays seen and found good, by role and layer: checked once, as checking allocates. First the one
        # of each layer used last, then the one of each layer before it: two may alternate.
        self._ok_k, self._ok_v, self._ok_q, self._ok_qs, self._ok_out = [
            [_UNSEEN] * (2 * layers) for _ in range(5)
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
        return self._gone_now() + self.length - self._visible_count()

    # Storing

    @micropython.native
    def append(self, layer, k, v):
        """Store one token's k and v (kv_heads*head_dim values each) of `layer` in the spare slot.

        Keys come rotated at position `length`. Raises BadArgument, OutOfRange (a value not finite or
        beyond the scale range), CacheFull (no window and `capacity` reached); visible state unchanged.
        """
        turn = self._turn
        if layer is not turn[_NEXT]:
            self._check_layer(layer)
        if k is not self._ok_k[layer]:
            self._admit(self._ok_k, layer, k, "k")
        if v is not self._ok_v[layer]:
            self._admit(self._ok_v, layer, v, "v")
        one = self.attention[layer]
        e = one.e
        w = e[_E_COUNT]
        if _len(k) != w or _len(v) != w:
            self._refuse("length", _len(k), _len(v), 1)
        mark = self._mark
        if turn[_STEP] != 1 or mark[layer]:
            self._begin(1)
        e[_E_LAYER] = layer
        done = one.kernels.encode(self.buffer, k, v, e)
        if done < 0:
            self._refuse("value", done, layer, 0)
        mark[layer] = _STORED
        turn[_LAST] = layer
        layer += 1
        turn[_NEXT] = layer if layer < self._layers else 0

    def prefill(self, layer, k, v, n):
        """Stage n tokens of `layer` (k, v: n rows of kv_heads*head_dim); keeps references until commit.

        attend(layer, q, out, q_sinks, n), or commit where attend is not called, stores them one by
        one, so bytes and results equal n single steps, whatever n and the window. `out` may then be q, but
        lie over no other rows yet to be read. Raises BadArgument if k or v has shrunk since.
        """
        if type(n) is not int or n < 1:
            self._refuse("n", n)
        self._check_layer(layer)
        if k is not self._ok_k[layer]:
            self._admit(self._ok_k, layer, k, "k")
        if v is not self._ok_v[layer]:
            self._admit(self._ok_v, layer, v, "v")
        if min(len(k), len(v)) < n * self.geometry.width:
            self._refuse("length", len(k), len(v), n)
        if n != self._turn[_STEP] or self._mark[layer]:
            self._begin(n)
        self._holding = True
        self._staged_k[layer] = k
        self._staged_v[layer] = v
        self._mark[layer] = _STAGED
        self._turn[_LAST] = layer

    @micropython.native
    def _begin(self, n):
        """Begin a step of n tokens, at its first layer or at one that is in the last step already."""
        g = self.geometry
        p = self.length
        if g.capacity is not None and p + n > g.capacity:
            self._refuse("full", n)
        if self._turn[_STEP] or self._turn[_HIGH] > p:
            self.abort()
        mark = self._mark
        i = self._layers
        while i:
            i -= 1
            mark[i] = 0
        placement = self.placement
        if placement.floor > p:
            placement.floor = p
        if p >= self._turn[_HIGH]:
            self._turn[_HIGH] = p + 1  # before the first byte is written
        placement.aim(p, 0)
        self._turn[_STEP] = n

    def _store(self, layer, i):
        """Encode row i of what is staged at position length + i."""
        # As few names as may be: of more than eleven words of state MicroPython makes an object.
        if self.length + i >= self._turn[_HIGH]:
            self._turn[_HIGH] = self.length + i + 1
        self.placement.aim(self.length + i, i)
        one = self.attention[layer]
        one.e[_E_LAYER] = layer
        done = one.kernels.encode(self.buffer, self._staged_k[layer], self._staged_v[layer], one.e)
        if done < 0:
            self._refuse("value", done, layer, i)

    # Attention

    @micropython.native
    def attend(self, layer, q, out, q_sinks=None, n=1):
        """softmax(q K^T / sqrt(head_dim)) V over what each of the step's n tokens sees, into `out`.

        q, out: n rows of heads*head_dim. q_sinks: the same queries rotated at sink_query_position(i),
        read only if the geometry has sinks; without it sinks are scored with q. Of one token, q and q_sinks
        have just its row. Query head h uses KV head h // (heads / kv_heads). int16 results saturate.
        """
        turn = self._turn
        if layer is not turn[_LAST]:
            self._check_layer(layer)
        if q is not self._ok_q[layer]:
            self._admit(self._ok_q, layer, q, "q")
        if out is not self._ok_out[layer]:
            self._admit(self._ok_out, layer, out, "out")
        g = self.geometry
        qs = q_sinks
        if qs is None or g.sinks == 0:
            qs = q
        elif qs is not self._ok_qs[layer]:
            self._admit(self._ok_qs, layer, qs, "q_sinks")
        if n != 1 or turn[_STEP] != 1 or self._mark[layer] != _STORED:
            self._attend_rows(layer, q, out, qs, n)
            return
        row = turn[_ROW_VALUES]
        if _len(q) != row or _len(out) < row or (qs is not q and _len(qs) != row):
            self._refuse("rows", q, out, qs, row)
        if self._holding:
            self._check_staged_row(layer, q, out, qs)
        if self.attention[layer].row(self.placement, self.length, layer, q, out, qs, 0) < 0:
            self._refuse("value", "q", layer, 0)

    @micropython.native
    def _attend_rows(self, layer, q, out, qs, n):
        """attend() of what is staged, or refuses."""
        turn = self._turn
        mark = self._mark[layer]
        if n != turn[_STEP] or mark != _STAGED:
            self._refuse("attend", layer, mark, n, turn[_STEP])
        n = turn[_STEP]  # as a small int, where it was given as another number
        row = turn[_ROW_VALUES]
        if n != 1:
            good = self._are_rows(q, out, qs, n * row)
        else:
            good = _len(q) == row and _len(out) >= row and _len(qs) == row
        if not good:
            self._refuse("rows", q, out, qs, n * row)
        self._check_staged_row(layer, q, out, qs)
        one = self.attention[layer]
        i = 0
        while i < n:
            self._store(layer, i)
            if one.row(self.placement, self.length + i, layer, q, out, qs, i * row) < 0:
                self._refuse("value", "q", layer, i)
            i += 1
        self._mark[layer] = _STORED

    # The step

    @micropython.native
    def commit(self):
        """Make the step's tokens part of the sequence in all layers. Raises StepError if one is missing."""
        mark = self._mark
        n = self._turn[_STEP]
        layer = self._layers
        while layer:
            layer -= 1
            if n == 0 or mark[layer] != _STORED:
                self._store_staged(n)
        self._drop()
        # Until here the old state, with nothing pending; this one store makes it the new one.
        self.length += n

    def _store_staged(self, n):
        """Store what is staged and was not attended, if no layer is missing."""
        mark = self._mark
        layer = 0
        while layer < self._layers:
            if n == 0 or mark[layer] != _STORED:
                self._check_unstored(layer, n)
            layer += 1
        layer = 0
        while layer < self._layers:
            if mark[layer] == _STAGED:
                mark[layer] = _CUT
                i = 0
                while i < n:
                    self._store(layer, i)
                    i += 1
                mark[layer] = _STORED
            layer += 1

    @micropython.native
    def _drop(self):
        """End the step: nothing is pending."""
        self._turn[_STEP] = 0
        if self._holding:
            layer = self._layers
            while layer:
                layer -= 1
                self._staged_k[layer] = None
                self._staged_v[layer] = None
            self._holding = False

    def _gone_now(self):
        return self._turn[_GONE_THEN] if self.length == self._turn[_THEN] else self._gone

    def _settle_gone(self):
        """Before the length moves on from a move of it. May be cut and run again."""
        self._gone = self._gone_now()
        self._turn[_THEN] = -1

    def abort(self):
        """Forget the uncommitted step. What a long prefill has overwritten is gone in all layers alike."""
        if self._turn[_THEN] >= 0:
            self._settle_gone()
        placement = self.placement
        low = placement.lost(self._turn[_HIGH])
        if low > self.length:
            low = self.length
        if low > placement.floor:
            placement.floor = low
        self._drop()
        self._turn[_HIGH] = self.length

    def rollback(self, n):
        """Forget the n newest tokens (and any uncommitted step). What the ring had evicted stays gone:
        no token becomes visible that was not visible before. Raises BadArgument if n > length."""
        if type(n) is not int or n < 0 or n > self.length:
            self._refuse("rollback", n)
        self.abort()
        length = self.length - n
        # Nothing below what was visible comes back; _begin lowers a floor that is beyond the length.
        low = self.placement.low(self.length)
        self.placement.floor = low
        if low > self.length:
            low = self.length
        kept = length if length > self.geometry.sinks else self.geometry.sinks
        if low > kept:
            self._turn[_GONE_THEN] = self._gone + low - kept
            self._turn[_THEN] = length
        self.length = length  # until below _HIGH has what it was: where this is cut, the next step aborts
        if low > kept:
            self._settle_gone()
        self._turn[_HIGH] = length

    # Looking

    def layer_geometry(self, layer):
        """Geometry of what a layer stores: that layer's own where element types differ."""
        self._check_layer(layer)
        return self.attention[layer].geometry

    def sink_query_position(self, i=0):
        """Position at which to rotate the query of the step's token i for the sinks: as if the cache
        held only what it sees (StreamingLLM, arXiv:2309.17453). BadArgument if i is no count."""
        if type(i) is not int or i < 0:
            self._refuse("row", i)
        p = self.length + i
        most = self.geometry.max_visible - 1
        return p if p < most else most

    def _visible_count(self):
        g = self.geometry
        n = g.sinks
        if self.length < n:
            return self.length
        low = self.placement.low(self.length)
        lost = self.placement.lost(self._turn[_HIGH])
        if lost > low:
            low = lost
        if low < self.length:
            n += self.length - low
        return n

    def visible(self):
        """Positions of the committed tokens that are there, ascending; a new list (allocates)."""
        return load_module("mpy_kv.inspect").visible(self, self._visible_count())

    def read(self, layer, which, position):
        """Stored vector of a visible token as floats, kv_heads*head_dim long; which: "k" or "v".

        Exact: code * scale. Allocates; for tests and tools."""
        return load_module("mpy_kv.inspect").read(self, layer, which, position)

    def kernel_arguments(self):
        """(buffer, parameters), what kernels take, as the last attend left them: for benches, which call
        kernels by themselves. The head is the last one, the slice parameters[SLICE] (kernels/params.py)."""
        return self.buffer, self.attention[self._turn[_LAST]].a

    def settings(self):
        """How it was made, as Geometry and the cache take it, defaults filled in, kernels by name; shifts by
        layer, None for float32. A new dict (allocates)."""
        return load_module("mpy_kv.inspect").settings(self)

    def stats(self):
        """A new dict (allocates)."""
        return load_module("mpy_kv.inspect").stats(
            self, len([m for m in self._mark if m]) if self._turn[_STEP] else 0
        )

    def check(self):
        """Number of broken invariants (0 = sound). O(visible bytes), allocates."""
        return load_module("mpy_kv.inspect").check_sequence(self, self._turn[_HIGH], self._turn[_STEP])

    # Checks that few tokens need.

    def _int16(self):
        return self.attention[0].q_shift is not None

    def _check_layer(self, layer):
        if type(layer) is not int or not 0 <= layer < self._layers:
            self._refuse("layer", layer)

    def _admit(self, seen, layer, x, name):
        """Make x the array that `seen` holds for this layer, checked unless it was there before."""
        before = layer + len(self._mark)
        if x is not seen[before]:
            self._accept(x, name)
        seen[before] = seen[layer]
        seen[layer] = x

    def _accept(self, x, name):
        """Element type of an array the kernels will read through a raw pointer."""
        fits = False
        int16 = self._int16()
        try:
            if not MICROPYTHON:
                fits = cpython.fits(x, int16, name == "out")
            elif len(bytes(memoryview(x)[0:1])) == (2 if int16 else 4):
                fits = isinstance(x[0], float) != int16
                if fits and int16:
                    one = x[0:1]  # a copy, or a view of the same element
                    first = one[0]
                    one[0] = -1  # does it hold a sign?
                    fits = one[0] == -1
                    one[0] = first
        except (TypeError, ValueError, IndexError, OverflowError, NotImplementedError):
            fits = False
        if not fits:
            self._refuse("array", x, name)

    def _check_unstored(self, layer, n):
        """Refuse to commit a layer that is not stored, unless it is staged."""
        if n == 0 or self._mark[layer] != _STAGED:
            self._refuse("commit", layer, self._mark, n)
        self._check_staged(layer, n)

    def _check_staged(self, layer, n):
        """Staged arrays may have shrunk since prefill: kernels would read beyond them."""
        k = len(self._staged_k[layer])
        v = len(self._staged_v[layer])
        if min(k, v) < n * self.geometry.width:
            self._refuse("length", k, v, n)

    def _are_rows(self, q, out, qs, w):
        """Of more than one token, there may be more than are read."""
        return len(q) >= w and len(out) >= w and len(qs) >= w

    def _check_staged_row(self, layer, q, out, qs):
        """Before rows of `out` are written where something is staged. This layer, if it is, must from here on
        be staged again, unless it is attended to its end."""
        self._check_apart(out)
        if self._mark[layer] == _STAGED:
            self._check_staged(layer, self._turn[_STEP])
            if self._spoils(out, q, False) or self._spoils(out, qs, False):
                self._refuse("overlap")
            self._mark[layer] = _CUT

    def _check_apart(self, out):
        """What is staged, of any layer, is read after rows of `out` are written."""
        mark = self._mark
        layer = self._layers
        while layer:
            layer -= 1
            if mark[layer] == _STAGED and (
                self._spoils(out, self._staged_k[layer], True)
                or self._spoils(out, self._staged_v[layer], True)
            ):
                self._refuse("overlap")

    def _spoils(self, out, x, kv):
        """Whether writing `out` row by row changes rows of x (k or v; or a query) before they are read.

        Two arrays are the same or apart; views, and numpy's arrays, are compared by address.
        """
        if out is x:
            return kv  # a row of q is read before its result is written
        if MICROPYTHON and not (type(out) is memoryview or type(x) is memoryview):
            return False
        d = addressof(out) - addressof(x)
        size = self._turn[_STEP] * (2 if self._int16() else 4)
        g = self.geometry
        row = g.heads * g.head_dim * size
        if kv:
            return 0 - row < d < g.width * size
        return 0 < d < row

    def _refuse(self, what, *about):
        """Raise the error `what`. Its texts are transient: most programs meet none."""
        getattr(load_module("mpy_kv.raise_errors"), what)(self, *about)


if not MICROPYTHON:
    from . import cpython

    addressof = cpython.address  # of port.py it is 0 there
    cpython.look_each_time(Sequence)
