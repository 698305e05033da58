"""A flash log beside a file system: files of 4,096 bytes, each of which owns one erasable block of littlefs.

littlefs keeps the bytes of such a file in a block of their own, from its begin to its end, and never
touches it while the file is not written or removed. So the block can be used raw; stock firmware has no
other to give.

    make_files("/kv", 64)                        # once, or kvlab deploy --kv-flash 256KiB
    device = FileBlocks(rp2.Flash(), "/kv")      # after each start
    log = FlashLog(device, record_bytes)

At each start the file system's own entries tell the blocks (littlefs.py), so that files which somebody has
made anew since are found where they are now. Before a block is first programmed or erased, what the file
system reads of its file must be what stands at its address: else it is not written, and OSError (EROFS)
says so. While a log is in use its files must be left alone.
"""

try:
    import micropython
except ImportError:
    from .. import cpython as micropython

import os

from ..errors import BadArgument
from ..port import ints
from ..transient import load_module

BLOCK = 4096
MOST_FILES = 1000  # by three digits
_MARK = b"mpy_kv flash log"
_HEAD = 32  # bytes that are compared
_READS = 64  # that show which bits are weak


def _name(folder, i):
    return "%s/%03d" % (folder, i)


def make_files(folder, count, salt=0):
    """Make so many files, those that are missing; others are left as they are. salt: another for each region,
    such as a random number. OSError where the file system is full: what was made is removed."""
    if not 0 < count <= MOST_FILES:
        raise BadArgument("%r files: 1 to %d" % (count, MOST_FILES))
    try:
        os.mkdir(folder)
    except OSError:
        pass
    made = []
    i = count
    try:
        while i:  # the first one last: where it is missing, so is the log
            i -= 1
            if _size(_name(folder, i)) != BLOCK:
                made.append(i)
                with open(_name(folder, i), "wb") as f:
                    f.write(_mark(i, salt))
                    for _ in range(BLOCK // _HEAD - 1):
                        f.write(b"\xff" * _HEAD)
    except OSError:
        for i in made:
            try:
                os.remove(_name(folder, i))
            except OSError:
                pass
        raise


def content(i, salt=0):
    """What file i is made with."""
    return _mark(i, salt) + b"\xff" * (BLOCK - _HEAD)


def _mark(i, salt):
    text = b"%s %06d %08x" % (_MARK, i, salt & 0xFFFFFFFF)
    return text[:_HEAD] + b"\xff" * (_HEAD - len(text))


class FileBlocks:
    """A block device of the files in `folder`; storage: the block device that the file system lies on.

    BadArgument where there are none, or the storage is not the littlefs that they are on.
    """

    mark = _MARK  # what a file begins with that no log has written to

    def __init__(self, storage, folder="/kv"):
        self.storage = storage
        self.folder = folder
        self._found = bytearray(_HEAD)
        self._there = bytearray(_HEAD)
        if _size(_name(folder, 0)) != BLOCK:
            raise BadArgument(
                "no files of %d bytes in %s: make_files() makes them, or kvlab deploy --kv-flash"
                % (BLOCK, folder)
            )
        self.blocks = ints(self._find())
        count = len(self.blocks)
        if not count or _size(_name(folder, count - 1)) != BLOCK or _size(_name(folder, count)) == BLOCK:
            raise BadArgument(
                "the files in %s are not those that the device has: name the one that they are mounted from"
                % folder
            )
        self._checked = bytearray(count)

    def _find(self):
        """Blocks of the files."""
        littlefs = load_module("mpy_kv.flash_log.littlefs")
        folder = self.folder if self.folder.startswith("/") else os.getcwd() + "/" + self.folder
        parts = [part for part in folder.split("/") if part]
        try:
            while parts:  # where it is mounted is not known
                pair = littlefs.folder_of(self.storage, parts)
                blocks = [] if pair is None else littlefs.blocks_of(self.storage, pair, BLOCK)
                if blocks:
                    return blocks
                parts.pop(0)
        except ValueError:
            raise BadArgument(
                "no littlefs with blocks of %d bytes on that device: a log beside another file system takes a"
                " partition of its own, or plain files (mpy_kv.file_store)" % BLOCK
            ) from None
        return []

    def _check(self, i):
        """Before the first write of this start: the file's first bytes are those at its address."""
        if not self._checked[i]:
            with open(_name(self.folder, i), "rb") as f:
                n = f.readinto(self._found)
            self.storage.readblocks(self.blocks[i], self._there, 0)
            if n != _HEAD or self._found != self._there and not self._alike(i):
                raise OSError(30)  # EROFS
            self._checked[i] = 1

    def _alike(self, i):
        """Whether they differ only in bits that read as something else each time, as a cut leaves them in a
        block of the log's own. Half of the bits must be firm."""
        again = bytearray(_HEAD)
        weak = bytearray(_HEAD)
        for _ in range(_READS):
            self.storage.readblocks(self.blocks[i], again, 0)
            for j in range(_HEAD):
                weak[j] |= again[j] ^ self._there[j]
        bits = 0
        for j in range(_HEAD):
            if (self._found[j] ^ self._there[j]) & (weak[j] ^ 255):
                return False
            for k in range(8):
                bits += weak[j] >> k & 1
        return bits <= 4 * _HEAD

    def check(self):
        """Compare all of them now: opening files allocates, and writing does not from here on."""
        for i in range(len(self.blocks)):
            self._check(i)

    def untouched(self):
        """Whether the blocks are as make_files() has left them, but for the first two, where a log begins."""
        for i in range(2, len(self.blocks)):
            self.storage.readblocks(self.blocks[i], self._there, 0)
            with open(_name(self.folder, i), "rb") as f:
                n = f.readinto(self._found)
            if n != _HEAD or self._found != self._there or self._there[: len(_MARK)] != _MARK:
                return False
        return True

    @micropython.native
    def ioctl(self, op, arg):
        if op == 4:
            return len(self.blocks)
        if op == 5:
            return BLOCK
        if op == 6:
            if not self._checked[arg]:
                self._check(arg)
            return self.storage.ioctl(6, self.blocks[arg])
        return 0

    @micropython.native
    def readblocks(self, block, buf, offset=0):
        self.storage.readblocks(self.blocks[block], buf, offset)

    @micropython.native
    def writeblocks(self, block, buf, offset):
        if not self._checked[block]:  # the call alone would allocate its frame
            self._check(block)
        self.storage.writeblocks(self.blocks[block], buf, offset)


def _size(path):
    try:
        return os.stat(path)[6]
    except OSError:
        return -1
