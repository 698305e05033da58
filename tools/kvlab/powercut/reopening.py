"""What a start of the log takes on a Raspberry Pi Pico, by the cost model: counted on the emulated board; and
what its files take, if it lies in such: to find their blocks, and to check each before its first write."""

from __future__ import annotations

import random
from typing import Any

import firmware
from commandline.errors import FellShort
from kvlab import boards, paths
from kvlab.cost import count, cycles
from kvlab.powercut.flash import Nor
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
from unix_port.launcher import emulate

RECORDS = 180
SECTORS = 264  # of which the records take 246
SLOTS = 1


def image(record_bytes: int, records: int = RECORDS, sectors: int = SECTORS) -> bytes:
    """The flash with a log of one sequence of so many records."""
    nor = Nor(sectors)
    log = _new(nor, record_bytes, records)
    format_log(log)
    open_log(log)
    slot = -1
    for i in range(records):
        while log.step():
            pass
        slot = slot if i else log.begin(1)
        log.put(slot, i, random.Random(i).randbytes(record_bytes), [0, record_bytes])
    log.sync(slot)
    return bytes(nor.cells)


def _new(nor: Any, record_bytes: int, records: int) -> Any:
    return FlashLog(nor, record_bytes, slots=SLOTS, blocks=records + 8)


def counts(record_bytes: int) -> cycles.Counts:
    """Of opening that log."""
    script = paths.APPS / "bench" / "reopen.py"
    words = [record_bytes, SLOTS, RECORDS + 8, SECTORS]
    before, after = count.marks(script, words, image(record_bytes))
    return count.between(before, after)


def reopen_us(record_bytes: int, clock_hz: float) -> int:
    return round(counts(record_bytes).cycles(cycles.miss_cycles(clock_hz)) / clock_hz * 1e6)


def files_us(clock_hz: float, files: int = SECTORS) -> tuple[int, int]:
    """To find the blocks of so many files, and to check them all through the file system."""
    script = paths.APPS / "bench" / "marker.py"
    made = emulate(script, ["make", files], boards.load("rp2040").machine, keep_flash=True)
    if made.flash_after is None or not made.ok:
        raise FellShort(f"no files on the emulated board: {made.stderr.strip() or made.outcome}")
    blocks = len(made.flash_after) // 4096
    marks = count.marks(script, [blocks], made.flash_after, target=firmware.ARM_LITTLEFS)
    found, checked = (count.between(marks[i], marks[i + 1]) for i in range(2))
    per_cycle = 1e6 / clock_hz
    miss = cycles.miss_cycles(clock_hz)
    return round(found.cycles(miss) * per_cycle), round(checked.cycles(miss) * per_cycle)
