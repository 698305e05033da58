"""Caches of floats, small enough for the plain kernels of a board: cases of cases.py, which hands on its set.

float32 has plain kernels only, whatever set is asked for.
"""

from array import array
from binascii import crc32

from mpy_kv import Geometry, KVCache, kernels


def numbers(count, seed, size):
    """Signed numbers of very different sizes, up to about `size`."""
    found = array("f", [0] * count)
    for i in range(count):
        seed = (seed * 5147 + 12347) % 104729
        found[i] = (seed % 4001 - 2000) / 2048 * size / (1 << seed % 11)
    return found


def story(codec, name, size):
    """What nine tokens see in a window of five with a sink, two layers; a checksum of all bytes."""
    g = Geometry(2, 4, 2, 5, window=5, sinks=1, codec=codec)
    cache = KVCache(g, kernels=kernels.of(codec).get(name))
    out, seen = array("f", [0] * 20), []
    for t in range(9):
        for layer in (0, 1):
            at = 10 * t + layer
            cache.append(layer, numbers(10, at, size), numbers(10, at + 2, size))
            cache.attend(layer, numbers(20, at + 4, 2 / size), out, numbers(20, at + 6, 2 / size))
        cache.commit()
        seen.append(list(out))
    return {"out": seen, "crc": crc32(cache.buffer), "key": cache.read(1, "k", 8), "broken": cache.check()}


CASES = {
    "float16 of ordinary size": lambda of: story("float16", of.name, 4.0),
    "float16 of the largest": lambda of: story("float16", of.name, 65504.0),
    "float16 of denormals": lambda of: story("float16", of.name, 2.0**-14),
    "float32 of ordinary size": lambda of: story("float32", "plain", 4.0),
    "float32 of tiny size": lambda of: story("float32", "plain", 2.0**-100),
    "float32 of huge size": lambda of: story("float32", "plain", 2.0**120),
}
