"""qk4, center, av4 of int4 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py."""

from field_tables.kernels import ATTEND, ATTEND4, QUERY
from kernelgen.fragments.batches import *
from kernelgen.fragments.common import *
from kernelgen.fragments.weigh import *
from kernelgen.language import *

A = Array(r3, ATTEND, ATTEND4)
# Of int4, at the end of `a`.
OWN = A.on(r7, A.SEALED)


@kernel
def qk4(buffer: Register, same: Register, mask: Register, attend: Register) -> None:
    """Dots of a slice with the sealed rows, a block after the other: plain.py's qk4.

    From nibbles [SEALED][WIDTH4] at CODES4, uint16 counts and minima of each channel at RANGES and the
    query's words at QUERY to int32[SEALED] behind the fresh ones at DOTS; SPREAD is for the query's codes
    and factors.

    A token: r0 nibbles, r1 product, r2 mask, r3 r4 r5 r8 factors, r6 word, r7 sum, r9 dot, r10 shift, r11
    what is added, r12 gap, lr end of the block's dots
    """
    gap, dot, down, added, end = r12, r9, r10, r11, lr

    def dots(name: str, first: bool) -> None:
        with repeat(name, ne(r6, end)):
            ldm(r0, r6)
            add(r0, gap)
            mov(r7, r6)
            product(r7, r2, r3)
            for bits, factor in ((4, r4), (8, r5), (12, r8)):
                lsr(r1, r6, bits)
                product(r1, r2, factor)
                add(r7, r1)
            if first:
                add(r7, added)
                mov(r1, down)
                asr(r7, r1)
                mov(r6, dot)
            else:
                mov(r6, dot)
                plus(r7, at(r6), by=r1)
                mov(r1, down)
                asr(r7, r1)
            stm(r6, r7)
            mov(dot, r6)

    with frame(
        "a buffer spread row tokens_left dots minima cut block_tokens slice_bytes column ranges factors mask "
        "finer"
    ) as sp:
        nibbles, lost, pairs_left = sp.ranges, r9, r8
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        two_lanes(r2, 15, by=r4)
        str_(r2, sp.mask)
        point(r7, A.SEALED)
        put(sp.slice_bytes, OWN.WIDTH4, by=r4)
        put(sp.finer, OWN.FINER, by=r4)
        put(sp.row, OWN.FIRST, by=r4)
        ldr(r4, OWN.ROW4)
        sub(r4, 4)
        mov(gap, r4)
        put(sp.tokens_left, OWN.SEALED, by=r5)
        ldr(r4, A.N)
        sub(r4, r5)
        lsl(r4, 2)
        plus(r4, A.DOTS, by=r5)
        add(r4, r0)
        str_(r4, sp.dots)
        locate(r6, OWN.SPREAD, r0)
        str_(r6, sp.spread)
        ldr(r4, A.WIDTH)
        mov(r5, r4)
        add(r5, 7)
        lsr(r5, 3)
        lsl(r5, 4)
        times(r5, A.SLICE, by=r2)
        add(r5, r0)
        plus(r5, A.QUERY, by=r2)
        add(r5, Array(r5, QUERY).QUERY_WORDS.offset)
        ldr(r2, A.SLICES)
        lsl(r2, 2)
        add(r5, r2)
        mov(r7, r4)
        with repeat("SPREAD", ne):  # the query's codes, a word each
            ldm(r5, r0, r1)
            sxth(r2, r0)
            sxth(r3, r1)
            for x, low in ((r0, r2), (r1, r3)):
                sub(x, low)
                asr(x, 16)
            stm(r6, r0, r1, r2, r3)
            sub(r4, 4)
        lsl(r7, 29)
        with when(mi):
            for x in (r0, r1, r2, r3):
                mov(x, 0)
            stm(r6, r0, r1, r2, r3)
        with repeat("BLOCK", ne(r5, 0)):
            ldr(r3, sp.a)
            point(r7, A.SEALED)
            ldr(r4, sp.row)
            lsr(r4, 4)
            times(r4, OWN.HEADER, by=r5)
            plus(r4, OWN.RANGES, by=r5)
            plus(r4, sp.buffer, by=r5)
            ldr(r6, A.SLICE_WIDTH)
            ldr(r5, A.SLICE)
            mul(r5, r6)
            lsl(r5, 2)
            add(r4, r5)
            str_(r4, sp.ranges)
            ldr(r0, sp.spread)
            mov(r1, 0)
            mov(r2, 0)
            with repeat("CHANNEL", ne):  # r1 the sum of minima times codes, r2 the largest step times code
                ldm(r0, r3)
                ldm(r4, r5)
                asr(r7, r5, 16)
                mul(r7, r3)
                add(r1, r7)
                uxth(r5, r5)
                mul(r5, r3)
                absolute(r5, r7)
                keep_larger(r2, r5)
                sub(r6, 1)
            constant(r6, 1022)
            mov(r3, 0)
            with endless("CUT", "FITS"):
                mov(r5, r2)
                lsr(r5, r3)
                branch(le(r5, r6), "FITS")
                add(r3, 1)
            str_(r3, sp.cut)
            lsl(r1, 4)
            str_(r1, sp.minima)
            put(lost, 0, by=r2)
            half_of(r2, bits=r3)
            ldr(r0, sp.spread)
            ldr(r4, sp.ranges)
            ldr(r7, sp.slice_bytes)
            lsl(r6, r7, 3)
            add(r6, r0)
            str_(r6, sp.factors)
            mov(pairs_left, r7)

            def rounded(x: Register, by: Register) -> None:
                """r3 bits fewer, r2 half of that; what is lost is added up."""
                add(lost, x)
                add(x, r2)
                asr(x, r3)
                mov(by, x)
                lsl(by, r3)
                mov(r7, lost)
                sub(r7, by)
                mov(lost, r7)

            label("PAIR")  # channels c and c + 4 to one factor
            ldr(r5, at(r0, 16))
            ldr(r1, at(r4, 16))
            uxth(r1, r1)
            mul(r5, r1)
            rounded(r5, by=r1)
            ldm(r0, r1)
            ldm(r4, r7)
            uxth(r7, r7)
            mul(r1, r7)
            rounded(r1, by=r2)
            half_of(r2, bits=r3)
            lsl(r1, 16)
            add(r5, r1)
            stm(r6, r5)
            bump(pairs_left, -1, by=r7)
            lsl(r1, r7, 30)
            branch(ne, "PAIR")
            add(r0, 16)
            add(r4, 16)
            branch(ne(r7, 0), "PAIR")
            mov(r5, lost)
            mov(r1, 15)
            mul(r5, r1)
            asr(r5, 1)
            ldr(r1, sp.minima)
            add(r1, r5)
            asr(r1, r3)
            str_(r1, sp.minima)
            ldr(r3, sp.a)
            point(r7, A.SEALED)
            ldr(r4, sp.row)
            mov(r5, 15)
            and_(r5, r4)
            mov(r6, 16)
            sub(r6, r5)
            ldr(r5, sp.tokens_left)
            keep_smaller(r6, r5)
            sub(r5, r6)
            str_(r5, sp.tokens_left)
            str_(r6, sp.block_tokens)
            times(r4, OWN.ROW4, by=r5)
            plus(r4, OWN.CODES4, by=r5)
            plus(r4, sp.buffer, by=r5)
            ldr(r5, A.SLICE)
            times(r5, sp.slice_bytes, by=r6)
            add(r4, r5)
            str_(r4, nibbles)
            put(sp.column, 0, by=r4)
            with repeat("COLUMN", ne(r7, r6)):
                ldr(r7, sp.column)
                ldr(r0, nibbles)
                add(r0, r7)
                add(r7, 4)
                str_(r7, sp.column)
                mov(r1, 0)
                ldr(r6, sp.slice_bytes)
                with when(eq(r7, r6)):
                    ldr(r6, sp.cut)
                    mov(r1, 12)
                    sub(r1, r6)
                    minus(r1, sp.finer, by=r6)
                    with when(lt(r1, 0)):
                        mov(r1, 0)
                mov(down, r1)
                put(dot, sp.dots, by=r6)
                ldr(r1, sp.block_tokens)
                index(r1, 2, r6)
                mov(end, r1)
                put(added, sp.minima, by=r6)
                ldr(r6, sp.factors)
                ldm(r6, r1, r3, r4, r5)
                str_(r6, sp.factors)
                mov(r8, r5)
                mov(r5, r4)
                mov(r4, r3)
                mov(r3, r1)
                ldr(r2, sp.mask)
                branch(ne(r7, 4), "MORE")
                dots("FIRST", first=True)
                b("NEXT")
                dots("MORE", first=False)  # added to the sum so far
                label("NEXT")
                ldr(r7, sp.column)
                ldr(r6, sp.slice_bytes)
            ldr(r4, sp.cut)
            plus(r4, sp.finer, by=r5)
            sub(r4, 12)
            with when(gt(r4, 0)):
                ldr(r6, sp.dots)
                with repeat("UP", ne(r6, end)):
                    ldr(r5, at(r6))
                    lsl(r5, r4)
                    stm(r6, r5)
            put(sp.dots, dot, by=r4)
            ldr(r4, sp.row)
            plus(r4, sp.block_tokens, by=r6)
            ldr(r3, sp.a)
            point(r7, A.SEALED)
            ldr(r5, OWN.ROWS)
            with when(eq(r4, r5)):
                mov(r4, 0)
            str_(r4, sp.row)
            ldr(r5, sp.tokens_left)
    mov(r0, 0)


@kernel
def center(buffer: Register, same: Register, tables: Register, attend: Register) -> None:
    """What the middles of the ranges of V weigh together, to LIFT: plain.py's center.

    From int32[N] at SCORES and int16[SEALED] at CENTERS; `tables` is tables.TABLES.

    r0 scores, r1 middles, r2 term, r3 shift down, r4 mantissa, r5 exponent, r6 distance, r8 MAX,
    r9 distance that weighs nothing, r10 tables, r11 sum >> 14, r12 the rest, lr end of scores
    """
    largest, far, high, low, end = r8, r9, r11, r12, lr
    with frame("down own") as sp:
        mov(r10, r2)
        locate(r4, A.QUERY, r0)
        distance_scale(A)
        limit_scale(down=r6)
        str_(r6, sp.down)
        mov(low, r5)
        mov(high, r7)
        farthest(28 << 8)
        put(largest, A.MAX, by=r4)
        point(r7, A.SEALED)
        str_(r7, sp.own)
        locate(r6, OWN.CENTERS, r0)
        ldr(r5, OWN.CENTER_ROW)
        times(r5, A.SLICE, by=r4)
        add(r6, r5)
        ldr(r4, A.N)
        ldr(r2, OWN.SEALED)
        sub(r1, r4, r2)
        lsl(r1, 2)
        plus(r1, A.SCORES, by=r5)
        add(r0, r1)
        index(r2, 2, r0)
        mov(end, r2)
        mov(r1, r6)
        mov(r4, low)
        mov(r5, high)
        put(high, 0, by=r6)
        mov(low, r6)
        ldr(r3, sp.down)
        with repeat("TOKEN", ne(r0, end)):
            ldm(r0, r6)
            mov(r7, largest)
            sub(r6, r7, r6)
            lsr(r6, r3)
            with when(cc(r6, far)):
                mul(r6, r4)
                lsr(r6, r5)
                lsl(r2, r6, 24)
                lsr(r2, 23)
                add(r2, r10)
                ldrh(r2, at(r2))
                ldrh(r7, at(r1))
                sxth(r7, r7)
                mul(r2, r7)
                lsr(r6, 8)
                # Towards zero, as all that weights are multiplied with.
                absolute(r2, r7)
                lsl(r2, 3)
                lsr(r2, r6)
                with_sign(r2, r7)
                uxth(r7, r2)
                add(low, r7)
                asr(r2, 16)
                add(high, r2)
            add(r1, 2)
        ldr(r7, sp.own)
        mov(r4, low)
        lsr(r5, r4, 16)
        add(r5, high)
        str_(r5, OWN.LIFT)
        uxth(r4, r4)
        str_(r4, OWN.LIFT_LOW)
    mov(r0, 0)


@kernel
def av4(buffer: Register, same: Register, mask: Register, attend: Register) -> None:
    """Small weights times the nibbles of the sealed rows, added to the sums of the fresh ones: plain.py's
    av4, B5.

    From int32[SEALED] behind the fresh ones at DOTS, words at UNITS and nibbles [SEALED][WIDTH4] at VCODES4
    to int32[2 * WIDTH4] at SUMS, a column of 8 channels after the other; LIFT is added to each.

    r0 nibbles, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this part
    """
    gap = r12
    with frame(
        "a buffer column next_batch tokens_left ring_left batch_left units sums mask columns_left row_0 "
        "lift " + SPLIT
    ) as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        ldr(r4, A.CORR)
        constant(r5, 1 << 29)
        add(r4, r5)
        str_(r4, A.CORR)
        # LIFT in units of the sums: those of its own are 24 bits less than UNIT.
        point(r7, A.SEALED)
        ldr(r6, OWN.LIFT)
        point(r4, A.HEAD_DIM)
        ldr(r4, A.on(r4, A.HEAD_DIM).UNIT)
        sub(r4, 40)
        with when(lt(r4, 0)):
            neg(r4, r4)
            lsl(r6, r4)
            ldr(r1, OWN.LIFT_LOW)
            lsl(r1, r4)
            lsr(r1, 16)
            add(r6, r1)
            mov(r4, 0)
        asr(r6, r4)
        add(r6, r5)
        str_(r6, sp.lift)
        two_lanes(r2, 15 << 4, by=r4)
        str_(r2, sp.mask)
        put(sp.column, 0, by=r4)
        str_(r4, sp.part)
        with repeat("COLUMN", gt(r5, 4)):
            ldr(r3, sp.a)
            ldr(r5, sp.buffer)
            ldr(r2, sp.column)
            point(r7, A.SEALED)
            locate(r4, A.SUMS, r5)
            lsl(r6, r2, 3)
            add(r4, r6)
            str_(r4, sp.sums)
            ldr(r6, sp.lift)
            ldr(r1, A.WIDTH)
            lsl(r0, r2, 1)
            sub(r1, r0)
            with when(lt(r1, 8)):
                mov(r0, 0)
                for channel in (4, 5, 6, 7):
                    str_(r0, at(r4, 4 * channel))
            mov(r1, 8)
            with repeat("LIFT", ne):
                ldr(r0, at(r4))
                add(r0, r6)
                stm(r4, r0)
                sub(r1, 1)
            mov(r0, 0)
            clear_lanes(r0)
            ldr(r4, OWN.ROW4)
            sub(r4, 4)
            mov(gap, r4)
            ldr(r4, OWN.WIDTH4)
            sub(r4, r2)
            str_(r4, sp.columns_left)
            ldr(r4, A.N)
            put(sp.tokens_left, OWN.SEALED, by=r6)
            sub(r4, r6)
            locate(r1, A.DOTS, r5)
            lsl(r6, r4, 2)
            add(r1, r6)
            locate(r0, A.UNITS, r5)
            lsr(r6, r4, 3)
            lsl(r6, 2)
            add(r0, r6)
            str_(r0, sp.units)
            # The first batch is what the fresh tokens have left of theirs.
            mov(r6, 7)
            and_(r4, r6)
            mov(r6, 8)
            sub(r6, r4)
            str_(r6, sp.next_batch)
            ldr(r0, A.SLICE)
            times(r0, OWN.WIDTH4, by=r4)
            plus(r0, OWN.VCODES4, by=r4)
            add(r0, r2)
            add(r0, r5)
            str_(r0, sp.row_0)
            ldr(r4, OWN.FIRST)
            ldr(r6, OWN.ROWS)
            sub(r6, r4)
            str_(r6, sp.ring_left)
            times(r4, OWN.ROW4, by=r6)
            add(r0, r4)
            ldr(r2, sp.mask)
            with repeat("BATCH", ne(r5, 0)):
                ldr(r5, sp.tokens_left)
                ldr(r7, sp.next_batch)
                put(sp.next_batch, 8, by=r6)
                keep_smaller(r7, r5)
                sub(r5, r7)
                str_(r5, sp.tokens_left)
                with repeat("PART", ne(r7, 0)):  # a batch may go on at row 0
                    ldr(r6, sp.ring_left)
                    with when(eq(r6, 0)):
                        ldr(r0, sp.row_0)
                        constant(r6, 1 << 20)
                    next_part(sp.ring_left, sp)
                    each_token(nibbles, (gap, 4), sp.ring_left, sp)
                    ldr(r7, sp.batch_left)
                end_nibbles(sp.ring_left, sp)
            bump(sp.column, 4, by=r4)
            ldr(r5, sp.columns_left)
    mov(r0, 0)
