"""The kernels of sparse in plain integers: the definition that viper and Thumb must match bit for bit.

encode and av; the others are those of int8 (mpy_kv/kernels/plain.py, whose bounds hold here). Stored: K as in
int8; V as the package says.
"""

import struct

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
    E_V_CODES,
    E_V_HEAD,
    E_V_ROW,
    E_WIDTH,
    HEAD_DIM,
    QUERIES,
    QUERY,
    RUNS,
    SLICE,
    SLICE_WIDTH,
    SUMS,
    TOO_LARGE,
    UNITS,
    V_ROW,
    V_RUNS,
    V_TOO_LARGE,
    VCODES,
)
from ..plain import code_of, get32, group_scale, put16, put32

_BATCH = 8


def encode(buf, k, v, e):
    """As int8's: one token's K and V of one layer to codes and scales at slot E_SLOT; the same refusals.

    Of a group of n values the n // 4 of the smallest magnitude are dropped, of equal ones the higher channel
    first. Scale and codes are those of the whole group in int8; float32 denormals count as 0.
    """
    table = E_TABLE + 3 * e[E_LAYER]
    codes = e[table] + e[E_SLOT] * e[E_ROW]
    scales = e[table] + e[E_CODES] + 2 * e[E_SLOT]
    if not _encode(buf, k, e, codes, scales, e[table + 1]):
        return TOO_LARGE
    plane = e[table] + e[E_PLANE]
    row = plane + e[E_SLOT] * e[E_V_ROW]
    scale_at = plane + e[E_V_CODES] + 2 * e[E_SLOT]
    shift = e[table + 2]
    n = e[E_GROUP]
    for at in range(e[E_AT], e[E_AT] + e[E_COUNT], n):
        scale = group_scale(v, at, n, shift, 127)
        if scale is None:
            return V_TOO_LARGE
        half, sm, se = scale
        put16(buf, scale_at, half)
        sizes = [_size(v[at + c], shift) for c in range(n)]
        kept = sorted(range(n), key=lambda c: (0 - sizes[c], c))[: n - n // 4]
        for i in range(e[E_V_ROW]):
            buf[row + i] = 0 if i < (n + 7) // 8 else 128
        out = row + (n + 7) // 8
        for c in sorted(kept):
            buf[row + c // 8] |= 1 << c % 8
            buf[out] = 128 + code_of(v, at + c, shift, sm, se)
            out += 1
        row += e[E_V_HEAD]
        scale_at += e[E_STRIDE]
    return 0


def _size(x, shift):
    """A whole number that orders magnitudes: of an int16, or the bits of a float32."""
    if shift:
        return abs(x)
    bits = struct.unpack("<I", struct.pack("<f", x))[0] & 0x7FFFFFFF
    return bits if bits >= 0x800000 else 0


def _encode(buf, x, e, head, scale_at, shift):
    """Whether a key could be stored: codes of head 0 at `head`, scale of group 0 at `scale_at`."""
    at = e[E_AT]
    piece = 0
    for _ in range(e[E_COUNT] // e[E_GROUP]):
        scale = group_scale(x, at, e[E_GROUP], shift, 127)
        if scale is None:
            return False
        half, sm, se = scale
        put16(buf, scale_at, half)
        scale_at += e[E_STRIDE]
        for _ in range(e[E_GROUP] // e[E_WIDTH]):
            out = head + piece * e[E_BYTES]
            for c in range(e[E_BYTES]):
                buf[out + c] = 128 + (code_of(x, at + c, shift, sm, se) if c < e[E_WIDTH] else 0)
            at += e[E_WIDTH]
            piece += 1
            if piece == e[E_SLICES]:
                piece = 0
                head += e[E_HEAD]
    return True


def av(buf, same, mask, a):
    """Small weights times the codes of slice a[SLICE], summed over tokens: int32 to SUMS, offset in.

    Arguments as int8's; `mask` is not read. A channel that is not kept counts as the byte 128, and so do
    those behind the slice up to a multiple of 8.
    """
    own = a[V_RUNS] // 4 - 3
    group = a[own + 1]
    first = (a[QUERY] - a[QUERIES]) // a[own] * a[HEAD_DIM] + a[SLICE] * a[SLICE_WIDTH]
    start = a[VCODES] + first // group * a[own + 2]
    first %= group
    rows = []
    for r in range(a[RUNS]):
        run = a[V_RUNS] // 4 + 2 * r
        for i in range(a[run + 1]):
            row = start + a[run] + i * a[V_ROW]
            rows.append(_bytes(buf, row, group, first, a[SLICE_WIDTH]))
    for c in range(len(rows[0])):
        total = 0
        for b in range(0, len(rows), _BATCH):
            lane = 0
            for t in range(b, min(b + _BATCH, len(rows))):
                lane += rows[t][c] * get32(buf, a[DOTS] + 4 * t)
            w = get32(buf, a[UNITS] + 4 * (b // _BATCH))
            total += lane * (w & 0xFFFF) >> (w >> 16)
        put32(buf, a[SUMS] + 4 * c, total)
    return 0


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
