# Made by `python tools/generate_kernels.py --write` from tools/kernelgen/sources/tokens.py: change that.
"""The kernels of plain.py in Thumb assembler: same bits, less than half of viper's instructions, about half
of its code.

ARMv6-M only, see mpy_kv/kernels/thumb.py, whose conventions hold.
"""

import micropython


@micropython.asm_thumb
def uses(r0, r1, r2, r3):
    # r0 buffer, r1 policy, r2 tables, r3 attend
    # Shares of the visible tokens in a head's attention, added up behind the plan: plain.py's uses.
    # From int32[N] at SCORES to int32[N] at ACC, by way of uint16[N] behind RING + SINKS of these; at
    # slice 0 only. `tables` is kernels.tables.TABLES.
    # r0 scores, r1 scratch, r2 shift down, r3 mantissa, r4 exponent, r8 MAX, r9 distance that weighs
    # nothing, r10 tables, r11 sum of weights, r12 exponent, lr end of the scores; then r0 shares, lr
    # their end
    # Instructions of inner loops: DIVIDE 8, TOKEN 21, PART 8, MARK 8, LARGE 5, INVERT 8, ADD 9
    cmp(r3, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    ldr(r4, [r3, 76])  # SLICE
    cmp(r4, 0)
    beq(L1)
    b(RETURN)
    label(L1)
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB084)  # sub sp, 16
    data(2, 0x9100)  # str r1, [sp, 0]  plan
    mov(r10, r2)
    ldr(r4, [r1, 0])  # RING
    ldr(r5, [r1, 4])  # SINKS
    add(r4, r4, r5)
    lsl(r4, r4, 2)
    add(r1, 112)  # ACC
    data(2, 0x9101)  # str r1, [sp, 4]  shares
    add(r4, r4, r1)
    data(2, 0x9403)  # str r4, [sp, 12]  scratch
    ldr(r6, [r3, 0])  # N
    lsl(r6, r6, 2)
    add(r5, r6, r1)
    data(2, 0x9502)  # str r5, [sp, 8]  shares_end
    mov(r1, r4)
    ldr(r4, [r3, 68])  # QUERY
    add(r4, r4, r0)
    ldr(r5, [r3, 40])  # SCORES
    add(r0, r0, r5)
    add(r6, r6, r0)
    mov(r14, r6)
    ldr(r5, [r3, 104])  # LOG_SCALE
    ldr(r6, [r4, 0])  # QUERY_MANTISSA
    mul(r5, r6)
    mov(r6, 10)
    lsr(r7, r5, 25)
    beq(L2)
    add(r6, 1)
    label(L2)
    lsr(r5, r6)
    mov(r7, 129)
    lsl(r7, r7, 4)
    add(r7, 1)
    sub(r7, r7, r6)
    ldr(r6, [r3, 108])  # LOG_EXP
    add(r7, r7, r6)
    ldr(r6, [r4, 4])  # QUERY_EXP
    sub(r7, r7, r6)
    ldr(r6, [r3, 80])  # KEXP
    sub(r7, r7, r6)
    ldr(r6, [r4, 8])  # QUERY_DOWN
    sub(r7, r7, r6)
    ldr(r4, [r3, 88])  # MAX
    mov(r8, r4)
    mov(r2, 0)
    cmp(r7, 1)
    bge(L3)
    mov(r7, 1)
    lsl(r5, r7, 15)
    sub(r5, 1)
    label(L3)
    cmp(r7, 17)
    ble(FINE)
    mov(r2, r7)
    sub(r2, 17)
    mov(r7, 17)
    cmp(r2, 31)
    ble(FINE)
    mov(r2, 31)
    label(FINE)
    mov(r12, r7)
    mov(r3, r5)
    mov(r6, 1)
    lsl(r6, r6, 12)
    lsl(r6, r7)
    add(r6, r6, r5)
    sub(r6, 1)
    lsl(r5, r5, 15)
    mov(r4, 0)
    mov(r7, 16)
    label(DIVIDE)
    add(r4, r4, r4)
    cmp(r6, r5)
    bcc(L4)
    sub(r6, r6, r5)
    add(r4, 1)
    label(L4)
    lsr(r5, r5, 1)
    sub(r7, 1)
    bne(DIVIDE)
    mov(r9, r4)
    mov(r4, r12)
    mov(r11, r7)
    label(TOKEN)
    mov(r6, r8)
    data(2, 0xC820)  # ldm r0!, {r5}
    sub(r5, r6, r5)
    lsr(r5, r2)
    mov(r6, 0)
    data(2, 0x454D)  # cmp r5, r9
    bcs(L5)
    mul(r5, r3)
    lsr(r5, r4)
    data(2, 0xB2EF)  # uxtb r7, r5
    lsl(r7, r7, 1)
    data(2, 0x4457)  # add r7, r10
    ldrh(r6, [r7, 0])
    lsr(r5, r5, 8)
    lsl(r6, r6, 3)
    lsr(r6, r5)
    data(2, 0x44B3)  # add r11, r6
    label(L5)
    strh(r6, [r1, 0])
    add(r1, 2)
    data(2, 0x4570)  # cmp r0, lr
    bne(TOKEN)
    data(2, 0x9F00)  # ldr r7, [sp, 0]  plan
    data(2, 0x9801)  # ldr r0, [sp, 4]  shares
    data(2, 0x9C02)  # ldr r4, [sp, 8]  shares_end
    data(2, 0x9903)  # ldr r1, [sp, 12]  scratch
    mov(r14, r4)
    mov(r6, r11)
    ldr(r5, [r7, 16])  # PEAK
    cmp(r5, 0)
    beq(L6)
    sub(r5, r4, r0)
    lsl(r4, r5, 10)
    cmp(r6, r4)
    bcs(END)
    lsl(r6, r6, 3)
    lsl(r5, r5, 12)
    mov(r2, 0)
    mov(r7, 15)
    label(PART)
    add(r2, r2, r2)
    cmp(r6, r5)
    bcc(L7)
    sub(r6, r6, r5)
    add(r2, 1)
    label(L7)
    lsr(r5, r5, 1)
    sub(r7, 1)
    bne(PART)
    mov(r3, 1)
    label(MARK)
    ldrh(r4, [r1, 0])
    add(r1, 2)
    cmp(r4, r2)
    bls(L8)
    str(r3, [r0, 0])
    label(L8)
    add(r0, 4)
    data(2, 0x4570)  # cmp r0, lr
    bne(MARK)
    b(END)
    label(L6)
    ldr(r4, [r7, 20])  # BITS
    mov(r3, 30)
    sub(r3, r3, r4)
    label(LARGE)
    lsr(r4, r6, 16)
    beq(SMALL)
    lsr(r6, r6, 1)
    add(r3, 1)
    b(LARGE)
    label(SMALL)
    cmp(r3, 31)
    ble(L9)
    mov(r3, 31)
    label(L9)
    lsl(r5, r6, 15)
    mov(r6, 1)
    lsl(r6, r6, 30)
    mov(r2, 0)
    mov(r7, 16)
    label(INVERT)
    add(r2, r2, r2)
    cmp(r6, r5)
    bcc(L10)
    sub(r6, r6, r5)
    add(r2, 1)
    label(L10)
    lsr(r5, r5, 1)
    sub(r7, 1)
    bne(INVERT)
    label(ADD)
    ldrh(r4, [r1, 0])
    add(r1, 2)
    mul(r4, r2)
    lsr(r4, r3)
    ldr(r5, [r0, 0])
    add(r4, r4, r5)
    data(2, 0xC010)  # stm r0!, {r4}
    data(2, 0x4570)  # cmp r0, lr
    bne(ADD)
    label(END)
    data(2, 0xB004)  # add sp, 16
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    label(RETURN)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def survey(r0, r1, r2, r3):
    # r0 positions, r1 worth, r2 policy, r3 length
    # Begin of a step: LIVE, FREE, TOP and VICTIM of the ring, shares cleared: plain.py's survey.
    # From int32[RING] each of 1 + position and of worth; int32[RING + SINKS] at ACC become 0.
    # r0 at, r1 worth, r2 plan, r3 length, r4 at of this slot, r5 its worth, r6 least worth, r7 at of
    # that, r8 end of at, r9 live, r10 newest that may leave; as places of `at`: r11 victim, r12 free, lr
    # top
    # Instructions of inner loops: CLEAR 3, SLOT 32
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB081)  # sub sp, 4
    data(2, 0x9000)  # str r0, [sp, 0]  at
    mov(r4, r2)
    add(r4, 112)  # ACC
    ldr(r5, [r2, 0])  # RING
    ldr(r6, [r2, 4])  # SINKS
    add(r5, r5, r6)
    mov(r6, 0)
    label(CLEAR)
    data(2, 0xC440)  # stm r4!, {r6}
    sub(r5, 1)
    bne(CLEAR)
    mov(r9, r6)
    ldr(r5, [r2, 0])  # RING
    lsl(r5, r5, 2)
    add(r5, r5, r0)
    mov(r8, r5)
    mov(r11, r5)
    mov(r12, r5)
    mov(r14, r5)
    ldr(r5, [r2, 8])  # RECENT
    sub(r5, r3, r5)
    mov(r10, r5)
    mov(r6, 1)
    lsl(r6, r6, 30)
    sub(r6, 1)
    mov(r7, r6)
    label(SLOT)
    ldr(r4, [r0, 0])
    cmp(r4, r3)
    bls(L1)
    mov(r4, 0)
    str(r4, [r0, 0])
    label(L1)
    cmp(r4, 0)
    beq(L2)
    mov(r14, r0)
    mov(r5, 1)
    data(2, 0x44A9)  # add r9, r5
    data(2, 0x4554)  # cmp r4, r10
    bgt(L3)
    ldr(r5, [r1, 0])
    b(L4)
    label(L3)
    lsl(r5, r5, 30)
    sub(r5, 1)
    label(L4)
    cmp(r5, r6)
    bcc(L5)
    bne(NEXT)
    cmp(r4, r7)
    bcs(NEXT)
    label(L5)
    mov(r6, r5)
    mov(r7, r4)
    mov(r11, r0)
    b(NEXT)
    label(L2)
    data(2, 0x45C4)  # cmp r12, r8
    bne(L6)
    mov(r12, r0)
    label(L6)
    label(NEXT)
    add(r0, 4)
    add(r1, 4)
    data(2, 0x4540)  # cmp r0, r8
    bne(SLOT)
    data(2, 0x9800)  # ldr r0, [sp, 0]  at
    mov(r4, r9)
    str(r4, [r2, 84])  # LIVE
    mov(r4, r12)
    sub(r4, r4, r0)
    lsr(r4, r4, 2)
    str(r4, [r2, 88])  # FREE
    mov(r4, r14)
    sub(r4, r4, r0)
    lsr(r4, r4, 2)
    str(r4, [r2, 92])  # TOP
    mov(r4, r11)
    sub(r4, r4, r0)
    lsr(r4, r4, 2)
    str(r4, [r2, 96])  # VICTIM
    data(2, 0xB001)  # add sp, 4
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def watch(r0, r1, r2, r3):
    # r0 policy, r1 old, r2 new, r3 kind
    # Commit: worths and the step's shares to new worths: plain.py's watch.
    # From int32[RING] `old` and int32[COUNT] of shares at ACC + SEEN to int32[RING] `new`; of masses also
    # how often they were halved, and the largest.
    # r1 old, r2 new, r4 shares, r6 tokens before the hole, r12 end of the shares USED: r0 worth, r3 NOW,
    # r5 share, r7 threshold else: r5 share, r7 worth, r8 drop, r9 down, r10 up, r11 largest, lr rows
    # Instructions of inner loops: USED 16, HALVE 7, ALIGN 3, BIT 9
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB083)  # sub sp, 12
    data(2, 0x9302)  # str r3, [sp, 8]  kind
    ldr(r4, [r0, 48])  # SEEN
    lsl(r4, r4, 2)
    add(r4, r4, r0)
    add(r4, 112)  # ACC
    ldr(r5, [r0, 52])  # COUNT
    lsl(r5, r5, 2)
    add(r5, r5, r4)
    mov(r12, r5)
    ldr(r6, [r0, 40])  # HOLE
    cmp(r3, 0)
    bne(L1)
    ldr(r7, [r0, 56])  # THRESHOLD
    mov(r3, 1)
    lsl(r3, r3, 29)
    b(USED_TEST)
    label(USED)
    cmp(r6, 0)
    bne(L2)
    add(r1, 4)
    add(r2, 4)
    label(L2)
    sub(r6, 1)
    data(2, 0xC901)  # ldm r1!, {r0}
    cmp(r0, 0)
    beq(L3)
    sub(r0, 1)
    label(L3)
    data(2, 0xCC20)  # ldm r4!, {r5}
    cmp(r5, r7)
    bls(L4)
    mov(r0, r3)
    label(L4)
    data(2, 0xC201)  # stm r2!, {r0}
    label(USED_TEST)
    data(2, 0x4564)  # cmp r4, r12
    bne(USED)
    b(END)
    label(L1)
    ldr(r5, [r0, 32])  # DOWN
    mov(r9, r5)
    ldr(r5, [r0, 60])  # UP
    mov(r10, r5)
    ldr(r5, [r0, 44])  # ROWS
    mov(r14, r5)
    ldr(r7, [r0, 0])  # RING
    lsl(r7, r7, 2)
    add(r0, r2, r7)
    data(2, 0x9000)  # str r0, [sp, 0]  new_end
    mov(r0, 0)
    mov(r8, r0)
    cmp(r3, 1)
    bne(SHIFTS)
    add(r7, r7, r1)
    ldr(r0, [r7, 0])
    ldr(r7, [r7, 4])
    lsr(r5, r0)
    lsl(r3, r3, 28)
    mov(r11, r3)
    mov(r3, 0)
    b(HALVE_TEST)
    label(HALVE)
    add(r3, 1)
    lsr(r7, r7, 1)
    lsr(r5, r5, 1)
    label(HALVE_TEST)
    cmp(r5, 64)
    bhi(HALVE)
    data(2, 0x455F)  # cmp r7, r11
    bcs(HALVE)
    mov(r8, r3)
    add(r0, r0, r3)
    cmp(r0, 20)
    bls(SHIFTS)
    mov(r0, 20)
    label(SHIFTS)
    data(2, 0x9001)  # str r0, [sp, 4]  halved
    mov(r3, r9)
    add(r3, r3, r0)
    mov(r5, r10)
    sub(r3, r3, r5)
    mov(r5, 0)
    mov(r11, r5)
    cmp(r3, 0)
    bge(L5)
    sub(r5, r5, r3)
    mov(r3, 0)
    label(L5)
    mov(r9, r3)
    mov(r10, r5)
    b(TEST)
    label(TOKEN)
    cmp(r6, 0)
    bne(L6)
    add(r1, 4)
    add(r2, 4)
    label(L6)
    sub(r6, 1)
    data(2, 0xC980)  # ldm r1!, {r7}
    data(2, 0xCC20)  # ldm r4!, {r5}
    data(2, 0x9B02)  # ldr r3, [sp, 8]  kind
    cmp(r3, 1)
    beq(L7)
    lsl(r0, r7, 1)
    add(r0, r0, r7)
    add(r0, 63)
    lsr(r0, r0, 6)
    sub(r7, r7, r0)
    mov(r3, r14)
    cmp(r3, 1)
    beq(SHARE)
    mov(r0, 0)
    b(ALIGN_TEST)
    label(ALIGN)
    lsl(r3, r3, 1)
    label(ALIGN_TEST)
    cmp(r3, r5)
    bls(ALIGN)
    label(BIT)
    lsr(r3, r3, 1)
    data(2, 0x4573)  # cmp r3, lr
    bcc(L8)
    add(r0, r0, r0)
    cmp(r5, r3)
    bcc(BIT)
    sub(r5, r5, r3)
    add(r0, 1)
    b(BIT)
    label(L8)
    mov(r5, r0)
    b(SHARE)
    label(L7)
    mov(r0, r8)
    lsr(r7, r0)
    label(SHARE)
    mov(r0, r9)
    lsr(r5, r0)
    mov(r0, r10)
    lsl(r5, r0)
    add(r7, r7, r5)
    data(2, 0x455F)  # cmp r7, r11
    bls(L9)
    mov(r11, r7)
    label(L9)
    data(2, 0xC280)  # stm r2!, {r7}
    label(TEST)
    data(2, 0x4564)  # cmp r4, r12
    bne(TOKEN)
    data(2, 0x9B02)  # ldr r3, [sp, 8]  kind
    cmp(r3, 1)
    bne(L10)
    data(2, 0x9800)  # ldr r0, [sp, 0]  new_end
    data(2, 0x9B01)  # ldr r3, [sp, 4]  halved
    str(r3, [r0, 0])
    mov(r3, r11)
    str(r3, [r0, 4])
    label(L10)
    label(END)
    data(2, 0xB003)  # add sp, 12
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def move(r0, r1, r2, r3):
    # r0 buffer, r1 to, r2 source, r3 count
    # Bytes from one place of the buffer to another, two places apart: plain.py's move.
    # r1 to, r2 from, r3 bytes left
    # Instructions of inner loops: BYTE 5
    add(r1, r1, r0)
    add(r2, r2, r0)
    label(BYTE)
    sub(r3, 1)
    data(2, 0x5CD4)  # ldrb r4, [r2, r3]
    data(2, 0x54CC)  # strb r4, [r1, r3]
    cmp(r3, 0)
    bne(BYTE)
    mov(r0, 0)
