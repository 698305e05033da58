"""Counts what the hot path allocates on the unix port, in bytes of micropython.mem_total().

usage: allocation.py float32|int16 [CODEC,...]    prints {what: [bytes, operations]} as JSON
Several codecs are those of the layers, in turns.
Each measurement runs once to warm up, once with the heap locked, once counted.
"""

import gc
import json
import sys
from array import array

import micropython
from mpy_kv import cache_for, geometry_for
from mpy_kv.arena import Arena
from mpy_kv.pools.fixed import FixedPool

LAYERS = 5
N = 8  # tokens of a prefill

INT16 = sys.argv[1] == "int16"
KIND = "h" if INT16 else "f"
CODECS = sys.argv[2].split(",") if len(sys.argv) > 2 else ["int8"]
CODEC = CODECS[0] if len(CODECS) == 1 else (CODECS * LAYERS)[:LAYERS]
OPTIONS = {"kv_shift": 8, "q_shift": 7, "out_shift": 9} if INT16 else {}


def filled(count, seed):
    return array(KIND, [(i * 37 + seed * 11) % 201 - 100 for i in range(count)])


def cache_of(**options):
    return cache_for(geometry_for(CODEC, LAYERS, 8, 4, 8, **options), **OPTIONS)


windowed = cache_of(window=24, sinks=4)
roomy = cache_of(capacity=3800)
k, v, q, qs, out = filled(32, 1), filled(32, 2), filled(64, 3), filled(64, 4), filled(64, 5)
outs = [filled(64, layer) for layer in range(LAYERS)]  # an array a layer is no reason to allocate either
ks = [filled(32, layer) for layer in range(LAYERS)]
kn, vn, qn, qsn, outn = (
    filled(32 * N, 1),
    filled(32 * N, 2),
    filled(64 * N, 3),
    filled(64 * N, 4),
    filled(64 * N, 5),
)
k_view, out_view = memoryview(filled(34 * N, 6))[2 * N :], memoryview(outn)
pool = FixedPool(Arena(64 * 64), 64, 64)
handles = array("i", [0] * 64)


def tokens(cache, count):
    while count:
        for layer in range(LAYERS):
            cache.append(layer, ks[layer], v)
            cache.attend(layer, q, outs[layer], qs)
        cache.commit()
        count -= 1


def windowed_tokens(count):
    tokens(windowed, count)


def roomy_tokens(count):
    if roomy.length + count > 3800:
        roomy.rollback(roomy.length)
    tokens(roomy, count)


def prefills(count):
    while count:
        for layer in range(LAYERS):
            windowed.prefill(layer, kn, vn, N)
            windowed.attend(layer, qn, outn, qsn, N)
        windowed.commit()
        count -= 1


def prefills_in_views(count):
    """Without attend on one layer, and with views, which are compared by address."""
    while count:
        for layer in range(1, LAYERS):
            windowed.prefill(layer, k_view, vn, N)
            windowed.attend(layer, qn, out_view, qsn, N)
        windowed.prefill(0, k_view, vn, N)
        windowed.commit()
        count -= 1


def alternating_tokens(count):
    """Two arrays for each argument, in turns."""
    while count:
        for layer in range(LAYERS):
            windowed.append(layer, k if count & 1 else ks[layer], v if count & 1 else k)
            if count & 1:
                windowed.attend(layer, q, out, qs)
            else:
                windowed.attend(layer, out, outs[layer], q)
        windowed.commit()
        count -= 1


def alternating_prefills(count):
    while count:
        for layer in range(LAYERS):
            windowed.prefill(layer, kn if count & 1 else vn, vn if count & 1 else kn, N)
            windowed.attend(layer, qn if count & 1 else qsn, outn, qsn if count & 1 else qn, N)
        windowed.commit()
        count -= 1


def rollbacks(count):
    while count:
        tokens(windowed, 2)
        windowed.append(0, ks[0], v)
        windowed.rollback(1)
        windowed.sink_query_position(3)
        count -= 1


def aborts(count):
    while count:
        windowed.append(0, k, v)
        windowed.attend(0, q, out)
        windowed.abort()
        count -= 1


def blocks(count):
    while count:
        for i in range(64):
            handles[i] = pool.alloc(64)
        for i in range(64):
            pool.lock(handles[i])
            pool.offset(handles[i])
            pool.unlock(handles[i])
        for i in range(64):
            pool.free(handles[i])
        count -= 1


def control(count):
    """What must be seen: a list a time."""
    while count:
        [count]
        count -= 1


def measure(work, count):
    """Bytes allocated by work(count). Names made beforehand: a first store would grow a dict."""
    a = b = 0
    work(3)
    gc.collect()
    if work is not control:
        micropython.heap_lock()
        work(3)
        micropython.heap_unlock()
    gc.disable()
    c = gc.mem_alloc()
    a = micropython.mem_total()
    work(count)
    b = micropython.mem_total()
    c = gc.mem_alloc() - c
    gc.enable()
    return [b - a, c]


measured = {}
for name, count in (
    ("windowed_tokens", 2000),
    ("roomy_tokens", 500),
    ("prefills", 100),
    ("prefills_in_views", 50),
    ("alternating_tokens", 500),
    ("alternating_prefills", 50),
    ("rollbacks", 500),
    ("aborts", 500),
    ("blocks", 50),
    ("control", 10),
):
    measured[name] = measure(globals()[name], count)
print(json.dumps(measured))
