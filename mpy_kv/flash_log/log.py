"""FlashLog: records of several sequences on raw flash, kept through a power cut at any moment.

A record is a block of a sequence: the bytes of so many tokens in all layers, with whatever the program
puts beside them. A sequence is a slot of the log and its records are numbered from 0. Format: docs/SPEC.md.

    log = FlashLog(device, record_bytes=5440, blocks=256)
    open_log(log)                      # opening.py; a blank region: formatting.py
    while log.step(): pass             # recovery; then a step whenever there is time
    slot = log.begin(identity)
    log.put(slot, log.count[slot], buffer, runs)
    log.durable(slot, version)         # True once no cut can take it back

What is promised, and what for:
- A sector has records of one slot, is programmed from its begin to its end, and is *closed* by a summary in
  its last bytes. A record counts as kept only when the sector that it ends in is closed: a later program
  in the same sector, if it is cut, may disturb what stands before it. `durable` tells.
- Whatever a record replaces is given up only then.
- A sector is erased in the same run of the program in which it is first programmed: that it reads blank
  at a start says nothing.
- After a start the sectors that the last operation may have been in are copied and erased, before anything
  else is written (recovery.py).
Nothing is erased but in step(), and a call of the device programs one page. put, read and step allocate
nothing once the log is recovered, where there is native code. Not for interrupts or two threads. Whatever
comes out of a write, an OSError or a KeyboardInterrupt, leaves a log that only open_log() goes on with.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..errors import BadArgument, NoRoom, StepError
from ..geometry import whole
from ..port import ints
from ..transient import load_module
from . import words
from .words import agrees, begin, copy, crc, fill, half, least_worn, put_half, put_word, word

VERSION = 1

SECTOR = 4096
PAGE = 256
PAGES = SECTOR // PAGE
SUPERBLOCKS = 2  # the sectors 0 and 1
MOST_SLOTS = 56
MOST_SECTORS = 1 << 20

_SECTOR = const(4096)
_PAGE = const(256)
_HEAD = const(24)  # bytes of a sector's head, and of a fragment's
_FOOT = const(32)
_FOOT_AT = const(4064)
FOOT_AT = 4064
_ENTRY = const(8)
_LEAST = const(64)  # bytes of a fragment that is not its record's last
_MASK = const(0x3FFFFFFF)  # of numbers, which are small ints on a 32-bit board

# Owners of a sector; below them a slot.
FREE = 255
READY = 254  # erased in this run
FIXED = 253  # a superblock's
_FREE = const(255)
_READY = const(254)
_BAD = const(252)

OPENED = 0x4C  # first bytes of heads and feet
COPIED = 0x52
CLOSED = 0x43
CLOSED_COPIES = 0x44

_CREDIT = const(8)
_NO_BYTES = (list, tuple, str)

# When step() copies records to make room: never, as in a queue it comes by itself; where there is little
# left; wherever two sectors are gained.
NEVER, NEEDED, ALL = range(3)


def newer(a, b):
    """Whether number a comes after b; numbers go round."""
    return 0 < ((a - b) & _MASK) < 0x20000000


@micropython.native
def units(size):
    """Of a fragment of so many bytes, in `live`: 64 bytes each."""
    return (size + _HEAD + 63) >> 6


def ahead_for(record_bytes):
    """Sectors that one record may need."""
    return record_bytes // (_FOOT_AT - 2 * _HEAD - 2 * _ENTRY - _LEAST) + 2


def reserve_for(record_bytes, slots):
    """Sectors that a start needs to copy what a cut has left in doubt."""
    return ahead_for(record_bytes) + (2 * record_bytes + SECTOR) // (_FOOT_AT - 256) + 2 + slots


class FlashLog:
    """device: block protocol with offsets, blocks of 4,096 bytes. record_bytes: of the longest record.
    slots: sequences at a time. blocks: records at a time. feed: called before each erase and each record.

    RAM: 3 bytes a sector, 4 a block, some 40 a slot and two pages.
    """

    def __init__(self, device, record_bytes, slots=8, blocks=256, feed=None):
        self.device = device
        self.slots = whole("slots", slots, 1, MOST_SLOTS)
        self.blocks = whole("blocks", blocks, 1, 1 << 20)
        self.record_bytes = whole("record_bytes", record_bytes, 8, 65535 * 8)
        if device.ioctl(5, 0) != SECTOR:
            raise BadArgument("blocks of %r bytes: the log takes 4096" % (device.ioctl(5, 0),))
        self.sectors = whole("sectors", device.ioctl(4, 0), 1, MOST_SECTORS)
        self.ahead = ahead_for(record_bytes)
        self.reserve = reserve_for(record_bytes, slots)
        if self.sectors < SUPERBLOCKS + self.ahead + self.reserve:
            raise NoRoom(
                "flash log for records of %d bytes" % record_bytes,
                SUPERBLOCKS + self.ahead + self.reserve,
                self.sectors,
                unit="sectors",
            )
        self.feed = feed
        self.collects = NEEDED
        self.distrusted = []  # (slot, record) that was something else when a start read it again
        # By sector. wear: above the floor; live: 64 bytes, rounded up, of fragments of current records.
        self.planes = bytearray(3 * self.sectors)
        planes = memoryview(self.planes)
        self.owner = planes[: self.sectors]
        self.wear = planes[self.sectors : 2 * self.sectors]
        self.live = planes[2 * self.sectors :]
        self.copied = []  # sectors that this start has copied to, as long as it is not recovered
        self.index = ints([], blocks + 1)  # by slot and record: sector << 9 | offset / 8; 0: absent
        self.generation = ints([], slots)
        self.identity = ints([], slots)
        self.used = bytearray(slots)
        self.first = ints([], slots + 1)  # where in `index` its records begin
        self.base = ints([], slots)  # number of its first record
        self.count = ints([], slots)  # one more than that of its last
        self.open = ints([], slots)  # sector it writes to, or 0
        self.at = ints([], slots)  # where in it the next fragment begins
        self.entries = ints([], slots)  # fragments in it
        self.last = ints([], slots)  # version of its newest record
        self.safe = ints([], slots)  # of its newest that is kept
        self.waits = ints([], slots)  # records left out: 1, to be told by a record; 2, by one to be kept
        self._page = bytearray(b"\xff" * PAGE)  # filled again after each program
        self._chunk = bytearray(PAGE)
        self._views = [memoryview(self._chunk)[: 8 * i] for i in range(PAGE // 8 + 1)]
        self._foot = bytearray(_FOOT)
        self._header = bytearray(_HEAD)  # of a fragment that is written or looked at
        self._header_view = memoryview(self._header)
        self._origin = bytearray(_HEAD)  # of one that is copied
        self._origin_view = memoryview(self._origin)
        self._kept = bytearray(_HEAD)
        self._foot_view = memoryview(self._foot)
        self._crc = words.new_state()
        self.reset()

    def reset(self):
        """Know nothing of the flash. For a start."""
        fill(self.owner, 0, self.sectors, _FREE)
        fill(self.owner, 0, SUPERBLOCKS, FIXED)
        for of in (self.wear, self.live):
            fill(of, 0, self.sectors, 0)
        self.copied = []
        self._forget_records()
        for i in range(self.slots):
            for of in (self.generation, self.identity, self.first, self.base, self.count, self.open):
                of[i] = 0
            for of in (self.at, self.entries, self.last, self.safe, self.used, self.waits):
                of[i] = 0
        self.first[self.slots] = 0
        self.number = 0
        self.since = 0  # number at which the last start had mended all
        self.session = 0  # of this start: another than that of the one before, mod 256
        self.floor = 0
        self.free = self.sectors - SUPERBLOCKS
        self.ready = 0
        self.cursor = SUPERBLOCKS
        self.doubtful = []  # sectors that a start copies and erases
        self.again = []  # (slot, record) whose newest version a start must write once more
        self.recovery = None  # what a start has yet to do, or None
        self.opened = False
        self.broken = False  # an exception came out of a write: only open_log() goes on
        self.dying = False  # whether a sector may hold nothing current
        self.credit = 0  # records that may be copied to make room: some for each that is put
        self.stuck = False  # step() has found no room to make since anything was given up
        self.super = 0  # superblock sector with the newest copy
        self.super_page = [0, 0]  # next page of each
        self.super_fresh = [False, False]  # erased in this run
        # Counted since.
        self.misses = 0
        self.blank_bytes = 0  # left in sectors that were closed or given up
        self.payload_bytes = 0
        self.copied_bytes = 0  # of records written again by a start or for room
        self._sector = 0
        self._place = 0  # offset in the sector at which the next byte is written
        self._dirty = False
        self._buffer = self._runs = None  # where a record's bytes come from
        self._run = self._used = 0
        fill(self._page, 0, PAGE, 255)

    @micropython.native
    def _forget_records(self):
        index = self.index
        i = self.blocks + 1
        while i:
            i -= 1
            index[i] = 0

    # Asking

    def find(self, identity):
        """Slot of the sequence with that identity, -1: there is none."""
        for slot in range(self.slots):
            if self.used[slot] and self.identity[slot] == identity & _MASK:
                return slot
        return -1

    @micropython.native
    def durable(self, slot, version):
        """Whether what put() returned `version` for is kept, whatever happens."""
        return not newer(version, self.safe[slot])

    def has(self, slot, record):
        return self._entry(slot, record) > 0

    def ram_bytes(self):
        """Bytes that grow with sectors and blocks."""
        return len(self.planes) + 4 * len(self.index)

    # Sequences

    def begin(self, identity):
        """A slot for a new sequence. NoRoom: all are taken."""
        self._check_ready()
        for slot in range(self.slots):
            if not self.used[slot]:
                self.used[slot] = 1
                self.identity[slot] = identity & _MASK
                self.base[slot] = self.count[slot] = 0
                self.last[slot] = self.safe[slot] = self.number
                return slot
        raise NoRoom("flash log", 1, 0, unit="slots")

    def truncate(self, slot, count):
        """Records from `count` on are no more: kept with the next record that is put."""
        self._check_slot(slot)
        whole("count", count, self.base[slot], self.count[slot])
        self.broken = True
        while self.count[slot] > count:
            self._drop(slot, self.count[slot] - 1)
            self.count[slot] -= 1
            self._shrink(self.first[slot + 1] - 1, slot)
        self.broken = False

    @micropython.native
    def trim(self, slot, base):
        """Records before `base` are no more: kept with the next record that is put."""
        self._check_slot(slot)
        whole("base", base, self.base[slot], self.count[slot])
        self.broken = True
        while self.base[slot] < base:
            self._drop(slot, self.base[slot])
            self.base[slot] += 1
            self._shrink(self.first[slot], slot)
        self.broken = False

    def close(self, slot):
        """The sequence is no more, in one program; its sectors are free, none is copied. StepError: step()
        has to erase the other superblock first."""
        self._check_slot(slot)
        if not self._super_ready():
            self._refuse_now()
        self.broken = True
        if self.open[slot]:
            self.blank_bytes += _SECTOR - ((self.at[slot] + _PAGE - 1) & -_PAGE)
        self.generation[slot] = (self.generation[slot] + 1) & _MASK
        self.write_superblock()
        self._forget(slot)
        self.broken = False

    def _forget(self, slot):
        n = self.first[slot + 1] - self.first[slot]
        while n:
            n -= 1
            self._shrink(self.first[slot], slot)
        for i in range(self.sectors):
            if self.owner[i] == slot:
                self.owner[i] = _FREE
                self.live[i] = 0
                self.free += 1
        self.used[slot] = self.open[slot] = self.base[slot] = self.count[slot] = self.waits[slot] = 0
        self.stuck = False

    @micropython.native
    def sync(self, slot):
        """Close the sector that it writes to, so that what was put is kept. The rest of it stays blank."""
        self._check_slot(slot)
        if self.open[slot]:
            self.broken = True
            self.finish(slot, 0)
            self.broken = False

    # Writing

    @micropython.native
    def room(self, slot, size, step=8):
        """Sectors more that a record of `size` bytes takes."""
        need = 0
        open_at = self.at[slot] if self.open[slot] else 0
        entries = self.entries[slot] if open_at else 0
        while size > 0:
            here = 0
            if open_at:
                here = self._fits(open_at, entries, size, step)
            if here <= 0:
                need += 1
                open_at = _HEAD
                entries = 0
                here = self._fits(open_at, 0, size, step)
                if here <= 0:
                    raise BadArgument("step %d: no row may be longer than a sector" % step)
            size -= here
            open_at = 0
        return need

    @micropython.native
    def _fits(self, at, entries, size, step):
        """How much of `size` a fragment that begins at `at` takes; 0: none."""
        here = _FOOT_AT - _ENTRY * (entries + 1) - at - _HEAD
        if here >= size:
            return size
        here -= here % step
        return here if here >= _LEAST else 0

    @micropython.native
    def put(self, slot, record, buffer, runs, step=8):
        """Store a record: bytes of `buffer` by `runs`, pairs of offset and length. Returns its version.

        record: from base to count; count appends. Lengths are multiples of 8; an offset of -1 stands for
        zeros. step: bytes of a row, or a multiple: only there a sector's end may cut the record.
        StepError: step() has to erase first. NoRoom: there is none; nothing was changed.
        """
        self._check_slot(slot)
        if record < self.base[slot] or record > self.count[slot]:
            raise BadArgument(
                "record %r: those of the sequence are %d..%d, or the next"
                % (record, self.base[slot], self.count[slot] - 1)
            )
        if isinstance(buffer, _NO_BYTES) or len(runs) & 1:
            raise BadArgument("buffer must be bytes, and runs pairs of offset and length")
        size = 0
        for i in range(0, len(runs), 2):
            size += runs[i + 1]
            if runs[i + 1] & 7 or runs[i + 1] < 0 or runs[i] + runs[i + 1] > len(buffer):
                raise BadArgument("run %d: %d bytes at %d" % (i // 2, runs[i + 1], runs[i]))
        if size < 8 or size > self.record_bytes:
            raise BadArgument("a record of %d bytes: 8 to %d" % (size, self.record_bytes))
        if step < 8 or step & 7:
            raise BadArgument("step %r: a multiple of 8" % (step,))
        need = self.room(slot, size, step)
        if record == self.count[slot] and self.first[self.slots] >= self.blocks:
            raise NoRoom("flash log", 1, 0, unit="blocks")
        if self.ready < need or self.free + self.ready < need + self.reserve:
            self._refuse_room(need)
        if self.feed is not None:
            self.feed()
        self.payload_bytes += size
        self.credit = _CREDIT
        self.broken = True
        number = self._store(slot, record, size, step, buffer, runs)
        self.broken = False
        return number

    @micropython.native
    def _store(self, slot, record, size, step, buffer, runs):
        """Write it where there is room: from `buffer`, or if that is None from the record's old place."""
        old = self._entry(slot, record)
        if record == self.count[slot]:
            self._grow(slot)
        number = self._next()
        where = 0
        done = 0
        self._source(slot, record, buffer, runs)
        while done < size:
            if not self.open[slot]:
                self._open(slot)
            here = self._fits(self.at[slot], self.entries[slot], size - done, step)
            if here <= 0:
                self.finish(slot, 0)
                continue
            if done == 0:
                where = self.open[slot] << 9 | self.at[slot] >> 3
            self._fragment(slot, record, number, done, here, size, step)
            done += here
            if done < size:
                self.finish(slot, self._pick())
        self._flush()
        self.index[self.first[slot] + record - self.base[slot]] = where
        self.last[slot] = number
        if self.waits[slot]:
            self.waits[slot] = 2
        if old:
            self._discount(slot, old)
        if self.recovery is None and self._fits(self.at[slot], self.entries[slot], _SECTOR, step) == 0:
            # A start closes it only when it has compared what it has copied.
            self.finish(slot, 0)
        return number

    @micropython.native
    def _fragment(self, slot, record, number, done, here, size, step):
        header = self._header
        put_word(header, 4, number)
        put_word(header, 8, record)
        put_half(header, 12, self.count[slot] - 1 - record)
        put_half(header, 14, record - self.base[slot])
        put_half(header, 16, done >> 3)
        put_half(header, 18, here >> 3)
        put_half(header, 20, size >> 3)
        put_half(header, 22, step >> 3)
        state = self._crc
        begin(state)
        crc(4, _HEAD - 4, header, state)
        run, used = self._run, self._used
        copy(self._kept, self._origin, 0, 0, _HEAD)
        rest = here
        while rest:
            n = _PAGE if rest > _PAGE else rest
            self._take(n)
            crc(0, n, self._chunk, state)
            rest -= n
        close = words.close
        close(state, header, 0)
        self._run, self._used = run, used
        if self._buffer is None:
            # The first pass may have gone on to another fragment of what is copied.
            copy(self._origin, self._kept, 0, 0, _HEAD)
        self._sector = self.open[slot]
        self._place = self.at[slot]
        self._emit(header, _HEAD)
        done_here = here
        while here:
            n = _PAGE if here > _PAGE else here
            self._take(n)
            self._emit(self._chunk, n)
            here -= n
        self.at[slot] = self._place
        self.entries[slot] += 1
        self.live[self._sector] += units(done_here)

    # Where a record's bytes come from

    def _source(self, slot, record, buffer, runs):
        self._buffer = buffer
        self._runs = runs
        self._run = 0  # next run; of a record on flash, sector << 9 | offset / 8 of the next byte
        self._used = 0  # bytes of it taken; of a record on flash, left in the fragment
        if buffer is None:
            place = self._entry(slot, record)
            self._read(place >> 9, (place & 511) << 3, self._origin_view)
            self._run = place + (_HEAD >> 3)
            self._used = half(self._origin, 18) << 3

    @micropython.native
    def _take(self, n):
        """The next n bytes of the record, at most a page, into the chunk."""
        buffer = self._buffer
        if buffer is None:
            self._take_flash(n)
            return
        runs = self._runs
        got = 0
        while got < n:
            at = runs[self._run]
            m = runs[self._run + 1] - self._used
            if m > n - got:
                m = n - got
            if at < 0:
                fill(self._chunk, got, m, 0)
            elif m:
                copy(self._chunk, buffer, got, at + self._used, m)
            got += m
            self._used += m
            if self._used == runs[self._run + 1]:
                self._run += 2
                self._used = 0

    def _take_flash(self, n):
        got = 0
        while got < n:
            if not self._used:
                place = self._follow((self._run - 1) >> 9, self._origin, self._origin_view)
                if not place:
                    raise StepError("a record broke off while it was copied")
                self._run = place + (_HEAD >> 3)
                self._used = half(self._origin, 18) << 3
            m = min(n - got, self._used)
            view = memoryview(self._chunk)[got : got + m]
            if not self._read(self._run >> 9, (self._run & 511) << 3, view):
                raise StepError("a record cannot be read while it is copied")
            got += m
            self._used -= m
            self._run += m >> 3

    # Programs

    @micropython.native
    def _emit(self, source, n):
        """Bytes for the flash at the place where it is written; full pages are programmed."""
        i = 0
        place = self._place
        while i < n:
            at = place & (_PAGE - 1)
            m = _PAGE - at
            if m > n - i:
                m = n - i
            copy(self._page, source, at, i, m)
            place += m
            i += m
            self._place = place
            self._dirty = True
            if not place & (_PAGE - 1):
                self._flush()

    @micropython.native
    def _flush(self):
        """Program what there is of the page; the rest is fill, which a later program completes."""
        if self._dirty:
            self.device.writeblocks(self._sector, self._page, (self._place - 1) & -_PAGE)
            fill(self._page, 0, _PAGE, 255)
            self._dirty = False

    @micropython.native
    def _next(self):
        self.number = (self.number + 1) & _MASK
        return self.number

    @micropython.native
    def _pick(self):
        """The least worn sector that is ready, from the cursor on."""
        return least_worn(self.owner, self.wear, self.cursor, self.sectors << 8 | _READY)

    @micropython.native
    def _open(self, slot):
        """Begin a sector. Its head is programmed with the first page."""
        s = self._pick()
        if s < 0:
            self._refuse_now()
        self.owner[s] = slot
        self.live[s] = 0
        if self.recovery is not None:
            self.copied.append(s)
        self.ready -= 1
        self.cursor = s + 1 if s + 1 < self.sectors else 0
        self.open[slot] = s
        self.entries[slot] = 0
        header = self._header
        put_word(header, 0, (OPENED if self.recovery is None else COPIED) | VERSION << 8 | slot << 16)
        put_word(header, 4, self._next())
        put_word(header, 8, self.floor + self.wear[s])
        header[11] = self.session
        put_word(header, 12, self.generation[slot])
        put_word(header, 16, self.identity[slot])
        begin(self._crc)
        crc(0, 20, header, self._crc)
        words.close(self._crc, header, 20)
        self._sector = s
        self._place = 0
        self._emit(header, _HEAD)
        self.at[slot] = _HEAD

    @micropython.native
    def finish(self, slot, following):
        """Close its sector: entries and foot. following: where the record at its end goes on, or 0."""
        s = self.open[slot]
        self._flush()
        n = self.entries[slot]
        end = self.at[slot]
        start = _FOOT_AT - _ENTRY * n
        gap = (start & -_PAGE) - ((end + _PAGE - 1) & -_PAGE)
        if gap > 0:
            self.blank_bytes += gap
        header = self._header
        foot = self._foot
        state = self._crc
        begin(state)
        self._sector = s
        self._place = start
        at = _HEAD
        while n:
            n -= 1
            self._read(s, at, self._header_view)
            put_word(foot, 0, word(header, 8))
            put_half(foot, 4, at >> 3)
            put_half(foot, 6, half(header, 16))
            at += _HEAD + (half(header, 18) << 3)
            crc(0, _ENTRY, foot, state)
            self._emit(foot, _ENTRY)
        put_word(foot, 0, (CLOSED_COPIES if s in self.copied else CLOSED) | VERSION << 8 | slot << 16)
        put_word(foot, 4, self._next())
        put_word(foot, 8, self.floor + self.wear[s])
        foot[11] = self.session
        put_word(foot, 12, self.generation[slot])
        put_word(foot, 16, self.identity[slot])
        put_half(foot, 20, self.entries[slot])
        put_half(foot, 22, end >> 3)
        put_word(foot, 24, following)
        crc(0, _FOOT - 4, foot, state)
        words.close(state, foot, _FOOT - 4)
        self._emit(foot, _FOOT)
        self.open[slot] = 0
        self.safe[slot] = self.last[slot]
        if self.waits[slot] == 2:
            self.waits[slot] = 0
        if self.dying and not self.waits[slot] and self.recovery is None:
            self._settle(slot)

    @micropython.native
    def _settle(self, slot):
        """What its records have replaced is given up, now that they are kept."""
        self.dying = False
        i = self.sectors
        while i > SUPERBLOCKS:
            i -= 1
            if not self.live[i] and self.owner[i] < self.slots and i != self.open[self.owner[i]]:
                if self.owner[i] != slot or i in self.doubtful:
                    self.dying = True
                else:
                    self.owner[i] = _FREE
                    self.free += 1

    # Reading

    @micropython.native
    def _read(self, sector, at, view):
        """Fill a view of the flash; False where it cannot be read."""
        try:
            self.device.readblocks(sector, view, at)
            return True
        except OSError:
            return False

    @micropython.native
    def _entry(self, slot, record):
        """Where a record begins, 0: it is absent."""
        if record < self.base[slot] or record >= self.count[slot]:
            return 0
        return self.index[self.first[slot] + record - self.base[slot]]

    @micropython.native
    def _follow(self, sector, header, view):
        """Where the record goes on that a closed sector ends in, 0: nowhere. `header` is its header there,
        then that of its next fragment."""
        number = word(header, 4)
        record = word(header, 8)
        done = half(header, 16) + half(header, 18)
        if not self._read(sector, _FOOT_AT, self._foot_view):
            return 0
        following = word(self._foot, 24)
        if following < SUPERBLOCKS or following >= self.sectors or following == sector:
            return 0
        if not self._read(following, _HEAD, view):
            return 0
        if word(header, 4) != number or word(header, 8) != record or half(header, 16) != done:
            return 0
        return following << 9 | _HEAD >> 3

    @micropython.native
    def read(self, slot, record, into, at=0):
        """Copy a record into a buffer; how many bytes. -1, and a miss, where anything of it is in doubt."""
        place = self._entry(slot, record)
        if not place:
            self.misses += 1
            return -1
        size = self._load(place, record, into, at, len(into))
        if size < 0:
            self.misses += 1
        return size

    @micropython.native
    def _load(self, place, record, into, at, end):
        """A record from `place`, checked; into None: only checked."""
        header = self._header
        done = 0
        number = 0
        if not self._read(place >> 9, (place & 511) << 3, self._header_view):
            return -1
        while True:
            size = half(header, 20) << 3
            here = half(header, 18) << 3
            if word(header, 8) != record or half(header, 16) << 3 != done or here == 0:
                return -1
            if done + here > size or (into is not None and at + size > end):
                return -1
            if done == 0:
                number = word(header, 4)
            elif word(header, 4) != number:
                return -1
            if ((place & 511) << 3) + _HEAD + here > _FOOT_AT:
                return -1
            if not self._check(place, into, at + done):
                return -1
            done += here
            if done == size:
                return size
            place = self._follow(place >> 9, header, self._header_view)
            if not place:
                return -1

    @micropython.native
    def _check(self, place, into, at):
        """Whether the fragment whose header is read agrees with its CRC; its bytes go to `into`."""
        state = self._crc
        begin(state)
        crc(4, _HEAD - 4, self._header, state)
        rest = half(self._header, 18) << 3
        sector = place >> 9
        offset = ((place & 511) << 3) + _HEAD
        while rest:
            n = _PAGE if rest > _PAGE else rest
            if not self._read(sector, offset, self._views[n >> 3]):
                return False
            crc(0, n, self._chunk, state)
            if into is not None:
                copy(into, self._chunk, at, 0, n)
                at += n
            offset += n
            rest -= n
        return self._right(self._header, 0)

    @micropython.native
    def _right(self, buf, at):
        """Whether the CRC that stands at `at` is right."""
        return agrees(self._crc, buf, at)

    # The index

    @micropython.native
    def _grow(self, slot):
        """A place for one record more."""
        words.widen(self.index, self.first[slot + 1], self.first[self.slots])
        i = slot
        while i < self.slots:
            i += 1
            self.first[i] += 1
        self.count[slot] += 1

    @micropython.native
    def _shrink(self, at, slot):
        words.narrow(self.index, at, self.first[self.slots])
        i = slot
        while i < self.slots:
            i += 1
            self.first[i] -= 1

    @micropython.native
    def _drop(self, slot, record):
        place = self._entry(slot, record)
        self.waits[slot] = 1
        if place:
            self._discount(slot, place)

    @micropython.native
    def _discount(self, slot, place):
        """The fragments of the version that begins there are no longer current."""
        if not self._read(place >> 9, (place & 511) << 3, self._header_view):
            return
        while place:
            s = place >> 9
            if self.owner[s] != slot:
                return
            self.live[s] = (self.live[s] - units(half(self._header, 18) << 3)) & 255
            self.stuck = False
            if not self.live[s]:
                self.dying = True
            if half(self._header, 16) + half(self._header, 18) >= half(self._header, 20):
                return
            place = self._follow(s, self._header, self._header_view)

    # Superblocks

    @micropython.native
    def _super_ready(self):
        other = 1 - self.super
        return self.super_fresh[other] and self.super_page[other] < PAGES

    def write_superblock(self):
        """One more copy, in the sector that does not hold the newest."""
        self._write_superblock(1 - self.super)

    def _write_superblock(self, to):
        page = self._page
        fill(page, 0, PAGE, 255)
        put_word(page, 0, 0x53564B4D)  # MKVS
        put_half(page, 4, VERSION)
        put_half(page, 6, self.slots)
        put_word(page, 8, self._next())
        put_word(page, 12, self.sectors)
        put_word(page, 16, self.floor)
        put_word(page, 20, self.since)
        for i in range(self.slots):
            put_word(page, 24 + 4 * i, self.generation[i])
        begin(self._crc)
        crc(0, PAGE - 4, page, self._crc)
        words.close(self._crc, page, PAGE - 4)
        self.device.writeblocks(to, page, PAGE * self.super_page[to])
        fill(page, 0, PAGE, 255)
        self.super_page[to] += 1
        self.super = to

    # Time that is given

    @micropython.native
    def step(self):
        """Erase a sector, or do another piece of what waits for time; False: nothing does."""
        if self.broken:
            self._refuse_now()
        self.broken = True
        more = self._step()
        self.broken = False
        return more

    @micropython.native
    def _step(self):
        if self.recovery is not None:
            return load_module("mpy_kv.flash_log.recovery").step(self)
        if not self._super_ready():
            self.erase_superblock(1 - self.super)
            return True
        if self.ready < self.ahead and self.free:
            s = least_worn(self.owner, self.wear, self.cursor, self.sectors << 8 | _FREE)
            self.free -= 1
            self.owner[s] = _BAD
            try:
                self.erase(s)
            except OSError:
                return True  # not to be written: it is left alone until the next start
            self.owner[s] = _READY
            self.ready += 1
            return True
        if self.collects == NEVER:
            self.stuck = True
        elif not self.stuck and (self.collects == ALL or self.free + self.ready < self.reserve + self.ahead):
            # Within the reserve, of which a start after a cut needs all but `ahead`.
            self.stuck = not load_module("mpy_kv.flash_log.recovery").collect(self)
            return not self.stuck
        return False

    @micropython.native
    def erase(self, sector):
        if self.feed is not None:
            self.feed()
        self.device.ioctl(6, sector)
        if self.wear[sector] == 255:
            self._raise_floor()
        if self.wear[sector] < 255:
            self.wear[sector] += 1

    def erase_superblock(self, sector):
        self.erase(sector)
        self.super_page[sector] = 0
        self.super_fresh[sector] = True

    def _raise_floor(self):
        least = min(self.wear[SUPERBLOCKS:])
        self.floor += least
        for i in range(self.sectors):
            self.wear[i] = max(0, self.wear[i] - least)

    # Refusals

    def _check_ready(self):
        if not self.opened or self.recovery is not None or self.broken:
            self._refuse_now()

    @micropython.native
    def _check_slot(self, slot):
        if not self.opened or self.recovery is not None or self.broken:
            self._refuse_now()
        if slot < 0 or slot >= self.slots or not self.used[slot]:
            raise BadArgument("slot %r: begin() has given none such" % (slot,))

    def _refuse_now(self):
        if self.broken:
            raise StepError("a write broke off: open_log(log) finds what there is")
        raise StepError(
            "call step() until it returns False" if self.opened else "the log is not open: open_log(log)"
        )

    def _refuse_room(self, need):
        if self.free + self.ready >= need + self.reserve or not self.stuck:
            self._refuse_now()
        raise NoRoom("flash log", need + self.reserve, self.free + self.ready, unit="sectors")
