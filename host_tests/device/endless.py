"""What one step costs after 100, 70,000 and a million tokens, and that results do not depend on the position.

usage: endless.py KERNELS REAL    REAL: tokens really run; prints JSON
"""

import json
import sys
from array import array

from mpy_kv import Geometry, KVCache, kernels

WINDOW, SINKS, LAYERS = 32, 4, 2


class Counting:
    """A kernel set that counts the calls of another, and the visible tokens they work on."""

    name = "counting"

    def __init__(self, real):
        self.calls = {}
        for name in kernels.NAMES:
            setattr(self, name, self.wrap(name, getattr(real, name)))

    def wrap(self, name, real):
        def kernel(*arguments):
            n = 0
            if name != "encode":
                n = arguments[1 if name == "emit" else -1][0]
            if name == "query":
                n = 0
            calls, tokens = self.calls.get(name, (0, 0))
            self.calls[name] = (calls + 1, tokens + n)
            return real(*arguments)

        return kernel


def vector(sign, seed):
    """No zeros; the sign flips with every turn of the ring, so that all codes of a slot change."""
    return array("f", [sign * (1 + (i * 5 + seed) % 7) for i in range(8)])


KEYS = [memoryview(vector(-1, 1)), memoryview(vector(1, 1))]
VALUES = [memoryview(vector(-1, 2)), memoryview(vector(1, 2))]
QUERIES = [memoryview(array("f", [(t * 3 + i) % 5 - 2 for i in range(8)])) for t in range(5)]
k, v, q = array("f", [0] * 8), array("f", [0] * 8), array("f", [0] * 8)
outs = [array("f", [0] * 8) for _ in range(LAYERS)]


def step(cache, t):
    turn = t // (WINDOW + 1) & 1
    k[:] = KEYS[turn]
    v[:] = VALUES[turn]
    q[:] = QUERIES[t % 5]
    for layer in range(LAYERS):
        cache.append(layer, k, v)
        cache.attend(layer, q, outs[layer], q)
    cache.commit()


def cost(cache, t):
    """Calls and bytes of one step at token t."""
    one = cache.attention[0]
    counting = Counting(cache.kernels)
    one.kernels = counting
    stored = LAYERS * cache.geometry.layer_bytes
    before = bytes(memoryview(cache.buffer)[:stored])
    step(cache, t)
    one.kernels = cache.kernels
    after = bytes(memoryview(cache.buffer)[:stored])
    changed = sum([1 for i in range(stored) if before[i] != after[i]])
    return {
        "calls": counting.calls,
        "changed_bytes": changed,
        "visible": len(cache.visible()),
        "newest": cache.visible()[-1],
        "evicted": cache.evicted_tokens,
    }


def fresh():
    g = Geometry(LAYERS, 1, 1, 8, window=WINDOW, sinks=SINKS)
    return KVCache(g, kernels=kernels.get(sys.argv[1]))


cache = fresh()
real = int(sys.argv[2])
result = {}
while cache.length < real:
    now = cache.length
    if now in (100, 1000):
        result[str(now)] = cost(cache, now)
    else:
        step(cache, now)
result[str(real)] = cost(cache, real)
# Moved on, with one turn of the ring really run up to the millionth token.
cache.seek(1000000 - WINDOW - 1)
for t in range(1000000 - WINDOW - 1, 1000000):
    step(cache, t)
result["million"] = cost(cache, 1000000)

# The same passage behind the same sinks, at any position and so at any place in the ring.
passages = []
for start in (SINKS, 40, 4001, 69007, (1 << 29) - 200):
    cache = fresh()
    for t in range(SINKS):
        step(cache, t)
    cache.seek(start)
    passage = b""
    for t in range(SINKS, SINKS + 80):
        step(cache, t)
        passage += bytes(outs[0]) + bytes(outs[1])
    passages.append(passage)
result["same"] = all([p == passages[0] for p in passages])
print(json.dumps(result))
