"""encode and av of int8-int4 as native code: the bits of plain.py here. Style and limits: ../viper.py."""

import micropython
from micropython import const

_WIDE = const(0)

# fields: attend, run, v_run, sparse, query, encode, layer
_N = const(0)
_VCODES = const(6)
_DOTS = const(11)
_UNITS = const(15)
_SUMS = const(16)
_SLICE = const(19)
_V_ROW = const(39)
_V_WIDTH = const(40)
_V_RUNS = const(41)
_V_RUN_CODES = const(0)
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
_E_MASK31 = const(13)
_E_V_BYTES = const(14)
_E_V_HEAD = const(15)
_E_V_ROW = const(16)
_E_V_CODES = const(17)
_E_TABLE = const(18)
_LAYER_CODES = const(0)
_LAYER_K_SHIFT = const(1)
_LAYER_V_SHIFT = const(2)
_LAYER_WORDS = const(3)
# end of fields


@micropython.viper
def encode(out: ptr8, k: ptr8, v: ptr8, e: ptr32) -> int:
    base = int(out)
    layer = ptr32(int(e) + 4 * _E_TABLE + int(e[_E_LAYER]) * (4 * _LAYER_WORDS))
    mask31 = int(e[_E_MASK31])
    value = 0
    while value < 2:
        shift = int(layer[_LAYER_K_SHIFT])
        x = int(k)
        head = base + int(layer[_LAYER_CODES]) + int(e[_E_SLOT]) * int(e[_E_ROW])
        scale_at = base + int(layer[_LAYER_CODES]) + int(e[_E_CODES]) + (int(e[_E_SLOT]) << 1)
        slice_bytes = int(e[_E_BYTES])
        most = 127
        if value:
            shift = int(layer[_LAYER_V_SHIFT])
            x = int(v)
            head = base + int(layer[_LAYER_CODES]) + int(e[_E_PLANE])
            scale_at = head + int(e[_E_V_CODES]) + (int(e[_E_SLOT]) << 1)
            head += int(e[_E_SLOT]) * int(e[_E_V_ROW])
            slice_bytes = int(e[_E_V_BYTES])
            most = 7
        x += int(e[_E_AT]) << (1 if shift else 2)
        piece = 0
        groups = int(e[_E_COUNT]) // int(e[_E_GROUP])  # viper: allow divide because a group has values
        while groups:
            groups -= 1
            # Largest magnitude of the group, as 24 bits and an exponent.
            big = 0
            n = int(e[_E_GROUP])
            if shift:
                p16 = ptr16(x)
                while n:
                    w = int(p16[0])
                    if w & 0x8000:
                        w = 65536 - w
                    if w > big:
                        big = w
                    p16 = ptr16(int(p16) + 2)
                    n -= 1
                ex = 64 - shift
                if big:
                    big = big << 8
                    ex -= 8
                    while big < 0x800000:
                        big = big << 1
                        ex -= 1
            else:
                p32 = ptr32(x)
                while n:
                    w = int(p32[0]) & mask31
                    if w > big:
                        big = w
                    p32 = ptr32(int(p32) + 4)
                    n -= 1
                ex = big >> 23
                if ex:
                    big = (big & 0x7FFFFF) | 0x800000
                else:
                    big = 0
                ex -= 150
            # Smallest float16 scale sm * 2^se with most * scale >= largest.
            sm = 1
            se = 0
            half = 0
            if big:
                t = (big + most - 1) // most  # viper: allow divide because most is 127 or 7
                cut = 5
                sm = 2048
                while sm > 2047:
                    cut += 1
                    sm = (t + (1 << cut) - 1) >> cut
                se = ex + cut
                if se > 5:
                    return 0 - 1 - value
                if se < -24:
                    cut += -24 - se
                    if cut > 30:
                        sm = 1
                    else:
                        sm = (t + (1 << cut) - 1) >> cut
                    se = -24
                    half = sm
                else:
                    half = ((se + 25) << 10) + sm - 1024
            p16 = ptr16(scale_at)
            p16[0] = half
            scale_at += int(e[_E_STRIDE])
            two = sm << 1
            inv = (1 << 23) // two  # viper: allow divide because sm is at least 1
            # Codes: floor((2|x| + s) / 2s); the reciprocal may fall one short, never over. A code of V is
            # first put in the low nibble with 8 above it, to which the next one is added.
            pieces = int(e[_E_GROUP]) // int(e[_E_WIDTH])  # viper: allow divide because a piece has values
            while pieces:
                pieces -= 1
                out = ptr8(head + piece * slice_bytes)
                pad = 128 + (value << 3)
                above = 0
                end = int(out) + slice_bytes
                c = int(e[_E_WIDTH])
                while c:
                    if shift:
                        w = int(ptr16(x)[0])
                        x += 2
                        neg = w & 0x8000
                        if neg:
                            w = 65536 - w
                        cut = shift + se - 65
                        if cut < 1:
                            w = w << (0 - cut)
                        elif cut < 31:
                            w = w >> cut
                        else:
                            w = 0
                    else:
                        w = int(ptr32(x)[0])
                        x += 4
                        neg = (w >> 31) & 1
                        cut = se + 149 - ((w >> 23) & 255)
                        if cut < 24:
                            w = ((w & 0x7FFFFF) | 0x800000) >> cut
                        else:
                            w = 0
                    w += sm
                    code = (w * inv) >> 23
                    if w - code * two >= two:
                        code += 1
                    if neg:
                        code = 0 - code
                    if above:
                        out[0] = int(out[0]) + (code << 4)
                        above = 0
                    else:
                        out[0] = pad + code
                        above = value
                    if above == 0:
                        out = ptr8(int(out) + 1)
                    c -= 1
                out = ptr8(int(out) + above)
                while int(out) < end:
                    out[0] = pad
                    out = ptr8(int(out) + 1)
                piece += 1
                if piece == int(e[_E_SLICES]):
                    piece = 0
                    head += int(e[_E_V_HEAD]) if value else int(e[_E_HEAD])
        value += 1
    return 0


@micropython.viper
def av(v: ptr32, p: ptr32, m: int, a: ptr32) -> int:
    base = int(v)
    m = m & 0xF000F0
    row = int(a[_V_ROW])
    width = int(a[_V_WIDTH])
    col = 0
    while col < width:
        o = ptr32(base + int(a[_SUMS]) + (col << 3))
        o[0] = 0
        o[1] = 0
        o[2] = 0
        o[3] = 0
        o[4] = 0
        o[5] = 0
        o[6] = 0
        o[7] = 0
        sh = ptr32(base + int(a[_UNITS]))
        p = ptr32(base + int(a[_DOTS]))
        v_run = ptr32(int(a) + int(a[_V_RUNS]))
        total = int(a[_N])
        n = 0
        s0 = 0
        s1 = 0
        s2 = 0
        s3 = 0
        while total:
            # A batch: 8 tokens, or what is left; it may span runs.
            batch = 8
            if total < 8:
                batch = total
            total -= batch
            while batch:
                if n == 0:
                    v = ptr32(
                        base + int(a[_VCODES]) + int(a[_SLICE]) * width + col + int(v_run[_V_RUN_CODES])
                    )
                    n = int(v_run[_V_RUN_COUNT])
                    v_run = ptr32(int(v_run) + 4 * _V_RUN_WORDS)
                    continue
                k = n
                if batch < k:
                    k = batch
                n -= k
                batch -= k
                while k > 3:
                    s0 = (v[0] << 4 & m) * p[0] + s0
                    s1 = (v[0] & m) * p[0] + s1
                    s2 = (v[0] >> 4 & m) * p[0] + s2
                    s3 = (v[0] >> 8 & m) * p[0] + s3
                    v = ptr32(int(v) + row)
                    s0 = (v[0] << 4 & m) * p[1] + s0
                    s1 = (v[0] & m) * p[1] + s1
                    s2 = (v[0] >> 4 & m) * p[1] + s2
                    s3 = (v[0] >> 8 & m) * p[1] + s3
                    v = ptr32(int(v) + row)
                    s0 = (v[0] << 4 & m) * p[2] + s0
                    s1 = (v[0] & m) * p[2] + s1
                    s2 = (v[0] >> 4 & m) * p[2] + s2
                    s3 = (v[0] >> 8 & m) * p[2] + s3
                    v = ptr32(int(v) + row)
                    s0 = (v[0] << 4 & m) * p[3] + s0
                    s1 = (v[0] & m) * p[3] + s1
                    s2 = (v[0] >> 4 & m) * p[3] + s2
                    s3 = (v[0] >> 8 & m) * p[3] + s3
                    v = ptr32(int(v) + row)
                    p = ptr32(int(p) + 16)
                    k -= 4
                while k:
                    s0 = (v[0] << 4 & m) * p[0] + s0
                    s1 = (v[0] & m) * p[0] + s1
                    s2 = (v[0] >> 4 & m) * p[0] + s2
                    s3 = (v[0] >> 8 & m) * p[0] + s3
                    v = ptr32(int(v) + row)
                    p = ptr32(int(p) + 4)
                    k -= 1
            c = int(sh[0])
            sh = ptr32(int(sh) + 4)
            k = c >> 16
            c = c & 0xFFFF
            o[0] = ((s0 & 0xFFFF) * c >> k) + o[0]
            o[1] = ((s1 & 0xFFFF) * c >> k) + o[1]
            o[2] = ((s2 & 0xFFFF) * c >> k) + o[2]
            o[3] = ((s3 & 0xFFFF) * c >> k) + o[3]
            o[4] = ((s0 >> 16 & 0xFFFF) * c >> k) + o[4]
            o[5] = ((s1 >> 16 & 0xFFFF) * c >> k) + o[5]
            o[6] = ((s2 >> 16 & 0xFFFF) * c >> k) + o[6]
            o[7] = ((s3 >> 16 & 0xFFFF) * c >> k) + o[7]
            s0 = 0
            s1 = 0
            s2 = 0
            s3 = 0
        col += 4
    return 0
