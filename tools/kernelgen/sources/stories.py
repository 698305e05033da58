"""The kernels of plain.py in Thumb assembler: same bits, less than half of viper's instructions and of its
code.

ARMv6-M only, so RP2040 and RP2350 run the same code. Parameters `a` and bounds B1..B7 are those of
plain.py, fields those of tools/field_tables/stories.py. `data(2, ...)` is an instruction that MicroPython's
assembler lacks, written beside it in the assembler's own words. r8 and above hold what the loop only adds
or compares; they belong to the caller, so whoever uses r8..r11 saves them first. `adc` after `asr` adds the
bit shifted out last: round half up in one instruction. The shift is by 1 at least: what a shift by 0 leaves
of the carry, some emulators of this core get wrong.
"""

from field_tables.stories import ADD, EMBED, MATVEC, NARROW, NORM, PICK, ROPE, ROTATE, SWIGLU, VECTOR
from kernelgen.language import *


def saturate(x: Register, most: Register, least: Register) -> None:
    with when(gt(x, most)):
        mov(x, most)
    with when(lt(x, least)):
        mov(x, least)


def shifts(x: Register, held: Register, most: int, right: Register, largest: Register) -> None:
    """A shift cut off at -most..most: to the left in `x`, or to the `right`; `largest` is the largest number
    that 30 bits hold after it. `held` is lost; it may be `right`."""
    mov(held, most)
    with when(gt(x, held)):
        mov(x, held)
    neg(held, held)
    with when(lt(x, held)):
        mov(x, held)
    constant(largest, (1 << 30) - 1)
    mov(right, 0)
    with when(lt(x, 0)):
        neg(right, x)
        mov(x, 0)
    lsr(largest, x)


def fold(name: str, out: str, x: Register, shift: Register, by: Register) -> None:
    """Adds to `shift` what brings x, >= 0, below 2^15."""
    with endless(name, out):
        lsr(by, x, 15)
        branch(eq, out)
        lsr(x, 1)
        add(shift, 1)


@called
def embed(image: Register, vectors: Register, fields: Register) -> None:
    """One row of the embedding as fixed point, ROW_COLUMNS values at ROW_TO: plain.py's embed.

    r0 codes, r1 result, r2 twice the scale, r3 scales, r4 shift left, r5 shift right + 1, r8 most,
    r9 least, r10 end of the group, r12 end of the result. Twice the product is shifted, so by 1 at least;
    and by 31 at most: a product has 24 bits, 30 is as good as more.
    """
    a = Array(r2, EMBED)
    with frame():
        plus(r0, a.ROW_AT, by=r3)
        ldr(r3, a.ROW_CODES)
        add(r3, r0)
        ldr(r4, a.ROW_TO)
        lsl(r4, 2)
        add(r1, r4)
        ldr(r4, a.ROW_COLUMNS)
        index(r4, 2, r1)
        mov(r12, r4)
        ldr(r4, a.ROW_EXPONENT)
        shifts(r4, r5, 30, r5, r6)
        mov(r8, r6)
        neg(r6, r6)
        mov(r9, r6)
        add(r5, 1)
        b("TEST")
        with repeat("GROUP", ne(r1, r12)):
            ldrh(r2, at(r3))
            lsl(r2, 1)
            add(r3, 2)
            mov(r7, r0)
            add(r7, 32)
            mov(r10, r7)
            mov(r7, 0)
            with repeat("ELEMENT", ne(r0, r10)):
                ldrb(r6, at(r0))
                add(r0, 1)
                sub(r6, 128)
                mul(r6, r2)
                asr(r6, r5)
                adc(r6, r7)
                saturate(r6, r8, r9)
                lsl(r6, r4)
                stm(r1, r6)
                branch(eq(r1, r12), "END")
            label("TEST")
        label("END")
    mov(r0, 0)


@called
def norm(image: Register, vectors: Register, fields: Register) -> None:
    """x * weight of N values at TO, and the root of the mean square: plain.py's norm, B5, B6.

    r0 weights, r1 result, r3 source, r5 shift, r8 half, r9 a, r12 end of the source, r2:r6 sum of squares
    """
    a = Array(r2, VECTOR, NORM)
    with frame():
        mov(r9, r2)
        ldr(r3, a.FROM)
        index(r3, 2, r1)
        ldr(r5, a.N)
        index(r5, 2, r3)
        mov(r12, r5)
        plus(r0, a.WEIGHTS, by=r5)
        ldr(r5, a.TO)
        lsl(r5, 2)
        add(r1, r5)
        mov(r7, r3)
        mov(r6, 0)
        with repeat("LARGEST", ne(r7, r12)):
            ldm(r7, r4)
            asr(r5, r4, 31)
            add(r4, r5)
            eor(r4, r5)
            with when(gt(r4, r6)):
                mov(r6, r4)
        mov(r5, 0)
        fold("FOLD", "FOLDED", r6, r5, by=r4)
        mov(r4, 1)
        lsl(r4, r5)
        lsr(r4, 1)
        mov(r8, r4)
        mov(r2, 0)
        mov(r6, 0)
        with repeat("SQUARE", ne(r3, r12)):
            ldm(r3, r4)
            add(r4, r8)
            asr(r4, r5)
            ldrh(r7, at(r0))
            add(r0, 2)
            sxth(r7, r7)
            mul(r7, r4)
            stm(r1, r7)
            mul(r4, r4)
            mov(r7, 0)
            add(r6, r4)
            adc(r2, r7)
        mov(r3, r9)
        ldr(r4, a.on(r3).PADDED)
        ldr(r3, a.on(r3).N)
        sub(r4, r3)
        with when(gt):
            mov(r7, 0)
            with repeat("PAD", ne):
                stm(r1, r7)
                sub(r4, 1)
        # The sum has less than 46 bits, its mean less than 31: r4 = sum / r3, bit by bit from the 48th on.
        lsl(r2, 16)
        lsr(r0, r6, 16)
        orr(r2, r0)
        lsl(r6, 16)
        mov(r0, 0)
        mov(r4, 0)
        mov(r7, 48)
        with repeat("DIVIDE", ne):
            add(r6, r6)
            adc(r2, r2)
            adc(r0, r0)
            with when(cs(r0, r3)):
                sub(r0, r3)
            adc(r4, r4)
            sub(r7, 1)
        mov(r3, r9)
        ldr(r6, a.on(r3).EPS)
        lsr(r6, r5)
        lsr(r6, r5)
        add(r4, r6)
        ldr(r5, a.on(r3).WEIGHTS_EXPONENT)
        constant(r0, 1 << 14)
        branch(eq(r4, 0), "ROOTED")
        with endless("HIGH", "LOW"):
            lsr(r6, r4, 30)
            branch(eq, "LOW")
            lsr(r4, 2)
            sub(r5, 1)
        lsr(r6, r4, 28)
        with when(eq):
            lsl(r4, 2)
            add(r5, 1)
            b("LOW")
        mov(r1, r0)
        mov(r0, 0)
        with repeat("BIT", ne):
            add(r2, r0, r1)
            mov(r7, r2)
            mul(r7, r2)
            with when(ls(r7, r4)):
                mov(r0, r2)
            lsr(r1, 1)
        mov(r7, r0)
        mul(r7, r0)
        sub(r4, r7)
        branch(ls(r4, r0), "ROOTED")
        add(r0, 1)
        label("ROOTED")
        str_(r0, a.on(r3).ROOT)
        str_(r5, a.on(r3).EXPONENT)
    mov(r0, 0)


@called
def quant(vectors: Register, fields: Register) -> None:
    """The vector at TO as an activation vector at ACT: plain.py's quant.

    r0 source, r3 result, r8 half, r9 1 << 21, r10 total, r11 fold, r12 end of the source. sp: a, the starts
    """
    a = Array(r1, VECTOR)
    sp = Frame(("a", "source", "result"))
    with frame():
        ldr(r2, a.TO)
        index(r2, 2, r0)
        ldr(r3, a.ACT)
        index(r3, 2, r0)
        ldr(r4, a.PADDED)
        index(r4, 2, r2)
        mov(r12, r4)
        push(r1, r2, r3)
        # What the heaviest four of each group adds up to, over 4, kept where the scale will be; r7 the most.
        mov(r0, r3)
        add(r0, 8)
        mov(r7, 0)
        with repeat("TOPS", ne(r2, r12)):
            mov(r6, 0)
            mov(r5, r2)
            add(r5, 128)
            mov(r8, r5)
            with repeat("TOP", ne(r2, r8)):
                for pair in range(2):
                    ldm(r2, r3, r4)
                    for x in (r3, r4):
                        asr(r5, x, 31)
                        asr(x, 2)
                        eor(x, r5)
                    if pair == 0:
                        add(r1, r3, r4)
                add(r3, r4)
                add(r1, r3)
                with when(gt(r1, r6)):
                    mov(r6, r1)
            add(r6, 4)
            str_(r6, at(r0, 96))
            add(r0, 100)
            with when(gt(r6, r7)):
                mov(r7, r6)
        mov(r4, 0)
        fold("FOLD", "FOLDED", r7, r4, by=r5)
        mov(r11, r4)
        ldr(r3, sp.result)
        mov(r2, r3)
        add(r2, 8)
        mov(r6, 0)
        with repeat("TOTAL", ne(r2, r0)):
            ldr(r5, at(r2, 96))
            lsr(r5, r4)
            add(r6, r5)
            add(r2, 100)
        mov(r10, r6)
        ldr(r1, sp.a)
        plus(r4, a.EXPONENT, by=r7)
        sub(r4, 20)
        constant(r5, 1 << 29)
        with endless("UP", "TOTALLED"):
            branch(cs(r6, r5), "TOTALLED")
            lsl(r6, 1)
            sub(r4, 1)
        ldr(r7, a.ROOT)
        lsr(r5, r7, 1)
        add(r6, r5)
        # 16 bits of the quotient; 2^16 comes out as 2^16 - 1, which the next loop rounds to the same.
        lsl(r7, 16)
        constant(r5, 1 << 16)
        call("DIVIDE")
        with endless("DOWN", "STORE"):
            lsr(r7, r5, 15)
            branch(eq, "STORE")
            add(r5, 1)
            lsr(r5, 1)
            add(r4, 1)
        stm(r3, r5)
        str_(r4, at(r3))
        add(r3, 4)
        ldr(r0, sp.source)
        constant(r4, 1 << 21)
        mov(r9, r4)
        label("GROUP")
        ldr(r1, at(r3, 96))
        mov(r4, r11)
        mov(r6, r1)
        lsr(r6, r4)
        mov(r7, r10)
        # 14 bits of (top >> fold) / total, then rounded. Equal ones give 2^14 - 1 and a remainder that
        # rounds.
        constant(r5, 1 << 18)
        call("DIVIDE")
        lsr(r4, r7, 1)
        add(r6, r4)
        mov(r4, 0)
        cmp(r6, r7)
        adc(r5, r4)
        str_(r5, at(r3, 96))
        # 13 bits of the group's own: shifted down by r4, then up by r2. r7 the inverse, shifted up as well.
        mov(r4, 0)
        mov(r6, 1)
        with endless("NARROW", "NARROWED"):
            lsr(r5, r1, 13)
            lsr(r5, r4)
            branch(eq, "NARROWED")
            lsl(r6, 1)
            add(r4, 1)
        lsr(r6, 1)
        mov(r8, r6)
        add(r1, r6)
        lsr(r1, r4)
        mov(r2, 0)
        with endless("WIDEN", "WIDENED"):
            lsr(r5, r1, 12)
            branch(ne, "WIDENED")
            lsl(r1, 1)
            add(r2, 1)
        lsl(r7, r1, 16)
        constant(r6, (1 << 28) - 1)
        constant(r5, 1 << 16)
        call("DIVIDE")
        mov(r7, r5)
        lsl(r7, r2)
        constant(r2, 1 << 15)
        mov(r5, r0)
        add(r5, 128)
        mov(lr, r5)
        with repeat("CODES", ne(r0, lr)):
            for pair, first in ((r5, 0), (r6, 4)):
                for code, offset in ((pair, first), (r1, first + 8)):
                    ldr(code, at(r0, offset))
                    add(code, r8)
                    asr(code, r4)
                    mul(code, r7)
                    add(code, r9)
                    asr(code, 22)
                lsl(pair, 16)
                add(pair, r1)
            add(r0, 16)
            stm(r3, r5)
            add(r1, r5, r6)
            lsl(r5, 8)
            sub(r5, r6, r5)
            lsl(r6, r1, 7)
            lsl(r1, 23)
            add(r6, r1)
            sub(r6, r2, r6)
            stm(r3, r5, r6)
        add(r3, 4)
        branch(eq(r0, r12), "END")
        b("GROUP")
        # Doubles the remainder r6 until the marker leaves the quotient r5; divisor r7.
        with repeat("DIVIDE", cc):
            add(r6, r6)
            with when(cs(r6, r7)):
                sub(r6, r7)
            adc(r5, r5)
        leave()
        label("END")
        drop(3)
    mov(r0, 0)


@called
def matvec(image: Register, vectors: Register, mask: Register, fields: Register) -> None:
    """M_ROWS rows of int8 weights times an activation vector: plain.py's matvec, B1 to B4.

    r0 weights, r1 codes, r2 mask, r8 dot of a group, r9 scales of the weights, r10 2, r11 8192, r12 sum of
    the row, lr end of the codes. The sums of all rows come first; then they are scaled where they lie.
    """
    a = Array(r3, MATVEC)
    sp = Frame(("a", "codes", "row_bytes", "first", "result", "end", "skip"))
    with frame():
        ldr(r5, a.M_TO)
        index(r5, 2, r1)
        ldr(r6, a.M_ROWS)
        index(r6, 2, r5)
        ldr(r7, a.M_SKIP)
        mov(r4, r5)
        push(r4, r5, r6, r7)
        plus(r0, a.M_AT, by=r4)
        ldr(r5, a.M_ACT)
        index(r5, 2, r1)
        add(r5, 8)
        ldr(r7, a.M_GROUPS)
        lsl(r6, r7, 5)
        mov(r4, 100)  # bytes of a group of codes
        mul(r4, r7)
        add(r4, r5)
        mov(lr, r4)
        mov(r4, r3)
        push(r4, r5, r6)
        mov(r4, 2)
        mov(r10, r4)
        lsl(r4, r4, 12)
        mov(r11, r4)
        ldr(r5, sp.result)
        b("TEST")
        with repeat("ROW", ne(r5, r4)):
            ldr(r4, sp.row_bytes)
            add(r4, r0)
            mov(r9, r4)
            ldr(r1, sp.codes)
            mov(r4, 0)
            mov(r12, r4)
            with repeat("GROUP", ne(r1, lr)):
                # Four products for two multiplies, see plain.py. What a word's sum lacks is loaded with the
                # next word's codes, behind the last with the group's scale.
                ldm(r1, r6, r7)
                for word in range(8):
                    x = (r3, r4)[word % 2]
                    if x == r3:
                        ldm(r0, r3, r4)
                    lsr(r5, x, 8)
                    and_(r5, r2)
                    mul(x, r6)
                    mul(r5, r7)
                    add(x, r5)
                    if word < 7:
                        ldm(r1, r5, r6, r7)
                    else:
                        ldm(r1, r5, r6)
                    add(x, r5)
                    asr(x, 16)
                    if word == 0:
                        mov(r8, x)
                    elif word < 7:
                        add(r8, x)
                    else:
                        add(x, r8)
                mov(r5, r9)
                ldrh(r5, at(r5))
                add(r9, r10)
                mul(r4, r5)
                add(r4, r11)
                asr(r4, 14)
                mul(r4, r6)
                add(r12, r4)
            mov(r4, r12)
            ldr(r5, sp.result)
            stm(r5, r4)
            str_(r5, sp.result)
            plus(r0, sp.skip, by=r4)
            label("TEST")
            ldr(r4, sp.end)
        # r0 result, r1 its end, r2 mantissa, r3 shift right, r10 shift left, r8 most and r9 least before it
        mov(r1, r4)
        ldr(r3, sp.a)
        ldr(r4, a.M_EXPONENT)
        ldr(r0, sp.codes)
        sub(r0, 8)
        ldm(r0, r2, r5)
        add(r4, r5)
        add(r4, 29)
        shifts(r4, r3, 31, r3, r6)
        ldr(r0, sp.first)
        mov(r8, r6)
        neg(r6, r6)
        mov(r9, r6)
        mov(r10, r4)
        b("SCALED")
        with repeat("SCALE", ne(r0, r1)):
            ldr(r4, at(r0))
            lsl(r5, r4, 17)
            lsr(r5, 17)
            asr(r4, 15)
            mul(r4, r2)
            mul(r5, r2)
            lsr(r5, 15)
            add(r4, r5)
            with when(ne(r3, 0)):
                asr(r4, r3)
                mov(r5, 0)
                adc(r4, r5)
                stm(r0, r4)
                branch(ne(r0, r1), "SCALE")
                b("END")
            saturate(r4, r8, r9)
            mov(r5, r10)
            lsl(r4, r5)
            stm(r0, r4)
            label("SCALED")
        label("END")
        drop(7)
    mov(r0, 0)


@called
def rope_table(increments: Register, turns: Register, sine: Register, fields: Register) -> None:
    """cos and sin of a position, int16[FREQUENCIES][2]: plain.py's rope_table.

    r0 increments, r1 result, r2 sine, r3 end of the increments, r8 position, r12 phase
    """
    a = Array(r3, ROPE)
    mov(r4, r8)
    push(r4)
    ldr(r4, a.POSITION)
    mov(r8, r4)
    ldr(r3, a.FREQUENCIES)
    index(r3, 2, r0)
    b("TEST")
    with repeat("TURN", ne(r0, r3)):
        ldm(r0, r4)
        mov(r5, r8)
        mul(r4, r5)
        mov(r12, r4)
        lsl(r4, 2)
        lsr(r4, 2)
        push(r4)
        call("LOOKUP")
        pop(r4)
        push(r6)
        constant(r5, 1 << 30)
        sub(r4, r5, r4)
        call("LOOKUP")
        pop(r5)
        mov(r4, r12)
        lsl(r7, r4, 1)
        with when(mi):  # an odd quadrant: (sine, cosine) = (cosine, -sine)
            mov(r7, r5)
            mov(r5, r6)
            neg(r6, r7)
        with when(lt(r4, 0)):
            neg(r5, r5)
            neg(r6, r6)
        strh(r6, at(r1))
        strh(r5, at(r1, 2))
        add(r1, 4)
        label("TEST")
    b("END")
    # r6 = the table at phase r4
    label("LOOKUP")
    lsr(r5, r4, 22)
    index(r5, 1, r2)
    ldrh(r6, at(r5))
    ldrh(r7, at(r5, 2))
    sub(r7, r6)
    lsl(r5, r4, 10)
    lsr(r5, 17)
    mul(r7, r5)
    asr(r7, 15)
    adc(r6, r7)
    lsr(r7, r6, 15)
    sub(r6, r7)  # 32768 does not fit
    leave()
    label("END")
    pop(r4)
    mov(r8, r4)
    mov(r0, 0)


@called
def rotate(vectors: Register, result: Register, turns: Register, fields: Register) -> None:
    """R_HEADS heads rotated, as int16: plain.py's rotate, B7.

    r0 source, r1 result, r2 cosine and sine, r3 gap in bytes of the result, r8 step in bytes of the source,
    r9 32767, r10 -32767, r11 0x4000. sp: the table, its end, end of the result, its bytes to the next head
    """
    a = Array(r3, ROTATE)
    sp = Frame(("table", "table_end", "end", "to_next_head"))
    with frame():
        ldr(r4, a.R_FROM)
        lsl(r4, 2)
        add(r0, r4)
        ldr(r7, a.R_PAIRS)
        lsl(r5, r7, 2)
        ldr(r6, a.R_HEADS)
        mul(r6, r5)
        add(r6, r1)
        add(r5, r2)
        ldr(r4, a.R_STEP)
        sub(r4, 2)  # after the pairs of a head: (2 - step) * pairs elements
        neg(r4, r4)
        mul(r7, r4)
        lsl(r7, 1)
        mov(r4, r2)
        push(r4, r5, r6, r7)
        ldr(r4, a.R_STEP)
        lsl(r4, 2)
        mov(r8, r4)
        constant(r4, (1 << 15) - 1)
        mov(r9, r4)
        neg(r4, r4)
        mov(r10, r4)
        constant(r4, 1 << 14)
        mov(r11, r4)
        ldr(r3, a.R_GAP)
        lsl(r3, 1)
        b("TEST")
        with repeat("PAIR", ne(r1, r4)):
            ldr(r4, at(r0))
            add(r5, r0, r3)
            ldr(r5, at(r5, r3))
            saturate(r4, r9, r10)
            saturate(r5, r9, r10)
            ldrh(r6, at(r2))
            sxth(r6, r6)
            mov(r7, r6)
            mul(r6, r4)
            mul(r7, r5)
            mov(r12, r7)
            ldrh(r7, at(r2, 2))
            sxth(r7, r7)
            mul(r5, r7)
            mul(r4, r7)
            sub(r6, r5)
            add(r6, r11)
            asr(r6, 15)
            saturate(r6, r9, r10)
            strh(r6, at(r1))
            add(r4, r12)
            add(r4, r11)
            asr(r4, 15)
            saturate(r4, r9, r10)
            strh(r4, at(r1, r3))
            add(r2, 4)
            add(r0, r8)
            mov(r4, r8)
            lsr(r4, 1)
            add(r1, r4)
            ldr(r4, sp.table_end)
            branch(ne(r2, r4), "PAIR")
            plus(r1, sp.to_next_head, by=r4)
            add(r0, r4)
            add(r0, r4)
            label("TEST")
            ldr(r2, sp.table)
            ldr(r4, sp.end)
        drop(4)
    mov(r0, 0)


@called
def narrow(vectors: Register, result: Register, fields: Register) -> None:
    """NARROW_COUNT elements as int16, saturated: plain.py's narrow.

    r0 source, r1 result, r2 its end, r5 32767, r6 -32767
    """
    a = Array(r2, NARROW)
    ldr(r3, a.NARROW_FROM)
    lsl(r3, 2)
    add(r0, r3)
    ldr(r2, a.NARROW_COUNT)
    index(r2, 1, r1)
    constant(r5, (1 << 15) - 1)
    neg(r6, r5)
    b("TEST")
    with repeat("ELEMENT", ne(r1, r2)):
        ldm(r0, r4)
        saturate(r4, r5, r6)
        strh(r4, at(r1))
        add(r1, 2)
        label("TEST")
    mov(r0, 0)


@called
def widen(source: Register, vectors: Register, fields: Register) -> None:
    """N int16 to elements at TO, filled up with zeros: plain.py's widen.

    r0 source, r1 result, r3 end of the source, r5 end of the result
    """
    a = Array(r2, VECTOR)
    ldr(r3, a.TO)
    lsl(r3, 2)
    add(r1, r3)
    ldr(r4, a.N)
    lsl(r3, r4, 1)
    add(r3, r0)
    ldr(r5, a.PADDED)
    index(r5, 2, r1)
    b("TEST")
    with repeat("ELEMENT", ne(r0, r3)):
        ldrh(r6, at(r0))
        add(r0, 2)
        sxth(r6, r6)
        stm(r1, r6)
        label("TEST")
    mov(r6, 0)
    b("PADDED")
    with repeat("PAD", cc(r1, r5)):
        stm(r1, r6)
        label("PADDED")
    mov(r0, 0)


@called
def swiglu(vectors: Register, sigmoid: Register, fields: Register) -> None:
    """gate * sigmoid(gate) * up of N values at TO: plain.py's swiglu.

    r0 gate, r1 sigmoid, r2 up, r8 largest gate, r9 largest up, r12 end of the gate. sp: a, gate, up, result
    """
    a = Array(r2, VECTOR, SWIGLU)
    sp = Frame(("a", "gate", "up", "result"))
    with frame():
        ldr(r4, a.GATE)
        index(r4, 2, r0)
        ldr(r5, a.UP)
        index(r5, 2, r0)
        ldr(r6, a.TO)
        index(r6, 2, r0)
        ldr(r7, a.N)
        index(r7, 2, r4)
        mov(r12, r7)
        mov(r0, r4)
        mov(r3, r2)
        mov(r2, r5)
        push(r3, r4, r5, r6)
        mov(r4, 0)
        mov(r8, r4)
        mov(r9, r4)
        with repeat("GATE", ne(r0, r12)):
            ldr(r3, at(r0))
            asr(r4, r3, 31)  # r4 the sign: 0 or -1
            add(r5, r3, r4)
            eor(r5, r4)
            lsr(r6, r5, 20)
            with when(ne):
                bic(r5, r4)
                b("LARGEST")
            lsr(r6, r5, 12)
            index(r6, 1, r1)
            ldrh(r7, at(r6))
            ldrh(r6, at(r6, 2))
            sub(r6, r7)
            lsl(r3, r5, 20)
            lsr(r3, 20)
            mul(r6, r3)
            asr(r6, 12)
            adc(r7, r6)
            with when(ne(r4, 0)):
                constant(r3, 1 << 15)
                sub(r7, r3, r7)
            lsr(r6, r5, 6)
            mul(r6, r7)
            lsl(r5, 26)
            lsr(r5, 26)
            mul(r5, r7)
            lsr(r5, 6)
            add(r5, r6)
            mov(r6, 0)
            lsr(r5, 9)
            adc(r5, r6)
            label("LARGEST")
            with when(gt(r5, r8)):
                mov(r8, r5)
            eor(r5, r4)
            sub(r5, r4)
            stm(r0, r5)
            ldm(r2, r3)
            asr(r4, r3, 31)
            add(r3, r4)
            eor(r3, r4)
            with when(gt(r3, r9)):
                mov(r9, r3)
        # r3, r4 shifts of gate and up, r8, r9 their halves
        mov(r3, 0)
        mov(r5, r8)
        fold("FOLD", "FOLDED", r5, r3, by=r6)
        mov(r4, 0)
        mov(r5, r9)
        fold("FOLD_UP", "FOLDED_UP", r5, r4, by=r6)
        mov(r5, 1)
        lsl(r5, r3)
        lsr(r5, 1)
        mov(r8, r5)
        mov(r5, 1)
        lsl(r5, r4)
        lsr(r5, 1)
        mov(r9, r5)
        ldr(r0, sp.gate)
        ldr(r2, sp.up)
        ldr(r1, sp.result)
        with repeat("PRODUCT", ne(r0, r12)):
            ldm(r0, r5)
            add(r5, r8)
            asr(r5, r3)
            ldm(r2, r6)
            add(r6, r9)
            asr(r6, r4)
            mul(r5, r6)
            stm(r1, r5)
        ldr(r2, sp.a)
        add(r3, r4)
        sub(r3, 18)
        str_(r3, a.EXPONENT)
        ldr(r3, a.PADDED)
        ldr(r4, a.N)
        sub(r3, r4)
        with when(gt):
            mov(r5, 0)
            with repeat("PAD", ne):
                stm(r1, r5)
                sub(r3, 1)
        drop(4)
    mov(r0, 0)


@called
def add_(vectors: Register, fields: Register) -> None:
    """x += y, saturated: plain.py's add.

    r2 x, r3 y, r4 end of x, r6 the most, r7 the least
    """
    a = Array(r1, ADD)
    ldr(r2, a.ADD_X)
    index(r2, 2, r0)
    ldr(r3, a.ADD_Y)
    index(r3, 2, r0)
    ldr(r4, a.ADD_COUNT)
    index(r4, 2, r2)
    constant(r6, (1 << 30) - 1)
    neg(r7, r6)
    b("TEST")
    with repeat("ELEMENT", ne(r2, r4)):
        ldr(r0, at(r2))
        ldm(r3, r1)
        add(r0, r1)
        saturate(r0, r6, r7)
        stm(r2, r0)
        label("TEST")
    mov(r0, 0)


@kernel
def argmax(vectors: Register, fields: Register) -> None:
    """Index of the largest of VOCAB logits, the first of equals: plain.py's argmax.

    r1 vector, r2 what comes next, r3 end, r4 the largest so far, r0 what follows it
    """
    a = Array(r1, PICK)
    ldr(r2, a.LOGITS)
    index(r2, 2, r0)
    ldr(r3, a.VOCAB)
    index(r3, 2, r2)
    mov(r1, r2)
    ldm(r2, r4)
    mov(r0, r2)
    b("TEST")
    with repeat("ELEMENT", ne(r2, r3)):
        ldm(r2, r5)
        branch(le(r5, r4), "TEST")
        mov(r4, r5)
        mov(r0, r2)
        label("TEST")
    sub(r0, r1)
    lsr(r0, 2)
    sub(r0, 1)


@kernel
def softmax(vectors: Register, exp2: Register, fields: Register) -> None:
    """VOCAB logits to weights, in place, and their SUM: plain.py's softmax.

    r0 logits, r1 table, r2 mantissa, r3 bits, r8 largest, r9 shift right, r10 shift left, r11 most that can
    be shifted left, r12 end, lr sum. sp: 30 - bits, a
    """
    a = Array(r2, PICK)
    sp = Frame(("down", "a"))
    with frame():
        ldr(r4, a.LOGITS)
        lsl(r4, 2)
        add(r0, r4)
        ldr(r4, a.VOCAB)
        index(r4, 2, r0)
        mov(r12, r4)
        ldr(r3, a.BITS)
        mov(r4, 30)
        sub(r4, r3)
        mov(r5, r2)
        push(r4, r5)
        constant(r6, (1 << 30) - 1)
        mov(r4, 0)
        ldr(r5, a.HEAT_EXPONENT)
        with when(lt(r5, 0)):
            neg(r4, r5)
            mov(r5, 0)
        lsr(r6, r5)
        mov(r9, r4)
        mov(r10, r5)
        mov(r11, r6)
        ldr(r2, a.HEAT)
        mov(r5, r0)
        ldm(r5, r4)
        b("LAST")
        with repeat("LARGEST", ne(r5, r12)):
            ldm(r5, r6)
            branch(le(r6, r4), "LAST")
            mov(r4, r6)
            label("LAST")
        mov(r8, r4)
        mov(r4, 0)
        mov(lr, r4)
        with repeat("WEIGHT", ne(r0, r12)):
            ldr(r5, at(r0))
            mov(r4, r8)
            sub(r4, r5)
            lsr(r5, r4, 30)
            with when(ne):
                constant(r4, (1 << 30) - 1)
            lsl(r5, r4, 17)
            lsr(r5, 17)
            mul(r5, r2)
            lsr(r5, 15)
            lsr(r4, 15)
            mul(r4, r2)
            add(r4, r5)
            mov(r5, r9)
            lsr(r4, r5)
            with when(hi(r4, r11)):
                mov(r4, r11)
            mov(r5, r10)
            lsl(r4, r5)
            mov(r7, 0)
            lsr(r6, r4, 16)
            with when(ls(r6, r3)):
                lsl(r4, 16)
                lsr(r5, r4, 26)
                index(r5, 1, r1)
                ldrh(r7, at(r5))
                ldrh(r5, at(r5, 2))
                sub(r5, r7)
                lsl(r4, 6)
                lsr(r4, 22)
                mul(r5, r4)
                asr(r5, 10)
                adc(r7, r5)
                lsl(r7, 15)
                ldr(r5, sp.down)
                lsr(r7, r5)
                lsr(r7, r6)
                add(lr, r7)
            stm(r0, r7)
        ldr(r2, sp.a)
        mov(r4, lr)
        str_(r4, a.SUM)
        drop(2)
    mov(r0, 0)


@kernel
def pick(vectors: Register, fields: Register) -> None:
    """An index drawn by weight from the smallest set that holds TOP_P of all: plain.py's pick.

    r0 weights, r1 a, r8 least, r9 sum of all above it, r10 how many of its equals join, r11 high, r12 end
    of the weights, lr goal
    """
    a = Array(r1, PICK)
    with frame():
        ldr(r2, a.LOGITS)
        lsl(r2, 2)
        add(r0, r2)
        ldr(r3, a.VOCAB)
        mov(r10, r3)
        lsl(r2, r3, 2)
        add(r2, r0)
        mov(r12, r2)
        mov(r2, 1)
        mov(r8, r2)
        ldr(r7, a.SUM)
        ldr(r4, a.TOP_P)
        lsr(r2, r4, 15)
        with when(eq):
            lsl(r6, r7, 17)
            lsr(r6, 17)
            mul(r6, r4)
            lsr(r6, 15)
            lsr(r7, 15)
            mul(r7, r4)
            add(r7, r6)
            mov(lr, r7)  # the goal
            ldr(r3, a.BITS)
            mov(r2, 2)
            lsl(r2, r3)
            sub(r2, 1)
            mov(r11, r2)
            mov(r3, 0)
            mov(r8, r3)
            # The sum r5 of all weights >= the bound r4, the smallest r6 of them and the sum r7 of its equals.
            with repeat("BOUND", cc(r8, r11)):
                mov(r4, r8)
                add(r4, r11)
                add(r4, 1)
                lsr(r4, 1)
                mov(r2, r0)
                mov(r5, 0)
                mov(r7, 0)
                mvn(r6, r7)
                b("TEST")
                with endless("REACHED", "SCANNED"):
                    add(r5, r3)
                    branch(hi(r3, r6), "TEST")
                    with when(ne):
                        mov(r6, r3)
                        mov(r7, 0)
                    add(r7, r3)
                    with repeat("TEST", cc(r3, r4)):
                        branch(eq(r2, r12), "SCANNED")
                        ldm(r2, r3)
                with when(ls(r5, lr)):
                    sub(r4, 1)
                    mov(r11, r4)
                    b("CLOSER")
                mov(r8, r6)
                sub(r5, r7)
                mov(r9, r5)
                branch(ls(r5, lr), "FOUND")
                label("CLOSER")
            label("FOUND")
            # As many equals as it takes to exceed the goal.
            mov(r7, r9)
            mov(r3, 0)
            with repeat("MORE", ls(r7, lr)):
                add(r7, r8)
                add(r3, 1)
            mov(r10, r3)
        # r7 the sum of all that may be drawn; r3 the generator's next state
        ldr(r3, a.STATE)
        lsl(r4, r3, 13)
        eor(r3, r4)
        lsr(r4, r3, 17)
        eor(r3, r4)
        lsl(r4, r3, 5)
        eor(r3, r4)
        str_(r3, a.STATE)
        lsr(r4, r3, 17)
        lsl(r5, r3, 15)
        lsr(r5, 17)
        lsr(r6, r7, 15)
        lsl(r7, 17)
        lsr(r7, 17)
        mul(r7, r4)
        mul(r5, r6)
        add(r7, r5)
        lsr(r7, 15)
        mul(r6, r4)
        add(r6, r7)
        # r6 is left; r1 what follows the last taken
        mov(r1, r0)
        add(r1, 4)
        mov(r2, r0)
        mov(r4, r8)
        mov(r5, r10)
        b("NEXT")
        with repeat("EACH", ne(r2, r12)):
            ldm(r2, r3)
            branch(cc(r3, r4), "NEXT")
            with when(eq):
                sub(r5, 1)
                branch(mi, "NEXT")
            mov(r1, r2)
            branch(cc(r6, r3), "DRAWN")
            sub(r6, r3)
            label("NEXT")
        label("DRAWN")
        sub(r0, r1, r0)
        lsr(r0, 2)
        sub(r0, 1)


@kernel
def run(steps: Register) -> None:
    """Steps one after the other, on to one of 0: see STEP.

    r4 the next step, r7 what it calls
    """
    mov(r4, r0)
    b("FIRST")
    with repeat("STEP", ne(r7, 0)):
        ldm(r4, r0, r1, r2, r3)
        blx(r7)
        label("FIRST")
        ldm(r4, r7)
    mov(r0, 0)
