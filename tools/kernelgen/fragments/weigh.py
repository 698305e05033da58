"""Scores to weights: of a distance d to the largest score 2^-(t / 256), t = d * m / 2^e.

r3 a, r5 m, r7 e, r10 tables.TABLES.
"""

from __future__ import annotations

from field_tables.kernels import QUERY
from kernelgen.fragments.common import divide
from kernelgen.language import *


def distance_scale(a: Array) -> None:
    """r5 m and r7 e, before limits, from r4 the query's record; r6 is used."""
    record = Array(r4, QUERY)
    ldr(r5, a.LOG_SCALE)
    times(r5, record.QUERY_MANTISSA, by=r6)
    mov(r6, 10)
    lsr(r7, r5, 25)
    with when(ne):
        add(r6, 1)
    lsr(r5, r6)
    constant(r7, 2048 + 17)
    sub(r7, r6)
    plus(r7, a.LOG_EXP, by=r6)
    minus(r7, record.QUERY_EXP, by=r6)
    minus(r7, a.KEXP, by=r6)
    minus(r7, record.QUERY_DOWN, by=r6)


def limit_scale(down: Register) -> None:
    """e within 1..17; what it is more, distances are shifted down by first."""
    mov(down, 0)
    with when(lt(r7, 1)):
        mov(r7, 1)
        lsl(r5, r7, 15)
        sub(r5, 1)
    branch(le(r7, 17), "FINE")
    mov(down, r7)
    sub(down, 17)
    mov(r7, 17)
    branch(le(down, 31), "FINE")
    mov(down, 31)
    label("FINE")


def farthest(t: int) -> None:
    """r9 = ceil(t * 2^e / m): a distance that weighs nothing. r4 to r7 are used; r7 is 0 then."""
    constant(r6, t)
    lsl(r6, r7)
    add(r6, r5)
    sub(r6, 1)
    lsl(r5, 15)
    divide("DIVIDE", r4, r6, r5, bits=16, left=r7)
    mov(r9, r4)


def power() -> None:
    """r6 = 4096 * 2^-fraction and r5 the whole doublings of a distance r5, by r3 m, r4 e; r7 is used."""
    mul(r5, r3)
    lsr(r5, r4)
    uxtb(r7, r5)
    lsl(r7, 1)
    add(r7, r10)
    ldrh(r6, at(r7))
    lsr(r5, 8)
