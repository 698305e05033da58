"""The kernels of the flash log, native: see plain.py for what each does. Loaded by port.load_native."""

import micropython


@micropython.viper
def crc(buf: ptr8, state: ptr32, at: int, n: int):
    # The table of 16 words stands behind the register. Shifted down by 4, a word is below 2^28.
    r = state[0]
    table = int(state) + 4
    buf = ptr8(int(buf) + at)
    i = 0
    while i < n:
        r = r ^ int(buf[i])
        r = ((r >> 4) & 0x0FFFFFFF) ^ ptr32(table + ((r & 15) << 2))[0]
        r = ((r >> 4) & 0x0FFFFFFF) ^ ptr32(table + ((r & 15) << 2))[0]
        i += 1
    state[0] = r


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
def foot(chunk: ptr8, out: ptr32, state: ptr32) -> int:
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
    table = int(state) + 4
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
