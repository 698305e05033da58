"""What the kernels of the flash log do, in plain Python: CRC-32, bytes copied, numbers read and written.

Offsets and counts are not checked. A number is little-endian. A CRC goes on in the first item of `state`.
On boards with native code viper.py takes this module's place.
"""

from binascii import crc32


def crc(buf, state, at, n):
    """Go on with n bytes of buf from `at` on."""
    state[0] = crc32(memoryview(buf)[at : at + n], state[0])


def begin(state):
    state[0] = 0


def close(state, buf, at):
    """Write the CRC at `at`."""
    buf[at : at + 4] = state[0].to_bytes(4, "little")


def agrees(state, buf, at):
    """Whether it is what stands at `at`."""
    return state[0] == int.from_bytes(buf[at : at + 4], "little")


def move(to, source, how):
    """Copy bytes; how: where to, where from, how many."""
    to_at, at, n = how
    to[to_at : to_at + n] = memoryview(source)[at : at + n]


def fill(to, at, n, byte):
    to[at : at + n] = bytes((byte,)) * n


def word(buf, at):
    return int.from_bytes(buf[at : at + 4], "little")


def half(buf, at):
    return buf[at] | buf[at + 1] << 8


def put_word(buf, at, value):
    buf[at : at + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")


def put_half(buf, at, value):
    buf[at] = value & 255
    buf[at + 1] = value >> 8 & 255


def widen(index, at, end):
    """Items from `at` to `end` move up by one; a 0 takes their first place."""
    for i in range(end, at, -1):
        index[i] = index[i - 1]
    index[at] = 0


def narrow(index, at, end):
    """The item at `at` goes, those up to `end` move down by one."""
    for i in range(at, end - 1):
        index[i] = index[i + 1]
    index[end - 1] = 0


def least_worn(owner, wear, start, what):
    """The least worn sector of an owner, the first from `start` on of equals; -1: there is none. what: the
    number of sectors << 8 | the owner."""
    sectors, state = what >> 8, what & 255
    best = -1
    for i in range(start, start + sectors):
        if i >= sectors:
            i -= sectors
        if owner[i] == state and (best < 0 or wear[i] < wear[best]):
            best = i
    return best


def foot(chunk, out, state):
    """Read the last 64 bytes of a sector into `out`: kind, slot, number, wear, session, generation, identity,
    end, next. How many entries, where the CRC is right; -1: no foot; -1 - n: of n entries, not all here."""
    n = half(chunk, 52)
    if chunk[32] not in (0x43, 0x44) or chunk[33] != 1 or n < 1 or n > 126:
        return -1
    out[0] = chunk[32]
    out[1] = half(chunk, 34)
    out[2] = word(chunk, 36)
    out[3] = word(chunk, 40) & 0xFFFFFF
    out[4] = chunk[43]
    out[5] = word(chunk, 44)
    out[6] = word(chunk, 48)
    out[7] = half(chunk, 54) << 3
    out[8] = word(chunk, 56)
    if n > 4:
        return -1 - n
    return n if crc32(memoryview(chunk)[32 - 8 * n : 60]) == word(chunk, 60) else -1
