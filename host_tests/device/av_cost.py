"""Instructions of AV by element type, on the emulated board: slope and rest between 128 and 256 tokens.

usage: av_cost.py    prints JSON {kernels: {codec: {width: [a product, a call at no tokens]}}}, also "append":
instructions of encoding one token's key and value of 32 float32 each
"""

import json
from array import array

from call_cost import cost
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.kernels import params as P

RUNS = 32
FEW, MANY = 128, 256


def av(name, codec, width):
    """[instructions of a product, of a call at no tokens]."""
    g = Geometry(1, 1, 1, width, window=MANY, sinks=0, group=width, codec=codec)
    cache = KVCache(g, kernels=kernels.of(codec).get(name))
    k, q, out = [array("f", [0] * width) for _ in range(3)]
    seen = []
    for t in range(MANY):
        for i in range(width):
            k[i] = (t * 31 + i * 17) % 255 - 127
            q[i] = (t * 13 + i * 29) % 127 - 63
        cache.append(0, k, k)
        if t + 1 in (FEW, MANY):
            cache.attend(0, q, out)
            buf, a = cache.kernel_arguments()
            seen.append(cost(RUNS, cache.kernels.av, buf, buf, P.MASK, a))
        cache.commit()
    slope = (seen[1] - seen[0]) / (MANY - FEW)
    return [slope / width, seen[0] - slope * FEW]


def append(name, codec):
    g = Geometry(1, 8, 4, 8, window=8, sinks=0, codec=codec)
    cache = KVCache(g, kernels=kernels.of(codec).get(name))
    k = array("f", [(i * 91) % 1021 - 510 for i in range(32)])
    cache.append(0, k, k)
    return cost(RUNS, cache.kernels.encode, cache.buffer, k, k, cache.attention[0].e)


found = {}
for name in ("viper", "thumb"):
    found[name] = {}
    for codec in ("int8", "int8-int4"):
        found[name][codec] = {str(width): av(name, codec, width) for width in (8, 64)}
        found[name][codec]["append"] = append(name, codec)
print(json.dumps(found))
