"""Counts the instructions of one call to within four, where instructions.py is right to within forty.

    start = begin()
    f(x)
    n = end(start) - overhead

begin() waits for the timer to move, end() counts how long it takes to move again. Nothing here allocates.
"""

import micropython
from instructions import PER_TICK  # starts the timer, too


@micropython.asm_thumb
def begin():
    mov(r1, 0x40)  # the timer is at 0x40000000
    lsl(r1, r1, 24)
    ldr(r0, [r1, 4])
    label(WAIT)
    ldr(r2, [r1, 4])
    cmp(r2, r0)
    beq(WAIT)
    mov(r0, 0)
    sub(r0, r0, r2)
    lsl(r0, r0, 4)  # a small int
    lsr(r0, r0, 4)


@micropython.asm_thumb
def end(r0):
    mov(r1, 0x40)  # the timer is at 0x40000000
    lsl(r1, r1, 24)
    mov(r3, 0)
    ldr(r4, [r1, 4])
    label(WAIT)
    add(r3, 4)  # instructions of this loop
    ldr(r2, [r1, 4])
    cmp(r2, r4)
    beq(WAIT)
    mov(r4, 0)
    sub(r4, r4, r2)
    sub(r4, r4, r0)
    lsl(r4, r4, 4)
    lsr(r4, r4, 4)
    mov(r0, 40)  # PER_TICK
    mul(r0, r4)
    sub(r0, r0, r3)


assert PER_TICK == 40

overhead = min([end(begin()) for _ in range(16)])  # of the two
