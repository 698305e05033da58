"""Sine, sigmoid and 2^-x tables, made at import from integers only: every interpreter holds the same bits.

1.2 KB together, never written again. Working precision is 60 fractional bits, so each entry is the
correctly rounded one.
"""

from array import array

try:
    from micropython import const
except ImportError:
    from mpy_kv.cpython import const

_BITS = const(60)
_ONE = const(1 << 60)
_PI = const(3622009729038561421)  # floor(pi * 2^60)

_SINE_STEPS = const(256)  # a quarter turn
_SIGMOID_STEPS = const(256)  # 0..16 in sixteenths
_EXP2_STEPS = const(64)  # 0..1


def _series(x, sign):
    """(even, odd) parts of e^x for sign 1, or (cos x, sin x) for sign -1; 0 <= x < 2^60."""
    sums = [_ONE, x]
    term = x
    n = 2
    while term:
        term = (term * x >> _BITS) // n
        sums[n & 1] += term if sign > 0 or not n & 2 else -term
        n += 1
    return sums[0], sums[1]


def _sine():
    """sin(i / 256 * pi/2) * 2^15 for i = 0..256, and the last one again for interpolation."""
    cos1, sin1 = _series(_PI // 2 // _SINE_STEPS, -1)
    table = array("H", bytes(2 * (_SINE_STEPS + 2)))
    cos, sin = _ONE, 0
    for i in range(_SINE_STEPS + 1):
        table[i] = (sin >> (_BITS - 16)) + 1 >> 1
        cos, sin = cos * cos1 - sin * sin1 >> _BITS, sin * cos1 + cos * sin1 >> _BITS
    table[_SINE_STEPS + 1] = table[_SINE_STEPS]
    return table


def _sigmoid():
    """2^15 / (1 + e^-(i/16)) for i = 0..256, and the last one again."""
    even, odd = _series(_ONE // 16, 1)
    step = even - odd  # e^(-1/16)
    table = array("H", bytes(2 * (_SIGMOID_STEPS + 2)))
    e = _ONE
    for i in range(_SIGMOID_STEPS + 1):
        table[i] = ((_ONE << 16) // (_ONE + e)) + 1 >> 1
        e = e * step >> _BITS
    table[_SIGMOID_STEPS + 1] = table[_SIGMOID_STEPS]
    return table


def _isqrt(n):
    """floor(sqrt(n)) for n < 2^122, by Newton from above."""
    root = 1 << 61
    while True:
        better = root + n // root >> 1
        if better >= root:
            return root
        root = better


def _exp2():
    """2^-(i/64) * 2^15 for i = 0..64, and the last one again."""
    step = _ONE // 2
    for _ in range(6):
        step = _isqrt(step << _BITS)
    table = array("H", bytes(2 * (_EXP2_STEPS + 2)))
    e = _ONE
    for i in range(_EXP2_STEPS + 1):
        table[i] = (e >> (_BITS - 16)) + 1 >> 1
        e = e * step >> _BITS
    table[_EXP2_STEPS + 1] = table[_EXP2_STEPS]
    return table


SINE = _sine()
SIGMOID = _sigmoid()
EXP2 = _exp2()

# The tables are made: 1 KB of code is not needed again.
del _series, _sine, _sigmoid, _isqrt, _exp2
