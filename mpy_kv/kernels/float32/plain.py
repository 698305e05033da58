"""The kernels of float32 in plain integers, of which there are no others.

As float16's (bounds F1 to F5 there), with another way to write and read a number. A magnitude of 2^127 or
more is refused: a mean of such, rounded up, would be none.
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

import struct

from ..float16.plain import dots, relative, spare_bits, store, sums
from ..params import DENORMAL
from ..plain import magnitude

# fields: attend
_KEXP = const(20)
_VEXP = const(21)
_HEAD_DIM = const(32)
# end of fields


def encode(buf, k, v, e):
    """One token's K and V of one layer to slot E_SLOT, the bits of float32; int16 exactly.

    Returns as float16's, for a magnitude of 2^127 or more and what is not finite."""
    return store(buf, k, v, e, 4, _put)


def _put(buf, at, x, i, shift):
    _, m, exp = magnitude(x, i, shift)
    if not shift and exp + 150 > 253:
        return False
    buf[at : at + 4] = struct.pack("<f", m * 2.0**exp * (-1 if x[i] < 0 else 1) if shift else x[i])
    return True


def _field(buf, at):
    return buf[at + 3] << 1 & 254 | buf[at + 2] >> 7


def _read(buf, at, top, cut=2):
    e = _field(buf, at)
    if not e:  # zero, or a denormal, which counts as one
        return 0
    f = (128 | buf[at + 2] & 127) << 16 | buf[at + 1] << 8 | buf[at]
    f >>= cut + top - e
    return -f if buf[at + 3] >> 7 else f


def scales(buf, same, which, a):
    """As float16's: a value is f * 2^(top - 148), f = +-mantissa >> 2 + top - own; a key
    f * 2^(top - 143 - k), f = +-mantissa >> 7 - k + top - own."""
    relative(buf, which, a, 4, _field, 1)
    return 0


def qk(buf, same, spare, a):
    """As float16's."""
    cut = 7 - spare_bits(a[_HEAD_DIM])
    return dots(buf, a, 4, lambda buf, at, top: _read(buf, at, top, cut), a[_KEXP] - DENORMAL, -1)


def av(buf, same, spare, a):
    """As float16's."""
    return sums(buf, a, 4, _read, a[_VEXP] - DENORMAL)
