"""Stand-in for `machine`: clock, reset, a pin that remembers. No raw memory: there is none, but for the
registers of an rp2 chip that belong to its clock (emu/chip_registers.py)."""

import sys

from emu.board import CHIP, CLOCK_HZ, CLOCK_MAX_HZ, NAME

PWRON_RESET = 1
HARD_RESET = 2
WDT_RESET = 3
DEEPSLEEP_RESET = 4
SOFT_RESET = 5

_clock_hz = CLOCK_HZ
_registers = None
if CHIP in ("RP2040", "RP2350"):
    from emu.chip_registers import Registers

    mem32 = _registers = Registers(CHIP)


def freq(hz=None):
    """The CPU clock in Hz, or set it. It changes no speed here; the report's cost model uses it.

    A chip would set a clock that its voltage does not allow, and perhaps run: here that is refused.
    """
    global _clock_hz
    if hz is None:
        return _clock_hz
    if not 0 < hz <= CLOCK_MAX_HZ:
        raise ValueError("frequency %d: the board goes to %d" % (hz, CLOCK_MAX_HZ))
    if _registers is not None and hz > _registers.most_hz(CLOCK_MAX_HZ):
        raise ValueError("frequency %d: more than the core's voltage allows" % hz)
    _clock_hz = hz


def unique_id():
    return ("emulated " + NAME).encode()


def reset():
    """Ends the run with exit status 0: a board would start again from main.py."""
    sys.exit(0)


soft_reset = reset


def reset_cause():
    return PWRON_RESET


def idle():
    pass


def disable_irq():
    return 0


def enable_irq(state):
    pass


class Pin:
    IN = 0
    OUT = 1
    OPEN_DRAIN = 2
    PULL_UP = 1
    PULL_DOWN = 2

    def __init__(self, id, mode=-1, pull=-1, *, value=0):
        self._value = value

    def value(self, to=None):
        if to is None:
            return self._value
        self._value = int(bool(to))

    __call__ = value

    def on(self):
        self._value = 1

    def off(self):
        self._value = 0

    def toggle(self):
        self._value ^= 1
