"""The functions of plain.py as native code; `w` is a buffer. Style: mpy_kv/kernels/viper.py."""

import micropython
from micropython import const

_NONE = const(0xFFFF)

# fields: encoding
_E_ORDER = const(0)
_E_RANKS = const(1)
_E_OFFSETS = const(2)
_E_TEXT = const(3)
_E_TOKENS = const(4)
_E_JOIN = const(5)
_E_LEFT = const(6)
_E_RIGHT = const(7)
_E_RANK = const(8)
_E_AT = const(9)
_E_SIZE = const(10)
# end of fields


@micropython.viper
def search(w: ptr8, text: ptr8, a: ptr32) -> int:
    order = int(a[_E_ORDER])
    offsets = int(a[_E_OFFSETS])
    blob = int(w) + int(a[_E_TEXT])
    low = 0
    step = 0
    left = ptr8(int(text) + int(a[_E_AT]))
    n = int(a[_E_SIZE])
    right = ptr8(int(left))
    m = 0
    if int(a[_E_JOIN]):
        low = int(a[_E_LEFT])
        at = order + (low << 1)
        at = offsets + ((int(w[at]) | int(w[at + 1]) << 8) << 2)
        start = int(w[at]) | int(w[at + 1]) << 8 | int(w[at + 2]) << 16
        n = (int(w[at + 4]) | int(w[at + 5]) << 8 | int(w[at + 6]) << 16) - start
        left = ptr8(blob + start)
        at = order + (int(a[_E_RIGHT]) << 1)
        at = offsets + ((int(w[at]) | int(w[at + 1]) << 8) << 2)
        start = int(w[at]) | int(w[at + 1]) << 8 | int(w[at + 2]) << 16
        m = (int(w[at + 4]) | int(w[at + 5]) << 8 | int(w[at + 6]) << 16) - start
        right = ptr8(blob + start)
        low += 1
        step = 1
    both = n + m
    high = int(a[_E_TOKENS])
    same = 0
    while low < high:
        middle = low + step - 1
        if middle >= high:
            step = 0
        if step == 0:
            middle = (low + high) >> 1
        at = order + (middle << 1)
        at = offsets + ((int(w[at]) | int(w[at + 1]) << 8) << 2)
        start = int(w[at]) | int(w[at + 1]) << 8 | int(w[at + 2]) << 16
        size = (int(w[at + 4]) | int(w[at + 5]) << 8 | int(w[at + 6]) << 16) - start
        token = ptr8(blob + start)
        end = both
        if size < end:
            end = size
        differ = 0
        i = 0
        while i < end:
            if i < n:
                differ = int(token[i]) - int(left[i])
            else:
                differ = int(token[i]) - int(right[i - n])
            i += 1
            if differ:
                i = end
        if differ == 0:
            differ = size - both
        if differ < 0:
            low = middle + 1
            step = step << 1
        else:
            high = middle
            step = 0
            same = 1
            if differ:
                same = 0
    rank = _NONE
    if same:
        at = order + (low << 1)
        at = int(a[_E_RANKS]) + ((int(w[at]) | int(w[at + 1]) << 8) << 1)
        rank = int(w[at]) | int(w[at + 1]) << 8
    else:
        low = 0 - 1
    a[_E_RANK] = rank
    return low


@micropython.viper
def update(best: ptr16, slots: int, i: int, rank: int) -> int:
    base = int(best)
    p = ptr16(base + (i << 1))
    p[0] = rank
    while slots > 1:
        p = ptr16(base + ((i >> 1) << 2))
        rank = int(p[0])
        if (i | 1) < slots:
            right = int(p[1])
            if right < rank:
                rank = right
        base += slots << 1
        slots = (slots + 1) >> 1
        i = i >> 1
        p = ptr16(base + (i << 1))
        if int(p[0]) == rank:
            return 0
        p[0] = rank
    return 0


@micropython.viper
def first(best: ptr16, slots: int) -> int:
    base = int(best)
    level = 0
    n = slots
    while n > 1:
        base += n << 1
        n = (n + 1) >> 1
        level += 1
    p = ptr16(base)
    rank = int(p[0])
    if rank == _NONE:
        return 0 - 1
    i = 0
    while level:
        level -= 1
        base -= ((slots + (1 << level) - 1) >> level) << 1
        i = i << 1
        p = ptr16(base + (i << 1))
        if int(p[0]) != rank:
            i += 1
    return i
