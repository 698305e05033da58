"""encode and av of int8-int4 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py."""

from field_tables.kernels import ATTEND, ENCODE, V_RUN
from kernelgen.fragments.batches import *
from kernelgen.fragments.common import *
from kernelgen.fragments.quantize import *
from kernelgen.language import *


@kernel
def av(buffer: Register, same: Register, mask: Register, attend: Register) -> None:
    """Small weights times the nibbles of a slice, summed over tokens: plain.py's av, B5 and B6.

    From int32[N] at DOTS, words at UNITS and codes of 4 bits at VCODES to int32[2 * V_WIDTH] at SUMS, a
    column of 8 codes after the other.

    r0 codes, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this part
    """
    a, run = Array(r3, ATTEND), Array(r4, V_RUN)
    near = a.on(r7, a.HEAD_DIM)
    gap = r12
    with frame("a buffer column run tokens_left run_left batch_left units sums mask columns_left") as sp:
        str_(r3, sp.a)
        str_(r0, sp.buffer)
        two_lanes(r2, 15 << 4, by=r4)
        str_(r2, sp.mask)
        put(sp.column, 0, by=r4)
        with repeat("COLUMN", gt(r5, 4)):
            begin_column(a, 3, sp)
            for _ in range(4):
                stm(r4, r6, r7)
            point(r7, a.HEAD_DIM)
            ldr(r1, near.V_WIDTH)
            sub(r1, r2)
            str_(r1, sp.columns_left)
            ldr(r4, near.V_ROW)
            sub(r4, 4)
            mov(gap, r4)
            locate(r4, near.V_RUNS, r3)
            str_(r4, sp.run)
            begin_batches(a, sp)
            ldr(r2, sp.mask)
            with repeat("BATCH", ne(r5, 0)):
                next_batch(sp)
                with repeat("PART", ne(r7, 0)):  # a batch may span runs
                    ldr(r6, sp.run_left)
                    with when(eq(r6, 0)):
                        ldr(r3, sp.a)
                        ldr(r4, sp.run)
                        ldr(r0, a.SLICE)
                        point(r5, a.HEAD_DIM)
                        times(r0, a.on(r5, a.HEAD_DIM).V_WIDTH, by=r5)
                        plus(r0, a.VCODES, by=r5)
                        plus(r0, sp.column, by=r5)
                        plus(r0, sp.buffer, by=r5)
                        take_run(run.V_RUN_CODES, run.V_RUN_COUNT, run.V_RUN_WORDS, sp)
                    next_part(sp.run_left, sp)
                    nibbles_of_tokens()
                    ldr(r7, sp.batch_left)
                end_nibbles(sp)
            bump(sp.column, 4, by=r4)
            ldr(r5, sp.columns_left)
    mov(r0, 0)


@kernel
def encode(buffer: Register, k: Register, v: Register, storing: Register) -> None:
    """A token's K to codes of 8 bits and V to codes of 4 at slot E_SLOT: plain.py's encode.

    From E_COUNT values of k and of v, int16 or float32, to codes and float16 scales. Returns -1 - which
    vector has a value too large. B1.

    r0 values, r1 codes, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift or 0 for float32, lr
    end, r12 what is added to a code; 0: it goes above the one before
    """
    e = Array(r3, ENCODE)
    e_ = e.on(r7)
    with frame("e buffer v shift head scale slice values_left vector group_end layer slice_end") as sp:
        begin_vectors(e, sp)
        with repeat("VECTOR", ne(r5, 2)):
            begin_vector(e, sp)
            ldr(r6, e.E_ROW)
            ldr(r7, e.E_CODES)
            ldr(r5, sp.vector)
            with when(ne(r5, 0)):
                ldr(r6, e.E_V_ROW)
                ldr(r7, e.E_V_CODES)
            times(r6, e.E_SLOT, by=r5)
            add(r6, r0)
            str_(r6, sp.head)
            add(r6, r7, r0)
            begin_groups(e, sp)
            with repeat("GROUP", ne):
                begin_group(e, sp)
                # r6 t = (r4 + most - 1) // most, as 128 a + b = 127 a + (a + b); most r0, its bits r2
                label("LARGEST")
                mov(r0, 127)
                mov(r2, 7)
                ldr(r7, sp.vector)
                with when(ne(r7, 0)):
                    mov(r0, 7)
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
                with repeat("PIECE", ne(r0, r4), far=True):
                    ldr(r7, sp.e)
                    ldr(r6, e_.E_BYTES)
                    ldr(r1, e_.E_HEAD)
                    mov(r5, 128)
                    ldr(r4, sp.vector)
                    with when(ne(r4, 0)):
                        ldr(r6, e_.E_V_BYTES)
                        ldr(r1, e_.E_V_HEAD)
                        mov(r5, 128 + 8)
                    mov(r12, r5)
                    ldr(r5, sp.slice)
                    mov(r4, r6)
                    mul(r4, r5)
                    add(r5, 1)
                    str_(r5, sp.slice)
                    plus(r4, sp.head, by=r5)
                    add(r6, r4)
                    str_(r6, sp.slice_end)
                    add(r5, r1)
                    mov(r1, r4)
                    ldr(r6, sp.slice)
                    ldr(r4, e_.E_SLICES)
                    with when(eq(r6, r4)):
                        put(sp.slice, 0, by=r6)
                        str_(r5, sp.head)
                    ldr(r4, e_.E_WIDTH)
                    mov(r6, r11)
                    value_bytes(r4, r6)
                    add(r4, r0)
                    mov(lr, r4)
                    with repeat("VALUE", ne(r0, lr)):
                        next_magnitude()
                        round_code()
                        with_sign(r6, r7)
                        # A code of V is first put in the low nibble, 8 above it; the next one is added.
                        mov(r4, r12)
                        with when(ne(r4, 0)):
                            add(r6, r4)
                            strb(r6, at(r1))
                            branch(eq(r4, 128), "NEXT")
                            put(r12, 0, by=r4)
                        with otherwise():
                            ldrb(r4, at(r1))
                            lsl(r6, 4)
                            add(r6, r4)
                            strb(r6, at(r1))
                            put(r12, 128 + 8, by=r4)
                            label("NEXT")
                            add(r1, 1)
                    mov(r6, r12)
                    with when(eq(r6, 0)):
                        add(r1, 1)
                        mov(r6, 128 + 8)
                    ldr(r5, sp.slice_end)
                    with endless("PAD", "PADDED"):
                        branch(eq(r1, r5), "PADDED")
                        strb(r6, at(r1))
                        add(r1, 1)
                    ldr(r4, sp.group_end)
                next_group(e, sp)
            next_vector(e, sp)
        mov(r0, 0)
        label("REFUSE")
