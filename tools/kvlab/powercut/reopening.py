"""What a start of the log takes on a Raspberry Pi Pico, by the cost model: counted on the emulated board."""

from __future__ import annotations

import random
from typing import Any

from kvlab import paths
from kvlab.cost import count, cycles
from kvlab.powercut.flash import Nor
from mpy_kv.flash_log import FlashLog
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log

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
