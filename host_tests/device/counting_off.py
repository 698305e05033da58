"""Instructions of a token of a cache that was never counted, and of one that was and no longer is.

Prints JSON. Runs on the emulated Cortex-M3 alone. "loaded": whether the module that counts was there then.
"""

import gc
import json
import sys
from array import array

import instructions
import micropython
from mpy_kv import Geometry, KVCache

G = Geometry(1, 2, 1, 16, window=8, sinks=2)
K = array("h", [(7 * i) % 61 - 30 for i in range(16)])
V = array("h", [(5 * i) % 61 - 30 for i in range(16)])
Q = array("h", [(3 * i) % 61 - 30 for i in range(32)])
OUT = array("h", bytes(64))


@micropython.native
def token(cache):
    """Allocates nothing: how long that takes depends on what lies in the heap."""
    layer = 0
    while layer < 1:
        cache.append(layer, K, V)
        cache.attend(layer, Q, OUT)
        layer += 1
    cache.commit()


def cost(cache):
    """Of a token, the least of some: the first finds the interpreter's cache of lookups cold."""
    seen = []
    for _ in range(3):
        gc.collect()
        seen.append(instructions.count(token, cache))
        cache.rollback(1)
    return min(seen)


def made():
    cache = KVCache(G, kv_shift=8)
    for _ in range(6):
        token(cache)
    return cache


def main():
    # No name that is global here: a table of names that grows is looked up in otherwise. And another module
    # first: what any import leaves behind costs a token 320 instructions, once.
    import mpy_kv.eviction.lru  # noqa: F401

    cache = made()
    found = {"never": cost(cache), "loaded": "mpy_kv.kernels.counting" in sys.modules}
    bits = bytes(OUT)
    from mpy_kv.kernels.counting import Book

    book = Book()
    book.count_cache(cache)
    found["counted"] = instructions.count(token, cache)
    found["same"] = bytes(OUT) == bits
    cache.rollback(1)
    found["kv_read"] = book.stages["qk"].kv_read
    book.stop()
    found["after"] = cost(cache)
    found["kernels"] = cache.attention[0].kernels.name
    print(json.dumps(found))


main()
