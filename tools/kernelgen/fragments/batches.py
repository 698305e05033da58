"""Weights times codes, in batches of 8 tokens: r1 weights, r2 mask of two lanes, r3 weight, sums in LANES.

A batch that is split, which its unit tells, is gone through twice, for either half of its weights.
"""

from __future__ import annotations

from collections.abc import Callable

from kernelgen.fragments.common import keep_smaller
from kernelgen.language import *

LANES = (r8, r9, r10, r11)

SPLIT = "part from_row from_weight from_left from_run"
"""Words of a frame: where a batch that is split began, and what its weights are shifted down by, which is the
low byte of `part`. That is 0 outside of such a batch."""
_FIRST, _SECOND = 1 << 8, 16
_FINER = 5  # bits, of the second part's unit


def clear_lanes(by: Register) -> None:
    for lane in LANES:
        mov(lane, by)


def begin_column(a: Array, shift: int, sp: Frame) -> None:
    """r2 the column, r3 a, r4 the place of its sums, r5 the buffer; the lanes, r6 and r7 are 0, and no row of
    a run is left. 1 << shift: bytes of sums a column counts."""
    ldr(r3, sp.a)
    ldr(r5, sp.buffer)
    ldr(r2, sp.column)
    locate(r4, a.SUMS, r5)
    lsl(r6, r2, shift)
    add(r4, r6)
    str_(r4, sp.sums)
    mov(r6, 0)
    mov(r7, 0)
    clear_lanes(r6)
    str_(r6, sp.run_left)


def begin_batches(a: Array, sp: Frame) -> None:
    """r1 the weights; all units and tokens are left. r5 the buffer; r4 is used."""
    locate(r1, a.DOTS, r5)
    locate(r4, a.UNITS, r5)
    str_(r4, sp.units)
    put(sp.tokens_left, a.N, by=r4)


def take_run(codes: Place, count: Place, words: Place, sp: Frame) -> None:
    """Adds to r0 where the codes of the run at r4 begin; r6 its rows. The next one, `words` behind, is next;
    r5 is used."""
    plus(r0, codes, by=r5)
    ldr(r6, count)
    add(r4, words.offset)
    str_(r4, sp.run)


def next_batch(sp: Frame) -> None:
    """r7 its tokens, at most 8; r5 is used."""
    ldr(r5, sp.tokens_left)
    mov(r7, 8)
    keep_smaller(r7, r5)
    sub(r5, r7)
    str_(r5, sp.tokens_left)


def next_part(left: Place, sp: Frame) -> None:
    """Of r7 tokens of the batch those that r6 rows follow one another for: lr the end of their weights."""
    mov(r5, r7)
    keep_smaller(r5, r6)
    sub(r6, r5)
    str_(r6, left)
    sub(r7, r5)
    str_(r7, sp.batch_left)
    index(r5, 2, r1)
    mov(lr, r5)


def each_token(
    body: Callable[[bool], None],
    gap: tuple[Register, int],
    left: Place,
    sp: Frame,
    run: Place | None = None,
) -> None:
    """What runs for a token, up to lr, and whether its batch is split: r7 then tells which part of a weight.
    gap: what a row of r0 has of bytes, by rows_on. left: rows of the run that are left; run: the next one, if
    there are several."""
    ldr(r7, sp.units)
    ldrb(r7, at(r7, 3))
    with when(ne(r7, 0)):
        with when(ne(r7, 1)):
            # It weighs nothing.
            mov(r4, lr)
            sub(r1, r4, r1)
            lsr(r1, 2)
            rows_on(*gap, r1)
            mov(r1, r4)
            b("PART_END")
        ldr(r7, sp.part)
        with when(eq(r7, 0)):
            str_(r0, sp.from_row)
            str_(r1, sp.from_weight)
            mov(r4, lr)
            sub(r4, r1)
            lsr(r4, 2)
            plus(r4, left, by=r5)
            str_(r4, sp.from_left)
            if run:
                put(sp.from_run, run, by=r4)
            put(sp.part, _FIRST, by=r7)
        with repeat("HALF", ne(r1, lr)):
            body(True)
        b("PART_END")
    with repeat("TOKEN", ne(r1, lr)):
        body(False)
    label("PART_END")


def rows_on(gap: Register, more: int, count: Register) -> None:
    """r0 so many rows on, each of `gap` bytes and some more; r5 is used."""
    mov(r5, gap)
    if more:
        add(r5, more)
    mul(count, r5)
    add(r0, count)


def weight(to: Register, split: bool) -> None:
    """The next one, or the part of it that r7 tells."""
    ldm(r1, to)
    if split:
        lsr(to, r7)
        uxth(to, to)


def turn(
    shift: Register, left: Place, sp: Frame, by: tuple[Register, Register], run: Place | None = None
) -> None:
    """The end of a batch, before its sums are added: if it is split, back to its start for the second part,
    or that part's unit."""
    x, y = by
    lsr(x, shift, 9)
    with when(cs):
        ldr(x, sp.part)
        with when(eq(x, _SECOND)):
            add(shift, _FINER)
            put(sp.part, 0, by=x)
            b("TURNED")
        put(sp.part, _SECOND, by=x)
        ldr(x, sp.from_weight)
        sub(r1, x)
        lsr(r1, 2)
        ldr(y, sp.tokens_left)
        add(y, r1)
        str_(y, sp.tokens_left)
        if run is None:
            str_(r1, sp.next_batch)
        else:
            put(run, sp.from_run, by=y)
        mov(r1, x)
        ldr(r0, sp.from_row)
        put(left, sp.from_left, by=y)
        ldr(y, sp.units)
        sub(y, 4)
        str_(y, sp.units)
        label("TURNED")


def lane(x: Register, total: Register) -> None:
    """Two codes times the weight."""
    and_(x, r2)
    mul(x, r3)
    add(total, x)


def nibbles(split: bool) -> None:
    """8 codes of 4 bits of a token, each counted 16 times: r0 codes, r12 from a token's last to the next
    one's first."""
    ldm(r0, r4)
    add(r0, r12)
    weight(r3, split)
    lsl(r5, r4, 4)
    lane(r5, r8)
    mov(r5, r4)
    lane(r5, r9)
    lsr(r5, r4, 4)
    lane(r5, r10)
    lsr(r4, 8)
    lane(r4, r11)


def unit_of_batch(pointer: Register, shift: Register, factor: Register, sp: Frame) -> None:
    """What the batch's sums are multiplied with and shifted down by; then the pointer is at those of all. To
    BATCH_END if it weighs nothing: there are none."""
    ldr(pointer, sp.units)
    ldm(pointer, shift)
    str_(pointer, sp.units)
    uxth(factor, shift)
    lsr(shift, 16)
    lsr(pointer, shift, 10)
    branch(cs, "BATCH_END")
    ldr(pointer, sp.sums)


def add_lane(total: Register, low: int, high: int) -> None:
    """The batch's two sums to those of all at r7, by r3 factor, r4 shift; r2, r5 and r6 are used."""
    mov(r5, total)
    uxth(r6, r5)
    lsr(r5, 16)
    mul(r6, r3)
    mul(r5, r3)
    lsr(r6, r4)
    lsr(r5, r4)
    bump(at(r7, low), r6, by=r2)
    bump(at(r7, high), r5, by=r2)


def end_batch(sp: Frame) -> None:
    """r5 the tokens left, r2 the mask."""
    mov(r2, 0)
    clear_lanes(r2)
    label("BATCH_END")
    ldr(r2, sp.mask)
    ldr(r5, sp.tokens_left)


def end_nibbles(left: Place, sp: Frame, run: Place | None = None) -> None:
    """The end of a batch of nibbles: 8 channels, of which the lanes have c and c + 4."""
    unit_of_batch(r7, r4, r3, sp)
    turn(r4, left, sp, by=(r5, r6), run=run)
    for channel, total in enumerate(LANES):
        add_lane(total, 4 * channel, 4 * channel + 16)
    end_batch(sp)
