"""What joining copies to chains saves: of each transfer that is not begun, its overhead."""

from __future__ import annotations

from dataclasses import dataclass

from mpy_kv import Geometry, KVCache
from mpy_kv.bus.copying import Copying
from mpy_kv.bus.queue import Queue
from mpy_kv.bus.rows import Rows


@dataclass(frozen=True)
class Joined:
    """Tokens of a cache as the device's own queue copies them."""

    pushes: int  # runs of one token's plane each: what copies one by one would be
    descriptors: int
    chains: int  # starts of the core
    nbytes: int


def of_tokens(
    layers: int, heads: int, kv_heads: int, head_dim: int, tokens: int, *, wraps: bool = False
) -> Joined:
    """So many tokens that were appended one after another, of int8, copied to a record layer by layer; wraps:
    the ring ends between them."""
    cache = KVCache(Geometry(layers, heads, kv_heads, head_dim, window=2 * tokens, sinks=0))
    planes = 2 * (kv_heads + cache.geometry.groups)
    record = bytearray(8 * tokens * cache.geometry.token_bytes())
    queue = Queue(2 * planes, (cache.buffer, record))
    rows = Rows(queue, cache, 0, queue.at(1), tokens)
    backend = Copying()
    # A ring has a slot more than it has visible tokens.
    first = 2 * tokens + 1 - tokens // 2 if wraps else 0
    for layer in range(layers):
        if not rows.push(layer, first, tokens):
            raise RuntimeError("a layer's tokens do not fit a queue of their size")
        queue.start(backend)
    moved = tokens * sum(g[0] * g[1] for g in _rows_of(cache)) * layers
    return Joined(layers * planes * tokens, queue.descriptors, queue.started, moved)


def _rows_of(cache: KVCache) -> list[tuple[int, int]]:
    """(bytes of a slot, planes) of each kind of plane of a layer."""
    g = cache.geometry
    return [(g.row_bytes, g.kv_heads), (2, g.groups), (g.v_row_bytes, g.kv_heads), (2, g.groups)]


def saved(pushes: int, descriptors: int, overhead_ns: float, nbytes: int = 0, peak: int = 0) -> float:
    """In %, of the time that `pushes` transfers take one by one: overhead_ns each and, where their bytes
    and the bus's bytes a second are given, these. Of the overhead alone where they are not."""
    alone = pushes * overhead_ns
    bus = 1e9 * nbytes / peak if peak else 0.0
    return 100 * (alone - descriptors * overhead_ns) / (alone + bus) if alone + bus else 0.0
