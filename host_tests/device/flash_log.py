"""The flash log on MicroPython: what is put is read back, also after a start, and nothing is allocated.

Prints JSON: bytes allocated by each of many puts, steps and reads, and the CRC of the whole flash.
"""

import json

import micropython
from binascii import crc32

from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
from mpy_kv.flash_log.words import copy, fill

SECTORS = 64
SIZE = 5440


class Flash:
    """Without an object made in any call, so that what is counted is the log's."""

    def __init__(self):
        self.cells = bytearray(SECTORS * 4096)
        fill(self.cells, 0, len(self.cells), 255)

    @micropython.native
    def ioctl(self, op, arg):
        if op == 4:
            return SECTORS
        if op == 5:
            return 4096
        if op == 6:
            fill(self.cells, arg * 4096, 4096, 255)
        return 0

    @micropython.native
    def readblocks(self, block, buf, offset):
        copy(buf, self.cells, 0, block * 4096 + offset, len(buf))

    @micropython.native
    def writeblocks(self, block, buf, offset):
        at = block * 4096 + offset
        i = 0
        while i < len(buf):
            self.cells[at + i] &= buf[i]
            i += 1


def fresh(flash):
    log = FlashLog(flash, SIZE, slots=2, blocks=64)
    return open_log(log)


flash = Flash()
format_log(FlashLog(flash, SIZE, slots=2, blocks=64))
log = fresh(flash)
while log.step():
    pass
data = bytearray((i * 7 + i // 251) & 255 for i in range(SIZE + 64))
runs = [0, 2720, 2752, 2720]
into = bytearray(SIZE)
total = micropython.mem_total
allocated = {"put": [], "step": [], "read": [], "rewrite": []}
slot = log.begin(77)
RECORDS = 24


def steps():
    while log.step():
        pass


def measured(slot, put, read):
    """Bytes that each call allocates. Bound methods are made before."""
    for i in range(RECORDS):
        data[0] = i
        a = total()
        steps()
        b = total()
        put(slot, i, data, runs)
        c = total()
        read(slot, i, into)
        d = total()
        put(slot, i // 2, data, runs)
        e = total()
        allocated["step"].append(b - a)
        allocated["put"].append(c - b)
        allocated["read"].append(d - c)
        allocated["rewrite"].append(e - d)


measured(slot, log.put, log.read)
wrong = 0
kept = {i: (2 * i + 1 if 2 * i + 1 < RECORDS else i) for i in range(RECORDS)}
log.sync(slot)
for again in range(3):
    for i in range(RECORDS):
        data[0] = kept[i]
        same = log.read(slot, i, into) == SIZE
        wrong += not same or into[:2720] != data[:2720] or into[2720:] != data[2752 : 2752 + 2720]
    log = fresh(flash)
    steps()
told = {"allocated": allocated, "wrong": wrong, "crc": crc32(flash.cells), "count": log.count[slot]}
print(json.dumps(told))
