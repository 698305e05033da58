"""Values to codes, as encode() and query() do it: r0 values, r2 their end, r7 their shift, 0 of float32."""

from __future__ import annotations

from field_tables.kernels import LAYER
from kernelgen.fragments.common import *
from kernelgen.language import *


def scan_int16() -> None:
    """r4 the largest magnitude up to r2, of those it was before too; r5 and r6 are used."""
    with repeat("SHORT", ne(r0, r2)):
        next_int16(r5, r0)
        absolute(r5, r6)
        keep_larger(r4, r5)


def scan_float32() -> None:
    """The same of float32, as their bits without the sign, which leaves bit 0 empty."""
    with repeat("FLOATS", ne(r0, r2)):
        ldm(r0, r5)
        lsl(r5, 1)
        keep_larger(r4, r5, hi)


def normalize_int16() -> None:
    """r4 as 24 bits and r5 its exponent, on to LARGEST; to NOUGHT if it is 0."""
    mov(r5, 56)
    sub(r5, r7)
    lsl(r4, 8)
    branch(eq, "NOUGHT")
    label("NORMAL")
    lsr(r6, r4, 23)
    branch(ne, "LARGEST")
    add(r4, r4)
    sub(r5, 1)
    b("NORMAL")


def normalize_float32() -> None:
    """The same when r5 has the exponent's field."""
    lsl(r4, 8)
    lsr(r4, 9)
    constant(r6, 1 << 23)
    orr(r4, r6)
    sub(r5, 150)
    b("LARGEST")


def round_up(bits: Register) -> None:
    """r4, which is 1, becomes r6 >> bits, rounded up."""
    lsl(r4, bits)
    sub(r4, 1)
    add(r4, r6)
    lsr(r4, bits)


def eleven_bits(by: Register) -> None:
    """r4 = r6 >> r2, rounded up, of 11 bits, by the least r2 that does and is more than before; r5 += r2."""
    with repeat("NARROW", ne):
        add(r2, 1)
        mov(r4, 1)
        round_up(r2)
        lsr(by, r4, 11)
    add(r5, r2)


def begin_vectors(e: Array, sp: Frame) -> None:
    """The frame of encode(); r4 the layer's record, r5 0."""
    str_(r3, sp.e)
    str_(r0, sp.buffer)
    str_(r2, sp.v)
    put(sp.vector, 0, by=r5)
    ldr(r4, e.E_LAYER)
    mov(r6, Array(r4, LAYER).LAYER_WORDS.offset)
    mul(r4, r6)
    add(r4, r3)
    add(r4, e.E_TABLE.offset)
    str_(r4, sp.layer)


def next_vector(e: Array, sp: Frame) -> None:
    """r1 V's values, r4 the layer's record, r5 how many vectors are done."""
    ldr(r1, sp.v)
    ldr(r4, sp.layer)
    bump(sp.vector, 1, by=r5)


def begin_groups(e: Array, sp: Frame) -> None:
    """From r5 the slot, r6 the scales of slot 0 and r1 the vector's values, which are in r0 then."""
    lsl(r5, 1)
    add(r6, r5)
    str_(r6, sp.scale)
    put(sp.slice, 0, by=r5)
    put(sp.values_left, e.E_COUNT, by=r5)
    mov(r0, r1)


def begin_group(e: Array, sp: Frame) -> None:
    """r4 the group's largest magnitude as 24 bits and r5 its exponent, on to LARGEST; of zeros r4 sm, r5 se
    and r6 float16, on to SCALED. r1 the group's values."""
    ldr(r3, sp.e)
    ldr(r2, e.E_GROUP)
    ldr(r7, sp.shift)
    value_bytes(r2, r7)
    add(r2, r0)
    str_(r2, sp.group_end)
    mov(r1, r0)
    mov(r4, 0)
    branch(eq(r7, 0), "FLOATS")
    scan_int16()
    normalize_int16()
    scan_float32()
    lsr(r5, r4, 24)
    branch(eq, "NOUGHT")
    normalize_float32()
    label("NOUGHT")
    mov(r4, 1)
    mov(r5, 0)
    mov(r6, 0)
    b("SCALED")


def next_group(e: Array, sp: Frame) -> None:
    """The flags: whether values of the vector are left. r3 e."""
    ldr(r3, sp.e)
    ldr(r4, e.E_GROUP)
    ldr(r5, sp.values_left)
    sub(r5, r4)
    str_(r5, sp.values_left)


def store_scale(e: Array, sp: Frame) -> None:
    """From r4 sm of 11 bits, r5 se, r6 the scale before r2 bits were cut: float16, stored; else to REFUSE.

    Then r3 2 sm and r2 2^23 // 2 sm, r10 sm, r0 and r1 the group's values, and as round_codes() has them
    r8, r9 and r11.
    """
    with when(gt(r5, 5)):
        ldr(r0, sp.vector)
        mvn(r0, r0)
        b("REFUSE")
    mov(r7, 24)
    add(r7, r5)
    with when(pl):
        # se + 25 in the exponent field, where sm adds its 1024
        lsl(r6, r7, 10)
        add(r6, r4)
        b("SCALED")
    sub(r2, r7)
    mov(r4, 1)
    with when(le(r2, 30)):
        round_up(r2)
    mov(r6, r4)
    constant(r5, -24)
    label("SCALED")
    ldr(r7, sp.scale)
    strh(r6, at(r7))
    plus(r7, e.E_STRIDE, by=r6)
    str_(r7, sp.scale)
    mov(r10, r4)
    mov(r0, r1)
    lsl(r3, r4, 1)
    mov(r2, 0)
    mov(r6, 1)
    mov(r7, 23)
    lsr(r4, 10)
    branch(eq, "DIVIDE")
    lsl(r6, 10)
    mov(r7, 13)
    long_divide(r2, r6, r3, left=r7)
    put(r11, sp.shift, by=r7)
    magnitude_shifts()


def magnitude_shifts() -> None:
    """From r5 se and r7 the shift: of int16 r8 bits left and r9 right; of float32 r8 the hidden bit and r9
    what the exponent is taken from for bits right."""
    with when(ne(r7, 0)):
        mov(r6, 65)
        sub(r6, r7)
        sub(r6, r5)
        mov(r7, 0)
        with when(lt(r6, 0)):
            neg(r7, r6)
            mov(r6, 0)
        mov(r8, r6)
        mov(r9, r7)
    with otherwise():
        put(r8, 1 << 31, by=r6)
        mov(r6, 157)
        add(r6, r5)
        mov(r9, r6)


def int16_magnitude() -> None:
    """r5 the next value's magnitude in units of half a scale, r7 its sign; r4 is used."""
    next_int16(r5, r0)
    absolute(r5, r7)
    mov(r4, r8)
    lsl(r5, r4)
    mov(r4, r9)
    lsr(r5, r4)


def float32_magnitude() -> None:
    """The same of a float32; r4 and r6 are used."""
    ldm(r0, r5)
    asr(r7, r5, 31)
    lsl(r4, r5, 1)
    lsr(r4, 24)
    lsl(r5, 9)
    lsr(r5, 1)
    add(r5, r8)
    mov(r6, r9)
    sub(r6, r4)
    lsr(r5, r6)


def next_magnitude() -> None:
    """Of either kind, by r11."""
    mov(r4, r11)
    with when(ne(r4, 0)):
        int16_magnitude()
    with otherwise():
        float32_magnitude()


def round_code() -> None:
    """r6 = floor((2 |x| + s) / 2 s) of r5; the reciprocal r2 may fall one short, never over. r4 is used."""
    add(r5, r10)
    mov(r6, r5)
    mul(r6, r2)
    lsr(r6, 23)
    mov(r4, r6)
    mul(r4, r3)
    sub(r5, r4)
    with when(cs(r5, r3)):
        add(r6, 1)
