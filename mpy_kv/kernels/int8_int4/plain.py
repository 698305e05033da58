"""The kernels of int8-int4 in plain integers: the definition that viper and Thumb must match bit for bit.

av; the others are those of int8 (mpy_kv/kernels/plain.py, whose bounds hold here).
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

from ..plain import sums

# fields: attend, v_run
_RUNS = const(1)
_VCODES = const(6)
_SLICE = const(19)
_V_ROW = const(39)
_V_WIDTH = const(40)
_V_RUNS = const(41)
_V_RUN_COUNT = const(1)
_V_RUN_WORDS = const(2)
# end of fields


def av(buf, same, mask, a):
    """Small weights times the codes of slice a[SLICE], summed over tokens: int32 to SUMS, offset in.

    Arguments as int8's. A nibble counts 16 times, as if it were the byte 16 code + 128: so a lane takes
    240 * 257 < 2^16 (B5), and CORR is what weights() made it for bytes. V_BIAS takes the 16 out of results.
    """
    start = a[_VCODES] + a[_SLICE] * a[_V_WIDTH]
    rows = []
    for r in range(a[_RUNS]):
        run = a[_V_RUNS] // 4 + _V_RUN_WORDS * r
        for i in range(a[run + _V_RUN_COUNT]):
            rows.append(start + a[run] + i * a[_V_ROW])
    return sums(buf, a, rows, 2 * a[_V_WIDTH], lambda row, c: (buf[row + c // 2] >> 4 * (c & 1) & 15) * 16)
