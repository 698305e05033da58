"""Every call of a native kernel beside the same call of plain: results, buffer, parameters and output.

usage: kernel_twins.py KERNELS [CODEC [N]]    prints the number of calls compared; exits with 1 at the first
difference, naming kernel, shape and place; N: of every Nth shape
Shapes have windows at every remainder of a batch, rings that have wrapped, sinks with a query of their own,
one to three slices, slices of an odd number of words and of no whole word; values are random, zero, equal
and as large as they can be; arrays for the kernels start on every even address (int16) or word (float32).
"""

import sys
from array import array

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.geometry import CODECS
from mpy_kv.kernels.tables import TABLES

# layers, heads, kv_heads, head_dim, window, sinks, group
SHAPES = [(1, 4, 2, 8, 11, 2, None), (1, 2, 1, 12, 9, 0, 4), (1, 2, 2, 6, 3, 1, None)]
SHAPES += [
    (2, 1, 1, 64, 20, 0, None),
    (1, 2, 1, 20, 33, 3, 20),
    (1, 1, 1, 48, 13, 0, 16),
    (1, 3, 3, 1, 5, 1, 1),
]
SHAPES += [(1, 1, 1, 8, window, 0, None) for window in range(14, 23)]
AMPLITUDES = (32767, 900, 3, 1)


class Twins:
    """A kernel set that runs plain, and `native` on copies of all arguments."""

    name = "twins"

    def __init__(self, native):
        self.compared = 0
        self.shape = None
        self.codec = native.codec
        family = kernels.of(native.codec)
        plain = family.get("plain")
        for name in family.names:
            setattr(self, name, self._both(name, getattr(plain, name), getattr(native, name)))

    def _both(self, name, plain, native):
        def kernel(*arguments):
            copies = [self._copy(x) for x in arguments]
            if arguments[1] is arguments[0]:
                copies[1] = copies[0]
            got = native(*copies)
            want = plain(*arguments)
            self.compared += 1
            if got != want:
                self._differs(name, "returns %r, not %r" % (got, want))
            for i, x in enumerate(arguments):
                if type(x) is not int and bytes(x) != bytes(copies[i]):
                    at = [k for k in range(len(x)) if x[k] != copies[i][k]]
                    self._differs(name, "argument %d differs at %s" % (i, at[:8]))
            return want

        return kernel

    @staticmethod
    def _copy(x):
        """Of the same type, and as far from a multiple of 4 bytes as x."""
        if type(x) is int or x is TABLES:
            return x
        if type(x) is memoryview:
            whole = array("h", [0]) + array("h", x)
            return memoryview(whole)[1:]
        if type(x) is bytearray:
            return bytearray(x)
        return array("f" if type(x[0]) is float else "i", x)

    def _differs(self, name, how):
        print("%s, shape %r: %s" % (name, self.shape, how))
        raise SystemExit(1)


class Noise:
    """Deterministic whole numbers."""

    def __init__(self):
        self._x = 1

    def row(self, count, amplitude):
        values = []
        for _ in range(count):
            self._x = self._x * 1103515 + 12345 & 0x3FFFFF
            values.append((self._x >> 5) % (2 * amplitude + 1) - amplitude)
        return values


def vector(values, int16, odd):
    """As the caller of a cache has it; an odd int16 one starts between two words."""
    if not int16:
        return array("f", [x / 512 for x in values])
    return memoryview(array("h", [0] + values))[1:] if odd else memoryview(array("h", values))


def run(twins, shape, int16):
    twins.shape = shape
    layers, heads, kv_heads, head_dim, window, sinks, group = shape
    if not CODECS[twins.codec][2]:
        group = None
    g = Geometry(layers, heads, kv_heads, head_dim, window, sinks, codec=twins.codec, group=group)
    cache = KVCache(g, kv_shift=[(6, 9)] * layers if int16 else None, kernels=twins)
    noise = Noise()
    q_row = heads * head_dim
    for t in range(window + sinks + 6):
        amplitude = AMPLITUDES[t % len(AMPLITUDES)]
        for layer in range(layers):
            rows = [noise.row(count, amplitude) for count in (g.width, g.width, q_row, q_row)]
            if t % 7 == 3:
                rows[t % 4] = [0] * len(rows[t % 4])
            elif t % 7 == 5:
                rows[t % 4] = [amplitude] * len(rows[t % 4])
            elif t % 7 == 6:
                rows[t % 4] = [0 - amplitude] * len(rows[t % 4])
            k, v, q, qs = [vector(row, int16, t & 1) for row in rows]
            cache.append(layer, k, v)
            cache.attend(layer, q, vector([0] * q_row, int16, t & 1), qs if sinks else None)
        cache.commit()


if __name__ == "__main__":
    family = kernels.of(sys.argv[2] if len(sys.argv) > 2 else "int8")
    both = Twins(family.get(sys.argv[1]))
    for each in SHAPES[:: int(sys.argv[3]) if len(sys.argv) > 3 else 1]:
        run(both, each, True)
        run(both, each, False)
    print(both.compared)
