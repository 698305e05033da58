"""The kernels of the flash log, native: see plain.py for what each does. Loaded by port.load_native."""

import micropython


@micropython.viper
def crc(at: int, n: int, buf: ptr8, state: ptr32):  # viper: allow order because both are changed in each turn
    # The table of 16 words stands behind the register. Shifted down by 4, a word is below 2^28.
    at += int(buf)
    end = at + n
    n = state[0]
    table = int(state) + 4
    while at < end:
        n = n ^ int(ptr8(at)[0])
        n = ((n >> 4) & 0x0FFFFFFF) ^ ptr32(table + ((n & 15) << 2))[0]
        n = ((n >> 4) & 0x0FFFFFFF) ^ ptr32(table + ((n & 15) << 2))[0]
        at += 1
    state[0] = n


@micropython.viper
def begin(state: ptr32):
    state[0] = -1


@micropython.viper
def close(state: ptr32, buf: ptr8, at: int):
    r = state[0] ^ -1
    buf[at] = r
    buf[at + 1] = r >> 8
    buf[at + 2] = r >> 16
    buf[at + 3] = r >> 24


@micropython.viper
def agrees(state: ptr32, buf: ptr8, at: int) -> int:
    r = state[0] ^ -1
    i = 0
    while i < 4:
        if int(buf[at + i]) != (r & 255):
            return 0
        r = r >> 8
        i += 1
    return 1


@micropython.viper
def move(to: ptr8, source: ptr8, how: ptr32):
    n = how[2]
    to = ptr8(int(to) + how[0])
    source = ptr8(int(source) + how[1])
    i = 0
    while i < n:
        to[i] = source[i]
        i += 1


@micropython.viper
def fill(to: ptr8, at: int, n: int, byte: int):
    to = ptr8(int(to) + at)
    while n > 0:
        n -= 1
        to[n] = byte


@micropython.viper
def word(buf: ptr8, at: int) -> int:
    return int(buf[at]) | int(buf[at + 1]) << 8 | int(buf[at + 2]) << 16 | int(buf[at + 3]) << 24


@micropython.viper
def half(buf: ptr8, at: int) -> int:
    return int(buf[at]) | int(buf[at + 1]) << 8


@micropython.viper
def put_word(buf: ptr8, at: int, value: int):
    buf[at] = value
    buf[at + 1] = value >> 8
    buf[at + 2] = value >> 16
    buf[at + 3] = value >> 24


@micropython.viper
def put_half(buf: ptr8, at: int, value: int):
    buf[at] = value
    buf[at + 1] = value >> 8


@micropython.viper
def widen(index: ptr8, at: int, end: int):
    p = int(index) + (end << 2)
    first = int(index) + (at << 2)
    while p > first:
        ptr32(p)[0] = ptr32(p - 4)[0]
        p -= 4
    ptr32(first)[0] = 0


@micropython.viper
def narrow(index: ptr8, at: int, end: int):
    p = int(index) + (at << 2)
    last = int(index) + (end << 2) - 4
    while p < last:
        ptr32(p)[0] = ptr32(p + 4)[0]
        p += 4
    ptr32(last)[0] = 0


@micropython.viper
def least_worn(owner: ptr8, wear: ptr8, start: int, what: int) -> int:
    state = what & 255
    sectors = what >> 8
    best = -1
    i = sectors
    while i > 0:
        i -= 1
        if int(owner[start]) == state:
            if best < 0 or int(wear[start]) < int(wear[best]):
                best = start
        start += 1
        if start == sectors:
            start = 0
    return best


@micropython.viper
def foot(chunk: ptr8, out: ptr32) -> int:
    kind = int(chunk[32])
    if kind != 0x43 and kind != 0x44:
        return -1
    n = int(chunk[52]) | int(chunk[53]) << 8
    if int(chunk[33]) != 1 or n < 1 or n > 126:
        return -1
    out[0] = kind
    out[1] = int(chunk[34]) | int(chunk[35]) << 8
    out[2] = int(chunk[36]) | int(chunk[37]) << 8 | int(chunk[38]) << 16 | int(chunk[39]) << 24
    out[3] = int(chunk[40]) | int(chunk[41]) << 8 | int(chunk[42]) << 16
    out[4] = int(chunk[43])
    out[5] = int(chunk[44]) | int(chunk[45]) << 8 | int(chunk[46]) << 16 | int(chunk[47]) << 24
    out[6] = int(chunk[48]) | int(chunk[49]) << 8 | int(chunk[50]) << 16 | int(chunk[51]) << 24
    out[7] = (int(chunk[54]) | int(chunk[55]) << 8) << 3
    out[8] = int(chunk[56]) | int(chunk[57]) << 8 | int(chunk[58]) << 16 | int(chunk[59]) << 24
    if n > 4:
        return -1 - n
    table = int(out) + 80
    r = -1
    i = 32 - (n << 3)
    while i < 60:
        r = r ^ int(chunk[i])
        r = ((r >> 4) & 0x0FFFFFFF) ^ ptr32(table + ((r & 15) << 2))[0]
        r = ((r >> 4) & 0x0FFFFFFF) ^ ptr32(table + ((r & 15) << 2))[0]
        i += 1
    r = r ^ -1
    while i < 64:
        if int(chunk[i]) != (r & 255):
            return -1
        r = r >> 8
        i += 1
    return n


@micropython.viper
def take(out: ptr32, planes: ptr8) -> int:
    s = out[9]
    worn = out[3] - out[11]
    if worn < 0:
        worn = 0
    if worn > 255:
        worn = 255
    planes[out[10] + s] = worn
    if worn > out[14]:
        out[14] = worn
    if out[1] >= out[15]:
        return 0
    number = out[2]
    if out[0] == 0x44:
        d = (number - out[16]) & 0x3FFFFFFF
        if d > 0 and d < 0x20000000:
            return 2
    else:
        d = (number - out[12]) & 0x3FFFFFFF
        if d > 0 and d < 0x20000000:
            out[12] = number
            out[13] = s
    q = int(out) + 152 + out[1] * 40
    if ptr32(q)[0] != out[5] and out[17] == 0:
        return 0
    planes[s] = out[1]
    out[19] = out[19] + 1
    ptr32(q)[9] = 1
    ptr32(q)[1] = out[6]
    d = (number - ptr32(q)[6]) & 0x3FFFFFFF
    if ptr32(q)[5] == 0 or d < 0x20000000:
        ptr32(q)[7] = ptr32(q)[5]
        ptr32(q)[8] = ptr32(q)[6]
        ptr32(q)[5] = s
        ptr32(q)[6] = number
    else:
        d = (number - ptr32(q)[8]) & 0x3FFFFFFF
        if ptr32(q)[7] == 0 or d < 0x20000000:
            ptr32(q)[7] = s
            ptr32(q)[8] = number
    return 1


@micropython.viper
def enter(chunk: ptr8, out: ptr32, index: ptr8, planes: ptr8) -> int:
    q = int(out) + 152 + out[1] * 40
    i = 32 - ((int(chunk[52]) | int(chunk[53]) << 8) << 3)
    live = 0
    begun = 0
    while i < 32:
        here = int(chunk[i + 4]) | int(chunk[i + 5]) << 8
        if begun > 0:
            live += (((here - begun) << 3) + 63) >> 6
        begun = here
        if (int(chunk[i + 6]) | int(chunk[i + 7])) == 0:
            record = int(chunk[i]) | int(chunk[i + 1]) << 8
            record = record | int(chunk[i + 2]) << 16 | int(chunk[i + 3]) << 24
            base = ptr32(q)[3]
            count = ptr32(q)[4]
            if record < 0:
                return 2
            if base == count:
                base = record
                count = record
            # A place for it, and for those between: what lies behind moves up.
            at = ptr32(q)[2]
            more = base - record
            if record >= count:
                more = record + 1 - count
                at += count - base
            if more > 0:
                total = out[18]
                if more > out[36] or total + more > out[36]:
                    return 2
                p = int(index) + (total << 2)
                first = int(index) + (at << 2)
                step = more << 2
                while p > first:
                    p -= 4
                    ptr32(p + step)[0] = ptr32(p)[0]
                while step > 0:
                    step -= 4
                    ptr32(first + step)[0] = 0
                out[18] = total + more
                if record < base:
                    base = record
                else:
                    count = record + 1
                p = q + 40
                first = int(out) + 152 + out[15] * 40
                while p < first:
                    ptr32(p)[2] = ptr32(p)[2] + more
                    p += 40
            ptr32(q)[3] = base
            ptr32(q)[4] = count
            p = int(index) + ((ptr32(q)[2] + record - base) << 2)
            at = out[9] << 9 | here
            if ptr32(p)[0] == 0:
                ptr32(p)[0] = at
            elif ptr32(p)[0] != at:
                return 2
        i += 8
    live += (out[7] - (begun << 3) + 63) >> 6
    i = (out[10] << 1) + out[9]
    planes[i] = int(planes[i]) + live
    return 1


@micropython.viper
def next_in(index: ptr8, i: int, end: int, s: int) -> int:
    p = int(index) + (i << 2)
    while i < end:
        place = ptr32(p)[0]
        if place:
            if s < 0 or place >> 9 == s:
                return i
        p += 4
        i += 1
    return end
