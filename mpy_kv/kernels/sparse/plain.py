"""The kernels of sparse in plain integers: the definition that viper must match bit for bit.

encode_values and av; the others are those of int8 (mpy_kv/kernels/plain.py, whose bounds hold here). Stored:
K as in int8; V as the package says.
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

import struct

from ..params import V_TOO_LARGE
from ..plain import code_of, group_scale, put16, sums

# fields: attend, v_run, sparse, encode, vector, layer
_RUNS = const(1)
_VCODES = const(6)
_QUERY = const(17)
_SLICE = const(19)
_SLICE_WIDTH = const(31)
_HEAD_DIM = const(32)
_V_ROW = const(39)
_V_RUNS = const(41)
_QUERIES = const(44)
_V_RUN_COUNT = const(1)
_V_RUN_WORDS = const(2)
_SPARSE_GROUP = const(1)
_SPARSE_STRIDE = const(2)
_SPARSE_WORDS = const(3)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_E_GROUP = const(4)
_E_STRIDE = const(7)
_E_V = const(15)
_E_TABLE = const(21)
_VECTOR_ROW = const(1)
_VECTOR_CODES = const(2)
_VECTOR_HEAD = const(4)
_LAYER_V_SHIFT = const(2)
_LAYER_WORDS = const(3)
# end of fields


def encode_values(buf, k, v, e):
    """One token's V of one layer to bitmaps, codes and scales at slot E_SLOT; refuses as int8's encode does.

    Of a group of n values the n // 4 of the smallest magnitude are dropped, of equal ones the higher channel
    first. Scale and codes are those of the whole group in int8; float32 denormals count as 0. `k`: unread.
    """
    table = _E_TABLE + _LAYER_WORDS * e[_E_LAYER]
    plane = e[table] + e[_E_V]
    row = plane + e[_E_SLOT] * e[_E_V + _VECTOR_ROW]
    scale_at = plane + e[_E_V + _VECTOR_CODES] + 2 * e[_E_SLOT]
    shift = e[table + _LAYER_V_SHIFT]
    n = e[_E_GROUP]
    for at in range(e[_E_AT], e[_E_AT] + e[_E_COUNT], n):
        scale = group_scale(v, at, n, shift, 127)
        if scale is None:
            return V_TOO_LARGE
        half, sm, se = scale
        put16(buf, scale_at, half)
        sizes = [_size(v[at + c], shift) for c in range(n)]
        kept = sorted(range(n), key=lambda c: (0 - sizes[c], c))[: n - n // 4]
        for i in range(e[_E_V + _VECTOR_ROW]):
            buf[row + i] = 0 if i < (n + 7) // 8 else 128
        out = row + (n + 7) // 8
        for c in sorted(kept):
            buf[row + c // 8] |= 1 << c % 8
            buf[out] = 128 + code_of(v, at + c, shift, sm, se)
            out += 1
        row += e[_E_V + _VECTOR_HEAD]
        scale_at += e[_E_STRIDE]
    return 0


def _size(x, shift):
    """A whole number that orders magnitudes: of an int16, or the bits of a float32."""
    if shift:
        return abs(int(x))  # numpy has no 32768 of 16 bits
    bits = struct.unpack("<I", struct.pack("<f", x))[0] & 0x7FFFFFFF
    return bits if bits >= 0x800000 else 0


def av(buf, same, mask, a):
    """Small weights times the codes of slice a[SLICE], summed over tokens: int32 to SUMS, offset in.

    Arguments as int8's; `mask` is not read. A channel that is not kept counts as the byte 128, and so do
    those behind the slice up to a multiple of 8.
    """
    own = a[_V_RUNS] // 4 - _SPARSE_WORDS
    group = a[own + _SPARSE_GROUP]
    first = (a[_QUERY] - a[_QUERIES]) // a[own] * a[_HEAD_DIM] + a[_SLICE] * a[_SLICE_WIDTH]
    start = a[_VCODES] + first // group * a[own + _SPARSE_STRIDE]
    first %= group
    rows = []
    for r in range(a[_RUNS]):
        run = a[_V_RUNS] // 4 + _V_RUN_WORDS * r
        for i in range(a[run + _V_RUN_COUNT]):
            row = start + a[run] + i * a[_V_ROW]
            rows.append(_bytes(buf, row, group, first, a[_SLICE_WIDTH]))
    return sums(buf, a, rows, len(rows[0]), lambda row, c: row[c])


def _bytes(buf, row, group, first, width):
    """Channels first .. first + width of a group's row as int8 stores them, and 128 up to a multiple of 8."""
    found = []
    code = row + (group + 7) // 8
    for c in range(first + width):
        byte = 128
        if buf[row + c // 8] >> c % 8 & 1:
            byte = buf[code]
            code += 1
        if c >= first:
            found.append(byte)
    return found + [128] * ((0 - width) % 8)
