"""The kernels of plain.py in Thumb assembler: same bits, less than half of viper's instructions, about half
of its code.

ARMv6-M only, so RP2040 and RP2350 run the same code. Bounds B1..B6 are those of plain.py, fields those of
params.py. `data(2, ...)` is an instruction that MicroPython's assembler lacks, written beside it in the
assembler's own words. r8 and above hold what a loop only adds, compares or copies; r8 to r11 belong to the
caller and are saved, r12 and lr are free.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from field_tables.kernels import ATTEND, CALLS, ENCODE, LAYER, QUERY, RUN, VECTOR
from kernelgen.fragments.batches import *
from kernelgen.fragments.common import *
from kernelgen.fragments.quantize import *
from kernelgen.fragments.runs import *
from kernelgen.fragments.weigh import *
from kernelgen.language import *
from kernelgen.operands import sp as stack


@called
def qk(buffer: Register, same: Register, mask: Register, attend: Register) -> None:
    """Dots of a slice with every visible row: plain.py's qk, B1.

    From int8 codes [RUNS][RUN_COUNT][WIDTH] at CODES and the query's words at QUERY to int32[N] at DOTS, a
    column of 8 codes after the other.

    r0 codes, r1 mask, r2 r3 r4 r8 query words, r9 result, r10 its end in this run, r11 constant, r12 gap
    """
    a, run = Array(r3, ATTEND), Array(r7, RUN)
    result, end, constant_, gap = r9, r10, r11, r12

    def dots(name: str, first: bool) -> None:
        with repeat(name, ne(r6, end)):
            ldm(r0, r6, r7)
            add(r0, gap)
            mov(r5, r6)
            product(r5, r1, r2)
            lsr(r6, 8)
            product(r6, r1, r3)
            add(r5, r6)
            mov(r6, r7)
            product(r6, r1, r4)
            add(r5, r6)
            lsr(r7, 8)
            product(r7, r1, r8)
            add(r5, r7)
            if first:
                add(r5, constant_)
            mov(r6, result)
            if not first:
                plus(r5, at(r6), by=r7)
            stm(r6, r5)
            mov(result, r6)

    with frame("a buffer column run runs_left columns") as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        mov(r1, r2)
        ldr(r4, a.WIDTH)
        add(r4, 7)
        lsr(r4, 3)
        lsl(r4, 3)
        str_(r4, sp.columns)
        put(sp.column, 0, by=r4)
        with repeat("COLUMN", lt(r4, r5)):
            ldr(r3, sp.a)
            ldr(r4, a.DOTS)
            plus(r4, sp.buffer, by=r5)
            mov(result, r4)
            begin_runs(a, sp)
            with repeat("RUN", ne):
                query_of_run(a, sp)
                ldr(r5, a.SLICE)
                lsl(r0, r5, 2)
                put(constant_, at(r4, r0), by=r0)
                ldr(r0, a.SLICES)
                lsl(r0, 2)
                add(r4, r0)
                ldr(r0, sp.columns)
                mul(r0, r5)
                plus(r0, sp.column, by=r2)
                lsl(r0, 1)
                add(r4, r0)
                ldr(r0, a.WIDTH)
                mul(r0, r5)
                add(r0, r2)
                add(r0, r6)
                plus(r0, a.CODES, by=r5)
                plus(r0, run.RUN_CODES, by=r5)
                ldr(r5, a.ROW)
                sub(r5, 8)
                mov(gap, r5)
                results_of_run(result, end, sp)
                ldr(r3, at(r4, 4))
                put(r8, at(r4, 12), by=r5)
                with when(eq(r2, 0)):
                    ldr(r2, at(r4))
                    ldr(r4, at(r4, 8))
                    dots("FIRST", first=True)
                with otherwise():  # added to the dot so far
                    ldr(r2, at(r4))
                    ldr(r4, at(r4, 8))
                    dots("ADDED", first=False)
                bump(sp.runs_left, -1, by=r4)
            bump(sp.column, 8, by=r4)
            ldr(r5, sp.columns)
    mov(r0, 0)


@called
def score(buffer: Register, same: Register, spare: Register, attend: Register) -> None:
    """Dots of a slice times their scales, and the largest: plain.py's score, B3.

    From int32[N] at DOTS and uint16[N] at KSCALE, added up over slices in int32[N] at SCORES; the largest to
    MAX. With one slice, whose scores replace its dots, and dots that need no shift,
    four tokens a turn.

    r0 dots, r1 scales, r3 tokens left, r6 result, r7 slice, r8 largest,
    r9 dot shift
    """
    a, record = Array(r3, ATTEND), Array(r4, QUERY)
    largest, shift, end, saved_a = r8, r9, r10, r12

    def scaled(dot: Register, scale: Register) -> None:
        """r2 is used."""
        lsr(r2, scale, 5)
        mul(dot, r2)
        lsl(scale, 27)
        lsr(scale, 27)
        asr(dot, scale)

    with frame():
        put(largest, -(1 << 30), by=r7)
        ldr(r7, a.SLICE)
        ldr(r1, a.SCALE_ROW)
        mul(r1, r7)
        plus(r1, a.KSCALE, by=r4)
        add(r1, r0)
        locate(r4, a.QUERY, r0)
        put(shift, record.QUERY_DOWN, by=r5)
        locate(r6, a.SCORES, r0)
        plus(r0, a.DOTS, by=r4)
        mov(saved_a, r3)
        ldr(r4, a.SLICES)
        ldr(r3, a.N)
        branch(ne(r4, 1), "SINGLE")
        branch(ne(r5, 0), "SINGLE")
        # The odd ones come first.
        mov(r4, 3)
        and_(r4, r3)
        branch(eq, "FOURS")
        mov(r3, r4)
        b("SINGLE")
        label("FOURS")
        index(r3, 2, r0)
        mov(end, r3)
        b("TEST")
        with repeat("FOUR", ne(r0, end)):
            ldm(r0, r4, r5, r6, r7)
            for i, x in enumerate((r4, r5, r6, r7)):
                ldrh(r3, at(r1, 2 * i))
                scaled(x, r3)
                # Seldom, and a branch that is not taken costs less.
                branch(gt(x, largest), f"ABOVE{i}")
                label(f"BELOW{i}")
            add(r1, 8)
            sub(r0, 16)
            stm(r0, r4, r5, r6, r7)
            label("TEST")
        b("END")
        for i, x in enumerate((r4, r5, r6, r7)):
            label(f"ABOVE{i}")
            mov(largest, x)
            b(f"BELOW{i}")
        with repeat("SINGLE", ne):
            ldm(r0, r4)
            mov(r5, shift)
            asr(r4, r5)
            ldrh(r5, at(r1))
            add(r1, 2)
            scaled(r4, r5)
            with when(ne(r7, 0)):
                plus(r4, at(r6), by=r5)
            stm(r6, r4)
            with when(gt(r4, largest)):
                mov(largest, r4)
            sub(r3, 1)
        mov(r3, saved_a)
        ldr(r4, a.SLICES)
        branch(ne(r4, 1), "END")
        mov(r4, shift)
        branch(ne(r4, 0), "END")
        ldr(r3, a.N)
        lsr(r3, 2)
        lsl(r3, 2)
        b("FOURS")
        label("END")
        mov(r3, saved_a)
        put(a.MAX, largest, by=r4)
    mov(r0, 0)


@called
def weights(buffer: Register, same: Register, tables: Register, attend: Register) -> None:
    """Scores to the small weights of a slice: plain.py's weights, B4 to B6.

    From int32[N] at SCORES and uint16[N] at VSCALE to int32[N] at DOTS, a word at UNITS for each batch of 8,
    the sum to WHI and WLO, its bits to UNIT, and CORR. `tables` is tables.TABLES.

    r0 weights, r1 scales, r2 shift down, r3 mantissa, r4 tables, r8 what makes scores distances, r9 the one
    that weighs nothing, r10 units, r11 sum of weights, r12 the same times their scales, of a batch, lr of
    all; distances are negative, and so is r3. Then r1 weights with 20 bits behind the point, r2 what makes
    weights such, r3 their shift down, r8 half of 1 of those, r9 the batch's first 15 bits, r10 reciprocals,
    r11 sum of small weights, of a batch that is split the first parts', r12 bits of the batch's sum less 1,
    lr units
    """
    a = Array(r3, ATTEND)
    near = a.on(r4, a.HEAD_DIM)
    distance, far, units, total, scaled, all_scaled = r8, r9, r10, r11, r12, lr
    half, fifteen, reciprocals, whole, highest, unit_at = r8, r9, r10, r11, r12, lr

    def token(n: int) -> None:
        """The step that weighs nothing is not met exactly: what lies up to 1,024 steps behind it becomes 0 by
        itself, as it is shifted down by 28 at least."""
        label(f"T{n}")
        ldr(r5, at(r0, 4 * n))
        add(r5, distance)
        asr(r5, r2)
        branch(le(r5, far), f"FAR{n}")
        mul(r5, r3)
        lsl(r6, r5, 5)
        lsr(r6, r6, 24)
        lsl(r6, r6, 1)
        ldrh(r6, at(r4, r6))
        lsr(r5, r5, 27)
        lsl(r7, r6, 15)
        lsr(r7, r5)
        add(total, r7)
        ldrh(r7, at(r1, 2 * n))
        mul(r6, r7)
        lsl(r7, r7, 27)
        lsr(r7, r7, 27)
        add(r5, r7)
        lsr(r6, r5)
        if n:
            add(scaled, r6)
        else:
            label("FIRST")
            mov(scaled, r6)
        label(f"WEIGHED{n}")
        str_(r6, at(r0, 4 * n))

    def far_token(n: int) -> None:
        label(f"FAR{n}")
        mov(r6, 0)
        b(f"WEIGHED{n}" if n else "FIRST")

    def carry(sp: Frame) -> None:
        """r5 the sum's upper bits, r6 its lower 16, of which r6 has more."""
        lsr(r7, r6, 16)
        uxth(r6, r6)
        mov(total, r6)
        ldr(r5, sp.sum_high)
        add(r5, r7)
        str_(r5, sp.sum_high)

    with frame(
        "fractions f1 f2 f3 f4 f5 f6 f7 a buffer tokens_end whole_end unit corr sum_high least quarter "
        "batch_start number units"
    ) as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        locate(r4, a.QUERY, r0)
        distance_scale(a)
        limit_scale(down=r6)
        # 8192 steps are r9 distances, or up to 3 % less: 2^28 / m is in the table of reciprocals, at byte 512
        # those of sums from 131 on.
        lsr(r4, r5, 7)
        lsl(r4, r4, 1)
        add(r4, r2)
        add(r4, 200)
        ldrh(r4, at(r4, 56))
        lsl(r4, r4, 2)
        mov(r1, 17)
        sub(r1, r1, r7)
        lsr(r4, r1)
        add(r4, 1)
        neg(r4, r4)
        mov(far, r4)
        # A distance times r3 has 19 bits behind the point, of any e 32 in all.
        add(r1, 2)
        lsl(r5, r1)
        neg(r5, r5)
        str_(r5, sp.number)
        str_(r6, sp.unit)
        # Shifted down, a negative one is rounded towards 0.
        mov(r7, 1)
        lsl(r7, r6)
        sub(r7, 1)
        minus(r7, a.MAX, by=r4)
        mov(distance, r7)
        ldr(r6, a.N)
        str_(r2, sp.units)
        put(units, a.UNITS, by=r4)
        add(units, r0)
        put(sp.sum_high, 0, by=r4)
        mov(total, r4)
        mov(all_scaled, r4)
        ldr(r1, a.SCALE_ROW)
        times(r1, a.SLICE, by=r4)
        plus(r1, a.VSCALE, by=r4)
        add(r1, r0)
        ldr(r4, a.DOTS)
        add(r0, r4)
        str_(r0, sp.batch_start)
        lsr(r2, r6, 3)
        lsl(r2, r2, 5)
        add(r2, r0)
        str_(r2, sp.whole_end)
        lsl(r2, r6, 2)
        add(r2, r0)
        str_(r2, sp.tokens_end)
        ldr(r7, a.SLICES)
        with when(ne(r7, 1)):
            # Scores serve every slice.
            ldr(r2, sp.buffer)
            locate(r5, a.SCORES, r2)
            with repeat("COPY", ne):
                ldm(r5, r7)
                stm(r0, r7)
                sub(r6, 1)
            ldr(r0, sp.batch_start)
        ldr(r2, sp.unit)
        ldr(r3, sp.number)
        ldr(r4, sp.units)
        b("CHECK")
        for n in range(4):
            far_token(n)
        label("BATCH")
        for n in range(8):
            token(n)
        add(r0, 32)
        add(r1, 16)
        mov(r7, units)
        mov(r6, scaled)
        stm(r7, r6)
        mov(units, r7)
        lsr(r6, r6, 13)
        add(all_scaled, r6)
        # The sum of all weights has up to 46 bits, that of a batch 30.
        mov(r6, total)
        lsr(r7, r6, 31)
        with when(ne):
            carry(sp)
        label("CHECK")
        ldr(r5, sp.whole_end)
        branch(cs(r0, r5), "LAST")
        b("BATCH")
        for n in range(4, 8):
            far_token(n)
        label("LAST")
        branch(hi, "MADE")
        # What is left of a batch: as the last of its tokens.
        ldr(r6, sp.tokens_end)
        sub(r6, r6, r0)
        branch(eq, "MADE")
        put(scaled, 0, by=r7)
        mov(r7, 32)
        sub(r7, r7, r6)
        sub(r0, r0, r7)
        lsr(r7, r7, 1)
        sub(r1, r1, r7)
        for n in range(1, 8):
            sub(r7, 2)
            with when(eq):
                b(f"T{n}")
        label("MADE")
        # Reciprocals come for one less, and for a sum.
        add(r4, 250)
        mov(reciprocals, r4)
        mov(r6, total)
        carry(sp)
        # Zeros make the last batch whole.
        mov(r3, 0)
        ldr(r4, sp.batch_start)
        sub(r4, r0)
        mov(r7, 31)
        and_(r4, r7)
        with when(ne), repeat("ZERO", ne):
            stm(r0, r3)
            sub(r4, 4)
        ldr(r3, sp.a)
        str_(r5, a.WHI)
        str_(r6, a.WLO)
        # Its bits: at least those of the largest weight.
        mov(r6, 27)
        lsr(r5, 11)
        with repeat("UNIT", ne):
            add(r6, 1)
            lsr(r5, 1)
        point(r4, a.HEAD_DIM)
        str_(r6, near.UNIT)
        str_(r6, sp.unit)
        # What all together weigh less than 2^-12 of the sum is left out.
        mov(r7, all_scaled)
        lsl(r4, r7, 1)
        ldr(r5, a.N)
        add(r5, 7)
        lsr(r5, 3)
        with repeat("BATCHES", ne):
            lsr(r4, 1)
            lsr(r5, 1)
        # And what would be shifted down by more than 31: of r6 bits.
        sub(r6, 31)
        with when(gt(r6, 0)):
            mov(r5, 1)
            lsl(r5, r6)
            sub(r5, 1)
            keep_larger(r4, r5, hi)
        str_(r4, sp.least)
        # More than that is a quarter of all.
        add(r5, r7, 1)
        lsl(r5, r5, 11)
        sub(r5, 1)
        lsr(r6, r7, 19)
        with when(ne):
            mvn(r5, r6)
        str_(r5, sp.quarter)
        ldr(r0, sp.buffer)
        locate(r4, a.UNITS, r0)
        mov(unit_at, r4)
        ldr(r0, sp.batch_start)
        put(half, 1 << 19, by=r4)
        put(sp.corr, 0, by=r4)
        put(highest, 26, by=r4)
        mov(r7, unit_at)
        with repeat("ROUND", lt(r0, r5)):
            ldr(r5, at(r7))
            ldr(r4, sp.least)
            with when(ls(r5, r4)):
                # It weighs nothing.
                add(r0, 32)
                mov(r4, 2 << 4 | 1)
                lsl(r4, 20)
                b("STORE")
                label("MUCH")
                b("QUARTER")
            # The highest bit of the batch's sum, from that of the last one on.
            mov(r3, highest)
            mov(r6, r5)
            lsr(r6, r3)
            branch(eq(r6, 1), "FOUND")
            branch(cc, "DOWN")
            with repeat("UP", ne(r6, 1)):
                add(r3, 1)
                lsr(r6, 1)
            b("MOVED")
            with repeat("DOWN", eq):
                sub(r3, 1)
                mov(r6, r5)
                lsr(r6, r3)
            label("MOVED")
            mov(highest, r3)
            label("FOUND")
            mov(r1, r5)
            mov(r4, 0)
            sub(r3, 14)
            with when(mi):
                # Of less than 15 bits all are to be shifted up: what they are multiplied with is.
                neg(r4, r3)
                lsl(r5, r4)
                mov(r3, 0)
            lsr(r5, r3)
            mov(fifteen, r5)
            lsr(r6, r5, 7)
            lsr(r7, r6, 6)
            add(r7, r6)
            lsl(r6, r7, 1)
            add(r6, reciprocals)
            ldrh(r2, at(r6, 2))
            mul(r5, r2)
            str_(r5, sp.number)
            lsl(r2, r4)
            ldr(r4, sp.quarter)
            branch(hi(r1, r4), "MUCH")
            label("WHOLE")
            mov(r1, stack)
            for first in (True, False):
                ldm(r0, r4, r5, r6, r7)
                for x in (r4, r5, r6, r7):
                    lsr(x, r3)
                    mul(x, r2)
                stm(r1, r4, r5, r6, r7)
                for x in (r4, r5, r6, r7):
                    add(x, half)
                    lsr(x, x, 20)
                    if first and x == r4:
                        mov(whole, x)
                    else:
                        add(whole, x)
                sub(r0, 16)
                stm(r0, r4, r5, r6, r7)
            mov(r4, whole)
            lsl(r4, 20)
            ldr(r5, sp.number)
            sub(r4, r5)
            absolute(r4, r3)
            mov(r5, 5)
            lsl(r5, 18)
            branch(ls(r4, r5), "SETTLED")
            # Only where one has a quarter.
            sub(r0, 32)
            mov(r2, 0)
            for _ in range(4):
                ldm(r0, r6, r7)
                orr(r2, r6)
                orr(r2, r7)
            lsr(r2, 6)
            branch(eq, "SETTLED")
            put(sp.units, unit_at, by=r7)
            mov(unit_at, r0)
            with repeat("OFF", hi(r4, r5)):
                # Too many were rounded up, or down: the one that moved most is rounded the other way.
                str_(r4, sp.number)
                mov(r5, stack)
                sub(r0, r1)
                add(r0, r5)
                mov(r1, 0)
                with repeat("FARTHEST", ne(r0, unit_at)):
                    ldm(r0, r6)
                    ldm(r5, r7)
                    lsl(r6, 20)
                    sub(r6, r7)
                    with_sign(r6, r3)
                    with when(gt(r6, r1)):
                        mov(r1, r6)
                        mov(r2, r0)
                sub(r1, r5, r0)
                add(r1, r2)
                sub(r1, 4)
                sub(r2, 4)
                mov(r6, 1)
                orr(r6, r3)
                ldr(r7, at(r2))
                sub(r7, r6)
                str_(r7, at(r2))
                lsl(r7, 20)
                str_(r7, at(r1))
                neg(r6, r6)
                add(whole, r6)
                mov(r1, r5)
                ldr(r4, sp.number)
                mov(r5, 1)
                lsl(r5, 20)
                sub(r4, r5)
                mov(r5, 5)
                lsl(r5, 18)
            put(unit_at, sp.units, by=r7)
            label("SETTLED")
            mov(r4, fifteen)
            mov(r5, whole)
            lsl(r6, r5, 1)
            add(r6, reciprocals)
            ldrh(r6, at(r6))
            mul(r4, r6)
            lsr(r4, 14)
            ldr(r6, sp.unit)
            mov(r7, highest)
            sub(r6, r7)
            b("CORRECT")
            label("QUARTER")
            # A quarter of all: two parts, of which the second counts 32nds of the first; what is left over
            # goes on.
            ldr(r6, sp.unit)
            mov(r1, highest)
            sub(r6, r1)
            with when(ge(r6, 27)):
                b("WHOLE")
            put(whole, 0, by=r6)
            add(r7, 1)
            lsl(r7, 6)
            str_(r7, sp.number)
            mov(r4, 0)
            mov(r1, 0)
            mov(r5, r0)
            add(r5, 32)
            with repeat("PARTS", ne(r0, r5)):
                ldr(r6, at(r0))
                lsr(r6, r3)
                mul(r6, r2)
                add(r4, r6)
                lsr(r6, r4, 20)
                add(whole, r6)
                lsl(r7, r4, 12)
                lsr(r7, 27)
                add(r1, r7)
                lsl(r7, 16)
                orr(r6, r7)
                stm(r0, r6)
                lsl(r4, 17)
                lsr(r4, 17)
            ldr(r4, sp.number)
            ldr(r6, sp.unit)
            mov(r7, highest)
            sub(r6, r7)
            lsl(r1, 7)
            mul(r1, r4)
            lsr(r1, r6)
            lsr(r1, 5)
            bump(sp.corr, r1, by=r5)
            mov(r5, 1)
            lsl(r5, 8)
            orr(r6, r5)
            mov(r5, whole)
            label("CORRECT")
            lsl(r5, 7)
            mul(r5, r4)
            lsr(r5, r6)
            lsl(r6, 16)
            orr(r4, r6)
            bump(sp.corr, r5, by=r6)
            label("STORE")
            mov(r7, unit_at)
            stm(r7, r4)
            mov(unit_at, r7)
            ldr(r5, sp.tokens_end)
        ldr(r3, sp.a)
        put(a.CORR, sp.corr, by=r4)
    mov(r0, 0)


@called
def av(buffer: Register, same: Register, mask: Register, attend: Register) -> None:
    """Small weights times the codes of a slice, summed over tokens: plain.py's av, B5 and B6.

    From int32[N] at DOTS, words at UNITS and codes at VCODES to int32[WIDTH] at SUMS, a column of 8 codes
    after the other.

    r0 codes, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this part
    """
    a, run = Array(r3, ATTEND), Array(r4, RUN)
    gap = r12


    def codes(split: bool) -> None:
        ldm(r0, r4, r5)
        add(r0, gap)
        weight(r3, split)
        mov(r6, r4)
        lane(r6, r8)
        lsr(r4, 8)
        lane(r4, r9)
        mov(r6, r5)
        lane(r6, r10)
        lsr(r5, 8)
        lane(r5, r11)

    with frame(
        "a buffer column run tokens_left run_left batch_left units sums mask columns_left " + SPLIT
    ) as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        str_(r2, sp.mask)
        put(sp.column, 0, by=r4)
        str_(r4, sp.part)
        with repeat("COLUMN", gt(r5, 8)):
            begin_column(a, 2, sp)
            stm(r4, r6, r7)
            stm(r4, r6, r7)
            ldr(r1, a.WIDTH)
            sub(r1, r2)
            str_(r1, sp.columns_left)
            with when(gt(r1, 4)):
                stm(r4, r6, r7)
                stm(r4, r6, r7)
            begin_batches(a, sp)
            ldr(r4, a.ROW)
            sub(r4, 8)
            mov(gap, r4)
            point(r4, a.RUN)
            str_(r4, sp.run)
            ldr(r2, sp.mask)
            with repeat("BATCH", ne(r5, 0)):
                next_batch(sp)
                with repeat("PART", ne(r7, 0)):  # a batch may span runs
                    ldr(r6, sp.run_left)
                    with when(eq(r6, 0)):
                        ldr(r3, sp.a)
                        ldr(r4, sp.run)
                        ldr(r0, a.SLICE)
                        times(r0, a.WIDTH, by=r5)
                        plus(r0, a.VCODES, by=r5)
                        plus(r0, sp.column, by=r5)
                        plus(r0, sp.buffer, by=r5)
                        take_run(run.RUN_CODES, run.RUN_COUNT, run.RUN_WORDS, sp)
                    next_part(sp.run_left, sp)
                    each_token(codes, (gap, 8), sp.run_left, sp, sp.run)
                    ldr(r7, sp.batch_left)
                unit_of_batch(r7, r4, r3, sp)
                turn(r4, sp.run_left, sp, by=(r5, r6), run=sp.run)
                add_lane(r8, 0, 8)
                add_lane(r9, 4, 12)
                ldr(r2, sp.columns_left)
                with when(gt(r2, 4)):
                    add_lane(r10, 16, 24)
                    add_lane(r11, 20, 28)
                end_batch(sp)
            bump(sp.column, 8, by=r4)
            ldr(r5, sp.columns_left)
    mov(r0, 0)


@called
def emit(buffer: Register, attend: Register, out: Register) -> None:
    """Sums over their weights, to the slice's place in the result: plain.py's emit, B6.

    From int32[WIDTH] at SUMS, CORR, WHI and WLO to SLICE_WIDTH values of `out`: int16 2^-(OUT_SHIFT - BIAS),
    which saturate, or float32 if OUT_SHIFT is 0.

    r0 sums, r1 result, r4 1 / sum of weights, r8 -CORR, of int16 and r9, half of what is cut, lr end of the
    sums; int16: r2 last shift down, r6 up, r12 its half, r10 r11 limits; float32: r10 exponent
    """
    a, record = Array(r1, ATTEND), Array(r3, QUERY)
    corr, half, end = r8, r9, lr
    with frame():
        locate(r3, a.QUERY, r0)
        ldr(r3, record.QUERY_AT)
        ldr(r4, a.SLICE_WIDTH)
        ldr(r5, a.SLICE)
        mul(r5, r4)
        add(r3, r5)
        plus(r0, a.SUMS, by=r5)
        index(r4, 2, r0)
        mov(end, r4)
        put(r10, a.OUT_SHIFT, by=r5)
        value_bytes(r3, r5)
        add(r2, r3)
        # The 16 bits that the sum of weights begins with.
        ldr(r3, a.WHI)
        ldr(r4, a.WLO)
        point(r5, a.HEAD_DIM)
        ldr(r5, a.on(r5, a.HEAD_DIM).UNIT)
        lsl(r4, 16)
        sub(r5, 32)
        with when(lt(r5, 0)), repeat("LOW", ne):
            add(r4, r4)
            adc(r3, r3)
            add(r5, 1)
        lsr(r3, r5)
        constant(r6, 1 << 30)
        lsl(r3, 15)
        divide("DIVIDE", r4, r6, r3, bits=16, left=r7)
        put(half, 1 << 12, by=r5)
        ldr(r6, a.CORR)
        neg(r6, r6)
        mov(corr, r6)
        ldr(r6, a.VEXP)
        minus(r6, a.V_BIAS, by=r3)
        mov(r1, r2)
        mov(r3, r10)
        with when(ne(r3, 0)):
            last_half, most, least = r12, r10, r11
            add(corr, half)
            mov(r2, 64)
            sub(r2, r3)
            sub(r2, r6)
            with when(gt(r2, 30)):
                mov(r4, 0)
                mov(r2, 1)
            mov(r6, 0)
            mov(r3, 0)
            with when(gt(r2, 0)):
                half_of(r3, bits=r2)
                b("READY")
            neg(r6, r2)
            mov(r2, 0)
            branch(le(r6, 15), "READY")
            mov(r6, 15)
            label("READY")
            mov(last_half, r3)
            put(most, (1 << 15) - 1, by=r3)
            neg(r3, r3)
            mov(least, r3)
            with repeat("SHORT", ne(r0, end)):
                ldm(r0, r3)
                add(r3, corr)
                asr(r3, 13)
                mul(r3, r4)
                add(r3, last_half)
                asr(r3, r2)
                at_most(r3, most)
                at_least(r3, least)
                lsl(r3, r6)
                at_most(r3, most)
                at_least(r3, least)
                strh(r3, at(r1))
                add(r1, 2)
        with otherwise():
            exponent = r10
            add(r6, 154)
            mov(exponent, r6)
            with repeat("FLOAT", ne(r0, end)):
                ldm(r0, r2)
                add(r2, corr)
                branch(eq(r2, 0), "STORE")
                absolute(r2, r3)
                lsl(r6, r3, 31)
                mov(r7, exponent)
                b("ENOUGH")
                with repeat("MORE", eq):
                    add(r2, r2)
                    sub(r7, 1)
                    label("ENOUGH")
                    lsr(r3, r2, 27)
                add(r2, half)
                lsr(r2, 13)
                mul(r2, r4)
                lsr(r2, 4)
                with endless("ABOVE", "BELOW"):
                    lsr(r3, r2, 24)
                    branch(eq, "BELOW")
                    lsr(r2, 1)
                    add(r7, 1)
                lsl(r2, 9)
                lsr(r2, 9)
                lsl(r3, r7, 23)
                orr(r2, r3)
                orr(r2, r6)
                branch(ge(r7, 1), "STORE")
                mov(r2, 0)
                label("STORE")
                stm(r1, r2)
    mov(r0, 0)


@called
def scales(buffer: Register, same: Register, which: Register, attend: Register) -> None:
    """Scales of the visible tokens relative to the largest exponent: plain.py's scales, B2.

    From float16[SLICES][RUNS][RUN_COUNT] at SCALES or, with `which` 1, VSCALES to uint16[SLICES][N] at
    KSCALE or VSCALE; the exponent to KEXP or VEXP.

    LARGEST: r1 largest, r2 scales of the slice, r6 run, r7 runs left; SLICE: r0 scales, r2 result, r6 2^31,
    r7 exponent, lr end of the run
    """
    a, run = Array(r3, ATTEND), Array(r6, RUN)
    of_which, run_ = a.on(r4), run.on(r4)
    with frame("a scales result slices_left which run runs_left", saved=False) as sp:
        str_(r3, sp.a)
        str_(r2, sp.which)
        lsl(r4, r2, 2)
        add(r4, r3)
        locate(r5, of_which.SCALES, r0)
        str_(r5, sp.scales)
        locate(r2, of_which.KSCALE, r0)
        str_(r2, sp.result)
        mov(r2, r5)
        mov(r1, 0)
        put(sp.slices_left, a.SLICES, by=r4)
        with repeat("LARGEST", ne):
            point(r6, a.RUN)
            ldr(r7, a.RUNS)
            with repeat("PART", ne):
                locate(r0, run.RUN_SCALES, r2)
                ldr(r5, run.RUN_COUNT)
                add(r6, run.RUN_WORDS.offset)
                index(r5, 1, r0)
                with repeat("SCALE", ne(r0, r5)):
                    ldrh(r4, at(r0))
                    add(r0, 2)
                    keep_larger(r1, r4, hi)
                sub(r7, 1)
            plus(r2, a.SCALE_STRIDE, by=r4)
            bump(sp.slices_left, -1, by=r4)
        lsr(r4, r1, 10)
        with when(eq):
            # Of 11 bits, as the others.
            mov(r4, 1)
            branch(eq(r1, 0), "NONE")
            b("ENOUGH")
            with repeat("MORE", eq):
                lsl(r1, 1)
                sub(r4, 1)
                label("ENOUGH")
                lsr(r5, r1, 10)
            label("NONE")
        mov(r1, r4)
        ldr(r4, sp.which)
        index(r4, 2, r3)
        mov(r7, r1)
        add(r1, 10)
        str_(r1, of_which.KEXP)
        constant(r6, 1 << 31)
        put(sp.slices_left, a.SLICES, by=r4)
        with repeat("SLICE", ne):
            ldr(r2, sp.result)
            begin_runs(a, sp)
            with repeat("RUN", ne):
                ldr(r4, sp.run)
                ldr(r0, run_.RUN_SCALES)
                plus(r0, sp.scales, by=r5)
                ldr(r5, run_.RUN_COUNT)
                index(r5, 1, r0)
                mov(lr, r5)
                add(r4, run_.RUN_WORDS.offset)
                str_(r4, sp.run)
                with repeat("TOKEN", ne(r0, lr)):
                    ldrh(r4, at(r0))
                    add(r0, 2)
                    lsr(r5, r4, 10)
                    branch(eq, "TINY")
                    lsl(r4, 22)
                    lsr(r4, 1)
                    orr(r4, r6)
                    sub(r5, r7, r5)
                    label("PLACE")
                    at_most(r5, 30)
                    plus(r5, sp.which, by=r1)
                    lsr(r4, 16)
                    add(r4, r5)
                    label("NUMBER")
                    strh(r4, at(r2))
                    add(r2, 2)
                bump(sp.runs_left, -1, by=r4)
            ldr(r4, sp.scales)
            plus(r4, a.SCALE_STRIDE, by=r5)
            str_(r4, sp.scales)
            ldr(r4, sp.result)
            plus(r4, a.SCALE_ROW, by=r5)
            str_(r4, sp.result)
            bump(sp.slices_left, -1, by=r4)
        b("END")
        label("TINY")
        branch(eq(r4, 0), "NUMBER")
        lsl(r4, 21)
        sub(r5, r7, 1)
        b("TOP")
        with repeat("UP", pl):
            lsl(r4, 1)
            add(r5, 1)
            label("TOP")
            mov(r1, r4)
            cmp(r1, 0)
        b("PLACE")
        label("END")
    mov(r0, 0)


@kernel
def encode(buffer: Register, k: Register, v: Register, storing: Register) -> None:
    """A token's K and V to codes and scales at slot E_SLOT: plain.py's encode.

    From E_COUNT values of k and of v, int16 or float32, to codes[E_COUNT] and float16 scales; codes have 4
    bits where VECTOR_MOST is 7, and of V, where it is 0, none are made. Returns -1 - which vector has a value
    too large. B1.

    r0 values, r1 codes, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift or 0 for float32, lr
    end, r12 what is added to a code of 4 bits; 0: it goes above the one before
    """
    e, layer, vector = Array(r3, ENCODE), Array(r4, LAYER), Array(r7, VECTOR)
    e_ = e.on(r7)

    def codes(name: str, magnitude: Callable[[], None]) -> None:
        """Of 8 bits: 128 above it."""
        with repeat(name, ne(r0, lr)):
            magnitude()
            round_code()
            with_sign(r6, r7)
            add(r6, 128)
            strb(r6, at(r1))
            add(r1, 1)

    def nibbles() -> None:
        """Of 4 bits: one is first put in the low nibble, 8 above it; the next one is added."""
        with repeat("NIBBLE", ne(r0, lr)):
            next_magnitude()
            round_code()
            with_sign(r6, r7)
            mov(r4, r12)
            with when(ne(r4, 0)):
                add(r6, r4)
                strb(r6, at(r1))
                put(r12, 0, by=r4)
                b("HALF")
            lsl(r6, 4)
            put(r12, 128 + 8, by=r4)
            ldrb(r4, at(r1))
            add(r6, r4)
            strb(r6, at(r1))
            add(r1, 1)
            label("HALF")

    with frame(
        "e buffer v shift head scale slice values_left vector group_end layer slice_end record most"
    ) as sp:
        begin_vectors(e, sp)
        with repeat("VECTOR", ne(r5, 2)):
            ldr(r0, sp.buffer)
            plus(r0, layer.LAYER_CODES, by=r6)
            mov(r7, vector.VECTOR_WORDS.offset)
            mul(r7, r5)
            add(r7, r3)
            add(r7, e.E_K.offset)
            str_(r7, sp.record)
            plus(r0, vector.VECTOR_AT, by=r6)
            index(r5, 2, r4)
            put(sp.shift, layer.on(r5).LAYER_K_SHIFT, by=r5)
            ldr(r6, e.E_AT)
            value_bytes(r6, r5)
            add(r1, r6)
            ldr(r6, vector.VECTOR_MOST)
            with when(eq(r6, 0)):
                b("STORED")
            str_(r6, sp.most)
            ldr(r6, vector.VECTOR_ROW)
            times(r6, e.E_SLOT, by=r5)
            add(r6, r0)
            str_(r6, sp.head)
            locate(r6, vector.VECTOR_CODES, r0)
            begin_groups(e, sp)
            with repeat("GROUP", ne):
                begin_group(e, sp)
                # r6 t = (r4 + most - 1) // most, as 128 a + b = 127 a + (a + b); most r0, its bits r2
                label("LARGEST")
                mov(r2, 7)
                ldr(r0, sp.most)
                with when(eq(r0, 7)):
                    mov(r2, 3)
                add(r4, r0)
                sub(r4, 1)
                mov(r6, 0)
                with endless("FOLD", "FOLDED"):
                    mov(r7, r4)
                    lsr(r7, r2)
                    branch(eq, "FOLDED")
                    add(r6, r7)
                    and_(r4, r0)
                    add(r4, r7)
                with when(eq(r4, r0)):
                    add(r6, 1)
                mov(r7, 12)
                sub(r2, r7, r2)
                eleven_bits(by=r7)
                store_scale(e, sp)
                with repeat("PIECE", ne(r0, r4)):
                    ldr(r7, sp.e)
                    ldr(r4, e_.E_WIDTH)
                    mov(r6, r11)
                    value_bytes(r4, r6)
                    add(r4, r0)
                    mov(lr, r4)
                    ldr(r4, e_.E_SLICES)
                    ldr(r7, sp.record)
                    ldr(r5, sp.slice)
                    ldr(r6, vector.VECTOR_BYTES)
                    mov(r1, r6)
                    mul(r1, r5)
                    ldr(r7, sp.head)
                    add(r1, r7)
                    add(r6, r1)
                    str_(r6, sp.slice_end)
                    add(r5, 1)
                    with when(eq(r5, r4)):
                        mov(r5, 0)
                        mov(r4, r7)
                        ldr(r7, sp.record)
                        plus(r4, vector.VECTOR_HEAD, by=r6)
                        str_(r4, sp.head)
                    str_(r5, sp.slice)
                    ldr(r4, sp.most)
                    branch(eq(r4, 7), "NIBBLES")
                    mov(r4, r11)
                    branch(eq(r4, 0), "REAL")
                    codes("WHOLE", int16_magnitude)
                    b("BYTES")
                    codes("REAL", float32_magnitude)
                    label("BYTES")
                    mov(r6, 128)
                    b("CODES")
                    label("NIBBLES")
                    put(r12, 128 + 8, by=r6)
                    nibbles()
                    mov(r6, r12)
                    with when(eq(r6, 0)):
                        add(r1, 1)
                        mov(r6, 128 + 8)
                    label("CODES")
                    ldr(r5, sp.slice_end)
                    with endless("PAD", "PADDED"):
                        branch(eq(r1, r5), "PADDED")
                        strb(r6, at(r1))
                        add(r1, 1)
                    ldr(r4, sp.group_end)
                next_group(e, sp)
            next_vector(e, sp)
        label("STORED")
        mov(r0, 0)
        label("REFUSE")


@kernel
def query(buffer: Register, q: Register, qs: Register, attend: Register) -> None:
    """Query records of all heads: plain.py's query, B1 and B3.

    From HEADS * HEAD_DIM values of q, and of qs if there are two SETS, int16 or float32, from element Q_AT
    on, to records at QUERIES, QUERY_BYTES each. Returns -1 if a value is not finite.

    r0 values, r1 words, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift (0: float32), lr end,
    r12 column of the word
    """
    a, record = Array(r3, ATTEND), Array(r1, QUERY)
    # The first fields, and those that are too far from the start: at CORR they are near.
    near, far, far_ = a.on(r7), a.on(r7, a.CORR), a.on(r3, a.CORR)
    with frame(
        "a record q qs heads_left sets_left most sum constants element next_words constant "
        "slices_left buffer"
    ) as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        point(r7, a.CORR)
        locate(r4, far.QUERIES, r0)
        str_(r4, sp.record)
        # Both sets are read from the same element on.
        put(sp.element, a.Q_AT, by=r4)
        value_bytes(r4, r5, far.Q_SHIFT)
        add(r1, r4)
        str_(r1, sp.q)
        add(r2, r4)
        str_(r2, sp.qs)
        put(sp.heads_left, far.HEADS, by=r4)
        with repeat("HEAD", ne):
            ldr(r3, sp.a)
            add(r3, a.CORR.offset)
            ldr(r7, far_.Q_SHIFT)
            put(sp.sets_left, far_.SETS, by=r6)
            mov(r4, 0)
            with repeat("SET", ne(r6, 0)):
                bump(sp.sets_left, -1, by=r6)
                ldr(r0, sp.q)
                with when(ne):
                    ldr(r0, sp.qs)
                ldr(r2, far_.HEAD_DIM)
                value_bytes(r2, r7)
                add(r2, r0)
                branch(eq(r7, 0), "FLOATS")
                scan_int16()
                b("SCANNED")
                scan_float32()
                label("SCANNED")
                ldr(r6, sp.sets_left)
            with when(ne(r7, 0)):
                normalize_int16()
            lsr(r5, r4, 24)
            branch(eq, "NOUGHT")
            with when(eq(r5, 255)):
                mov(r0, 0)
                mvn(r0, r0)
                b("REFUSE")
            normalize_float32()
            label("NOUGHT")
            constant(r4, 1 << 10)
            mov(r5, 0)
            b("SCALED")
            label("LARGEST")
            add(r4, 63)
            lsr(r6, r4, 6)
            mov(r2, 5)
            eleven_bits(by=r0)
            label("SCALED")  # r4 sm, r5 se
            ldr(r1, sp.record)
            str_(r4, record.QUERY_MANTISSA)
            constant(r6, 1 << 11)
            add(r6, r5)
            str_(r6, record.QUERY_EXP)
            mov(r10, r4)
            # 2^23 // 2 sm, bit by bit; sm has 11 bits
            lsl(r3, r4, 1)
            mov(r2, 0)
            constant(r6, 1 << 10)
            mov(r4, 13)
            long_divide(r2, r6, r3, left=r4)
            mov(r11, r7)
            magnitude_shifts()
            put(sp.most, 0, by=r4)
            ldr(r7, sp.a)
            add(r7, a.CORR.offset)
            put(sp.sets_left, far.SETS, by=r4)
            with repeat("CODES", ne(r4, 0)):
                ldr(r7, sp.a)
                put(sp.slices_left, near.SLICES, by=r5)
                lsl(r5, 2)
                ldr(r1, sp.record)
                add(r1, record.QUERY_WORDS.offset)
                put(sp.sum, 0, by=r4)
                add(r7, a.CORR.offset)
                ldr(r0, sp.q)
                bump(sp.sets_left, -1, by=r4)
                with when(ne):
                    ldr(r0, sp.qs)
                    plus(r1, far.QUERY_SET, by=r4)
                str_(r1, sp.constants)
                add(r1, r5)
                with repeat("PIECE", ne):
                    ldr(r7, sp.a)
                    ldr(r4, near.WIDTH)
                    add(r4, 7)
                    lsr(r4, 3)
                    lsl(r4, 1)
                    mov(r5, 0)
                    mov(r6, r1)
                    with repeat("CLEAR", ne):
                        stm(r6, r5)
                        stm(r6, r5)
                        sub(r4, 1)
                    str_(r6, sp.next_words)
                    str_(r5, sp.constant)
                    mov(r12, r5)
                    ldr(r4, near.SLICE_WIDTH)
                    lsl(r4, 1)
                    mov(r6, r11)
                    with when(eq(r6, 0)):
                        lsl(r4, 1)
                    add(r4, r0)
                    mov(lr, r4)
                    with repeat("VALUE", ne(r0, lr)):
                        next_magnitude()
                        round_code()
                        bump(sp.sum, r6, by=r4)
                        with_sign(r6, r7)
                        ldr(r4, sp.constant)
                        lsl(r5, r6, 7)
                        sub(r4, r5)
                        mov(r7, r12)
                        lsr(r5, r7, 1)
                        with when(ne):
                            # Columns 2 and 3: the lower half, and the borrow of a negative code
                            lsr(r5, r6, 31)
                            add(r4, r5)
                        with otherwise():
                            lsl(r6, 16)
                        str_(r4, sp.constant)
                        mov(r5, 1)
                        and_(r5, r7)
                        lsl(r5, 2)
                        bump(at(r1, r5), r6, by=r4)
                        add(r7, 1)
                        with when(eq(r7, 4)):
                            mov(r7, 0)
                            add(r1, 8)
                        mov(r12, r7)
                    ldr(r1, sp.next_words)
                    ldr(r6, sp.constants)
                    ldr(r5, sp.constant)
                    stm(r6, r5)
                    str_(r6, sp.constants)
                    bump(sp.slices_left, -1, by=r4)
                ldr(r4, sp.most)
                ldr(r5, sp.sum)
                with when(gt(r5, r4)):
                    str_(r5, sp.most)
                ldr(r4, sp.sets_left)
            # The shift that keeps all sums of dots within 19 bits.
            ldr(r3, sp.a)
            ldr(r5, a.SLICES)
            ldr(r4, sp.most)
            lsl(r6, r4, 7)
            sub(r4, r6, r4)
            constant(r2, 1 << 19)
            mov(r7, 0)
            sub(r7, 1)
            with repeat("DOTS", gt(r6, r2)):
                add(r7, 1)
                mov(r6, r4)
                lsr(r6, r7)
                add(r6, r5)
            ldr(r1, sp.record)
            str_(r7, record.QUERY_DOWN)
            ldr(r4, sp.element)
            str_(r4, record.QUERY_AT)
            add(r3, a.CORR.offset)
            plus(r4, far_.HEAD_DIM, by=r5)
            str_(r4, sp.element)
            plus(r1, far_.QUERY_BYTES, by=r6)
            str_(r1, sp.record)
            value_bytes(r5, r6, far_.Q_SHIFT)
            bump(sp.q, r5, by=r4)
            bump(sp.qs, r5, by=r4)
            bump(sp.heads_left, -1, by=r4)
        mov(r0, 0)
        label("REFUSE")


@kernel
def heads(buffer: Register, attend: Register, out: Register, calls: Register) -> None:
    """All heads of a layer, which row() of attention.py says how to go through: each kernel is called by its
    address, which takes a hundredth of a call from viper.

    r4 calls, r5 attend, r6 buffer, r8 out, r9 KV heads left, r10 heads left of this one, r11 those left that
    share scales
    """
    a, c = Array(r5, ATTEND), Array(r4, CALLS)
    out_, kv_left, left, shared = r8, r9, r10, r11

    def run(address: Place, third: int | Place | None = None) -> None:
        """With the buffer twice, a third argument unless r2 has it, and `a`."""
        mov(r0, r6)
        mov(r1, r6)
        if isinstance(third, Place):
            ldr(r2, third)
        elif third is not None:
            constant(r2, third)
        mov(r3, r5)
        ldr(r7, address)
        blx(r7)

    @contextmanager
    def slices(name: str) -> Iterator[None]:
        mov(r0, 0)
        with repeat(name, lt(r0, r1)):
            str_(r0, a.SLICE)
            yield
            ldr(r0, a.SLICE)
            add(r0, 1)
            ldr(r1, a.SLICES)

    def advance(field: Place, by: Place) -> None:
        ldr(r0, by)
        bump(field, r0, by=r1)

    with frame():
        mov(r4, r3)
        mov(r5, r1)
        mov(r6, r0)
        mov(out_, r2)
        ldr(r0, c.LAYER_AT)
        str_(r0, a.CODES)
        ldr(r1, c.TO_SCALES)
        add(r1, r0)
        str_(r1, a.SCALES)
        plus(r0, c.TO_VALUES, by=r1)
        str_(r0, a.VCODES)
        plus(r0, c.TO_VSCALES, by=r1)
        str_(r0, a.VSCALES)
        put(a.QUERY, c.FIRST_QUERY, by=r0)
        put(kv_left, c.KV_HEADS, by=r0)
        mov(r0, 0)
        str_(r0, a.SLICE)
        with endless("KV_HEAD", "DONE"):
            with when(eq(r0, 0)):  # no scales of this head yet
                run(c.CALL_SCALES, 0)
                run(c.CALL_SCALES, 1)
                put(shared, c.SHARED_SCALES, by=r0)
            put(left, c.GROUP_HEADS, by=r0)
            with endless("HEAD", "NEXT"):
                with slices("SCORES"):
                    run(c.CALL_QK, 0x00FF00FF)
                    run(c.CALL_SCORE, 0)
                with slices("SUMS"):
                    ldr(r7, c.CALL_USES)
                    with when(ne(r7, 0)):
                        mov(r0, r6)
                        ldr(r1, c.POLICY_AT)
                        ldr(r2, c.TABLES_AT)
                        mov(r3, r5)
                        blx(r7)
                    run(c.CALL_WEIGHTS, c.TABLES_AT)
                    run(c.CALL_AV, 0x00FF00FF)
                    mov(r0, r6)
                    mov(r1, r5)
                    mov(r2, out_)
                    ldr(r7, c.CALL_EMIT)
                    blx(r7)
                bump(left, -1, by=r0)
                branch(eq, "NEXT")
                advance(a.QUERY, c.NEXT_QUERY)
            bump(kv_left, -1, by=r0)
            branch(eq, "DONE")
            advance(a.QUERY, c.NEXT_QUERY)
            advance(a.CODES, c.NEXT_CODES)
            advance(a.VCODES, c.NEXT_VCODES)
            bump(shared, -1, by=r0)
            with when(eq):
                advance(a.SCALES, c.NEXT_SCALES)
                advance(a.VSCALES, c.NEXT_SCALES)
                mov(r0, 0)
    mov(r0, 0)
