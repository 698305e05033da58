"""encode, scales, qk and av of float16 as native code: the bits of plain.py here.

Style and limits: ../viper.py. Bounds F1 to F5 are those of plain.py.
"""

import micropython
from micropython import const

_WIDE = const(0)
_FINER = const(9)

# fields: attend, run, query, encode, vector, layer
_N = const(0)
_RUNS = const(1)
_ROW = const(2)
_SLICES = const(3)
_WIDTH = const(4)
_CODES = const(5)
_VCODES = const(6)
_DOTS = const(11)
_KSCALE = const(12)
_VSCALE = const(13)
_UNITS = const(15)
_SUMS = const(16)
_QUERY = const(17)
_SINK_QUERY = const(18)
_KEXP = const(20)
_VEXP = const(21)
_CORR = const(25)
_HEAD_DIM = const(32)
_MASK31 = const(36)
_V_WIDTH = const(40)
_VARIED = const(42)
_RUN = const(45)
_RUN_CODES = const(0)
_RUN_COUNT = const(2)
_RUN_SINKS = const(3)
_RUN_WORDS = const(4)
_QUERY_WORDS = const(4)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_E_WIDTH = const(5)
_E_MASK31 = const(8)
_E_K = const(9)
_E_V = const(15)
_E_TABLE = const(21)
_VECTOR_AT = const(0)
_VECTOR_ROW = const(1)
_VECTOR_BYTES = const(3)
_VECTOR_HEAD = const(4)
_LAYER_CODES = const(0)
_LAYER_K_SHIFT = const(1)
_LAYER_V_SHIFT = const(2)
_LAYER_WORDS = const(3)
# end of fields


@micropython.viper
def encode(out: ptr16, x: ptr32, v: ptr8, e: ptr32) -> int:
    layer = ptr32(int(e) + 4 * _E_TABLE + int(e[_E_LAYER]) * (4 * _LAYER_WORDS))
    vector = ptr32(int(e) + 4 * _E_K)
    base = int(out) + int(layer[_LAYER_CODES]) + int(e[_E_SLOT]) * int(vector[_VECTOR_ROW])
    mask31 = int(e[_E_MASK31])
    k = int(x)
    value = 0
    while value < 2:
        shift = int(layer[_LAYER_K_SHIFT])
        at = k
        head = base
        if value:
            shift = int(layer[_LAYER_V_SHIFT])
            at = int(v)
            vector = ptr32(int(e) + 4 * _E_V)
            head += int(vector[_VECTOR_AT])
        at += int(e[_E_AT]) << (1 if shift else 2)
        left = int(e[_E_COUNT])
        # Of int16 with a negative shift, the largest magnitude stored, and the bits lost below 2^-24.
        most = 65535
        if shift and shift < 64:
            most = 65504 >> (64 - shift)
        least = shift - 88
        while left:
            left -= int(e[_E_WIDTH])
            c = int(e[_E_WIDTH])
            out = ptr16(head)
            while c:
                c -= 1
                if shift:
                    w = int(ptr16(at)[0])
                    at += 2
                    sign = w & 0x8000
                    if sign:
                        w = 65536 - w
                    if w > most:
                        return 0 - 1 - value
                    # w in units of 2^(cut - 24 - least): 11 bits, or what 2^-24 leaves.
                    cut = 0
                    while w >> cut > 2047:
                        cut += 1
                    if cut < least:
                        cut = least
                    if cut > 17:
                        w = 0
                    elif cut:
                        w = (w + (1 << cut >> 1) - 1 + (w >> cut & 1)) >> cut
                    cut -= least
                    if w:
                        while cut and w < 1024:
                            w = w << 1
                            cut -= 1
                        w += cut << 10
                else:
                    x = ptr32(at)
                    w = int(x[0])
                    at += 4
                    sign = (w >> 16) & 0x8000
                    w = w & mask31
                    cut = w >> 13
                    if cut >= 0x23BFF and (cut > 0x23BFF or w & 0x1FFF):
                        return 0 - 1 - value
                    if w >= 0x38800000:
                        w = ((w + 0xFFF + (cut & 1)) >> 13) - 0x1C000
                    else:
                        cut = 126 - (w >> 23)
                        if cut > 24:
                            w = 0
                        else:
                            w = (w & 0x7FFFFF) | 0x800000
                            w = (w + (1 << cut >> 1) - 1 + (w >> cut & 1)) >> cut
                out[0] = w | sign
                out = ptr16(int(out) + 2)
            if int(out) - head < int(vector[_VECTOR_BYTES]):
                out[0] = 0
            head += int(vector[_VECTOR_HEAD])
        value += 1
    return 0


@micropython.viper
def scales(buf: ptr8, p: ptr32, which: int, a: ptr32) -> int:
    base = int(buf)
    mask31 = int(a[_MASK31])
    at = base + int(a[_CODES])
    first = base + int(a[_KSCALE])
    if which:
        at = base + int(a[_VCODES])
        first = base + int(a[_VSCALE])
    run = ptr32(int(a) + 4 * _RUN)
    left = int(a[_RUNS])
    # The largest number of each token, kept where its relative scale comes to stand, and of all.
    o = ptr16(first)
    top = 0
    while left:
        left -= 1
        p = ptr32(at + int(run[_RUN_CODES]))
        k = int(run[_RUN_COUNT])
        run = ptr32(int(run) + 4 * _RUN_WORDS)
        while k:
            k -= 1
            most = 0
            n = int(a[_ROW])
            while n:
                # Two numbers a word.
                if int(p[0]) & mask31 > most:
                    most = int(p[0]) & mask31
                if int(p[0]) << 16 & mask31 > most:
                    most = int(p[0]) << 16 & mask31
                p = ptr32(int(p) + 4)
                n -= 4
            if most > top:
                top = most
            o[0] = most >> 16
            o = ptr16(int(o) + 2)
    most = top >> 16
    top = most >> 10
    if top == 0:
        # Of 11 bits, as the others.
        top = 1
        if most == 0:
            top = 0 - 9
        while most and most < 1024:
            most = most << 1
            top -= 1
    # Bits that a sum over all channels leaves for each key.
    bits = 5
    n = (int(a[_HEAD_DIM]) - 1) >> 3
    while n:
        n = n >> 1
        bits -= 1
    unit = 0x20
    if bits > 0:
        unit += bits
    else:
        unit = unit << (0 - bits)
    bits += 15
    if which:
        bits = 20
    varied = 0
    o = ptr16(first)
    n = int(a[_N])
    while n:
        if which:
            o[0] = 0x8001
        else:
            k = int(o[0]) >> 10
            if k < 12:
                k = 12
            k = top - k
            if k < 4:
                k = 0
            else:
                varied = unit
            o[0] = unit + k
        o = ptr16(int(o) + 2)
        n -= 1
    p = ptr32(base + int(a[_KSCALE]) - 1024)
    if which:
        p = ptr32(int(p) + 512)
    n = 0
    while n < 2 or n <= top:
        k = n
        if n == 0:
            k = 1
        left = 1 << bits
        if k > top:
            left = left << (k - top)
        else:
            left = left >> (top - k)
        k = left << 1
        if n == 0:
            k = 0
        p[0] = left
        p[1] = k
        p = ptr32(int(p) + 256)
        p[0] = 0 - left
        k = 0 - k
        # What is cut off is not to make it larger.
        if left & 511:
            k += 1
        p[1] = k
        p = ptr32(int(p) - 248)
        n += 1
    if which:
        a[_VEXP] = top + 10
    else:
        a[_KEXP] = top + 10
        p = ptr32(int(a) + 4 * _VARIED)
        p[0] = varied
    return 0


@micropython.viper
def qk(k: ptr16, p: ptr32, s: int, a: ptr32) -> int:
    base = int(k)
    row = int(a[_ROW])
    first = base + int(a[_KSCALE]) - 1024
    table = first
    varied = int(a[_VARIED])
    first -= varied << 3
    words = int(a[_WIDTH])
    col = 0
    while col < words:
        run = ptr32(int(a) + 4 * _RUN)
        left = int(a[_RUNS])
        y = ptr32(base + int(a[_DOTS]))
        own = ptr16(base + int(a[_KSCALE]))
        while left:
            left -= 1
            at = base + int(a[_QUERY]) + 4 * _QUERY_WORDS
            if run[_RUN_SINKS]:
                at += int(a[_SINK_QUERY])
            p = ptr32(at + (int(a[_SLICES]) << 2) + (col << 1))
            q0 = int(p[0])
            q1 = int(p[1])
            if _WIDE:
                q0 = q0 << 32 >> 32
                q1 = q1 << 32 >> 32
            q2 = (q0 & 0xFFFF ^ 0x8000) - 0x8000
            q3 = (q1 & 0xFFFF ^ 0x8000) - 0x8000
            q0 = (q0 - q2) >> 16
            q1 = (q1 - q3) >> 16
            k = ptr16(base + int(a[_CODES]) + (col << 1) + int(run[_RUN_CODES]))
            n = int(run[_RUN_COUNT])
            run = ptr32(int(run) + 4 * _RUN_WORDS)
            while n:
                if varied:
                    table = first + ((own[0] & 255) << 3)
                    own = ptr16(int(own) + 2)
                s = 0
                if col:
                    s = int(y[0])
                p = ptr32((k[0] >> 10 << 3) + table)
                s = (((k[0] & 1023) * p[0] >> _FINER) + p[1]) * q0 + s
                p = ptr32((k[1] >> 10 << 3) + table)
                s = (((k[1] & 1023) * p[0] >> _FINER) + p[1]) * q1 + s
                p = ptr32((k[2] >> 10 << 3) + table)
                s = (((k[2] & 1023) * p[0] >> _FINER) + p[1]) * q2 + s
                p = ptr32((k[3] >> 10 << 3) + table)
                s = (((k[3] & 1023) * p[0] >> _FINER) + p[1]) * q3 + s
                y[0] = s
                y = ptr32(int(y) + 4)
                k = ptr16(int(k) + row)
                n -= 1
        col += 4
    return 0


@micropython.viper
def av(v: ptr16, p: ptr32, w: int, a: ptr32) -> int:
    base = int(v)
    row = int(a[_ROW])
    width = int(a[_V_WIDTH])
    table = base + int(a[_KSCALE]) - 512
    offset = 0x20000000
    a[_CORR] = offset
    col = 0
    while col < width:
        o = ptr32(base + int(a[_SUMS]) + (col << 1))
        o[0] = offset
        o[1] = offset
        sh = ptr32(base + int(a[_UNITS]))
        x = ptr32(base + int(a[_DOTS]))
        run = ptr32(int(a) + 4 * _RUN)
        total = int(a[_N])
        n = 0
        s0 = 0
        s1 = 0
        t0 = 0
        t1 = 0
        while total:
            # A batch: 8 tokens, or what is left; it may span runs.
            batch = 8
            if total < 8:
                batch = total
            total -= batch
            c = int(sh[0])
            sh = ptr32(int(sh) + 4)
            while batch:
                if not n:
                    v = ptr16(base + int(a[_VCODES]) + col + int(run[_RUN_CODES]))
                    n = int(run[_RUN_COUNT])
                    run = ptr32(int(run) + 4 * _RUN_WORDS)
                k = n
                if batch < k:
                    k = batch
                n -= k
                batch -= k
                if c >> 24:
                    if c >> 25:
                        # It weighs nothing.
                        v = ptr16(int(v) + k * row)
                        x = ptr32(int(x) + (k << 2))
                        k = 0
                    while k:
                        # A split batch: weights of two parts.
                        p = ptr32((v[0] >> 10 << 3) + table)
                        w = ((v[0] & 1023) * p[0] >> _FINER) + p[1]
                        s0 = (x[0] & 0xFFFF) * w + s0
                        t0 = (x[0] >> 16 & 31) * w + t0
                        p = ptr32((v[1] >> 10 << 3) + table)
                        w = ((v[1] & 1023) * p[0] >> _FINER) + p[1]
                        s1 = (x[0] & 0xFFFF) * w + s1
                        t1 = (x[0] >> 16 & 31) * w + t1
                        v = ptr16(int(v) + row)
                        x = ptr32(int(x) + 4)
                        k -= 1
                while k:
                    w = int(x[0])
                    p = ptr32((v[0] >> 10 << 3) + table)
                    s0 = (((v[0] & 1023) * p[0] >> _FINER) + p[1]) * w + s0
                    p = ptr32((v[1] >> 10 << 3) + table)
                    s1 = (((v[1] & 1023) * p[0] >> _FINER) + p[1]) * w + s1
                    v = ptr16(int(v) + row)
                    x = ptr32(int(x) + 4)
                    k -= 1
            if not c >> 25:
                if _WIDE:
                    s0 = s0 << 32 >> 32
                    s1 = s1 << 32 >> 32
                k = c >> 16 & 31
                w = c & 0xFFFF
                p = ptr32(1 << k >> 1)
                o[0] = ((s0 >> 15) * w + ((s0 & 32767) * w >> 15) + int(p) >> k) + o[0]
                o[1] = ((s1 >> 15) * w + ((s1 & 32767) * w >> 15) + int(p) >> k) + o[1]
                s0 = 0
                s1 = 0
                if c >> 24 & 1:
                    if _WIDE:
                        t0 = t0 << 32 >> 32
                        t1 = t1 << 32 >> 32
                    k += 5
                    p = ptr32(1 << k >> 1)
                    o[0] = ((t0 >> 15) * w + ((t0 & 32767) * w >> 15) + int(p) >> k) + o[0]
                    o[1] = ((t1 >> 15) * w + ((t1 & 32767) * w >> 15) + int(p) >> k) + o[1]
                    t0 = 0
                    t1 = 0
        col += 4
    return 0
