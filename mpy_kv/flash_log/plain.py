"""What the kernels of the flash log do, in plain Python: CRC-32, bytes copied, numbers read and written.

Offsets and counts are not checked. A number is little-endian. A CRC goes on in the first item of `state`.
On boards with native code viper.py takes this module's place.
"""

from binascii import crc32


def crc(at, n, buf, state):
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


def foot(chunk, out):
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


# Where in `out` things stand: foot() writes the first, a scan the next, then each slot has ten of its own.
SCAN = 38
SLOT = 10


def _newer(a, b):
    return 0 < ((a - b) & 0x3FFFFFFF) < 0x20000000


def take(out, planes):
    """Note the wear and owner of the closed sector whose foot is in `out`. 1: it is current; 0: not; 2: a
    start that may have been cut has copied to it."""
    s = out[9]
    worn = min(255, max(0, out[3] - out[11]))
    planes[out[10] + s] = worn
    out[14] = max(out[14], worn)
    if out[1] >= out[15]:
        return 0
    number = out[2]
    if out[0] == 0x44:
        if _newer(number, out[16]):
            return 2
    elif _newer(number, out[12]):
        out[12], out[13] = number, s
    q = SCAN + SLOT * out[1]
    if out[q] != out[5] and not out[17]:
        return 0
    planes[s] = out[1]
    out[19] += 1
    out[q + 9] = 1
    out[q + 1] = out[6]
    if not out[q + 5] or _newer(number, out[q + 6]):
        out[q + 7 : q + 9] = out[q + 5 : q + 7]
        out[q + 5], out[q + 6] = s, number
    elif not out[q + 7] or _newer(number, out[q + 8]):
        out[q + 7], out[q + 8] = s, number
    return 1


def _reserve(out, index, record):
    """Where in the index a record of the slot in `out` stands, made if need be; -1: there is no room."""
    q = SCAN + SLOT * out[1]
    base, count = out[q + 3], out[q + 4]
    if base == count:
        base = count = record
    at = out[q + 2]
    more = base - record
    if record >= count:
        more = record + 1 - count
        at += count - base
    if more > 0:
        if out[18] + more > out[36]:
            return -1
        for i in range(out[18] - 1, at - 1, -1):
            index[i + more] = index[i]
        for i in range(at, at + more):
            index[i] = 0
        out[18] += more
        base = min(base, record)
        count = max(count, record + 1)
        for slot in range(out[1] + 1, out[15]):
            out[SCAN + SLOT * slot + 2] += more
    out[q + 3], out[q + 4] = base, count
    return out[q + 2] + record - base


def enter(chunk, out, index, planes):
    """Enter the records that begin in the sector whose last 64 bytes are at hand. 2: there is another version
    of one, or no room."""
    s = out[9]
    live = begun = 0
    for i in range(32 - 8 * half(chunk, 52), 32, 8):
        at = half(chunk, i + 4)
        if begun:
            live += (8 * (at - begun) + 63) >> 6
        begun = at
        if not half(chunk, i + 6):
            p = _reserve(out, index, word(chunk, i))
            if p < 0 or index[p] not in (0, s << 9 | at):
                return 2
            index[p] = s << 9 | at
    live += (out[7] - 8 * begun + 63) >> 6
    planes[2 * out[10] + s] = (planes[2 * out[10] + s] + live) & 255
    return 1


def next_in(index, i, end, s):
    """The next record from i on that begins in sector s, or for -1 anywhere; `end`: none does."""
    while i < end and not (index[i] and (s < 0 or index[i] >> 9 == s)):
        i += 1
    return i
