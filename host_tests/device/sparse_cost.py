"""Instructions of sparse beside int8 on the emulated board, in the shape of stories260K and of a wide head.

usage: sparse_cost.py KERNELS    prints JSON {codec: {"heads of 8" or "head of 64": instructions of AV a token
and value, mean of all heads and slices; "append": of encoding one token's key and value, 32 float32 each}}
"""

import json
import sys
from array import array

from call_cost import cost
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.kernels import params as P

RUNS = 8
FEW, MANY = 64, 128  # of fewer, a batch has so much of the weight that it is split
SHAPES = {"heads of 8": (4, 8), "head of 64": (1, 64)}  # KV heads, head_dim; groups of 32


def noise(x, count):
    """count values by chance, as float32; what is equal in size is rare."""
    values = array("f", [0] * count)
    for i in range(count):
        x = (x * 73 + 5501) & 0xFFFFFF
        values[i] = (x >> 4) - 0x7FFFF
    return values


def all_heads(cache, g):
    """Instructions of AV for every KV head and slice."""
    buf, a = cache.kernel_arguments()
    total = 0
    for head in range(g.kv_heads):
        a[P.QUERY] = a[P.QUERIES] + head * a[P.QUERY_BYTES]
        for piece in range(g.slices):
            a[P.SLICE] = piece
            total += cost(RUNS, cache.kernels.av, buf, buf, P.MASK, a)
    return total


def av(kernel_set, codec, kv_heads, head_dim):
    g = Geometry(1, kv_heads, kv_heads, head_dim, window=MANY, sinks=0, codec=codec)
    cache = KVCache(g, kernels=kernel_set)
    out = array("f", [0] * g.width)
    seen = []
    for t in range(MANY):
        x = noise(t + 1, g.width)
        cache.append(0, x, x)
        if t + 1 in (FEW, MANY):
            cache.attend(0, array("f", [i * 1e-12 for i in x]), out)  # weights of like size
            seen.append(all_heads(cache, g))
        cache.commit()
    return (seen[1] - seen[0]) / (MANY - FEW) / g.width


def append(kernel_set, codec):
    g = Geometry(1, 8, 4, 8, window=8, sinks=0, codec=codec)
    cache = KVCache(g, kernels=kernel_set)
    cache.append(0, noise(1, 32), noise(2, 32))
    total = 0
    for t in range(8):
        k, v, e = noise(t + 3, 32), noise(t + 20, 32), cache.attention[0].e
        total += cost(RUNS, cache.kernels.encode, cache.buffer, k, v, e)
    return total / 8


found = {}
for codec in ("int8", "sparse"):
    kernel_set = kernels.of(codec).get(sys.argv[1])
    found[codec] = {name: av(kernel_set, codec, *shape) for name, shape in SHAPES.items()}
    found[codec]["append"] = append(kernel_set, codec)
print(json.dumps(found))
