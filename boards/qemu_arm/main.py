"""main.py of the emulated Cortex-M3: tells a story with the model that lies in its memory-mapped flash.

Needs mpy_kv and stories on the module path and a board image of a model at FLASH; sys.argv holds options
of the app. boards/qemu_arm/README.md says how each gets there.
"""

import sys

import stories
from micropython import const
from uctypes import bytearray_at

FLASH = const(0x21000000)  # PSRAM of the machine, in the part of memory-mapped flash
FLASH_BYTES = const(1441792)  # as much as a Raspberry Pi Pico has

stories.main(sys.argv[1:], tokens=1000, model=memoryview(bytearray_at(FLASH, FLASH_BYTES)))
