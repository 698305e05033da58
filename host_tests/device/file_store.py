"""The file store on MicroPython's own file systems, in RAM. What it prints is JSON.

usage: file_store.py lfs|fat twin OPERATIONS   the twin runs them; times that the file system was full
       file_store.py lfs|fat cuts FILES        cut after each block that is written, with so many files of
                                               others in the folder; starts looked at, doubled names seen
       file_store.py poor FULL FOLDER ROOM OPERATIONS   the twin on poor_files.py of that folder, mounted
       file_store.py lfs|fat heap              bytes allocated by a put and a read
"""

import json
import os
import sys
import vfs

import micropython

from mpy_kv.file_store import FileStore
from mpy_kv.file_store.opening import open_store
from mpy_kv.flash_log.words import copy

BLOCK = 512
SIZE = 1000


class Ram:
    """A block device, of which a copy is made after each write."""

    def __init__(self, cells):
        self.cells = cells
        self.copies = None

    def readblocks(self, block, buf, offset=0):
        at = block * BLOCK + offset
        buf[:] = memoryview(self.cells)[at : at + len(buf)]

    def writeblocks(self, block, buf, offset=0):
        at = block * BLOCK + offset
        for i in range(0, len(buf), BLOCK):
            piece = buf[i : i + BLOCK]
            self.cells[at + i : at + i + len(piece)] = piece
            if self.copies is not None:
                self.copies.append(bytes(self.cells))

    def ioctl(self, op, arg):
        return {4: len(self.cells) // BLOCK, 5: BLOCK}.get(op, 0)


def mounted(kind, ram, make):
    of = vfs.VfsLfs2 if kind == "lfs" else vfs.VfsFat
    if make:
        of.mkfs(ram)
    vfs.mount(of(ram), "/m")


def data_of(n):
    return bytes([(n * 37 + i * (n % 11 + 1)) & 255 for i in range(SIZE)])


def new():
    return open_store(FileStore("/m/kv", SIZE, slots=3, blocks=20))


def everything(store):
    found = {}
    into = bytearray(SIZE)
    for slot in range(store.slots):
        if store.used[slot]:
            for i in range(store.count[slot]):
                if store.has(slot, i):
                    assert store.read(slot, i, into) == SIZE
                    found[store.identity[slot], i] = bytes(into)
    return found


def twin(kind, operations):
    import file_twin

    mounted(kind, Ram(bytearray((24 if kind == "lfs" else 52) * BLOCK)), True)
    print(json.dumps(file_twin.run("/m/kv", operations).refused))
    vfs.umount("/m")


def cuts(kind, files):
    ram = Ram(bytearray(80 * BLOCK))
    mounted(kind, ram, True)
    store = new()
    for i in range(files):  # in a folder of FAT 16 names share a block
        open("/m/kv/%d" % i, "wb").close()
    one, two = store.begin(1), store.begin(2)
    want = {}
    looked = doubled = 0
    for i in range(3):
        for slot, identity in ((one, 1), (two, 2)):
            store.put(slot, i, data_of(10 * identity + i), [0, SIZE])
            want[identity, i] = data_of(10 * identity + i)
    with open("/m/other", "wb") as f:
        f.write(b"other" * 100)

    def put(record, n):
        store.put(one, record, data_of(n), [0, SIZE])
        return {(1, record): data_of(n)}, ()

    def trim():
        store.trim(one, 1)
        return {}, [(1, 0)]

    def truncate():
        store.truncate(one, 3)
        return {}, [(1, 3)]

    def close():
        store.close(two)
        return {}, [(2, i) for i in range(3)]

    puts = [lambda: put(3, 40), lambda: put(1, 41), lambda: put(1, 42)]
    for what in puts + [trim, truncate, lambda: put(2, 43), close]:
        ram.copies = []
        made, gone = what()
        copies = ram.copies
        ram.copies = None
        vfs.umount("/m")
        for image in copies:
            # A start is itself cut, at each of its writes.
            again = Ram(bytearray(image))
            mounted(kind, again, False)
            names = os.listdir("/m/kv")
            doubled += "new.kvt" in names and "%08x.kvr" % store.number in names
            again.copies = []
            new()
            vfs.umount("/m")
            for left in [bytes(again.cells)] + again.copies[:-1]:
                mounted(kind, Ram(bytearray(left)), False)
                found = everything(new())
                for key in set(list(want) + list(made) + list(found)):
                    may = [want.get(key), made.get(key, want.get(key))]
                    assert found.get(key) in may or (key in gone and key not in found), key
                with open("/m/other", "rb") as f:
                    assert f.read() == b"other" * 100
                vfs.umount("/m")
                looked += 1
        want.update(made)
        for key in gone:
            want.pop(key)
        mounted(kind, Ram(bytearray(copies[-1])), False)
        assert everything(new()) == want  # what has returned is there
        vfs.umount("/m")
        mounted(kind, ram, False)
    vfs.umount("/m")
    print(json.dumps([looked, doubled]))


def poor(full, folder, room, operations):
    import file_twin

    sys.path.append(folder)
    from poor_files import PoorFiles

    fs = PoorFiles(int(room), full, True)
    vfs.mount(fs, "/m")
    twin = file_twin.run("/m/kv", json.loads(operations))
    assert twin.store.used_bytes == fs.used()
    vfs.umount("/m")
    print(json.dumps(twin.refused))


class Lean(Ram):
    """Of which no call makes an object, so that what is counted is the store's and the file system's."""

    @micropython.native
    def readblocks(self, block, buf, offset=0):
        copy(buf, self.cells, 0, block * BLOCK + offset, len(buf))

    @micropython.native
    def writeblocks(self, block, buf, offset=0):
        copy(self.cells, buf, block * BLOCK + offset, 0, len(buf))

    @micropython.native
    def ioctl(self, op, arg):
        if op == 4:
            return 128
        if op == 5:
            return BLOCK
        return 0


def heap(kind):
    mounted(kind, Lean(bytearray(128 * BLOCK)), True)
    told = {}
    for size in (SIZE, 8 * SIZE):
        store = open_store(FileStore("/m/kv", size, slots=3, blocks=20))
        slot = store.begin(size)
        data, into = bytearray(size), bytearray(size)
        told["put %d" % size], told["read %d" % size] = [], []
        for i in range(6):
            a = micropython.mem_total()
            store.put(slot, 0, data, [0, size])
            b = micropython.mem_total()
            store.read(slot, 0, into)
            told["put %d" % size].append(b - a)
            told["read %d" % size].append(micropython.mem_total() - b)
        store.close(slot)
    vfs.umount("/m")
    print(json.dumps(told))


kind, what = sys.argv[1:3]
if what == "twin":
    twin(kind, json.loads(sys.argv[3]))
elif kind == "poor":
    poor(what, *sys.argv[3:6])
elif what == "cuts":
    cuts(kind, int(sys.argv[3]))
else:
    heap(kind)
