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
def encode(out: ptr8, k: ptr8, v: ptr8, e: ptr32) -> int:
    base = int(out)
    layer = ptr32(int(e) + 72 + int(e[0]) * 12)
    mask31 = int(e[13])
    value = 0
    while value < 2:
        shift = int(layer[1])
        x = int(k)
        head = base + int(layer[0]) + int(e[1]) * int(e[10])
        scale_at = base + int(layer[0]) + int(e[11]) + (int(e[1]) << 1)
        if value:
            shift = int(layer[2])
            x = int(v)
            head += int(e[12])
            scale_at += int(e[12])
        x += int(e[2]) << (1 if shift else 2)
        piece = 0
        groups = int(e[3]) // int(e[4])  # viper: allow divide because a group has values
        while groups:
            groups -= 1
            # Largest magnitude of the group, as 24 bits and an exponent.
            big = 0
            n = int(e[4])
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
            # Smallest float16 scale sm * 2^se with 127 * scale >= largest.
            sm = 1
            se = 0
            half = 0
            if big:
                t = (big + 126) // 127
                cut = 6
                sm = (t + 63) >> 6
                if sm > 2047:
                    cut = 7
                    sm = (t + 127) >> 7
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
            scale_at += int(e[9])
            two = sm << 1
            inv = (1 << 23) // two  # viper: allow divide because sm is at least 1
            # Codes: floor((2|x| + s) / 2s); the reciprocal may fall one short, never over.
            pieces = int(e[4]) // int(e[5])  # viper: allow divide because a piece has values
            while pieces:
                pieces -= 1
                out = ptr8(head + piece * int(e[6]))
                c = int(e[5])
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
                    out[0] = 128 + code
                    out = ptr8(int(out) + 1)
                    c -= 1
                c = int(e[6]) - int(e[5])
                while c:
                    out[0] = 128
                    out = ptr8(int(out) + 1)
                    c -= 1
                piece += 1
                if piece == int(e[7]):
                    piece = 0
                    head += int(e[8])
        value += 1
    return 0


@micropython.viper
def query(buf: ptr8, q: ptr8, qs: ptr8, a: ptr32) -> int:
    base = int(buf)
    shift = int(a[35])
    d = int(a[32])
    heads = int(a[37])
    at = int(a[30])
    rec = base + int(a[42])
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
                left = int(a[31])
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
                if int(a[4]) & 4:
                    wp[0] = 0
                    wp[1] = 0
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
        r32[3] = at
        at += d
        rec += int(a[33])
    return 0


@micropython.viper
def scales(buf: ptr8, p: ptr16, which: int, a: ptr32) -> int:
    base = int(buf)
    src = base + (int(a[8]) if which else int(a[7]))
    top = 0
    s = int(a[3])
    while s:
        s -= 1
        r = ptr32(int(a) + 172)
        left = int(a[1])
        while left:
            left -= 1
            p = ptr16(src + int(r[1]))
            n = int(r[2])
            r = ptr32(int(r) + 16)
            while n > 3:
                if int(p[0]) > top:
                    top = int(p[0])
                if int(p[1]) > top:
                    top = int(p[1])
                if int(p[2]) > top:
                    top = int(p[2])
                if int(p[3]) > top:
                    top = int(p[3])
                p = ptr16(int(p) + 8)
                n -= 4
            while n:
                if int(p[0]) > top:
                    top = int(p[0])
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
    dst = base + (int(a[13]) if which else int(a[12]))
    s = int(a[3])
    while s:
        s -= 1
        o = ptr16(dst)
        r = ptr32(int(a) + 172)
        left = int(a[1])
        while left:
            left -= 1
            p = ptr16(src + int(r[1]))
            n = int(r[2])
            r = ptr32(int(r) + 16)
            while n:
                h = int(p[0])
                p = ptr16(int(p) + 2)
                if h < 1024:
                    o[0] = h << 4 >> (top - 1)
                else:
                    o[0] = (((h & 1023) + 1024) << 4) >> (top - (h >> 10))
                o = ptr16(int(o) + 2)
                n -= 1
        dst += int(a[14])
        src += int(a[9])
    return 0


@micropython.viper
def qk(k: ptr32, y: ptr32, m: int, a: ptr32) -> int:
    base = int(k)
    row = int(a[2])
    slice_at = int(a[19]) * int(a[4])
    words = (int(a[4]) + 7) & 0x7FF8
    col = 0
    while col < words:
        r = ptr32(int(a) + 172)
        left = int(a[1])
        y = ptr32(base + int(a[11]))
        while left:
            left -= 1
            at = base + int(a[17]) + 16
            if r[3]:
                at += int(a[18])
            c = int(ptr32(at + (int(a[19]) << 2))[0])
            q = ptr32(at + (int(a[3]) << 2) + ((int(a[19]) * words + col) << 1))
            q0 = int(q[0])
            q1 = int(q[1])
            q2 = int(q[2])
            q3 = int(q[3])
            if _WIDE:
                q0 = q0 << 32 >> 32
                q1 = q1 << 32 >> 32
                q2 = q2 << 32 >> 32
                q3 = q3 << 32 >> 32
            k = ptr32(base + int(a[5]) + slice_at + col + int(r[0]))
            n = int(r[2])
            r = ptr32(int(r) + 16)
            # Two tokens a turn, after the odd one.
            if n & 1:
                w = c
                if col:
                    w = int(y[0])
                y[0] = (
                    ((k[0] & m) * q0 >> _HI)
                    + ((k[0] >> 8 & m) * q1 >> _HI)
                    + ((k[1] & m) * q2 >> _HI)
                    + ((k[1] >> 8 & m) * q3 >> _HI)
                    + w
                )
                y = ptr32(int(y) + 4)
                k = ptr32(int(k) + row)
            n = n >> 1
            if col:
                while n:
                    y[0] = (
                        ((k[0] & m) * q0 >> _HI)
                        + ((k[0] >> 8 & m) * q1 >> _HI)
                        + ((k[1] & m) * q2 >> _HI)
                        + ((k[1] >> 8 & m) * q3 >> _HI)
                        + y[0]
                    )
                    k = ptr32(int(k) + row)
                    y[1] = (
                        ((k[0] & m) * q0 >> _HI)
                        + ((k[0] >> 8 & m) * q1 >> _HI)
                        + ((k[1] & m) * q2 >> _HI)
                        + ((k[1] >> 8 & m) * q3 >> _HI)
                        + y[1]
                    )
                    k = ptr32(int(k) + row)
                    y = ptr32(int(y) + 8)
                    n -= 1
            else:
                while n:
                    y[0] = (
                        ((k[0] & m) * q0 >> _HI)
                        + ((k[0] >> 8 & m) * q1 >> _HI)
                        + ((k[1] & m) * q2 >> _HI)
                        + ((k[1] >> 8 & m) * q3 >> _HI)
                        + c
                    )
                    k = ptr32(int(k) + row)
                    y[1] = (
                        ((k[0] & m) * q0 >> _HI)
                        + ((k[0] >> 8 & m) * q1 >> _HI)
                        + ((k[1] & m) * q2 >> _HI)
                        + ((k[1] >> 8 & m) * q3 >> _HI)
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
    y = ptr32(base + int(a[11]))
    f = ptr16(base + int(a[12]) + int(a[19]) * int(a[14]))
    r = int(ptr32(base + int(a[17]))[2])
    n = int(a[0])
    top = (0 - 1) << 30
    if int(a[3]) > 1:
        o = ptr32(base + int(a[10]))
        first = int(a[19]) == 0
        while n:
            s = int(y[0])
            if _WIDE:
                s = s << 32 >> 32
            s = (s >> r) * int(f[0])
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
            s = (s >> r) * int(f[0])
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
            s = (s >> r) * int(f[0])
            y[0] = s
            if s > top:
                top = s
            s = int(y[1])
            if _WIDE:
                s = s << 32 >> 32
            s = (s >> r) * int(f[1])
            y[1] = s
            if s > top:
                top = s
            s = int(y[2])
            if _WIDE:
                s = s << 32 >> 32
            s = (s >> r) * int(f[2])
            y[2] = s
            if s > top:
                top = s
            s = int(y[3])
            if _WIDE:
                s = s << 32 >> 32
            s = (s >> r) * int(f[3])
            y[3] = s
            if s > top:
                top = s
            y = ptr32(int(y) + 16)
            f = ptr16(int(f) + 8)
            n -= 4
    a[22] = top
    return 0


@micropython.viper
def weights(y: ptr32, f: ptr16, tables: ptr16, a: ptr32) -> int:
    base = int(y)
    # Distance d in score to steps of 1/256 of a doubling: (d >> down) * m >> e.
    q = ptr32(base + int(a[17]))
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
    # The least d >> down that weighs nothing: 7168 steps.
    far = ((7168 << e) + m - 1) // m  # viper: allow divide because m is at least 2^14
    top = int(a[22])
    if _WIDE:
        top = top << 32 >> 32
    left = int(a[0])
    unit = 19
    while left >> (unit - 19):
        unit += 1
    y = ptr32(base + int(a[11]))
    if int(a[3]) > 1:
        # Scores serve every slice.
        s = ptr32(base + int(a[10]))
        n = left
        while n:
            y[0] = s[0]
            y = ptr32(int(y) + 4)
            s = ptr32(int(s) + 4)
            n -= 1
        y = ptr32(base + int(a[11]))
    f = ptr16(base + int(a[13]) + int(a[19]) * int(a[14]))
    sh = ptr32(base + int(a[15]))
    hi = 0
    lo = 0
    corr = 0
    x = 0
    while left:
        k = 8
        if left < 8:
            k = left
        left -= k
        total = 0
        n = k
        while n:
            d = int(y[0])
            if _WIDE:
                d = d << 32 >> 32
            d = (top - d) >> down
            w = 0
            if d < far:
                d = d * m >> e
                w = int(ptr16(((d & 255) << 1) + int(tables))[0])
                d = d >> 8
                lo += w << 15 >> d
                w = w * int(f[0]) >> d
                total += w
            y[0] = w
            y = ptr32(int(y) + 4)
            f = ptr16(int(f) + 2)
            n -= 1
        hi += lo >> 16
        lo = lo & 0xFFFF
        # The smallest exponent that fits a batch; neighbours are alike, so start from the last one.
        while total >> x > 252:
            x += 1
        while x and total >> (x - 1) < 253:
            x -= 1
        c = 16384
        if x:
            half = 1 << x >> 1
            c = total
            if x > 7:
                c = c >> (x - 7)
            else:
                c = c << (7 - x)
            total = 0
            y = ptr32(int(y) - (k << 2))
            if k == 8:
                y[0] = (y[0] + half) >> x
                y[1] = (y[1] + half) >> x
                y[2] = (y[2] + half) >> x
                y[3] = (y[3] + half) >> x
                y[4] = (y[4] + half) >> x
                y[5] = (y[5] + half) >> x
                y[6] = (y[6] + half) >> x
                y[7] = (y[7] + half) >> x
                total = y[0] + y[1] + y[2] + y[3] + y[4] + y[5] + y[6] + y[7]
                y = ptr32(int(y) + 32)
            else:
                while k:
                    w = (int(y[0]) + half) >> x
                    y[0] = w
                    total += w
                    y = ptr32(int(y) + 4)
                    k -= 1
            # Byte 512: reciprocals of the sums from 123 on.
            c = c * int(ptr16((total << 1) + int(tables) + 266)[0]) >> 14
        k = unit - x
        if k > 31:
            k = 31
        sh[0] = c + (k << 16)
        sh = ptr32(int(sh) + 4)
        corr += (total << 7) * c >> k
    a[23] = hi + (lo >> 16)
    a[24] = lo & 0xFFFF
    a[25] = corr
    return 0


@micropython.viper
def av(v: ptr32, p: ptr32, m: int, a: ptr32) -> int:
    base = int(v)
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
        r = ptr32(int(a) + 172)
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
                    while k > 3:
                        e0 = (v[0] & m) * p[0] + e0
                        o0 = (v[0] >> 8 & m) * p[0] + o0
                        e1 = (v[1] & m) * p[0] + e1
                        o1 = (v[1] >> 8 & m) * p[0] + o1
                        v = ptr32(int(v) + row)
                        e0 = (v[0] & m) * p[1] + e0
                        o0 = (v[0] >> 8 & m) * p[1] + o0
                        e1 = (v[1] & m) * p[1] + e1
                        o1 = (v[1] >> 8 & m) * p[1] + o1
                        v = ptr32(int(v) + row)
                        e0 = (v[0] & m) * p[2] + e0
                        o0 = (v[0] >> 8 & m) * p[2] + o0
                        e1 = (v[1] & m) * p[2] + e1
                        o1 = (v[1] >> 8 & m) * p[2] + o1
                        v = ptr32(int(v) + row)
                        e0 = (v[0] & m) * p[3] + e0
                        o0 = (v[0] >> 8 & m) * p[3] + o0
                        e1 = (v[1] & m) * p[3] + e1
                        o1 = (v[1] >> 8 & m) * p[3] + o1
                        v = ptr32(int(v) + row)
                        p = ptr32(int(p) + 16)
                        k -= 4
                while k:
                    e0 = (v[0] & m) * p[0] + e0
                    o0 = (v[0] >> 8 & m) * p[0] + o0
                    if wide == 8:
                        e1 = (v[1] & m) * p[0] + e1
                        o1 = (v[1] >> 8 & m) * p[0] + o1
                    v = ptr32(int(v) + row)
                    p = ptr32(int(p) + 4)
                    k -= 1
            c = int(sh[0])
            sh = ptr32(int(sh) + 4)
            k = c >> 16
            c = c & 0xFFFF
            o[0] = ((e0 & 0xFFFF) * c >> k) + o[0]
            o[1] = ((o0 & 0xFFFF) * c >> k) + o[1]
            o[2] = ((e0 >> 16 & 0xFFFF) * c >> k) + o[2]
            o[3] = ((o0 >> 16 & 0xFFFF) * c >> k) + o[3]
            e0 = 0
            o0 = 0
            if wide == 8:
                o[4] = ((e1 & 0xFFFF) * c >> k) + o[4]
                o[5] = ((o1 & 0xFFFF) * c >> k) + o[5]
                o[6] = ((e1 >> 16 & 0xFFFF) * c >> k) + o[6]
                o[7] = ((o1 >> 16 & 0xFFFF) * c >> k) + o[7]
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
    x = int(a[21]) - int(a[28])
    down = we + 3
    while n:
        n = n >> 1
        down -= 1
    up = 0
    if down < 0:
        up = 0 - down
        down = 0
    half = 1 << down >> 1
    at = int(ptr32(base + int(a[17]))[3]) + int(a[19]) * int(a[31])
    o = ptr32(base + int(a[16]))
    corr = int(a[25])
    shift = int(a[29])
    n = int(a[31])
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
