"""Start-up check of float16: numbers at the ends of its range."""

from array import array

from .cache import KVCache
from .errors import OutOfRange
from .geometry import Geometry

# One head has small numbers: denormals, their ties, signs of zeros. The other large ones: ties, a carry into
# the next exponent, the largest.
_SMALL = (0.0, -0.0, 2.0**-24, -(2.0**-25), 3 * 2.0**-25, 1023.5 * 2.0**-24, -900 * 2.0**-24, -1e-9)
_LARGE = (2049.0, -2051.0, 4095.0, 65504.0, -65504.0, 1.0, 1e-40, -3.0)
_SMALL_INTS = (0, 1, -1, 3, -2, 16, -900, 1023)
_LARGE_INTS = (2049, 2051, -4095, 32767, -32768, 1025, 100, -30000)
SHIFTS = (None, 20, 31)  # of int16; None: float32


def ends(kernels, shift):
    """(buffer, outputs) of tokens of such numbers, the last two of small ones alone."""
    kind = "f" if shift is None else "h"
    g = Geometry(1, 2, 2, 8, window=2, sinks=0, codec="float16")
    cache = KVCache(g, kv_shift=shift, q_shift=None if shift is None else 0, kernels=kernels)
    small, large = (_SMALL, _LARGE) if shift is None else (_SMALL_INTS, _LARGE_INTS)
    q = array(kind, [30000, -20000, 25000, 15000, -9000, 30000, -28000, 7] * 2)
    nothing = (0,) * 8
    outs = []
    for row in (small + large, nothing + small, small + nothing, small[4:] + small[:4] + nothing):
        x = array(kind, row)
        out = array(kind, [0] * 16)
        cache.append(0, x, x)
        cache.attend(0, q, out)
        cache.commit()
        outs.append(bytes(out))
    return cache.buffer, outs


def _taken(kernels, shift, value):
    """Whether a number is stored that must not be."""
    cache = KVCache(Geometry(1, 1, 1, 1, window=1, sinks=0, codec="float16"), kv_shift=shift, kernels=kernels)
    good, bad = [array("f" if shift is None else "h", [x]) for x in (1, value)]
    for k, v in ((bad, good), (good, bad)):
        try:
            cache.append(0, k, v)
            return True
        except OutOfRange:
            pass
    return False


def not_refused(kernels):
    """Whether what is beyond 65504 is stored."""
    return _taken(kernels, None, 65505.0) or _taken(kernels, -1, -32768)


def compare(reference, candidate):
    """As mpy_kv.selfcheck.compare."""
    for shift in SHIFTS:
        if ends(reference, shift) != ends(candidate, shift):
            return "numbers at the ends of float16"
    return "the refusal of what is beyond 65504" if not_refused(candidate) else ""
