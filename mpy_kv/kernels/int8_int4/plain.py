"""The kernels of int8-int4 in plain integers: the definition that viper and Thumb must match bit for bit.

encode and av; the others are those of int8 (mpy_kv/kernels/plain.py, whose bounds hold here). Stored: K as in
int8; a value's code -7..7 as nibble code + 8, in a byte the low one first, 8 in the padding of a slice.
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

from ..params import TOO_LARGE, V_TOO_LARGE
from ..plain import code_of, get32, group_scale, put16, put32

# fields: attend, v_run, encode, layer
_RUNS = const(1)
_VCODES = const(6)
_DOTS = const(11)
_UNITS = const(15)
_SUMS = const(16)
_SLICE = const(19)
_V_ROW = const(39)
_V_WIDTH = const(40)
_V_RUNS = const(41)
_V_RUN_COUNT = const(1)
_V_RUN_WORDS = const(2)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_E_GROUP = const(4)
_E_WIDTH = const(5)
_E_BYTES = const(6)
_E_SLICES = const(7)
_E_HEAD = const(8)
_E_STRIDE = const(9)
_E_ROW = const(10)
_E_CODES = const(11)
_E_PLANE = const(12)
_E_V_BYTES = const(14)
_E_V_HEAD = const(15)
_E_V_ROW = const(16)
_E_V_CODES = const(17)
_E_TABLE = const(18)
_LAYER_K_SHIFT = const(1)
_LAYER_V_SHIFT = const(2)
_LAYER_WORDS = const(3)
# end of fields

_BATCH = 8


def encode(buf, k, v, e):
    """As int8's: one token's K and V of one layer to codes and scales at slot E_SLOT; the same refusals."""
    table = _E_TABLE + _LAYER_WORDS * e[_E_LAYER]
    codes = e[table] + e[_E_SLOT] * e[_E_ROW]
    scales = e[table] + e[_E_CODES] + 2 * e[_E_SLOT]
    if not _encode(buf, k, e, codes, scales, e[table + _LAYER_K_SHIFT], 127, e[_E_BYTES], e[_E_HEAD]):
        return TOO_LARGE
    plane = e[table] + e[_E_PLANE]
    codes = plane + e[_E_SLOT] * e[_E_V_ROW]
    scales = plane + e[_E_V_CODES] + 2 * e[_E_SLOT]
    if not _encode(buf, v, e, codes, scales, e[table + _LAYER_V_SHIFT], 7, e[_E_V_BYTES], e[_E_V_HEAD]):
        return V_TOO_LARGE
    return 0


def _encode(buf, x, e, head, scale_at, shift, qmax, slice_bytes, head_bytes):
    """Whether a vector could be stored: codes of head 0 at `head`, scale of group 0 at `scale_at`."""
    at = e[_E_AT]
    piece = 0
    for _ in range(e[_E_COUNT] // e[_E_GROUP]):
        scale = group_scale(x, at, e[_E_GROUP], shift, qmax)
        if scale is None:
            return False
        half, sm, se = scale
        put16(buf, scale_at, half)
        scale_at += e[_E_STRIDE]
        for _ in range(e[_E_GROUP] // e[_E_WIDTH]):
            codes = [code_of(x, at + i, shift, sm, se) for i in range(e[_E_WIDTH])]
            at += e[_E_WIDTH]
            codes += [0] * (2 * slice_bytes)
            out = head + piece * slice_bytes
            for i in range(slice_bytes):
                if qmax == 127:
                    buf[out + i] = 128 + codes[i]
                else:
                    buf[out + i] = 8 + codes[2 * i] | 8 + codes[2 * i + 1] << 4
            piece += 1
            if piece == e[_E_SLICES]:
                piece = 0
                head += head_bytes
    return True


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
    for c in range(2 * a[_V_WIDTH]):
        total = 0
        for b in range(0, len(rows), _BATCH):
            lane = 0
            for t in range(b, min(b + _BATCH, len(rows))):
                lane += (buf[rows[t] + c // 2] >> 4 * (c & 1) & 15) * 16 * get32(buf, a[_DOTS] + 4 * t)
            w = get32(buf, a[_UNITS] + 4 * (b // _BATCH))
            total += lane * (w & 0xFFFF) >> (w >> 16)
        put32(buf, a[_SUMS] + 4 * c, total)
    return 0
