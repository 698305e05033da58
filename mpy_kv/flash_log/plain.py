"""What the kernels of the flash log do, in plain Python: CRC-32, bytes copied, numbers read and written.

Offsets and counts are not checked. A number is little-endian. A CRC goes on in the first item of `state`.
On boards with native code viper.py takes this module's place.
"""

from binascii import crc32

try:
    from micropython import const
except ImportError:
    from ..cpython import const

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
    out[_FOOT_KIND] = chunk[32]
    out[_FOOT_SLOT] = half(chunk, 34)
    out[_FOOT_NUMBER] = word(chunk, 36)
    out[_FOOT_WEAR] = word(chunk, 40) & 0xFFFFFF
    out[_FOOT_SESSION] = chunk[43]
    out[_FOOT_GENERATION] = word(chunk, 44)
    out[_FOOT_IDENTITY] = word(chunk, 48)
    out[_FOOT_END] = half(chunk, 54) << 3
    out[_FOOT_NEXT] = word(chunk, 56)
    if n > 4:
        return -1 - n
    return n if crc32(memoryview(chunk)[32 - 8 * n : 60]) == word(chunk, 60) else -1


def _newer(a, b):
    return 0 < ((a - b) & 0x3FFFFFFF) < 0x20000000


def take(out, planes):
    """Note the wear and owner of the closed sector whose foot is in `out`. 1: it is current; 0: not; 2: a
    start that may have been cut has copied to it."""
    s = out[_AT_SECTOR]
    worn = min(255, max(0, out[_FOOT_WEAR] - out[_FLOOR]))
    planes[out[_ALL_SECTORS] + s] = worn
    out[_MOST_WORN] = max(out[_MOST_WORN], worn)
    if out[_FOOT_SLOT] >= out[_ALL_SLOTS]:
        return 0
    number = out[_FOOT_NUMBER]
    if out[_FOOT_KIND] == 0x44:
        if _newer(number, out[_SINCE]):
            return 2
    elif _newer(number, out[_NEWEST]):
        out[_NEWEST], out[_NEWEST_IN] = number, s
    q = _SLOTS_AT + _SLOT_WORDS * out[_FOOT_SLOT]
    if out[q + _GENERATION] != out[_FOOT_GENERATION] and not out[_ANY_GENERATION]:
        return 0
    planes[s] = out[_FOOT_SLOT]
    out[_OWNED] += 1
    out[q + _USED] = 1
    out[q + _IDENTITY] = out[_FOOT_IDENTITY]
    if not out[q + _TAIL] or _newer(number, out[q + _TAIL_NUMBER]):
        out[q + _BEFORE], out[q + _BEFORE_NUMBER] = out[q + _TAIL], out[q + _TAIL_NUMBER]
        out[q + _TAIL], out[q + _TAIL_NUMBER] = s, number
    elif not out[q + _BEFORE] or _newer(number, out[q + _BEFORE_NUMBER]):
        out[q + _BEFORE], out[q + _BEFORE_NUMBER] = s, number
    return 1


def _reserve(out, index, record):
    """Where in the index a record of the slot in `out` stands, made if need be; -1: there is no room."""
    q = _SLOTS_AT + _SLOT_WORDS * out[_FOOT_SLOT]
    base, count = out[q + _BASE], out[q + _COUNT]
    if base == count:
        base = count = record
    at = out[q + _FIRST]
    more = base - record
    if record >= count:
        more = record + 1 - count
        at += count - base
    if more > 0:
        if out[_ENTRIES] + more > out[_CAPACITY]:
            return -1
        for i in range(out[_ENTRIES] - 1, at - 1, -1):
            index[i + more] = index[i]
        for i in range(at, at + more):
            index[i] = 0
        out[_ENTRIES] += more
        base = min(base, record)
        count = max(count, record + 1)
        for slot in range(out[_FOOT_SLOT] + 1, out[_ALL_SLOTS]):
            out[_SLOTS_AT + _SLOT_WORDS * slot + _FIRST] += more
    out[q + _BASE], out[q + _COUNT] = base, count
    return out[q + _FIRST] + record - base


def enter(chunk, out, index, planes):
    """Enter the records that begin in the sector whose last 64 bytes are at hand. 2: there is another version
    of one, or no room."""
    s = out[_AT_SECTOR]
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
    live += (out[_FOOT_END] - 8 * begun + 63) >> 6
    planes[2 * out[_ALL_SECTORS] + s] = (planes[2 * out[_ALL_SECTORS] + s] + live) & 255
    return 1


def next_in(index, i, end, s):
    """The next record from i on that begins in sector s, or for -1 anywhere; `end`: none does."""
    while i < end and not (index[i] and (s < 0 or index[i] >> 9 == s)):
        i += 1
    return i
