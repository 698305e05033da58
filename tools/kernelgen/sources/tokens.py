"""The kernels of plain.py in Thumb assembler: same bits, a quarter of viper's instructions and memory.

ARMv6-M only, see mpy_kv/kernels/thumb.py, whose conventions hold.
"""
from field_tables.kernels import *
from kernelgen.flow import *
from kernelgen.kernel import Register, kernel
from kernelgen.thumb import *


@kernel
def uses(buffer: Register, plan_: Register, tables: Register, attend: Register) -> None:
    """r0 scores, r1 scratch, r2 shift down, r3 mantissa, r4 exponent, r8 MAX, r9 distance that weighs
    nothing,
    r10 tables, r11 sum of weights, r12 exponent, lr end of the scores"""
    plan = Array(r1, PLAN)
    a = Array(r3, ATTEND)
    record = Array(r4, QUERY)
    plan_r7 = plan.on(r7)
    plan_r0 = plan.on(r0, plan.ACC)
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
        ldr(r4, a.QUERY)
        add(r4, r0)
        plus(r0, a.SCORES, by=r5)
        add(r6, r0)
        mov(lr, r6)
        ldr(r5, a.LOG_SCALE)
        times(r5, record.QUERY_MANTISSA, by=r6)
        mov(r6, 10)
        lsr(r7, r5, 25)
        with when(ne):
            add(r6, 1)
        lsr(r5, r6)
        constant(r7, (129 << 4) + 5)
        sub(r7, r6)
        plus(r7, a.LOG_EXP, by=r6)
        ldr(r6, record.QUERY_EXP)
        sub(r7, r6)
        ldr(r6, a.KEXP)
        sub(r7, r6)
        ldr(r6, record.QUERY_DOWN)
        sub(r7, r6)
        put(r8, a.MAX, by=r4)
        mov(r2, 0)
        with when(lt(r7, 1)):
            mov(r7, 1)
            lsl(r5, r7, 15)
            sub(r5, 1)
        branch(le(r7, 17), "FINE")
        mov(r2, r7)
        sub(r2, 17)
        mov(r7, 17)
        branch(le(r2, 31), "FINE")
        mov(r2, 31)
        label("FINE")
        mov(r12, r7)
        mov(r3, r5)
        # far = ceil(4096 << e / m), by subtraction: 16 bits
        constant(r6, 1 << 12)
        lsl(r6, r7)
        add(r6, r5)
        sub(r6, 1)
        lsl(r5, 15)
        mov(r4, 0)
        mov(r7, 16)
        with repeat("DIVIDE", ne):
            add(r4, r4)
            with when(cs(r6, r5)):
                sub(r6, r5)
                add(r4, 1)
            lsr(r5, 1)
            sub(r7, 1)
        mov(r9, r4)
        mov(r4, r12)
        mov(r11, r7)
        with repeat("TOKEN", ne(r0, lr)):
            mov(r6, r8)
            ldm(r0, r5)
            sub(r5, r6, r5)
            lsr(r5, r2)
            mov(r6, 0)
            with when(cc(r5, r9)):
                mul(r5, r3)
                lsr(r5, r4)
                uxtb(r7, r5)
                lsl(r7, 1)
                add(r7, r10)
                ldrh(r6, at(r7))
                lsr(r5, 8)
                lsl(r6, 3)
                lsr(r6, r5)
                add(r11, r6)
            strh(r6, at(r1))
            add(r1, 2)
        ldr(r7, sp.plan)
        ldr(r0, sp.shares)
        ldr(r4, sp.shares_end)
        ldr(r1, sp.scratch)
        mov(lr, r4)
        mov(r6, r11)
        ldr(r5, plan_r7.PEAK)
        with when(ne(r5, 0)):
            # Above 8 / n of all: of total << 3 over n, which has 15 bits or exceeds the largest weight.
            sub(r5, r4, r0)
            lsl(r4, r5, 10)
            branch(cs(r6, r4), "END")
            lsl(r6, 3)
            lsl(r5, 12)
            mov(r2, 0)
            mov(r7, 15)
            with repeat("PART", ne):
                add(r2, r2)
                with when(cs(r6, r5)):
                    sub(r6, r5)
                    add(r2, 1)
                lsr(r5, 1)
                sub(r7, 1)
            mov(r3, 1)
            with repeat("MARK", ne(r0, lr)):
                ldrh(r4, at(r1))
                add(r1, 2)
                with when(hi(r4, r2)):
                    str_(r3, plan_r0.ACC)
                add(r0, 4)
            b("END")
        ldr(r4, at(r7, 20))
        mov(r3, 30)
        sub(r3, r4)
        with endless("LARGE", "SMALL"):
            lsr(r4, r6, 16)
            branch(eq, "SMALL")
            lsr(r6, 1)
            add(r3, 1)
        with when(gt(r3, 31)):
            mov(r3, 31)
        # 2^30 over the sum's 16 bits
        lsl(r5, r6, 15)
        constant(r6, 1 << 30)
        mov(r2, 0)
        mov(r7, 16)
        with repeat("INVERT", ne):
            add(r2, r2)
            with when(cs(r6, r5)):
                sub(r6, r5)
                add(r2, 1)
            lsr(r5, 1)
            sub(r7, 1)
        with repeat("ADD", ne(r0, lr)):
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
def survey(at_: Register, worth: Register, plan_: Register, length: Register) -> None:
    """r0 at, r1 worth, r2 plan, r3 length, r4 at of this slot, r5 its worth, r6 least worth, r7 at of that,
    r8 end of at, r9 live, r10 newest that may leave; as places of `at`: r11 victim, r12 free, lr top"""
    plan = Array(r2, PLAN)
    with frame("at") as sp:
        str_(r0, sp.at)
        point(r4, plan.ACC)
        ldr(r5, plan.RING)
        plus(r5, plan.SINKS, by=r6)
        mov(r6, 0)
        with repeat("CLEAR", ne):
            stm(r4, r6)
            sub(r5, 1)
        mov(r9, r6)
        ldr(r5, plan.RING)
        lsl(r5, 2)
        add(r5, r0)
        mov(r8, r5)
        mov(r11, r5)
        mov(r12, r5)
        mov(lr, r5)
        ldr(r5, plan.RECENT)
        sub(r5, r3, r5)
        mov(r10, r5)
        constant(r6, (1 << 30) - 1)
        mov(r7, r6)
        with repeat("SLOT", ne(r0, r8)):
            ldr(r4, at(r0))
            with when(hi(r4, r3)):
                mov(r4, 0)
                str_(r4, at(r0))
            with when(ne(r4, 0)):
                mov(lr, r0)
                mov(r5, 1)
                add(r9, r5)
                with when(le(r4, r10)):
                    ldr(r5, at(r1))
                with otherwise():
                    lsl(r5, 30)
                    sub(r5, 1)
                with when(cs(r5, r6)):
                    branch(ne, "NEXT")
                    branch(cs(r4, r7), "NEXT")
                mov(r6, r5)
                mov(r7, r4)
                mov(r11, r0)
                b("NEXT")
            branch(ne(r12, r8), "NEXT")
            mov(r12, r0)
            label("NEXT")
            add(r0, 4)
            add(r1, 4)
        ldr(r0, sp.at)
        mov(r4, r9)
        str_(r4, plan.LIVE)
        mov(r4, r12)
        sub(r4, r0)
        lsr(r4, 2)
        str_(r4, plan.FREE)
        mov(r4, lr)
        sub(r4, r0)
        lsr(r4, 2)
        str_(r4, plan.TOP)
        mov(r4, r11)
        sub(r4, r0)
        lsr(r4, 2)
        str_(r4, plan.VICTIM)
    mov(r0, 0)


@kernel
def watch(plan_: Register, old: Register, new: Register, kind: Register) -> None:
    """r1 old, r2 new, r4 shares, r6 tokens before the hole, r12 end of the shares
    USED: r0 worth, r3 NOW, r5 share, r7 threshold
    else: r5 share, r7 worth, r8 drop, r9 down, r10 up, r11 largest, lr rows"""
    plan = Array(r0, PLAN)
    with frame("new_end halved kind") as sp:
        str_(r3, sp.kind)
        ldr(r4, plan.SEEN)
        lsl(r4, 2)
        add(r4, r0)
        add(r4, 112)
        ldr(r5, plan.COUNT)
        lsl(r5, 2)
        add(r5, r4)
        mov(r12, r5)
        ldr(r6, plan.HOLE)
        with when(eq(r3, 0)):
            ldr(r7, plan.THRESHOLD)
            constant(r3, 1 << 29)
            b("USED_TEST")
            with repeat("USED", ne(r4, r12)):
                with when(eq(r6, 0)):
                    add(r1, 4)
                    add(r2, 4)
                sub(r6, 1)
                ldm(r1, r0)
                with when(ne(r0, 0)):
                    sub(r0, 1)
                ldm(r4, r5)
                with when(hi(r5, r7)):
                    mov(r0, r3)
                stm(r2, r0)
                label("USED_TEST")
            b("END")
        put(r9, at(r0, 32), by=r5)
        put(r10, at(r0, 60), by=r5)
        put(lr, at(r0, 44), by=r5)
        ldr(r7, at(r0))
        lsl(r7, 2)
        add(r0, r2, r7)
        str_(r0, sp.new_end)
        put(r8, 0, by=r0)
        branch(ne(r3, 1), "SHIFTS")
        # MASS: all are halved until the largest has 28 bits, and rows are no more than 64 of what is added.
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
        mov(r8, r3)
        add(r0, r3)
        branch(ls(r0, 20), "SHIFTS")
        mov(r0, 20)
        label("SHIFTS")
        str_(r0, sp.halved)
        mov(r3, r9)
        add(r3, r0)
        mov(r5, r10)
        sub(r3, r5)
        put(r11, 0, by=r5)
        with when(lt(r3, 0)):
            sub(r5, r3)
            mov(r3, 0)
        mov(r9, r3)
        mov(r10, r5)
        b("TEST")
        with repeat("TOKEN", ne(r4, r12)):
            with when(eq(r6, 0)):
                add(r1, 4)
                add(r2, 4)
            sub(r6, 1)
            ldm(r1, r7)
            ldm(r4, r5)
            ldr(r3, sp.kind)
            with when(ne(r3, 1)):
                lsl(r0, r7, 1)
                add(r0, r7)
                add(r0, 63)
                lsr(r0, 6)
                sub(r7, r0)
                # The share over the rows, by subtraction; nothing to do for one.
                mov(r3, lr)
                branch(eq(r3, 1), "SHARE")
                mov(r0, 0)
                b("ALIGN_TEST")
                with repeat("ALIGN", ls(r3, r5)):
                    lsl(r3, 1)
                    label("ALIGN_TEST")
                label("BIT")
                lsr(r3, 1)
                with when(cs(r3, lr)):
                    add(r0, r0)
                    branch(cc(r5, r3), "BIT")
                    sub(r5, r3)
                    add(r0, 1)
                    b("BIT")
                mov(r5, r0)
                b("SHARE")
            mov(r0, r8)
            lsr(r7, r0)
            label("SHARE")
            mov(r0, r9)
            lsr(r5, r0)
            mov(r0, r10)
            lsl(r5, r0)
            add(r7, r5)
            with when(hi(r7, r11)):
                mov(r11, r7)
            stm(r2, r7)
            label("TEST")
        ldr(r3, sp.kind)
        branch(ne(r3, 1), "END")
        ldr(r0, sp.new_end)
        ldr(r3, sp.halved)
        str_(r3, at(r0))
        mov(r3, r11)
        str_(r3, at(r0, 4))
        label("END")
    mov(r0, 0)


@kernel
def move(buffer: Register, to: Register, source: Register, count: Register) -> None:
    """r1 to, r2 from, r3 bytes left"""
    add(r1, r0)
    add(r2, r0)
    with repeat("BYTE", ne(r3, 0)):
        sub(r3, 1)
        ldrb(r4, at(r2, r3))
        strb(r4, at(r1, r3))
    mov(r0, 0)

