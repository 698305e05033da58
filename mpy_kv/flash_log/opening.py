"""A start: find what there is on the flash. Reads only; what a cut has left is mended by step().

One read a closed sector: its last bytes are the summary. Of sectors in doubt every fragment is checked.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..errors import BadArgument
from ..port import ints
from .log import (
    CLOSED,
    CLOSED_COPIES,
    COPIED,
    OPENED,
    PAGE,
    PAGES,
    SECTOR,
    SUPERBLOCKS,
    VERSION,
    newer,
    units,
)
from . import words
from .words import begin, copy, crc, foot, half, new_scan, take, widen, word

# fields: scan, scan slot
_FOOT_KIND = const(0)
_FOOT_SLOT = const(1)
_FOOT_NUMBER = const(2)
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
_BEFORE = const(7)
_USED = const(9)
_SLOT_WORDS = const(10)
# end of fields

_HEAD = 24
_FOOT = 32
_FOOT_AT = 4064
_ENTRY = 8
_SUPER = b"MKVS"
# Numbers that a start leaves out: what a cut has torn may have taken some of them.
_SKIP = 64
_ABSENT = -1
_FREE = 255
_LAST = 4032
_MOST_ENTRIES = 126  # of a sector


def open_log(log):
    """Find its sequences. BadArgument: the region is no log, or one of another version. Raises nothing else.

    What is found of sectors in doubt is so for now: recovery reads them again.
    """
    log.reset()
    log.losers = []
    # First what is certain, so that sectors that hold nothing of it are free.
    scan = _Scan(log, _superblocks(log))
    scan.run()
    log.doubtful = scan.in_doubt
    unfinished = []
    for slot in range(log.slots):
        _part_of(log, slot, scan.tails[slot], unfinished)
    for slot, s in scan.copied:
        _part_of(log, slot, s, unfinished)
    near = [s for _, s in scan.copied]
    for slot in range(log.slots):
        if log.used[slot]:
            _bounds(log, slot, near + _ends(log, slot, scan.tails[slot]))
    _discount(log)
    for slot in range(log.slots):
        if log.dying:
            log._settle(slot)
    # Then what the cut has left in doubt: what it replaces stays until the copy is closed.
    for s in log.doubtful:
        _walk(log, s)
    for place, slot, record in unfinished:
        if (slot, record) not in log.distrusted and is_whole(log, place, record):
            enter(log, slot, record, place)
            log.again.append((slot, record))
        elif log._entry(slot, record):
            # The older one is the newest from now on, whatever the torn one reads as another time.
            log.again.append((slot, record))
    for slot in range(log.slots):
        if log.used[slot]:
            _bounds(log, slot, near + _ends(log, slot, scan.tails[slot]))
            _end_at_hole(log, slot)
    _discount(log)
    log.losers = None
    # By the index alone: what is read of a sector in doubt may be something else each time.
    for s in log.doubtful:
        slot = log.owner[s]
        end = log.first[slot + 1]
        i = words.next_in(log.index, log.first[slot], end, s)
        while i < end:
            each = (slot, log.base[slot] + i - log.first[slot])
            if each not in log.again:
                log.again.append(each)
            i = words.next_in(log.index, i + 1, end, s)
    if len(log.index) > log.blocks + 1 and log.first[log.slots] <= log.blocks:
        log.index = ints(log.index[: log.blocks + 1])
    log.number = (log.number + _SKIP) & 0x3FFFFFFF
    for slot in range(log.slots):
        log.last[slot] = log.safe[slot] = log.number
    log.recovery = [scan.erase, 0]
    log.opened = True
    return log


class _Scan:
    """Owner and wear of each sector, and the records that begin in closed ones.

    in_doubt: sectors, oldest first. erase: left of a start that was cut. tails: of each slot the sector
    closed last, at whose end a cut may have left a record. The sector closed last of all is in doubt where
    nothing that was done later by the same start, or by one that had mended all, tells that its foot was
    finished.
    """

    def __init__(self, log, number):
        self.log = log
        self.out = new_scan(log.slots)
        self.doubts = []  # (number, sector)
        self.erase = []
        self.unknown = []  # neither head nor foot
        self.of_starts = {}  # session: number and closed sector of the last that a start did that was cut
        self.late = []  # closed by such a start
        out = self.out
        out[_ALL_SECTORS] = log.sectors
        out[_FLOOR] = log.floor
        out[_NEWEST] = number
        out[_ALL_SLOTS] = log.slots
        out[_SINCE] = log.since
        out[_ANY_GENERATION] = any_generation()
        out[_CAPACITY] = len(log.index) - 1
        for slot in range(log.slots):
            out[_SLOTS_AT + _SLOT_WORDS * slot + _GENERATION] = log.generation[slot]

    @micropython.native
    def run(self):
        log = self.log
        out = self.out
        chunk = log._chunk
        header = log._header
        read = log.device.readblocks
        tail = log._views[8]
        head = log._header_view
        index = log.index
        planes = log.planes
        unknown = self.unknown
        look = foot  # a local name is found at once
        note = take
        add = words.enter
        s = SUPERBLOCKS
        last = log.sectors
        while s < last:
            out[_AT_SECTOR] = s
            n = -1
            try:
                read(s, tail, _LAST)
                n = look(chunk, out)
                if n == -1:
                    read(s, head, 0)
            except OSError:
                header[0] = 0
            if n > 0:
                found = note(out, planes)
                if found == 1:
                    found = add(chunk, out, index, planes)
                if found == 2:
                    self._slowly(s, n)
                    index = log.index
            elif n < -1 and self._long(s, -1 - n):
                self._slowly(s, -1 - n)
                index = log.index
            elif n == -1 and header[0] != OPENED and header[0] != COPIED:
                unknown.append(s)
            else:
                self._not_closed(s)
            s += 1
        self._end()

    def _long(self, s, n):
        """Whether a sector with more entries than fit the last 64 bytes is closed; it is taken then."""
        log = self.log
        if _foot(log, s) != n:
            return False
        take(self.out, log.planes)
        return True

    def _slowly(self, s, n):
        """The records that begin in a sector, where it is not done at once."""
        log = self.log
        out = self.out
        slot, number = out[_FOOT_SLOT], out[_FOOT_NUMBER]
        if slot >= log.slots or (log.generation[slot] != out[_FOOT_GENERATION] and not out[_ANY_GENERATION]):
            return
        if out[_FOOT_KIND] == CLOSED_COPIES and newer(number, log.since):
            self._of_start(out[_FOOT_SESSION], number, s)
            self.late.append((number, s, slot, out[_FOOT_SESSION], out[_FOOT_NEXT]))
            log.owner[s] = slot
            out[_OWNED] += 1
            out[_SLOTS_AT + _SLOT_WORDS * slot + _USED] = 1
            out[_SLOTS_AT + _SLOT_WORDS * slot + _IDENTITY] = out[_FOOT_IDENTITY]
            return
        self._give()
        _entries(log, slot, s, n, out[_FOOT_END])
        self._get()

    def _give(self):
        """Write what was found so far to the log."""
        log = self.log
        for slot in range(log.slots):
            at = _SLOTS_AT + _SLOT_WORDS * slot
            log.identity[slot] = self.out[at + _IDENTITY]
            log.first[slot] = self.out[at + _FIRST]
            log.base[slot] = self.out[at + _BASE]
            log.count[slot] = self.out[at + _COUNT]
            log.used[slot] = self.out[at + _USED]
        log.first[log.slots] = self.out[_ENTRIES]

    def _get(self):
        """And read what of it has changed."""
        log = self.log
        for slot in range(log.slots):
            at = _SLOTS_AT + _SLOT_WORDS * slot
            self.out[at + _FIRST] = log.first[slot]
            self.out[at + _BASE] = log.base[slot]
            self.out[at + _COUNT] = log.count[slot]
        self.out[_ENTRIES] = log.first[log.slots]
        self.out[_CAPACITY] = len(log.index) - 1

    def _not_closed(self, s):
        log = self.log
        kind = _head(log, s)
        out = self.out
        if kind == _ABSENT:
            self.unknown.append(s)
            return
        header = log._header
        number = word(header, 4)
        slot = half(header, 2)
        log.wear[s] = min(255, max(0, (word(header, 8) & 0xFFFFFF) - log.floor))
        out[_MOST_WORN] = max(out[_MOST_WORN], log.wear[s])
        if not newer(number, log.since):
            return  # of before a start that had mended all: what it held was given up then
        if kind == COPIED:
            self._of_start(header[11], number, 0)
        elif newer(number, out[_NEWEST]):
            out[_NEWEST] = number
            out[_NEWEST_IN] = 0
        if slot < log.slots and (log.generation[slot] == word(header, 12) or out[_ANY_GENERATION]):
            if kind == COPIED:
                self.erase.append(s)
            else:
                log.owner[s] = slot
                out[_OWNED] += 1
                out[_SLOTS_AT + _SLOT_WORDS * slot + _USED] = 1
                out[_SLOTS_AT + _SLOT_WORDS * slot + _IDENTITY] = word(header, 16)
                self.doubts.append((number, s))

    def _of_start(self, session, number, closed):
        had = self.of_starts.get(session)
        if had is None or newer(number, had[0]):
            self.of_starts[session] = (number, closed)

    def _end(self):
        log = self.log
        out = self.out
        self._give()
        log.free -= out[_OWNED]
        for s in self.unknown:
            log.wear[s] = out[_MOST_WORN]  # as worn as the most worn that is known
        while log.session in self.of_starts:
            log.session = (log.session + 1) & 255
        log.number = out[_NEWEST]
        if out[_NEWEST_IN] and log.owner[out[_NEWEST_IN]] < log.slots and last_is_doubtful(log):
            self.doubts.append((out[_NEWEST], out[_NEWEST_IN]))
        for number, closed in self.of_starts.values():
            if newer(number, log.number):
                log.number = number
            if closed and log.owner[closed] < log.slots and last_is_doubtful(log):
                self.doubts.append((number, closed))
        self.doubts.sort()
        self.in_doubt = [s for _, s in self.doubts]
        self.tails = [0] * log.slots
        self.copied = []  # (slot, sector) of copies, oldest first
        for slot in range(log.slots):
            at = _SLOTS_AT + _SLOT_WORDS * slot
            self.tails[slot] = out[at + _BEFORE] if out[at + _TAIL] in self.in_doubt else out[at + _TAIL]
        self._copies()
        if out[_NEWEST_IN] in self.in_doubt:
            _withdraw(log, out[_NEWEST_IN])

    def _copies(self):
        """Enter what starts that were cut have copied. Where the last such record of a slot broke off, all
        that the same start has copied of it is erased: what it was copied from is still there."""
        log = self.log
        self.late.sort()
        closed = [s for _, s, _, _, _ in self.late]
        broken = [(slot, session) for _, _, slot, session, then in self.late if then and then not in closed]
        for number, s, slot, session, _ in self.late:
            if (slot, session) in broken:
                self.erase.append(s)
                if s in self.in_doubt:
                    self.in_doubt.remove(s)
                log.owner[s] = _FREE
                log.free += 1
            elif s not in self.in_doubt:
                n = _foot(log, s)
                if n > 0:
                    self.copied.append((slot, s))
                    _entries(log, slot, s, n, half(log._foot, 22) << 3)


def _withdraw(log, s):
    """Leave out the records that begin in a closed sector that is in doubt."""
    slot = log.owner[s]
    end = log.first[slot + 1]
    i = words.next_in(log.index, log.first[slot], end, s)
    while i < end:
        best = number = 0
        for each, other in log.losers:
            if each == slot and other >> 9 != s:
                its = number_at(log, other)
                here = log.base[slot] + i - log.first[slot]
                if word(log._header, 8) == here and (not best or newer(its, number)):
                    best, number = other, its
        log.index[i] = best
        log.losers = [each for each in log.losers if each != (slot, best)]
        i = words.next_in(log.index, i + 1, end, s)


def _discount(log):
    for slot, place in log.losers:
        log._discount(slot, place)
    log.losers = []


def _superblocks(log):
    """Take the newest copy; its number."""
    found = False
    other = False  # a log's, of another version
    number = 0
    for sector in range(SUPERBLOCKS):
        for page in range(PAGES):
            if not log._read(sector, PAGE * page, log._views[PAGE // 8]):
                break
            chunk = log._chunk
            begin(log._crc)
            crc(0, PAGE - 4, chunk, log._crc)
            if bytes(chunk[:4]) == b"\xff\xff\xff\xff":
                break
            if bytes(chunk[:4]) != _SUPER or not log._right(chunk, PAGE - 4):
                continue  # a later program may have disturbed it
            log.super_page[sector] = page + 1
            if half(chunk, 4) != VERSION:
                other = half(chunk, 4)
                break
            if half(chunk, 6) != log.slots or word(chunk, 12) != log.sectors:
                raise BadArgument(
                    "the log has %d slots and %d sectors, not %d and %d"
                    % (half(chunk, 6), word(chunk, 12), log.slots, log.sectors)
                )
            if not found or newer(word(chunk, 8), number):
                found = True
                number = word(chunk, 8)
                log.super = sector
                log.floor = word(chunk, 16)
                log.since = word(chunk, 20)
                for i in range(log.slots):
                    log.generation[i] = word(chunk, 24 + 4 * i)
    if not found:
        if other:
            raise BadArgument("a log of version %d: this one reads %d" % (other, VERSION))
        raise BadArgument("no log in this region: format_log() makes one where it is blank")
    return number


def _head(log, s):
    """Kind of a sector by its head, read into log._header."""
    if not log._read(s, 0, log._header_view):
        return _ABSENT
    header = log._header
    if header[1] != VERSION or header[0] not in (OPENED, COPIED):
        return _ABSENT
    begin(log._crc)
    crc(0, _HEAD - 4, header, log._crc)
    return header[0] if log._right(header, _HEAD - 4) else _ABSENT


def _foot(log, s):
    """Entries of a closed sector, its foot in log._foot; -1: it is none."""
    if not log._read(s, SECTOR - 64, log._views[8]):
        return -1
    chunk = log._chunk
    entries = half(chunk, 52)
    if chunk[32] not in (CLOSED, CLOSED_COPIES) or chunk[33] != VERSION:
        return -1
    if not 0 < entries <= (_FOOT_AT - _HEAD) // _ENTRY:
        return -1
    copy(log._foot, chunk, 0, 32, _FOOT)
    begin(log._crc)
    if entries <= 4:
        crc(32 - _ENTRY * entries, _ENTRY * entries, chunk, log._crc)
    else:
        at = _FOOT_AT - _ENTRY * entries
        while at < _FOOT_AT:
            n = min(PAGE, _FOOT_AT - at)
            if not log._read(s, at, log._views[n >> 3]):
                return -1
            crc(0, n, chunk, log._crc)
            at += n
    crc(0, _FOOT - 4, log._foot, log._crc)
    return entries if log._right(log._foot, _FOOT - 4) else -1


def _entries(log, slot, s, entries, end):
    """Enter the records that begin in a closed sector with more than fit the last 64 bytes."""
    at = _FOOT_AT - _ENTRY * entries
    live = 0
    begun = 0
    while at < _FOOT_AT:
        n = min(PAGE, _FOOT_AT - at)
        if not log._read(s, at, log._views[n >> 3]):
            return
        found = bytes(log._chunk[:n])
        for i in range(0, n, _ENTRY):
            if begun:
                live += units((half(found, i + 4) << 3) - begun - _HEAD)
            begun = half(found, i + 4) << 3
            if not half(found, i + 6):
                enter(log, slot, word(found, i), s << 9 | half(found, i + 4))
        at += n
    log.live[s] = (log.live[s] + live + units(end - begun - _HEAD)) & 255


def _walk(log, s):
    """Check the fragments of a sector in doubt; enter the records that lie in it as a whole."""
    slot = log.owner[s]
    at = _HEAD
    while at + _HEAD < _FOOT_AT and log._read(s, at, log._header_view):
        header = log._header
        here, done, size = half(header, 18) << 3, half(header, 16) << 3, half(header, 20) << 3
        if not here or at + _HEAD + here > _FOOT_AT or done + here > size:
            break
        if not log._check(s << 9 | at >> 3, None, 0):
            break
        number, record = word(header, 4), word(header, 8)
        if newer(number, log.number):
            log.number = number
        if done == 0 and here == size and (slot, record) not in log.distrusted:
            enter(log, slot, record, s << 9 | at >> 3)
        at += _HEAD + here


def _part_of(log, slot, tail, unfinished):
    """Of the record that goes on behind the sector closed last, take the newest version that is whole without
    sectors in doubt; the others are unfinished, as (place, slot, record)."""
    if not tail or not log._read(tail, SECTOR - 64, log._views[8]) or not word(log._chunk, 56):
        return
    record = word(log._chunk, 32 - _ENTRY)
    place = log._entry(slot, record)
    if not place or is_whole(log, place, record, False):
        return
    unfinished.append((place, slot, record))
    best = number = 0
    for each, other in log.losers:
        if each == slot:
            its = number_at(log, other)
            if word(log._header, 8) == record:
                if is_whole(log, other, record, False):
                    if not best or newer(its, number):
                        best, number = other, its
                else:
                    unfinished.append((other, slot, record))
    log.index[log.first[slot] + record - log.base[slot]] = best
    log.losers = [each for each in log.losers if each != (slot, best)]


def _ends(log, slot, tail):
    """The sector closed last, and that in which the record begins whose end is the first thing there: where
    none begins in the former, or one that is not whole, it is the newest, and no others need be read."""
    if not tail or not log._read(tail, SECTOR - 64, log._views[8]):
        return [tail]
    entry = 32 - _ENTRY * half(log._chunk, 52)
    if entry < 0:
        return [tail]
    begun = log._entry(slot, word(log._chunk, entry))
    through = tail << 9 | half(log._chunk, entry + 4)
    if not begun or number_at(log, begun) != number_at(log, through):
        return [tail]
    return [tail, begun >> 9]


def any_generation():
    """Whether sectors of sequences that were closed are taken for current: they are not."""
    return 0


def last_is_doubtful(log):
    """Whether the sector closed last is doubted where nothing tells that something was written after it."""
    return True


@micropython.native
def enter(log, slot, record, place):
    """Take the record that begins at `place` for the current one, unless a newer is known."""
    if log.first[slot] == log.first[slot + 1]:
        log.base[slot] = log.count[slot] = record
    more = max(log.base[slot] - record, record + 1 - log.count[slot])
    if more > 0 and not _widen_index(log, more):
        return
    while record < log.base[slot]:
        _insert(log, slot)
    while record >= log.count[slot]:
        log._grow(slot)
    i = log.first[slot] + record - log.base[slot]
    old = log.index[i]
    if not old:
        log.index[i] = place
    elif newer(number_at(log, place), number_at(log, old)):
        log.index[i] = place
        log.losers.append((slot, old))
    elif place != old:
        log.losers.append((slot, place))


def _widen_index(log, more):
    """Room for so many records more: of those that are found many may be no more, which only the newest
    tells."""
    need = log.first[log.slots] + more + 1
    if need > len(log.index):
        if need > _MOST_ENTRIES * log.sectors:
            return False
        wider = ints([], max(need, 2 * len(log.index)))
        for i in range(log.first[log.slots]):
            wider[i] = log.index[i]
        log.index = wider
    return True


def _insert(log, slot):
    """A place for the record before its first."""
    widen(log.index, log.first[slot], log.first[log.slots])
    for i in range(slot + 1, log.slots + 1):
        log.first[i] += 1
    log.base[slot] -= 1


def number_at(log, place):
    """Version of the record that begins there; its header is in log._header then."""
    log._read(place >> 9, (place & 511) << 3, log._header_view)
    return word(log._header, 4)


def is_whole(log, place, record, doubtful=True):
    """Whether all fragments are there; of those in sectors in doubt also whether their bytes are right, or if
    not `doubtful` whether there are none."""
    header = log._header
    number = number_at(log, place)
    done = 0
    while True:
        s = place >> 9
        here = half(header, 18)
        if word(header, 8) != record or word(header, 4) != number or half(header, 16) != done or not here:
            return False
        if s in log.doubtful and not (doubtful and log._check(place, None, 0)):
            return False
        done += here
        if done >= half(header, 20):
            return done == half(header, 20)
        slot = log.owner[s]
        place = log._follow(s, header, log._header_view)
        if not place or log.owner[place >> 9] != slot:
            return False


def touches_doubtful(log, slot, record):
    """Whether a fragment of the current version lies in a sector in doubt."""
    place = log._entry(slot, record)
    if not place:
        return False
    number_at(log, place)
    while place:
        if place >> 9 in log.doubtful:
            return True
        if half(log._header, 16) + half(log._header, 18) >= half(log._header, 20):
            return False
        place = log._follow(place >> 9, log._header, log._header_view)
    return False


def _end_at_hole(log, slot):
    """One of several records in doubt may be lost while later ones are not: none of them was kept, so those
    behind it are left out."""
    for i in range(log.first[slot], log.first[slot + 1]):
        if not log.index[i]:
            _resize(log, slot, log.base[slot], log.base[slot] + i - log.first[slot])
            return


def _resize(log, slot, base, count):
    """Leave out what lies outside; what is missing is absent."""
    base = max(base, 0)
    while log.count[slot] > max(count, log.base[slot]):
        log.count[slot] -= 1
        _leave_out(log, slot, log.first[slot + 1] - 1)
    while log.base[slot] < min(base, log.count[slot]):
        log.base[slot] += 1
        _leave_out(log, slot, log.first[slot])
    if log.base[slot] == log.count[slot]:
        log.base[slot] = log.count[slot] = base
    while log.base[slot] > base and _widen_index(log, 1):
        _insert(log, slot)
    while log.count[slot] < count and _widen_index(log, 1):
        log._grow(slot)


def _leave_out(log, slot, i):
    if log.index[i]:
        log.losers.append((slot, log.index[i]))
    log._shrink(i, slot)


def _bounds(log, slot, near):
    """Base and count of a sequence, as its newest record tells: one that begins in a sector closed last or
    in one in doubt, unless none does. A header that its sector's summary belies is damaged, and one that is
    newer than all there is or tells of more records than there can be: these take the room of others."""
    first, end = log.first[slot], log.first[slot + 1]
    header = log._header
    most = end - first + _MOST_ENTRIES * (len(log.doubtful) + len(near) + 1)
    newest = number = 0
    for s in log.doubtful + near + [-1]:
        if s < 0 and newest:
            break
        i = first
        while s:
            i = words.next_in(log.index, i, end, s)
            if i >= end:
                break
            its = number_at(log, log.index[i])
            sound = word(header, 8) == log.base[slot] + i - first
            sound = sound and half(header, 12) + half(header, 14) < most and not newer(its, log.number)
            if sound and (not newest or newer(its, number)):
                newest, number = log.index[i], its
            i += 1
    if not newest:
        _resize(log, slot, log.base[slot], log.base[slot])
        return
    number_at(log, newest)
    record = word(log._header, 8)
    _resize(log, slot, max(0, record - half(log._header, 14)), record + 1 + half(log._header, 12))
