"""The kernels of int8-int4 in plain integers: the definition that viper and Thumb must match bit for bit.

encode and av; the others are those of int8 (mpy_kv/kernels/plain.py, whose bounds hold here). Stored: K as in
int8; a value's code -7..7 as nibble code + 8, in a byte the low one first, 8 in the padding of a slice.
"""

from ..params import (
    DOTS,
    E_AT,
    E_BYTES,
    E_CODES,
    E_COUNT,
    E_GROUP,
    E_HEAD,
    E_LAYER,
    E_PLANE,
    E_ROW,
    E_SLICES,
    E_SLOT,
    E_STRIDE,
    E_TABLE,
    E_V_BYTES,
    E_V_CODES,
    E_V_HEAD,
    E_V_ROW,
    E_WIDTH,
    RUNS,
    SLICE,
    SUMS,
    TOO_LARGE,
    UNITS,
    V_ROW,
    V_RUNS,
    V_TOO_LARGE,
    V_WIDTH,
    VCODES,
)
from ..plain import code_of, get32, group_scale, put16, put32

_BATCH = 8


def encode(buf, k, v, e):
    """As int8's: one token's K and V of one layer to codes and scales at slot E_SLOT; the same refusals."""
    table = E_TABLE + 3 * e[E_LAYER]
    codes = e[table] + e[E_SLOT] * e[E_ROW]
    scales = e[table] + e[E_CODES] + 2 * e[E_SLOT]
    if not _encode(buf, k, e, codes, scales, e[table + 1], 127, e[E_BYTES], e[E_HEAD]):
        return TOO_LARGE
    plane = e[table] + e[E_PLANE]
    codes = plane + e[E_SLOT] * e[E_V_ROW]
    scales = plane + e[E_V_CODES] + 2 * e[E_SLOT]
    if not _encode(buf, v, e, codes, scales, e[table + 2], 7, e[E_V_BYTES], e[E_V_HEAD]):
        return V_TOO_LARGE
    return 0


def _encode(buf, x, e, head, scale_at, shift, qmax, slice_bytes, head_bytes):
    """Whether a vector could be stored: codes of head 0 at `head`, scale of group 0 at `scale_at`."""
    at = e[E_AT]
    piece = 0
    for _ in range(e[E_COUNT] // e[E_GROUP]):
        scale = group_scale(x, at, e[E_GROUP], shift, qmax)
        if scale is None:
            return False
        half, sm, se = scale
        put16(buf, scale_at, half)
        scale_at += e[E_STRIDE]
        for _ in range(e[E_GROUP] // e[E_WIDTH]):
            codes = [code_of(x, at + i, shift, sm, se) for i in range(e[E_WIDTH])]
            at += e[E_WIDTH]
            codes += [0] * (2 * slice_bytes)
            out = head + piece * slice_bytes
            for i in range(slice_bytes):
                if qmax == 127:
                    buf[out + i] = 128 + codes[i]
                else:
                    buf[out + i] = 8 + codes[2 * i] | 8 + codes[2 * i + 1] << 4
            piece += 1
            if piece == e[E_SLICES]:
                piece = 0
                head += head_bytes
    return True


def av(buf, same, mask, a):
    """Small weights times the codes of slice a[SLICE], summed over tokens: int32 to SUMS, offset in.

    Arguments as int8's. A nibble counts 16 times, as if it were the byte 16 code + 128: so a lane takes
    240 * 257 < 2^16 (B5), and CORR is what weights() made it for bytes. V_BIAS takes the 16 out of results.
    """
    start = a[VCODES] + a[SLICE] * a[V_WIDTH]
    rows = []
    for r in range(a[RUNS]):
        run = a[V_RUNS] // 4 + 2 * r
        for i in range(a[run + 1]):
            rows.append(start + a[run] + i * a[V_ROW])
    for c in range(2 * a[V_WIDTH]):
        total = 0
        for b in range(0, len(rows), _BATCH):
            lane = 0
            for t in range(b, min(b + _BATCH, len(rows))):
                lane += (buf[rows[t] + c // 2] >> 4 * (c & 1) & 15) * 16 * get32(buf, a[DOTS] + 4 * t)
            w = get32(buf, a[UNITS] + 4 * (b // _BATCH))
            total += lane * (w & 0xFFFF) >> (w >> 16)
        put32(buf, a[SUMS] + 4 * c, total)
    return 0
