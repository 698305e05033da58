"""Numbers: magnitudes, limits, quotients."""

from __future__ import annotations

from kernelgen.language import *


def absolute(x: Register, sign: Register) -> None:
    """|x|, and in sign -1 if x was negative, else 0."""
    asr(sign, x, 31)
    add(x, sign)
    eor(x, sign)


def with_sign(x: Register, sign: Register) -> None:
    """-x if sign is -1, x if it is 0."""
    eor(x, sign)
    sub(x, sign)


def next_int16(x: Register, pointer: Register) -> None:
    ldrh(x, at(pointer))
    sxth(x, x)
    add(pointer, 2)


def keep_larger(x: Register, other: Register, above: Condition = gt) -> None:
    with when(above(other, x)):
        mov(x, other)


def keep_smaller(x: Register, other: Register) -> None:
    """Of numbers without a sign."""
    with when(cc(other, x)):
        mov(x, other)


def at_most(x: Register, most: int | Register) -> None:
    with when(gt(x, most)):
        mov(x, most)


def at_least(x: Register, least: Register) -> None:
    with when(lt(x, least)):
        mov(x, least)


def value_bytes(count: Register, shift: Register, given: Place | None = None) -> None:
    """A number of values to that of their bytes: of float32 if their shift, which may be given, is 0."""
    lsl(count, 1)
    if given:
        ldr(shift, given)
    with when(eq(shift, 0)):
        lsl(count, 1)


def half_of(to: Register, bits: Register) -> None:
    """Half of 1 << bits, to round by; 0 for no bits."""
    mov(to, 1)
    lsl(to, bits)
    lsr(to, 1)


def two_lanes(x: Register, number: int, by: Register) -> None:
    """A number in both halves of a word."""
    mov(x, number)
    lsl(by, x, 16)
    orr(x, by)


def product(x: Register, mask: Register, factor: Register) -> None:
    """Two numbers of x times those of a factor, r0 to r7 or by r6 r8: the sum of both is the upper half."""
    and_(x, mask)
    if factor == r8:
        mov(r6, factor)
        factor = r6
    mul(x, factor)
    asr(x, 16)


def divide(name: str, quotient: Register, x: Register, divisor: Register, bits: int, left: Register) -> None:
    """x // divisor of so many bits, by subtraction. The divisor comes shifted up by bits - 1."""
    mov(quotient, 0)
    mov(left, bits)
    with repeat(name, ne):
        add(quotient, quotient)
        with when(cs(x, divisor)):
            sub(x, divisor)
            add(quotient, 1)
        lsr(divisor, 1)
        sub(left, 1)


def long_divide(quotient: Register, x: Register, divisor: Register, left: Register) -> None:
    """Goes on with a division whose dividend has `left` zeros more: shifts it instead of the divisor."""
    with repeat("DIVIDE", ne):
        add(quotient, quotient)
        add(x, x)
        with when(cs(x, divisor)):
            sub(x, divisor)
            add(quotient, 1)
        sub(left, 1)
