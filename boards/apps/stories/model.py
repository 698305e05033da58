"""A Llama in integers: one token in, logits out; keys and values in an mpy_kv cache.

Shapes come from the image, window and sinks from the cache. Everything is allocated at construction, by
plan.py; step() allocates nothing.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from mpy_kv import cpython as micropython
    from mpy_kv.cpython import const

from array import array

from mpy_kv.errors import BadArgument
from mpy_kv.transient import load_module

from . import kernels as kernel_sets
from .kernels.tables import SIGMOID, SINE

# fields: embed, matvec, rope
_ROW_AT = const(3)
_M_AT = const(0)
_M_ROWS = const(1)
_M_GROUPS = const(2)
_M_SKIP = const(3)
_M_ACT = const(4)
_M_TO = const(5)
_M_EXPONENT = const(6)
_POSITION = const(1)
# end of fields

# Of kernels/layout.py.
_GROUP = const(32)
_MASK = const(0x00FF00FF)


def make_cache(image, **options):
    """The KVCache of a model: its shape and shifts, and a context its training covers.

    window: recent tokens, default 256 or what seq_len leaves; sinks (4, under a policy 0), capacity, buffer,
    kernels and what else Geometry takes. codec: an element type, or a list of one a layer (default: what the
    image names, or int8); of a list, kernels are sets by element type (mpy_kv/per_layer.py). Raises
    BadArgument if sinks + window, or capacity, is more than seq_len: distances the model never saw.
    """
    return load_module("stories.plan").make_cache(image, **options)


class Llama:
    """The model of `image` over `cache` (from make_cache; one cache, one sequence).

    `cache` may be replaced between steps by another of the same geometry: all that belongs to one text is
    in it. A sample belongs to the last step.
    kernels: a set from stories.kernels, default the fastest. row_buffer_bytes: for images that are not
    memory-mapped, how much of a matrix is read at a time (at least one row is).
    After step(), `logits` (a memoryview of vocab ints, point 16) holds until the next step or sample.
    """

    def __init__(self, image, cache, kernels=None, row_buffer_bytes=4096):
        plan = load_module("stories.plan")
        plan.check(image, cache.geometry)
        self.image = image
        self.cache = cache
        self.kernels = kernels or kernel_sets.best()
        self.vocab = image.vocab
        self._layers = image.layers
        self._sinks = cache.geometry.sinks
        (
            self.workspace,
            self.logits,
            self._o,
            self._q,
            self._q_sinks,
            self._k,
            self._kv_out,
            self._att,
            self._embed,
            self._embed_at,
            self._embed_row_bytes,
            self._norms,
            self._matrices,
            self._widen,
            self._swiglu,
            self._add,
            self._inc,
            self._turn,
            self._cs,
            self._turn_sinks,
            self._cs_sinks,
            self._rotate_q,
            self._rotate_k,
            self._narrow,
            self._ram_bytes,
        ) = plan.arrays(image, self._sinks)
        self._mapped = image.buffer is not None
        self._w, self._norm_w, self._views, self._chunk, size = plan.weights(
            image, self._norms, self._matrices, self._embed_row_bytes, row_buffer_bytes
        )
        self._ram_bytes += size

    def ram_bytes(self):
        """Payload of every array this object holds (not the cache, not the image)."""
        return self._ram_bytes

    def logits_parameters(self):
        """array('i') for argmax, softmax and pick: vocab, offset in `workspace`, six more."""
        return array("i", (self.vocab, self._o, 0, 0, 0, 0, 0, 0))

    # Bytecode, half the size of native code: 5 % of a token's time is spent here. A frame of more than 11
    # words (locals and the deepest expression) would lie on the heap, so these methods are short.

    def step(self, token, logits=True):
        """Run one token at position cache.length. logits=False leaves the classifier out (prompts).

        Any exception leaves the cache as it was before the step.
        """
        self.compute(token, logits)
        self.cache.commit()

    def compute(self, token, logits=True):
        """A step without its commit, for a cache that is to be told more of the token."""
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

    def _turn_to(self):
        """The rotary angles of this position."""
        rope_table = self.kernels.rope_table
        if self._sinks:
            self._turn_sinks[_POSITION] = self.cache.sink_query_position()
            rope_table(self._inc, self._cs_sinks, SINE, self._turn_sinks)
        self._turn[_POSITION] = self.cache.length
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
            a[_ROW_AT] = at
        else:
            self.image.read(at, self._views[self._embed_row_bytes], self._embed_row_bytes)
        self.kernels.embed(self._w, self.workspace, a)

    @micropython.native
    def _multiply(self, i):
        """Matrix i times the activation vector."""
        a = self._matrices[i]
        if self._mapped:
            self.kernels.matvec(self._w, self.workspace, _MASK, a)
            return
        c = self._chunk
        c[_M_GROUPS] = a[_M_GROUPS]
        c[_M_SKIP] = a[_M_SKIP]
        c[_M_ACT] = a[_M_ACT]
        c[_M_TO] = a[_M_TO]
        c[_M_EXPONENT] = a[_M_EXPONENT]
        row = a[_M_GROUPS] * _GROUP + a[_M_SKIP]
        most = len(self._w) // row
        at = a[_M_AT]
        left = a[_M_ROWS]
        while left > 0:
            n = most if most < left else left
            self.image.read(at, self._views[n * row], n * row)
            c[_M_ROWS] = n
            self.kernels.matvec(self._w, self.workspace, _MASK, c)
            c[_M_TO] += n
            at += n * row
            left -= n

    def _refuse(self, token):
        raise BadArgument("token must be 0..%d, got %r" % (self.vocab - 1, token))
