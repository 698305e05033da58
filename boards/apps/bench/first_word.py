"""What the start of a story takes, to its first word: a board's program, as it is deployed.

usage: first_word.py    prints JSON; the model lies where boards/qemu_arm/main.py looks for it
The unit is the instruction on the emulated board; the first import counts, the firmware's own start does not.
Kernels that the program's folder remembers as checked are not checked: see stories/verdicts.py.
"""

import json

from instructions import instructions, ticks
from micropython import const
from uctypes import bytearray_at

FLASH = const(0x21000000)
FLASH_BYTES = const(1441792)

first = []


def write(text):
    """Where the story goes."""
    if not first:
        first.append(ticks())


start = ticks()

import stories  # noqa: E402

model = memoryview(bytearray_at(FLASH, FLASH_BYTES))
figures = stories.main(tokens=1, model=model, report=False, write=write, verdicts="kernels.checked")
print(
    json.dumps(
        {
            "instructions": instructions(start, first[0]),
            "window": figures["window"],
            "kernels": [figures["cache_kernels"], figures["kernels"]],
        }
    )
)
