"""A start: find what there is on the flash. Reads only; what a cut has left is mended by step().

One read a closed sector: its last bytes are the summary. Of sectors in doubt every fragment is checked.
"""

try:
    import micropython
except ImportError:
    from .. import cpython as micropython

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
from .words import begin, copy, crc, foot, half, widen, word

_HEAD = 24
_FOOT = 32
_FOOT_AT = 4064
_ENTRY = 8
_SUPER = b"MKVS"
# Numbers that a start leaves out: what a cut has torn may have taken some of them.
_SKIP = 64
_ABSENT = -1


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
    unfinished = [_part_of(log, i % log.slots, scan.tails[i]) for i in range(2 * log.slots)]
    for slot in range(log.slots):
        if log.used[slot]:
            _bounds(log, slot, scan.tails)
    _discount(log)
    for slot in range(log.slots):
        log._settle(slot)
    # Then what the cut has left in doubt: what it replaces stays until the copy is closed.
    for s in log.doubtful:
        _walk(log, s)
    for place, slot, record in [each for each in unfinished if each]:
        if (slot, record) not in log.distrusted and is_whole(log, place, record):
            enter(log, slot, record, place)
            log.again.append((slot, record))
        elif log._entry(slot, record):
            # The older one is the newest from now on, whatever the torn one reads as another time.
            log.again.append((slot, record))
    for slot in range(log.slots):
        if log.used[slot]:
            _bounds(log, slot, scan.tails)
    _discount(log)
    log.losers = None
    # By the index alone: what is read of a sector in doubt may be something else each time.
    if log.doubtful:
        for slot in range(log.slots):
            for record in range(log.base[slot], log.count[slot]):
                place = log._entry(slot, record)
                if place and place >> 9 in log.doubtful and (slot, record) not in log.again:
                    log.again.append((slot, record))
    log.number = (log.number + _SKIP) & 0x3FFFFFFF
    for slot in range(log.slots):
        log.last[slot] = log.safe[slot] = log.number
    log.recovery = [scan.erase, 0]
    log.opened = True
    return log


class _Scan:
    """Owner and wear of each sector, and the records that begin in closed ones.

    in_doubt: sectors, oldest first. erase: left of a start that was cut. tails: of each slot the sector
    closed last, then of each the one that a start closed last: a cut may have left the record at the end
    of either. The sector closed last of all is in doubt where nothing that was done later by the same
    start, or by one that had mended all, tells that its foot was finished.
    """

    def __init__(self, log, number):
        self.log = log
        self.highest = number  # of what was done when all was mended
        self.last = 0  # closed sector that has it; 0: something else has
        self.held = bytearray(64)  # its summary: whether it is in doubt is known in the end
        self.held_entries = 0
        self.doubts = []  # (number, sector)
        self.erase = []
        self.tails = [0] * (2 * log.slots)
        self.numbers = [0] * (2 * log.slots)
        self.of_starts = {}  # session: number and closed sector of the last that a start did that was cut
        self.late = []  # closed by such a start
        self.foot = ints([], 9)

    def run(self):
        log = self.log
        unknown = []
        most = 0
        view = log._views[8]
        for s in range(SUPERBLOCKS, log.sectors):
            n = -1
            if log._read(s, SECTOR - 64, view):
                n = foot(log._chunk, self.foot, log._crc)
                if n < -1:
                    n = -1 - n if _foot(log, s) == -1 - n else -1
                    log._read(s, SECTOR - 64, view)
            if n > 0:
                worn = self._closed(s, n)
            else:
                worn = self._not_closed(s)
            if worn < 0:
                unknown.append(s)
            else:
                worn -= log.floor
                if worn > 0:
                    log.wear[s] = min(255, worn)
                    most = max(most, log.wear[s])
        for s in unknown:
            log.wear[s] = most
        self._end()

    @micropython.native
    def _closed(self, s, n):
        """A closed sector with n entries; its wear."""
        log = self.log
        f = self.foot
        slot = f[1]
        number = f[2]
        if slot >= log.slots:
            return f[3]
        current = is_current(log, slot, f[5])
        if f[0] == CLOSED:
            if newer(number, self.highest):
                # The one held until now is certain: something was done later.
                self._release(s)
                self.highest = number
                self.last = s
                if current:
                    self._take(s, slot, f[6])
                    copy(self.held, log._chunk, 0, 0, 64)
                    self.held_entries = n
                return f[3]
        elif newer(number, log.since):
            self._of_start(f[4], number, s)
            if current:
                self._take(s, slot, f[6])
                self.late.append(s)
            return f[3]
        if current:
            self._take(s, slot, f[6])
            self._enter(s, n, log._chunk)
        return f[3]

    def _not_closed(self, s):
        """A sector without a foot; its wear, -1: unknown."""
        log = self.log
        kind = _head(log, s)
        if kind == _ABSENT:
            return -1
        header = log._header
        number = word(header, 4)
        slot = half(header, 2)
        worn = word(header, 8) & 0xFFFFFF
        if not newer(number, log.since):
            return worn  # of before a start that had mended all: what it held was given up then
        if kind == COPIED:
            self._of_start(header[11], number, 0)
        elif newer(number, self.highest):
            self._release(s)
            self.highest = number
            self.last = 0
        if slot < log.slots and is_current(log, slot, word(header, 12)):
            if kind == COPIED:
                self.erase.append(s)
            else:
                self._take(s, slot, word(header, 16))
                self.doubts.append((number, s))
        return worn

    @micropython.native
    def _take(self, s, slot, identity):
        log = self.log
        log.owner[s] = slot
        log.used[slot] = 1
        log.identity[slot] = identity
        log.free -= 1

    def _of_start(self, session, number, closed):
        had = self.of_starts.get(session)
        if had is None or newer(number, had[0]):
            self.of_starts[session] = (number, closed)
        if newer(number, self.log.number):
            self.log.number = number

    @micropython.native
    def _release(self, s):
        """Enter what is held; then the summary of s is at hand again."""
        log = self.log
        n = self.held_entries
        if n:
            self.held_entries = 0
            foot(self.held, self.foot, log._crc)
            self._enter(self.last, n, self.held)
            if n > 4:
                log._read(s, SECTOR - 64, log._views[8])
            foot(log._chunk, self.foot, log._crc)

    @micropython.native
    def _enter(self, s, n, chunk):
        """The records that begin in a sector, by its summary."""
        log = self.log
        f = self.foot
        slot = f[1]
        by = slot if f[0] == CLOSED else log.slots + slot
        number = f[2]
        if not self.tails[by] or newer(number, self.numbers[by]):
            self.tails[by] = s
            self.numbers[by] = number
        end = f[7]
        if n > 4:
            _entries(log, slot, s, n, end)
            return
        live = 0
        begun = 0
        at = 32 - _ENTRY * n
        while at < 32:
            offset = half(chunk, at + 4)
            if begun:
                live += units((offset << 3) - begun - _HEAD)
            begun = offset << 3
            if not half(chunk, at + 6):
                enter(log, slot, word(chunk, at), s << 9 | offset)
            at += _ENTRY
        log.live[s] = (log.live[s] + live + units(end - begun - _HEAD)) & 255

    def _end(self):
        """What was held, and what starts did that were cut."""
        log = self.log
        sessions = [session for session in self.of_starts]
        log.session = (max(sessions) + 1) & 255 if sessions else 0
        while log.session in sessions:
            log.session = (log.session + 1) & 255
        if newer(self.highest, log.number):
            log.number = self.highest
        if self.held_entries:
            if last_is_doubtful(log):
                self.doubts.append((self.highest, self.last))
            else:
                self._release(self.last)
        for number, closed in self.of_starts.values():
            if closed and log.owner[closed] < log.slots and last_is_doubtful(log):
                self.doubts.append((number, closed))
        self.doubts.sort()
        self.in_doubt = [s for _, s in self.doubts]
        for s in self.late:
            if s not in self.in_doubt and log._read(s, SECTOR - 64, log._views[8]):
                n = foot(log._chunk, self.foot, log._crc)
                if n < -1:
                    n = -1 - n
                if n > 0:
                    self._enter(s, n, log._chunk)


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
            crc(chunk, log._crc, 0, PAGE - 4)
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
    begin(log._crc)
    crc(header, log._crc, 0, _HEAD - 4)
    if header[1] != VERSION or header[0] not in (OPENED, COPIED) or not log._right(header, _HEAD - 4):
        return _ABSENT
    return header[0]


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
        crc(chunk, log._crc, 32 - _ENTRY * entries, _ENTRY * entries)
    else:
        at = _FOOT_AT - _ENTRY * entries
        while at < _FOOT_AT:
            n = min(PAGE, _FOOT_AT - at)
            if not log._read(s, at, log._views[n >> 3]):
                return -1
            crc(chunk, log._crc, 0, n)
            at += n
    crc(log._foot, log._crc, 0, _FOOT - 4)
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


def _part_of(log, slot, tail):
    """The record that goes on behind the sector closed last: where it is not whole without sectors in
    doubt, the newest older version that is takes its place. Returns its (place, slot, record); None: there
    is none."""
    if not tail or not log._read(tail, SECTOR - 64, log._views[8]) or not word(log._chunk, 56):
        return None
    record = word(log._chunk, 32 - _ENTRY)
    place = log._entry(slot, record)
    if not place:
        return None
    if is_whole(log, place, record, False):
        return None
    best = number = 0
    for each, other in log.losers:
        if each == slot and other >> 9 not in log.doubtful:
            its = number_at(log, other)
            if word(log._header, 8) == record and (not best or newer(its, number)):
                if is_whole(log, other, record, False):
                    best, number = other, its
    log.index[log.first[slot] + record - log.base[slot]] = best
    log.losers = [each for each in log.losers if each != (slot, best)]
    return place, slot, record


def is_current(log, slot, generation):
    """Whether a sector of that generation is its slot's sequence's, not one's that was closed."""
    return log.generation[slot] == generation


def last_is_doubtful(log):
    """Whether the sector closed last is doubted where nothing tells that something was written after it."""
    return True


@micropython.native
def enter(log, slot, record, place):
    """Take the record that begins at `place` for the current one, unless a newer is known."""
    if log.first[slot] == log.first[slot + 1]:
        log.base[slot] = log.count[slot] = record
    more = max(log.base[slot] - record, record + 1 - log.count[slot])
    if more > 0 and log.first[log.slots] + more > log.blocks:
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
    while log.base[slot] > base and log.first[log.slots] < log.blocks:
        _insert(log, slot)
    while log.count[slot] < count and log.first[log.slots] < log.blocks:
        log._grow(slot)


def _leave_out(log, slot, i):
    if log.index[i]:
        log.losers.append((slot, log.index[i]))
    log._shrink(i, slot)


def _bounds(log, slot, tails, near=True):
    """Base and count of a sequence, as its newest record tells: one that begins in the sector closed last
    or in one in doubt, unless none does."""
    newest = 0
    number = 0
    for i in range(log.first[slot], log.first[slot + 1]):
        place = log.index[i]
        if place and (not near or place >> 9 in tails or place >> 9 in log.doubtful):
            its = number_at(log, place)
            if not newest or newer(its, number):
                newest, number = place, its
    if not newest and near:
        _bounds(log, slot, tails, False)
        return
    if not newest:
        _resize(log, slot, log.base[slot], log.base[slot])
        return
    number_at(log, newest)
    record = word(log._header, 8)
    _resize(log, slot, max(0, record - half(log._header, 14)), record + 1 + half(log._header, 12))
