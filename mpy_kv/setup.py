"""What KVCache is made of: arguments checked, memory laid out, parameters of the kernels written.

Transient (mpy_kv/transient.py), for a cache is constructed once. Allocates the buffer unless one is given, a
pool and a few small arrays. Raises BadArgument before anything is allocated that the caller could see.
"""

try:
    from micropython import const
except ImportError:
    from .cpython import const

from array import array

from . import kernels as kernel_sets
from .arena import Arena
from .attention import Attention
from .errors import BadArgument
from .geometry import CODECS, MAX_BYTES, MAX_VISIBLE, Geometry
from .pools.fixed import FixedPool
from .transient import load_module

# fields: attend, run, v_run, encode, layer
_ROW = const(2)
_SLICES = const(3)
_WIDTH = const(4)
_SCALE_STRIDE = const(9)
_SCORES = const(10)
_DOTS = const(11)
_KSCALE = const(12)
_VSCALE = const(13)
_SCALE_ROW = const(14)
_UNITS = const(15)
_SUMS = const(16)
_LOG_SCALE = const(26)
_LOG_EXP = const(27)
_V_BIAS = const(28)
_SLICE_WIDTH = const(31)
_HEAD_DIM = const(32)
_QUERY_BYTES = const(33)
_MASK31 = const(36)
_HEADS = const(37)
_QUERY_SET = const(38)
_V_ROW = const(39)
_V_WIDTH = const(40)
_V_RUNS = const(41)
_QUERIES = const(44)
_RUN = const(45)
_RUN_WORDS = const(4)
_V_RUN_WORDS = const(2)
_E_COUNT = const(3)
_E_GROUP = const(4)
_E_WIDTH = const(5)
_E_SLICES = const(6)
_E_STRIDE = const(7)
_E_MASK31 = const(8)
_E_K = const(9)
_E_TABLE = const(21)
_LAYER_K_SHIFT = const(1)
_LAYER_V_SHIFT = const(2)
_LAYER_WORDS = const(3)
# end of fields

# Of kernels/params.py.
_BIAS = const(64)
_DENORMAL = const(10)


def parts(geometry, buffer, kv_shift, q_shift, out_shift, kernels):
    """Arguments are those of KVCache. Returns (pool, Attention of all layers)."""
    if not isinstance(geometry, Geometry) or geometry.block_tokens is not None:
        raise BadArgument("geometry must be a Geometry, got %s" % type(geometry).__name__)
    check(geometry, geometry.bytes())
    k_shift, v_shift, q_shift, out_shift = all_shifts(geometry.layers, kv_shift, q_shift, out_shift)
    # The largest object first: loading kernels cuts a board's heap into pieces.
    arena = Arena(geometry.bytes(), buffer)
    kernels = kernel_set(kernels, geometry.codec)
    pool, codes = layer_blocks(geometry, arena)
    a = attention(geometry, arena.start)
    e = encoding(geometry, codes, k_shift, v_shift)
    return pool, computing(geometry, kernels, arena.buffer, codes, a, e, q_shift, out_shift)


def kernel_set(kernels, codec):
    """The given set of kernels, or the best for this element type; BadArgument if it is none."""
    if kernels is None:
        return kernel_sets.of(codec).best()
    for name in kernel_sets.NAMES + ("name",):
        if not hasattr(kernels, name):
            raise BadArgument(
                "kernels must be a set from mpy_kv.kernels.get(name); %r has no %s" % (kernels, name)
            )
    made_for = getattr(kernels, "codec", "int8")
    if made_for != codec:
        raise BadArgument("kernels %r are for codec %r, not %r" % (kernels.name, made_for, codec))
    return kernels


def check(g, size):
    """Whether a cache of that geometry, in a buffer of `size` bytes, can be."""
    if g.sealed:
        raise BadArgument(
            "codec %r lies in sealed blocks: it takes a mpy_kv.int4_blocks.SealedCache"
            " (mpy_kv.cache_for finds it)"
            % g.codec
        )
    check_size(g, size)


def check_size(g, size):
    """Whether the kernels can attend that many tokens, and a board address that many bytes."""
    what = "window" if g.capacity is None else "capacity"
    if g.max_visible > MAX_VISIBLE:
        raise BadArgument(
            "%d tokens visible at once: at most %d; lower %s %d"
            % (g.max_visible, MAX_VISIBLE, what, g.window)
        )
    if size >= MAX_BYTES:
        raise BadArgument(
            "the buffer needs %d bytes, a board addresses less than 2^30; lower %s %d"
            % (size, what, g.window)
        )


def all_shifts(layers, kv_shift, q_shift, out_shift):
    """Of k, v, q and out, one array of a number a layer each: BIAS + shift. Of float32 0, and for the last
    two None."""
    if kv_shift is None:
        if q_shift is not None or out_shift is not None:
            raise BadArgument("q_shift and out_shift need kv_shift (int16 input)")
        floats = array("i", [0] * layers)
        return floats, floats, None, None
    pairs = [(s, s) if type(s) is int else s for s in _per_layer("kv_shift", kv_shift, layers)]
    for s in pairs:
        if not isinstance(s, (list, tuple)) or len(s) != 2:
            raise BadArgument(
                "kv_shift of a layer must be a whole number or (k_shift, v_shift), got %r" % (s,)
            )
    k = _shifts("kv_shift", [s[0] for s in pairs], layers, None)
    v = _shifts("kv_shift", [s[1] for s in pairs], layers, None)
    return k, v, _shifts("q_shift", q_shift, layers, k), _shifts("out_shift", out_shift, layers, v)


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
    return array("i", [_BIAS + s for s in value])


def layer_blocks(g, arena):
    """A pool with a locked block for each layer, and where in the buffer each begins; nothing is left."""
    pool = FixedPool(arena, g.layers, g.layer_bytes)
    codes = array("i", [0] * g.layers)
    for layer in range(g.layers):
        block = pool.alloc(g.layer_bytes)
        pool.set_owner(block, layer)
        pool.lock(block)
        codes[layer] = pool.offset(block)
    arena.take(arena.free_bytes())
    return pool, codes


def attention(g, first, runs=3):
    """The parameters `a`; first: what the geometry's offsets of scratch count from; runs: the most there can
    be, 3 of a ring."""
    k_bits, v_bits = CODECS["int8" if g.sealed else g.codec][:2]
    v_runs = k_bits != v_bits
    # Sparse's av() has three of its own before V's runs, see kernels/sparse.
    own = (g.heads // g.kv_heads * g.query_bytes, g.group, g.v_group_stride) if g.kept else ()
    at = _RUN + _RUN_WORDS * runs
    a = array("i", [0] * (at + len(own) + (_V_RUN_WORDS * runs if v_runs else 0)))
    for value in own:
        a[at] = value
        at += 1
    if v_runs:
        a[_V_RUNS] = 4 * at
    a[_ROW] = g.row_bytes
    a[_V_ROW] = g.v_row_bytes
    a[_V_WIDTH] = g.v_slice_bytes
    # What codes of fewer bits count more often in sums than those of 8 is taken out of results. Of floats the
    # exponent is another than that of int8's scale for the same sums: kernels/float16/plain.py.
    floats = {16: 6, 32: 118}.get(k_bits, 0)
    a[_V_BIAS] = 36 + _DENORMAL + floats + (0 if g.kept or floats else 8 - v_bits)
    a[_SLICES] = g.slices
    a[_WIDTH] = (g.slice_width + 3) // 4 * 4
    a[_SLICE_WIDTH] = g.slice_width
    a[_SCALE_STRIDE] = g.scale_stride
    a[_SCORES] = first + g.at_scores
    a[_DOTS] = first + g.at_dots
    a[_KSCALE] = first + g.at_kscale
    a[_VSCALE] = first + g.at_vscale
    a[_SCALE_ROW] = g.scale_row
    a[_UNITS] = first + g.at_units
    a[_SUMS] = first + g.at_sums
    a[_QUERIES] = first + g.at_queries
    a[_QUERY_BYTES] = g.query_bytes
    a[_QUERY_SET] = g.query_words
    a[_HEADS] = g.heads
    a[_HEAD_DIM] = g.head_dim
    a[_MASK31] = 0x7FFFFFFF
    a[_LOG_SCALE], a[_LOG_EXP] = _log_scale(g.head_dim)
    a[_LOG_EXP] += floats + _DENORMAL
    return a


def computing(g, kernels, buffer, codes, a, e, q_shift, out_shift):
    """An Attention of these."""
    v_runs = None
    if a[_V_RUNS]:
        from .value_runs import v_runs
    one = Attention(g, kernels, buffer, codes, a, e, v_runs, q_shift, out_shift)
    if getattr(kernels, "caller", None) is None:
        one.call_by_name()
    else:
        load_module("mpy_kv.kernels.calls").use(one, kernels)
    return one


def encoding(g, codes, k_shift, v_shift):
    """The parameters `e`."""
    e = array("i", [0] * (_E_TABLE + _LAYER_WORDS * g.layers))
    e[_E_COUNT] = g.width
    e[_E_GROUP] = g.group if g.groups else g.head_dim
    e[_E_WIDTH] = g.slice_width
    e[_E_SLICES] = g.slices
    e[_E_STRIDE] = g.scale_stride
    e[_E_MASK31] = 0x7FFFFFFF
    # Of sparse values int8's encode() stores none.
    most = 0 if g.kept else 7 if CODECS[g.codec][:2] == (8, 4) else 127
    v_head = g.v_group_stride if g.kept else g.v_head_stride
    keys = (0, g.row_bytes, g.codes_bytes, g.slice_bytes, g.head_stride, 127)
    values = (g.plane_bytes, g.v_row_bytes, g.v_codes_bytes, g.v_slice_bytes, v_head, most)
    for i, word in enumerate(keys + values):
        e[_E_K + i] = word
    for layer in range(g.layers):
        at = _E_TABLE + _LAYER_WORDS * layer
        e[at] = codes[layer]
        e[at + _LAYER_K_SHIFT] = k_shift[layer]
        e[at + _LAYER_V_SHIFT] = v_shift[layer]
    return e


def _log_scale(head_dim):
    """log2(e) / sqrt(head_dim) as (mantissa of 15 bits, e): mantissa * 2^-e."""
    # isqrt of head_dim * 2^60, by Newton from above: enough bits that every head_dim rounds right
    n = head_dim << 60
    root = 1 << ((n.bit_length() if hasattr(n, "bit_length") else _bits(n)) // 2 + 1)
    while True:
        better = (root + n // root) >> 1
        if better >= root:
            break
        root = better
    x = (1549082005 << 50) // root  # log2(e) * 2^30, over root = sqrt(head_dim) * 2^30
    e = 50
    while x >= 1 << 16:
        x >>= 1
        e -= 1
    x = (x + 1) >> 1
    e -= 1
    if x == 1 << 15:
        x >>= 1
        e -= 1
    return x, e


def _bits(n):
    bits = 0
    while n:
        n >>= 1
        bits += 1
    return bits
