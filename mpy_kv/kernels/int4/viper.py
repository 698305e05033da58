"""What int4 has of its own as native code: the bits of plain.py here. Style and limits: ../viper.py."""

import micropython
from micropython import const

_WIDE = const(0)
_HI = const(16)

# fields: attend, run, query, attend4, seal
_N = const(0)
_RUNS = const(1)
_SLICES = const(3)
_WIDTH = const(4)
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
_SLICE = const(19)
_KEXP = const(20)
_VEXP = const(21)
_MAX = const(22)
_CORR = const(25)
_LOG_SCALE = const(26)
_LOG_EXP = const(27)
_SLICE_WIDTH = const(31)
_UNIT = const(43)
_RUN = const(45)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_WORDS = const(4)
_QUERY_MANTISSA = const(0)
_QUERY_EXP = const(1)
_QUERY_DOWN = const(2)
_QUERY_WORDS = const(4)
_SEALED = const(57)
_FIRST = const(58)
_ROWS = const(59)
_ROW4 = const(60)
_WIDTH4 = const(61)
_CODES4 = const(62)
_RANGES = const(63)
_VCODES4 = const(64)
_POWERS = const(65)
_VSCALES4 = const(66)
_MINIMA_GAP = const(67)
_HEADER = const(68)
_STRIDE4 = const(69)
_CENTERS = const(70)
_CENTER_ROW = const(71)
_LIFT = const(72)
_LIFT_LOW = const(73)
_SPREAD = const(74)
_FINER = const(75)
_S_K = const(0)
_S_KS = const(1)
_S_V = const(2)
_S_VS = const(3)
_S_HEAD = const(4)
_S_STRIDE = const(5)
_S_ROW = const(6)
_S_WIDTH = const(7)
_S_SLICE = const(8)
_S_SLICES = const(9)
_S_GROUP = const(10)
_S_GROUPS = const(11)
_S_K4 = const(12)
_S_HEADER = const(13)
_S_POWERS = const(14)
_S_V4 = const(15)
_S_VS4 = const(16)
_S_GAP = const(17)
_S_HEAD4 = const(18)
_S_STRIDE4 = const(19)
_S_ROW4 = const(20)
_S_WIDTH4 = const(21)
_S_SPREAD = const(22)
_S_TOKEN = const(23)
# end of fields


@micropython.viper
def scales(buf: ptr8, p: ptr16, which: int, a: ptr32) -> int:
    base = int(buf)
    slices = int(a[_SLICES])
    rows = int(a[_ROWS])
    src = base + (int(a[_VSCALES]) if which else int(a[_SCALES]))
    top = 0
    s = slices
    while s:
        s -= 1
        run = ptr32(int(a) + 4 * _RUN)
        left = int(a[_RUNS])
        while left:
            left -= 1
            p = ptr16(src + int(run[_RUN_SCALES]))
            n = int(run[_RUN_COUNT])
            run = ptr32(int(run) + 4 * _RUN_WORDS)
            while n:
                if int(p[0]) > top:
                    top = int(p[0])
                p = ptr16(int(p) + 2)
                n -= 1
        src += int(a[_SCALE_STRIDE])
    # Exponents are those of 11 bits, of denormals too; -99: none.
    h = top
    top = (h >> 10) - 99
    if h:
        top = h >> 10
        if top == 0:
            top = 1
            while h < 1024:
                h = h << 1
                top -= 1
    s = 0
    while s < slices:
        left = int(a[_SEALED])
        at = int(a[_FIRST])
        while left:
            if which:
                n = rows - at
                if left < n:
                    n = left
                left -= n
                p = ptr16(base + int(a[_VSCALES4]) + s * int(a[_STRIDE4]) + (at << 1))
                at = 0
                low = ptr16(int(p) + int(a[_MINIMA_GAP]))
                while n:
                    k = 2
                    while k:
                        k -= 1
                        h = int(low[0]) & 32767
                        e = (h >> 10) - 5
                        if k:
                            h = int(p[0])
                            e = (h >> 10) - 2
                        if h < 1024:
                            e += 1
                            while h and h < 1024:
                                h = h << 1
                                e -= 1
                        if h:
                            if e > top:
                                top = e
                    p = ptr16(int(p) + 2)
                    low = ptr16(int(low) + 2)
                    n -= 1
            else:
                p = ptr16(base + int(a[_POWERS]) + (s << 1) + (at >> 4) * int(a[_HEADER]))
                h = int(p[0])
                e = h >> 10
                if h < 1024:
                    e = 1
                    while h and h < 1024:
                        h = h << 1
                        e -= 1
                if h:
                    if e > top:
                        top = e
                n = 16 - (at & 15)
                if left < n:
                    n = left
                left -= n
                at += n
                if at == rows:
                    at = 0
        s += 1
    if top == 0 - 99:
        top = 1
    if which:
        a[_VEXP] = top + 10
    else:
        a[_KEXP] = top + 10
    src = base + (int(a[_VSCALES]) if which else int(a[_SCALES]))
    dst = base + (int(a[_VSCALE]) if which else int(a[_KSCALE]))
    s = 0
    while s < slices:
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
                e = top - (h >> 10)
                if h < 1024:
                    e = top - 1
                    while h and h < 1024:
                        h = h << 1
                        e += 1
                else:
                    h = (h & 1023) + 1024
                if e > 30:
                    e = 30
                o[0] = (h << 5) + e + which if h else 0
                o = ptr16(int(o) + 2)
                n -= 1
        left = int(a[_SEALED])
        at = int(a[_FIRST])
        c = ptr16(base + int(a[_CENTERS]) + s * int(a[_CENTER_ROW]))
        while left:
            if which:
                n = rows - at
                if left < n:
                    n = left
                left -= n
                p = ptr16(base + int(a[_VSCALES4]) + s * int(a[_STRIDE4]) + (at << 1))
                at = 0
                low = ptr16(int(p) + int(a[_MINIMA_GAP]))
                while n:
                    h = int(p[0])
                    e = top - (h >> 10)
                    if h < 1024:
                        e = top - 1
                        while h and h < 1024:
                            h = h << 1
                            e += 1
                    else:
                        h = (h & 1023) + 1024
                    if h == 0:
                        e = 0
                    k = e + 4
                    if k > 30:
                        k = 30
                    o[0] = (h << 5) + k + 1 if h else 0
                    e += 2
                    if e > 31:
                        e = 31
                    h = h << 3 >> e
                    x = int(low[0])
                    e = top + 5 - ((x >> 10) & 31)
                    k = x & 1023
                    if (x & 32767) < 1024:
                        e -= 1
                        while k and k < 1024:
                            k = k << 1
                            e += 1
                    else:
                        k += 1024
                    if e > 31:
                        e = 31
                    if k:
                        k = k << 3 >> e
                    if x >> 15:
                        c[0] = h - k
                    else:
                        c[0] = h + k
                    o = ptr16(int(o) + 2)
                    c = ptr16(int(c) + 2)
                    p = ptr16(int(p) + 2)
                    low = ptr16(int(low) + 2)
                    n -= 1
            else:
                h = int(ptr16(base + int(a[_POWERS]) + (s << 1) + (at >> 4) * int(a[_HEADER]))[0])
                e = top - (h >> 10)
                if h < 1024:
                    e = top - 1
                    while h and h < 1024:
                        h = h << 1
                        e += 1
                else:
                    h = (h & 1023) + 1024
                e += int(a[_FINER])
                if e > 30:
                    e = 30
                n = 16 - (at & 15)
                if left < n:
                    n = left
                left -= n
                at += n
                if at == rows:
                    at = 0
                h = (h << 5) + e if h else 0
                while n:
                    o[0] = h
                    o = ptr16(int(o) + 2)
                    n -= 1
        dst += int(a[_SCALE_ROW])
        src += int(a[_SCALE_STRIDE])
        s += 1
    return 0


@micropython.viper
def qk4(k: ptr32, y: ptr32, m: int, a: ptr32) -> int:
    base = int(k)
    m = m & 0xF000F
    width = int(a[_SLICE_WIDTH])
    row = int(a[_ROW4])
    columns = int(a[_WIDTH4])
    spread = base + int(a[_SPREAD])
    rows = int(a[_ROWS])
    # The query's codes, a word each.
    n = (int(a[_WIDTH]) + 7) & 0x7FF8
    q = ptr32(base + int(a[_QUERY]) + 4 * _QUERY_WORDS + (int(a[_SLICES]) << 2) + ((int(a[_SLICE]) * n) << 1))
    o = ptr32(spread)
    n = int(a[_WIDTH])
    while n:
        c = int(q[0])
        f = int(q[1])
        if _WIDE:
            c = c << 32 >> 32
            f = f << 32 >> 32
        total = ((c & 0xFFFF) ^ 0x8000) - 0x8000
        o[0] = (c - total) >> 16
        o[2] = total
        total = ((f & 0xFFFF) ^ 0x8000) - 0x8000
        o[1] = (f - total) >> 16
        o[3] = total
        q = ptr32(int(q) + 8)
        o = ptr32(int(o) + 16)
        n -= 4
    if int(a[_WIDTH]) & 4:
        o[0] = 0
        o[1] = 0
        o[2] = 0
        o[3] = 0
    left = int(a[_SEALED])
    at = int(a[_FIRST])
    to = base + int(a[_DOTS]) + ((int(a[_N]) - left) << 2)
    while left:
        # What the block's nibbles are multiplied with.
        x = ptr16(base + int(a[_RANGES]) + (at >> 4) * int(a[_HEADER]) + ((int(a[_SLICE]) * width) << 2))
        o = ptr32(spread)
        total = 0
        most = 0
        n = width
        while n:
            c = int(o[0])
            if _WIDE:
                c = c << 32 >> 32
            total += c * ((int(x[1]) ^ 0x8000) - 0x8000)
            c = c * int(x[0])
            if c < 0:
                c = 0 - c
            if c > most:
                most = c
            o = ptr32(int(o) + 4)
            x = ptr16(int(x) + 4)
            n -= 1
        cut = 0
        while most >> cut > 1022:
            cut += 1
        half = 1 << cut >> 1
        lost = 0
        x = ptr16(base + int(a[_RANGES]) + (at >> 4) * int(a[_HEADER]) + ((int(a[_SLICE]) * width) << 2))
        o = ptr32(spread)
        q = ptr32(spread + (columns << 3))
        most = columns >> 2
        while most:
            most -= 1
            n = 4
            while n:
                c = int(o[0])
                f = int(o[4])
                if _WIDE:
                    c = c << 32 >> 32
                    f = f << 32 >> 32
                f = f * int(x[8])
                c = c * int(x[0])
                lost += f + c
                f = (f + half) >> cut
                c = (c + half) >> cut
                lost -= (f + c) << cut
                q[0] = f + (c << 16)
                q = ptr32(int(q) + 4)
                o = ptr32(int(o) + 4)
                x = ptr16(int(x) + 4)
                n -= 1
            o = ptr32(int(o) + 16)
            x = ptr16(int(x) + 16)
        total = ((total << 4) + (lost * 15 >> 1)) >> cut
        tokens = 16 - (at & 15)
        if left < tokens:
            tokens = left
        left -= tokens
        first = base + int(a[_CODES4]) + int(a[_SLICE]) * columns + at * row
        q = ptr32(spread + (columns << 3))
        up = 0
        col = 0
        while col < columns:
            q0 = int(q[0])
            q1 = int(q[1])
            q2 = int(q[2])
            q3 = int(q[3])
            if _WIDE:
                q0 = q0 << 32 >> 32
                q1 = q1 << 32 >> 32
                q2 = q2 << 32 >> 32
                q3 = q3 << 32 >> 32
            q = ptr32(int(q) + 16)
            k = ptr32(first + col)
            y = ptr32(to)
            col += 4
            f = 0
            if col == columns:
                f = 12 - cut - int(a[_FINER])
                if f < 0:
                    up = 0 - f
                    f = 0
            n = tokens
            if col == 4:
                while n:
                    y[0] = (
                        ((k[0] & m) * q0 >> _HI)
                        + ((k[0] >> 4 & m) * q1 >> _HI)
                        + ((k[0] >> 8 & m) * q2 >> _HI)
                        + ((k[0] >> 12 & m) * q3 >> _HI)
                        + total
                    ) >> f
                    k = ptr32(int(k) + row)
                    y = ptr32(int(y) + 4)
                    n -= 1
            else:
                while n:
                    c = int(y[0])
                    if _WIDE:
                        c = c << 32 >> 32
                    y[0] = (
                        ((k[0] & m) * q0 >> _HI)
                        + ((k[0] >> 4 & m) * q1 >> _HI)
                        + ((k[0] >> 8 & m) * q2 >> _HI)
                        + ((k[0] >> 12 & m) * q3 >> _HI)
                        + c
                    ) >> f
                    k = ptr32(int(k) + row)
                    y = ptr32(int(y) + 4)
                    n -= 1
        if up:
            y = ptr32(to)
            n = tokens
            while n:
                y[0] = y[0] << up
                y = ptr32(int(y) + 4)
                n -= 1
        to += tokens << 2
        at += tokens
        if at == rows:
            at = 0
    return 0


@micropython.viper
def center(y: ptr32, f: ptr16, tables: ptr16, a: ptr32) -> int:
    base = int(y)
    # As weights(): distance d in score to steps of 1/256 of a doubling is (d >> down) * m >> e.
    record = ptr32(base + int(a[_QUERY]))
    m = int(record[_QUERY_MANTISSA]) * int(a[_LOG_SCALE])
    k = 10
    if m >= 0x2000000:
        k = 11
    m = m >> k
    e = int(a[_LOG_EXP]) + 17 + 2048 - k - int(record[_QUERY_EXP]) - int(a[_KEXP]) - int(record[_QUERY_DOWN])
    down = 0
    if e < 1:
        e = 1
        m = 32767
    elif e > 17:
        down = e - 17
        if down > 31:
            down = 31
        e = 17
    far = ((7168 << e) + m - 1) // m  # viper: allow divide because m is at least 2^14
    top = int(a[_MAX])
    if _WIDE:
        top = top << 32 >> 32
    n = int(a[_SEALED])
    y = ptr32(base + int(a[_SCORES]) + ((int(a[_N]) - n) << 2))
    f = ptr16(base + int(a[_CENTERS]) + int(a[_SLICE]) * int(a[_CENTER_ROW]))
    high = 0
    low = 0
    while n:
        d = int(y[0])
        if _WIDE:
            d = d << 32 >> 32
        d = (top - d) >> down
        if d < far:
            d = d * m >> e
            w = int(ptr16(((d & 255) << 1) + int(tables))[0]) * ((int(f[0]) ^ 0x8000) - 0x8000)
            # Towards zero, as all that weights are multiplied with.
            if w < 0:
                w = 0 - ((0 - w) << 3 >> (d >> 8))
            else:
                w = w << 3 >> (d >> 8)
            high += w >> 16
            low += w & 0xFFFF
        y = ptr32(int(y) + 4)
        f = ptr16(int(f) + 2)
        n -= 1
    p = ptr32(int(a) + 4 * _LIFT)
    p[0] = high + (low >> 16 & 0xFFFF)
    p[_LIFT_LOW - _LIFT] = low & 0xFFFF
    return 0


@micropython.viper
def av4(v: ptr32, p: ptr32, m: int, a: ptr32) -> int:
    base = int(v)
    m = m & 0xF000F0
    row = int(a[_ROW4])
    width = int(a[_WIDTH4])
    fresh = int(a[_N]) - int(a[_SEALED])
    # In units of the sums: 24 bits of LIFT and LIFT_LOW more than its own, or less.
    n = int(a[_UNIT]) - 40
    lift = int(a[_LIFT])
    if _WIDE:
        lift = lift << 32 >> 32
    if n < 0:
        lift = (lift << (0 - n)) + (int(a[_LIFT_LOW]) >> (n + 16))
    else:
        lift = lift >> n
    lift += 0x20000000
    a[_CORR] = a[_CORR] + 0x20000000
    col = 0
    while col < width:
        o = ptr32(base + int(a[_SUMS]) + (col << 3))
        o[0] = o[0] + lift
        o[1] = o[1] + lift
        o[2] = o[2] + lift
        o[3] = o[3] + lift
        if int(a[_WIDTH]) - (col << 1) < 8:
            # The last four are padding, of which av() has made no sums.
            o[4] = 0
            o[5] = 0
            o[6] = 0
            o[7] = 0
        o[4] = o[4] + lift
        o[5] = o[5] + lift
        o[6] = o[6] + lift
        o[7] = o[7] + lift
        sh = ptr32(base + int(a[_UNITS]) + (fresh >> 3 << 2))
        p = ptr32(base + int(a[_DOTS]) + (fresh << 2))
        v = ptr32(base + int(a[_VCODES4]) + int(a[_SLICE]) * width + col + int(a[_FIRST]) * row)
        total = int(a[_SEALED])
        n = int(a[_ROWS]) - int(a[_FIRST])
        # The first batch is what the fresh tokens have left of theirs.
        batch = 8 - (fresh & 7)
        s0 = 0
        s1 = 0
        s2 = 0
        s3 = 0
        cut = 0  # bits of a weight before the part of it that is next, where a batch is split
        while total:
            if total < batch:
                batch = total
            total -= batch
            c = int(sh[0])
            sh = ptr32(int(sh) + 4)
            v0 = int(v)
            n0 = n
            p0 = int(p)
            while batch:
                if not n:
                    v = ptr32(base + int(a[_VCODES4]) + int(a[_SLICE]) * width + col)
                    n = total + batch
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
                if c >> 24 == 0:
                    while k >> 1:
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
                        p = ptr32(int(p) + 8)
                        k -= 2
                while k:
                    w = int(p[0]) >> cut & 0xFFFF
                    s0 = (v[0] << 4 & m) * w + s0
                    s1 = (v[0] & m) * w + s1
                    s2 = (v[0] >> 4 & m) * w + s2
                    s3 = (v[0] >> 8 & m) * w + s3
                    v = ptr32(int(v) + row)
                    p = ptr32(int(p) + 4)
                    k -= 1
            if not c >> 25:
                k = c >> 16 & 31
                if cut:
                    k += 5
                f = c & 0xFFFF
                o[0] = ((s0 & 0xFFFF) * f >> k) + o[0]
                o[1] = ((s1 & 0xFFFF) * f >> k) + o[1]
                o[2] = ((s2 & 0xFFFF) * f >> k) + o[2]
                o[3] = ((s3 & 0xFFFF) * f >> k) + o[3]
                o[4] = ((s0 >> 16 & 0xFFFF) * f >> k) + o[4]
                o[5] = ((s1 >> 16 & 0xFFFF) * f >> k) + o[5]
                o[6] = ((s2 >> 16 & 0xFFFF) * f >> k) + o[6]
                o[7] = ((s3 >> 16 & 0xFFFF) * f >> k) + o[7]
                s0 = 0
                s1 = 0
                s2 = 0
                s3 = 0
            batch = 8
            if c >> 24 & 1:
                # A split batch: once more with the other part of its weights.
                cut = 16 - cut
                if cut:
                    batch = (int(p) - p0) >> 2
                    total += batch
                    v = ptr32(v0)
                    n = n0
                    p = ptr32(p0)
                    sh = ptr32(int(sh) - 4)
        col += 4
    return 0


@micropython.viper
def seal_keys(buf: ptr8, y: ptr8, group: int, s: ptr32) -> int:
    base = int(buf)
    row = int(s[_S_ROW])
    row4 = int(s[_S_ROW4])
    # Values of the group begin with this slice of this head.
    piece0 = group * int(s[_S_GROUP]) // int(s[_S_SLICE])  # viper: allow divide because a slice has values
    n = piece0 // int(s[_S_SLICES])  # viper: allow divide because a head has slices
    piece0 -= n * int(s[_S_SLICES])
    head0 = base + int(s[_S_K]) + n * int(s[_S_HEAD])
    head40 = base + int(s[_S_K4]) + n * int(s[_S_HEAD4])
    x = ptr16(base + int(s[_S_HEADER]) + int(s[_S_POWERS]) + ((group * int(s[_S_GROUP])) << 2))
    # The 16 scales, relative to the largest.
    p = ptr16(base + int(s[_S_KS]) + group * int(s[_S_STRIDE]))
    top = 0
    t = 16
    while t:
        if int(p[0]) > top:
            top = int(p[0])
        p = ptr16(int(p) + 2)
        t -= 1
    top = top >> 10
    if top == 0:
        top = 1
    p = ptr16(base + int(s[_S_KS]) + group * int(s[_S_STRIDE]))
    f = ptr32(base + int(s[_S_SPREAD]))
    t = 16
    while t:
        n = int(p[0])
        if n < 1024:
            f[0] = n << 4 >> (top - 1)
        else:
            f[0] = (((n & 1023) + 1024) << 4) >> (top - (n >> 10))
        p = ptr16(int(p) + 2)
        f = ptr32(int(f) + 4)
        t -= 1
    most = 0
    left = 0
    turn = 0
    while turn < 2:
        # First each channel's bounds, then, once the power is known, its range and codes.
        piece = piece0
        head = head0
        head4 = head40
        w = ptr32(base + int(s[_S_SPREAD]) + 64)
        values = int(s[_S_GROUP])
        while values:
            values -= int(s[_S_SLICE])
            c = 0
            while c < int(s[_S_SLICE]):
                y = ptr8(head + piece * int(s[_S_WIDTH]) + c)
                f = ptr32(base + int(s[_S_SPREAD]))
                t = 16
                if turn == 0:
                    low = 0x3FFFFF
                    high = 0 - low
                    while t:
                        n = (int(y[0]) - 128) * int(f[0])
                        if n < low:
                            low = n
                        if n > high:
                            high = n
                        y = ptr8(int(y) + row)
                        f = ptr32(int(f) + 4)
                        t -= 1
                    w[0] = low
                    w[1] = high
                    if high > most:
                        most = high
                    if 0 - low > most:
                        most = 0 - low
                else:
                    low = int(w[0])
                    high = int(w[1])
                    if _WIDE:
                        low = low << 32 >> 32
                        high = high << 32 >> 32
                    if left < 0:
                        low = low >> (0 - left)
                        high = high >> (0 - left)
                    else:
                        low = low << left
                        high = high << left
                    if low > 0x3FFFF:
                        low = 0x3FFFF
                    if low < 0 - 0x40000:
                        low = 0 - 0x40000
                    if high > 0x3FFFF:
                        high = 0x3FFFF
                    if high < 0 - 0x40000:
                        high = 0 - 0x40000
                    low = low >> 4
                    step = (high - (low << 4) + 14) // 15
                    x[0] = step
                    x[1] = low
                    x = ptr16(int(x) + 4)
                    low = low << 4
                    two = step << 1
                    if step == 0:
                        two = 1
                    inv = 0x4000000 // two  # viper: allow divide because it is at least 1
                    o = ptr8(head4 + piece * int(s[_S_WIDTH4]) + (c >> 1))
                    while t:
                        n = (int(y[0]) - 128) * int(f[0])
                        if left < 0:
                            n = n >> (0 - left)
                        else:
                            n = n << left
                        n = ((n - low) << 1) + step
                        if n < 0:
                            n = 0
                        if n > step * 31:
                            n = step * 31
                        high = n * inv >> 26
                        if n - high * two >= two:
                            high += 1
                        if c & 1:
                            high = int(o[0]) + (high << 4)
                        o[0] = high
                        y = ptr8(int(y) + row)
                        f = ptr32(int(f) + 4)
                        o = ptr8(int(o) + row4)
                        t -= 1
                w = ptr32(int(w) + 8)
                c += 1
            piece += 1
            if piece == int(s[_S_SLICES]):
                piece = 0
                head += int(s[_S_HEAD])
                head4 += int(s[_S_HEAD4])
        if turn == 0:
            n = top - 35
            while most:
                most = most >> 1
                n += 1
            if n > 15:
                n = 15
            if n < -24:
                n = -24
            left = top - 17 - n
            p = ptr16(base + int(s[_S_HEADER]) + (group << 1))
            if n > -15:
                p[0] = (n + 15) << 10
            else:
                p[0] = 1 << (n + 24)
        turn += 1
    return 0


@micropython.viper
def seal_values(buf: ptr8, y: ptr8, group: int, s: ptr32) -> int:
    base = int(buf)
    row = int(s[_S_ROW])
    row4 = int(s[_S_ROW4])
    piece0 = group * int(s[_S_GROUP]) // int(s[_S_SLICE])  # viper: allow divide because a slice has values
    n = piece0 // int(s[_S_SLICES])  # viper: allow divide because a head has slices
    piece0 -= n * int(s[_S_SLICES])
    head0 = base + int(s[_S_V]) + n * int(s[_S_HEAD])
    head40 = base + int(s[_S_V4]) + n * int(s[_S_HEAD4])
    t = 0
    while t < 16:
        p = ptr16(base + int(s[_S_VS]) + group * int(s[_S_STRIDE]) + (t << 1))
        sm = int(p[0])
        top = sm >> 10
        if top:
            sm = (sm & 1023) + 1024
        else:
            top = 1
        rel = sm << 4
        low = 255
        high = 0
        sm = 0
        inv = 0
        two = 1
        left = 0
        turn = 0
        while turn < 2:
            # First the bounds, then the codes.
            piece = piece0
            head = head0 + t * row
            head4 = head40 + t * row4
            values = int(s[_S_GROUP])
            while values:
                values -= int(s[_S_SLICE])
                y = ptr8(head + piece * int(s[_S_WIDTH]))
                o = ptr8(head4 + piece * int(s[_S_WIDTH4]))
                c = 0
                if turn == 0:
                    while c < int(s[_S_SLICE]):
                        n = int(y[0])
                        if n < low:
                            low = n
                        if n > high:
                            high = n
                        y = ptr8(int(y) + 1)
                        c += 1
                else:
                    while c < int(s[_S_SLICE]):
                        n = (int(y[0]) - 128) * rel - low
                        if left < 0:
                            n = n >> (0 - left)
                        else:
                            n = n << left
                        n += sm
                        if n < 0:
                            n = 0
                        if n > sm * 31:
                            n = sm * 31
                        high = n * inv >> 23
                        if n - high * two >= two:
                            high += 1
                        if c & 1:
                            o[0] = int(o[0]) + (high << 4)
                            o = ptr8(int(o) + 1)
                        else:
                            o[0] = high
                        y = ptr8(int(y) + 1)
                        c += 1
                piece += 1
                if piece == int(s[_S_SLICES]):
                    piece = 0
                    head += int(s[_S_HEAD])
                    head4 += int(s[_S_HEAD4])
            if turn == 0:
                low = (low - 128) * rel
                high = (high - 128) * rel
                # The largest float16 not above the least value: `half`, and `low` what it stands for.
                p = ptr16(base + int(s[_S_VS4]) + group * int(s[_S_STRIDE4]) + (t << 1))
                sign = 0
                n = low
                if n < 0:
                    n = 0 - n
                    sign = 0x8000
                half = 0
                if n:
                    k = 0 - 11
                    while n >> (k + 11):
                        k += 1
                    if k < 5 - top:
                        k = 5 - top
                    if k > 0:
                        if sign:
                            n += (1 << k) - 1
                        n = n >> k
                        low = n << k
                    else:
                        low = n
                        n = n << (0 - k)
                    half = ((k + top - 4) << 10) + n - 1024
                    if half > 0x7BFF:
                        half = 0x7BFF
                        low = 2047 << (34 - top)
                    half += sign
                    if sign:
                        low = 0 - low
                ptr16(int(p) + int(s[_S_GAP]))[0] = half
                # The smallest float16 sm * 2^e of which 15 reach the greatest.
                high -= low
                half = 0
                if high > 0:
                    e = top - 29
                    while high < 0x800000:
                        high = high << 1
                        e -= 1
                    high = (high + 14) // 15
                    k = 9
                    sm = (high + 511) >> 9
                    if sm > 2047:
                        k = 10
                        sm = (high + 1023) >> 10
                    e += k
                    if e > 5:
                        e = 5
                        sm = 2047
                    elif e < -24:
                        k = k - 24 - e
                        e = -24
                        sm = (high + (1 << k) - 1) >> k
                    half = ((e + 25) << 10) + sm - 1024
                    left = top - 28 - e
                    two = sm << 1
                    inv = (1 << 23) // two  # viper: allow divide because sm is at least 1
                p[0] = half
            turn += 1
        t += 1
    return 0


@micropython.viper
def open_row(buf: ptr8, k: ptr32, v: ptr32, s: ptr32) -> int:
    base = int(buf)
    t = int(s[_S_TOKEN])
    head = int(s[_S_ROW4]) * t
    piece = 0
    x = ptr16(base + int(s[_S_HEADER]) + int(s[_S_POWERS]))
    group = 0
    while group < int(s[_S_GROUPS]):
        # Keys count steps of 2^unit, values m and s.
        e = int(ptr16(base + int(s[_S_HEADER]) + (group << 1))[0])
        unit = 0 - 36
        if e >> 10:
            unit = (e >> 10) - 27
        else:
            while e > 1:
                e = e >> 1
                unit += 1
        p = ptr16(base + int(s[_S_VS4]) + group * int(s[_S_STRIDE4]) + (t << 1))
        step = int(p[0])
        e = step >> 10
        if e:
            step = (step & 1023) + 1024
        else:
            e = 1
        low = int(ptr16(int(p) + int(s[_S_GAP]))[0])
        sign = low >> 15
        top = (low >> 10) & 31
        low = low & 1023
        if top:
            low += 1024
        else:
            top = 1
        if sign:
            low = 0 - low
        n = top
        if e + 4 > top:
            top = e + 4
        top -= 12
        n -= top
        if n < 0:
            if n < -31:
                n = -31
            low = low >> (0 - n)
        else:
            low = low << n
        down = top - e
        if down > 31:
            down = 31
        top -= 25
        c = 0
        done = 0
        while done < int(s[_S_GROUP]):
            at = head + piece * int(s[_S_WIDTH4]) + (c >> 1)
            turn = 0
            while turn < 2:
                if turn:
                    n = int(ptr8(base + int(s[_S_V4]) + at)[0])
                else:
                    n = int(ptr8(base + int(s[_S_K4]) + at)[0])
                if c & 1:
                    n = n >> 4
                n = n & 15
                if turn:
                    n = step * n
                    if down < 0:
                        n = n << (0 - down)
                    else:
                        n = n >> down
                    n += low
                    f = top + 150
                else:
                    n = (((int(x[1]) ^ 0x8000) - 0x8000) << 4) + int(x[0]) * n
                    f = unit + 150
                sign = 0
                if n < 0:
                    n = 0 - n
                    sign = 1
                if n:
                    while n < 0x800000:
                        n = n << 1
                        f -= 1
                    n = (f << 23) + (n & 0x7FFFFF) + (sign << 31)
                if turn:
                    v[0] = n
                else:
                    k[0] = n
                turn += 1
            k = ptr32(int(k) + 4)
            v = ptr32(int(v) + 4)
            x = ptr16(int(x) + 4)
            done += 1
            c += 1
            if c == int(s[_S_SLICE]):
                c = 0
                piece += 1
                if piece == int(s[_S_SLICES]):
                    piece = 0
                    head += int(s[_S_HEAD4])
        group += 1
    return 0
