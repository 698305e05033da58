"""Counts instructions on the emulated board: there a nanosecond of its time is one instruction.

    start = ticks()
    f(x)
    n = instructions(start, ticks())

or `count(f, x)`. The 25 MHz timer of the machine moves once in 40 instructions: a figure is right to
within 40 (100 on the RISC-V machine, whose timer goes at 10 MHz); for less, run the work many times.
Reading it allocates nothing.

A timer of the machine and not the core's SysTick, which goes at the same pace and wraps after 0.67 s.
"""

import sys

import micropython
from micropython import const

_TIMER = const(0x40000000)  # CMSDK timer 0: control, value (counts down), reload
_CLINT = const(0x0200BFF8)  # of the RISC-V machine, counts up
_MASK = const(0x3FFFFFFF)  # ticks are small ints; they wrap after 43,000,000,000 instructions


@micropython.viper
def _start():
    timer = ptr32(_TIMER)
    timer[2] = 0 - 1
    timer[1] = 0 - 1
    timer[0] = 1


@micropython.viper
def ticks() -> int:
    """The timer: subtract two readings with instructions()."""
    return (0 - int(ptr32(_TIMER)[1])) & _MASK


@micropython.viper
def _riscv_ticks() -> int:
    return int(ptr32(_CLINT)[0]) & _MASK


RISCV = "rv32" in sys.implementation._machine
PER_TICK = 100 if RISCV else 40
if RISCV:
    ticks = _riscv_ticks


@micropython.native
def elapsed(start, end):
    """Ticks between two readings."""
    return (end - start) & _MASK


@micropython.native
def instructions(start, end):
    """Instructions between two readings, their own cost taken off. Allocates above 1,073,741,823."""
    return max(((end - start) & _MASK) * PER_TICK - overhead, 0)


def count(f, *args):
    """Instructions of one call of f(*args), without those of counting; the result is dropped.

    Arguments are passed in a tuple, made anew: some hundreds of instructions more, and not each time as many.
    """
    start = ticks()
    f(*args)
    return max(instructions(start, ticks()) - call_overhead, 0)


def _nothing():
    pass


overhead = 0  # of two readings
call_overhead = 0  # of calling an empty function through count()

if not RISCV:
    _start()
overhead = min([instructions(ticks(), ticks()) for _ in range(16)])
call_overhead = min([count(_nothing) for _ in range(16)])
