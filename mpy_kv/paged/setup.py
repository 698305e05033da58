"""What Requests are made of: arguments checked, memory taken, parameters of the kernels written.

Transient (mpy_kv/transient.py). Raises BadArgument or NoRoom before anything the caller could see is changed.
"""

from array import array

from .. import setup
from ..arena import Arena
from ..errors import BadArgument
from ..pools.fixed import FixedPool
from .blocks import Blocks
from .geometry import PagedGeometry
from .prefix import chain_hash


def memory(g, blocks, max_requests, max_pins, buffer, arena, pool, wide_ids):
    """(Blocks, buffer, where the scratch begins)."""
    if not isinstance(g, PagedGeometry):
        raise BadArgument("geometry must be a PagedGeometry, got %s" % type(g).__name__)
    _count("blocks", blocks, 1, 1 << 20)
    _count("max_requests", max_requests, 1, 1000)
    _count("max_pins", max_pins, 0, 1023 - max_requests)
    setup.check(g, g.bytes(blocks))
    if (arena is None) != (pool is None):
        raise BadArgument("arena and pool belong together: give both or neither")
    if pool is None:
        arena = Arena(g.bytes(blocks), buffer)
        scratch = arena.take(g.scratch_bytes)
        pool = FixedPool(arena, blocks, g.block_bytes)
        return Blocks(pool, blocks, g.block_bytes, g.block_tokens, wide_ids, True), arena.buffer, scratch
    if buffer is not None:
        raise BadArgument("buffer and arena: give one of them")
    if not isinstance(arena, Arena):
        raise BadArgument("arena must be an Arena, got %s" % type(arena).__name__)
    for name in ("alloc", "free", "offset", "stats", "buffer"):
        if not hasattr(pool, name):
            raise BadArgument("pool must be one of mpy_kv.pools, %s has no %s" % (type(pool).__name__, name))
    if pool.buffer is not arena.buffer:
        raise BadArgument("pool lies in another arena than arena")
    most = pool.stats()["max_block_bytes"]
    if most < g.block_bytes:
        raise BadArgument("pool gives at most %d bytes, a block has %d" % (most, g.block_bytes))
    scratch = arena.take(g.scratch_bytes)
    return Blocks(pool, blocks, g.block_bytes, g.block_tokens, wide_ids, False), arena.buffer, scratch


def _count(name, value, low, high):
    if type(value) is not int or not low <= value <= high:
        raise BadArgument("%s must be %d..%d, got %r" % (name, low, high, value))


def pin_limit(value, blocks):
    """Most blocks pinned at once."""
    if value is None:
        return blocks // 2
    _count("pin_blocks", value, 0, blocks)
    return value


def attention(g, buffer, scratch, kernels, kv_shift, q_shift, out_shift):
    """What each Request has one like: places of K codes count from where a block begins."""
    kernels = setup.kernel_set(kernels, g.codec)
    k_shift, v_shift, q_shift, out_shift = setup.all_shifts(g.layers, kv_shift, q_shift, out_shift)
    # A run a page, one more where the sinks end within a page, one where a window begins within one.
    a = setup.attention(g, scratch, g.pages + 2)
    codes = array("i", [layer * g.layer_bytes for layer in range(g.layers)])
    e = setup.encoding(g, codes, k_shift, v_shift)
    return setup.computing(g, kernels, buffer, codes, a, e, q_shift, out_shift)


def root_hash(g, identity):
    """Start of every chain's hash: of all that decides which bytes a token is stored as."""
    if not isinstance(identity, (bytes, bytearray)):
        raise BadArgument("identity must be bytes, got %s" % type(identity).__name__)
    text = ("%r" % g).encode() + b"\0" + bytes(identity)
    return chain_hash(0, text, 0, len(text))
