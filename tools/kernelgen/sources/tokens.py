"""The kernels of plain.py in Thumb assembler: same bits, less than half of viper's instructions, about half
of its code.

ARMv6-M only, see mpy_kv/kernels/thumb.py, whose conventions hold.
"""

from field_tables.kernels import ATTEND, KIND, PLAN
from kernelgen.fragments.common import *
from kernelgen.fragments.weigh import *
from kernelgen.language import *

USED, MASS = index_of("USED", KIND), index_of("MASS", KIND)


@called
def uses(buffer: Register, policy: Register, tables: Register, attend: Register) -> None:
    """Shares of the visible tokens in a head's attention, added up behind the plan: plain.py's uses.

    From int32[N] at SCORES to int32[N] at ACC, by way of uint16[N] behind RING + SINKS of these; at slice 0
    only. `tables` is kernels.tables.TABLES.

    r0 scores, r1 scratch, r2 shift down, r3 mantissa, r4 exponent, r8 MAX, r9 distance that weighs nothing,
    r10 tables, r11 sum of weights, r12 exponent, lr end of the scores; then r0 shares, lr their end
    """
    plan, a = Array(r1, PLAN), Array(r3, ATTEND)
    plan_ = plan.on(r7)
    largest, far, total, exponent, end = r8, r9, r11, r12, lr
    ldr(r4, a.SLICE)
    with when(ne(r4, 0)):
        b("RETURN")
    with frame("plan shares shares_end scratch") as sp:
        str_(r1, sp.plan)
        mov(r10, r2)
        ldr(r4, plan.RING)
        plus(r4, plan.SINKS, by=r5)
        lsl(r4, 2)
        add(r1, plan.ACC.offset)
        str_(r1, sp.shares)
        add(r4, r1)
        str_(r4, sp.scratch)
        ldr(r6, a.N)
        lsl(r6, 2)
        add(r5, r6, r1)
        str_(r5, sp.shares_end)
        mov(r1, r4)
        locate(r4, a.QUERY, r0)
        plus(r0, a.SCORES, by=r5)
        add(r6, r0)
        mov(end, r6)
        distance_scale(a)
        put(largest, a.MAX, by=r4)
        limit_scale(down=r2)
        mov(exponent, r7)
        mov(r3, r5)
        farthest(16 << 8)
        mov(r4, exponent)
        mov(total, r7)
        with repeat("TOKEN", ne(r0, end)):
            mov(r6, largest)
            ldm(r0, r5)
            sub(r5, r6, r5)
            lsr(r5, r2)
            mov(r6, 0)
            with when(cc(r5, far)):
                power()
                lsl(r6, 3)
                lsr(r6, r5)
                add(total, r6)
            strh(r6, at(r1))
            add(r1, 2)
        ldr(r7, sp.plan)
        ldr(r0, sp.shares)
        ldr(r4, sp.shares_end)
        ldr(r1, sp.scratch)
        mov(end, r4)
        mov(r6, total)
        ldr(r5, plan_.PEAK)
        with when(ne(r5, 0)):
            # Above 8 / n of all: of total << 3 over n, which has 15 bits or exceeds the largest weight.
            sub(r5, r4, r0)
            lsl(r4, r5, 10)
            branch(cs(r6, r4), "END")
            lsl(r6, 3)
            lsl(r5, 12)
            divide("PART", r2, r6, r5, bits=15, left=r7)
            mov(r3, 1)
            with repeat("MARK", ne(r0, end)):
                ldrh(r4, at(r1))
                add(r1, 2)
                with when(hi(r4, r2)):
                    str_(r3, at(r0))
                add(r0, 4)
            b("END")
        ldr(r4, plan_.BITS)
        mov(r3, 30)
        sub(r3, r4)
        with endless("LARGE", "SMALL"):
            lsr(r4, r6, 16)
            branch(eq, "SMALL")
            lsr(r6, 1)
            add(r3, 1)
        at_most(r3, 31)
        # 2^30 over the sum's 16 bits
        lsl(r5, r6, 15)
        constant(r6, 1 << 30)
        divide("INVERT", r2, r6, r5, bits=16, left=r7)
        with repeat("ADD", ne(r0, end)):
            ldrh(r4, at(r1))
            add(r1, 2)
            mul(r4, r2)
            lsr(r4, r3)
            plus(r4, at(r0), by=r5)
            stm(r0, r4)
        label("END")
    label("RETURN")
    mov(r0, 0)


@kernel
def survey(positions: Register, worth: Register, policy: Register, length: Register) -> None:
    """Begin of a step: LIVE, FREE, TOP and VICTIM of the ring, shares cleared: plain.py's survey.

    From int32[RING] each of 1 + position and of worth; int32[RING + SINKS] at ACC become 0.

    r0 at, r1 worth, r2 plan, r3 length, r4 at of this slot, r5 its worth, r6 least worth, r7 at of that,
    r8 end of at, r9 live, r10 newest that may leave; as places of `at`: r11 victim, r12 free, lr top
    """
    plan = Array(r2, PLAN)
    end, live, newest, victim, free, top = r8, r9, r10, r11, r12, lr

    def slot(place: Register, to: Place) -> None:
        """A place of `at` as its slot."""
        mov(r4, place)
        sub(r4, r0)
        lsr(r4, 2)
        str_(r4, to)

    with frame("at") as sp:
        str_(r0, sp.at)
        point(r4, plan.ACC)
        ldr(r5, plan.RING)
        plus(r5, plan.SINKS, by=r6)
        mov(r6, 0)
        with repeat("CLEAR", ne):
            stm(r4, r6)
            sub(r5, 1)
        mov(live, r6)
        ldr(r5, plan.RING)
        index(r5, 2, r0)
        for place in (end, victim, free, top):
            mov(place, r5)
        ldr(r5, plan.RECENT)
        sub(r5, r3, r5)
        mov(newest, r5)
        constant(r6, (1 << 30) - 1)
        mov(r7, r6)
        with repeat("SLOT", ne(r0, end)):
            ldr(r4, at(r0))
            with when(hi(r4, r3)):
                mov(r4, 0)
                str_(r4, at(r0))
            with when(ne(r4, 0)):
                mov(top, r0)
                mov(r5, 1)
                add(live, r5)
                with when(le(r4, newest)):
                    ldr(r5, at(r1))
                with otherwise():
                    lsl(r5, 30)
                    sub(r5, 1)
                with when(cs(r5, r6)):
                    branch(ne, "NEXT")
                    branch(cs(r4, r7), "NEXT")
                mov(r6, r5)
                mov(r7, r4)
                mov(victim, r0)
                b("NEXT")
            with when(eq(free, end)):
                mov(free, r0)
            label("NEXT")
            add(r0, 4)
            add(r1, 4)
        ldr(r0, sp.at)
        put(plan.LIVE, live, by=r4)
        slot(free, plan.FREE)
        slot(top, plan.TOP)
        slot(victim, plan.VICTIM)
    mov(r0, 0)


@kernel
def watch(policy: Register, old: Register, new: Register, kind: Register) -> None:
    """Commit: worths and the step's shares to new worths: plain.py's watch.

    From int32[RING] `old` and int32[COUNT] of shares at ACC + SEEN to int32[RING] `new`; of masses also how
    often they were halved, and the largest.

    r1 old, r2 new, r4 shares, r6 tokens before the hole, r12 end of the shares USED: r0 worth, r3 NOW, r5
    share, r7 threshold else: r5 share, r7 worth, r8 drop, r9 down, r10 up, r11 largest, lr rows
    """
    plan = Array(r0, PLAN)
    drop, down, up, most, end, rows = r8, r9, r10, r11, r12, lr

    def over_hole() -> None:
        """The slot of the hole has no share."""
        with when(eq(r6, 0)):
            add(r1, 4)
            add(r2, 4)
        sub(r6, 1)

    with frame("new_end halved kind") as sp:
        str_(r3, sp.kind)
        ldr(r4, plan.SEEN)
        index(r4, 2, r0)
        add(r4, plan.ACC.offset)
        ldr(r5, plan.COUNT)
        index(r5, 2, r4)
        mov(end, r5)
        ldr(r6, plan.HOLE)
        with when(eq(r3, USED)):
            ldr(r7, plan.THRESHOLD)
            constant(r3, 1 << 29)
            b("USED_TEST")
            with repeat("USED", ne(r4, end)):
                over_hole()
                ldm(r1, r0)
                with when(ne(r0, 0)):
                    sub(r0, 1)
                ldm(r4, r5)
                with when(hi(r5, r7)):
                    mov(r0, r3)
                stm(r2, r0)
                label("USED_TEST")
            b("END")
        put(down, plan.DOWN, by=r5)
        put(up, plan.UP, by=r5)
        put(rows, plan.ROWS, by=r5)
        ldr(r7, plan.RING)
        lsl(r7, 2)
        add(r0, r2, r7)
        str_(r0, sp.new_end)
        put(drop, 0, by=r0)
        branch(ne(r3, MASS), "SHIFTS")
        # All are halved until the largest has 28 bits, and rows are no more than 64 of what is added.
        add(r7, r1)
        ldr(r0, at(r7))
        ldr(r7, at(r7, 4))
        lsr(r5, r0)
        lsl(r3, 28)
        mov(r11, r3)
        mov(r3, 0)
        b("HALVE_TEST")
        label("HALVE")
        add(r3, 1)
        lsr(r7, 1)
        lsr(r5, 1)
        label("HALVE_TEST")
        branch(hi(r5, 64), "HALVE")
        branch(cs(r7, r11), "HALVE")
        mov(drop, r3)
        add(r0, r3)
        branch(ls(r0, 20), "SHIFTS")
        mov(r0, 20)
        label("SHIFTS")
        str_(r0, sp.halved)
        mov(r3, down)
        add(r3, r0)
        mov(r5, up)
        sub(r3, r5)
        put(most, 0, by=r5)
        with when(lt(r3, 0)):
            sub(r5, r3)
            mov(r3, 0)
        mov(down, r3)
        mov(up, r5)
        b("TEST")
        with repeat("TOKEN", ne(r4, end)):
            over_hole()
            ldm(r1, r7)
            ldm(r4, r5)
            ldr(r3, sp.kind)
            with when(ne(r3, MASS)):
                lsl(r0, r7, 1)
                add(r0, r7)
                add(r0, 63)
                lsr(r0, 6)
                sub(r7, r0)
                # The share over the rows, by subtraction; nothing to do for one.
                mov(r3, rows)
                branch(eq(r3, 1), "SHARE")
                mov(r0, 0)
                b("ALIGN_TEST")
                with repeat("ALIGN", ls(r3, r5)):
                    lsl(r3, 1)
                    label("ALIGN_TEST")
                label("BIT")
                lsr(r3, 1)
                with when(cs(r3, rows)):
                    add(r0, r0)
                    branch(cc(r5, r3), "BIT")
                    sub(r5, r3)
                    add(r0, 1)
                    b("BIT")
                mov(r5, r0)
                b("SHARE")
            mov(r0, drop)
            lsr(r7, r0)
            label("SHARE")
            mov(r0, down)
            lsr(r5, r0)
            mov(r0, up)
            lsl(r5, r0)
            add(r7, r5)
            with when(hi(r7, most)):
                mov(most, r7)
            stm(r2, r7)
            label("TEST")
        ldr(r3, sp.kind)
        with when(eq(r3, MASS)):
            ldr(r0, sp.new_end)
            put(at(r0), sp.halved, by=r3)
            put(at(r0, 4), most, by=r3)
        label("END")
    mov(r0, 0)


@kernel
def move(buffer: Register, to: Register, source: Register, count: Register) -> None:
    """Bytes from one place of the buffer to another, two places apart: plain.py's move.

    r1 to, r2 from, r3 bytes left
    """
    add(to, buffer)
    add(source, buffer)
    with repeat("BYTE", ne(count, 0)):
        sub(count, 1)
        ldrb(r4, at(source, count))
        strb(r4, at(to, count))
    mov(r0, 0)
