"""scales, qk and av of float16 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py.

A number h has its entry of the table at 8 * (h >> 10); 12 instructions make a product of it.
"""

from field_tables.kernels import ATTEND, RUN
from kernelgen.fragments.batches import *
from kernelgen.fragments.common import *
from kernelgen.fragments.runs import *
from kernelgen.language import *


def number(offset: int, table: Register, mantissa: Register, t: Register, base: Register) -> None:
    """r4 a number of the row r0, as an integer: t, base and r5 are used."""
    ldrh(r4, at(r0, offset))
    lsr(r5, r4, 10)
    index(r5, 3, table)
    ldm(r5, t, base)
    and_(r4, mantissa)
    mul(r4, t)
    asr(r4, 16)
    add(r4, base)


@kernel
def scales(buffer: Register, same: Register, which: Register, attend: Register) -> None:
    """The largest exponent of the visible numbers, and the table that they are read by: plain.py's scales.

    From float16[RUNS][RUN_COUNT][ROW / 2] at CODES or, with `which` 1, VCODES, to KEXP or VEXP, 64 entries
    (t, base) before KSCALE or VSCALE, and uint16[N] of equal scales there.

    r0 words, r2 largest so far, r5 end of the run, r8 which times 4, r9 buffer, r10 head, r11 end of heads,
    r12 bytes between heads, lr runs left; ENTRIES: r5 r0 entries of plus and minus, r4 exponents left, r6
    t, r7 b
    """
    a, run = Array(r3, ATTEND), Array(r1, RUN)
    of_which = a.on(r4)
    which4, buffer_, head, heads_end, gap, runs_left = r8, r9, r10, r11, r12, lr
    with frame():
        lsl(r2, 2)
        mov(which4, r2)
        mov(buffer_, r0)
        add(r4, r3, r2)
        locate(r5, of_which.CODES, r0)
        mov(head, r5)
        locate(r5, of_which.SCALES, r0)
        mov(heads_end, r5)
        ldr(r4, a.SCALE_STRIDE)
        lsr(r4, 1)
        times(r4, a.ROW, by=r5)
        mov(gap, r4)
        mov(r2, 0)
        with repeat("HEAD", cc(r4, heads_end)):
            point(r1, a.RUN)
            put(runs_left, a.RUNS, by=r4)
            with repeat("RUN", ne):
                ldr(r5, run.RUN_COUNT)
                times(r5, a.ROW, by=r4)
                locate(r0, run.RUN_CODES, head)
                add(r5, r0)
                add(r1, run.RUN_WORDS.offset)
                with repeat("WORD", ne(r0, r5)):
                    ldm(r0, r4)
                    lsl(r6, r4, 1)
                    keep_larger(r2, r6, hi)
                    lsl(r6, r4, 17)
                    keep_larger(r2, r6, hi)
                bump(runs_left, -1, by=r4)
            bump(head, gap, by=r4)
        lsr(r2, 27)
        with when(eq):
            mov(r2, 1)
        locate(r5, a.KSCALE, buffer_)
        mov(r6, which4)
        lsl(r6, 7)
        add(r5, r6)
        mov(r6, 4)
        lsl(r6, 8)
        sub(r5, r6)
        mov(r0, r5)
        add(r0, 128)
        add(r0, 128)
        mov(r4, r2)
        mov(r1, r2)
        sub(r1, 1)
        b("ENTRY")
        with repeat("ENTRIES", pl):
            mov(r1, r4)
            label("ENTRY")
            constant(r7, 1 << 14)
            lsr(r7, r1)
            lsl(r6, r7, 6)
            with when(eq(r4, r2)):
                mov(r7, 0)
            stm(r5, r6, r7)
            neg(r6, r6)
            neg(r7, r7)
            stm(r0, r6, r7)
            sub(r4, 1)
        mov(r4, which4)
        add(r4, r3)
        str_(r2, of_which.KEXP)
        locate(r0, of_which.KSCALE, buffer_)
        ldr(r5, a.N)
        index(r5, 1, r0)
        constant(r4, 1 << 14)
        with repeat("ALIKE", ne(r0, r5)):
            strh(r4, at(r0))
            add(r0, 2)
    mov(r0, 0)


@kernel
def qk(buffer: Register, same: Register, spare: Register, attend: Register) -> None:
    """Dots of the query with every visible row: plain.py's qk.

    From float16[RUNS][RUN_COUNT][ROW / 2] at CODES and the query's words at QUERY to int32[N] at DOTS, a
    column of 4 numbers after the other.

    r0 numbers, r1 mantissa, r2 table, r3 t, r4 number, r5 its entry, r6 base or code, r7 dot, r8 result, r9
    its end in this run, r10 row, r11 mask of the dot so far, r12 what the dot is shifted by
    """
    a, run = Array(r3, ATTEND), Array(r7, RUN)
    result, end, row, so_far, down = r8, r9, r10, r11, r12

    def codes(word: int, low: Place, high: Place) -> None:
        """The two of a word of the query."""
        ldr(r5, at(r4, word))
        sxth(r6, r5)
        sub(r5, r6)
        asr(r5, 16)
        str_(r5, high)
        str_(r6, low)

    with frame("code0 code1 code2 code3 a buffer column run runs_left columns") as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        put(sp.columns, a.WIDTH, by=r4)
        put(sp.column, 0, by=r4)
        with repeat("COLUMN", lt(r4, r5)):
            ldr(r3, sp.a)
            ldr(r5, sp.buffer)
            locate(r4, a.DOTS, r5)
            mov(result, r4)
            begin_runs(a, sp)
            ldr(r2, sp.column)
            mov(r4, 0)
            with when(ne(r2, 0)):
                mvn(r4, r4)
            mov(so_far, r4)
            mov(r4, 0)
            add(r2, 4)
            ldr(r5, sp.columns)
            with when(ge(r2, r5)):
                mov(r4, 8)
            mov(down, r4)
            with repeat("RUN", ne):
                query_of_run(a, sp)
                ldr(r0, a.SLICES)
                lsl(r0, 2)
                add(r4, r0)
                ldr(r0, sp.column)
                lsl(r0, 1)
                add(r4, r0)
                add(r0, r6)
                plus(r0, a.CODES, by=r5)
                plus(r0, run.RUN_CODES, by=r5)
                put(row, a.ROW, by=r5)
                results_of_run(result, end, sp)
                codes(0, sp.code2, sp.code0)
                codes(4, sp.code3, sp.code1)
                ldr(r2, a.KSCALE)
                plus(r2, sp.buffer, by=r5)
                constant(r1, 1 << 10)
                sub(r2, r1)
                sub(r1, 1)
                with repeat("TOKEN", ne(r6, end)):
                    mov(r6, result)
                    ldr(r7, at(r6))
                    mov(r4, so_far)
                    and_(r7, r4)
                    for i, code in enumerate((sp.code0, sp.code1, sp.code2, sp.code3)):
                        number(2 * i, table=r2, mantissa=r1, t=r3, base=r6)
                        times(r4, code, by=r6)
                        add(r7, r4)
                    mov(r4, down)
                    asr(r7, r4)
                    add(r0, row)
                    mov(r6, result)
                    stm(r6, r7)
                    mov(result, r6)
                bump(sp.runs_left, -1, by=r4)
            bump(sp.column, 4, by=r4)
            ldr(r5, sp.columns)
    mov(r0, 0)


@kernel
def av(buffer: Register, same: Register, spare: Register, attend: Register) -> None:
    """Small weights times the numbers of rows, summed over tokens: plain.py's av.

    From int32[N] at DOTS, words at UNITS and float16 at VCODES to int32[V_WIDTH / 2] at SUMS, a column of 2
    numbers after the other; CORR is what the sums start from.

    r0 numbers, r1 weights, r2 table, r3 mantissa, r4 number, r5 its entry, r6 t or weight, r7 base, r8 r9
    sums of two channels, r10 row, r11 as r2, r12 weight, lr end of this part
    """
    a, run = Array(r3, ATTEND), Array(r4, RUN)
    a_ = a.on(r6)
    row, table, weight = r10, r11, r12
    totals = (r8, r9)
    with frame("a buffer column run tokens_left run_left batch_left units sums row_bytes") as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        put(a.CORR, 1 << 29, by=r4)
        point(r7, a.HEAD_DIM)
        put(sp.row_bytes, a.on(r7, a.HEAD_DIM).V_WIDTH, by=r4)
        locate(r4, a.KSCALE, r0)
        mov(r5, 2)
        lsl(r5, 8)
        sub(r4, r5)
        mov(table, r4)
        put(row, a.ROW, by=r4)
        put(sp.column, 0, by=r4)
        lsl(r3, r5, 1)
        sub(r3, 1)
        with repeat("COLUMN", lt(r4, r5)):
            ldr(r6, sp.a)
            ldr(r5, sp.buffer)
            ldr(r2, sp.column)
            locate(r4, a_.SUMS, r5)
            lsl(r2, 1)
            add(r4, r2)
            str_(r4, sp.sums)
            ldr(r2, a_.CORR)
            str_(r2, at(r4))
            str_(r2, at(r4, 4))
            begin_batches(a_, sp)
            point(r4, a_.RUN)
            str_(r4, sp.run)
            put(sp.run_left, 0, by=r4)
            for total in totals:
                mov(total, r4)
            mov(r2, table)
            with repeat("BATCH", ne(r5, 0)):
                next_batch(sp)
                with repeat("PART", ne(r7, 0)):  # a batch may span runs
                    ldr(r6, sp.run_left)
                    with when(eq(r6, 0)):
                        ldr(r4, sp.a)
                        ldr(r0, a.on(r4).VCODES)
                        plus(r0, sp.column, by=r5)
                        plus(r0, sp.buffer, by=r5)
                        ldr(r4, sp.run)
                        take_run(run.RUN_CODES, run.RUN_COUNT, run.RUN_WORDS, sp)
                    next_part(sp.run_left, sp)
                    with repeat("TOKEN", ne(r1, lr)):
                        ldm(r1, r6)
                        mov(weight, r6)
                        for i, total in enumerate(totals):
                            number(2 * i, table=r2, mantissa=r3, t=r6, base=r7)
                            mov(r6, weight)
                            mul(r4, r6)
                            add(total, r4)
                        add(r0, row)
                    ldr(r7, sp.batch_left)
                # The batch's sums, rounded, to those of all.
                unit_of_batch(r4, r5, r6, sp)
                for i, total in enumerate(totals):
                    mov(r7, total)
                    asr(r7, 8)
                    mul(r7, r6)
                    asr(r7, r5)
                    with when(cs):
                        add(r7, 1)
                    bump(at(r4, 4 * i), r7, by=r2)
                mov(r2, 0)
                for total in totals:
                    mov(total, r2)
                mov(r2, table)
                ldr(r5, sp.tokens_left)
            bump(sp.column, 4, by=r4)
            ldr(r5, sp.row_bytes)
    mov(r0, 0)
