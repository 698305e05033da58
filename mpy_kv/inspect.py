"""What tests, tools and a wary program ask of a sequence: vectors read back, counts, broken invariants.

Transient (mpy_kv/transient.py): no token needs it. Everything here allocates, and all but seek() changes
nothing.
"""

try:
    from micropython import const
except ImportError:
    from .cpython import const

from .errors import BadArgument
from .transient import load_module

# fields: turn
_HIGH = const(2)
_GONE_THEN = const(4)
_THEN = const(5)
# end of fields

named = load_module("mpy_kv.codecs").named


def check_place(cache, layer, which, position):
    """Arguments of place()."""
    cache._check_layer(layer)
    if which not in ("k", "v") or type(position) is not int or position < 0:
        cache._refuse("place", which, position)


def seek(cache, position, turn):
    """As KVCache.seek; turn: of the cache."""
    if type(position) is not int or position < cache.length or position >= 1 << 29:
        cache._refuse("seek", position)
    if cache.geometry.capacity is not None or cache.length < cache.geometry.sinks:
        cache._refuse("seek_early")
    cache.abort()
    cache.placement.floor = position
    turn[_GONE_THEN] = cache._gone - (position - cache.length)
    turn[_THEN] = position
    turn[_HIGH] = position + 1  # beyond the length: where this is cut, the next step aborts
    cache.length = position
    cache._settle_gone()
    turn[_HIGH] = position


def visible(cache, count):
    """As KVCache.visible, of a sequence that shows so many: sinks, and the newest."""
    sinks = min(cache.geometry.sinks, cache.length)
    return list(range(sinks)) + list(range(cache.length - count + sinks, cache.length))


def _codec(cache, layer, position):
    """The codec of what is stored of a token: where a token has two forms, that of the present one."""
    if hasattr(cache, "codec_of"):
        return named(cache.codec_of(layer, position))
    return named(cache.layer_geometry(layer).codec)


def read(cache, layer, which, position):
    """As KVCache.read."""
    if which not in ("k", "v"):
        raise BadArgument("which must be 'k' or 'v', got %r" % (which,))
    if type(position) is not int or position not in cache.visible():
        raise BadArgument("position %r is not visible" % (position,))
    g = cache.layer_geometry(layer)
    codes, scales = cache.place(layer, which, position)
    found = _codec(cache, layer, position).read(cache.buffer, g, which, codes, scales)
    return [c * m * 2.0**e for c, m, e in found]


def stats(cache, pending):
    """As KVCache.stats; pending: layers stored or staged in this step."""
    found = {
        "tokens": cache.length,
        "visible_tokens": len(cache.visible()),
        "evicted_tokens": cache.evicted_tokens,
        "kv_bytes": cache.kv_bytes,
        "buffer_bytes": cache.buffer_bytes,
        "pending_layers": pending,
        "kernels": cache.kernels.name,
    }
    if hasattr(cache, "pool"):
        found["pool"] = cache.pool.stats()
    return found


def settings(cache):
    """As KVCache.settings."""
    P = load_module("mpy_kv.kernels.params")
    g = cache.geometry
    layers = range(g.layers)
    own = [one.geometry for one in cache.attention]
    groups = [one.group if one.groups else None for one in own]
    kv_shift = q_shift = out_shift = None
    one = cache.attention[0]
    if one.q_shift is not None:
        kv_shift = []
        for layer in layers:
            e = cache.attention[layer].e
            at = P.E_TABLE + P.LAYER_WORDS * layer
            kv_shift.append((e[at + P.LAYER_K_SHIFT] - P.BIAS, e[at + P.LAYER_V_SHIFT] - P.BIAS))
        q_shift, out_shift = ([x - P.BIAS for x in of] for of in (one.q_shift, one.out_shift))
    found = {
        "layers": g.layers,
        "heads": g.heads,
        "kv_heads": g.kv_heads,
        "head_dim": g.head_dim,
        "window": g.window if g.capacity is None else None,
        "sinks": g.sinks,
        "capacity": g.capacity,
        "codec": g.codec if isinstance(g.codec, str) else list(g.codec),
        "group": groups[0] if isinstance(g.codec, str) else groups,
        "block_tokens": g.block_tokens,
        "kernels": cache.kernels.name,
        "kv_shift": kv_shift,
        "q_shift": q_shift,
        "out_shift": out_shift,
        "policy": getattr(cache, "policy", None),
    }
    if found["policy"] is not None:
        found["recent"] = cache.plan[load_module("mpy_kv.eviction.tokens.params").RECENT]
    return found


def check_sequence(cache, high, step):
    """As KVCache.check; high, step: of its turn."""
    bad = 0
    length, placement = cache.length, cache.placement
    if placement.floor < 0 or length > high or step < 0:
        bad += 1
    # The newest token may be gone only after seek, rollback or a long prefill cut short.
    return bad + check(cache, placement.floor >= length or placement.lost(high) >= length)


def check(cache, newest_gone):
    """Broken invariants that can be seen from outside; newest_gone: the newest token need not be visible."""
    g = cache.geometry
    positions = cache.visible()
    bad = cache.pool.check() if hasattr(cache, "pool") else 0
    if len(positions) > g.max_visible:
        bad += 1
    if positions != sorted(set(positions)) or (positions and positions[-1] != cache.length - 1):
        if not newest_gone:
            bad += 1
    if cache.evicted_tokens < 0:
        bad += 1
    if len(set([cache.place(0, "k", p) for p in positions])) != len(positions):
        bad += 1
    for layer in range(g.layers):
        own = cache.layer_geometry(layer)
        for which in ("k", "v"):
            for p in positions:
                codes, scales = cache.place(layer, which, p)
                bad += _codec(cache, layer, p).broken(cache.buffer, own, which, codes, scales)
    return bad
