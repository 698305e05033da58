"""encode_values and av of sparse as native code: the bits of plain.py here. Style and limits: ../viper.py."""

import micropython
from micropython import const

# fields: attend, v_run, sparse, encode, vector, layer
_N = const(0)
_VCODES = const(6)
_DOTS = const(11)
_UNITS = const(15)
_SUMS = const(16)
_QUERY = const(17)
_SLICE = const(19)
_SLICE_WIDTH = const(31)
_HEAD_DIM = const(32)
_V_ROW = const(39)
_V_RUNS = const(41)
_QUERIES = const(44)
_V_RUN_CODES = const(0)
_V_RUN_COUNT = const(1)
_V_RUN_WORDS = const(2)
_SPARSE_QUERIES = const(0)
_SPARSE_GROUP = const(1)
_SPARSE_STRIDE = const(2)
_SPARSE_WORDS = const(3)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_E_GROUP = const(4)
_E_STRIDE = const(7)
_E_MASK31 = const(8)
_E_V = const(15)
_E_TABLE = const(21)
_VECTOR_AT = const(0)
_VECTOR_ROW = const(1)
_VECTOR_CODES = const(2)
_VECTOR_HEAD = const(4)
_LAYER_CODES = const(0)
_LAYER_V_SHIFT = const(2)
_LAYER_WORDS = const(3)
# end of fields


@micropython.viper
def encode_values(out: ptr8, x: ptr8, v: ptr8, e: ptr32) -> int:
    layer = ptr32(int(e) + 4 * _E_TABLE + int(e[_E_LAYER]) * (4 * _LAYER_WORDS))
    mask31 = int(e[_E_MASK31])
    shift = int(layer[_LAYER_V_SHIFT])
    step = 2 if shift else 4
    first = int(v) + int(e[_E_AT]) * step
    vector = ptr32(int(e) + 4 * _E_V)
    plane = int(out) + int(layer[_LAYER_CODES]) + int(vector[_VECTOR_AT])
    # First scales and bitmaps, then codes: a loop around both would be longer than a branch can jump.
    x = ptr8(first)
    row = plane + int(e[_E_SLOT]) * int(vector[_VECTOR_ROW])
    scale_at = plane + int(vector[_VECTOR_CODES]) + (int(e[_E_SLOT]) << 1)
    left = int(e[_E_COUNT])
    while left:
        left -= int(e[_E_GROUP])
        big = 0
        # The n // 4 smallest are dropped: the largest of them is found, the others stand in the row meanwhile
        # and descend. They need no more bytes than it has.
        least = 0
        end = row
        n = int(e[_E_GROUP]) >> 2
        if n:
            least = mask31
            while n > 1:
                ptr32(end)[0] = least
                end += 4
                n -= 1
        n = int(e[_E_GROUP])
        while n:
            if shift:
                w = int(ptr16(x)[0])
                if w & 0x8000:
                    w = 65536 - w
            else:
                w = int(ptr32(x)[0]) & mask31
                if w < 0x800000:
                    w = 0
            x = ptr8(int(x) + step)
            if w > big:
                big = w
            if w < least:
                p32 = ptr32(row)
                least = w
                if int(p32) < end:
                    if int(p32[0]) > w:
                        least = int(p32[0])
                        while int(p32) + 4 < end:
                            if int(p32[1]) <= w:
                                break
                            p32[0] = p32[1]
                            p32 = ptr32(int(p32) + 4)
                        p32[0] = w
            n -= 1
        # Smallest float16 scale sm * 2^se with 127 * scale >= largest, which is 24 bits and an exponent.
        half = 0
        if big:
            if shift:
                big = big << 8
                se = 56 - shift
                while big < 0x800000:
                    big = big << 1
                    se -= 1
            else:
                se = (big >> 23) - 150
                big = (big & 0x7FFFFF) | 0x800000
            big = (big + 126) // 127
            cut = 5
            sm = 2048
            while sm > 2047:
                cut += 1
                sm = (big + (1 << cut) - 1) >> cut
            se += cut
            if se > 5:
                return 0 - 2
            if se < -24:
                cut += -24 - se
                half = 1
                if cut < 31:
                    half = (big + (1 << cut) - 1) >> cut
            else:
                half = ((se + 25) << 10) + sm - 1024
        p16 = ptr16(scale_at)
        p16[0] = half
        scale_at += int(e[_E_STRIDE])
        # How many are dropped that are as large as the largest of those.
        n = int(e[_E_GROUP])
        equal = n >> 2
        p32 = ptr32(row)
        while int(p32) < end:
            if int(p32[0]) < least:
                break
            p32 = ptr32(int(p32) + 4)
        equal -= (end - int(p32)) >> 2
        at = int(x)
        bits = 0
        while n:
            n -= 1
            at -= step
            if shift:
                w = int(ptr16(at)[0])
                if w & 0x8000:
                    w = 65536 - w
            else:
                w = int(ptr32(at)[0]) & mask31
                if w < 0x800000:
                    w = 0
            bits = bits << 1
            if w > least:
                bits += 1
            elif w == least:
                if equal:
                    equal -= 1
                else:
                    bits += 1
        out = ptr8(row)
        n = int(e[_E_GROUP])
        while n > 0:
            out[0] = bits
            out = ptr8(int(out) + 1)
            bits = bits >> 8
            n -= 8
        row += int(vector[_VECTOR_HEAD])
    x = ptr8(first)
    row = plane + int(e[_E_SLOT]) * int(vector[_VECTOR_ROW])
    scale_at = plane + int(vector[_VECTOR_CODES]) + (int(e[_E_SLOT]) << 1)
    left = int(e[_E_COUNT])
    while left:
        left -= int(e[_E_GROUP])
        sm = int(ptr16(scale_at)[0])
        scale_at += int(e[_E_STRIDE])
        se = (sm >> 10) - 25
        if se > -25:
            sm = (sm & 1023) | 1024
        else:
            se = -24
            if sm == 0:
                sm = 1
        two = sm << 1
        inv = (1 << 23) // two  # viper: allow divide because sm is at least 1
        bits = int(ptr32(row)[0])
        n = int(e[_E_GROUP])
        out = ptr8(row + (n + 7 >> 3))
        while n:
            n -= 1
            if bits & 1:
                # Its code: floor((2|x| + s) / 2s); the reciprocal may fall one short, never over.
                if shift:
                    w = int(ptr16(x)[0])
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
                out[0] = 128 + code
                out = ptr8(int(out) + 1)
            x = ptr8(int(x) + step)
            bits = bits >> 1
        end = row + int(vector[_VECTOR_ROW])
        while int(out) < end:
            out[0] = 128
            out = ptr8(int(out) + 1)
        row += int(vector[_VECTOR_HEAD])
    return 0


@micropython.viper
def av(v: ptr8, p: ptr32, m: int, a: ptr32) -> int:
    base = int(v)
    own = ptr32(int(a) + int(a[_V_RUNS]) - 4 * _SPARSE_WORDS)
    n = int(own[_SPARSE_QUERIES])
    n = (int(a[_QUERY]) - int(a[_QUERIES])) // n  # viper: allow divide because a query record has bytes
    first = n * int(a[_HEAD_DIM]) + int(a[_SLICE]) * int(a[_SLICE_WIDTH])
    n = first // int(own[_SPARSE_GROUP])  # viper: allow divide because a group has values
    start = base + int(a[_VCODES]) + n * int(own[_SPARSE_STRIDE])
    first -= n * int(own[_SPARSE_GROUP])
    skip = (int(own[_SPARSE_GROUP]) + 7) >> 3
    row = int(a[_V_ROW])
    o = ptr32(base + int(a[_SUMS]))
    left = int(a[_SLICE_WIDTH])
    while left > 0:
        o[0] = 0
        o[1] = 0
        o[2] = 0
        o[3] = 0
        o[4] = 0
        o[5] = 0
        o[6] = 0
        o[7] = 0
        below = (1 << first) - 1
        within = 255
        if left < 8:
            within = (1 << left) - 1
        sh = ptr32(base + int(a[_UNITS]))
        y = ptr32(base + int(a[_DOTS]))
        v_run = ptr32(int(a) + int(a[_V_RUNS]))
        total = int(a[_N])
        n = 0
        at = 0
        s0 = 0
        s1 = 0
        s2 = 0
        s3 = 0
        cut = 0  # bits of a weight before the part of it that is next, where a batch is split
        while total:
            # A batch: 8 tokens, or what is left; it may span runs.
            batch = 8
            if total < 8:
                batch = total
            total -= batch
            c = int(sh[0])
            sh = ptr32(int(sh) + 4)
            at0 = at
            n0 = n
            run0 = int(v_run)
            y0 = int(y)
            while batch:
                if n == 0:
                    at = start + int(v_run[_V_RUN_CODES])
                    n = int(v_run[_V_RUN_COUNT])
                    v_run = ptr32(int(v_run) + 4 * _V_RUN_WORDS)
                    continue
                k = n
                if batch < k:
                    k = batch
                n -= k
                batch -= k
                while k:
                    k -= 1
                    # The bitmap; its set bits below the slice tell where the slice's codes begin.
                    m = int(ptr32(at)[0])
                    x = m & below
                    if x:
                        x -= x >> 1 & 0x15555555
                        x = (x & 0x33333333) + (x >> 2 & 0x33333333)
                        x = (x + (x >> 4) & 0x0F0F0F0F) * 0x01010101 >> 24 & 63
                    v = ptr8(at + skip + x)
                    at += row
                    m = m >> first & within
                    # The weight, in a register: it is no pointer.
                    p = ptr32(int(y[0]) >> cut & 0xFFFF)
                    y = ptr32(int(y) + 4)
                    # Two channels a lane pair; one that is absent counts as 128.
                    if m & 1:
                        if m & 2:
                            s0 = ((v[1] << 16) + v[0]) * int(p) + s0
                            v = ptr8(2 + int(v))
                        else:
                            s0 = (v[0] + 0x800000) * int(p) + s0
                            v = ptr8(1 + int(v))
                    elif m & 2:
                        s0 = ((v[0] << 16) + 128) * int(p) + s0
                        v = ptr8(1 + int(v))
                    else:
                        s0 = 0x800080 * int(p) + s0
                    if m & 4:
                        if m & 8:
                            s1 = ((v[1] << 16) + v[0]) * int(p) + s1
                            v = ptr8(2 + int(v))
                        else:
                            s1 = (v[0] + 0x800000) * int(p) + s1
                            v = ptr8(1 + int(v))
                    elif m & 8:
                        s1 = ((v[0] << 16) + 128) * int(p) + s1
                        v = ptr8(1 + int(v))
                    else:
                        s1 = 0x800080 * int(p) + s1
                    if m & 16:
                        if m & 32:
                            s2 = ((v[1] << 16) + v[0]) * int(p) + s2
                            v = ptr8(2 + int(v))
                        else:
                            s2 = (v[0] + 0x800000) * int(p) + s2
                            v = ptr8(1 + int(v))
                    elif m & 32:
                        s2 = ((v[0] << 16) + 128) * int(p) + s2
                        v = ptr8(1 + int(v))
                    else:
                        s2 = 0x800080 * int(p) + s2
                    if m & 64:
                        if m & 128:
                            s3 = ((v[1] << 16) + v[0]) * int(p) + s3
                        else:
                            s3 = (v[0] + 0x800000) * int(p) + s3
                    elif m & 128:
                        s3 = ((v[0] << 16) + 128) * int(p) + s3
                    else:
                        s3 = 0x800080 * int(p) + s3
            x = c >> 16 & 31
            if cut:
                x += 5
            k = c & 0xFFFF
            o[0] = ((s0 & 0xFFFF) * k >> x) + o[0]
            o[1] = ((s0 >> 16 & 0xFFFF) * k >> x) + o[1]
            o[2] = ((s1 & 0xFFFF) * k >> x) + o[2]
            o[3] = ((s1 >> 16 & 0xFFFF) * k >> x) + o[3]
            o[4] = ((s2 & 0xFFFF) * k >> x) + o[4]
            o[5] = ((s2 >> 16 & 0xFFFF) * k >> x) + o[5]
            o[6] = ((s3 & 0xFFFF) * k >> x) + o[6]
            o[7] = ((s3 >> 16 & 0xFFFF) * k >> x) + o[7]
            s0 = 0
            s1 = 0
            s2 = 0
            s3 = 0
            if c >> 24 & 1:
                # A split batch: once more with the other part of its weights.
                cut = 16 - cut
                if cut:
                    total += (int(y) - y0) >> 2
                    at = at0
                    n = n0
                    v_run = ptr32(run0)
                    y = ptr32(y0)
                    sh = ptr32(int(sh) - 4)
        o = ptr32(int(o) + 32)
        first += 8
        left -= 8
    return 0
