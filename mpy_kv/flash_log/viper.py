"""The kernels of the flash log, native: see plain.py for what each does. Loaded by port.load_native."""

import micropython
from micropython import const

# fields: scan, scan slot
_FOOT_KIND = const(0)
_FOOT_SLOT = const(1)
_FOOT_NUMBER = const(2)
_FOOT_WEAR = const(3)
_FOOT_SESSION = const(4)
_FOOT_GENERATION = const(5)
_FOOT_IDENTITY = const(6)
_FOOT_END = const(7)
_FOOT_NEXT = const(8)
_AT_SECTOR = const(9)
_ALL_SECTORS = const(10)
_FLOOR = const(11)
_NEWEST = const(12)
_NEWEST_IN = const(13)
_MOST_WORN = const(14)
_ALL_SLOTS = const(15)
_SINCE = const(16)
_ANY_GENERATION = const(17)
_ENTRIES = const(18)
_OWNED = const(19)
_CRC_TABLE = const(20)
_CAPACITY = const(36)
_SLOTS_AT = const(37)
_GENERATION = const(0)
_IDENTITY = const(1)
_FIRST = const(2)
_BASE = const(3)
_COUNT = const(4)
_TAIL = const(5)
_TAIL_NUMBER = const(6)
_BEFORE = const(7)
_BEFORE_NUMBER = const(8)
_USED = const(9)
_SLOT_WORDS = const(10)
# end of fields


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
    out[_FOOT_KIND] = kind
    out[_FOOT_SLOT] = int(chunk[34]) | int(chunk[35]) << 8
    out[_FOOT_NUMBER] = int(chunk[36]) | int(chunk[37]) << 8 | int(chunk[38]) << 16 | int(chunk[39]) << 24
    out[_FOOT_WEAR] = int(chunk[40]) | int(chunk[41]) << 8 | int(chunk[42]) << 16
    out[_FOOT_SESSION] = int(chunk[43])
    out[_FOOT_GENERATION] = int(chunk[44]) | int(chunk[45]) << 8 | int(chunk[46]) << 16 | int(chunk[47]) << 24
    out[_FOOT_IDENTITY] = int(chunk[48]) | int(chunk[49]) << 8 | int(chunk[50]) << 16 | int(chunk[51]) << 24
    out[_FOOT_END] = (int(chunk[54]) | int(chunk[55]) << 8) << 3
    out[_FOOT_NEXT] = int(chunk[56]) | int(chunk[57]) << 8 | int(chunk[58]) << 16 | int(chunk[59]) << 24
    if n > 4:
        return -1 - n
    table = int(out) + 4 * _CRC_TABLE
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
    s = out[_AT_SECTOR]
    worn = out[_FOOT_WEAR] - out[_FLOOR]
    if worn < 0:
        worn = 0
    if worn > 255:
        worn = 255
    planes[out[_ALL_SECTORS] + s] = worn
    if worn > out[_MOST_WORN]:
        out[_MOST_WORN] = worn
    if out[_FOOT_SLOT] >= out[_ALL_SLOTS]:
        return 0
    number = out[_FOOT_NUMBER]
    if out[_FOOT_KIND] == 0x44:
        d = (number - out[_SINCE]) & 0x3FFFFFFF
        if d > 0 and d < 0x20000000:
            return 2
    else:
        d = (number - out[_NEWEST]) & 0x3FFFFFFF
        if d > 0 and d < 0x20000000:
            out[_NEWEST] = number
            out[_NEWEST_IN] = s
    q = int(out) + 4 * _SLOTS_AT + out[_FOOT_SLOT] * (4 * _SLOT_WORDS)
    if ptr32(q)[_GENERATION] != out[_FOOT_GENERATION] and out[_ANY_GENERATION] == 0:
        return 0
    planes[s] = out[_FOOT_SLOT]
    out[_OWNED] = out[_OWNED] + 1
    ptr32(q)[_USED] = 1
    ptr32(q)[_IDENTITY] = out[_FOOT_IDENTITY]
    d = (number - ptr32(q)[_TAIL_NUMBER]) & 0x3FFFFFFF
    if ptr32(q)[_TAIL] == 0 or d < 0x20000000:
        ptr32(q)[_BEFORE] = ptr32(q)[_TAIL]
        ptr32(q)[_BEFORE_NUMBER] = ptr32(q)[_TAIL_NUMBER]
        ptr32(q)[_TAIL] = s
        ptr32(q)[_TAIL_NUMBER] = number
    else:
        d = (number - ptr32(q)[_BEFORE_NUMBER]) & 0x3FFFFFFF
        if ptr32(q)[_BEFORE] == 0 or d < 0x20000000:
            ptr32(q)[_BEFORE] = s
            ptr32(q)[_BEFORE_NUMBER] = number
    return 1


@micropython.viper
def enter(chunk: ptr8, out: ptr32, index: ptr8, planes: ptr8) -> int:
    q = int(out) + 4 * _SLOTS_AT + out[_FOOT_SLOT] * (4 * _SLOT_WORDS)
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
            base = ptr32(q)[_BASE]
            count = ptr32(q)[_COUNT]
            if record < 0:
                return 2
            if base == count:
                base = record
                count = record
            # A place for it, and for those between: what lies behind moves up.
            at = ptr32(q)[_FIRST]
            more = base - record
            if record >= count:
                more = record + 1 - count
                at += count - base
            if more > 0:
                total = out[_ENTRIES]
                if more > out[_CAPACITY] or total + more > out[_CAPACITY]:
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
                out[_ENTRIES] = total + more
                if record < base:
                    base = record
                else:
                    count = record + 1
                p = q + 4 * _SLOT_WORDS
                first = int(out) + 4 * _SLOTS_AT + out[_ALL_SLOTS] * (4 * _SLOT_WORDS)
                while p < first:
                    ptr32(p)[_FIRST] = ptr32(p)[_FIRST] + more
                    p += 4 * _SLOT_WORDS
            ptr32(q)[_BASE] = base
            ptr32(q)[_COUNT] = count
            p = int(index) + ((ptr32(q)[_FIRST] + record - base) << 2)
            at = out[_AT_SECTOR] << 9 | here
            if ptr32(p)[0] == 0:
                ptr32(p)[0] = at
            elif ptr32(p)[0] != at:
                return 2
        i += 8
    live += (out[_FOOT_END] - (begun << 3) + 63) >> 6
    i = (out[_ALL_SECTORS] << 1) + out[_AT_SECTOR]
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
