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
from mpy_kv.transient import load_module, unload_all

from . import kernels as kernel_sets

# fields: embed, rope
_ROW_AT = const(3)
_POSITION = const(1)
# end of fields


def make_cache(image, **options):
    """The KVCache of a model: its shape and shifts, and a context its training covers.

    window: recent tokens, default 256 or what seq_len leaves; sinks (4, under a policy 0), capacity, buffer,
    kernels and what else Geometry takes. codec: an element type, or a list of one a layer (default: what the
    image names, or int8); of a list, kernels are sets by element type (mpy_kv/per_layer.py). Raises
    BadArgument if sinks + window, or capacity, is more than seq_len: distances the model never saw.
    """
    return load_module("stories.plan").make_cache(image, **options)


def _programs(m):
    # In a frame of its own: what it leaves on the stack, modules among it, is then overwritten, while a
    # collector that scans the stack would keep what lies in a frame that lives on.
    return load_module("stories.programs").make(m)


class Llama:
    """The model of `image` over `cache` (from make_cache; one cache, one sequence).

    `cache` may be replaced between steps by another of the same geometry: all that belongs to one text is
    in it. A sample belongs to the last step.
    kernels: a set from stories.kernels, default the fastest. row_buffer_bytes: for images that are not
    memory-mapped, how much of a matrix is read at a time (at least one row is).
    room: its largest arrays, where these were made before (workspace.py).
    After step(), `logits` (a memoryview of vocab ints, point 16) holds until the next step or sample. Vectors
    and the parameters of kernels are for programs.py and by_name.py, the two ways in which these are called.
    """

    def __init__(self, image, cache, kernels=None, row_buffer_bytes=4096, room=None):
        self.mapped = image.buffer is not None
        if room is None:
            room = load_module("stories.workspace").made(image, row_buffer_bytes)
        self.workspace, act, self._o, rows = room
        plan = load_module("stories.plan")
        plan.check(image, cache.geometry)
        self.image = image
        self.cache = cache
        self.vocab = image.vocab
        self.layers = image.layers
        self.sinks = cache.geometry.sinks
        (
            self.logits,
            self.q,
            self.q_sinks,
            self.k,
            self.kv_out,
            self.att,
            self.embed,
            self.embed_at,
            self.embed_row_bytes,
            self.norms,
            self.matrices,
            self.widen,
            self.swiglu,
            self.add,
            self.increments,
            self.turn,
            self.cs,
            self.turn_sinks,
            self.cs_sinks,
            self.rotate_q,
            self.rotate_k,
            self.narrow,
            self._ram_bytes,
        ) = plan.arrays(image, self.sinks, self.workspace, act, self._o)
        self.weights, self.norm_weights, self.views, self.chunk, size = plan.weights(
            image, self.norms, self.matrices, self.embed_row_bytes, rows
        )
        self._ram_bytes += size
        plan = rows = room = None
        self.use(kernels or kernel_sets.best())

    def use(self, kernels):
        """Run on that set of kernels from the next step on."""
        self.kernels = kernels
        self.programs = self._by_name = None
        if self.mapped and getattr(kernels, "caller", None):
            unload_all()  # of what made the vectors: both at once are more than a full heap has room for
            self.programs = _programs(self)
        if not self.programs:
            from . import by_name

            self._by_name = by_name.compute

    def ram_bytes(self):
        """Payload of every array this object holds (not the cache, not the image)."""
        return self._ram_bytes

    def logits_parameters(self):
        """array('i') for argmax, softmax and pick: vocab, offset in `workspace`, six more."""
        return array("i", (self.vocab, self._o, 0, 0, 0, 0, 0, 0))

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
        if self.programs:
            self._run(token, logits)
        else:
            self._by_name(self, token, logits)

    @micropython.native
    def _run(self, token, logits):
        """A step by programs.py, from one append to the next."""
        # What a loop reads of an object costs it a hundred instructions each time.
        run = self.kernels.caller
        programs = self.programs
        cache = self.cache
        layers = self.layers
        k = self.k
        v = self.kv_out
        q = self.q
        out = self.att
        q_sinks = None
        if self.sinks:
            q_sinks = self.q_sinks
            self.turn_sinks[_POSITION] = cache.sink_query_position()
        self.turn[_POSITION] = cache.length
        self.embed[_ROW_AT] = self.embed_at + token * self.embed_row_bytes
        layer = 0
        while layer < layers:
            run(programs[layer])
            cache.append(layer, k, v)
            cache.attend(layer, q, out, q_sinks)
            layer += 1
        run(programs[layer])
        if logits:
            run(programs[layer + 1])

    def _refuse(self, token):
        raise BadArgument("token must be 0..%d, got %r" % (self.vocab - 1, token))
