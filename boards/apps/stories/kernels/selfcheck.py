"""Start-up check: a kernel set against the plain twin, on small inputs with the extremes among them.

3 KB at a time, once; where the checksum of all results is not the plain twin's, which stands here, a few
thousand plain operations tell where they differ. The tests compare far more; this is for the firmware that
miscompiles what the tests never saw.
"""

from array import array
from binascii import crc32

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

from mpy_kv.transient import load_module

from .tables import EXP2, SIGMOID, SINE

# fields: of_vector
_ROOT = const(4)
_EXPONENT = const(5)
# end of fields

_COUNT = const(40)  # a group of 32, and one that is padded
_PAD = const(64)
_ROWS = const(3)
_ROW_BYTES = const(_PAD + 4)
_OUT = const(80)  # of v: source vectors before, results from here
_ACTIVATION = const(144)
_SIZE = const(200)

# answers: python tools/answers.py --write
_ANSWER = 0x846A6195
# end of answers


def _noise(count, seed, amplitude):
    """Deterministic ints within +-amplitude, both ends among them."""
    x = seed * 40503 + 12345 & 0xFFFFFF
    values = []
    for _ in range(count):
        x = ((x & 0x7FFFFF) * 73 + 5501 ^ x & 0x800000) & 0xFFFFFF  # (73 x + 5501) mod 2^24, in small ints
        value = amplitude if x & 31 == 1 else (x << 6 ^ x) % (amplitude + 1)
        values.append(value if x >> 11 & 1 else -value)
    return values


def _bytes(count, seed):
    return [(x + 127) % 255 + 1 for x in _noise(count, seed, 127)]


def _int32(values):
    return array("i", values)


def drive(kernels):
    """Yields (kernel name, checksum of what it wrote) through one pass of every kernel.

    Checksums, so that nothing piles up: a board has no room for the 60 vectors they stand for.
    """
    k = kernels
    for amplitude in (0x3FFFFFFF, 70000, 3, 0):
        v = _int32(_noise(_COUNT, 1, amplitude) + _noise(_COUNT, 2, amplitude) + [7] * (_SIZE - 2 * _COUNT))
        w = bytearray(_bytes(_ROWS * _ROW_BYTES, 3))
        for row in range(_ROWS):  # scales of two groups: 4095 and some smaller one
            at = row * _ROW_BYTES + _PAD
            w[at], w[at + 1], w[at + 2], w[at + 3] = 0xFF, 0x0F, 17 * row, row
        x = array("h", _noise(_COUNT, 4, 32767))
        cs = array("h", [0] * 16)
        dst = array("h", [0] * _COUNT)

        a = _int32([_COUNT, _PAD, _OUT, _ACTIVATION, 0, 0, 0, 0, -13, 42950])
        for name, weights, act_exponent in (("norm", x, 3), ("norm", x, -40), ("widen", None, -9)):
            if weights is None:
                a[_ROOT], a[_EXPONENT] = 16384, 5
                k.widen(x, v, a)
            else:
                k.norm(bytes(weights), v, a)
            k.quant(v, a)
            yield name + " or quant", crc32(a, crc32(v))
            m = _int32([0, _ROWS, 2, 4, _ACTIVATION, _OUT, act_exponent])
            k.matvec(w, v, 0x00FF00FF, m)
            yield "matvec", crc32(v)
        a = _int32([_COUNT, _PAD, _OUT, _ACTIVATION, 16384, 0, 0, _COUNT])
        k.swiglu(v, SIGMOID, a)
        yield "swiglu", crc32(a, crc32(v))
        for exponent in (-3, 0, 14):
            k.embed(w, v, _int32([_COUNT, _PAD, _OUT, _ROW_BYTES, exponent]))
            yield "embed", crc32(v)
        k.add(v, _int32([_COUNT, 0, _OUT]))
        k.add(v, _int32([_COUNT, 0, 0]))
        yield "add", crc32(v)
        k.narrow(v, dst, _int32([0, _COUNT]))
        yield "narrow", crc32(dst)
        inc = _int32([683565276, 1072694, 1 << 29, 0 - (1 << 31), 0 - 5])
        for position in (0, 2, 70000):
            k.rope_table(inc, cs, SINE, _int32([5, position]))
            yield "rope_table", crc32(cs)
        for step, gap in ((2, 1), (1, 5)):
            k.rotate(v, dst, cs, _int32([0, 4, 5, step, gap]))
            yield "rotate", crc32(dst)
        for p in (29000, 32768):
            v = _int32([x >> 8 for x in _noise(_COUNT, 5, amplitude)] + [0] * _COUNT)
            a = _int32([_COUNT, 0, 23637, 1, 24, 0, p, 0x1234567])
            top = k.argmax(v, a)
            k.softmax(v, EXP2, a)
            yield "argmax or softmax", crc32(a, crc32(v)) ^ top
            for _ in range(4):
                i = k.pick(v, a)
                yield "pick", crc32(a) ^ i


def compare(reference, candidate):
    """ "" if the sets agree, else the name of the kernel where they first differ."""
    return load_module("mpy_kv.selfcheck").littering(_differing, reference, candidate)


def known(candidate):
    """Whether the set makes of every vector what the plain twin is known to make. If not, compare()."""
    return load_module("mpy_kv.selfcheck").littering(checksums, candidate) == [_ANSWER]


def checksums(kernels):
    """Of all vectors, one number."""
    return [crc32(array("I", [found & 0xFFFFFFFF for _, found in drive(kernels)])) & 0xFFFFFFFF]


def _differing(reference, candidate):
    for want, got in zip(drive(reference), drive(candidate)):
        if want != got:
            return want[0]
    return ""
