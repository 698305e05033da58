"""Seals blocks of fresh rows as they lie in a file, with the kernels of one set.

usage: sealed_blocks.py FILE OUT KERNELS KV_HEADS HEAD_DIM GROUP    FILE: for each block what a layer's fresh
plane holds of 16 tokens: K codes, K scales, V codes, V scales as one slot a token; OUT: for each what the
first sealed block of the layer holds, from its K codes on; printed: blocks
"""

import sys

from mpy_kv import kernels
from mpy_kv.int4_blocks import SealedCache, SealedGeometry


def run(data, name, kv_heads, head_dim, group):
    """The sealed bytes of every block in `data`."""
    g = SealedGeometry(1, kv_heads, kv_heads, head_dim, window=31, sinks=0, group=group)
    cache = SealedCache(g, kernels=kernels.of("int4").get(name))
    size = g.at_codes4
    found = []
    for at in range(0, len(data), size):
        cache.buffer[:size] = data[at : at + size]
        cache.placement.kept[0] = 0  # these are others than those it has sealed
        cache.placement.seal(0, 0)
        found.append(bytes(cache.buffer[size : g.layer_bytes]))
    return found


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as f:
        fresh = f.read()
    sealed = run(fresh, sys.argv[3], *[int(x) for x in sys.argv[4:7]])
    with open(sys.argv[2], "wb") as f:
        for one in sealed:
            f.write(one)
    print(len(sealed))
