"""What a multiply-accumulate of QK and AV costs in each kernel set, and in C, all in one run.

usage: products.py [NAME FOLDER ...]    FOLDER holds a native module made of twin.c; prints JSON
The unit is the instruction on the emulated board, elsewhere the nanosecond. The cost of a product is the
slope between 256 and 512 visible tokens (128 and 256 on a board), flushes included; what is left at no
tokens is the cost per call.
All variants work on the same bytes in the same run, and must leave the same results: RuntimeError if not.
Prints "+1" whenever something is measured, 8 times a variant.
"""

import gc
import json
import sys
from array import array
from uctypes import addressof, bytearray_at

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.kernels import params as P

try:
    import instructions
except ImportError:  # no emulator
    import time

    instructions = None

SETS = ("plain", "viper", "thumb")
KERNELS = ("qk", "av")
WIDTHS = (8, 64)
FEW, MANY = (256, 512) if instructions is not None else (128, 256)  # which leaves room on a board
MORE = MANY + 100  # by then the ring has wrapped: the visible tokens lie in two runs
RUNS = 32  # calls of which the mean is taken
ROUNDS = 5


def repeat(n, f, args):
    """Call f(*args) n times: spelt out, since a star would allocate."""
    if len(args) == 3:
        a, b, c = args
        while n:
            f(a, b, c)
            n -= 1
    else:
        a, b, c, d = args
        while n:
            f(a, b, c, d)
            n -= 1


def cost(runs, f, args):
    """Of one call, its loop included, the mean of `runs`: instructions, or nanoseconds in the best round."""
    gc.collect()
    if instructions is not None:
        return instructions.count(repeat, runs, f, args) / runs
    seen = []
    for _ in range(ROUNDS):
        start = time.ticks_us()
        repeat(runs, f, args)
        seen.append(time.ticks_diff(time.ticks_us(), start) * 1000 / runs)
    return min(seen)


def twin(folder):
    """The native module in `folder`; two of that name may be loaded."""
    sys.path.insert(0, folder)
    module = __import__("twin")
    sys.path.remove(folder)
    del sys.modules["twin"]
    return module


def geometry(width):
    return Geometry(1, 1, 1, width, window=MANY, sinks=0, group=width)


class Rows:
    """One head with rows of `width` codes, one slice each: what kernels and C loops work on."""

    def __init__(self, width, buffer):
        self.width = width
        self.cache = KVCache(geometry(width), buffer)
        self.buf, self.a = self.cache.kernel_arguments()
        self._k, self._q, self._out = [array("f", [0] * width) for _ in range(3)]
        self._codes = bytearray(width)  # the query as C takes it
        self._dots = array("i", [0] * MANY)
        self._sums = array("i", [0] * width)

    def grow(self, tokens):
        """Go on to so many tokens; the last is attended and stays open, as the kernels see it."""
        cache, k, q = self.cache, self._k, self._q
        if cache.length:
            cache.commit()
        for t in range(cache.length, tokens):
            for i in range(self.width):
                k[i] = ((t * 31 + i * 17) % 255 - 127) / 64
                q[i] = ((t * 13 + i * 29) % 127 - 63) / 32
            cache.append(0, k, k)
            if t < tokens - 1:
                cache.commit()
        cache.attend(0, q, self._out)
        self._unpack()
        at = addressof(self.buf) + self.a[P.DOTS]
        self._weights_at = bytearray_at(at, 4 * self.a[P.N])
        self._weights = bytes(self._weights_at)

    def _unpack(self):
        """The query's codes, from the pairs that the kernels multiply by: see query() in plain.py."""
        at = self.a[P.QUERY] + 16 + 4
        for i in range(0, self.width, 4):
            for odd in range(2):
                word = int.from_bytes(self.buf[at : at + 4], "little")
                low = word & 0xFFFF
                self._codes[i + odd + 2] = low & 0xFF
                self._codes[i + odd] = ((word >> 16) + (low >> 15)) & 0xFF
                at += 4

    def call(self, kernel, variant):
        """(function, arguments) of `kernel` in a kernel set or a twin."""
        if kernel == "av":
            self._weights_at[:] = self._weights  # qk leaves its dots there
        if hasattr(variant, "encode"):
            return getattr(variant, kernel), (self.buf, self.buf, P.MASK, self.a)
        function = getattr(variant, kernel + str(self.width))
        if kernel == "qk":
            return function, (self.buf, self.a, self._codes, self._dots)
        return function, (self.buf, self.a, self._sums)

    def result(self, kernel, variant):
        """The bytes that one call leaves."""
        function, args = self.call(kernel, variant)
        at, size = addressof(self._dots), 4 * self.a[P.N]
        if kernel == "av":
            at, size = addressof(self._sums), 4 * self.width
        if hasattr(variant, "encode"):
            at = addressof(self.buf) + self.a[P.DOTS if kernel == "qk" else P.SUMS]
        place = bytearray_at(at, size)
        for i in range(size):
            place[i] = 0xA5
        function(*args)
        return bytes(place)


def same(rows, variants):
    """RuntimeError unless all variants leave the same bytes."""
    for kernel in KERNELS:
        want = rows.result(kernel, variants["plain"])
        for name in variants:
            if rows.result(kernel, variants[name]) != want:
                raise RuntimeError(
                    "%s of rows of %d, %d tokens: %s differs from plain"
                    % (kernel, rows.width, rows.a[P.N], name)
                )


def measure(width, buffer, variants):
    """{kernel: {variant: cost of a product, ..., "per_call": {variant: cost}}}, results compared."""
    rows = Rows(width, buffer)
    seen = {}
    for tokens in (FEW, MANY):
        rows.grow(tokens)
        same(rows, variants)
        for kernel in KERNELS:
            for name in variants:
                function, args = rows.call(kernel, variants[name])
                seen[kernel, name, tokens] = cost(1 if name == "plain" else RUNS, function, args)
                print("+1")
    rows.grow(MORE)
    same(rows, variants)
    result = {}
    for kernel in KERNELS:
        result[kernel] = {"per_call": {}}
        for name in variants:
            few, many = seen[kernel, name, FEW], seen[kernel, name, MANY]
            result[kernel][name] = (many - few) / ((MANY - FEW) * width)
            result[kernel]["per_call"][name] = few - (many - few) * FEW / (MANY - FEW)
    return result


def main(*twins):
    buffer = bytearray(geometry(WIDTHS[-1]).bytes())  # before anything cuts a board's heap into pieces
    variants, missing = {}, {}
    for name in SETS:
        try:
            variants[name] = kernels.get(name)
        except ValueError as error:
            missing[name] = str(error)
        except MemoryError:
            missing[name] = "kernels %r: no room for them; kvlab deploy --mpy takes less" % name
    for i in range(0, len(twins), 2):
        variants[twins[i]] = twin(twins[i + 1])
    figures = {kernel: {} for kernel in KERNELS}
    for width in WIDTHS:
        gc.collect()
        for kernel, costs in measure(width, buffer, variants).items():
            figures[kernel][str(width)] = costs
    figures["unit"] = "ns" if instructions is None else "instructions"
    figures["tokens"] = [FEW, MANY]
    figures["missing"] = missing
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
