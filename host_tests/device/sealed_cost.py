"""Instructions of attention and of sealing by element type, on the emulated board.

usage: sealed_cost.py    prints JSON {kernels: {width: {kernel: {codec: [at so many tokens, ...]}}, "commit":
{layers: [a commit, one that seals]}}}; tokens as TOKENS below. Of int4 "qk" and "av" count both forms, and
"center", which int8 has not, comes on top.
"""

import json
from array import array

import instructions
from call_cost import cost
from mpy_kv import cache_for, geometry_for, kernels
from mpy_kv.kernels import params as P
from mpy_kv.kernels.int4 import params as P4
from mpy_kv.kernels.tables import TABLES

RUNS = 16
TOKENS = (32, 64, 256)


def fed(name, codec, width):
    """Costs of each kernel when 32, 64 and 256 tokens are seen."""
    g = geometry_for(codec, 1, 1, 1, width, window=TOKENS[-1], sinks=0)
    cache = cache_for(g, kernels=kernels.of(codec).get(name))
    k, q, out = [array("f", [0] * width) for _ in range(3)]
    found = {"qk": [], "weights": [], "av": [], "center": []}
    for t in range(TOKENS[-1]):
        for i in range(width):
            k[i] = (t * 31 + i * 17) % 255 - 127
            q[i] = (t * 13 + i * 29) % 127 - 63
        cache.append(0, k, k)
        if t + 1 in TOKENS:
            cache.attend(0, q, out)
            one = cache.kernels
            buf, a = cache.kernel_arguments()
            for what in found:
                argument = TABLES if what in ("weights", "center") else P.MASK
                sealed = a[P4.SEALED] if codec == "int4" else 0
                if what == "center" and not sealed:
                    found[what].append(0)  # as in an attend
                    continue
                if what == "av":
                    a[P.N] -= sealed  # as in an attend
                seen = cost(RUNS, getattr(one, what), buf, buf, argument, a)
                if what == "av":
                    a[P.N] += sealed
                if what in ("qk", "av") and sealed:
                    seen += cost(RUNS, getattr(one, what + "4"), buf, buf, argument, a)
                found[what].append(seen)
        cache.commit()
    return found


def commits(name, layers):
    """Instructions of a commit, and of one that seals a block of 4 heads of 8 in each layer."""
    g = geometry_for("int4", layers, 8, 4, 8, window=64, sinks=0)
    cache = cache_for(g, kernels=kernels.of("int4").get(name))
    k = array("f", [(i * 91) % 1021 - 510 for i in range(32)])
    seen = []
    for _ in range(48):
        for layer in range(layers):
            cache.append(layer, k, k)
        seen.append(instructions.count(cache.commit))
    return [seen[-2], seen[-1]]


result = {}
for kind in ("viper", "thumb"):
    result[kind] = {"commit": {str(n): commits(kind, n) for n in (1, 5)}}
    for w in (8, 64):
        by_codec = {codec: fed(kind, codec, w) for codec in ("int8", "int4")}
        result[kind][str(w)] = {
            what: {codec: by_codec[codec][what] for codec in by_codec} for what in by_codec["int4"]
        }
print(json.dumps(result))
