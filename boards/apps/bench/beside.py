"""A flash log in files of a littlefs, beside other files that come and go; says where one harms the other.

usage: beside.py START OPERATIONS SEED [unchecked]
START: first, a new file system; again, as it is; replaced, as it is, and somebody makes files of the log anew
while it is in use, before it has written to them. Prints a line for each thing that happened, in which
"violation" begins what must not be. unchecked: without the check before a block's first write. For boards
whose flash is all of the emulator's.
"""

import os
import random
import sys
from binascii import crc32

from mpy_kv.errors import BadArgument, NoRoom
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.files import BLOCK, FileBlocks, make_files
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log

BLOCKS = 80
FILES = 24
RECORD = 1504
ROOT = "/f"
KV = ROOT + "/kv"
UNIT = b"%04d %05d %04d\n"  # file, version, place: 16 bytes of its content


def storage():
    """The first blocks of the flash."""
    try:
        import rp2

        return rp2.Flash(len=BLOCKS * BLOCK)
    except ImportError:
        import esp32

        return Begin(esp32.Partition.find(esp32.Partition.TYPE_DATA)[0])


class Begin:
    """Of a partition: its first blocks."""

    def __init__(self, partition):
        self.readblocks = partition.readblocks
        self.writeblocks = partition.writeblocks
        self.partition = partition

    def ioctl(self, op, arg):
        return BLOCKS if op == 4 else self.partition.ioctl(op, arg)


class Unchecked(FileBlocks):
    def _check(self, i):
        self._checked[i] = 1


def say(*words):
    print(*words)


class World:
    """The storage, its file system, the log in it."""

    def __init__(self, first, kind):
        self.storage = storage()
        self.kind = kind
        self.lost = False  # whether somebody has taken files of the log
        if first:
            os.VfsLfs2.mkfs(self.storage, progsize=256)
        self.mount()
        say("mounted")
        if first:
            self.write(0, 1, 500)
        make_files(KV, FILES, 77)
        self.buffer = bytearray(BLOCK)
        self.version = 1
        self.open()

    def mount(self):
        os.mount(os.VfsLfs2(self.storage, progsize=256), ROOT)

    def open(self):
        """A start of the log."""
        self.device = self.kind(self.storage, KV)
        log = FlashLog(self.device, RECORD, slots=1, blocks=FILES * 3)
        try:
            open_log(log)
        except BadArgument:
            format_log(log)
            open_log(log)
        while log.step():
            pass
        self.log = log
        self.slot = -1
        self.owned = set(FileBlocks(self.storage, KV).blocks)
        if log.used[0]:
            self.slot = 0
            self.records()
            self.identity = log.identity[0]
        else:
            self.identity = 0

    def records(self):
        """What the log has: each record right or, where files were taken, a miss."""
        log = self.log
        into = memoryview(self.buffer)[:RECORD]
        for i in range(log.base[self.slot], log.count[self.slot]):
            size = log.read(self.slot, i, into)
            if size == RECORD and into == self.record(log.identity[self.slot], i):
                continue
            if size >= 0 or not self.lost:
                how = "has other bytes" if size >= 0 else "is lost"
                say("violation: record", i, "of", log.identity[self.slot], how)
        say("found", log.identity[self.slot], log.count[self.slot])

    def record(self, identity, i):
        return bytes([identity & 255, i & 255, 7, 9]) * (RECORD // 4)

    # Other files

    def names(self):
        return [name for name in os.listdir(ROOT) if name != "kv"]

    def write(self, i, version, units, mode="wb", name=None):
        path = ROOT + "/" + (name or "a%04d" % i)
        at = 0
        if mode == "ab":
            at = os.stat(path)[6] // 16
        with open(path, mode) as f:
            for unit in range(at, at + units):
                f.write(UNIT % (i, version, unit))

    def right(self, name):
        """Whether a file has what was written to it."""
        unit = bytearray(16)
        n = 0
        try:
            with open(ROOT + "/" + name, "rb") as f:
                while f.readinto(unit):
                    if not n:
                        version = int(bytes(unit[5:10]))
                    if unit != UNIT % (int(name[1:]), version, n):
                        return False
                    n += 1
        except (OSError, ValueError):  # an OSError: littlefs has found that its own are damaged
            return False
        return True

    def files(self):
        """Every other file is right, and every file of the log there."""
        for name in self.names():
            if not self.right(name):
                say("violation: file", name, "has other bytes than were written")

    # Both

    def sum_of(self, ours):
        """CRC of the log's blocks, or of all others."""
        total = 0
        for block in range(BLOCKS):
            if (block in self.owned) == ours:
                self.storage.readblocks(block, self.buffer, 0)
                total = crc32(self.buffer, total)
        return total

    def operation(self, draw):
        """Of the file system, or of the log."""
        if draw < 60:
            before = self.sum_of(True)
            try:
                what = self.churn(draw)
            except OSError as error:
                if error.errno != 28:
                    raise
                what = "full"
            if self.sum_of(True) != before:
                say("violation: to", what, "has changed a block of the log")
        else:
            before = self.sum_of(False)
            try:
                self.put()
            except NoRoom:  # of what can still be written
                self.close()
            if self.sum_of(False) != before:
                say("violation: the log has changed a block that is not its own")

    def churn(self, draw):
        names = self.names()
        self.version += 1
        i = random.randrange(1, 12)
        name = names[random.randrange(len(names))] if names else None
        if draw < 20 or name is None:
            for each in names:
                if int(each[1:]) == i:
                    os.remove(ROOT + "/" + each)
            self.write(i, self.version % 99999, random.randrange(900))
            return "create"
        if draw < 30:
            with open(ROOT + "/" + name, "rb") as f:
                head = f.read(16)
            if len(head) == 16:
                self.write(int(name[1:]), int(head[5:10]), random.randrange(300), "ab", name)
            return "append"
        if draw < 40:
            self.write(int(name[1:]), self.version % 99999, random.randrange(600), "wb", name)
            return "rewrite"
        if draw < 46:
            os.rename(ROOT + "/" + name, ROOT + "/" + ("b" if name[0] == "a" else "a") + name[1:])
            return "rename"
        if draw < 54:
            os.remove(ROOT + "/" + name)
            return "remove"
        if draw < 57:
            self.fill()
            for each in self.names():
                if int(each[1:]) >= 100:
                    os.remove(ROOT + "/" + each)
            return "fill up"
        os.umount(ROOT)
        self.mount()
        return "mount"

    def fill(self):
        """Until there is no room."""
        i = 100
        try:
            while True:
                self.write(i, self.version % 99999, 500)
                i += 1
        except OSError as error:
            if error.errno != 28:
                raise

    def put(self):
        log = self.log
        if self.slot < 0 or log.count[self.slot] >= 30:
            if self.slot >= 0:
                self.close()
            self.identity += 1
            self.slot = log.begin(self.identity)
        i = log.count[self.slot]
        log.put(self.slot, i, self.record(log.identity[self.slot], i), [0, RECORD])
        if i % 5 == 4:
            log.sync(self.slot)
            say("kept", log.identity[self.slot], log.count[self.slot])
        self.steps()

    def close(self):
        say("closing", self.log.identity[self.slot])
        self.log.close(self.slot)
        self.slot = -1
        self.steps()

    def steps(self):
        while self.log.step():
            pass

    def replaced(self):
        """Somebody makes files of the log anew that it has not yet written to in this start, and what
        is free then goes to others."""
        self.lost = True
        for i in range(4, FILES):
            if i & 1 and not self.device._checked[i]:
                os.remove(KV + "/%03d" % i)
        self.fill()
        for name in self.names():
            if int(name[1:]) >= 104:
                os.remove(ROOT + "/" + name)
        make_files(KV, FILES, 78)
        self.fill()
        self.owned = set(FileBlocks(self.storage, KV).blocks)


def main(start, operations, seed, unchecked=None):
    random.seed(int(seed))
    world = World(start == "first", Unchecked if unchecked else FileBlocks)
    world.files()
    if start == "replaced":
        world.replaced()
        for _ in range(int(operations)):
            world.operation(99)
    else:
        for _ in range(int(operations)):
            world.operation(random.randrange(100))
    world.files()
    if world.slot >= 0:
        world.records()
    say("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
