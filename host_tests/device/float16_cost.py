"""Instructions of float16's kernels and of int8's on the emulated board: rows of 8 numbers, 4 KV heads.

usage: float16_cost.py    prints JSON {kernels: {codec: {kernel: [a number, a call at no tokens]}}}; a number
is one of those that float16's scales(), qk() or av() reads. Also "append": of one token's key and value of
32 float32 each
"""

import json
from array import array

from call_cost import cost
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.kernels import params as P

RUNS = 16
FEW, MANY = 64, 128
WIDTH = 32  # of 4 heads


def costs(name, codec):
    g = Geometry(1, 8, 4, 8, window=MANY, sinks=0, codec=codec)
    cache = KVCache(g, kernels=kernels.of(codec).get(name))
    k, q, out = array("f", [0] * WIDTH), array("f", [0] * 2 * WIDTH), array("f", [0] * 2 * WIDTH)
    seen = {"qk": [], "av": [], "scales": []}
    for t in range(MANY):
        for i in range(WIDTH):
            k[i] = ((t * 31 + i * 17) % 255 - 127) / (1 + i % 5)
            q[2 * i] = q[2 * i + 1] = ((t * 13 + i * 29) % 127 - 63) / 20000  # weights of like size
        cache.append(0, k, k)
        if t + 1 in (FEW, MANY):
            cache.attend(0, q, out)
            buf, a = cache.kernel_arguments()
            set_of = cache.kernels
            seen["qk"].append(cost(RUNS, set_of.qk, buf, buf, P.MASK, a))
            seen["av"].append(cost(RUNS, set_of.av, buf, buf, P.MASK, a))
            # As attend calls it: for the first head, and all that share the scales.
            a[P.CODES], a[P.VCODES] = cache.place(0, "k", 0)[0], cache.place(0, "v", 0)[0]
            seen["scales"].append(cost(RUNS, set_of.scales, buf, buf, 0, a))
        cache.commit()
    found = {}
    for kernel in seen:
        few, many = seen[kernel]
        slope = (many - few) / (MANY - FEW)
        found[kernel] = [slope / (WIDTH if kernel == "scales" else g.head_dim), few - slope * FEW]
    cache.append(0, k, k)
    found["append"] = cost(RUNS, cache.kernels.encode, cache.buffer, k, k, cache.attention[0].e)
    return found


print(json.dumps({name: {c: costs(name, c) for c in ("int8", "float16")} for name in ("viper", "thumb")}))
