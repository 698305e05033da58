"""Counts instructions on the emulated board: there a nanosecond of its time is one instruction.

    start = ticks()
    f(x)
    n = instructions(start, ticks())

or `count(f, x)`. The 25 MHz timer of the machine moves once in 40 instructions: a figure is right to
within 40 (32 on the RISC-V machine, whose own counter of instructions is read so); for less, run the
work many times. Reading it allocates nothing.

It starts here, at an instruction of the board's: where its ticks fall depends on nothing outside, and
the same run gives the same figures. A timer of the machine and not the core's SysTick, which goes at the
same pace and wraps after 0.67 s.
"""

import sys

import micropython
from micropython import const

_TIMER = const(0x40000000)  # CMSDK timer 0: control, value (counts down), reload
_RISCV_SHIFT = const(5)  # of its counter of instructions
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


# Registers minstret and minstreth, 64 bits. The machine's timer is no use here: nothing starts it anew.
_OF_RISCV = """
@micropython.asm_rv32
def _start():
    data(4, 0xB8201073)  # csrw minstreth, zero
    data(4, 0xB0201073)  # csrw minstret, zero

@micropython.asm_rv32
def ticks():
    data(4, 0xB82025F3)  # csrr a1, minstreth
    data(4, 0xB0202573)  # csrr a0, minstret
    srli(a0, a0, %d)
    slli(a1, a1, %d)
    or_(a0, a0, a1)
    slli(a0, a0, 2)  # a small int
    srli(a0, a0, 2)
"""

RISCV = "rv32" in sys.implementation._machine
PER_TICK = 1 << _RISCV_SHIFT if RISCV else 40
if RISCV:
    exec(_OF_RISCV % (_RISCV_SHIFT, 32 - _RISCV_SHIFT))


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

_start()
overhead = min([instructions(ticks(), ticks()) for _ in range(16)])
call_overhead = min([count(_nothing) for _ in range(16)])
