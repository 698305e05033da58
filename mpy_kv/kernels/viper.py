"""The kernels of plain.py as native code: same bits, no allocation, 4 arguments, 32-bit words.

Loaded through mpy_kv.port.load_native, which adapts `>> _HI` and `_WIDE` to 64-bit interpreters. Style
forced by the emitters of released firmware: pointers are moved and indexed with constants only, no
unary minus on a local, no literal of 2^30 or more, the two hottest pointers first.
Bounds B1..B6 are those of plain.py; fields of `a` and `e` are told in params.py.
"""

import micropython
from micropython import const

_WIDE = const(0)
_HI = const(16)

# fields: attend, run, query, encode, vector, layer
_N = const(0)
_RUNS = const(1)
_ROW = const(2)
_SLICES = const(3)
_WIDTH = const(4)
_CODES = const(5)
_VCODES = const(6)
_SCALES = const(7)
_VSCALES = const(8)
_SCALE_STRIDE = const(9)
_SCORES = const(10)
_DOTS = const(11)
_KSCALE = const(12)
_VSCALE = const(13)
_SCALE_ROW = const(14)
_UNITS = const(15)
_SUMS = const(16)
_QUERY = const(17)
_SINK_QUERY = const(18)
_SLICE = const(19)
_KEXP = const(20)
_VEXP = const(21)
_MAX = const(22)
_WHI = const(23)
_WLO = const(24)
_CORR = const(25)
_LOG_SCALE = const(26)
_LOG_EXP = const(27)
_V_BIAS = const(28)
_OUT_SHIFT = const(29)
_Q_AT = const(30)
_SLICE_WIDTH = const(31)
_HEAD_DIM = const(32)
_QUERY_BYTES = const(33)
_SETS = const(34)
_Q_SHIFT = const(35)
_MASK31 = const(36)
_HEADS = const(37)
_QUERY_SET = const(38)
_UNIT = const(43)
_QUERIES = const(44)
_RUN = const(45)
_RUN_CODES = const(0)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_SINKS = const(3)
_RUN_WORDS = const(4)
_QUERY_MANTISSA = const(0)
_QUERY_EXP = const(1)
_QUERY_DOWN = const(2)
_QUERY_AT = const(3)
_QUERY_WORDS = const(4)
_E_LAYER = const(0)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_E_GROUP = const(4)
_E_WIDTH = const(5)
_E_SLICES = const(6)
_E_STRIDE = const(7)
_E_MASK31 = const(8)
_E_K = const(9)
_E_TABLE = const(21)
_VECTOR_AT = const(0)
_VECTOR_ROW = const(1)
_VECTOR_CODES = const(2)
_VECTOR_BYTES = const(3)
_VECTOR_HEAD = const(4)
_VECTOR_MOST = const(5)
_VECTOR_WORDS = const(6)
_LAYER_CODES = const(0)
_LAYER_K_SHIFT = const(1)
_LAYER_WORDS = const(3)
# end of fields


@micropython.viper
def encode(out: ptr8, x: ptr8, w: ptr8, e: ptr32) -> int:
    # `x` goes through values of K, then of V; `w` is where V's begin, then a magnitude: registers are few.
    base = int(out)
    v = int(w)
    layer = ptr32(int(e) + 4 * _E_TABLE + int(e[_E_LAYER]) * (4 * _LAYER_WORDS))
    mask31 = int(e[_E_MASK31])
    base += int(layer[_LAYER_CODES])
    value = 0
    while value < 2:
        vector = ptr32(int(e) + 4 * _E_K + value * (4 * _VECTOR_WORDS))
        most = int(vector[_VECTOR_MOST])
        if most == 0:
            break
        packed = 127 - most
        shift = int(ptr32(int(layer) + (value << 2))[_LAYER_K_SHIFT])
        at = base + int(vector[_VECTOR_AT])
        scale_at = at + int(vector[_VECTOR_CODES]) + (int(e[_E_SLOT]) << 1)
        at += int(e[_E_SLOT]) * int(vector[_VECTOR_ROW])
        slice_bytes = int(vector[_VECTOR_BYTES])
        x = ptr8(int(x) + (int(e[_E_AT]) << (1 if shift else 2)))
        piece = 0
        groups = int(e[_E_COUNT]) // int(e[_E_GROUP])  # viper: allow divide because a group has values
        while groups:
            groups -= 1
            # Largest magnitude of the group, as 24 bits and an exponent.
            big = 0
            n = int(e[_E_GROUP])
            out = x
            if shift:
                while n:
                    w = ptr8(int(ptr16(out)[0]))
                    if int(w) & 0x8000:
                        w = ptr8(65536 - int(w))
                    if int(w) > big:
                        big = int(w)
                    out = ptr8(int(out) + 2)
                    n -= 1
                ex = 64 - shift
                if big:
                    big = big << 8
                    ex -= 8
                    while big < 0x800000:
                        big = big << 1
                        ex -= 1
            else:
                while n:
                    w = ptr8(int(ptr32(out)[0]) & mask31)
                    if int(w) > big:
                        big = int(w)
                    out = ptr8(int(out) + 4)
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
                big = (big + most - 1) // most
                cut = 5
                sm = 2048
                while sm > 2047:
                    cut += 1
                    sm = (big + (1 << cut) - 1) >> cut
                se = ex + cut
                if se > 5:
                    return 0 - 1 - value
                half = ((se + 25) << 10) + sm - 1024
                if se < -24:
                    cut += -24 - se
                    sm = 1
                    if cut < 31:
                        sm = (big + (1 << cut) - 1) >> cut
                    se = -24
                    half = sm
            p16 = ptr16(scale_at)
            p16[0] = half
            scale_at += int(e[_E_STRIDE])
            two = sm << 1
            inv = (1 << 23) // two  # viper: allow divide because sm is at least 1
            # Magnitudes in halves of a scale: of int16 shifted up or down, of float32 down from its exponent.
            up = 0
            down = se + 149
            if shift:
                down = shift + se - 65
                if down < 0:
                    up = 0 - down
                    down = 0
                elif down > 31:
                    down = 31
            # Codes: floor((2|x| + s) / 2s); the reciprocal may fall one short, never over. One of 4 bits is
            # first put in the low nibble with 8 above it, to which the next one is added.
            pieces = int(e[_E_GROUP]) // int(e[_E_WIDTH])  # viper: allow divide because a piece has values
            while pieces:
                pieces -= 1
                out = ptr8(at)
                at += slice_bytes
                above = 0
                n = int(e[_E_WIDTH])
                while n:
                    n -= 1
                    if shift:
                        w = ptr8(int(ptr16(x)[0]))
                        x = ptr8(int(x) + 2)
                        neg = int(w) & 0x8000
                        if neg:
                            w = ptr8(65536 - int(w))
                        w = ptr8(int(w) << up >> down)
                    else:
                        w = ptr8(int(ptr32(x)[0]))
                        x = ptr8(int(x) + 4)
                        neg = int(w) >> 31
                        cut = down - (int(w) >> 23 & 255)
                        if cut < 24:
                            w = ptr8((int(w) & 0x7FFFFF | 0x800000) >> cut)
                        else:
                            w = ptr8(0)
                    w = ptr8(int(w) + sm)
                    code = int(w) * inv >> 23
                    if int(w) - code * two >= two:
                        code += 1
                    if neg:
                        code = 0 - code
                    if packed:
                        if above:
                            code = int(out[0]) + (code << 4)
                        else:
                            code += 136
                        out[0] = code
                        out = ptr8(int(out) + above)
                        above ^= 1
                    else:
                        out[0] = 128 + code
                        out = ptr8(int(out) + 1)
                out = ptr8(int(out) + above)
                while int(out) < at:
                    out[0] = 136 if packed else 128
                    out = ptr8(int(out) + 1)
                piece += 1
                if piece == int(e[_E_SLICES]):
                    piece = 0
                    # From the end of a head's slices to the next one's first.
                    at += int(vector[_VECTOR_HEAD]) - int(e[_E_SLICES]) * slice_bytes
        x = ptr8(v)
        value += 1
    return 0


@micropython.viper
def query(x: ptr8, w: ptr8, words: ptr32, a: ptr32) -> int:
    # As in encode(): `x` goes through values and `w` is a magnitude; `words` goes through a head's record.
    base = int(x)
    q = int(w)
    qs = int(words)
    shift = int(a[_Q_SHIFT])
    heads = int(a[_HEADS])
    at = int(a[_Q_AT])
    rec = base + int(a[_QUERIES])
    mask31 = int(a[_MASK31])
    while heads:
        heads -= 1
        big = 0
        sets = int(a[_SETS])
        while sets:
            sets -= 1
            x = ptr8((qs if sets else q) + (at << (1 if shift else 2)))
            n = int(a[_HEAD_DIM])
            if shift:
                while n:
                    w = ptr8(int(ptr16(x)[0]))
                    if int(w) & 0x8000:
                        w = ptr8(65536 - int(w))
                    if int(w) > big:
                        big = int(w)
                    x = ptr8(int(x) + 2)
                    n -= 1
            else:
                while n:
                    w = ptr8(int(ptr32(x)[0]) & mask31)
                    if int(w) > big:
                        big = int(w)
                    x = ptr8(int(x) + 4)
                    n -= 1
        if shift:
            ex = 64 - shift
            if big:
                big = big << 8
                ex -= 8
                while big < 0x800000:
                    big = big << 1
                    ex -= 1
        else:
            ex = big >> 23
            if ex == 255:
                return -1
            if ex:
                big = (big & 0x7FFFFF) | 0x800000
            else:
                big = 0
            ex -= 150
        sm = 1024
        se = 0
        if big:
            big = (big + 63) >> 6
            n = 5
            sm = 2048
            while sm > 2047:
                n += 1
                sm = (big + (1 << n) - 1) >> n
            se = ex + n
        two = sm << 1
        inv = (1 << 23) // two  # viper: allow divide because sm is at least 1
        up = 0
        down = se + 149
        if shift:
            down = shift + se - 65
            if down < 0:
                up = 0 - down
                down = 0
            elif down > 31:
                down = 31
        # The record's first words carry what the inner loop needs, as there are few registers.
        record = ptr32(rec)
        record[_QUERY_MANTISSA] = sm
        record[_QUERY_EXP] = se + 2048
        most = 0
        sets = int(a[_SETS])
        while sets:
            sets -= 1
            x = ptr8((qs if sets else q) + (at << (1 if shift else 2)))
            cp = ptr32(rec + 4 * _QUERY_WORDS + (int(a[_QUERY_SET]) if sets else 0))
            words = ptr32(int(cp) + (int(a[_SLICES]) << 2))
            total = 0
            piece = int(a[_SLICES])
            while piece:
                piece -= 1
                c0 = 0
                left = int(a[_SLICE_WIDTH])
                n = int(a[_WIDTH])
                while n:
                    n -= 1
                    # Column of this value within its word, 0..3.
                    col = (int(a[_WIDTH]) - 1 - n) & 3
                    code = 0
                    if left:
                        left -= 1
                        if shift:
                            w = ptr8(int(ptr16(x)[0]))
                            x = ptr8(int(x) + 2)
                            neg = int(w) & 0x8000
                            if neg:
                                w = ptr8(65536 - int(w))
                            w = ptr8(int(w) << up >> down)
                        else:
                            w = ptr8(int(ptr32(x)[0]))
                            x = ptr8(int(x) + 4)
                            neg = int(w) >> 31
                            k = int(w) >> 23 & 255
                            if k and down - k < 24:
                                w = ptr8((int(w) & 0x7FFFFF | 0x800000) >> (down - k))
                            else:
                                w = ptr8(0)
                        w = ptr8(int(w) + sm)
                        code = int(w) * inv >> 23
                        if int(w) - code * two >= two:
                            code += 1
                        total += code
                        if neg:
                            code = 0 - code
                            if code:
                                c0 += col >> 1
                        c0 -= code << 7
                    if col == 0:
                        even = code << 16
                    elif col == 1:
                        odd = code << 16
                    elif col == 2:
                        words[0] = even + code
                    else:
                        words[1] = odd + code
                        words = ptr32(int(words) + 8)
                if int(a[_WIDTH]) & 4:
                    words[0] = 0
                    words[1] = 0
                    words = ptr32(int(words) + 8)
                cp[0] = c0
                cp = ptr32(int(cp) + 4)
            if total > most:
                most = total
        n = 0
        most = most * 127
        while (most >> n) + int(a[_SLICES]) > 524288:
            n += 1
        record = ptr32(rec)
        record[_QUERY_DOWN] = n
        record[_QUERY_AT] = at
        at += int(a[_HEAD_DIM])
        rec += int(a[_QUERY_BYTES])
    return 0


@micropython.viper
def scales(o: ptr16, p: ptr16, h: int, a: ptr32) -> int:
    # `h` is which vector, then a scale; `o` goes through the scales that are made of those at `p`.
    base = int(o)
    which = h
    src = base + (int(a[_VSCALES]) if which else int(a[_SCALES]))
    top = 0
    s = int(a[_SLICES])
    while s:
        s -= 1
        run = ptr32(int(a) + 4 * _RUN)
        left = int(a[_RUNS])
        while left:
            left -= 1
            p = ptr16(src + int(run[_RUN_SCALES]))
            n = int(run[_RUN_COUNT])
            run = ptr32(int(run) + 4 * _RUN_WORDS)
            while n > 3:
                h = int(p[0])
                if h > top:
                    top = h
                h = int(p[1])
                if h > top:
                    top = h
                h = int(p[2])
                if h > top:
                    top = h
                h = int(p[3])
                if h > top:
                    top = h
                p = ptr16(int(p) + 8)
                n -= 4
            while n:
                h = int(p[0])
                if h > top:
                    top = h
                p = ptr16(int(p) + 2)
                n -= 1
        src += int(a[_SCALE_STRIDE])
    h = top
    top = h >> 10
    if top == 0:
        # Of 11 bits, as the others.
        top = 1
        while h and h < 1024:
            h = h << 1
            top -= 1
    if which:
        a[_VEXP] = top + 10
    else:
        a[_KEXP] = top + 10
    src = base + (int(a[_VSCALES]) if which else int(a[_SCALES]))
    dst = base + (int(a[_VSCALE]) if which else int(a[_KSCALE]))
    s = int(a[_SLICES])
    while s:
        s -= 1
        o = ptr16(dst)
        run = ptr32(int(a) + 4 * _RUN)
        left = int(a[_RUNS])
        while left:
            left -= 1
            p = ptr16(src + int(run[_RUN_SCALES]))
            n = int(run[_RUN_COUNT])
            run = ptr32(int(run) + 4 * _RUN_WORDS)
            while n:
                h = int(p[0])
                p = ptr16(int(p) + 2)
                s0 = top - (h >> 10)
                if h < 1024:
                    if h:
                        s0 = top - 1
                        while h < 1024:
                            h = h << 1
                            s0 += 1
                        if s0 > 30:
                            s0 = 30
                        h = (h << 5) + s0 + which
                else:
                    h = ((h & 1023 | 1024) << 5) + s0 + which
                o[0] = h
                o = ptr16(int(o) + 2)
                n -= 1
        dst += int(a[_SCALE_ROW])
        src += int(a[_SCALE_STRIDE])
    return 0


@micropython.viper
def qk(k: ptr32, m: ptr32, y: ptr32, a: ptr32) -> int:
    # The mask, which comes last and is in every product, takes the second register.
    base = int(k)
    m = y
    row = int(a[_ROW])
    slice_at = int(a[_SLICE]) * int(a[_WIDTH])
    words = (int(a[_WIDTH]) + 7) & 0x7FF8
    col = 0
    while col < words:
        run = ptr32(int(a) + 4 * _RUN)
        left = int(a[_RUNS])
        y = ptr32(base + int(a[_DOTS]))
        while left:
            left -= 1
            at = base + int(a[_QUERY]) + 4 * _QUERY_WORDS
            if run[_RUN_SINKS]:
                at += int(a[_SINK_QUERY])
            c = int(ptr32(at + (int(a[_SLICE]) << 2))[0])
            q = ptr32(at + (int(a[_SLICES]) << 2) + ((int(a[_SLICE]) * words + col) << 1))
            q0 = int(q[0])
            q1 = int(q[1])
            q2 = int(q[2])
            q3 = int(q[3])
            if _WIDE:
                q0 = q0 << 32 >> 32
                q1 = q1 << 32 >> 32
                q2 = q2 << 32 >> 32
                q3 = q3 << 32 >> 32
            k = ptr32(base + int(a[_CODES]) + slice_at + col + int(run[_RUN_CODES]))
            n = int(run[_RUN_COUNT])
            run = ptr32(int(run) + 4 * _RUN_WORDS)
            # Two tokens a turn, after the odd one.
            if n & 1:
                w = c
                if col:
                    w = int(y[0])
                y[0] = (
                    ((k[0] & int(m)) * q0 >> _HI)
                    + ((k[0] >> 8 & int(m)) * q1 >> _HI)
                    + ((k[1] & int(m)) * q2 >> _HI)
                    + ((k[1] >> 8 & int(m)) * q3 >> _HI)
                    + w
                )
                y = ptr32(int(y) + 4)
                k = ptr32(int(k) + row)
            n = n >> 1
            if col:
                while n:
                    y[0] = (
                        ((k[0] & int(m)) * q0 >> _HI)
                        + ((k[0] >> 8 & int(m)) * q1 >> _HI)
                        + ((k[1] & int(m)) * q2 >> _HI)
                        + ((k[1] >> 8 & int(m)) * q3 >> _HI)
                        + y[0]
                    )
                    k = ptr32(int(k) + row)
                    y[1] = (
                        ((k[0] & int(m)) * q0 >> _HI)
                        + ((k[0] >> 8 & int(m)) * q1 >> _HI)
                        + ((k[1] & int(m)) * q2 >> _HI)
                        + ((k[1] >> 8 & int(m)) * q3 >> _HI)
                        + y[1]
                    )
                    k = ptr32(int(k) + row)
                    y = ptr32(int(y) + 8)
                    n -= 1
            else:
                while n:
                    y[0] = (
                        ((k[0] & int(m)) * q0 >> _HI)
                        + ((k[0] >> 8 & int(m)) * q1 >> _HI)
                        + ((k[1] & int(m)) * q2 >> _HI)
                        + ((k[1] >> 8 & int(m)) * q3 >> _HI)
                        + c
                    )
                    k = ptr32(int(k) + row)
                    y[1] = (
                        ((k[0] & int(m)) * q0 >> _HI)
                        + ((k[0] >> 8 & int(m)) * q1 >> _HI)
                        + ((k[1] & int(m)) * q2 >> _HI)
                        + ((k[1] >> 8 & int(m)) * q3 >> _HI)
                        + c
                    )
                    k = ptr32(int(k) + row)
                    y = ptr32(int(y) + 8)
                    n -= 1
        col += 8
    return 0


@micropython.viper
def score(y: ptr32, f: ptr16, s: int, a: ptr32) -> int:
    base = int(y)
    y = ptr32(base + int(a[_DOTS]))
    f = ptr16(base + int(a[_KSCALE]) + int(a[_SLICE]) * int(a[_SCALE_ROW]))
    r = int(ptr32(base + int(a[_QUERY]))[_QUERY_DOWN])
    n = int(a[_N])
    top = (0 - 1) << 30
    if r or int(a[_SLICES]) > 1:
        o = ptr32(base + int(a[_SCORES]))
        first = int(a[_SLICE]) == 0
        while n:
            s = int(y[0])
            if _WIDE:
                s = s << 32 >> 32
            s = (s >> r) * (f[0] >> 5) >> (f[0] & 31)
            if not first:
                s += int(o[0])
                if _WIDE:
                    s = s << 32 >> 32
            o[0] = s
            if s > top:
                top = s
            y = ptr32(int(y) + 4)
            f = ptr16(int(f) + 2)
            o = ptr32(int(o) + 4)
            n -= 1
    else:
        while n & 3:
            s = int(y[0])
            if _WIDE:
                s = s << 32 >> 32
            s = (f[0] >> 5) * s >> (f[0] & 31)
            y[0] = s
            if s > top:
                top = s
            y = ptr32(int(y) + 4)
            f = ptr16(int(f) + 2)
            n -= 1
        while n:
            s = int(y[0])
            if _WIDE:
                s = s << 32 >> 32
            s = (f[0] >> 5) * s >> (f[0] & 31)
            y[0] = s
            if s > top:
                top = s
            s = int(y[1])
            if _WIDE:
                s = s << 32 >> 32
            s = (f[1] >> 5) * s >> (f[1] & 31)
            y[1] = s
            if s > top:
                top = s
            s = int(y[2])
            if _WIDE:
                s = s << 32 >> 32
            s = (f[2] >> 5) * s >> (f[2] & 31)
            y[2] = s
            if s > top:
                top = s
            s = int(y[3])
            if _WIDE:
                s = s << 32 >> 32
            s = (f[3] >> 5) * s >> (f[3] & 31)
            y[3] = s
            if s > top:
                top = s
            y = ptr32(int(y) + 16)
            f = ptr16(int(f) + 8)
            n -= 4
    a[_MAX] = top
    return 0


@micropython.viper
def weights(y: ptr32, d: ptr8, m: ptr8, a: ptr32) -> int:
    # The hottest numbers have the first registers: `d` is a distance, `m` what it is multiplied with.
    base = int(y)
    tables = int(m)
    # Distance d in score to steps of 1/256 of a doubling: (d >> down) * m >> e.
    record = ptr32(base + int(a[_QUERY]))
    m = ptr8(int(record[_QUERY_MANTISSA]) * int(a[_LOG_SCALE]))
    k = 10
    if int(m) >= 0x2000000:
        k = 11
    m = ptr8(int(m) >> k)
    e = int(a[_LOG_EXP]) + 17 + 2048 - k - int(record[_QUERY_EXP]) - int(a[_KEXP]) - int(record[_QUERY_DOWN])
    down = 0
    if e < 1:
        e = 1
        m = ptr8(32767)
    elif e > 17:
        down = e - 17
        if down > 31:
            down = 31
        e = 17
    # The least d >> down that weighs nothing, 7168 steps. From here on all three are negative: so is
    # (y[0] + c) >> down, which times m is the steps with 18 bits behind the point, of any e below 2^31.
    far = 0 - ((7168 << e) + int(m) - 1) // int(m)  # viper: allow divide because m is at least 2^14
    m = ptr8(0 - (int(m) << (18 - e)))
    c = int(a[_MAX])
    if _WIDE:
        c = c << 32 >> 32
    c = (1 << down) - 1 - c
    mask = 255 << 1
    left = int(a[_N])
    y = ptr32(base + int(a[_DOTS]))
    if int(a[_SLICES]) > 1:
        # Scores serve every slice.
        s = ptr32(base + int(a[_SCORES]))
        n = left
        while n:
            y[0] = s[0]
            y = ptr32(int(y) + 4)
            s = ptr32(int(s) + 4)
            n -= 1
    # Zeros make the last batch whole.
    y = ptr32(base + int(a[_DOTS]) + (left << 2))
    n = 0 - left & 7
    while n:
        y[0] = 0
        y = ptr32(int(y) + 4)
        n -= 1
    y = ptr32(base + int(a[_DOTS]))
    f = ptr16(base + int(a[_VSCALE]) + int(a[_SLICE]) * int(a[_SCALE_ROW]))
    sh = ptr32(base + int(a[_UNITS]))
    hi = 0
    lo = 0
    scaled = 0
    while left:
        n = 8
        if left < 8:
            n = left
        left -= n
        start = int(y)
        k = n >> 2
        while k:
            d = ptr8(int(y[0]))
            if _WIDE:
                d = ptr8(int(d) << 32 >> 32)
            d = ptr8((int(d) + c) >> down)
            if int(d) > far:
                d = ptr8(int(d) * int(m))
                w = int(ptr16((int(d) >> 17 & mask) + tables)[0])
                d = ptr8(int(d) >> 26)
                lo = (w << 15 >> int(d)) + lo
                y[0] = f[0] * w >> (f[0] & 31) >> int(d)
            else:
                y[0] = 0
            d = ptr8(int(y[1]))
            if _WIDE:
                d = ptr8(int(d) << 32 >> 32)
            d = ptr8((int(d) + c) >> down)
            if int(d) > far:
                d = ptr8(int(d) * int(m))
                w = int(ptr16((int(d) >> 17 & mask) + tables)[0])
                d = ptr8(int(d) >> 26)
                lo = (w << 15 >> int(d)) + lo
                y[1] = f[1] * w >> (f[1] & 31) >> int(d)
            else:
                y[1] = 0
            d = ptr8(int(y[2]))
            if _WIDE:
                d = ptr8(int(d) << 32 >> 32)
            d = ptr8((int(d) + c) >> down)
            if int(d) > far:
                d = ptr8(int(d) * int(m))
                w = int(ptr16((int(d) >> 17 & mask) + tables)[0])
                d = ptr8(int(d) >> 26)
                lo = (w << 15 >> int(d)) + lo
                y[2] = f[2] * w >> (f[2] & 31) >> int(d)
            else:
                y[2] = 0
            d = ptr8(int(y[3]))
            if _WIDE:
                d = ptr8(int(d) << 32 >> 32)
            d = ptr8((int(d) + c) >> down)
            if int(d) > far:
                d = ptr8(int(d) * int(m))
                w = int(ptr16((int(d) >> 17 & mask) + tables)[0])
                d = ptr8(int(d) >> 26)
                lo = (w << 15 >> int(d)) + lo
                y[3] = f[3] * w >> (f[3] & 31) >> int(d)
            else:
                y[3] = 0
            y = ptr32(int(y) + 16)
            f = ptr16(int(f) + 8)
            k -= 1
        n = n & 3
        while n:
            d = ptr8(int(y[0]))
            if _WIDE:
                d = ptr8(int(d) << 32 >> 32)
            d = ptr8((int(d) + c) >> down)
            if int(d) > far:
                d = ptr8(int(d) * int(m))
                w = int(ptr16((int(d) >> 17 & mask) + tables)[0])
                d = ptr8(int(d) >> 26)
                lo = (w << 15 >> int(d)) + lo
                y[0] = f[0] * w >> (f[0] & 31) >> int(d)
            else:
                y[0] = 0
            y = ptr32(int(y) + 4)
            f = ptr16(int(f) + 2)
            n -= 1
        if lo >> 30:
            # The next batch adds up to 2^30.
            hi = (lo >> 16) + hi
            lo = lo & 0xFFFF
        y = ptr32(start)
        d = ptr8(y[0] + y[1] + y[2] + y[3] + y[4] + y[5] + y[6] + y[7])
        y = ptr32(int(y) + 32)
        sh[0] = int(d)
        sh = ptr32(int(sh) + 4)
        scaled = (int(d) >> 13) + scaled
    hi = (lo >> 16) + hi
    a[_WHI] = hi
    a[_WLO] = lo & 0xFFFF
    unit = 27  # bits of the sum: at least those of the largest weight
    while hi >> (unit - 16):
        unit += 1
    y = ptr32(int(a) + 4 * _UNIT)
    y[0] = unit
    y = ptr32(base + int(a[_DOTS]))
    sh = ptr32(base + int(a[_UNITS]))
    left = (int(a[_N]) + 7) >> 3
    # What all together weigh less than 2^-12 of the sum is left out.
    least = scaled << 1
    n = left
    while n:
        least = least >> 1
        n = n >> 1
    # And what would be shifted down by more than 31.
    if unit > 31:
        n = (1 << (unit - 31)) - 1
        if n > least:
            least = n
    quarter = scaled << 11 | 2047
    if scaled >> 19:
        quarter = 0x3FFFFFFF
    corr = 0
    half = 1 << 19
    one = 1 << 20
    # Reciprocals of the sums from 131 on, which begin at byte 512.
    table = tables + 250
    x = 26
    while left:
        left -= 1
        # The batch's sum, then what its weights are shifted down by.
        d = ptr8(int(sh[0]))
        c = 0x2100000  # weighs nothing
        if int(d) > least:
            # Its bits, less 1; neighbours are alike, so start from the last one.
            if int(d) >> x ^ 1:
                while int(d) >> x >> 1:
                    x += 1
                while not int(d) >> x:
                    x -= 1
            down = unit - x
            k = 0
            if int(d) > quarter:
                if down < 27:
                    k = 1
            n = x - 14
            if n >> 31:
                # Of less than 15 bits all are to be shifted up: what they are multiplied with is.
                e = int(d) << (14 - x)
                d = ptr8(0)
            else:
                e = int(d) >> n
                d = ptr8(n)
            c = e >> 7
            c = (c >> 6) + c
            m = ptr8(int(ptr16((c << 1) + table)[1]))
            off = e * int(m)
            if n >> 31:
                m = ptr8(int(m) << (0 - n))
            if k:
                # A quarter of all. Two parts, of which the second counts 32nds of the first; what is left
                # over goes on.
                c = (c + 1) << 6
                p = y
                w = e = k = 0
                n = 8
                while n:
                    e += (p[0] >> int(d)) * int(m)
                    w += e >> 20
                    k += e >> 15 & 31
                    p[0] = (e >> 20) | ((e >> 15 & 31) << 16)
                    e = e & 32767
                    p = ptr32(int(p) + 4)
                    n -= 1
                corr += (k << 7) * c >> (down + 5)
                corr += (w << 7) * c >> down
                c += 1 << 24
            else:
                # A weight as a small one with 20 bits behind the point and half of one, to round it.
                y[0] = (y[0] >> int(d)) * int(m) + half
                y[1] = (y[1] >> int(d)) * int(m) + half
                y[2] = (y[2] >> int(d)) * int(m) + half
                y[3] = (y[3] >> int(d)) * int(m) + half
                y[4] = (y[4] >> int(d)) * int(m) + half
                y[5] = (y[5] >> int(d)) * int(m) + half
                y[6] = (y[6] >> int(d)) * int(m) + half
                y[7] = (y[7] >> int(d)) * int(m) + half
                d = ptr8(y[0] >> 20)
                d = ptr8((y[1] >> 20) + int(d))
                d = ptr8((y[2] >> 20) + int(d))
                d = ptr8((y[3] >> 20) + int(d))
                d = ptr8((y[4] >> 20) + int(d))
                d = ptr8((y[5] >> 20) + int(d))
                d = ptr8((y[6] >> 20) + int(d))
                d = ptr8((y[7] >> 20) + int(d))
                w = int(d)
                d = ptr8((w << 20) - off)
                if (int(d) + one) >> 21:
                    # Where one has a quarter, and too many were rounded up, or down, those that moved most
                    # are rounded the other way.
                    n = 1
                    off = 0xFFFFF
                    if int(d) < 0:
                        d = ptr8(0 - int(d))
                        n = 0 - 1
                        off = 0
                    if int(d) > 0x140000:
                        if (y[0] | y[1] | y[2] | y[3] | y[4] | y[5] | y[6] | y[7]) >> 26 == 0:
                            d = ptr8(0)
                    while int(d) > 0x140000:
                        c = 0
                        j = 32
                        while j:
                            j -= 4
                            k = int(ptr32(int(y) + j)[0]) & 0xFFFFF ^ off
                            if k >= c:
                                c = k
                                p = ptr32(int(y) + j)
                        p[0] = (((p[0] >> 20) - n) << 20) + half
                        w -= n
                        d = ptr8(int(d) - one)
                c = int(ptr16((w << 1) + table)[0]) * e >> 14
                y[0] = y[0] >> 20
                y[1] = y[1] >> 20
                y[2] = y[2] >> 20
                y[3] = y[3] >> 20
                y[4] = y[4] >> 20
                y[5] = y[5] >> 20
                y[6] = y[6] >> 20
                y[7] = y[7] >> 20
                corr = ((w << 7) * c >> down) + corr
            c = (down << 16) + c
        y = ptr32(int(y) + 32)
        sh[0] = c
        sh = ptr32(int(sh) + 4)
    a[_CORR] = corr
    return 0


@micropython.viper
def av(v: ptr32, m: ptr32, p: ptr32, a: ptr32) -> int:
    # As in qk().
    base = int(v)
    mask = int(p)
    m = p
    row = int(a[_ROW])
    width = int(a[_WIDTH])
    col = 0
    while col < width:
        wide = 8
        if width - col < 8:
            wide = 4
        o = ptr32(base + int(a[_SUMS]) + (col << 2))
        n = wide
        while n:
            o[0] = 0
            o = ptr32(int(o) + 4)
            n -= 1
        o = ptr32(base + int(a[_SUMS]) + (col << 2))
        sh = ptr32(base + int(a[_UNITS]))
        p = ptr32(base + int(a[_DOTS]))
        run = ptr32(int(a) + 4 * _RUN)
        total = int(a[_N])
        n = 0
        e0 = 0
        o0 = 0
        e1 = 0
        o1 = 0
        cut = 0  # bits of a weight before the part of it that is next, where a batch is split
        while total:
            # A batch: 8 tokens, or what is left; it may span runs.
            batch = 8
            if not total >> 3:
                batch = total
            total -= batch
            c = int(sh[0])
            sh = ptr32(int(sh) + 4)
            v0 = int(v)
            n0 = n
            run0 = int(run)
            p0 = int(p)
            while batch:
                if not n:
                    v = ptr32(base + int(a[_VCODES]) + int(a[_SLICE]) * width + col + int(run[_RUN_CODES]))
                    n = int(run[_RUN_COUNT])
                    run = ptr32(int(run) + 4 * _RUN_WORDS)
                    continue
                k = n
                if batch < k:
                    k = batch
                n -= k
                batch -= k
                if c >> 25:
                    # It weighs nothing.
                    v = ptr32(int(v) + k * row)
                    p = ptr32(int(p) + (k << 2))
                    k = 0
                if wide + (c >> 24) == 8:
                    while k >> 2:
                        e0 = (v[0] & int(m)) * p[0] + e0
                        o0 = (v[0] >> 8 & int(m)) * p[0] + o0
                        e1 = (v[1] & int(m)) * p[0] + e1
                        o1 = (v[1] >> 8 & int(m)) * p[0] + o1
                        v = ptr32(int(v) + row)
                        e0 = (v[0] & int(m)) * p[1] + e0
                        o0 = (v[0] >> 8 & int(m)) * p[1] + o0
                        e1 = (v[1] & int(m)) * p[1] + e1
                        o1 = (v[1] >> 8 & int(m)) * p[1] + o1
                        v = ptr32(int(v) + row)
                        e0 = (v[0] & int(m)) * p[2] + e0
                        o0 = (v[0] >> 8 & int(m)) * p[2] + o0
                        e1 = (v[1] & int(m)) * p[2] + e1
                        o1 = (v[1] >> 8 & int(m)) * p[2] + o1
                        v = ptr32(int(v) + row)
                        e0 = (v[0] & int(m)) * p[3] + e0
                        o0 = (v[0] >> 8 & int(m)) * p[3] + o0
                        e1 = (v[1] & int(m)) * p[3] + e1
                        o1 = (v[1] >> 8 & int(m)) * p[3] + o1
                        v = ptr32(int(v) + row)
                        p = ptr32(int(p) + 16)
                        k -= 4
                while k:
                    w = int(p[0]) >> cut & 0xFFFF
                    e0 = (v[0] & int(m)) * w + e0
                    o0 = (v[0] >> 8 & int(m)) * w + o0
                    if wide == 8:
                        e1 = (v[1] & int(m)) * w + e1
                        o1 = (v[1] >> 8 & int(m)) * w + o1
                    v = ptr32(int(v) + row)
                    p = ptr32(int(p) + 4)
                    k -= 1
            if not c >> 25:
                m = o
                k = c >> 16 & 31
                if cut:
                    k += 5
                f = c & 0xFFFF
                m[0] = ((e0 & 0xFFFF) * f >> k) + m[0]
                m[1] = ((o0 & 0xFFFF) * f >> k) + m[1]
                m[2] = ((e0 >> 16 & 0xFFFF) * f >> k) + m[2]
                m[3] = ((o0 >> 16 & 0xFFFF) * f >> k) + m[3]
                e0 = 0
                o0 = 0
                if wide == 8:
                    m[4] = ((e1 & 0xFFFF) * f >> k) + m[4]
                    m[5] = ((o1 & 0xFFFF) * f >> k) + m[5]
                    m[6] = ((e1 >> 16 & 0xFFFF) * f >> k) + m[6]
                    m[7] = ((o1 >> 16 & 0xFFFF) * f >> k) + m[7]
                    e1 = 0
                    o1 = 0
                m = ptr32(mask)
            if c >> 24 & 1:
                # A split batch: once more with the other part of its weights.
                cut = 16 - cut
                if cut:
                    total += (int(p) - p0) >> 2
                    v = ptr32(v0)
                    n = n0
                    run = ptr32(run0)
                    p = ptr32(p0)
                    sh = ptr32(int(sh) - 4)
        col += wide
    return 0


@micropython.viper
def emit(o: ptr32, z: ptr32, out: ptr8) -> int:
    # `o` goes through sums; `z` is a number of the result.
    base = int(o)
    a = ptr32(int(z))
    # The 16 bits that the sum of weights begins with.
    n = int(a[_UNIT])
    if n < 32:
        n = (int(a[_WHI]) << (32 - n)) | (int(a[_WLO]) >> (n - 16))
    else:
        n = int(a[_WHI]) >> (n - 32)
    inv = 1  # a literal 2^30 would not compile
    inv = (inv << 30) // n  # viper: allow divide because n is at least 32768
    x = int(a[_VEXP]) - int(a[_V_BIAS])
    at = int(ptr32(base + int(a[_QUERY]))[_QUERY_AT]) + int(a[_SLICE]) * int(a[_SLICE_WIDTH])
    o = ptr32(base + int(a[_SUMS]))
    corr = int(a[_CORR])
    shift = int(a[_OUT_SHIFT])
    out = ptr8(int(out) + (at << (1 if shift else 2)))
    n = int(a[_SLICE_WIDTH])
    if shift:
        s = 64 - shift - x
        while n:
            z = ptr32(((int(o[0]) - corr + 0x1000) >> 13) * inv)
            if s > 30:
                z = ptr32(0)
            elif s > 0:
                z = ptr32((int(z) + (1 << (s - 1))) >> s)
            elif int(z):
                if int(z) > 32767:
                    z = ptr32(32767)
                elif int(z) < -32767:
                    z = ptr32(-32767)
                if s < -15:
                    z = ptr32(int(z) << 15)
                else:
                    z = ptr32(int(z) << (0 - s))
            if int(z) > 32767:
                z = ptr32(32767)
            elif int(z) < -32767:
                z = ptr32(-32767)
            ptr16(out)[0] = int(z)
            out = ptr8(int(out) + 2)
            o = ptr32(int(o) + 4)
            n -= 1
    else:
        while n:
            z = ptr32(int(o[0]) - corr)
            sign = 0
            if int(z) < 0:
                sign = 1
                z = ptr32(0 - int(z))
            f = x + 154
            if int(z):
                while int(z) >> 27 == 0:
                    z = ptr32(int(z) << 1)
                    f -= 1
                z = ptr32(((int(z) + 0x1000) >> 13) * inv >> 4)
                while int(z) > 0xFFFFFF:
                    z = ptr32(int(z) >> 1)
                    f += 1
                if f < 1:
                    z = ptr32(0)
                else:
                    z = ptr32((f << 23) + (int(z) & 0x7FFFFF) + (sign << 31))
            ptr32(out)[0] = int(z)
            out = ptr8(int(out) + 4)
            o = ptr32(int(o) + 4)
            n -= 1
    return 0
