"""av of int8-int4 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py."""

from field_tables.kernels import ATTEND, V_RUN
from kernelgen.fragments.batches import *
from kernelgen.fragments.common import *
from kernelgen.language import *


@called
def av(buffer: Register, same: Register, mask: Register, attend: Register) -> None:
    """Small weights times the nibbles of a slice, summed over tokens: plain.py's av, B5 and B6.

    From int32[N] at DOTS, words at UNITS and codes of 4 bits at VCODES to int32[2 * V_WIDTH] at SUMS, a
    column of 8 codes after the other.

    r0 codes, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this part
    """
    a, run = Array(r3, ATTEND), Array(r4, V_RUN)
    near = a.on(r7, a.HEAD_DIM)
    gap = r12
    with frame(
        "a buffer column run tokens_left run_left batch_left units sums mask columns_left " + SPLIT
    ) as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        two_lanes(r2, 15 << 4, by=r4)
        str_(r2, sp.mask)
        put(sp.column, 0, by=r4)
        str_(r4, sp.part)
        with repeat("COLUMN", gt(r5, 4)):
            begin_column(a, 3, sp)
            for _ in range(4):
                stm(r4, r6, r7)
            point(r7, a.HEAD_DIM)
            ldr(r1, near.V_WIDTH)
            sub(r1, r2)
            str_(r1, sp.columns_left)
            ldr(r4, near.V_ROW)
            sub(r4, 4)
            mov(gap, r4)
            locate(r4, near.V_RUNS, r3)
            str_(r4, sp.run)
            begin_batches(a, sp)
            ldr(r2, sp.mask)
            with repeat("BATCH", ne(r5, 0)):
                next_batch(sp)
                with repeat("PART", ne(r7, 0)):  # a batch may span runs
                    ldr(r6, sp.run_left)
                    with when(eq(r6, 0)):
                        ldr(r3, sp.a)
                        ldr(r4, sp.run)
                        ldr(r0, a.SLICE)
                        point(r5, a.HEAD_DIM)
                        times(r0, a.on(r5, a.HEAD_DIM).V_WIDTH, by=r5)
                        plus(r0, a.VCODES, by=r5)
                        plus(r0, sp.column, by=r5)
                        plus(r0, sp.buffer, by=r5)
                        take_run(run.V_RUN_CODES, run.V_RUN_COUNT, run.V_RUN_WORDS, sp)
                    next_part(sp.run_left, sp)
                    each_token(nibbles, (gap, 4), sp.run_left, sp, sp.run)
                    ldr(r7, sp.batch_left)
                end_nibbles(sp.run_left, sp, sp.run)
            bump(sp.column, 4, by=r4)
            ldr(r5, sp.columns_left)
    mov(r0, 0)
