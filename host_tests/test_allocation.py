"""The hot path allocates nothing, and what is stored survives the garbage collector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

DEVICE = Path(__file__).parent / "device"
TYPES = ("int8", "int8-int4", "sparse", "float16")


@pytest.mark.parametrize("codec", [*TYPES, ",".join(TYPES)])
@pytest.mark.parametrize("kind", ["float32", "int16"])
def test_nothing_is_allocated_per_token(kind: str, codec: str, upy) -> None:
    """Counted by mem_total (which sees frames that heap_lock lets pass) and by mem_alloc, the collector off;
    a run with the heap locked has passed before."""
    measured = json.loads(upy.run(DEVICE / "allocation.py", [kind, codec], heap_bytes=8 << 20))
    assert min(measured.pop("control")) > 0, "the counters see nothing"
    assert len(measured) == 9
    assert measured == {name: [0, 0] for name in measured}


CHURN = """
import gc
from array import array
from mpy_kv import Geometry, KVCache
def cache_of():
    return KVCache(Geometry(2, 2, 1, 8, window=40, sinks=2))
def vector(t, n):
    return array("f", [(t * 7 + i * 5) % 23 - 11 for i in range(n)])
def step(cache, t):
    out = array("f", [0] * 16)
    for layer in (0, 1):
        cache.append(layer, vector(t, 8), vector(t + 1, 8))
        cache.attend(layer, vector(t + 2, 16), out)
    cache.commit()
    return bytes(out)
def churn():
    for _ in range(3):
        gc.collect()
        junk = [bytearray(64) for _ in range(2000)]
        for j in junk:
            for i in range(64):
                j[i] = 0xEE
        junk = None
        gc.collect()
quiet, disturbed = cache_of(), cache_of()
bad = 0
for t in range(60):
    want = step(quiet, t)
    if t % 10 == 5:
        # In the middle of a step too: staged arrays are held by the cache alone.
        for layer in (0, 1):
            disturbed.prefill(layer, vector(t, 8), vector(t + 1, 8), 1)
        churn()
        out = array("f", [0] * 16)
        for layer in (0, 1):
            disturbed.attend(layer, vector(t + 2, 16), out)
        disturbed.commit()
        bad += bytes(out) != want
        churn()
    else:
        bad += step(disturbed, t) != want
g = quiet.geometry
n = g.layers * g.layer_bytes
print(bad, bytes(quiet.buffer)[:n] == bytes(disturbed.buffer)[:n], disturbed.check())
"""


def test_the_collector_leaves_the_cache_alone(upy) -> None:
    assert upy.run(CHURN, heap_bytes=1 << 20).split() == ["0", "True", "0"]


SMALL_HEAP = """
from array import array
from mpy_kv import Geometry, KVCache
g = Geometry(2, 2, 1, 8, window=100, sinks=0)
buffer = bytearray(g.bytes())
cache = KVCache(g, buffer)
assert cache.buffer is buffer and len(buffer) == cache.buffer_bytes == g.bytes()
try:
    KVCache(g, bytearray(g.bytes() - 1))
except Exception as error:
    print(type(error).__name__, error)
"""


def test_the_size_is_exact(upy) -> None:
    """Geometry.bytes() is enough, and one byte less is refused in numbers."""
    said = upy.run(SMALL_HEAP)
    assert said.startswith("BadArgument buffer has ")
    assert said.strip().endswith("needed")
