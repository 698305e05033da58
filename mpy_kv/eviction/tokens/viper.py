"""The kernels of plain.py as native code: same bits, no allocation, 4 arguments, 32-bit words.

Style and literals as in mpy_kv/kernels/viper.py; fields of `plan` are told in params.py.
"""

import micropython
from micropython import const

_WIDE = const(0)

# fields: attend, query, plan
_N = const(0)
_SCORES = const(10)
_QUERY = const(17)
_SLICE = const(19)
_KEXP = const(20)
_MAX = const(22)
_LOG_SCALE = const(26)
_LOG_EXP = const(27)
_QUERY_MANTISSA = const(0)
_QUERY_EXP = const(1)
_QUERY_DOWN = const(2)
_RING = const(0)
_SINKS = const(1)
_RECENT = const(2)
_PEAK = const(4)
_BITS = const(5)
_DOWN = const(8)
_HOLE = const(10)
_ROWS = const(11)
_SEEN = const(12)
_COUNT = const(13)
_THRESHOLD = const(14)
_UP = const(15)
_LIVE = const(21)
_FREE = const(22)
_TOP = const(23)
_VICTIM = const(24)
_ACC = const(28)
# end of fields


@micropython.viper
def uses(y: ptr32, f: ptr16, tables: ptr16, a: ptr32) -> int:
    if a[_SLICE]:
        return 0
    base = int(y)
    y = ptr32(base + int(a[_SCORES]))
    plan = ptr32(int(f))
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
    # The least d >> down that weighs nothing: 16 doublings.
    far = ((4096 << e) + m - 1) // m  # viper: allow divide because m is at least 2^14
    top = int(a[_MAX])
    if _WIDE:
        top = top << 32 >> 32
    acc = int(plan) + 4 * _ACC
    scratch = acc + ((int(plan[_RING]) + int(plan[_SINKS])) << 2)
    f = ptr16(scratch)
    total = 0
    n = int(a[_N])
    end = int(y) + (n << 2)
    while int(y) != end:
        d = int(y[0])
        if _WIDE:
            d = d << 32 >> 32
        d = (top - d) >> down
        if d < far:
            d = d * m >> e
            d = int(ptr16(((d & 255) << 1) + int(tables))[0]) << 3 >> (d >> 8)
            total += d
            f[0] = d
        else:
            f[0] = 0
        y = ptr32(int(y) + 4)
        f = ptr16(int(f) + 2)
    f = ptr16(scratch)
    y = ptr32(acc)
    if plan[_PEAK]:
        # More than 8 / n of all, which none has where that exceeds the largest weight.
        if total >= n << 12:
            return 0
        least = (total << 3) // n  # viper: allow divide because a token sees itself
        while n:
            if int(f[0]) > least:
                y[0] = 1
            y = ptr32(int(y) + 4)
            f = ptr16(int(f) + 2)
            n -= 1
        return 0
    k = 30 - int(plan[_BITS])
    while total > 65535:
        total = total >> 1
        k += 1
    if k > 31:
        k = 31
    d = 1  # a literal 2^30 would not compile
    inv = (d << 30) // total  # viper: allow divide because the largest weight is 2^15
    while n & 3:
        y[0] = (f[0] * inv >> k) + y[0]
        y = ptr32(int(y) + 4)
        f = ptr16(int(f) + 2)
        n -= 1
    while n:
        y[0] = (f[0] * inv >> k) + y[0]
        y[1] = (f[1] * inv >> k) + y[1]
        y[2] = (f[2] * inv >> k) + y[2]
        y[3] = (f[3] * inv >> k) + y[3]
        y = ptr32(int(y) + 16)
        f = ptr16(int(f) + 8)
        n -= 4
    return 0


@micropython.viper
def survey(at: ptr32, worth: ptr32, plan: ptr32, length: int) -> int:
    ring = int(plan[_RING])
    y = ptr32(int(plan) + 4 * _ACC)
    n = int(plan[_SINKS]) + ring
    while n:
        y[0] = 0
        y = ptr32(int(y) + 4)
        n -= 1
    limit = length - int(plan[_RECENT])
    live = 0
    free = ring
    top = ring
    victim = ring
    least = 0x3FFFFFFF
    oldest = least
    r = 0
    while r < ring:
        x = int(at[0])
        if x > length:
            at[0] = 0
            x = 0
        if x:
            live += 1
            top = r
            w = 0x3FFFFFFF
            if x <= limit:
                w = int(worth[0])
            if w < least:
                least = w
                oldest = x
                victim = r
            elif w == least:
                if x < oldest:
                    oldest = x
                    victim = r
        elif free == ring:
            free = r
        at = ptr32(int(at) + 4)
        worth = ptr32(int(worth) + 4)
        r += 1
    plan[_LIVE] = live
    plan[_FREE] = free
    plan[_TOP] = top
    plan[_VICTIM] = victim
    return 0


@micropython.viper
def watch(plan: ptr32, old: ptr32, new: ptr32, kind: int) -> int:
    n = int(plan[_COUNT])
    left = int(plan[_HOLE])  # tokens before the hole
    y = ptr32(int(plan) + 4 * _ACC + (int(plan[_SEEN]) << 2))
    if kind == 0:
        threshold = int(plan[_THRESHOLD])
        while n:
            if left == 0:
                old = ptr32(int(old) + 4)
                new = ptr32(int(new) + 4)
            left -= 1
            w = int(old[0])
            if w:
                w -= 1
            if int(y[0]) > threshold:
                w = 0x20000000
            new[0] = w
            y = ptr32(int(y) + 4)
            old = ptr32(int(old) + 4)
            new = ptr32(int(new) + 4)
            n -= 1
        return 0
    rows = int(plan[_ROWS])
    ring = int(plan[_RING]) << 2
    tail = ptr32(int(old) + ring)
    end = ptr32(int(new) + ring)
    halved = 0
    drop = 0
    if kind == 1:
        halved = int(tail[0])
        most = int(tail[1])
        while (most >> drop) >= 0x10000000 or (rows >> (halved + drop)) > 64:
            drop += 1
        halved += drop
        if halved > 20:
            halved = 20
    down = int(plan[_DOWN]) + halved - int(plan[_UP])
    up = 0
    if down < 0:
        up = 0 - down
        down = 0
    most = 0
    while n:
        if left == 0:
            old = ptr32(int(old) + 4)
            new = ptr32(int(new) + 4)
        left -= 1
        x = int(y[0])
        w = int(old[0])
        if kind == 1:
            w = w >> drop
        else:
            if rows > 1:
                x = x // rows
            w -= (3 * w + 63) >> 6
        w += x >> down << up
        if w > most:
            most = w
        new[0] = w
        y = ptr32(int(y) + 4)
        old = ptr32(int(old) + 4)
        new = ptr32(int(new) + 4)
        n -= 1
    if kind == 1:
        end[0] = halved
        end[1] = most
    return 0


@micropython.viper
def move(buf: ptr8, to: int, at: int, n: int) -> int:
    o = ptr8(int(buf) + to)
    i = ptr8(int(buf) + at)
    while n:
        o[0] = i[0]
        o = ptr8(int(o) + 1)
        i = ptr8(int(i) + 1)
        n -= 1
    return 0
