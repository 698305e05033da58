"""Start-up check of the policy kernels: a set against the plain twin, on tables and scores that catch what
goes wrong: a hole at either end or none, scores far apart and alike, ties, tokens rolled back, masses about
to be halved, rows many and one. Allocates a few KB, once.
"""

from array import array
from binascii import crc32

from ...kernels.tables import TABLES
from ...transient import load_module

P = load_module("mpy_kv.kernels.params")
T = load_module("mpy_kv.eviction.tokens.params")
put32 = load_module("mpy_kv.kernels.plain").put32

_RING = 9
_SINKS = 2
_SCORES = 32  # bytes, behind a query's record
_SCRATCH = (_SINKS + _RING + 1) // 2

# answers: python tools/answers.py --write
_ANSWER = 0x03AA8CAD
# end of answers


def _noise(count, seed, most):
    x = seed * 2654435 + 12345 & 0xFFFFFF
    values = []
    for _ in range(count):
        x = (x * 73 + 5501) & 0xFFFFFF
        values.append((x >> 4) % (most + 1))
    return values


def _plan(**numbers):
    plan = array("i", [0] * (T.ACC + _SINKS + _RING + _SCRATCH))
    plan[T.RING] = _RING
    plan[T.SINKS] = _SINKS
    plan[T.BITS] = 20
    plan[T.ROWS] = 1
    plan[T.HOLE] = _RING
    for name in numbers:
        at = getattr(T, name)
        plan[at] = numbers[name]
    return plan


def _shares(kernels, peak, bits, exponent):
    """Three heads' shares."""
    n = _SINKS + _RING
    plan = _plan(PEAK=peak, BITS=bits)
    buf = bytearray(_SCORES + 4 * n)
    a = array("i", [0] * P.A_COUNT)
    a[P.N] = n
    a[P.SCORES] = _SCORES
    a[P.LOG_SCALE] = 23637
    a[P.LOG_EXP] = 14
    a[P.KEXP] = 12
    put32(buf, 0, 1500)
    put32(buf, 4, 2048 + exponent)
    put32(buf, 8, 3)
    for head in range(3):
        scores = [x - (1 << 22) for x in _noise(n, head + peak, 1 << 23)]
        a[P.MAX] = max(scores)
        for i in range(n):
            put32(buf, _SCORES + 4 * i, scores[i])
        kernels.uses(buf, plan, TABLES, a)
    a[P.SLICE] = 1
    kernels.uses(buf, plan, TABLES, a)
    return list(plan[: T.ACC + n])


def _found(kernels, length, recent):
    plan = _plan(RECENT=recent)
    at = array("i", [5, 0, 9, 3, 12, 8, 6, 0, 14])
    worth = array("i", [7, 1, 4, 4, 0, 4, T.NOW, 2, 3, 0, 0])
    kernels.survey(at, worth, plan, length)
    return list(plan), list(at)


def _watched(kernels, kind, hole, rows, most):
    plan = _plan(HOLE=hole, ROWS=rows, COUNT=_RING - 1, SEEN=_SINKS, THRESHOLD=900, DOWN=3, UP=rows >> 5)
    n = _SINKS + _RING
    plan[T.ACC : T.ACC + n] = array("i", _noise(n, hole, 1800))
    old = array("i", _noise(_RING, rows, most) + [5 * hole % 25, most])  # halved 20 times at most
    new = array("i", [0] * (_RING + 2))
    kernels.watch(plan, old, new, kind)
    return list(new)


def _moved(kernels):
    buf = bytearray(range(40))
    kernels.move(buf, 3, 21, 11)
    return bytes(buf)


def _results(kernels):
    """Yields (kernel and arguments, what it made, as lists of ints)."""
    for peak, bits, exponent in ((0, 20, -14), (0, 3, -30), (1, 20, -8), (1, 15, 9)):
        yield "uses(%d, %d, %d)" % (peak, bits, exponent), (_shares(kernels, peak, bits, exponent),)
    for length, recent in ((13, 0), (20, 9), (9, 20)):
        yield "survey(%d, %d)" % (length, recent), _found(kernels, length, recent)
    for kind in (T.USED, T.MASS, T.DECAYED):
        most = 3 << 27 if kind == T.MASS else 5000
        for hole, rows in ((_RING, 1), (0, 200), (4, 1)):
            made = _watched(kernels, kind, hole, rows, most)
            yield "watch(%d, %d, %d)" % (kind, hole, rows), (made,)
    yield "move", (list(_moved(kernels)),)


def compare(reference, candidate):
    """"" if the sets agree, else where they first differ."""
    for want, got in zip(_results(reference), _results(candidate)):
        if want != got:
            return want[0]
    return ""


def known(candidate):
    """Whether the set makes of every vector what the plain twin is known to make. If not, compare()."""
    return checksums(candidate) == [_ANSWER]


def checksums(kernels):
    """Of all vectors, one number."""
    found = 0
    for _, lists in _results(kernels):
        for values in lists:
            found = crc32(array("i", values), found)
    return [found & 0xFFFFFFFF]
