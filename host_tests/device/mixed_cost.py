"""Instructions of a token in a KVCache and in a MixedCache, on the emulated board, and what that allocates.

usage: mixed_cost.py    prints JSON {"append" | "attend" | "token": {cache: n}, "allocated": bytes}, n of the
average layer. "uniform": a MixedCache of int8 alone; "alternating": of two element types in turns.
"""

import gc
import json
from array import array

import instructions
import micropython
from mpy_kv import Geometry, KVCache
from mpy_kv.per_layer import MixedCache, MixedGeometry

LAYERS = 4
SHAPE = (LAYERS, 8, 4, 8)
WINDOW = 64
TYPES = ("int8", "int8-int4")
ALL = TYPES + ("float16", "sparse")

k = array("f", [(i * 91) % 1021 - 510 for i in range(32)])
q = array("f", [(i * 57) % 1021 - 510 for i in range(64)])
out = array("f", [0] * 64)


def append(cache):
    for layer in range(LAYERS):
        cache.append(layer, k, k)


def attend(cache):
    for layer in range(LAYERS):
        cache.attend(layer, q, out)


def token(cache):
    append(cache)
    attend(cache)
    cache.commit()


def cost(cache):
    """Of an append, of an attend, of all that is done for a token; the window full, every array known."""
    for _ in range(WINDOW + 3):
        token(cache)
    found = [instructions.count(append, cache), instructions.count(attend, cache)]
    cache.commit()
    found.append(instructions.count(token, cache))
    return [n // LAYERS for n in found]


def allocated(cache):
    """By tokens, rollbacks and aborts."""
    a = b = 0
    token(cache)
    gc.collect()
    micropython.heap_lock()
    a = micropython.mem_total()
    for _ in range(20):
        token(cache)
        append(cache)
        cache.abort()
        cache.rollback(1)
    b = micropython.mem_total()
    micropython.heap_unlock()
    return b - a


def main():
    found = {}
    for name in TYPES:
        found[name] = cost(KVCache(Geometry(*SHAPE, window=WINDOW, sinks=0, codec=name)))
    for label, names in (("uniform", (TYPES[0],) * LAYERS), ("alternating", TYPES * (LAYERS // 2))):
        cache = MixedCache(MixedGeometry(*SHAPE, codec=names, window=WINDOW, sinks=0))
        found[label] = cost(cache)
    shown = {}
    for i, what in enumerate(("append", "attend", "token")):
        shown[what] = {name: found[name][i] for name in found}
    shown["allocated"] = allocated(MixedCache(MixedGeometry(*SHAPE, codec=ALL, window=WINDOW, sinks=0)))
    print(json.dumps(shown))


main()
