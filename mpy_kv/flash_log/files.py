"""A flash log beside a file system: files of 4,096 bytes, each of which owns one erasable block of littlefs.

littlefs keeps the bytes of such a file in a block of their own, from its begin to its end, and never
touches it while the file is not written or removed. So the block can be used raw; stock firmware has no
other to give.

    make_files("/kv", 32)                        # once; the file system must be littlefs
    device = FileBlocks(rp2.Flash(), "/kv")      # after each start
    log = FlashLog(device, record_bytes)

The blocks are found by marks that the files are made with, and remembered in a file, since the log writes
over the marks. After each start, before a block is first programmed or erased, what the file system reads
of its file must be what stands at its address: else it is not written, and OSError (EROFS) says so.
"""

import binascii

try:
    import micropython
except ImportError:
    from .. import cpython as micropython

import os

from ..errors import BadArgument, NoRoom
from ..port import ints

BLOCK = 4096
_MARK = b"mpy_kv flash log"
_HEAD = 32  # bytes that are compared
_MAP = "blocks"


def _name(folder, i):
    return "%s/%03d" % (folder, i)


def make_files(folder, count, salt=0):
    """Make so many files. salt: another for each region, such as a random number. OSError where the file
    system is full: what was made is removed."""
    try:
        os.mkdir(folder)
    except OSError:
        pass
    made = 0
    try:
        while made < count:
            with open(_name(folder, made), "wb") as f:
                f.write(_mark(made, salt))
                for _ in range(BLOCK // _HEAD - 1):
                    f.write(b"\xff" * _HEAD)
            made += 1
    except OSError:
        for i in range(made + 1):
            try:
                os.remove(_name(folder, i))
            except OSError:
                pass
        raise


def _mark(i, salt):
    text = b"%s %06d %08x" % (_MARK, i, salt & 0xFFFFFFFF)
    return text[:_HEAD] + b"\xff" * (_HEAD - len(text))


class FileBlocks:
    """A block device of the files in `folder`; storage: the block device that the file system lies on."""

    def __init__(self, storage, folder="/kv"):
        self.storage = storage
        self.folder = folder
        self._found = bytearray(_HEAD)
        self._there = bytearray(_HEAD)
        count = 0
        while _size(_name(folder, count)) == BLOCK:
            count += 1
        if not count:
            raise BadArgument("no files of %d bytes in %s: make_files() makes them" % (BLOCK, folder))
        self.blocks = self._read_map(count) or self._find(count)
        self._checked = bytearray(count)

    def _read_map(self, count):
        """Blocks of the files, as they were remembered; None where that is damaged, or of other files."""
        try:
            with open(self.folder + "/" + _MAP, "rb") as f:
                text = f.read()
        except OSError:
            return None
        if len(text) != 4 * count + 4:
            return None
        if binascii.crc32(text[:-4]) & 0xFFFFFFFF != int.from_bytes(text[-4:], "little"):
            return None
        return ints([int.from_bytes(text[4 * i : 4 * i + 4], "little") for i in range(count)])

    def _find(self, count):
        """Look for the marks, and remember where they are: data first, then its name."""
        marks = {}
        for i in range(count):
            with open(_name(self.folder, i), "rb") as f:
                marks[f.read(_HEAD)] = i
        blocks = ints([], count)
        left = set(range(count))
        for block in range(self.storage.ioctl(4, 0)):
            self.storage.readblocks(block, self._there, 0)
            if self._there[: len(_MARK)] == _MARK:
                i = marks.get(bytes(self._there))
                if i in left:
                    left.remove(i)
                    blocks[i] = block
        if left:
            raise NoRoom("files in %s with a mark" % self.folder, count, count - len(left), unit="files")
        text = b"".join([block.to_bytes(4, "little") for block in blocks])
        text += (binascii.crc32(text) & 0xFFFFFFFF).to_bytes(4, "little")
        path = self.folder + "/" + _MAP
        with open(path + ".new", "wb") as f:
            f.write(text)
            f.flush()
        os.rename(path + ".new", path)
        return blocks

    def _check(self, i):
        """Before the first write of this start: the file's first bytes are those at its address."""
        if not self._checked[i]:
            with open(_name(self.folder, i), "rb") as f:
                n = f.readinto(self._found)
            self.storage.readblocks(self.blocks[i], self._there, 0)
            if n != _HEAD or self._found != self._there:
                raise OSError(30)  # EROFS
            self._checked[i] = 1

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
