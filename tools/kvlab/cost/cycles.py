"""Cycles of a Cortex-M0+ from instructions by class and from misses of the flash cache.

Coefficients are those of Arm's table: Cortex-M0+ Technical Reference Manual (DDI 0484C), table 3-1, with the
multiplier of one cycle and memory without wait states, as on an RP2040 (RP2040 datasheet, section 2.4).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

# A class of count.c -> cycles of one. "words" are those that LDM, STM, PUSH and POP move, one cycle each
# beside the instruction's own; of a POP into the pc too.
CYCLES = {
    "other": 1,
    "load": 2,
    "store": 2,
    "multiple": 1,
    "words": 1,
    "pop_pc": 3,
    "branch": 2,
    "not_taken": 1,
    "call": 3,
    "return": 2,
}

# The one coefficient that is fitted, on the model in place without misses (fit.py): kernels are a Pico's very
# instructions, but the firmware's code is counted as compiled for a Cortex-M3, whose instructions do more.
FIRMWARE = 1.158

# A byte copied by the boot ROM's memcpy, which the stock firmware uses: LDM and STM of four words, a
# subtraction, a branch that is taken, 13 cycles by the same table.
COPY = 13 / 16

# Of the flash's clock for a line of 8 bytes that is not in the cache: 50 cycles a miss at 125 MHz, as
# measured.json takes it. The core's clock is divided for the flash, by an even number; MicroPython keeps the
# flash at what it has at 125 MHz, divided by 2 (MICROPY_HW_FLASH_MAX_FREQ, ports/rp2/rp2_flash.c).
_LINE_CLOCKS = 25
_MOST_FLASH_HZ = 62_500_000


@dataclass(frozen=True)
class Counts:
    """Instructions by class of CYCLES, of the firmware's code and of the kernels', lines of flash missed, and
    bytes copied where the model is a file."""

    firmware: Mapping[str, float] = field(default_factory=dict)
    kernels: Mapping[str, float] = field(default_factory=dict)
    misses: float = 0
    copied: float = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            _sum(self.firmware, other.firmware),
            _sum(self.kernels, other.kernels),
            self.misses + other.misses,
            self.copied + other.copied,
        )

    def times(self, n: float) -> Counts:
        return Counts(
            {key: n * value for key, value in self.firmware.items()},
            {key: n * value for key, value in self.kernels.items()},
            n * self.misses,
            n * self.copied,
        )

    def cycles(self, miss_cycles: float, firmware: float = FIRMWARE) -> float:
        code = firmware * table(self.firmware) + table(self.kernels)
        return code + miss_cycles * self.misses + COPY * self.copied


def table(by_class: Mapping[str, float]) -> float:
    """Cycles by Arm's table. KeyError for a class that it does not have."""
    return sum(CYCLES[name] * n for name, n in by_class.items())


def flash_divider(clock_hz: float) -> int:
    """By what an RP2040 divides its clock for the flash once machine.freq() has set it."""
    divider = math.ceil(clock_hz / _MOST_FLASH_HZ)
    return divider + divider % 2


def miss_cycles(clock_hz: float) -> float:
    """Cycles of the core that a line from flash takes."""
    return float(_LINE_CLOCKS * flash_divider(clock_hz))


def _sum(a: Mapping[str, float], b: Mapping[str, float]) -> dict[str, float]:
    return {key: a.get(key, 0) + b.get(key, 0) for key in {**a, **b}}
