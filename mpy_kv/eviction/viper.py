"""The touches that move an entry, in viper: twins of those in lru.py and lfu.py, for arrays of 16 bits.

A touch is the one call that a cache makes at every access. Indexes lie in addresses, as ptr16 is only indexed
with constants. See policy.fast, which loads them by port.load_native.
"""

import micropython


@micropython.viper
def touch_lru(nxt: ptr16, prv: ptr16, n: int, i: int) -> int:
    if i < 0 or i >= n:
        return -1
    links = int(nxt)
    back = int(prv)
    p = int(ptr16(back + 2 * i)[0])
    x = int(ptr16(links + 2 * i)[0])
    if p == i:
        if x == i:
            return -1
        return 0
    ptr16(links + 2 * p)[0] = x
    ptr16(back + 2 * x)[0] = p
    p = int(ptr16(back + 2 * n)[0])
    ptr16(back + 2 * i)[0] = p
    ptr16(links + 2 * i)[0] = n
    ptr16(links + 2 * p)[0] = i
    ptr16(back + 2 * n)[0] = i
    return 0


@micropython.viper
def touch_lfu(
    nxt: ptr16, prv: ptr16, rank: ptr16, n: int, top: int, i: int
) -> int:  # viper: allow arguments because the frame of LFU.touch stays below 12 words
    if i < 0 or i >= n:
        return -1
    links = int(nxt)
    back = int(prv)
    at = int(rank) + 2 * i
    r = int(ptr16(at)[0])
    if r == 0:
        return -1
    if r != top:
        r += 1
        ptr16(at)[0] = r
    p = int(ptr16(back + 2 * i)[0])
    if p == i:
        return 0
    x = int(ptr16(links + 2 * i)[0])
    ptr16(links + 2 * p)[0] = x
    ptr16(back + 2 * x)[0] = p
    p = int(ptr16(back + 2 * r)[0])
    ptr16(back + 2 * i)[0] = p
    ptr16(links + 2 * i)[0] = r
    ptr16(links + 2 * p)[0] = i
    ptr16(back + 2 * r)[0] = i
    return 0
