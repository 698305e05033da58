"""The kernels of plain.py as native code: same bits, no allocation, 4 arguments, 32-bit words.

Loaded through mpy_kv.port.load_native, which adapts `>> _HI` and `_WIDE` to 64-bit interpreters. Style
forced by the emitters of released firmware: pointers are moved and indexed with constants only, no
unary minus on a local, no literal of 2^30 or more, the two hottest pointers first.
Bounds B1..B6 are those of plain.py; indexes into `a` and `e` those of params.py.
"""

import micropython
from micropython import const

_WIDE = const(0)
_HI = const(16)


@micropython.viper
def encode(buf: ptr8, x: ptr8, e: ptr32) -> int:
    base = int(buf)
    shift = int(e[10])
    at = int(e[9])
    head = base + int(e[0])
    scale_at = base + int(e[2])
    piece = 0
    groups = int(e[4]) // int(e[5])  # viper: allow divide because a group has values
    mask31 = int(e[11])
    while groups:
        groups -= 1
        # Largest magnitude of the group, as 24 bits and an exponent.
        big = 0
        n = int(e[5])
        if shift:
            p16 = ptr16(int(x) + (at << 1))
            while n:
                v = int(p16[0])
                if v & 0x8000:
                    v = 65536 - v
                if v > big:
                    big = v
                p16 = ptr16(int(p16) + 2)
                n -= 1
            ex = 64 - shift
            if big:
                if big < 0x10000:
                    big <<= 8
                    ex -= 8
                if big < 0x10000:
                    big <<= 8
                    ex -= 8
                if big < 0x100000:
                    big <<= 4
                    ex -= 4
                if big < 0x400000:
                    big <<= 2
                    ex -= 2
                if big < 0x800000:
                    big <<= 1
                    ex -= 1
        else:
            p32 = ptr32(int(x) + (at << 2))
            while n:
                v = int(p32[0]) & mask31
                if v > big:
                    big = v
                p32 = ptr32(int(p32) + 4)
                n -= 1
            ex = big >> 23
            if ex:
                big = (big & 0x7FFFFF) | 0x800000
            else:
                big = 0
            ex -= 150
        # Smallest float16 scale sm * 2^se with 127 * scale >= largest.
        sm = 1
        se = 0
        half = 0
        if big:
            t = (big + 126) // 127
            k = 6
            sm = (t + 63) >> 6
            if sm > 2047:
                k = 7
                sm = (t + 127) >> 7
            se = ex + k
            if se > 5:
                return -1
            if se < -24:
                k += -24 - se
                if k > 30:
                    sm = 1
                else:
                    sm = (t + (1 << k) - 1) >> k
                se = -24
                half = sm
            else:
                half = ((se + 25) << 10) + sm - 1024
        p16 = ptr16(scale_at)
        p16[0] = half
        scale_at += int(e[3])
        two = sm << 1
        inv = (1 << 23) // two  # viper: allow divide because sm is at least 1
        # Codes: floor((2|x| + s) / 2s); the reciprocal may fall one short, never over.
        pieces = int(e[5]) // int(e[6])  # viper: allow divide because a piece has values
        while pieces:
            pieces -= 1
            out = ptr8(head + piece * int(e[7]))
            c = int(e[6])
            if shift:
                p16 = ptr16(int(x) + (at << 1))
                at += c
                s = 65 - shift - se
                while c:
                    v = int(p16[0])
                    neg = v & 0x8000
                    if neg:
                        v = 65536 - v
                    if s >= 0:
                        v = v << s
                    elif s > -31:
                        v = v >> (0 - s)
                    else:
                        v = 0
                    v += sm
                    code = (v * inv) >> 23
                    if v - code * two >= two:
                        code += 1
                    if neg:
                        out[0] = 128 - code
                    else:
                        out[0] = 128 + code
                    out = ptr8(int(out) + 1)
                    p16 = ptr16(int(p16) + 2)
                    c -= 1
            else:
                p32 = ptr32(int(x) + (at << 2))
                at += c
                s = se + 149
                while c:
                    v = int(p32[0])
                    neg = (v >> 31) & 1
                    k = s - ((v >> 23) & 255)
                    if k < 24:
                        v = ((v & 0x7FFFFF) | 0x800000) >> k
                    else:
                        v = 0
                    v += sm
                    code = (v * inv) >> 23
                    if v - code * two >= two:
                        code += 1
                    if neg:
                        out[0] = 128 - code
                    else:
                        out[0] = 128 + code
                    out = ptr8(int(out) + 1)
                    p32 = ptr32(int(p32) + 4)
                    c -= 1
            c = int(e[7]) - int(e[6])
            while c:
                out[0] = 128
                out = ptr8(int(out) + 1)
                c -= 1
            piece += 1
            if piece == int(e[8]):
                piece = 0
                head += int(e[1])
    return 0


@micropython.viper
def query(buf: ptr8, q: ptr8, qs: ptr8, a: ptr32) -> int:  # viper: allow far-jump because 1.24 just takes it
    base = int(buf)
    shift = int(a[35])
    d = int(a[32])
    heads = int(a[31])
    at = int(a[30])
    rec = base + int(a[39])
    mask31 = int(a[36])
    while heads:
        heads -= 1
        big = 0
        sets = int(a[34])
        while sets:
            sets -= 1
            x = int(qs) if sets else int(q)
            n = d
            if shift:
                p16 = ptr16(x + (at << 1))
                while n:
                    v = int(p16[0])
                    if v & 0x8000:
                        v = 65536 - v
                    if v > big:
                        big = v
                    p16 = ptr16(int(p16) + 2)
                    n -= 1
            else:
                p32 = ptr32(x + (at << 2))
                while n:
                    v = int(p32[0]) & mask31
                    if v > big:
                        big = v
                    p32 = ptr32(int(p32) + 4)
                    n -= 1
        if shift:
            ex = 64 - shift
            if big:
                if big < 0x10000:
                    big <<= 8
                    ex -= 8
                if big < 0x10000:
                    big <<= 8
                    ex -= 8
                if big < 0x100000:
                    big <<= 4
                    ex -= 4
                if big < 0x400000:
                    big <<= 2
                    ex -= 2
                if big < 0x800000:
                    big <<= 1
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
            v = (big + 63) >> 6
            n = 6
            sm = (v + 63) >> 6
            if sm > 2047:
                n = 7
                sm = (v + 127) >> 7
            if sm > 2047:
                n = 8
                sm = (v + 255) >> 8
            se = ex + n
        two = sm << 1
        inv = (1 << 23) // two  # viper: allow divide because sm is at least 1
        # The record's first words carry what the inner loop needs, as there are few registers.
        r32 = ptr32(rec)
        r32[0] = sm
        r32[1] = se + 2048
        most = 0
        sets = int(a[34])
        while sets:
            sets -= 1
            x = int(qs) if sets else int(q)
            i = at
            cp = ptr32(rec + 16 + (int(a[38]) if sets else 0))
            wp = ptr32(int(cp) + (int(a[3]) << 2))
            total = 0
            piece = int(a[3])
            while piece:
                piece -= 1
                c0 = 0
                left = int(a[37])
                n = int(a[4])
                while n:
                    n -= 1
                    # Column of this value within its word, 0..3.
                    col = (int(a[4]) - 1 - n) & 3
                    code = 0
                    if left:
                        left -= 1
                        if shift:
                            v = int(ptr16(x + (i << 1))[0])
                            neg = v & 0x8000
                            if neg:
                                v = 65536 - v
                            k = 65 - shift - se
                            if k >= 0:
                                v = v << k
                            elif k > -31:
                                v = v >> (0 - k)
                            else:
                                v = 0
                        else:
                            v = int(ptr32(x + (i << 2))[0])
                            neg = (v >> 31) & 1
                            k = se + 149 - ((v >> 23) & 255)
                            if k < 24 and (v & mask31) >> 23:
                                v = ((v & 0x7FFFFF) | 0x800000) >> k
                            else:
                                v = 0
                        i += 1
                        v += sm
                        code = (v * inv) >> 23
                        if v - code * two >= two:
                            code += 1
                        total += code
                        if neg:
                            code = 0 - code
                            c0 += col >> 1
                            if code == 0:
                                c0 -= col >> 1
                        c0 -= code << 7
                    if col == 0:
                        even = code << 16
                    elif col == 1:
                        odd = code << 16
                    elif col == 2:
                        wp[0] = even + code
                    else:
                        wp[1] = odd + code
                        wp = ptr32(int(wp) + 8)
                cp[0] = c0
                cp = ptr32(int(cp) + 4)
            if total > most:
                most = total
        n = 0
        most = most * 127
        while (most >> n) + int(a[3]) > 32768:
            n += 1
        r32 = ptr32(rec)
        r32[2] = n
        r32[3] = 0
        at += d
        rec += int(a[33])
    return 0


@micropython.viper
def scales(buf: ptr8, a: ptr32, runs: ptr32, which: int) -> int:
    base = int(buf)
    src = base + (int(a[8]) if which else int(a[7]))
    dst = base + (int(a[13]) if which else int(a[12]))
    top = 0
    s = int(a[3])
    while s:
        s -= 1
        r = ptr32(int(runs))
        left = int(a[1])
        while left:
            left -= 1
            p = ptr16(src + int(r[1]))
            n = int(r[2])
            r = ptr32(int(r) + 16)
            while n:
                h = int(p[0])
                if h > top:
                    top = h
                p = ptr16(int(p) + 2)
                n -= 1
        src += int(a[9])
    top = top >> 10
    if top == 0:
        top = 1
    if which:
        a[21] = top
    else:
        a[20] = top
    src = base + (int(a[8]) if which else int(a[7]))
    s = int(a[3])
    while s:
        s -= 1
        o = ptr16(dst)
        r = ptr32(int(runs))
        left = int(a[1])
        while left:
            left -= 1
            p = ptr16(src + int(r[1]))
            n = int(r[2])
            r = ptr32(int(r) + 16)
            while n:
                h = int(p[0])
                e = h >> 10
                h = h & 1023
                if e:
                    h += 1024
                else:
                    e = 1
                o[0] = h << 4 >> (top - e)
                o = ptr16(int(o) + 2)
                p = ptr16(int(p) + 2)
                n -= 1
        dst += int(a[14])
        src += int(a[9])
    return 0


@micropython.viper
def qk(k: ptr32, y: ptr32, a: ptr32, runs: ptr32) -> int:
    base = int(k)
    m = 0x00FF00FF
    width = int(a[4])
    row = int(a[2])
    col = 0
    while col < width:
        r = ptr32(int(runs))
        left = int(a[1])
        y = ptr32(base + int(a[11]))
        while left:
            left -= 1
            at = base + int(a[17]) + 16
            if r[3]:
                at += int(a[18])
            c = int(ptr32(at + (int(a[19]) << 2))[0])
            q = ptr32(at + (int(a[3]) << 2) + ((int(a[19]) * width + col) << 1))
            q0 = int(q[0])
            q1 = int(q[1])
            if _WIDE:
                q0 = q0 << 32 >> 32
                q1 = q1 << 32 >> 32
            k = ptr32(base + int(a[5]) + int(a[19]) * width + col + int(r[0]))
            n = int(r[2])
            r = ptr32(int(r) + 16)
            if width - col < 8:
                while n:
                    w = k[0]
                    c1 = ((w & m) * q0 >> _HI) + ((w >> 8 & m) * q1 >> _HI)
                    if col:
                        y[0] += c1
                    else:
                        y[0] = c1 + c
                    y = ptr32(int(y) + 4)
                    k = ptr32(int(k) + row)
                    n -= 1
            else:
                q2 = int(q[2])
                q3 = int(q[3])
                if _WIDE:
                    q2 = q2 << 32 >> 32
                    q3 = q3 << 32 >> 32
                if col:
                    while n:
                        w = k[0]
                        c1 = ((w & m) * q0 >> _HI) + ((w >> 8 & m) * q1 >> _HI)
                        w = k[1]
                        y[0] += c1 + ((w & m) * q2 >> _HI) + ((w >> 8 & m) * q3 >> _HI)
                        y = ptr32(int(y) + 4)
                        k = ptr32(int(k) + row)
                        n -= 1
                else:
                    while n:
                        w = k[0]
                        c1 = ((w & m) * q0 >> _HI) + ((w >> 8 & m) * q1 >> _HI) + c
                        w = k[1]
                        y[0] = c1 + ((w & m) * q2 >> _HI) + ((w >> 8 & m) * q3 >> _HI)
                        y = ptr32(int(y) + 4)
                        k = ptr32(int(k) + row)
                        n -= 1
        col += 8
    return 0


@micropython.viper
def score(buf: ptr32, a: ptr32) -> int:
    base = int(buf)
    d = ptr32(base + int(a[11]))
    f = ptr16(base + int(a[12]) + int(a[19]) * int(a[14]))
    y = ptr32(base + int(a[10]))
    r = int(ptr32(base + int(a[17]))[2])
    n = int(a[0])
    top = (0 - 1) << 30
    if a[19]:
        while n:
            s = int(d[0])
            o = int(y[0])
            if _WIDE:
                s = s << 32 >> 32
                o = o << 32 >> 32
            s = (s >> r) * int(f[0]) + o
            y[0] = s
            if s > top:
                top = s
            d = ptr32(int(d) + 4)
            f = ptr16(int(f) + 2)
            y = ptr32(int(y) + 4)
            n -= 1
    else:
        while n:
            s = int(d[0])
            if _WIDE:
                s = s << 32 >> 32
            s = (s >> r) * int(f[0])
            y[0] = s
            if s > top:
                top = s
            d = ptr32(int(d) + 4)
            f = ptr16(int(f) + 2)
            y = ptr32(int(y) + 4)
            n -= 1
    a[22] = top
    return 0


@micropython.viper
def weights(buf: ptr32, a: ptr32, exp2: ptr16) -> int:
    y = ptr32(int(buf) + int(a[10]))
    q = ptr32(int(buf) + int(a[17]))
    m = int(q[0]) * int(a[26])
    k = 10
    if m >= 0x2000000:
        k = 11
    m = m >> k
    e = int(a[27]) + 21 + 2048 - k - int(q[1]) - int(a[20]) - int(q[2])
    down = 0
    if e < 1:
        e = 1
        m = 32767
    elif e > 17:
        down = e - 17
        if down > 31:
            down = 31
        e = 17
    half = 1 << (e - 1)
    top = int(a[22])
    if _WIDE:
        top = top << 32 >> 32
    tab = int(exp2)
    hi = 0
    lo = 0
    n = int(a[0])
    while n:
        d = int(y[0])
        if _WIDE:
            d = d << 32 >> 32
        d = (top - d) >> down
        w = 0
        if d < 0x10000:
            d = (d * m + half) >> e
            if d < 7168:
                w = int(ptr16(tab + ((d & 255) << 1))[0])
                d = d >> 8
                lo += w << 15 >> d
                w = w | (d << 16)
                if lo >= 0x20000000:
                    hi += lo >> 16
                    lo = lo & 0xFFFF
        y[0] = w
        y = ptr32(int(y) + 4)
        n -= 1
    a[23] = hi + (lo >> 16)
    a[24] = lo & 0xFFFF
    return 0


@micropython.viper
def share(buf: ptr32, a: ptr32) -> int:
    base = int(buf)
    y = ptr32(base + int(a[10]))
    d = ptr32(base + int(a[11]))
    f = ptr16(base + int(a[13]) + int(a[19]) * int(a[14]))
    sh = ptr32(base + int(a[15]))
    n = int(a[0])
    unit = 19
    while n >> (unit - 19):
        unit += 1
    corr = 0
    e = 0
    while n:
        k = 8
        if n < 8:
            k = n
        n -= k
        total = 0
        j = k
        while j:
            w = int(y[0])
            w = ((w & 0xFFFF) * int(f[0])) >> (w >> 16)
            d[0] = w
            total += w
            y = ptr32(int(y) + 4)
            d = ptr32(int(d) + 4)
            f = ptr16(int(f) + 2)
            j -= 1
        # The smallest exponent that fits a batch; neighbours are alike, so start from the last one.
        while total >> e > 252:
            e += 1
        while e and total >> (e - 1) < 253:
            e -= 1
        half = 1 << e >> 1
        c = total
        if e > 14:
            c = c >> (e - 14)
        else:
            c = c << (14 - e)
        total = 0
        d = ptr32(int(d) - (k << 2))
        while k:
            w = (int(d[0]) + half) >> e
            d[0] = w
            total += w
            d = ptr32(int(d) + 4)
            k -= 1
        if total:
            c = (c + (total >> 1)) // total
        j = unit - e
        if j > 31:
            j = 31
        sh[0] = c + (j << 16)
        sh = ptr32(int(sh) + 4)
        corr += (total << 7) * c >> j
    a[25] = corr
    return 0


@micropython.viper
def av(v: ptr32, p: ptr32, a: ptr32, runs: ptr32) -> int:
    base = int(v)
    m = 0x00FF00FF
    row = int(a[2])
    width = int(a[4])
    col = 0
    while col < width:
        wide = 8
        if width - col < 8:
            wide = 4
        o = ptr32(base + int(a[16]) + (col << 2))
        n = wide
        while n:
            o[0] = 0
            o = ptr32(int(o) + 4)
            n -= 1
        o = ptr32(base + int(a[16]) + (col << 2))
        sh = ptr32(base + int(a[15]))
        p = ptr32(base + int(a[11]))
        r = ptr32(int(runs))
        total = int(a[0])
        n = 0
        e0 = 0
        o0 = 0
        e1 = 0
        o1 = 0
        while total:
            # A batch: 8 tokens, or what is left; it may span runs.
            batch = 8
            if total < 8:
                batch = total
            total -= batch
            while batch:
                if n == 0:
                    v = ptr32(base + int(a[6]) + int(a[19]) * width + col + int(r[0]))
                    n = int(r[2])
                    r = ptr32(int(r) + 16)
                    continue
                k = n
                if batch < k:
                    k = batch
                n -= k
                batch -= k
                if wide == 8:
                    while k > 1:
                        w0 = int(v[0])
                        w1 = int(v[1])
                        v = ptr32(int(v) + row)
                        w2 = int(v[0])
                        w3 = int(v[1])
                        v = ptr32(int(v) + row)
                        p0 = int(p[0])
                        p1 = int(p[1])
                        p = ptr32(int(p) + 8)
                        e0 += (w0 & m) * p0 + (w2 & m) * p1
                        o0 += (w0 >> 8 & m) * p0 + (w2 >> 8 & m) * p1
                        e1 += (w1 & m) * p0 + (w3 & m) * p1
                        o1 += (w1 >> 8 & m) * p0 + (w3 >> 8 & m) * p1
                        k -= 2
                while k:
                    p0 = int(p[0])
                    w0 = int(v[0])
                    e0 += (w0 & m) * p0
                    o0 += (w0 >> 8 & m) * p0
                    if wide == 8:
                        w1 = int(v[1])
                        e1 += (w1 & m) * p0
                        o1 += (w1 >> 8 & m) * p0
                    v = ptr32(int(v) + row)
                    p = ptr32(int(p) + 4)
                    k -= 1
            c = int(sh[0])
            sh = ptr32(int(sh) + 4)
            k = c >> 16
            c = c & 0xFFFF
            o[0] += (e0 & 0xFFFF) * c >> k
            o[1] += (o0 & 0xFFFF) * c >> k
            o[2] += (e0 >> 16 & 0xFFFF) * c >> k
            o[3] += (o0 >> 16 & 0xFFFF) * c >> k
            e0 = 0
            o0 = 0
            if wide == 8:
                o[4] += (e1 & 0xFFFF) * c >> k
                o[5] += (o1 & 0xFFFF) * c >> k
                o[6] += (e1 >> 16 & 0xFFFF) * c >> k
                o[7] += (o1 >> 16 & 0xFFFF) * c >> k
                e1 = 0
                o1 = 0
        col += wide
    return 0


@micropython.viper
def emit(buf: ptr32, a: ptr32, out: ptr8) -> int:
    base = int(buf)
    hi = int(a[23])
    lo = int(a[24])
    we = 16
    while hi < 32768:
        hi = (hi << 1) | (lo >> 15 & 1)
        lo = lo << 1
        we -= 1
    while hi > 65535:
        hi = hi >> 1
        we += 1
    n = 1  # a literal 2^30 would not compile
    inv = (n << 30) // hi  # viper: allow divide because hi is at least 32768
    n = int(a[0])
    x = int(a[21]) - 36
    down = we + 3
    while n:
        n = n >> 1
        down -= 1
    up = 0
    if down < 0:
        up = 0 - down
        down = 0
    half = 1 << down >> 1
    at = int(a[28]) + int(a[19]) * int(a[37])
    o = ptr32(base + int(a[16]))
    corr = int(a[25])
    shift = int(a[29])
    n = int(a[37])
    if shift:
        p16 = ptr16(int(out) + (at << 1))
        s = 64 - shift - x
        while n:
            z = ((((int(o[0]) - corr) << up) + half) >> down) * inv
            if s > 30:
                z = 0
            elif s > 0:
                z = (z + (1 << (s - 1))) >> s
            elif z:
                if z > 32767:
                    z = 32767
                elif z < -32767:
                    z = -32767
                if s < -15:
                    z = z << 15
                else:
                    z = z << (0 - s)
            if z > 32767:
                z = 32767
            elif z < -32767:
                z = -32767
            p16[0] = z
            p16 = ptr16(int(p16) + 2)
            o = ptr32(int(o) + 4)
            n -= 1
    else:
        p32 = ptr32(int(out) + (at << 2))
        while n:
            z = ((((int(o[0]) - corr) << up) + half) >> down) * inv
            sign = 0
            if z < 0:
                sign = 1
                z = 0 - z
            f = x + 150
            if z:
                while z > 0xFFFFFF:
                    z = z >> 1
                    f += 1
                if z < 0x100:
                    z <<= 16
                    f -= 16
                if z < 0x10000:
                    z <<= 8
                    f -= 8
                while z < 0x800000:
                    z <<= 1
                    f -= 1
                if f < 1:
                    z = 0
                else:
                    z = (f << 23) + (z & 0x7FFFFF) + (sign << 31)
            p32[0] = z
            p32 = ptr32(int(p32) + 4)
            o = ptr32(int(o) + 4)
            n -= 1
    return 0
