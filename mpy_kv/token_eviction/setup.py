"""Arrays and numbers of a new BudgetCache, and what it refuses to be.

Transient (mpy_kv/transient.py). Raises BadArgument before anything is allocated.
"""

from array import array

from ..errors import BadArgument
from ..eviction import tokens
from ..geometry import Geometry
from ..transient import load_module

T = load_module("mpy_kv.eviction.tokens.params")


def check(g, policy, recent):
    """(kind, peak, recent) of the policy, if a budget cache of this geometry can have it."""
    if not isinstance(g, Geometry) or g.block_tokens is not None:
        raise BadArgument(
            "geometry must be a Geometry, got %s: a policy needs one table of slots, of one element type"
            % type(g).__name__
        )
    if g.sealed:
        raise BadArgument(
            "codec %r seals blocks of 16 tokens, of which a policy cannot drop one: use a window, or another "
            "codec, such as int8-int4" % g.codec
        )
    if g.capacity is not None:
        raise BadArgument("capacity %d: a policy needs a window, which is its budget" % g.capacity)
    if g.max_visible > T.MOST_VISIBLE:
        raise BadArgument(
            "%d tokens visible at once: a policy weighs at most %d; lower window %d"
            % (g.max_visible, T.MOST_VISIBLE, g.window)
        )
    rows = g.layers * g.heads * g.max_visible  # of the longest prefill
    if rows >= 1 << 28:
        raise BadArgument(
            "layers * heads * tokens visible = %d: shares of attention need less than 2^28; lower window %d"
            % (rows, g.window)
        )
    return tokens.made(policy, g.window, recent)


def kernels(like):
    """The set of policy kernels of that name, if there is one here, else the best."""
    if like in ("plain", "viper", "thumb"):
        try:
            return tokens.FAMILY.get(like)
        except ValueError:
            pass
    return tokens.FAMILY.best()


def watch(one, own, plan):
    """Have the heads of an Attention tell uses() of that set what they look at."""
    load_module("mpy_kv.kernels.calls").watch(one, own.uses, plan)


def table(g, kind, peak, recent):
    """(plan, at, (worths, their twin)), see eviction/tokens/plain.py."""
    ring = g.ring_slots
    seen = g.sinks + ring
    plan = array("i", bytes(4 * (T.ACC + seen + (seen + 1) // 2)))
    heads = g.layers * g.heads
    plan[T.RING] = plan[T.HOLE] = plan[T.MOVING] = ring
    plan[T.SINKS] = g.sinks
    plan[T.RECENT] = recent
    plan[T.KIND] = kind
    plan[T.PEAK] = peak
    plan[T.ALL_HEADS] = heads
    plan[T.FRESH] = T.NOW + 1 if kind == T.USED else 0
    bits = plan[T.ROW_BITS] = share_bits(heads)
    plan[T.DOWN] = _length(heads << bits) - 21  # a mass grows by less than 2^21 a row; never below 0
    worth = bytes(4 * (ring + 2))
    return plan, array("i", bytes(4 * ring)), (array("i", worth), array("i", worth))


def planes(g):
    """Of what a layer's block holds of a slot: offset of slot 0, bytes, how many of these, stride; four
    numbers each."""
    scales = (2, g.groups, g.scale_stride)
    v = g.plane_bytes
    rows = (0, g.row_bytes, g.kv_heads, g.head_stride, g.codes_bytes) + scales
    if g.kept:
        rows += (v, g.v_row_bytes, g.groups, g.v_group_stride)
    else:
        rows += (v, g.v_row_bytes, g.kv_heads, g.v_head_stride)
    return array("i", rows + (v + g.v_codes_bytes,) + scales)


def share_bits(rows):
    """Bits of a share of everything where `rows` of them add up to less than 2^29."""
    bits = 29 - _length(rows)
    return bits if bits < T.MOST_BITS else T.MOST_BITS


def _length(n):
    bits = 0
    while n:
        n >>= 1
        bits += 1
    return bits
