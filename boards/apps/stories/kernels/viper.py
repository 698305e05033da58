"""The kernels of plain.py as native code: same bits, no allocation, 32-bit words.

Loaded through mpy_kv.port.load_native, which adapts `>> _HI` and `_WIDE` to 64-bit interpreters. Style
forced by the emitters of released firmware: pointers are moved and indexed with constants only, no
unary minus on a local, no literal of 2^30 or more, the hottest pointers first. Parameters `a` and
bounds B1..B7 are those of plain.py.
"""

import micropython
from micropython import const

_WIDE = const(0)
_HI = const(16)
_LIMIT = const(0x3FFFFFFF)

# fields: embed, of_vector, norm, swiglu, matvec, rope, rotate, narrow, add, pick
_ROW_COLUMNS = const(0)
_ROW_CODES = const(1)
_ROW_TO = const(2)
_ROW_AT = const(3)
_ROW_EXPONENT = const(4)
_N = const(0)
_PADDED = const(1)
_TO = const(2)
_ACT = const(3)
_ROOT = const(4)
_EXPONENT = const(5)
_WEIGHTS = const(6)
_FROM = const(7)
_WEIGHTS_EXPONENT = const(8)
_EPS = const(9)
_GATE = const(6)
_UP = const(7)
_M_AT = const(0)
_M_ROWS = const(1)
_M_GROUPS = const(2)
_M_SKIP = const(3)
_M_ACT = const(4)
_M_TO = const(5)
_M_EXPONENT = const(6)
_FREQUENCIES = const(0)
_POSITION = const(1)
_R_FROM = const(0)
_R_HEADS = const(1)
_R_PAIRS = const(2)
_R_STEP = const(3)
_R_GAP = const(4)
_NARROW_FROM = const(0)
_NARROW_COUNT = const(1)
_ADD_COUNT = const(0)
_ADD_X = const(1)
_ADD_Y = const(2)
_VOCAB = const(0)
_LOGITS = const(1)
_HEAT = const(2)
_HEAT_EXPONENT = const(3)
_BITS = const(4)
_SUM = const(5)
_TOP_P = const(6)
_STATE = const(7)
# end of fields


@micropython.viper
def embed(w: ptr8, v: ptr32, a: ptr32) -> int:
    s = ptr16(int(w) + int(a[_ROW_AT]) + int(a[_ROW_CODES]))
    w = ptr8(int(w) + int(a[_ROW_AT]))
    v = ptr32(int(v) + (int(a[_ROW_TO]) << 2))
    shift = int(a[_ROW_EXPONENT])
    if _WIDE:
        shift = (shift << 32) >> 32
    shift = 0 - shift
    if shift > 31:
        shift = 31
    elif shift < -31:
        shift = -31
    lim = _LIMIT
    if shift < 0:
        lim = lim >> (0 - shift)
    n = int(a[_ROW_COLUMNS])
    while n:
        k = 32
        if k > n:
            k = n
        n -= k
        scale = int(s[0])
        s = ptr16(int(s) + 2)
        while k:
            k -= 1
            x = (int(w[0]) - 128) * scale
            w = ptr8(int(w) + 1)
            if shift > 0:
                x = ((x >> (shift - 1)) + 1) >> 1
            else:
                if x > lim:
                    x = lim
                elif x < 0 - lim:
                    x = 0 - lim
                x = x << (0 - shift)
            v[0] = x
            v = ptr32(int(v) + 4)
    return 0


@micropython.viper
def norm(w: ptr16, v: ptr32, a: ptr32) -> int:
    base = int(v)
    weights = int(w) + int(a[_WEIGHTS])
    src = base + (int(a[_FROM]) << 2)
    n = int(a[_N])
    v = ptr32(src)
    top = 0
    k = n
    while k:
        k -= 1
        x = int(v[0])
        v = ptr32(int(v) + 4)
        if _WIDE:
            x = (x << 32) >> 32
        s = x >> 31
        top = ((x ^ s) - s) | top  # no more of it is asked for than its highest bit
    s = 0
    while (top >> s) > 32767:
        s += 1
    half = (1 << s) >> 1
    high = 0
    low = 0
    w = ptr16(weights)
    v = ptr32(src)
    d = ptr32(base + (int(a[_TO]) << 2))
    k = n
    while k:
        k -= 1
        x = int(v[0])
        v = ptr32(int(v) + 4)
        if _WIDE:
            x = (x << 32) >> 32
        x = (x + half) >> s
        d[0] = x * ((int(w[0]) ^ 0x8000) - 0x8000)
        w = ptr16(int(w) + 2)
        d = ptr32(int(d) + 4)
        x = x * x
        high += x >> 15
        low += x & 0x7FFF
    k = int(a[_PADDED]) - n
    while k > 0:
        k -= 1
        d[0] = 0
        d = ptr32(int(d) + 4)
    high += low >> 15
    low = low & 0x7FFF
    square = 0
    if n:  # a division by 0 kills the process
        square = ((high // n) << 15) + (((high % n) << 15) + low) // n + (int(a[_EPS]) >> (s << 1))
    ex = int(a[_WEIGHTS_EXPONENT])
    root = 0x4000
    if square:
        while square > _LIMIT:
            square = square >> 2
            ex -= 1
        while square < 0x10000000:
            square = square << 2
            ex += 1
        root = 0
        bit = 0x4000
        while bit:
            x = root + bit
            if x * x <= square:
                root = x
            bit = bit >> 1
        if square - root * root > root:
            root += 1
    a[_ROOT] = root
    a[_EXPONENT] = ex
    return 0


@micropython.viper
def quant(v: ptr32, o: ptr32) -> int:
    base = int(v)
    src = base + (int(o[_TO]) << 2)
    act = base + (int(o[_ACT]) << 2)
    groups = int(o[_PADDED]) >> 5
    ex = int(o[_EXPONENT]) - 20
    root = int(o[_ROOT])
    # A quarter of what the heaviest four of each group adds up to, kept where its scale will be.
    v = ptr32(src)
    o = ptr32(act + 8)
    most = 0
    g = groups
    while g:
        g -= 1
        top = 0
        k = 8
        while k:
            k -= 1
            x = int(v[0])
            y = int(v[1])
            m = int(v[2])
            i = int(v[3])
            if _WIDE:
                x = (x << 32) >> 32
                y = (y << 32) >> 32
                m = (m << 32) >> 32
                i = (i << 32) >> 32
            x = (
                ((x >> 2) ^ (x >> 31))
                + ((y >> 2) ^ (y >> 31))
                + ((m >> 2) ^ (m >> 31))
                + ((i >> 2) ^ (i >> 31))
            )
            if x > top:
                top = x
            v = ptr32(int(v) + 16)
        top += 4
        o[24] = top
        o = ptr32(int(o) + 100)
        if top > most:
            most = top
    fold = 0
    while (most >> fold) > 32767:
        fold += 1
    total = 0
    o = ptr32(act + 8)
    g = groups
    while g:
        g -= 1
        total += int(o[24]) >> fold
        o = ptr32(int(o) + 100)
    m = total
    ex += fold
    while m < 0x20000000:
        m = m << 1
        ex -= 1
    if root:  # a division by 0 kills the process
        m = (m + (root >> 1)) // root
    while m > 32767:
        m = (m + 1) >> 1
        ex += 1
    o = ptr32(act)
    o[0] = m
    o[1] = ex
    o = ptr32(act + 8)
    v = ptr32(src)
    g = groups
    while g:
        g -= 1
        top = int(o[24])
        o[24] = (((top >> fold) << 14) + (total >> 1)) // total  # viper: allow divide because it is >= 4
        down = 0
        while (top >> down) > 0x1FFF:
            down += 1
        half = (1 << down) >> 1
        top = (top + half) >> down
        up = 0
        while top < 0x1000:
            top = top << 1
            up += 1
        inverse = (0xFFFFFFF // top) << up  # viper: allow divide because it is >= 2^12
        k = 8
        while k:
            k -= 1
            x = int(v[0])
            y = int(v[2])
            if _WIDE:
                x = (x << 32) >> 32
                y = (y << 32) >> 32
            x = ((((x + half) >> down) * inverse + 0x200000) >> 22 << 16) + (
                (((y + half) >> down) * inverse + 0x200000) >> 22
            )
            y = int(v[1])
            m = int(v[3])
            if _WIDE:
                y = (y << 32) >> 32
                m = (m << 32) >> 32
            y = ((((y + half) >> down) * inverse + 0x200000) >> 22 << 16) + (
                (((m + half) >> down) * inverse + 0x200000) >> 22
            )
            o[0] = x
            o[1] = y - (x << 8)
            o[2] = 0x8000 - (x + y) * 0x00800080
            o = ptr32(int(o) + 12)
            v = ptr32(int(v) + 16)
        o = ptr32(int(o) + 4)
    return 0


@micropython.viper
def matvec(w: ptr32, v: ptr32, m: int, a: ptr32) -> int:
    out = ptr32(int(v) + (int(a[_M_TO]) << 2))
    first = int(v) + (int(a[_M_ACT]) << 2)
    v = ptr32(first)
    mantissa = int(v[0])
    shift = int(v[1]) + int(a[_M_EXPONENT]) + 29
    if _WIDE:
        shift = (shift << 32) >> 32
    if shift > 31:
        shift = 31
    elif shift < -31:
        shift = -31
    most = _LIMIT
    right = 0
    if shift < 0:
        right = 0 - shift
        shift = right - 1
    else:
        most = most >> shift
    first += 8
    groups = int(a[_M_GROUPS])
    last = first + 100 * groups
    row_bytes = groups << 5
    skip = int(a[_M_SKIP])
    w = ptr32(int(w) + int(a[_M_AT]))
    rows = int(a[_M_ROWS])
    while rows:
        rows -= 1
        s = ptr16(int(w) + row_bytes)
        v = ptr32(first)
        total = 0
        while int(v) - last:
            total = (
                (
                    (
                        ((w[0] * v[0] + ((w[0] >> 8) & m) * v[1] + v[2]) >> _HI)
                        + ((w[1] * v[3] + ((w[1] >> 8) & m) * v[4] + v[5]) >> _HI)
                        + ((w[2] * v[6] + ((w[2] >> 8) & m) * v[7] + v[8]) >> _HI)
                        + ((w[3] * v[9] + ((w[3] >> 8) & m) * v[10] + v[11]) >> _HI)
                        + ((w[4] * v[12] + ((w[4] >> 8) & m) * v[13] + v[14]) >> _HI)
                        + ((w[5] * v[15] + ((w[5] >> 8) & m) * v[16] + v[17]) >> _HI)
                        + ((w[6] * v[18] + ((w[6] >> 8) & m) * v[19] + v[20]) >> _HI)
                        + ((w[7] * v[21] + ((w[7] >> 8) & m) * v[22] + v[23]) >> _HI)
                    )
                    * int(s[0])
                    + 8192
                )
                >> 14
            ) * int(v[24]) + total
            s = ptr16(int(s) + 2)
            w = ptr32(int(w) + 32)
            v = ptr32(int(v) + 100)
        w = ptr32(int(w) + skip)
        if right:
            out[0] = ((((((total & 0x7FFF) * mantissa) >> 15) + (total >> 15) * mantissa) >> shift) + 1) >> 1
        else:
            total = (((total & 0x7FFF) * mantissa) >> 15) + (total >> 15) * mantissa
            if total > most:
                total = most
            elif total < 0 - most:
                total = 0 - most
            out[0] = total << shift
        out = ptr32(int(out) + 4)
    return 0


@micropython.viper
def rope_table(inc: ptr32, cs: ptr16, sine: ptr8, a: ptr32) -> int:
    table = int(sine)
    n = int(a[_FREQUENCIES])
    while n:
        n -= 1
        phase = int(inc[0]) * int(a[_POSITION])
        inc = ptr32(int(inc) + 4)
        p = phase & _LIMIT
        t = ptr16(table + ((p >> 22) << 1))
        s = int(t[0])
        s += ((int(t[1]) - s) * ((p >> 7) & 0x7FFF) + 0x4000) >> 15
        p = _LIMIT - p + 1
        t = ptr16(table + ((p >> 22) << 1))
        c = int(t[0])
        c += ((int(t[1]) - c) * ((p >> 7) & 0x7FFF) + 0x4000) >> 15
        if s > 32767:
            s = 32767
        if c > 32767:
            c = 32767
        p = phase >> 30
        if p & 1:
            t1 = s
            s = c
            c = 0 - t1
        if p & 2:
            s = 0 - s
            c = 0 - c
        cs[0] = c
        cs[1] = s
        cs = ptr16(int(cs) + 4)
    return 0


@micropython.viper
def rotate(v: ptr32, dst: ptr16, cs: ptr16, a: ptr32) -> int:
    v = ptr32(int(v) + (int(a[_R_FROM]) << 2))
    table = int(cs)
    pairs = int(a[_R_PAIRS])
    step = int(a[_R_STEP])
    gap = int(a[_R_GAP])
    # From the last pair of a head to the first of the next.
    skip = 2 * pairs - step * pairs
    heads = int(a[_R_HEADS])
    while heads:
        heads -= 1
        cs = ptr16(table)
        k = pairs
        while k:
            k -= 1
            x = int(v[0])
            u = ptr32(int(v) + (gap << 2))
            y = int(u[0])
            c = (int(cs[0]) ^ 0x8000) - 0x8000
            s = (int(cs[1]) ^ 0x8000) - 0x8000
            cs = ptr16(int(cs) + 4)
            if _WIDE:
                x = (x << 32) >> 32
                y = (y << 32) >> 32
            if x > 32767:
                x = 32767
            elif x < -32767:
                x = -32767
            if y > 32767:
                y = 32767
            elif y < -32767:
                y = -32767
            z = (x * c - y * s + 0x4000) >> 15
            if z > 32767:
                z = 32767
            elif z < -32767:
                z = -32767
            dst[0] = z
            z = (x * s + y * c + 0x4000) >> 15
            if z > 32767:
                z = 32767
            elif z < -32767:
                z = -32767
            d = ptr16(int(dst) + (gap << 1))
            d[0] = z
            v = ptr32(int(v) + (step << 2))
            dst = ptr16(int(dst) + (step << 1))
        v = ptr32(int(v) + (skip << 2))
        dst = ptr16(int(dst) + (skip << 1))
    return 0


@micropython.viper
def narrow(v: ptr32, dst: ptr16, a: ptr32) -> int:
    v = ptr32(int(v) + (int(a[_NARROW_FROM]) << 2))
    n = int(a[_NARROW_COUNT])
    while n:
        n -= 1
        x = int(v[0])
        v = ptr32(int(v) + 4)
        if _WIDE:
            x = (x << 32) >> 32
        if x > 32767:
            x = 32767
        elif x < -32767:
            x = -32767
        dst[0] = x
        dst = ptr16(int(dst) + 2)
    return 0


@micropython.viper
def widen(src: ptr16, v: ptr32, a: ptr32) -> int:
    v = ptr32(int(v) + (int(a[_TO]) << 2))
    n = int(a[_N])
    k = int(a[_PADDED]) - n
    while n:
        n -= 1
        v[0] = (int(src[0]) ^ 0x8000) - 0x8000
        src = ptr16(int(src) + 2)
        v = ptr32(int(v) + 4)
    while k > 0:
        k -= 1
        v[0] = 0
        v = ptr32(int(v) + 4)
    return 0


@micropython.viper
def swiglu(v: ptr32, u: ptr32, a: ptr32) -> int:
    base = int(v)
    table = int(u)
    gate = base + (int(a[_GATE]) << 2)
    up = base + (int(a[_UP]) << 2)
    n = int(a[_N])
    v = ptr32(gate)
    u = ptr32(up)
    top = 0
    top_up = 0
    k = n
    while k:
        k -= 1
        x = int(v[0])
        y = int(u[0])
        u = ptr32(int(u) + 4)
        if _WIDE:
            x = (x << 32) >> 32
            y = (y << 32) >> 32
        # Of both the magnitudes are or-ed: their highest bit is the largest's, more is not asked for.
        m = y >> 31
        top_up = ((y ^ m) - m) | top_up
        s = x >> 31
        m = (x ^ s) - s
        if m >> 20:
            if s:
                m = 0
        else:
            q = ptr16(table + ((m >> 12) << 1))
            t = int(q[0])
            t += ((int(q[1]) - t) * (m & 4095) + 2048) >> 12
            if s:
                t = 32768 - t
            m = ((m >> 6) * t + (((m & 63) * t) >> 6) + 256) >> 9
        top = top | m
        v[0] = (m ^ s) - s
        v = ptr32(int(v) + 4)
    s = 0
    while (top >> s) > 32767:
        s += 1
    r = 0
    while (top_up >> r) > 32767:
        r += 1
    half = (1 << s) >> 1
    half_up = (1 << r) >> 1
    v = ptr32(gate)
    u = ptr32(up)
    d = ptr32(base + (int(a[_TO]) << 2))
    k = n
    while k:
        k -= 1
        x = int(v[0])
        y = int(u[0])
        v = ptr32(int(v) + 4)
        u = ptr32(int(u) + 4)
        if _WIDE:
            x = (x << 32) >> 32
            y = (y << 32) >> 32
        d[0] = ((x + half) >> s) * ((y + half_up) >> r)
        d = ptr32(int(d) + 4)
    k = int(a[_PADDED]) - n
    while k > 0:
        k -= 1
        d[0] = 0
        d = ptr32(int(d) + 4)
    a[_EXPONENT] = s + r - 18
    return 0


@micropython.viper
def add(v: ptr32, u: ptr32) -> int:
    n = int(u[_ADD_COUNT])
    first = int(v)
    v = ptr32(first + (int(u[_ADD_X]) << 2))
    u = ptr32(first + (int(u[_ADD_Y]) << 2))
    while n:
        n -= 1
        x = int(v[0]) + int(u[0])
        u = ptr32(int(u) + 4)
        if _WIDE:
            x = (x << 32) >> 32
        if x > _LIMIT:
            x = _LIMIT
        elif x < -0x3FFFFFFF:
            x = -0x3FFFFFFF
        v[0] = x
        v = ptr32(int(v) + 4)
    return 0


@micropython.viper
def argmax(v: ptr32, a: ptr32) -> int:
    v = ptr32(int(v) + (int(a[_LOGITS]) << 2))
    n = int(a[_VOCAB])
    best = 0
    top = 0 - _LIMIT
    i = 0
    while i < n:
        x = int(v[0])
        v = ptr32(int(v) + 4)
        if _WIDE:
            x = (x << 32) >> 32
        if x > top:
            top = x
            best = i
        i += 1
    return best


@micropython.viper
def softmax(v: ptr32, exp2: ptr8, a: ptr32) -> int:
    start = int(v) + (int(a[_LOGITS]) << 2)
    table = int(exp2)
    n = int(a[_VOCAB])
    v = ptr32(start)
    top = 0 - _LIMIT
    k = n
    while k:
        k -= 1
        x = int(v[0])
        v = ptr32(int(v) + 4)
        if _WIDE:
            x = (x << 32) >> 32
        if x > top:
            top = x
    mantissa = int(a[_HEAT])
    shift = int(a[_HEAT_EXPONENT])
    if _WIDE:
        shift = (shift << 32) >> 32
    bits = int(a[_BITS])
    down = 30 - bits
    total = 0
    v = ptr32(start)
    k = n
    while k:
        k -= 1
        x = int(v[0])
        if _WIDE:
            x = (x << 32) >> 32
        x = top - x
        if x > _LIMIT:
            x = _LIMIT
        x = (x >> 15) * mantissa + (((x & 0x7FFF) * mantissa) >> 15)
        if shift < 0:
            x = x >> (0 - shift)
        else:
            if x > _LIMIT >> shift:
                x = _LIMIT >> shift
            x = x << shift
        y = 0
        whole = x >> 16
        if whole <= bits:
            x = x & 0xFFFF
            q = ptr16(table + ((x >> 10) << 1))
            y = int(q[0])
            y += ((int(q[1]) - y) * (x & 1023) + 512) >> 10
            y = ((y << 15) >> down) >> whole
        v[0] = y
        v = ptr32(int(v) + 4)
        total += y
    a[_SUM] = total
    return 0


@micropython.viper
def pick(v: ptr32, a: ptr32) -> int:
    start = int(v) + (int(a[_LOGITS]) << 2)
    n = int(a[_VOCAB])
    mass = int(a[_SUM])
    part = int(a[_TOP_P])
    least = 1
    equals = n
    if part < 32768:
        goal = (mass >> 15) * part + (((mass & 0x7FFF) * part) >> 15)
        # Bisection from weight to weight: `least` is 0 or a weight, and all from it on exceed the goal.
        least = 0
        mass = 0
        high = (2 << int(a[_BITS])) - 1
        while least < high:
            bound = (least + high + 1) >> 1
            v = ptr32(start)
            total = 0
            low = _LIMIT
            equal = 0
            k = n
            while k:
                k -= 1
                if int(v[0]) >= bound:
                    x = int(v[0])
                    total += x
                    if x < low:
                        low = x
                        equal = 0
                    if x == low:
                        equal += x
                v = ptr32(int(v) + 4)
            if total > goal:
                least = low
                mass = total - equal
                if mass <= goal:
                    high = low
            else:
                high = bound - 1
        # As many equals as it takes to exceed the goal.
        equals = 0
        while mass <= goal:
            mass += least
            equals += 1
    x = int(a[_STATE])
    x = x ^ (x << 13)
    if _WIDE:
        x = (x << 32) >> 32
    x = x ^ ((x >> 17) & 0x7FFF)
    x = x ^ (x << 5)
    a[_STATE] = x
    x = (x >> 2) & _LIMIT
    high = x >> 15
    low = x & 0x7FFF
    left = high * (mass >> 15) + ((high * (mass & 0x7FFF) + low * (mass >> 15)) >> 15)
    last = 0
    v = ptr32(start)
    k = 0
    while k < n:
        x = int(v[0])
        v = ptr32(int(v) + 4)
        if x > least or (x == least and equals > 0):
            if x == least:
                equals -= 1
            last = k
            if left < x:
                return last
            left -= x
        k += 1
    return last
