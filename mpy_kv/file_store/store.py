"""FileStore: records of several sequences, each a plain file of a folder (littlefs, FAT, an SD card, an SSD).

Asked as FlashLog is: a slot is a sequence, its records have numbers from 0. Format: docs/SPEC.md.

    store = FileStore("/sd/kv", record_bytes=5440, model=0x6AE1D013)
    open_store(store)                  # opening.py; makes the folder where there is none
    slot = store.begin(identity)
    store.put(slot, store.count[slot], buffer, runs)

What is promised, and what for:
- A version is a file of a name of its own: no file is ever written over, nor a name renamed to that is there.
  So a file system that refuses that, or does it in two operations as FAT does, loses nothing.
- It is written beside, flushed, read back and compared; then renamed; then the names are synced; only then
  put() returns and what it replaces is removed. Whatever fails before: nothing has changed, the caller has
  its bytes, and the same put succeeds when there is room.
- The name tells the version and nothing else: a start finds all that is there by the headers of files, and
  takes nothing whose bytes do not agree with their checksums.
- A read that fails or disagrees is a miss, and counted.
Opening files allocates, so put and read do, a bounded number of small objects; no buffer of a record's size.
Not for interrupts or two threads, nor for two stores in one folder.
"""

import os
from struct import pack_into, unpack_from

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from binascii import crc32

from ..errors import BadArgument, NoRoom, StepError
from ..geometry import whole
from ..port import MICROPYTHON, ints

VERSION = 1
MAGIC = b"MKVF"
HEAD = 48
TAIL = 4
LAYOUT = "<4sHHIIIIIIIIII"
# Offsets in it of what is asked for by itself.
IDENTITY_AT = 16
BORN_AT = 20
RECORD_AT = 24
NUMBER_AT = 28
BASE_AT = 32
COUNT_AT = 36
TEMPORARY = "new.kvt"
COPY = "old.kvt"  # of a start
MASK = 0x3FFFFFFF  # of numbers, which are small ints on a 32-bit board

_HEAD = const(48)
_HEAD_CRC = const(44)
_TAIL = const(4)
_PIECE = const(4096)  # bytes written or read between two calls of `feed`
_CHUNK = const(512)
_MASK = const(0x3FFFFFFF)
_EIO = const(5)
_ENOSPC = const(28)

# What is found in a file; else its record's bytes.
UNREADABLE = -1
DAMAGED = -2
STRANGE = -3  # sound, perhaps, and not this store's: left alone


def newer(a, b):
    """Whether number a comes after b; numbers go round."""
    return 0 < ((a - b) & _MASK) < 0x20000000


def shape_of(settings):
    """A number for what `settings()` of a cache tells: files of another are not taken."""
    text = ";".join(["%s=%s" % (name, settings[name]) for name in sorted(settings)])
    return crc32(text.encode()) & 0xFFFFFFFF


class Files:
    """What the store asks of a file system: that of `os`."""

    def open(self, path, mode):
        return open(path, mode) if MICROPYTHON else open(path, mode, buffering=0)

    def names(self, folder):
        """Of the files in it, one after the other."""
        if MICROPYTHON:
            for entry in os.ilistdir(folder):
                yield entry[0]
        else:
            yield from os.listdir(folder)

    def size(self, path):
        """Bytes of the file, -1: there is none."""
        try:
            return os.stat(path)[6]
        except OSError:
            return -1

    def mkdir(self, path):
        os.mkdir(path)

    def rename(self, old, new):
        os.rename(old, new)

    def remove(self, path):
        os.remove(path)

    def flush(self, f):
        """What was written to the open file is on the storage."""
        f.flush()
        if hasattr(os, "fsync"):
            os.fsync(f.fileno())

    def sync(self, folder):
        """So are the names in the folder. littlefs has them there at once."""
        if MICROPYTHON:
            if hasattr(os, "sync"):
                os.sync()
            return
        try:
            handle = os.open(folder, os.O_RDONLY)
        except OSError:
            return  # a host whose folders cannot be opened
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class FileStore:
    """folder: the store's own; made where there is none. record_bytes: of the longest record. model, shape:
    whose bytes these are, 32 bits each (shape_of()). slots: sequences at a time. blocks: records at a time.
    feed: called before each 4,096 bytes that are read or written, or fewer. fs: as Files.

    RAM: 12 bytes a block, some 24 a slot, 600 beside.
    """

    def __init__(self, folder, record_bytes, model=0, shape=0, slots=8, blocks=256, feed=None, fs=None):
        self.folder = folder
        self.record_bytes = whole("record_bytes", record_bytes, 8, 1 << 29)
        self.model = whole("model", model, 0, 0xFFFFFFFF)
        self.shape = whole("shape", shape, 0, 0xFFFFFFFF)
        self.slots = whole("slots", slots, 1, 1 << 16)
        self.blocks = whole("blocks", blocks, 1, 1 << 20)
        self.feed = feed
        self.fs = fs or Files()
        # By entry, in the order of slots and records.
        self.records = ints([], blocks)
        self.numbers = ints([], blocks)  # version, and so the file's name
        self.sizes = ints([], blocks)
        self.first = ints([], slots + 1)  # where the slot's entries begin
        # By slot.
        self.used = bytearray(slots)
        self.identity = ints([], slots)
        self.born = ints([], slots)  # number that was next when it began: not that of others of its identity
        self.base = ints([], slots)  # number of its first record
        self.count = ints([], slots)  # one more than that of its last
        self._head = bytearray(_HEAD)
        self._chunk = bytearray(_CHUNK)
        self._view = memoryview(self._chunk)
        self.reset()

    def reset(self):
        """Know nothing of the folder. For a start."""
        for i in range(self.slots):
            for of in (self.used, self.identity, self.born, self.base, self.count, self.first):
                of[i] = 0
        self.first[self.slots] = 0
        self.number = 0  # newest version
        self.used_bytes = 0  # of the files of all records that are there
        self.left = 0  # files that a start has left alone though their name is as the store's
        self.opened = False
        # Files of versions that were replaced: not to be found when those that replaced them are gone.
        self.stale = []  # numbers of those that could not be removed
        self.unsynced = False  # one was, and the storage may not know yet
        # Counted since.
        self.misses = 0
        self.payload_bytes = 0

    # Asking

    def find(self, identity):
        """Slot of the sequence with that identity, -1: there is none."""
        for slot in range(self.slots):
            if self.used[slot] and self.identity[slot] == identity & _MASK:
                return slot
        return -1

    def has(self, slot, record):
        return self._entry(slot, record) >= 0

    def durable(self, slot, version):
        """Whether what put() returned `version` for is kept, whatever happens: it always is."""
        return True

    def ram_bytes(self):
        """Bytes that grow with blocks."""
        return 12 * self.blocks

    # Sequences

    def begin(self, identity):
        """A slot for a new sequence. NoRoom: all are taken."""
        self._check_open()
        if self.find(identity) >= 0:
            raise BadArgument("identity %r: there is a sequence of it" % (identity,))
        for slot in range(self.slots):
            if not self.used[slot]:
                self.used[slot] = 1
                self.identity[slot] = identity & _MASK
                self.born[slot] = (self.number + 1) & _MASK
                self.base[slot] = self.count[slot] = 0
                return slot
        raise NoRoom("file store", 1, 0, unit="slots")

    def truncate(self, slot, count):
        """Records from `count` on are no more: kept with the next one that is put. OSError: all still are."""
        self._check_slot(slot)
        whole("count", count, self.base[slot], self.count[slot])
        self._settle()
        self.count[slot] = count
        while self.first[slot + 1] > self.first[slot] and self.records[self.first[slot + 1] - 1] >= count:
            self._drop(slot, self.first[slot + 1] - 1)

    def trim(self, slot, base):
        """Records before `base` are no more: kept with the next one that is put. OSError: all still are."""
        self._check_slot(slot)
        whole("base", base, self.base[slot], self.count[slot])
        self._settle()
        self.base[slot] = base
        while self.first[slot + 1] > self.first[slot] and self.records[self.first[slot]] < base:
            self._drop(slot, self.first[slot])

    def close(self, slot):
        """The sequence is no more. OSError: a file could not be removed, and the sequence is there with it.
        A cut in between may leave some of its records."""
        self._check_slot(slot)
        self._settle()
        failed = None
        i = self.first[slot + 1]
        while i > self.first[slot]:
            i -= 1
            try:
                self.fs.remove(self.path(self.numbers[i]))
            except OSError as error:
                if self.fs.size(self.path(self.numbers[i])) >= 0:
                    failed = error
                    continue
            self._take_out(slot, i)
        self.fs.sync(self.folder)
        if failed is not None:
            raise failed
        self.used[slot] = self.base[slot] = self.count[slot] = 0

    def sync(self, slot):
        """Nothing waits: for programs that use a flash log as well."""

    def step(self):
        """Nothing waits for time."""
        return False

    # Writing

    def put(self, slot, record, buffer, runs, step=8):
        """Store a record: bytes of `buffer` by `runs`, pairs of offset and length. Returns its version.

        record: from base on; those that were never put are misses. Lengths are multiples of 8; an offset of
        -1 stands for zeros. step is a flash log's. NoRoom: the file system is full or all entries are taken;
        OSError: it fails otherwise. Nothing was changed then.
        """
        self._check_slot(slot)
        whole("record", record, self.base[slot], 0x1FFFFFFF)
        size = 0
        for i in range(0, len(runs), 2):
            size += runs[i + 1]
            if runs[i + 1] & 7 or runs[i + 1] < 0 or runs[i] + runs[i + 1] > len(buffer):
                raise BadArgument("run %d: %d bytes at %d" % (i // 2, runs[i + 1], runs[i]))
        if size < 8 or size > self.record_bytes:
            raise BadArgument("a record of %d bytes: 8 to %d" % (size, self.record_bytes))
        entry = self._entry(slot, record)
        if entry < 0 and self.first[self.slots] >= self.blocks:
            raise NoRoom("file store", 1, 0, unit="blocks")
        number = self._next()
        count = max(self.count[slot], record + 1)
        target = self.path(number)
        beside = self._beside(entry)
        try:
            self._write(beside, slot, record, number, count, size, buffer, runs)
            self._name(beside, target)
        except BaseException as error:
            self._undo(beside, target)
            if isinstance(error, OSError) and error.args and error.args[0] == _ENOSPC:
                raise NoRoom("file store in %s" % self.folder, size + _HEAD + _TAIL, 0, unit="bytes")
            raise
        self.count[slot] = count
        self.payload_bytes += size
        self._enter(slot, record, number, size)
        return number

    def _beside(self, entry):
        """Name to write a version under of a record that has that entry, -1: none."""
        return self.folder + "/" + TEMPORARY

    def _write(self, path, slot, record, number, count, size, buffer, runs):
        """The file, looked at again before it is told to be there."""
        head = self._head
        who = (MAGIC, VERSION, 0, self.model, self.shape, self.identity[slot], self.born[slot])
        pack_into(LAYOUT, head, 0, *(who + (record, number, self.base[slot], count, size, 0)))
        pack_into("<I", head, _HEAD_CRC, crc32(memoryview(head)[:_HEAD_CRC]) & 0xFFFFFFFF)
        f = self.fs.open(path, "wb")
        try:
            self._emit(f, head)
            crc = crc32(head)
            view = memoryview(buffer)
            for i in range(0, len(runs), 2):
                at, rest = runs[i], runs[i + 1]
                while rest:
                    n = min(rest, _CHUNK if at < 0 else _PIECE)
                    if at < 0:
                        self._clear()
                        piece = self._view[:n]
                    else:
                        piece = view[at : at + n]
                        at += n
                    crc = crc32(piece, crc)
                    self._emit(f, piece)
                    rest -= n
            pack_into("<I", self._chunk, 0, crc & 0xFFFFFFFF)
            self._emit(f, self._view[:_TAIL])
            self._flush(f)
        finally:
            f.close()
        self._look_again(path, number, size)

    def _look_again(self, path, number, size):
        """A file system may have said that it has what it has not."""
        if self.scan(path, None, 0) != size or self.told(NUMBER_AT) != number:
            raise OSError(_ENOSPC if self.fs.size(path) < size + _HEAD + _TAIL else _EIO)

    def _flush(self, f):
        """Before the name that tells of it."""
        self.fs.flush(f)

    def _name(self, beside, target):
        self.fs.rename(beside, target)
        self._sync()
        self.unsynced = False

    def _sync(self):
        """Before what it replaces is removed."""
        self.fs.sync(self.folder)

    def _undo(self, beside, target):
        for path in (beside, target):
            try:
                self.fs.remove(path)
            except OSError:
                pass

    def _emit(self, f, piece):
        """All of it is written; a file system that takes no more says so by the number."""
        if self.feed is not None:
            self.feed()
        n = f.write(piece) or 0
        while n < len(piece):
            m = f.write(memoryview(piece)[n:]) or 0
            if m <= 0:
                raise OSError(_ENOSPC)
            n += m

    @micropython.native
    def _clear(self):
        chunk = self._chunk
        i = _CHUNK
        while i:
            i -= 1
            chunk[i] = 0

    def _next(self):
        """A version whose name is free: a start may have left a file alone that has the next."""
        while True:
            self.number = (self.number + 1) & _MASK
            if self.fs.size(self.path(self.number)) < 0:
                return self.number

    # Reading

    def read(self, slot, record, into, at=0):
        """Copy a record into a buffer; how many bytes. -1, and a miss, where anything of it is in doubt."""
        i = self._entry(slot, record)
        if i >= 0:
            size = self.sizes[i]
            if at + size <= len(into) and self.scan(self.path(self.numbers[i]), into, at, size) == size:
                if self.told(NUMBER_AT) == self.numbers[i] and self.told(RECORD_AT) == record:
                    return size
        self.misses += 1
        return -1

    def scan(self, path, into, at, expected=-1):
        """Read a file, all of it, its record's bytes into a buffer or None; how many, or why not. What it
        tells of itself is in _head then. expected: another length is damage, found before it is read."""
        try:
            f = self.fs.open(path, "rb")
        except OSError:
            return UNREADABLE
        try:
            size = self.scan_head(f)
            if size < 0:
                return size
            if expected >= 0 and size != expected:
                return DAMAGED
            crc = crc32(self._head)
            if into is None:
                rest = size
                while rest:
                    piece = self._view[: min(rest, _CHUNK)]
                    if self._fill(f, piece) < len(piece):
                        return DAMAGED
                    crc = crc32(piece, crc)
                    rest -= len(piece)
            else:
                view = memoryview(into)
                end = at + size
                while at < end:
                    piece = view[at : min(end, at + _PIECE)]
                    if self._fill(f, piece) < len(piece):
                        return DAMAGED
                    crc = crc32(piece, crc)
                    at += len(piece)
            # One byte more is asked for: there is none.
            if self._fill(f, self._view[: _TAIL + 1]) != _TAIL:
                return DAMAGED
            return size if self._agrees(crc, self._chunk, 0) else DAMAGED
        except OSError:
            return UNREADABLE
        finally:
            try:
                f.close()
            except OSError:
                pass

    def scan_head(self, f):
        """Read and check a file's header; its record's bytes, or why not."""
        head = self._head
        if self._fill(f, head) < _HEAD:
            return DAMAGED
        fields = unpack_from(LAYOUT, head)
        if fields[0] == MAGIC and fields[1] != VERSION:
            return STRANGE
        if fields[0] != MAGIC or not self._agrees(crc32(memoryview(head)[:_HEAD_CRC]), head, _HEAD_CRC):
            return DAMAGED
        model, shape, identity, born, record, number, base, count, size = fields[3:12]
        if model != self.model or shape != self.shape:
            return STRANGE
        if max(identity, born, number, count) > _MASK or not base <= record < count:
            return STRANGE
        if record > 0x1FFFFFFF or not 0 < size <= self.record_bytes:
            return STRANGE
        return size

    def told(self, at):
        """A number of the header that was read last."""
        return unpack_from("<I", self._head, at)[0]

    def _agrees(self, crc, buf, at):
        return crc & 0xFFFFFFFF == unpack_from("<I", buf, at)[0]

    def _fill(self, f, piece):
        """Read until it is full or the file ends; how many bytes."""
        if self.feed is not None:
            self.feed()
        n = f.readinto(piece) or 0
        while 0 < n < len(piece):
            m = f.readinto(memoryview(piece)[n:]) or 0
            if m <= 0:
                break
            n += m
        return n

    def path(self, number):
        return "%s/%08x.kvr" % (self.folder, number)

    # Entries

    @micropython.native
    def _place(self, slot, record):
        """Where in the order the entry of a record is, or would be."""
        low = self.first[slot]
        high = self.first[slot + 1]
        while low < high:
            middle = (low + high) >> 1
            if self.records[middle] < record:
                low = middle + 1
            else:
                high = middle
        return low

    def _entry(self, slot, record):
        """-1: there is none."""
        i = self._place(slot, record)
        return i if i < self.first[slot + 1] and self.records[i] == record else -1

    def _enter(self, slot, record, number, size):
        """The version counts from now on; what it replaces is removed."""
        i = self._place(slot, record)
        old = -1
        if i < self.first[slot + 1] and self.records[i] == record:
            old = self.numbers[i]
            self.used_bytes -= self.sizes[i] + _HEAD + _TAIL
        else:
            self._shift(i, 1)
            self._move_slots(slot, 1)
        self.records[i] = record
        self.numbers[i] = number
        self.sizes[i] = size
        self.used_bytes += size + _HEAD + _TAIL
        if old >= 0:
            self._remove(old)

    def _drop(self, slot, i):
        path = self.path(self.numbers[i])
        self._take_out(slot, i)
        try:
            self.fs.remove(path)
        except OSError:
            pass  # a start removes it, if another version or a later record tells that it is no more

    def _take_out(self, slot, i):
        self.used_bytes -= self.sizes[i] + _HEAD + _TAIL
        self._shift(i, -1)
        self._move_slots(slot, -1)

    def _remove(self, number):
        """Of a version that was replaced."""
        self.unsynced = True
        try:
            self.fs.remove(self.path(number))
        except OSError:
            self.stale.append(number)

    def _settle(self):
        """Before a version is given up that nothing replaces: none that it replaced is there. OSError: one
        cannot be removed, and nothing was changed."""
        while self.stale:
            path = self.path(self.stale[-1])
            if self.fs.size(path) >= 0:
                self.fs.remove(path)
            self.stale.pop()
        if self.unsynced:
            self.fs.sync(self.folder)
            self.unsynced = False

    @micropython.native
    def _shift(self, i, by):
        """Entries from i on go up by one place, or those behind it down."""
        last = self.first[self.slots]
        for of in (self.records, self.numbers, self.sizes):
            if by > 0:
                j = last
                while j > i:
                    of[j] = of[j - 1]
                    j -= 1
            else:
                j = i + 1
                while j < last:
                    of[j - 1] = of[j]
                    j += 1

    @micropython.native
    def _move_slots(self, slot, by):
        i = slot
        while i < self.slots:
            i += 1
            self.first[i] += by

    # Refusals

    def _check_open(self):
        if not self.opened:
            raise StepError("the store is not open: open_store(store)")

    def _check_slot(self, slot):
        self._check_open()
        if slot < 0 or slot >= self.slots or not self.used[slot]:
            raise BadArgument("slot %r: begin() has given none such" % (slot,))
