"""MixedCache: a KVCache whose layers differ in element type.

    from mpy_kv.per_layer import MixedCache, MixedGeometry
    g = MixedGeometry(5, 8, 4, 8, codec=["int8", "int8-int4", "int8-int4", "int8", "int8-int4"], window=256)
    cache = MixedCache(g)

One ring and one state for all layers: a token is there in all of them or in none, as in KVCache, with the
same calls and promises. What is stored and computed of a layer is to the bit what a KVCache of its element
type stores and computes. Nothing is switched between layers: each element type has an Attention, and a layer
finds that of its type. They share the buffer and, as layers take turns, the scratch.
Allocates at construction only.
"""

from array import array

from .arena import Arena
from .cache import KVCache, Ring
from .errors import BadArgument
from .geometry import CODECS, Geometry, whole
from .sequence import Sequence
from .transient import load_module


class MixedGeometry:
    """Shape of a cached sequence whose layers differ in element type.

    codec: an element type a layer, of those that a KVCache can have; else as Geometry. group: of the types
    that have scales, or one a layer, the same for a type wherever it is, None for one without scales.
    of(layer) is the Geometry of what a layer stores. Raises BadArgument naming the option.

    The buffer (SPEC.md): the blocks of the layers one after the other, each as a KVCache of its type has it;
    then the scratch, as long as the longest of the types'. With one type it is that KVCache's to the byte.
    """

    block_tokens = None

    def __init__(
        self,
        layers,
        heads,
        kv_heads,
        head_dim,
        codec,
        window=None,
        sinks=None,
        capacity=None,
        group=None,
        group_limit=32,
    ):
        whole("layers", layers, 1, 1024)
        if not isinstance(codec, (list, tuple)) or len(codec) != layers:
            raise BadArgument(
                "codec must be a list of %r element types, one a layer, got %r" % (layers, codec)
            )
        listed = isinstance(group, (list, tuple))
        if listed and len(group) != layers:
            raise BadArgument("group must be one number or %d (one a layer), got %r" % (layers, group))
        self.codec = tuple(codec)
        self.types = {}  # Geometry by element type, in the order of the first layer that has it
        of = {}  # the group asked for, by element type
        for layer in range(layers):
            name = self.codec[layer]
            # What is no type at all, Geometry refuses; it may not even be a key.
            known = isinstance(name, str) and name in CODECS
            if known and name == "int4":
                raise BadArgument("codec int4 seals tokens of all layers together: name it for all or none")
            scaled = not known or CODECS[name][2]
            own = group[layer] if listed else group if scaled else None
            if known and name in self.types:
                if type(own) is not type(of[name]) or own != of[name]:
                    raise BadArgument("group %r: %s has %r in another layer" % (own, name, of[name]))
                continue
            self.types[name] = Geometry(
                layers,
                heads,
                kv_heads,
                head_dim,
                window=window,
                sinks=sinks,
                capacity=capacity,
                codec=name,
                group=own,
                group_limit=group_limit,
            )
            of[name] = own
        if group is not None and not listed and not any([g.groups for g in self.types.values()]):
            raise BadArgument("group %r: no layer has scales" % (group,))
        g = self.types[self.codec[0]]
        self.layers = layers
        self.heads = heads
        self.kv_heads = kv_heads
        self.head_dim = head_dim
        self.window = g.window
        self.sinks = g.sinks
        self.capacity = g.capacity
        self.ring_slots = g.ring_slots
        self.slots = g.slots
        self.max_visible = g.max_visible
        self.width = g.width
        self.at = []  # where the block of each layer begins
        end = 0
        for name in self.codec:
            self.at.append(end)
            end += self.types[name].layer_bytes
        self.layers_bytes = end

    def of(self, layer):
        """The Geometry of what a layer stores; all layers have it in that one."""
        return self.types[self.codec[layer]]

    def bytes(self):
        """Exact length in bytes of the buffer that a MixedCache of this geometry needs."""
        return self.layers_bytes + max([g.bytes() - g.layers * g.layer_bytes for g in self.types.values()])

    def token_bytes(self):
        """Codes and scales of one token in all layers: whole bytes a slice, padding not counted."""
        return sum([g.token_bytes() // g.layers * self.codec.count(name) for name, g in self.types.items()])

    def kv_bytes(self, tokens):
        """Codes and scales of `tokens` visible tokens in all layers (no spare slot, no padding)."""
        return tokens * self.token_bytes()

    def slot(self, position):
        """Slot that holds the token at `position`, in every layer: sinks first, then the ring."""
        return self.of(0).slot(position)

    def __repr__(self):
        return "MixedGeometry(layers=%d, heads=%d, kv_heads=%d, head_dim=%d, %s, codec=%r)" % (
            self.layers,
            self.heads,
            self.kv_heads,
            self.head_dim,
            "window=%d, sinks=%d" % (self.window, self.sinks)
            if self.capacity is None
            else "capacity=%d" % self.capacity,
            list(self.codec),
        )


class _Sets:
    """The kernels of a MixedCache. `name`: of the sets of all types; the sets are its Attentions'."""

    def __init__(self, name):
        self.name = name


class MixedCache(KVCache):
    """`geometry`: a MixedGeometry; `buffer` and the shifts as KVCache.

    kernels: sets by element type, {"int8": a set, ...} (default of each: the fastest that passes the
    self-check).
    """

    # Named here for the same reason as in KVCache.
    append = Sequence.append
    prefill = Sequence.prefill
    attend = Sequence.attend
    commit = Sequence.commit
    abort = Sequence.abort
    rollback = Sequence.rollback
    _begin = Sequence._begin
    _drop = Sequence._drop

    def __init__(self, geometry, buffer=None, kv_shift=None, q_shift=None, out_shift=None, kernels=None):
        g = geometry
        if not isinstance(g, MixedGeometry):
            raise BadArgument("geometry must be a MixedGeometry, got %s" % type(g).__name__)
        if kernels is not None and not isinstance(kernels, dict):
            raise BadArgument("kernels must be sets by element type, got %s" % type(kernels).__name__)
        for name in kernels or ():
            if name not in CODECS:
                known = ", ".join(sorted(CODECS))
                raise BadArgument("kernels: no element type %r; known: %s" % (name, known))
        setup = load_module("mpy_kv.setup")
        size = g.bytes()
        for name in g.types:
            setup.check(g.types[name], size)
        k_shift, v_shift, q_shift, out_shift = setup.all_shifts(g.layers, kv_shift, q_shift, out_shift)
        arena = Arena(size, buffer)  # before the kernels, as setup.parts
        sets = {}
        for name in g.types:
            sets[name] = setup.kernel_set((kernels or {}).get(name), name)
        codes = array("i", [arena.start + at for at in g.at])
        types = {}
        for name in g.types:
            one = g.types[name]
            # The scratch follows all layers, of whatever size these are.
            a = setup.attention(one, arena.start + g.layers_bytes - one.layers * one.layer_bytes)
            e = setup.encoding(one, codes, k_shift, v_shift)
            types[name] = setup.computing(one, sets[name], arena.buffer, codes, a, e, q_shift, out_shift)
        of = [types[name] for name in g.codec]
        Sequence.__init__(self, g, of, Ring(g, [one.e for one in types.values()]))
        names = []
        for name in sets:
            if sets[name].name not in names:
                names.append(sets[name].name)
        self.kernels = _Sets(", ".join(names))
