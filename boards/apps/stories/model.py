"""A Llama in integers: one token in, logits out; keys and values in an mpy_kv cache.

Shapes come from the image, window and sinks from the cache. Everything is allocated at construction;
step() allocates nothing. Every 32-bit vector lies in one array('i'), `workspace`:
  x[dim]        residual stream, point 16
  act           activation vector of the matrix at hand, see kernels/plain.py
  o             everything short-lived, each overwriting the one before: normalised vectors, q k v,
                gate and up, results of wo and w_down, logits
"""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

from array import array

from mpy_kv import Geometry, KVCache
from mpy_kv.errors import BadArgument

from . import image as im
from . import kernels as kernel_sets
from .kernels import ACT_GROUP, ACT_HEADER, GROUP, MASK, POINT, ROOT_ONE
from .kernels.tables import SIGMOID, SINE


def _padded(n):
    return (n + GROUP - 1) // GROUP * GROUP


def _ints(*values):
    return array("i", values)


def make_cache(image, window=None, sinks=0, capacity=None, buffer=None, kernels=None, **geometry):
    """The KVCache of a model: its shape and shifts, and a context its training covers.

    window: recent tokens, default 256 or what seq_len leaves. Raises BadArgument if sinks + window, or
    capacity, is more than seq_len: distances the model never saw.
    """
    if capacity is None and window is None:
        window = 256
        if isinstance(sinks, int):
            window = max(1, min(window, image.seq_len - sinks))
    g = Geometry(
        image.layers,
        image.heads,
        image.kv_heads,
        image.head_dim,
        window=window,
        sinks=sinks,
        capacity=capacity,
        **geometry,
    )
    if g.max_visible > image.seq_len:
        if capacity is not None:
            what, remedy = "capacity", "lower capacity to %d" % image.seq_len
        else:
            what = "window %d + sinks %d" % (g.window, g.sinks)
            left = image.seq_len - g.sinks
            remedy = "lower window to %d" % left if left > 0 else "lower sinks below %d" % image.seq_len
        raise BadArgument(
            "a context of %d tokens (%s) is more than the %d the model was trained for: %s"
            % (g.max_visible, what, image.seq_len, remedy)
        )
    shifts = image.shifts()
    return KVCache(
        g,
        buffer=buffer,
        kv_shift=[(s[0], s[1]) for s in shifts],
        q_shift=[s[2] for s in shifts],
        kernels=kernels,
    )


class Llama:
    """The model of `image` over `cache` (from make_cache; one cache, one sequence).

    kernels: a set from stories.kernels, default the fastest. row_buffer_bytes: for images that are not
    memory-mapped, how much of a matrix is read at a time (at least one row is).
    After step(), `logits` (a memoryview of vocab ints, point 16) holds until the next step or sample.
    """

    def __init__(self, image, cache, kernels=None, row_buffer_bytes=4096):
        g = cache.geometry
        for name in ("layers", "heads", "kv_heads", "head_dim"):
            if getattr(g, name) != getattr(image, name):
                raise BadArgument(
                    "the cache has %s %d, the model %d: use make_cache"
                    % (name, getattr(g, name), getattr(image, name))
                )
        if g.max_visible > image.seq_len:
            raise BadArgument(
                "the cache shows %d tokens, the model was trained for %d: lower window"
                % (g.max_visible, image.seq_len)
            )
        self.image = image
        self.cache = cache
        self.kernels = kernels or kernel_sets.best()
        self.vocab = image.vocab
        self._layers = image.layers
        self._sinks = g.sinks
        self._plan(image)
        self._source(image, row_buffer_bytes)

    def _plan(self, image):
        """The workspace and the parameters of every kernel call, in the order of step()."""
        dim, hidden, d = image.dim, image.hidden, image.head_dim
        q, kv = image.heads * d, image.kv_heads * d
        shifts = image.shifts()
        x, act = 0, dim
        o = act + ACT_HEADER + ACT_GROUP * (_padded(max(dim, hidden, q)) // GROUP)
        size = max(_padded(dim), _padded(q), q + 2 * kv, 2 * _padded(hidden), image.vocab)
        self._o = o
        self.workspace = array("i", bytes(4 * (o + size)))
        self.logits = memoryview(self.workspace)[o : o + image.vocab]
        self._q = array("h", bytes(2 * q))
        self._q_sinks = self._q if not self._sinks else array("h", bytes(2 * q))
        self._k = array("h", bytes(2 * kv))
        self._kv_out = array("h", bytes(2 * kv))
        self._att = array("h", bytes(2 * q))

        t = image.tensor(0)
        self._embed = _ints(dim, t.groups * GROUP, x, 0, t.exponent + POINT)
        self._embed_at = t.offset
        self._embed_row_bytes = t.row_bytes
        self._norms = []  # attention's and the feed-forward's of each layer, then the final one
        self._matrices = []  # q, k, v, o, gate, up, down of each layer, then the classifier
        self._widen = []
        for layer in range(image.layers):
            k_shift, v_shift, q_shift = shifts[layer]
            self._norms.append(self._norm(image.layer_tensor(layer, im.ATT_NORM), x, o, act))
            self._norms.append(self._norm(image.layer_tensor(layer, im.FFN_NORM), x, o, act))
            for which, to, point in (
                (im.WQ, o, q_shift),
                (im.WK, o + q, k_shift),
                (im.WV, o + q + kv, v_shift),
                (im.WO, o, POINT),
                (im.W_GATE, o, POINT),
                (im.W_UP, o + _padded(hidden), POINT),
                (im.W_DOWN, o, POINT),
            ):
                self._matrices.append(self._matrix(image.layer_tensor(layer, which), act, to, point))
            # attend() leaves values at v_shift; 14: ROOT_ONE divides
            self._widen.append(_ints(q, _padded(q), o, act, ROOT_ONE, 14 - v_shift))
        self._norms.append(self._norm(image.final_norm(), x, o, act))
        self._matrices.append(self._matrix(image.classifier(), act, o, POINT))
        self._swiglu = _ints(hidden, _padded(hidden), o, act, ROOT_ONE, 0, o, o + _padded(hidden))
        self._add = _ints(dim, x, o)

        pairs = d // 2
        step, gap = (1, pairs) if image.half_split else (2, 1)
        self._inc = image.rope_increments()
        self._turn = _ints(pairs, 0)
        self._cs = array("h", bytes(2 * d))
        self._turn_sinks = _ints(pairs, 0)
        self._cs_sinks = array("h", bytes(2 * d))
        self._rotate_q = _ints(o, image.heads, pairs, step, gap)
        self._rotate_k = _ints(o + q, image.kv_heads, pairs, step, gap)
        self._narrow = _ints(o + q + kv, kv)

    def _norm(self, t, x, o, act):
        image = self.image
        return _ints(image.dim, _padded(image.dim), o, act, 0, 0, t.offset, x, t.exponent, image.eps_q32)

    def _matrix(self, t, act, to, point):
        return _ints(t.offset, t.rows, t.groups, t.skip_bytes, act, to, t.exponent + point)

    def _source(self, image, row_buffer_bytes):
        """Where the kernels find weights: the image itself, or a buffer that rows are read into."""
        self._mapped = image.buffer is not None
        self._w = self._norm_w = image.buffer
        if self._mapped:
            return
        longest = max([m[2] * GROUP + m[3] for m in self._matrices] + [self._embed_row_bytes])
        self._w = bytearray(max(longest, row_buffer_bytes) // 4 * 4)
        view = memoryview(self._w)
        sizes = {self._embed_row_bytes}
        for m in self._matrices:
            row = m[2] * GROUP + m[3]
            rows = len(self._w) // row
            sizes.add(row * min(rows, m[1]))
            sizes.add(row * (m[1] % rows))
        self._views = {n: view[:n] for n in sizes}
        self._chunk = _ints(0, 0, 0, 0, 0, 0, 0)
        # The norm weights are few: they are held in RAM.
        norm_bytes = 2 * image.dim + 3 & ~3
        self._norm_w = bytearray(norm_bytes * len(self._norms))
        for i, a in enumerate(self._norms):
            self._norm_w[i * norm_bytes : i * norm_bytes + 2 * image.dim] = image.bytes_at(
                a[6], 2 * image.dim
            )
            a[6] = i * norm_bytes

    def ram_bytes(self):
        """Payload of every array this object holds (not the cache, not the image)."""
        ints = [self.workspace, self._inc, self._turn, self._turn_sinks, self._embed, self._swiglu]
        ints += [self._add, self._rotate_q, self._rotate_k, self._narrow]
        ints += self._norms + self._matrices + self._widen
        halves = [self._q, self._k, self._kv_out, self._att, self._cs, self._cs_sinks]
        if self._sinks:
            halves.append(self._q_sinks)
        total = 4 * sum([len(x) for x in ints]) + 2 * sum([len(x) for x in halves])
        if not self._mapped:
            total += len(self._w) + len(self._norm_w) + 4 * len(self._chunk)
        return total

    def logits_parameters(self):
        """array('i') for argmax, softmax and pick: vocab, offset in `workspace`, six more."""
        return _ints(self.vocab, self._o, 0, 0, 0, 0, 0, 0)

    # Bytecode, half the size of native code: 5 % of a token's time is spent here. A frame of more than 11
    # words (locals and the deepest expression) would lie on the heap, so these methods are short.

    def step(self, token, logits=True):
        """Run one token at position cache.length. logits=False leaves the classifier out (prompts).

        Any exception leaves the cache as it was before the step.
        """
        if not 0 <= token < self.vocab:
            self._refuse(token)
        self._turn_to()
        self._load(token)
        layer = 0
        while layer < self._layers:
            self._mix_tokens(layer)
            self._mix_channels(layer)
            layer += 1
        if logits:
            self._normalise(2 * layer)
            self._multiply(7 * layer)
        self.cache.commit()

    def _turn_to(self):
        """The rotary angles of this position."""
        rope_table = self.kernels.rope_table
        if self._sinks:
            self._turn_sinks[1] = self.cache.sink_query_position()
            rope_table(self._inc, self._cs_sinks, SINE, self._turn_sinks)
        self._turn[1] = self.cache.length
        rope_table(self._inc, self._cs, SINE, self._turn)

    def _normalise(self, i):
        """x, by the weights of norm i, as an activation vector."""
        a = self._norms[i]
        self.kernels.norm(self._norm_w, self.workspace, a)
        self.kernels.quant(self.workspace, a)

    def _mix_tokens(self, layer):
        """Attention of one layer: x += wo attend(q, k, v)."""
        k = self.kernels
        v = self.workspace
        m = 7 * layer
        self._normalise(2 * layer)
        self._multiply(m)
        self._multiply(m + 1)
        self._multiply(m + 2)
        k.rotate(v, self._k, self._cs, self._rotate_k)
        k.narrow(v, self._kv_out, self._narrow)
        self.cache.append(layer, self._k, self._kv_out)
        k.rotate(v, self._q, self._cs, self._rotate_q)
        if self._sinks:
            k.rotate(v, self._q_sinks, self._cs_sinks, self._rotate_q)
            self.cache.attend(layer, self._q, self._att, self._q_sinks)
        else:
            self.cache.attend(layer, self._q, self._att)
        k.widen(self._att, v, self._widen[layer])
        k.quant(v, self._widen[layer])
        self._multiply(m + 3)
        k.add(v, self._add)

    def _mix_channels(self, layer):
        """The feed-forward of one layer: x += w_down (silu(gate) * up)."""
        k = self.kernels
        v = self.workspace
        m = 7 * layer
        self._normalise(2 * layer + 1)
        self._multiply(m + 4)
        self._multiply(m + 5)
        k.swiglu(v, SIGMOID, self._swiglu)
        k.quant(v, self._swiglu)
        self._multiply(m + 6)
        k.add(v, self._add)

    def _load(self, token):
        """The token's embedding to x."""
        a = self._embed
        at = self._embed_at + token * self._embed_row_bytes
        if self._mapped:
            a[3] = at
        else:
            self.image.read(at, self._views[self._embed_row_bytes], self._embed_row_bytes)
        self.kernels.embed(self._w, self.workspace, a)

    @micropython.native
    def _multiply(self, i):
        """Matrix i times the activation vector."""
        a = self._matrices[i]
        if self._mapped:
            self.kernels.matvec(self._w, self.workspace, MASK, a)
            return
        c = self._chunk
        c[2] = a[2]
        c[3] = a[3]
        c[4] = a[4]
        c[5] = a[5]
        c[6] = a[6]
        row = a[2] * GROUP + a[3]
        most = len(self._w) // row
        at = a[0]
        left = a[1]
        while left > 0:
            n = most if most < left else left
            self.image.read(at, self._views[n * row], n * row)
            c[1] = n
            self.kernels.matvec(self._w, self.workspace, MASK, c)
            c[5] += n
            at += n * row
            left -= n

    def _refuse(self, token):
        raise BadArgument("token must be 0..%d, got %r" % (self.vocab - 1, token))
