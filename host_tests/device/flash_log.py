"""The flash log on MicroPython: what is put is read back, also after a start, and nothing is allocated.

Prints JSON: bytes allocated by each of many puts, steps and reads, those that a log holds of a sector and of
a record, and the CRC of the whole flash.
"""

import gc
import json

import micropython
from binascii import crc32

from ram_flash import Flash

from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log

SECTORS = 64
SIZE = 5440


def fresh(flash):
    log = FlashLog(flash, SIZE, slots=2, blocks=64)
    return open_log(log)


flash = Flash(SECTORS)
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


class Room:
    """Of so many sectors; for a log that is not opened."""

    def __init__(self, sectors):
        self.sectors = sectors

    def ioctl(self, op, arg):
        return self.sectors if op == 4 else 4096


def held(sectors, blocks):
    """Bytes of the heap that a log holds."""
    room = Room(sectors)
    gc.collect()
    before = gc.mem_alloc()
    log = FlashLog(room, SIZE, slots=2, blocks=blocks)
    gc.collect()
    return gc.mem_alloc() - before + 0 * log.sectors


ROUNDED = 64  # bytes to which each of a log's arrays is rounded, at most
few = held(1000, 1000)
a_sector = (held(9000, 1000) - few - 2 * ROUNDED) / 8000
a_record = (held(1000, 9000) - few - ROUNDED) / 8000
told = {"allocated": allocated, "wrong": wrong, "crc": crc32(flash.cells), "count": log.count[slot]}
told["a_sector"] = a_sector
told["a_record"] = a_record
print(json.dumps(told))
