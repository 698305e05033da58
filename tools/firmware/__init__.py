"""Builds MicroPython's own firmware for an emulated 32-bit board, from source that is never kept here.

    import firmware
    elf = firmware.build(heap_bytes=256 * 1024)   # for qemu-system-arm -machine mps2-an385 -kernel ELF
    program = firmware.mpy_cross()                # of the same source

`python -m firmware --help` is the same from a shell. FirmwareError is all that is raised.
"""

from firmware.errors import FirmwareError
from firmware.make import LEAST_HEAP_BYTES, MOST_HEAP_BYTES, build, mpy_cross
from firmware.source import find as find_source
from firmware.targets import ARM, ARM_LITTLEFS, Target

__all__ = [
    "ARM",
    "ARM_LITTLEFS",
    "LEAST_HEAP_BYTES",
    "MOST_HEAP_BYTES",
    "FirmwareError",
    "Target",
    "build",
    "find_source",
    "mpy_cross",
]
