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
    asr(r4, 9)
    add(r4, base)


@called
def scales(buffer: Register, same: Register, which: Register, attend: Register) -> None:
    """The largest exponent of a head's visible numbers, and the table they are read by: plain.py's scales.

    From float16[RUNS][RUN_COUNT][ROW / 2] at CODES or, with `which` 1, VCODES, to KEXP or VEXP, 64 entries
    (t, base) before KSCALE, and uint16[N] of relative scales there or at VSCALE; of K to VARIED.

    RUN: r0 words, r2 largest of the token, r5 end of it, r1 relative scales, r8 which times 4, r9 buffer, r10
    largest so far, r11 words left of the run, r12 run, lr runs left; LEVELS: r1 scales, r5 their end, r2
    exponent, r6 varied; ENTRIES: r5 r0 entries of plus and minus, r4 exponents left, r6 t, r7 b
    """
    a = Array(r3, ATTEND)
    run, of_which = Array(r6, RUN), a.on(r4)
    which4, buffer_, largest, tokens_left, run_, runs_left = r8, r9, r10, r11, r12, lr
    with frame("row_bytes bits") as sp:
        lsl(r2, 2)
        mov(which4, r2)
        mov(buffer_, r0)
        put(sp.row_bytes, a.ROW, by=r4)
        add(r4, r3, r2)
        locate(r1, of_which.KSCALE, r0)
        plus(r0, of_which.CODES, by=r5)
        mov(r7, r0)
        mov(r4, 0)
        mov(largest, r4)
        point(r6, a.RUN)
        put(runs_left, a.RUNS, by=r4)
        with repeat("RUN", ne):
            put(tokens_left, run.RUN_COUNT, by=r4)
            ldr(r0, run.RUN_CODES)
            add(r0, r7)
            add(r6, run.RUN_WORDS.offset)
            mov(run_, r6)
            b("TOKEN_TEST")
            with repeat("TOKEN", pl):
                mov(tokens_left, r4)
                mov(r2, 0)
                ldr(r5, sp.row_bytes)
                add(r5, r0)
                with repeat("WORD", cc(r0, r5)):
                    ldm(r0, r4)
                    lsl(r6, r4, 1)
                    keep_larger(r2, r6, hi)
                    lsl(r6, r4, 17)
                    keep_larger(r2, r6, hi)
                lsr(r2, 17)
                strh(r2, at(r1))
                add(r1, 2)
                mov(r6, largest)
                with when(hi(r2, r6)):
                    mov(largest, r2)
                label("TOKEN_TEST")
                mov(r4, tokens_left)
                sub(r4, 1)
            mov(r6, run_)
            bump(runs_left, -1, by=r4)
        mov(r4, largest)
        lsr(r2, r4, 10)
        with when(eq):
            # Of 11 bits, as the others; of nothing -9.
            mov(r2, 1)
            with when(eq(r4, 0)):
                sub(r2, 10)
                b("EXPONENT")
            with repeat("MORE", eq):
                lsl(r4, 1)
                sub(r2, 1)
                lsr(r5, r4, 10)
        label("EXPONENT")
        mov(r4, which4)
        add(r4, r3)
        mov(r5, r2)
        add(r5, 10)
        str_(r5, of_which.KEXP)
        mov(r5, r1)
        locate(r1, of_which.KSCALE, buffer_)
        mov(r6, 0)
        mov(r4, which4)
        branch(eq(r4, 0), "OF_KEYS")
        put(sp.bits, 20, by=r4)
        constant(r4, (1 << 15) + 1)
        with repeat("VALUES", ne(r1, r5)):
            strh(r4, at(r1))
            add(r1, 2)
        b("TABLE")
        label("OF_KEYS")
        # Bits that a sum over all channels leaves for each key: -2 to 5.
        mov(r7, 5)
        point(r4, a.HEAD_DIM)
        ldr(r4, a.on(r4, a.HEAD_DIM).HEAD_DIM)
        sub(r4, 1)
        lsr(r4, 3)
        b("SPARE_TEST")
        with repeat("SPARE", ne):
            sub(r7, 1)
            lsr(r4, 1)
            label("SPARE_TEST")
            cmp(r4, 0)
        mov(r4, 32)
        with when(ge(r7, 0)):
            add(r4, r7)
        with otherwise():
            neg(r0, r7)
            lsl(r4, r0)
        mov(r10, r4)
        add(r7, 15)
        str_(r7, sp.bits)
        with repeat("KEYS", ne(r1, r5)):
            ldrh(r4, at(r1))
            lsr(r4, 10)
            mov(r7, 12)
            with when(cc(r4, r7)):
                mov(r4, r7)
            sub(r4, r2, r4)
            mov(r7, r10)
            with when(ge(r4, 4)):
                mov(r6, r7)
                add(r7, r4)
            strh(r7, at(r1))
            add(r1, 2)
        point(r4, a.HEAD_DIM)
        str_(r6, a.on(r4, a.HEAD_DIM).VARIED)
        label("TABLE")
        locate(r5, a.KSCALE, buffer_)
        mov(r4, which4)
        lsl(r4, 7)
        add(r5, r4)
        constant(r4, 1 << 10)
        sub(r5, r4)
        mov(r0, r5)
        add(r0, 128)
        add(r0, 128)
        # From exponent field 0 up to the largest, 1 at least.
        mov(r4, 0)
        mov(r1, 1)
        b("ENTRY")
        with repeat("ENTRIES", le(r4, r2)):
            mov(r1, r4)
            label("ENTRY")
            sub(r1, r2, r1)
            mov(r6, 1)
            ldr(r7, sp.bits)
            lsl(r6, r7)
            with when(lt(r1, 0)):
                neg(r1, r1)
                lsl(r6, r1)
                mov(r1, 0)
            lsr(r6, r1)
            lsl(r7, r6, 1)
            with when(eq(r4, 0)):
                mov(r7, 0)
            stm(r5, r6, r7)
            neg(r7, r7)
            # What is cut off is not to make it larger.
            lsl(r1, r6, 23)
            with when(ne):
                add(r7, 1)
            neg(r6, r6)
            stm(r0, r6, r7)
            add(r4, 1)
            branch(eq(r4, 1), "ENTRIES")
    mov(r0, 0)


@called
def qk(buffer: Register, same: Register, spare: Register, attend: Register) -> None:
    """Dots of the query with every visible row: plain.py's qk.

    From float16[RUNS][RUN_COUNT][ROW / 2] at CODES and the query's words at QUERY to int32[N] at DOTS, a
    column of 4 numbers after the other.

    r0 numbers, r1 mantissa, r2 table, r3 t, r4 number, r5 its entry, r6 base or code, r7 dot, r8 result, r9
    its end in this run, r10 row, r11 mask of the dot so far
    """
    a, run = Array(r3, ATTEND), Array(r7, RUN)
    result, end, row, so_far = r8, r9, r10, r11

    def codes(word: int, low: Place, high: Place) -> None:
        """The two of a word of the query."""
        ldr(r5, at(r4, word))
        sxth(r6, r5)
        sub(r5, r6)
        asr(r5, 16)
        str_(r5, high)
        str_(r6, low)

    with frame("code0 code1 code2 code3 a buffer column run runs_left columns table levels") as sp:
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
                # Where exponents differ, twice the place of a token's scale less that of its dot.
                lsl(r4, r2, 1)
                point(r5, a.HEAD_DIM)
                ldr(r5, a.on(r5, a.HEAD_DIM).VARIED)
                minus(r4, a.DOTS, by=r6)
                minus(r4, sp.buffer, by=r6)
                with when(eq(r5, 0)):
                    mov(r4, 0)
                str_(r4, sp.levels)
                sub(r2, r1)
                lsl(r5, 3)
                sub(r5, r2, r5)
                str_(r5, sp.table)
                sub(r1, 1)
                with repeat("TOKEN", ne(r6, end)):
                    mov(r6, result)
                    ldr(r4, sp.levels)
                    with when(ne(r4, 0)):
                        add(r4, r6)
                        lsr(r4, 1)
                        ldrb(r4, at(r4))
                        lsl(r4, 3)
                        ldr(r2, sp.table)
                        add(r2, r4)
                    ldr(r7, at(r6))
                    mov(r4, so_far)
                    and_(r7, r4)
                    for i, code in enumerate((sp.code0, sp.code1, sp.code2, sp.code3)):
                        number(2 * i, table=r2, mantissa=r1, t=r3, base=r6)
                        times(r4, code, by=r6)
                        add(r7, r4)
                    add(r0, row)
                    mov(r6, result)
                    stm(r6, r7)
                    mov(result, r6)
                bump(sp.runs_left, -1, by=r4)
            bump(sp.column, 4, by=r4)
            ldr(r5, sp.columns)
    mov(r0, 0)


@called
def av(buffer: Register, same: Register, spare: Register, attend: Register) -> None:
    """Small weights times the numbers of rows, summed over tokens: plain.py's av.

    From int32[N] at DOTS, words at UNITS and float16 at VCODES to int32[V_WIDTH / 2] at SUMS, a column of 2
    numbers after the other; CORR is what the sums start from.

    r0 numbers, r1 weights, r2 table, r3 mantissa, r4 number, r5 its entry, r6 t or weight, r7 base, r8 r9
    sums of two channels, r10 row, r11 as r2, r12 weight, lr end of this part
    """
    a, run = Array(r3, ATTEND), Array(r4, RUN)
    a_ = a.on(r6)
    row, table, of_token = r10, r11, r12
    totals = (r8, r9)
    words = "a buffer column run tokens_left run_left batch_left units sums row_bytes " + SPLIT
    with frame(words) as sp:

        def numbers(split: bool) -> None:
            if split:
                ldr(r7, sp.part)
            weight(r6, split)
            mov(of_token, r6)
            for i, total in enumerate(totals):
                number(2 * i, table=r2, mantissa=r3, t=r6, base=r7)
                mov(r6, of_token)
                mul(r4, r6)
                add(total, r4)
            add(r0, row)

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
        str_(r4, sp.part)
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
                    each_token(numbers, (row, 0), sp.run_left, sp, sp.run)
                    ldr(r7, sp.batch_left)
                # The batch's sums, rounded, to those of all.
                unit_of_batch(r4, r5, r6, sp)
                turn(r5, sp.run_left, sp, by=(r2, r7), run=sp.run)
                for i, total in enumerate(totals):
                    mov(r7, total)
                    lsl(r2, r7, 17)
                    lsr(r2, 17)
                    mul(r2, r6)
                    lsr(r2, 15)
                    asr(r7, 15)
                    mul(r7, r6)
                    add(r7, r2)
                    asr(r7, r5)
                    ldr(r2, at(r4, 4 * i))
                    adc(r2, r7)
                    str_(r2, at(r4, 4 * i))
                mov(r2, 0)
                for total in totals:
                    mov(total, r2)
                label("BATCH_END")
                mov(r2, table)
                ldr(r5, sp.tokens_left)
            bump(sp.column, 4, by=r4)
            ldr(r5, sp.row_bytes)
    mov(r0, 0)
