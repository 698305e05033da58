# Made by `python tools/generate_kernels.py --write` from tools/kernelgen/sources/int8.py: change that.
"""The kernels of plain.py in Thumb assembler: same bits, less than half of viper's instructions, about half
of its code.

ARMv6-M only, so RP2040 and RP2350 run the same code. Bounds B1..B6 are those of plain.py, fields those of
params.py. `data(2, ...)` is an instruction that MicroPython's assembler lacks, written beside it in the
assembler's own words. r8 and above hold what a loop only adds, compares or copies; r8 to r11 belong to the
caller and are saved, r12 and lr are free.
"""

import micropython


@micropython.asm_thumb
def qk(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 mask, r3 attend
    # Dots of a slice with every visible row: plain.py's qk, B1.
    # From int8 codes [RUNS][RUN_COUNT][WIDTH] at CODES and the query's words at QUERY to int32[N] at
    # DOTS, a column of 8 codes after the other.
    # r0 codes, r1 mask, r2 r3 r4 r8 query words, r9 result, r10 its end in this run, r11 constant, r12
    # gap
    # Instructions of inner loops: FIRST 28, ADDED 29
    cmp(r3, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB086)  # sub sp, 24
    data(2, 0x9300)  # str r3, [sp, 0]  a
    data(2, 0x9001)  # str r0, [sp, 4]  buffer
    mov(r1, r2)
    ldr(r4, [r3, 16])  # WIDTH
    add(r4, 7)
    lsr(r4, r4, 3)
    lsl(r4, r4, 3)
    data(2, 0x9405)  # str r4, [sp, 20]  columns
    mov(r4, 0)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    label(COLUMN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    ldr(r4, [r3, 44])  # DOTS
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    add(r4, r4, r5)
    mov(r9, r4)
    ldr(r4, [r3, 4])  # RUNS
    data(2, 0x9404)  # str r4, [sp, 16]  runs_left
    mov(r4, r3)
    add(r4, 180)  # RUN
    data(2, 0x9403)  # str r4, [sp, 12]  run
    label(RUN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    data(2, 0x9E01)  # ldr r6, [sp, 4]  buffer
    data(2, 0x9F03)  # ldr r7, [sp, 12]  run
    ldr(r4, [r3, 68])  # QUERY
    add(r4, r4, r6)
    add(r4, 16)  # QUERY_WORDS
    ldr(r5, [r7, 12])  # RUN_SINKS
    cmp(r5, 0)
    beq(L1)
    ldr(r5, [r3, 72])  # SINK_QUERY
    add(r4, r4, r5)
    label(L1)
    ldr(r5, [r3, 76])  # SLICE
    lsl(r0, r5, 2)
    data(2, 0x5820)  # ldr r0, [r4, r0]
    mov(r11, r0)
    ldr(r0, [r3, 12])  # SLICES
    lsl(r0, r0, 2)
    add(r4, r4, r0)
    data(2, 0x9805)  # ldr r0, [sp, 20]  columns
    mul(r0, r5)
    data(2, 0x9A02)  # ldr r2, [sp, 8]  column
    add(r0, r0, r2)
    lsl(r0, r0, 1)
    add(r4, r4, r0)
    ldr(r0, [r3, 16])  # WIDTH
    mul(r0, r5)
    add(r0, r0, r2)
    add(r0, r0, r6)
    ldr(r5, [r3, 20])  # CODES
    add(r0, r0, r5)
    ldr(r5, [r7, 0])  # RUN_CODES
    add(r0, r0, r5)
    ldr(r5, [r3, 8])  # ROW
    sub(r5, 8)
    mov(r12, r5)
    ldr(r5, [r7, 8])  # RUN_COUNT
    lsl(r5, r5, 2)
    data(2, 0x444D)  # add r5, r9
    mov(r10, r5)
    add(r7, 16)  # RUN_WORDS
    data(2, 0x9703)  # str r7, [sp, 12]  run
    ldr(r3, [r4, 4])
    ldr(r5, [r4, 12])
    mov(r8, r5)
    cmp(r2, 0)
    bne(L2)
    ldr(r2, [r4, 0])
    ldr(r4, [r4, 8])
    label(FIRST)
    data(2, 0xC8C0)  # ldm r0!, {r6, r7}
    data(2, 0x4460)  # add r0, r12
    mov(r5, r6)
    and_(r5, r1)
    mul(r5, r2)
    asr(r5, r5, 16)
    lsr(r6, r6, 8)
    and_(r6, r1)
    mul(r6, r3)
    asr(r6, r6, 16)
    add(r5, r5, r6)
    mov(r6, r7)
    and_(r6, r1)
    mul(r6, r4)
    asr(r6, r6, 16)
    add(r5, r5, r6)
    lsr(r7, r7, 8)
    and_(r7, r1)
    mov(r6, r8)
    mul(r7, r6)
    asr(r7, r7, 16)
    add(r5, r5, r7)
    data(2, 0x445D)  # add r5, r11
    mov(r6, r9)
    data(2, 0xC620)  # stm r6!, {r5}
    mov(r9, r6)
    data(2, 0x4556)  # cmp r6, r10
    bne(FIRST)
    b(L3)
    label(L2)
    ldr(r2, [r4, 0])
    ldr(r4, [r4, 8])
    label(ADDED)
    data(2, 0xC8C0)  # ldm r0!, {r6, r7}
    data(2, 0x4460)  # add r0, r12
    mov(r5, r6)
    and_(r5, r1)
    mul(r5, r2)
    asr(r5, r5, 16)
    lsr(r6, r6, 8)
    and_(r6, r1)
    mul(r6, r3)
    asr(r6, r6, 16)
    add(r5, r5, r6)
    mov(r6, r7)
    and_(r6, r1)
    mul(r6, r4)
    asr(r6, r6, 16)
    add(r5, r5, r6)
    lsr(r7, r7, 8)
    and_(r7, r1)
    mov(r6, r8)
    mul(r7, r6)
    asr(r7, r7, 16)
    add(r5, r5, r7)
    mov(r6, r9)
    ldr(r7, [r6, 0])
    add(r5, r5, r7)
    data(2, 0xC620)  # stm r6!, {r5}
    mov(r9, r6)
    data(2, 0x4556)  # cmp r6, r10
    bne(ADDED)
    label(L3)
    data(2, 0x9C04)  # ldr r4, [sp, 16]  runs_left
    sub(r4, 1)
    data(2, 0x9404)  # str r4, [sp, 16]  runs_left
    bne(RUN)
    data(2, 0x9C02)  # ldr r4, [sp, 8]  column
    add(r4, 8)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x9D05)  # ldr r5, [sp, 20]  columns
    cmp(r4, r5)
    bge(L4)
    b(COLUMN)
    label(L4)
    data(2, 0xB006)  # add sp, 24
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def score(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 spare, r3 attend
    # Dots of a slice times their scales, and the largest: plain.py's score, B3.
    # From int32[N] at DOTS and uint16[N] at KSCALE, added up over slices in int32[N] at SCORES; the
    # largest to MAX. With one slice, whose scores replace its dots, and dots that need no shift, four
    # tokens a turn.
    # r0 dots, r1 scales, r3 tokens left, r6 result, r7 slice, r8 largest, r9 dot shift
    # Instructions of inner loops: FOUR 38, SINGLE 20
    cmp(r3, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    mov(r7, 1)
    lsl(r7, r7, 30)
    neg(r7, r7)
    mov(r8, r7)
    ldr(r7, [r3, 76])  # SLICE
    ldr(r1, [r3, 56])  # SCALE_ROW
    mul(r1, r7)
    ldr(r4, [r3, 48])  # KSCALE
    add(r1, r1, r4)
    add(r1, r1, r0)
    ldr(r4, [r3, 68])  # QUERY
    add(r4, r4, r0)
    ldr(r5, [r4, 8])  # QUERY_DOWN
    mov(r9, r5)
    ldr(r6, [r3, 40])  # SCORES
    add(r6, r6, r0)
    ldr(r4, [r3, 44])  # DOTS
    add(r0, r0, r4)
    mov(r12, r3)
    ldr(r4, [r3, 12])  # SLICES
    ldr(r3, [r3, 0])  # N
    cmp(r4, 1)
    bne(SINGLE)
    cmp(r5, 0)
    bne(SINGLE)
    mov(r4, 3)
    and_(r4, r3)
    beq(FOURS)
    mov(r3, r4)
    b(SINGLE)
    label(FOURS)
    lsl(r3, r3, 2)
    add(r3, r3, r0)
    mov(r10, r3)
    b(TEST)
    label(FOUR)
    data(2, 0xC8F0)  # ldm r0!, {r4, r5, r6, r7}
    ldrh(r3, [r1, 0])
    lsr(r2, r3, 5)
    mul(r4, r2)
    lsl(r3, r3, 27)
    lsr(r3, r3, 27)
    asr(r4, r3)
    data(2, 0x4544)  # cmp r4, r8
    bgt(ABOVE0)
    label(BELOW0)
    ldrh(r3, [r1, 2])
    lsr(r2, r3, 5)
    mul(r5, r2)
    lsl(r3, r3, 27)
    lsr(r3, r3, 27)
    asr(r5, r3)
    data(2, 0x4545)  # cmp r5, r8
    bgt(ABOVE1)
    label(BELOW1)
    ldrh(r3, [r1, 4])
    lsr(r2, r3, 5)
    mul(r6, r2)
    lsl(r3, r3, 27)
    lsr(r3, r3, 27)
    asr(r6, r3)
    data(2, 0x4546)  # cmp r6, r8
    bgt(ABOVE2)
    label(BELOW2)
    ldrh(r3, [r1, 6])
    lsr(r2, r3, 5)
    mul(r7, r2)
    lsl(r3, r3, 27)
    lsr(r3, r3, 27)
    asr(r7, r3)
    data(2, 0x4547)  # cmp r7, r8
    bgt(ABOVE3)
    label(BELOW3)
    add(r1, 8)
    sub(r0, 16)
    data(2, 0xC0F0)  # stm r0!, {r4, r5, r6, r7}
    label(TEST)
    data(2, 0x4550)  # cmp r0, r10
    bne(FOUR)
    b(END)
    label(ABOVE0)
    mov(r8, r4)
    b(BELOW0)
    label(ABOVE1)
    mov(r8, r5)
    b(BELOW1)
    label(ABOVE2)
    mov(r8, r6)
    b(BELOW2)
    label(ABOVE3)
    mov(r8, r7)
    b(BELOW3)
    label(SINGLE)
    data(2, 0xC810)  # ldm r0!, {r4}
    mov(r5, r9)
    asr(r4, r5)
    ldrh(r5, [r1, 0])
    add(r1, 2)
    lsr(r2, r5, 5)
    mul(r4, r2)
    lsl(r5, r5, 27)
    lsr(r5, r5, 27)
    asr(r4, r5)
    cmp(r7, 0)
    beq(L1)
    ldr(r5, [r6, 0])
    add(r4, r4, r5)
    label(L1)
    data(2, 0xC610)  # stm r6!, {r4}
    data(2, 0x4544)  # cmp r4, r8
    ble(L2)
    mov(r8, r4)
    label(L2)
    sub(r3, 1)
    bne(SINGLE)
    mov(r3, r12)
    ldr(r4, [r3, 12])  # SLICES
    cmp(r4, 1)
    bne(END)
    mov(r4, r9)
    cmp(r4, 0)
    bne(END)
    ldr(r3, [r3, 0])  # N
    lsr(r3, r3, 2)
    lsl(r3, r3, 2)
    b(FOURS)
    label(END)
    mov(r3, r12)
    mov(r4, r8)
    str(r4, [r3, 88])  # MAX
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def weights(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 tables, r3 attend
    # Scores to the small weights of a slice: plain.py's weights, B4 to B6.
    # From int32[N] at SCORES and uint16[N] at VSCALE to int32[N] at DOTS, a word at UNITS for each batch
    # of 8, the sum to WHI and WLO, its bits to UNIT, and CORR. `tables` is tables.TABLES.
    # r0 weights, r1 scales, r2 shift down, r3 mantissa, r4 tables, r8 what makes scores distances, r9 the
    # one that weighs nothing, r10 units, r11 sum of weights, r12 the same times their scales, of a batch,
    # lr of all; distances are negative, and so is r3. Then r1 weights with 20 bits behind the point, r2
    # what makes weights such, r3 their shift down, r8 half of 1 of those, r9 the batch's first 15 bits,
    # r10 reciprocals, r11 sum of small weights, of a batch that is split the first parts', r12 bits of
    # the batch's sum less 1, lr units
    # Instructions of inner loops: COPY 4, FAR0 13, WEIGHED4 90, ZERO 3, UNIT 3, BATCHES 3, UP 4, DOWN 4,
    # FARTHEST 12, PARTS 16
    cmp(r3, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB094)  # sub sp, 80
    data(2, 0x9308)  # str r3, [sp, 32]  a
    data(2, 0x9009)  # str r0, [sp, 36]  buffer
    ldr(r4, [r3, 68])  # QUERY
    add(r4, r4, r0)
    ldr(r5, [r3, 104])  # LOG_SCALE
    ldr(r6, [r4, 0])  # QUERY_MANTISSA
    mul(r5, r6)
    mov(r6, 10)
    lsr(r7, r5, 25)
    beq(L1)
    add(r6, 1)
    label(L1)
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
    mov(r6, 0)
    cmp(r7, 1)
    bge(L2)
    mov(r7, 1)
    lsl(r5, r7, 15)
    sub(r5, 1)
    label(L2)
    cmp(r7, 17)
    ble(FINE)
    mov(r6, r7)
    sub(r6, 17)
    mov(r7, 17)
    cmp(r6, 31)
    ble(FINE)
    mov(r6, 31)
    label(FINE)
    lsr(r4, r5, 7)
    lsl(r4, r4, 1)
    add(r4, r4, r2)
    add(r4, 200)
    ldrh(r4, [r4, 56])
    lsl(r4, r4, 2)
    mov(r1, 17)
    sub(r1, r1, r7)
    lsr(r4, r1)
    add(r4, 1)
    neg(r4, r4)
    mov(r9, r4)
    add(r1, 2)
    lsl(r5, r1)
    neg(r5, r5)
    data(2, 0x9512)  # str r5, [sp, 72]  number
    data(2, 0x960C)  # str r6, [sp, 48]  unit
    mov(r7, 1)
    lsl(r7, r6)
    sub(r7, 1)
    ldr(r4, [r3, 88])  # MAX
    sub(r7, r7, r4)
    mov(r8, r7)
    ldr(r6, [r3, 0])  # N
    data(2, 0x9213)  # str r2, [sp, 76]  units
    ldr(r4, [r3, 60])  # UNITS
    mov(r10, r4)
    data(2, 0x4482)  # add r10, r0
    mov(r4, 0)
    data(2, 0x940E)  # str r4, [sp, 56]  sum_high
    mov(r11, r4)
    mov(r14, r4)
    ldr(r1, [r3, 56])  # SCALE_ROW
    ldr(r4, [r3, 76])  # SLICE
    mul(r1, r4)
    ldr(r4, [r3, 52])  # VSCALE
    add(r1, r1, r4)
    add(r1, r1, r0)
    ldr(r4, [r3, 44])  # DOTS
    add(r0, r0, r4)
    data(2, 0x9011)  # str r0, [sp, 68]  batch_start
    lsr(r2, r6, 3)
    lsl(r2, r2, 5)
    add(r2, r2, r0)
    data(2, 0x920B)  # str r2, [sp, 44]  whole_end
    lsl(r2, r6, 2)
    add(r2, r2, r0)
    data(2, 0x920A)  # str r2, [sp, 40]  tokens_end
    ldr(r7, [r3, 12])  # SLICES
    cmp(r7, 1)
    beq(L3)
    data(2, 0x9A09)  # ldr r2, [sp, 36]  buffer
    ldr(r5, [r3, 40])  # SCORES
    add(r5, r5, r2)
    label(COPY)
    data(2, 0xCD80)  # ldm r5!, {r7}
    data(2, 0xC080)  # stm r0!, {r7}
    sub(r6, 1)
    bne(COPY)
    data(2, 0x9811)  # ldr r0, [sp, 68]  batch_start
    label(L3)
    data(2, 0x9A0C)  # ldr r2, [sp, 48]  unit
    data(2, 0x9B12)  # ldr r3, [sp, 72]  number
    data(2, 0x9C13)  # ldr r4, [sp, 76]  units
    b(CHECK)
    label(FAR0)
    mov(r6, 0)
    b(FIRST)
    label(FAR1)
    mov(r6, 0)
    b(WEIGHED1)
    label(FAR2)
    mov(r6, 0)
    b(WEIGHED2)
    label(FAR3)
    mov(r6, 0)
    b(WEIGHED3)
    label(BATCH)
    label(T0)
    ldr(r5, [r0, 0])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r2)
    data(2, 0x454D)  # cmp r5, r9
    ble(FAR0)
    mul(r5, r3)
    lsl(r6, r5, 5)
    lsr(r6, r6, 24)
    lsl(r6, r6, 1)
    data(2, 0x5BA6)  # ldrh r6, [r4, r6]
    lsr(r5, r5, 27)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 0])
    mul(r6, r7)
    lsl(r7, r7, 27)
    lsr(r7, r7, 27)
    add(r5, r5, r7)
    lsr(r6, r5)
    label(FIRST)
    mov(r12, r6)
    label(WEIGHED0)
    str(r6, [r0, 0])
    label(T1)
    ldr(r5, [r0, 4])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r2)
    data(2, 0x454D)  # cmp r5, r9
    ble(FAR1)
    mul(r5, r3)
    lsl(r6, r5, 5)
    lsr(r6, r6, 24)
    lsl(r6, r6, 1)
    data(2, 0x5BA6)  # ldrh r6, [r4, r6]
    lsr(r5, r5, 27)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 2])
    mul(r6, r7)
    lsl(r7, r7, 27)
    lsr(r7, r7, 27)
    add(r5, r5, r7)
    lsr(r6, r5)
    data(2, 0x44B4)  # add r12, r6
    label(WEIGHED1)
    str(r6, [r0, 4])
    label(T2)
    ldr(r5, [r0, 8])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r2)
    data(2, 0x454D)  # cmp r5, r9
    ble(FAR2)
    mul(r5, r3)
    lsl(r6, r5, 5)
    lsr(r6, r6, 24)
    lsl(r6, r6, 1)
    data(2, 0x5BA6)  # ldrh r6, [r4, r6]
    lsr(r5, r5, 27)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 4])
    mul(r6, r7)
    lsl(r7, r7, 27)
    lsr(r7, r7, 27)
    add(r5, r5, r7)
    lsr(r6, r5)
    data(2, 0x44B4)  # add r12, r6
    label(WEIGHED2)
    str(r6, [r0, 8])
    label(T3)
    ldr(r5, [r0, 12])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r2)
    data(2, 0x454D)  # cmp r5, r9
    ble(FAR3)
    mul(r5, r3)
    lsl(r6, r5, 5)
    lsr(r6, r6, 24)
    lsl(r6, r6, 1)
    data(2, 0x5BA6)  # ldrh r6, [r4, r6]
    lsr(r5, r5, 27)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 6])
    mul(r6, r7)
    lsl(r7, r7, 27)
    lsr(r7, r7, 27)
    add(r5, r5, r7)
    lsr(r6, r5)
    data(2, 0x44B4)  # add r12, r6
    label(WEIGHED3)
    str(r6, [r0, 12])
    label(T4)
    ldr(r5, [r0, 16])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r2)
    data(2, 0x454D)  # cmp r5, r9
    ble(FAR4)
    mul(r5, r3)
    lsl(r6, r5, 5)
    lsr(r6, r6, 24)
    lsl(r6, r6, 1)
    data(2, 0x5BA6)  # ldrh r6, [r4, r6]
    lsr(r5, r5, 27)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 8])
    mul(r6, r7)
    lsl(r7, r7, 27)
    lsr(r7, r7, 27)
    add(r5, r5, r7)
    lsr(r6, r5)
    data(2, 0x44B4)  # add r12, r6
    label(WEIGHED4)
    str(r6, [r0, 16])
    label(T5)
    ldr(r5, [r0, 20])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r2)
    data(2, 0x454D)  # cmp r5, r9
    ble(FAR5)
    mul(r5, r3)
    lsl(r6, r5, 5)
    lsr(r6, r6, 24)
    lsl(r6, r6, 1)
    data(2, 0x5BA6)  # ldrh r6, [r4, r6]
    lsr(r5, r5, 27)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 10])
    mul(r6, r7)
    lsl(r7, r7, 27)
    lsr(r7, r7, 27)
    add(r5, r5, r7)
    lsr(r6, r5)
    data(2, 0x44B4)  # add r12, r6
    label(WEIGHED5)
    str(r6, [r0, 20])
    label(T6)
    ldr(r5, [r0, 24])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r2)
    data(2, 0x454D)  # cmp r5, r9
    ble(FAR6)
    mul(r5, r3)
    lsl(r6, r5, 5)
    lsr(r6, r6, 24)
    lsl(r6, r6, 1)
    data(2, 0x5BA6)  # ldrh r6, [r4, r6]
    lsr(r5, r5, 27)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 12])
    mul(r6, r7)
    lsl(r7, r7, 27)
    lsr(r7, r7, 27)
    add(r5, r5, r7)
    lsr(r6, r5)
    data(2, 0x44B4)  # add r12, r6
    label(WEIGHED6)
    str(r6, [r0, 24])
    label(T7)
    ldr(r5, [r0, 28])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r2)
    data(2, 0x454D)  # cmp r5, r9
    ble(FAR7)
    mul(r5, r3)
    lsl(r6, r5, 5)
    lsr(r6, r6, 24)
    lsl(r6, r6, 1)
    data(2, 0x5BA6)  # ldrh r6, [r4, r6]
    lsr(r5, r5, 27)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 14])
    mul(r6, r7)
    lsl(r7, r7, 27)
    lsr(r7, r7, 27)
    add(r5, r5, r7)
    lsr(r6, r5)
    data(2, 0x44B4)  # add r12, r6
    label(WEIGHED7)
    str(r6, [r0, 28])
    add(r0, 32)
    add(r1, 16)
    mov(r7, r10)
    mov(r6, r12)
    data(2, 0xC740)  # stm r7!, {r6}
    mov(r10, r7)
    lsr(r6, r6, 13)
    data(2, 0x44B6)  # add lr, r6
    mov(r6, r11)
    lsr(r7, r6, 31)
    beq(L4)
    lsr(r7, r6, 16)
    data(2, 0xB2B6)  # uxth r6, r6
    mov(r11, r6)
    data(2, 0x9D0E)  # ldr r5, [sp, 56]  sum_high
    add(r5, r5, r7)
    data(2, 0x950E)  # str r5, [sp, 56]  sum_high
    label(L4)
    label(CHECK)
    data(2, 0x9D0B)  # ldr r5, [sp, 44]  whole_end
    cmp(r0, r5)
    bcs(LAST)
    b(BATCH)
    label(FAR4)
    mov(r6, 0)
    b(WEIGHED4)
    label(FAR5)
    mov(r6, 0)
    b(WEIGHED5)
    label(FAR6)
    mov(r6, 0)
    b(WEIGHED6)
    label(FAR7)
    mov(r6, 0)
    b(WEIGHED7)
    label(LAST)
    bhi(MADE)
    data(2, 0x9E0A)  # ldr r6, [sp, 40]  tokens_end
    sub(r6, r6, r0)
    beq(MADE)
    mov(r7, 0)
    mov(r12, r7)
    mov(r7, 32)
    sub(r7, r7, r6)
    sub(r0, r0, r7)
    lsr(r7, r7, 1)
    sub(r1, r1, r7)
    sub(r7, 2)
    bne(L5)
    b(T1)
    label(L5)
    sub(r7, 2)
    bne(L6)
    b(T2)
    label(L6)
    sub(r7, 2)
    bne(L7)
    b(T3)
    label(L7)
    sub(r7, 2)
    bne(L8)
    b(T4)
    label(L8)
    sub(r7, 2)
    bne(L9)
    b(T5)
    label(L9)
    sub(r7, 2)
    bne(L10)
    b(T6)
    label(L10)
    sub(r7, 2)
    bne(L11)
    b(T7)
    label(L11)
    label(MADE)
    add(r4, 250)
    mov(r10, r4)
    mov(r6, r11)
    lsr(r7, r6, 16)
    data(2, 0xB2B6)  # uxth r6, r6
    mov(r11, r6)
    data(2, 0x9D0E)  # ldr r5, [sp, 56]  sum_high
    add(r5, r5, r7)
    data(2, 0x950E)  # str r5, [sp, 56]  sum_high
    mov(r3, 0)
    data(2, 0x9C11)  # ldr r4, [sp, 68]  batch_start
    sub(r4, r4, r0)
    mov(r7, 31)
    and_(r4, r7)
    beq(L12)
    label(ZERO)
    data(2, 0xC008)  # stm r0!, {r3}
    sub(r4, 4)
    bne(ZERO)
    label(L12)
    data(2, 0x9B08)  # ldr r3, [sp, 32]  a
    str(r5, [r3, 92])  # WHI
    str(r6, [r3, 96])  # WLO
    mov(r6, 27)
    lsr(r5, r5, 11)
    label(UNIT)
    add(r6, 1)
    lsr(r5, r5, 1)
    bne(UNIT)
    mov(r4, r3)
    add(r4, 128)  # HEAD_DIM
    str(r6, [r4, 44])  # UNIT
    data(2, 0x960C)  # str r6, [sp, 48]  unit
    mov(r7, r14)
    lsl(r4, r7, 1)
    ldr(r5, [r3, 0])  # N
    add(r5, 7)
    lsr(r5, r5, 3)
    label(BATCHES)
    lsr(r4, r4, 1)
    lsr(r5, r5, 1)
    bne(BATCHES)
    sub(r6, 31)
    cmp(r6, 0)
    ble(L13)
    mov(r5, 1)
    lsl(r5, r6)
    sub(r5, 1)
    cmp(r5, r4)
    bls(L14)
    mov(r4, r5)
    label(L14)
    label(L13)
    data(2, 0x940F)  # str r4, [sp, 60]  least
    add(r5, r7, 1)
    lsl(r5, r5, 11)
    sub(r5, 1)
    lsr(r6, r7, 19)
    beq(L15)
    mvn(r5, r6)
    label(L15)
    data(2, 0x9510)  # str r5, [sp, 64]  quarter
    data(2, 0x9809)  # ldr r0, [sp, 36]  buffer
    ldr(r4, [r3, 60])  # UNITS
    add(r4, r4, r0)
    mov(r14, r4)
    data(2, 0x9811)  # ldr r0, [sp, 68]  batch_start
    mov(r4, 1)
    lsl(r4, r4, 19)
    mov(r8, r4)
    mov(r4, 0)
    data(2, 0x940D)  # str r4, [sp, 52]  corr
    mov(r4, 26)
    mov(r12, r4)
    mov(r7, r14)
    label(ROUND)
    ldr(r5, [r7, 0])
    data(2, 0x9C0F)  # ldr r4, [sp, 60]  least
    cmp(r5, r4)
    bhi(L16)
    add(r0, 32)
    mov(r4, 33)
    lsl(r4, r4, 20)
    b(STORE)
    label(MUCH)
    b(QUARTER)
    label(L16)
    mov(r3, r12)
    mov(r6, r5)
    lsr(r6, r3)
    cmp(r6, 1)
    beq(FOUND)
    bcc(DOWN)
    label(UP)
    add(r3, 1)
    lsr(r6, r6, 1)
    cmp(r6, 1)
    bne(UP)
    b(MOVED)
    label(DOWN)
    sub(r3, 1)
    mov(r6, r5)
    lsr(r6, r3)
    beq(DOWN)
    label(MOVED)
    mov(r12, r3)
    label(FOUND)
    mov(r1, r5)
    mov(r4, 0)
    sub(r3, 14)
    bpl(L17)
    neg(r4, r3)
    lsl(r5, r4)
    mov(r3, 0)
    label(L17)
    lsr(r5, r3)
    mov(r9, r5)
    lsr(r6, r5, 7)
    lsr(r7, r6, 6)
    add(r7, r7, r6)
    lsl(r6, r7, 1)
    data(2, 0x4456)  # add r6, r10
    ldrh(r2, [r6, 2])
    mul(r5, r2)
    data(2, 0x9512)  # str r5, [sp, 72]  number
    lsl(r2, r4)
    data(2, 0x9C10)  # ldr r4, [sp, 64]  quarter
    cmp(r1, r4)
    bhi(MUCH)
    label(WHOLE)
    mov(r1, r13)
    data(2, 0xC8F0)  # ldm r0!, {r4, r5, r6, r7}
    lsr(r4, r3)
    mul(r4, r2)
    lsr(r5, r3)
    mul(r5, r2)
    lsr(r6, r3)
    mul(r6, r2)
    lsr(r7, r3)
    mul(r7, r2)
    data(2, 0xC1F0)  # stm r1!, {r4, r5, r6, r7}
    data(2, 0x4444)  # add r4, r8
    lsr(r4, r4, 20)
    mov(r11, r4)
    data(2, 0x4445)  # add r5, r8
    lsr(r5, r5, 20)
    data(2, 0x44AB)  # add r11, r5
    data(2, 0x4446)  # add r6, r8
    lsr(r6, r6, 20)
    data(2, 0x44B3)  # add r11, r6
    data(2, 0x4447)  # add r7, r8
    lsr(r7, r7, 20)
    data(2, 0x44BB)  # add r11, r7
    sub(r0, 16)
    data(2, 0xC0F0)  # stm r0!, {r4, r5, r6, r7}
    data(2, 0xC8F0)  # ldm r0!, {r4, r5, r6, r7}
    lsr(r4, r3)
    mul(r4, r2)
    lsr(r5, r3)
    mul(r5, r2)
    lsr(r6, r3)
    mul(r6, r2)
    lsr(r7, r3)
    mul(r7, r2)
    data(2, 0xC1F0)  # stm r1!, {r4, r5, r6, r7}
    data(2, 0x4444)  # add r4, r8
    lsr(r4, r4, 20)
    data(2, 0x44A3)  # add r11, r4
    data(2, 0x4445)  # add r5, r8
    lsr(r5, r5, 20)
    data(2, 0x44AB)  # add r11, r5
    data(2, 0x4446)  # add r6, r8
    lsr(r6, r6, 20)
    data(2, 0x44B3)  # add r11, r6
    data(2, 0x4447)  # add r7, r8
    lsr(r7, r7, 20)
    data(2, 0x44BB)  # add r11, r7
    sub(r0, 16)
    data(2, 0xC0F0)  # stm r0!, {r4, r5, r6, r7}
    mov(r4, r11)
    lsl(r4, r4, 20)
    data(2, 0x9D12)  # ldr r5, [sp, 72]  number
    sub(r4, r4, r5)
    asr(r3, r4, 31)
    add(r4, r4, r3)
    eor(r4, r3)
    mov(r5, 5)
    lsl(r5, r5, 18)
    cmp(r4, r5)
    bls(SETTLED)
    sub(r0, 32)
    mov(r2, 0)
    data(2, 0xC8C0)  # ldm r0!, {r6, r7}
    orr(r2, r6)
    orr(r2, r7)
    data(2, 0xC8C0)  # ldm r0!, {r6, r7}
    orr(r2, r6)
    orr(r2, r7)
    data(2, 0xC8C0)  # ldm r0!, {r6, r7}
    orr(r2, r6)
    orr(r2, r7)
    data(2, 0xC8C0)  # ldm r0!, {r6, r7}
    orr(r2, r6)
    orr(r2, r7)
    lsr(r2, r2, 6)
    beq(SETTLED)
    mov(r7, r14)
    data(2, 0x9713)  # str r7, [sp, 76]  units
    mov(r14, r0)
    label(OFF)
    data(2, 0x9412)  # str r4, [sp, 72]  number
    mov(r5, r13)
    sub(r0, r0, r1)
    add(r0, r0, r5)
    mov(r1, 0)
    label(FARTHEST)
    data(2, 0xC840)  # ldm r0!, {r6}
    data(2, 0xCD80)  # ldm r5!, {r7}
    lsl(r6, r6, 20)
    sub(r6, r6, r7)
    eor(r6, r3)
    sub(r6, r6, r3)
    cmp(r6, r1)
    ble(L18)
    mov(r1, r6)
    mov(r2, r0)
    label(L18)
    data(2, 0x4570)  # cmp r0, lr
    bne(FARTHEST)
    sub(r1, r5, r0)
    add(r1, r1, r2)
    sub(r1, 4)
    sub(r2, 4)
    mov(r6, 1)
    orr(r6, r3)
    ldr(r7, [r2, 0])
    sub(r7, r7, r6)
    str(r7, [r2, 0])
    lsl(r7, r7, 20)
    str(r7, [r1, 0])
    neg(r6, r6)
    data(2, 0x44B3)  # add r11, r6
    mov(r1, r5)
    data(2, 0x9C12)  # ldr r4, [sp, 72]  number
    mov(r5, 1)
    lsl(r5, r5, 20)
    sub(r4, r4, r5)
    mov(r5, 5)
    lsl(r5, r5, 18)
    cmp(r4, r5)
    bhi(OFF)
    data(2, 0x9F13)  # ldr r7, [sp, 76]  units
    mov(r14, r7)
    label(SETTLED)
    mov(r4, r9)
    mov(r5, r11)
    lsl(r6, r5, 1)
    data(2, 0x4456)  # add r6, r10
    ldrh(r6, [r6, 0])
    mul(r4, r6)
    lsr(r4, r4, 14)
    data(2, 0x9E0C)  # ldr r6, [sp, 48]  unit
    mov(r7, r12)
    sub(r6, r6, r7)
    b(CORRECT)
    label(QUARTER)
    data(2, 0x9E0C)  # ldr r6, [sp, 48]  unit
    mov(r1, r12)
    sub(r6, r6, r1)
    cmp(r6, 27)
    blt(L19)
    b(WHOLE)
    label(L19)
    mov(r6, 0)
    mov(r11, r6)
    add(r7, 1)
    lsl(r7, r7, 6)
    data(2, 0x9712)  # str r7, [sp, 72]  number
    mov(r4, 0)
    mov(r1, 0)
    mov(r5, r0)
    add(r5, 32)
    label(PARTS)
    ldr(r6, [r0, 0])
    lsr(r6, r3)
    mul(r6, r2)
    add(r4, r4, r6)
    lsr(r6, r4, 20)
    data(2, 0x44B3)  # add r11, r6
    lsl(r7, r4, 12)
    lsr(r7, r7, 27)
    add(r1, r1, r7)
    lsl(r7, r7, 16)
    orr(r6, r7)
    data(2, 0xC040)  # stm r0!, {r6}
    lsl(r4, r4, 17)
    lsr(r4, r4, 17)
    cmp(r0, r5)
    bne(PARTS)
    data(2, 0x9C12)  # ldr r4, [sp, 72]  number
    data(2, 0x9E0C)  # ldr r6, [sp, 48]  unit
    mov(r7, r12)
    sub(r6, r6, r7)
    lsl(r1, r1, 7)
    mul(r1, r4)
    lsr(r1, r6)
    lsr(r1, r1, 5)
    data(2, 0x9D0D)  # ldr r5, [sp, 52]  corr
    add(r5, r5, r1)
    data(2, 0x950D)  # str r5, [sp, 52]  corr
    mov(r5, 1)
    lsl(r5, r5, 8)
    orr(r6, r5)
    mov(r5, r11)
    label(CORRECT)
    lsl(r5, r5, 7)
    mul(r5, r4)
    lsr(r5, r6)
    lsl(r6, r6, 16)
    orr(r4, r6)
    data(2, 0x9E0D)  # ldr r6, [sp, 52]  corr
    add(r6, r6, r5)
    data(2, 0x960D)  # str r6, [sp, 52]  corr
    label(STORE)
    mov(r7, r14)
    data(2, 0xC710)  # stm r7!, {r4}
    mov(r14, r7)
    data(2, 0x9D0A)  # ldr r5, [sp, 40]  tokens_end
    cmp(r0, r5)
    bge(L20)
    b(ROUND)
    label(L20)
    data(2, 0x9B08)  # ldr r3, [sp, 32]  a
    data(2, 0x9C0D)  # ldr r4, [sp, 52]  corr
    str(r4, [r3, 100])  # CORR
    data(2, 0xB014)  # add sp, 80
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def av(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 mask, r3 attend
    # Small weights times the codes of a slice, summed over tokens: plain.py's av, B5 and B6.
    # From int32[N] at DOTS, words at UNITS and codes at VCODES to int32[WIDTH] at SUMS, a column of 8
    # codes after the other.
    # r0 codes, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this part
    # Instructions of inner loops: HALF 23, TOKEN 21
    cmp(r3, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB090)  # sub sp, 64
    data(2, 0x9300)  # str r3, [sp, 0]  a
    data(2, 0x9001)  # str r0, [sp, 4]  buffer
    data(2, 0x9209)  # str r2, [sp, 36]  mask
    mov(r4, 0)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x940B)  # str r4, [sp, 44]  part
    label(COLUMN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    data(2, 0x9A02)  # ldr r2, [sp, 8]  column
    ldr(r4, [r3, 64])  # SUMS
    add(r4, r4, r5)
    lsl(r6, r2, 2)
    add(r4, r4, r6)
    data(2, 0x9408)  # str r4, [sp, 32]  sums
    mov(r6, 0)
    mov(r7, 0)
    mov(r8, r6)
    mov(r9, r6)
    mov(r10, r6)
    mov(r11, r6)
    data(2, 0x9605)  # str r6, [sp, 20]  run_left
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    ldr(r1, [r3, 16])  # WIDTH
    sub(r1, r1, r2)
    data(2, 0x910A)  # str r1, [sp, 40]  columns_left
    cmp(r1, 4)
    ble(L1)
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    label(L1)
    ldr(r1, [r3, 44])  # DOTS
    add(r1, r1, r5)
    ldr(r4, [r3, 60])  # UNITS
    add(r4, r4, r5)
    data(2, 0x9407)  # str r4, [sp, 28]  units
    ldr(r4, [r3, 0])  # N
    data(2, 0x9404)  # str r4, [sp, 16]  tokens_left
    ldr(r4, [r3, 8])  # ROW
    sub(r4, 8)
    mov(r12, r4)
    mov(r4, r3)
    add(r4, 180)  # RUN
    data(2, 0x9403)  # str r4, [sp, 12]  run
    data(2, 0x9A09)  # ldr r2, [sp, 36]  mask
    label(BATCH)
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    mov(r7, 8)
    cmp(r5, r7)
    bcs(L2)
    mov(r7, r5)
    label(L2)
    sub(r5, r5, r7)
    data(2, 0x9504)  # str r5, [sp, 16]  tokens_left
    label(PART)
    data(2, 0x9E05)  # ldr r6, [sp, 20]  run_left
    cmp(r6, 0)
    bne(L3)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    data(2, 0x9C03)  # ldr r4, [sp, 12]  run
    ldr(r0, [r3, 76])  # SLICE
    ldr(r5, [r3, 16])  # WIDTH
    mul(r0, r5)
    ldr(r5, [r3, 24])  # VCODES
    add(r0, r0, r5)
    data(2, 0x9D02)  # ldr r5, [sp, 8]  column
    add(r0, r0, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    add(r0, r0, r5)
    ldr(r5, [r4, 0])  # RUN_CODES
    add(r0, r0, r5)
    ldr(r6, [r4, 8])  # RUN_COUNT
    add(r4, 16)  # RUN_WORDS
    data(2, 0x9403)  # str r4, [sp, 12]  run
    label(L3)
    mov(r5, r7)
    cmp(r6, r5)
    bcs(L4)
    mov(r5, r6)
    label(L4)
    sub(r6, r6, r5)
    data(2, 0x9605)  # str r6, [sp, 20]  run_left
    sub(r7, r7, r5)
    data(2, 0x9706)  # str r7, [sp, 24]  batch_left
    lsl(r5, r5, 2)
    add(r5, r5, r1)
    mov(r14, r5)
    data(2, 0x9F07)  # ldr r7, [sp, 28]  units
    ldrb(r7, [r7, 3])
    cmp(r7, 0)
    beq(L5)
    cmp(r7, 1)
    beq(L6)
    mov(r4, r14)
    sub(r1, r4, r1)
    lsr(r1, r1, 2)
    mov(r5, r12)
    add(r5, 8)
    mul(r1, r5)
    add(r0, r0, r1)
    mov(r1, r4)
    b(PART_END)
    label(L6)
    data(2, 0x9F0B)  # ldr r7, [sp, 44]  part
    cmp(r7, 0)
    bne(L7)
    data(2, 0x900C)  # str r0, [sp, 48]  from_row
    data(2, 0x910D)  # str r1, [sp, 52]  from_weight
    mov(r4, r14)
    sub(r4, r4, r1)
    lsr(r4, r4, 2)
    data(2, 0x9D05)  # ldr r5, [sp, 20]  run_left
    add(r4, r4, r5)
    data(2, 0x940E)  # str r4, [sp, 56]  from_left
    data(2, 0x9C03)  # ldr r4, [sp, 12]  run
    data(2, 0x940F)  # str r4, [sp, 60]  from_run
    mov(r7, 1)
    lsl(r7, r7, 8)
    data(2, 0x970B)  # str r7, [sp, 44]  part
    label(L7)
    label(HALF)
    data(2, 0xC830)  # ldm r0!, {r4, r5}
    data(2, 0x4460)  # add r0, r12
    data(2, 0xC908)  # ldm r1!, {r3}
    lsr(r3, r7)
    data(2, 0xB29B)  # uxth r3, r3
    mov(r6, r4)
    and_(r6, r2)
    mul(r6, r3)
    data(2, 0x44B0)  # add r8, r6
    lsr(r4, r4, 8)
    and_(r4, r2)
    mul(r4, r3)
    data(2, 0x44A1)  # add r9, r4
    mov(r6, r5)
    and_(r6, r2)
    mul(r6, r3)
    data(2, 0x44B2)  # add r10, r6
    lsr(r5, r5, 8)
    and_(r5, r2)
    mul(r5, r3)
    data(2, 0x44AB)  # add r11, r5
    data(2, 0x4571)  # cmp r1, lr
    bne(HALF)
    b(PART_END)
    label(L5)
    label(TOKEN)
    data(2, 0xC830)  # ldm r0!, {r4, r5}
    data(2, 0x4460)  # add r0, r12
    data(2, 0xC908)  # ldm r1!, {r3}
    mov(r6, r4)
    and_(r6, r2)
    mul(r6, r3)
    data(2, 0x44B0)  # add r8, r6
    lsr(r4, r4, 8)
    and_(r4, r2)
    mul(r4, r3)
    data(2, 0x44A1)  # add r9, r4
    mov(r6, r5)
    and_(r6, r2)
    mul(r6, r3)
    data(2, 0x44B2)  # add r10, r6
    lsr(r5, r5, 8)
    and_(r5, r2)
    mul(r5, r3)
    data(2, 0x44AB)  # add r11, r5
    data(2, 0x4571)  # cmp r1, lr
    bne(TOKEN)
    label(PART_END)
    data(2, 0x9F06)  # ldr r7, [sp, 24]  batch_left
    cmp(r7, 0)
    bne(PART)
    data(2, 0x9F07)  # ldr r7, [sp, 28]  units
    data(2, 0xCF10)  # ldm r7!, {r4}
    data(2, 0x9707)  # str r7, [sp, 28]  units
    data(2, 0xB2A3)  # uxth r3, r4
    lsr(r4, r4, 16)
    lsr(r7, r4, 10)
    bcs(BATCH_END)
    data(2, 0x9F08)  # ldr r7, [sp, 32]  sums
    lsr(r5, r4, 9)
    bcc(L8)
    data(2, 0x9D0B)  # ldr r5, [sp, 44]  part
    cmp(r5, 16)
    bne(L9)
    add(r4, 5)
    mov(r5, 0)
    data(2, 0x950B)  # str r5, [sp, 44]  part
    b(TURNED)
    label(L9)
    mov(r5, 16)
    data(2, 0x950B)  # str r5, [sp, 44]  part
    data(2, 0x9D0D)  # ldr r5, [sp, 52]  from_weight
    sub(r1, r1, r5)
    lsr(r1, r1, 2)
    data(2, 0x9E04)  # ldr r6, [sp, 16]  tokens_left
    add(r6, r6, r1)
    data(2, 0x9604)  # str r6, [sp, 16]  tokens_left
    data(2, 0x9E0F)  # ldr r6, [sp, 60]  from_run
    data(2, 0x9603)  # str r6, [sp, 12]  run
    mov(r1, r5)
    data(2, 0x980C)  # ldr r0, [sp, 48]  from_row
    data(2, 0x9E0E)  # ldr r6, [sp, 56]  from_left
    data(2, 0x9605)  # str r6, [sp, 20]  run_left
    data(2, 0x9E07)  # ldr r6, [sp, 28]  units
    sub(r6, 4)
    data(2, 0x9607)  # str r6, [sp, 28]  units
    label(TURNED)
    label(L8)
    mov(r5, r8)
    data(2, 0xB2AE)  # uxth r6, r5
    lsr(r5, r5, 16)
    mul(r6, r3)
    mul(r5, r3)
    lsr(r6, r4)
    lsr(r5, r4)
    ldr(r2, [r7, 0])
    add(r2, r2, r6)
    str(r2, [r7, 0])
    ldr(r2, [r7, 8])
    add(r2, r2, r5)
    str(r2, [r7, 8])
    mov(r5, r9)
    data(2, 0xB2AE)  # uxth r6, r5
    lsr(r5, r5, 16)
    mul(r6, r3)
    mul(r5, r3)
    lsr(r6, r4)
    lsr(r5, r4)
    ldr(r2, [r7, 4])
    add(r2, r2, r6)
    str(r2, [r7, 4])
    ldr(r2, [r7, 12])
    add(r2, r2, r5)
    str(r2, [r7, 12])
    data(2, 0x9A0A)  # ldr r2, [sp, 40]  columns_left
    cmp(r2, 4)
    ble(L10)
    mov(r5, r10)
    data(2, 0xB2AE)  # uxth r6, r5
    lsr(r5, r5, 16)
    mul(r6, r3)
    mul(r5, r3)
    lsr(r6, r4)
    lsr(r5, r4)
    ldr(r2, [r7, 16])
    add(r2, r2, r6)
    str(r2, [r7, 16])
    ldr(r2, [r7, 24])
    add(r2, r2, r5)
    str(r2, [r7, 24])
    mov(r5, r11)
    data(2, 0xB2AE)  # uxth r6, r5
    lsr(r5, r5, 16)
    mul(r6, r3)
    mul(r5, r3)
    lsr(r6, r4)
    lsr(r5, r4)
    ldr(r2, [r7, 20])
    add(r2, r2, r6)
    str(r2, [r7, 20])
    ldr(r2, [r7, 28])
    add(r2, r2, r5)
    str(r2, [r7, 28])
    label(L10)
    mov(r2, 0)
    mov(r8, r2)
    mov(r9, r2)
    mov(r10, r2)
    mov(r11, r2)
    label(BATCH_END)
    data(2, 0x9A09)  # ldr r2, [sp, 36]  mask
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    cmp(r5, 0)
    beq(L11)
    b(BATCH)
    label(L11)
    data(2, 0x9C02)  # ldr r4, [sp, 8]  column
    add(r4, 8)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x9D0A)  # ldr r5, [sp, 40]  columns_left
    cmp(r5, 8)
    ble(L12)
    b(COLUMN)
    label(L12)
    data(2, 0xB010)  # add sp, 64
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def emit(r0, r1, r2):
    # r0 buffer, r1 attend, r2 out
    # Sums over their weights, to the slice's place in the result: plain.py's emit, B6.
    # From int32[WIDTH] at SUMS, CORR, WHI and WLO to SLICE_WIDTH values of `out`: int16 2^-(OUT_SHIFT -
    # BIAS), which saturate, or float32 if OUT_SHIFT is 0.
    # r0 sums, r1 result, r4 1 / sum of weights, r8 -CORR, of int16 and r9, half of what is cut, lr end of
    # the sums; int16: r2 last shift down, r6 up, r12 its half, r10 r11 limits; float32: r10 exponent
    # Instructions of inner loops: LOW 4, DIVIDE 8, SHORT 23, MORE 4, ABOVE 5
    cmp(r2, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    ldr(r3, [r1, 68])  # QUERY
    add(r3, r3, r0)
    ldr(r3, [r3, 12])  # QUERY_AT
    ldr(r4, [r1, 124])  # SLICE_WIDTH
    ldr(r5, [r1, 76])  # SLICE
    mul(r5, r4)
    add(r3, r3, r5)
    ldr(r5, [r1, 64])  # SUMS
    add(r0, r0, r5)
    lsl(r4, r4, 2)
    add(r4, r4, r0)
    mov(r14, r4)
    ldr(r5, [r1, 116])  # OUT_SHIFT
    mov(r10, r5)
    lsl(r3, r3, 1)
    cmp(r5, 0)
    bne(L1)
    lsl(r3, r3, 1)
    label(L1)
    add(r2, r2, r3)
    ldr(r3, [r1, 92])  # WHI
    ldr(r4, [r1, 96])  # WLO
    mov(r5, r1)
    add(r5, 128)  # HEAD_DIM
    ldr(r5, [r5, 44])  # UNIT
    lsl(r4, r4, 16)
    sub(r5, 32)
    cmp(r5, 0)
    bge(L2)
    label(LOW)
    add(r4, r4, r4)
    adc(r3, r3)
    add(r5, 1)
    bne(LOW)
    label(L2)
    lsr(r3, r5)
    mov(r6, 1)
    lsl(r6, r6, 30)
    lsl(r3, r3, 15)
    mov(r4, 0)
    mov(r7, 16)
    label(DIVIDE)
    add(r4, r4, r4)
    cmp(r6, r3)
    bcc(L3)
    sub(r6, r6, r3)
    add(r4, 1)
    label(L3)
    lsr(r3, r3, 1)
    sub(r7, 1)
    bne(DIVIDE)
    mov(r5, 1)
    lsl(r5, r5, 12)
    mov(r9, r5)
    ldr(r6, [r1, 100])  # CORR
    neg(r6, r6)
    mov(r8, r6)
    ldr(r6, [r1, 84])  # VEXP
    ldr(r3, [r1, 112])  # V_BIAS
    sub(r6, r6, r3)
    mov(r1, r2)
    mov(r3, r10)
    cmp(r3, 0)
    beq(L4)
    data(2, 0x44C8)  # add r8, r9
    mov(r2, 64)
    sub(r2, r2, r3)
    sub(r2, r2, r6)
    cmp(r2, 30)
    ble(L5)
    mov(r4, 0)
    mov(r2, 1)
    label(L5)
    mov(r6, 0)
    mov(r3, 0)
    cmp(r2, 0)
    ble(L6)
    mov(r3, 1)
    lsl(r3, r2)
    lsr(r3, r3, 1)
    b(READY)
    label(L6)
    neg(r6, r2)
    mov(r2, 0)
    cmp(r6, 15)
    ble(READY)
    mov(r6, 15)
    label(READY)
    mov(r12, r3)
    mov(r3, 1)
    lsl(r3, r3, 15)
    sub(r3, 1)
    mov(r10, r3)
    neg(r3, r3)
    mov(r11, r3)
    label(SHORT)
    data(2, 0xC808)  # ldm r0!, {r3}
    data(2, 0x4443)  # add r3, r8
    asr(r3, r3, 13)
    mul(r3, r4)
    data(2, 0x4463)  # add r3, r12
    asr(r3, r2)
    data(2, 0x4553)  # cmp r3, r10
    ble(L7)
    mov(r3, r10)
    label(L7)
    data(2, 0x455B)  # cmp r3, r11
    bge(L8)
    mov(r3, r11)
    label(L8)
    lsl(r3, r6)
    data(2, 0x4553)  # cmp r3, r10
    ble(L9)
    mov(r3, r10)
    label(L9)
    data(2, 0x455B)  # cmp r3, r11
    bge(L10)
    mov(r3, r11)
    label(L10)
    strh(r3, [r1, 0])
    add(r1, 2)
    data(2, 0x4570)  # cmp r0, lr
    bne(SHORT)
    b(L11)
    label(L4)
    add(r6, 154)
    mov(r10, r6)
    label(FLOAT)
    data(2, 0xC804)  # ldm r0!, {r2}
    data(2, 0x4442)  # add r2, r8
    cmp(r2, 0)
    beq(STORE)
    asr(r3, r2, 31)
    add(r2, r2, r3)
    eor(r2, r3)
    lsl(r6, r3, 31)
    mov(r7, r10)
    b(ENOUGH)
    label(MORE)
    add(r2, r2, r2)
    sub(r7, 1)
    label(ENOUGH)
    lsr(r3, r2, 27)
    beq(MORE)
    data(2, 0x444A)  # add r2, r9
    lsr(r2, r2, 13)
    mul(r2, r4)
    lsr(r2, r2, 4)
    label(ABOVE)
    lsr(r3, r2, 24)
    beq(BELOW)
    lsr(r2, r2, 1)
    add(r7, 1)
    b(ABOVE)
    label(BELOW)
    lsl(r2, r2, 9)
    lsr(r2, r2, 9)
    lsl(r3, r7, 23)
    orr(r2, r3)
    orr(r2, r6)
    cmp(r7, 1)
    bge(STORE)
    mov(r2, 0)
    label(STORE)
    data(2, 0xC104)  # stm r1!, {r2}
    data(2, 0x4570)  # cmp r0, lr
    bne(FLOAT)
    label(L11)
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def scales(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 which, r3 attend
    # Scales of the visible tokens relative to the largest exponent: plain.py's scales, B2.
    # From float16[SLICES][RUNS][RUN_COUNT] at SCALES or, with `which` 1, VSCALES to uint16[SLICES][N] at
    # KSCALE or VSCALE; the exponent to KEXP or VEXP.
    # LARGEST: r1 largest, r2 scales of the slice, r6 run, r7 runs left; SLICE: r0 scales, r2 result, r6
    # 2^31, r7 exponent, lr end of the run
    # Instructions of inner loops: SCALE 7, MORE 4, TOKEN 19, UP 5
    cmp(r3, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    data(2, 0xB087)  # sub sp, 28
    data(2, 0x9300)  # str r3, [sp, 0]  a
    data(2, 0x9204)  # str r2, [sp, 16]  which
    lsl(r4, r2, 2)
    add(r4, r4, r3)
    ldr(r5, [r4, 28])  # SCALES
    add(r5, r5, r0)
    data(2, 0x9501)  # str r5, [sp, 4]  scales
    ldr(r2, [r4, 48])  # KSCALE
    add(r2, r2, r0)
    data(2, 0x9202)  # str r2, [sp, 8]  result
    mov(r2, r5)
    mov(r1, 0)
    ldr(r4, [r3, 12])  # SLICES
    data(2, 0x9403)  # str r4, [sp, 12]  slices_left
    label(LARGEST)
    mov(r6, r3)
    add(r6, 180)  # RUN
    ldr(r7, [r3, 4])  # RUNS
    label(PART)
    ldr(r0, [r6, 4])  # RUN_SCALES
    add(r0, r0, r2)
    ldr(r5, [r6, 8])  # RUN_COUNT
    add(r6, 16)  # RUN_WORDS
    lsl(r5, r5, 1)
    add(r5, r5, r0)
    label(SCALE)
    ldrh(r4, [r0, 0])
    add(r0, 2)
    cmp(r4, r1)
    bls(L1)
    mov(r1, r4)
    label(L1)
    cmp(r0, r5)
    bne(SCALE)
    sub(r7, 1)
    bne(PART)
    ldr(r4, [r3, 36])  # SCALE_STRIDE
    add(r2, r2, r4)
    data(2, 0x9C03)  # ldr r4, [sp, 12]  slices_left
    sub(r4, 1)
    data(2, 0x9403)  # str r4, [sp, 12]  slices_left
    bne(LARGEST)
    lsr(r4, r1, 10)
    bne(L2)
    mov(r4, 1)
    cmp(r1, 0)
    beq(NONE)
    b(ENOUGH)
    label(MORE)
    lsl(r1, r1, 1)
    sub(r4, 1)
    label(ENOUGH)
    lsr(r5, r1, 10)
    beq(MORE)
    label(NONE)
    label(L2)
    mov(r1, r4)
    data(2, 0x9C04)  # ldr r4, [sp, 16]  which
    lsl(r4, r4, 2)
    add(r4, r4, r3)
    mov(r7, r1)
    add(r1, 10)
    str(r1, [r4, 80])  # KEXP
    mov(r6, 1)
    lsl(r6, r6, 31)
    ldr(r4, [r3, 12])  # SLICES
    data(2, 0x9403)  # str r4, [sp, 12]  slices_left
    label(SLICE)
    data(2, 0x9A02)  # ldr r2, [sp, 8]  result
    ldr(r4, [r3, 4])  # RUNS
    data(2, 0x9406)  # str r4, [sp, 24]  runs_left
    mov(r4, r3)
    add(r4, 180)  # RUN
    data(2, 0x9405)  # str r4, [sp, 20]  run
    label(RUN)
    data(2, 0x9C05)  # ldr r4, [sp, 20]  run
    ldr(r0, [r4, 4])  # RUN_SCALES
    data(2, 0x9D01)  # ldr r5, [sp, 4]  scales
    add(r0, r0, r5)
    ldr(r5, [r4, 8])  # RUN_COUNT
    lsl(r5, r5, 1)
    add(r5, r5, r0)
    mov(r14, r5)
    add(r4, 16)  # RUN_WORDS
    data(2, 0x9405)  # str r4, [sp, 20]  run
    label(TOKEN)
    ldrh(r4, [r0, 0])
    add(r0, 2)
    lsr(r5, r4, 10)
    beq(TINY)
    lsl(r4, r4, 22)
    lsr(r4, r4, 1)
    orr(r4, r6)
    sub(r5, r7, r5)
    label(PLACE)
    cmp(r5, 30)
    ble(L3)
    mov(r5, 30)
    label(L3)
    data(2, 0x9904)  # ldr r1, [sp, 16]  which
    add(r5, r5, r1)
    lsr(r4, r4, 16)
    add(r4, r4, r5)
    label(NUMBER)
    strh(r4, [r2, 0])
    add(r2, 2)
    data(2, 0x4570)  # cmp r0, lr
    bne(TOKEN)
    data(2, 0x9C06)  # ldr r4, [sp, 24]  runs_left
    sub(r4, 1)
    data(2, 0x9406)  # str r4, [sp, 24]  runs_left
    bne(RUN)
    data(2, 0x9C01)  # ldr r4, [sp, 4]  scales
    ldr(r5, [r3, 36])  # SCALE_STRIDE
    add(r4, r4, r5)
    data(2, 0x9401)  # str r4, [sp, 4]  scales
    data(2, 0x9C02)  # ldr r4, [sp, 8]  result
    ldr(r5, [r3, 56])  # SCALE_ROW
    add(r4, r4, r5)
    data(2, 0x9402)  # str r4, [sp, 8]  result
    data(2, 0x9C03)  # ldr r4, [sp, 12]  slices_left
    sub(r4, 1)
    data(2, 0x9403)  # str r4, [sp, 12]  slices_left
    bne(SLICE)
    b(END)
    label(TINY)
    cmp(r4, 0)
    beq(NUMBER)
    lsl(r4, r4, 21)
    sub(r5, r7, 1)
    b(TOP)
    label(UP)
    lsl(r4, r4, 1)
    add(r5, 1)
    label(TOP)
    mov(r1, r4)
    cmp(r1, 0)
    bpl(UP)
    b(PLACE)
    label(END)
    data(2, 0xB007)  # add sp, 28
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def encode(r0, r1, r2, r3):
    # r0 buffer, r1 k, r2 v, r3 storing
    # A token's K and V to codes and scales at slot E_SLOT: plain.py's encode.
    # From E_COUNT values of k and of v, int16 or float32, to codes[E_COUNT] and float16 scales; codes
    # have 4 bits where VECTOR_MOST is 7, and of V, where it is 0, none are made. Returns -1 - which
    # vector has a value too large. B1.
    # r0 values, r1 codes, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift or 0 for float32, lr
    # end, r12 what is added to a code of 4 bits; 0: it goes above the one before
    # Instructions of inner loops: SHORT 11, NORMAL 5, FLOATS 7, FOLD 7, NARROW 8, DIVIDE 8, WHOLE 27,
    # REAL 27, NIBBLE 53, PAD 5
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08E)  # sub sp, 56
    data(2, 0x9300)  # str r3, [sp, 0]  e
    data(2, 0x9001)  # str r0, [sp, 4]  buffer
    data(2, 0x9202)  # str r2, [sp, 8]  v
    mov(r5, 0)
    data(2, 0x9508)  # str r5, [sp, 32]  vector
    ldr(r4, [r3, 0])  # E_LAYER
    mov(r6, 12)  # LAYER_WORDS
    mul(r4, r6)
    add(r4, r4, r3)
    add(r4, 84)  # E_TABLE
    data(2, 0x940A)  # str r4, [sp, 40]  layer
    label(VECTOR)
    data(2, 0x9801)  # ldr r0, [sp, 4]  buffer
    ldr(r6, [r4, 0])  # LAYER_CODES
    add(r0, r0, r6)
    mov(r7, 24)  # VECTOR_WORDS
    mul(r7, r5)
    add(r7, r7, r3)
    add(r7, 36)  # E_K
    data(2, 0x970C)  # str r7, [sp, 48]  record
    ldr(r6, [r7, 0])  # VECTOR_AT
    add(r0, r0, r6)
    lsl(r5, r5, 2)
    add(r5, r5, r4)
    ldr(r5, [r5, 4])  # LAYER_K_SHIFT
    data(2, 0x9503)  # str r5, [sp, 12]  shift
    ldr(r6, [r3, 8])  # E_AT
    lsl(r6, r6, 1)
    cmp(r5, 0)
    bne(L1)
    lsl(r6, r6, 1)
    label(L1)
    add(r1, r1, r6)
    ldr(r6, [r7, 20])  # VECTOR_MOST
    cmp(r6, 0)
    bne(L2)
    b(STORED)
    label(L2)
    data(2, 0x960D)  # str r6, [sp, 52]  most
    ldr(r6, [r7, 4])  # VECTOR_ROW
    ldr(r5, [r3, 4])  # E_SLOT
    mul(r6, r5)
    add(r6, r6, r0)
    data(2, 0x9604)  # str r6, [sp, 16]  head
    ldr(r6, [r7, 8])  # VECTOR_CODES
    add(r6, r6, r0)
    lsl(r5, r5, 1)
    add(r6, r6, r5)
    data(2, 0x9605)  # str r6, [sp, 20]  scale
    mov(r5, 0)
    data(2, 0x9506)  # str r5, [sp, 24]  slice
    ldr(r5, [r3, 12])  # E_COUNT
    data(2, 0x9507)  # str r5, [sp, 28]  values_left
    mov(r0, r1)
    label(GROUP)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  e
    ldr(r2, [r3, 16])  # E_GROUP
    data(2, 0x9F03)  # ldr r7, [sp, 12]  shift
    lsl(r2, r2, 1)
    cmp(r7, 0)
    bne(L3)
    lsl(r2, r2, 1)
    label(L3)
    add(r2, r2, r0)
    data(2, 0x9209)  # str r2, [sp, 36]  group_end
    mov(r1, r0)
    mov(r4, 0)
    cmp(r7, 0)
    beq(FLOATS)
    label(SHORT)
    ldrh(r5, [r0, 0])
    data(2, 0xB22D)  # sxth r5, r5
    add(r0, 2)
    asr(r6, r5, 31)
    add(r5, r5, r6)
    eor(r5, r6)
    cmp(r5, r4)
    ble(L4)
    mov(r4, r5)
    label(L4)
    cmp(r0, r2)
    bne(SHORT)
    mov(r5, 56)
    sub(r5, r5, r7)
    lsl(r4, r4, 8)
    beq(NOUGHT)
    label(NORMAL)
    lsr(r6, r4, 23)
    bne(LARGEST)
    add(r4, r4, r4)
    sub(r5, 1)
    b(NORMAL)
    label(FLOATS)
    data(2, 0xC820)  # ldm r0!, {r5}
    lsl(r5, r5, 1)
    cmp(r5, r4)
    bls(L5)
    mov(r4, r5)
    label(L5)
    cmp(r0, r2)
    bne(FLOATS)
    lsr(r5, r4, 24)
    beq(NOUGHT)
    lsl(r4, r4, 8)
    lsr(r4, r4, 9)
    mov(r6, 1)
    lsl(r6, r6, 23)
    orr(r4, r6)
    sub(r5, 150)
    b(LARGEST)
    label(NOUGHT)
    mov(r4, 1)
    mov(r5, 0)
    mov(r6, 0)
    b(SCALED)
    label(LARGEST)
    mov(r2, 7)
    data(2, 0x980D)  # ldr r0, [sp, 52]  most
    cmp(r0, 7)
    bne(L6)
    mov(r2, 3)
    label(L6)
    add(r4, r4, r0)
    sub(r4, 1)
    mov(r6, 0)
    label(FOLD)
    mov(r7, r4)
    lsr(r7, r2)
    beq(FOLDED)
    add(r6, r6, r7)
    and_(r4, r0)
    add(r4, r4, r7)
    b(FOLD)
    label(FOLDED)
    cmp(r4, r0)
    bne(L7)
    add(r6, 1)
    label(L7)
    mov(r7, 12)
    sub(r2, r7, r2)
    label(NARROW)
    add(r2, 1)
    mov(r4, 1)
    lsl(r4, r2)
    sub(r4, 1)
    add(r4, r4, r6)
    lsr(r4, r2)
    lsr(r7, r4, 11)
    bne(NARROW)
    add(r5, r5, r2)
    cmp(r5, 5)
    ble(L8)
    data(2, 0x9808)  # ldr r0, [sp, 32]  vector
    mvn(r0, r0)
    b(REFUSE)
    label(L8)
    mov(r7, 24)
    add(r7, r7, r5)
    bmi(L9)
    lsl(r6, r7, 10)
    add(r6, r6, r4)
    b(SCALED)
    label(L9)
    sub(r2, r2, r7)
    mov(r4, 1)
    cmp(r2, 30)
    bgt(L10)
    lsl(r4, r2)
    sub(r4, 1)
    add(r4, r4, r6)
    lsr(r4, r2)
    label(L10)
    mov(r6, r4)
    mov(r5, 24)
    neg(r5, r5)
    label(SCALED)
    data(2, 0x9F05)  # ldr r7, [sp, 20]  scale
    strh(r6, [r7, 0])
    ldr(r6, [r3, 28])  # E_STRIDE
    add(r7, r7, r6)
    data(2, 0x9705)  # str r7, [sp, 20]  scale
    mov(r10, r4)
    mov(r0, r1)
    lsl(r3, r4, 1)
    mov(r2, 0)
    mov(r6, 1)
    mov(r7, 23)
    lsr(r4, r4, 10)
    beq(DIVIDE)
    lsl(r6, r6, 10)
    mov(r7, 13)
    label(DIVIDE)
    add(r2, r2, r2)
    add(r6, r6, r6)
    cmp(r6, r3)
    bcc(L11)
    sub(r6, r6, r3)
    add(r2, 1)
    label(L11)
    sub(r7, 1)
    bne(DIVIDE)
    data(2, 0x9F03)  # ldr r7, [sp, 12]  shift
    mov(r11, r7)
    cmp(r7, 0)
    beq(L12)
    mov(r6, 65)
    sub(r6, r6, r7)
    sub(r6, r6, r5)
    mov(r7, 0)
    cmp(r6, 0)
    bge(L13)
    neg(r7, r6)
    mov(r6, 0)
    label(L13)
    mov(r8, r6)
    mov(r9, r7)
    b(L14)
    label(L12)
    mov(r6, 1)
    lsl(r6, r6, 31)
    mov(r8, r6)
    mov(r6, 157)
    add(r6, r6, r5)
    mov(r9, r6)
    label(L14)
    label(PIECE)
    data(2, 0x9F00)  # ldr r7, [sp, 0]  e
    ldr(r4, [r7, 20])  # E_WIDTH
    mov(r6, r11)
    lsl(r4, r4, 1)
    cmp(r6, 0)
    bne(L15)
    lsl(r4, r4, 1)
    label(L15)
    add(r4, r4, r0)
    mov(r14, r4)
    ldr(r4, [r7, 24])  # E_SLICES
    data(2, 0x9F0C)  # ldr r7, [sp, 48]  record
    data(2, 0x9D06)  # ldr r5, [sp, 24]  slice
    ldr(r6, [r7, 12])  # VECTOR_BYTES
    mov(r1, r6)
    mul(r1, r5)
    data(2, 0x9F04)  # ldr r7, [sp, 16]  head
    add(r1, r1, r7)
    add(r6, r6, r1)
    data(2, 0x960B)  # str r6, [sp, 44]  slice_end
    add(r5, 1)
    cmp(r5, r4)
    bne(L16)
    mov(r5, 0)
    mov(r4, r7)
    data(2, 0x9F0C)  # ldr r7, [sp, 48]  record
    ldr(r6, [r7, 16])  # VECTOR_HEAD
    add(r4, r4, r6)
    data(2, 0x9404)  # str r4, [sp, 16]  head
    label(L16)
    data(2, 0x9506)  # str r5, [sp, 24]  slice
    data(2, 0x9C0D)  # ldr r4, [sp, 52]  most
    cmp(r4, 7)
    beq(NIBBLES)
    mov(r4, r11)
    cmp(r4, 0)
    beq(REAL)
    label(WHOLE)
    ldrh(r5, [r0, 0])
    data(2, 0xB22D)  # sxth r5, r5
    add(r0, 2)
    asr(r7, r5, 31)
    add(r5, r5, r7)
    eor(r5, r7)
    mov(r4, r8)
    lsl(r5, r4)
    mov(r4, r9)
    lsr(r5, r4)
    data(2, 0x4455)  # add r5, r10
    mov(r6, r5)
    mul(r6, r2)
    lsr(r6, r6, 23)
    mov(r4, r6)
    mul(r4, r3)
    sub(r5, r5, r4)
    cmp(r5, r3)
    bcc(L17)
    add(r6, 1)
    label(L17)
    eor(r6, r7)
    sub(r6, r6, r7)
    add(r6, 128)
    strb(r6, [r1, 0])
    add(r1, 1)
    data(2, 0x4570)  # cmp r0, lr
    bne(WHOLE)
    b(BYTES)
    label(REAL)
    data(2, 0xC820)  # ldm r0!, {r5}
    asr(r7, r5, 31)
    lsl(r4, r5, 1)
    lsr(r4, r4, 24)
    lsl(r5, r5, 9)
    lsr(r5, r5, 1)
    data(2, 0x4445)  # add r5, r8
    mov(r6, r9)
    sub(r6, r6, r4)
    lsr(r5, r6)
    data(2, 0x4455)  # add r5, r10
    mov(r6, r5)
    mul(r6, r2)
    lsr(r6, r6, 23)
    mov(r4, r6)
    mul(r4, r3)
    sub(r5, r5, r4)
    cmp(r5, r3)
    bcc(L18)
    add(r6, 1)
    label(L18)
    eor(r6, r7)
    sub(r6, r6, r7)
    add(r6, 128)
    strb(r6, [r1, 0])
    add(r1, 1)
    data(2, 0x4570)  # cmp r0, lr
    bne(REAL)
    label(BYTES)
    mov(r6, 128)
    b(CODES)
    label(NIBBLES)
    mov(r6, 136)
    mov(r12, r6)
    label(NIBBLE)
    mov(r4, r11)
    cmp(r4, 0)
    beq(L19)
    ldrh(r5, [r0, 0])
    data(2, 0xB22D)  # sxth r5, r5
    add(r0, 2)
    asr(r7, r5, 31)
    add(r5, r5, r7)
    eor(r5, r7)
    mov(r4, r8)
    lsl(r5, r4)
    mov(r4, r9)
    lsr(r5, r4)
    b(L20)
    label(L19)
    data(2, 0xC820)  # ldm r0!, {r5}
    asr(r7, r5, 31)
    lsl(r4, r5, 1)
    lsr(r4, r4, 24)
    lsl(r5, r5, 9)
    lsr(r5, r5, 1)
    data(2, 0x4445)  # add r5, r8
    mov(r6, r9)
    sub(r6, r6, r4)
    lsr(r5, r6)
    label(L20)
    data(2, 0x4455)  # add r5, r10
    mov(r6, r5)
    mul(r6, r2)
    lsr(r6, r6, 23)
    mov(r4, r6)
    mul(r4, r3)
    sub(r5, r5, r4)
    cmp(r5, r3)
    bcc(L21)
    add(r6, 1)
    label(L21)
    eor(r6, r7)
    sub(r6, r6, r7)
    mov(r4, r12)
    cmp(r4, 0)
    beq(L22)
    add(r6, r6, r4)
    strb(r6, [r1, 0])
    mov(r4, 0)
    mov(r12, r4)
    b(HALF)
    label(L22)
    lsl(r6, r6, 4)
    mov(r4, 136)
    mov(r12, r4)
    ldrb(r4, [r1, 0])
    add(r6, r6, r4)
    strb(r6, [r1, 0])
    add(r1, 1)
    label(HALF)
    data(2, 0x4570)  # cmp r0, lr
    bne(NIBBLE)
    mov(r6, r12)
    cmp(r6, 0)
    bne(L23)
    add(r1, 1)
    mov(r6, 136)
    label(L23)
    label(CODES)
    data(2, 0x9D0B)  # ldr r5, [sp, 44]  slice_end
    label(PAD)
    cmp(r1, r5)
    beq(PADDED)
    strb(r6, [r1, 0])
    add(r1, 1)
    b(PAD)
    label(PADDED)
    data(2, 0x9C09)  # ldr r4, [sp, 36]  group_end
    cmp(r0, r4)
    beq(L24)
    b(PIECE)
    label(L24)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  e
    ldr(r4, [r3, 16])  # E_GROUP
    data(2, 0x9D07)  # ldr r5, [sp, 28]  values_left
    sub(r5, r5, r4)
    data(2, 0x9507)  # str r5, [sp, 28]  values_left
    beq(L25)
    b(GROUP)
    label(L25)
    data(2, 0x9902)  # ldr r1, [sp, 8]  v
    data(2, 0x9C0A)  # ldr r4, [sp, 40]  layer
    data(2, 0x9D08)  # ldr r5, [sp, 32]  vector
    add(r5, 1)
    data(2, 0x9508)  # str r5, [sp, 32]  vector
    cmp(r5, 2)
    beq(L26)
    b(VECTOR)
    label(L26)
    label(STORED)
    mov(r0, 0)
    label(REFUSE)
    data(2, 0xB00E)  # add sp, 56
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)


@micropython.asm_thumb
def query(r0, r1, r2, r3):
    # r0 buffer, r1 q, r2 qs, r3 attend
    # Query records of all heads: plain.py's query, B1 and B3.
    # From HEADS * HEAD_DIM values of q, and of qs if there are two SETS, int16 or float32, from element
    # Q_AT on, to records at QUERIES, QUERY_BYTES each. Returns -1 if a value is not finite.
    # r0 values, r1 words, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift (0: float32), lr
    # end, r12 column of the word
    # Instructions of inner loops: SHORT 11, FLOATS 7, NORMAL 5, NARROW 8, DIVIDE 8, CLEAR 4, VALUE 64,
    # DOTS 6
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08E)  # sub sp, 56
    data(2, 0x9300)  # str r3, [sp, 0]  a
    data(2, 0x900D)  # str r0, [sp, 52]  buffer
    mov(r7, r3)
    add(r7, 100)  # CORR
    ldr(r4, [r7, 76])  # QUERIES
    add(r4, r4, r0)
    data(2, 0x9401)  # str r4, [sp, 4]  record
    ldr(r4, [r3, 120])  # Q_AT
    data(2, 0x9409)  # str r4, [sp, 36]  element
    lsl(r4, r4, 1)
    ldr(r5, [r7, 40])  # Q_SHIFT
    cmp(r5, 0)
    bne(L1)
    lsl(r4, r4, 1)
    label(L1)
    add(r1, r1, r4)
    data(2, 0x9102)  # str r1, [sp, 8]  q
    add(r2, r2, r4)
    data(2, 0x9203)  # str r2, [sp, 12]  qs
    ldr(r4, [r7, 48])  # HEADS
    data(2, 0x9404)  # str r4, [sp, 16]  heads_left
    label(HEAD)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    add(r3, 100)  # CORR
    ldr(r7, [r3, 40])  # Q_SHIFT
    ldr(r6, [r3, 36])  # SETS
    data(2, 0x9605)  # str r6, [sp, 20]  sets_left
    mov(r4, 0)
    label(SET)
    data(2, 0x9E05)  # ldr r6, [sp, 20]  sets_left
    sub(r6, 1)
    data(2, 0x9605)  # str r6, [sp, 20]  sets_left
    data(2, 0x9802)  # ldr r0, [sp, 8]  q
    beq(L2)
    data(2, 0x9803)  # ldr r0, [sp, 12]  qs
    label(L2)
    ldr(r2, [r3, 28])  # HEAD_DIM
    lsl(r2, r2, 1)
    cmp(r7, 0)
    bne(L3)
    lsl(r2, r2, 1)
    label(L3)
    add(r2, r2, r0)
    cmp(r7, 0)
    beq(FLOATS)
    label(SHORT)
    ldrh(r5, [r0, 0])
    data(2, 0xB22D)  # sxth r5, r5
    add(r0, 2)
    asr(r6, r5, 31)
    add(r5, r5, r6)
    eor(r5, r6)
    cmp(r5, r4)
    ble(L4)
    mov(r4, r5)
    label(L4)
    cmp(r0, r2)
    bne(SHORT)
    b(SCANNED)
    label(FLOATS)
    data(2, 0xC820)  # ldm r0!, {r5}
    lsl(r5, r5, 1)
    cmp(r5, r4)
    bls(L5)
    mov(r4, r5)
    label(L5)
    cmp(r0, r2)
    bne(FLOATS)
    label(SCANNED)
    data(2, 0x9E05)  # ldr r6, [sp, 20]  sets_left
    cmp(r6, 0)
    bne(SET)
    cmp(r7, 0)
    beq(L6)
    mov(r5, 56)
    sub(r5, r5, r7)
    lsl(r4, r4, 8)
    beq(NOUGHT)
    label(NORMAL)
    lsr(r6, r4, 23)
    bne(LARGEST)
    add(r4, r4, r4)
    sub(r5, 1)
    b(NORMAL)
    label(L6)
    lsr(r5, r4, 24)
    beq(NOUGHT)
    cmp(r5, 255)
    bne(L7)
    mov(r0, 0)
    mvn(r0, r0)
    b(REFUSE)
    label(L7)
    lsl(r4, r4, 8)
    lsr(r4, r4, 9)
    mov(r6, 1)
    lsl(r6, r6, 23)
    orr(r4, r6)
    sub(r5, 150)
    b(LARGEST)
    label(NOUGHT)
    mov(r4, 1)
    lsl(r4, r4, 10)
    mov(r5, 0)
    b(SCALED)
    label(LARGEST)
    add(r4, 63)
    lsr(r6, r4, 6)
    mov(r2, 5)
    label(NARROW)
    add(r2, 1)
    mov(r4, 1)
    lsl(r4, r2)
    sub(r4, 1)
    add(r4, r4, r6)
    lsr(r4, r2)
    lsr(r0, r4, 11)
    bne(NARROW)
    add(r5, r5, r2)
    label(SCALED)
    data(2, 0x9901)  # ldr r1, [sp, 4]  record
    str(r4, [r1, 0])  # QUERY_MANTISSA
    mov(r6, 1)
    lsl(r6, r6, 11)
    add(r6, r6, r5)
    str(r6, [r1, 4])  # QUERY_EXP
    mov(r10, r4)
    lsl(r3, r4, 1)
    mov(r2, 0)
    mov(r6, 1)
    lsl(r6, r6, 10)
    mov(r4, 13)
    label(DIVIDE)
    add(r2, r2, r2)
    add(r6, r6, r6)
    cmp(r6, r3)
    bcc(L8)
    sub(r6, r6, r3)
    add(r2, 1)
    label(L8)
    sub(r4, 1)
    bne(DIVIDE)
    mov(r11, r7)
    cmp(r7, 0)
    beq(L9)
    mov(r6, 65)
    sub(r6, r6, r7)
    sub(r6, r6, r5)
    mov(r7, 0)
    cmp(r6, 0)
    bge(L10)
    neg(r7, r6)
    mov(r6, 0)
    label(L10)
    mov(r8, r6)
    mov(r9, r7)
    b(L11)
    label(L9)
    mov(r6, 1)
    lsl(r6, r6, 31)
    mov(r8, r6)
    mov(r6, 157)
    add(r6, r6, r5)
    mov(r9, r6)
    label(L11)
    mov(r4, 0)
    data(2, 0x9406)  # str r4, [sp, 24]  most
    data(2, 0x9F00)  # ldr r7, [sp, 0]  a
    add(r7, 100)  # CORR
    ldr(r4, [r7, 36])  # SETS
    data(2, 0x9405)  # str r4, [sp, 20]  sets_left
    label(CODES)
    data(2, 0x9F00)  # ldr r7, [sp, 0]  a
    ldr(r5, [r7, 12])  # SLICES
    data(2, 0x950C)  # str r5, [sp, 48]  slices_left
    lsl(r5, r5, 2)
    data(2, 0x9901)  # ldr r1, [sp, 4]  record
    add(r1, 16)  # QUERY_WORDS
    mov(r4, 0)
    data(2, 0x9407)  # str r4, [sp, 28]  sum
    add(r7, 100)  # CORR
    data(2, 0x9802)  # ldr r0, [sp, 8]  q
    data(2, 0x9C05)  # ldr r4, [sp, 20]  sets_left
    sub(r4, 1)
    data(2, 0x9405)  # str r4, [sp, 20]  sets_left
    beq(L12)
    data(2, 0x9803)  # ldr r0, [sp, 12]  qs
    ldr(r4, [r7, 52])  # QUERY_SET
    add(r1, r1, r4)
    label(L12)
    data(2, 0x9108)  # str r1, [sp, 32]  constants
    add(r1, r1, r5)
    label(PIECE)
    data(2, 0x9F00)  # ldr r7, [sp, 0]  a
    ldr(r4, [r7, 16])  # WIDTH
    add(r4, 7)
    lsr(r4, r4, 3)
    lsl(r4, r4, 1)
    mov(r5, 0)
    mov(r6, r1)
    label(CLEAR)
    data(2, 0xC620)  # stm r6!, {r5}
    data(2, 0xC620)  # stm r6!, {r5}
    sub(r4, 1)
    bne(CLEAR)
    data(2, 0x960A)  # str r6, [sp, 40]  next_words
    data(2, 0x950B)  # str r5, [sp, 44]  constant
    mov(r12, r5)
    ldr(r4, [r7, 124])  # SLICE_WIDTH
    lsl(r4, r4, 1)
    mov(r6, r11)
    cmp(r6, 0)
    bne(L13)
    lsl(r4, r4, 1)
    label(L13)
    add(r4, r4, r0)
    mov(r14, r4)
    label(VALUE)
    mov(r4, r11)
    cmp(r4, 0)
    beq(L14)
    ldrh(r5, [r0, 0])
    data(2, 0xB22D)  # sxth r5, r5
    add(r0, 2)
    asr(r7, r5, 31)
    add(r5, r5, r7)
    eor(r5, r7)
    mov(r4, r8)
    lsl(r5, r4)
    mov(r4, r9)
    lsr(r5, r4)
    b(L15)
    label(L14)
    data(2, 0xC820)  # ldm r0!, {r5}
    asr(r7, r5, 31)
    lsl(r4, r5, 1)
    lsr(r4, r4, 24)
    lsl(r5, r5, 9)
    lsr(r5, r5, 1)
    data(2, 0x4445)  # add r5, r8
    mov(r6, r9)
    sub(r6, r6, r4)
    lsr(r5, r6)
    label(L15)
    data(2, 0x4455)  # add r5, r10
    mov(r6, r5)
    mul(r6, r2)
    lsr(r6, r6, 23)
    mov(r4, r6)
    mul(r4, r3)
    sub(r5, r5, r4)
    cmp(r5, r3)
    bcc(L16)
    add(r6, 1)
    label(L16)
    data(2, 0x9C07)  # ldr r4, [sp, 28]  sum
    add(r4, r4, r6)
    data(2, 0x9407)  # str r4, [sp, 28]  sum
    eor(r6, r7)
    sub(r6, r6, r7)
    data(2, 0x9C0B)  # ldr r4, [sp, 44]  constant
    lsl(r5, r6, 7)
    sub(r4, r4, r5)
    mov(r7, r12)
    lsr(r5, r7, 1)
    beq(L17)
    lsr(r5, r6, 31)
    add(r4, r4, r5)
    b(L18)
    label(L17)
    lsl(r6, r6, 16)
    label(L18)
    data(2, 0x940B)  # str r4, [sp, 44]  constant
    mov(r5, 1)
    and_(r5, r7)
    lsl(r5, r5, 2)
    data(2, 0x594C)  # ldr r4, [r1, r5]
    add(r4, r4, r6)
    data(2, 0x514C)  # str r4, [r1, r5]
    add(r7, 1)
    cmp(r7, 4)
    bne(L19)
    mov(r7, 0)
    add(r1, 8)
    label(L19)
    mov(r12, r7)
    data(2, 0x4570)  # cmp r0, lr
    bne(VALUE)
    data(2, 0x990A)  # ldr r1, [sp, 40]  next_words
    data(2, 0x9E08)  # ldr r6, [sp, 32]  constants
    data(2, 0x9D0B)  # ldr r5, [sp, 44]  constant
    data(2, 0xC620)  # stm r6!, {r5}
    data(2, 0x9608)  # str r6, [sp, 32]  constants
    data(2, 0x9C0C)  # ldr r4, [sp, 48]  slices_left
    sub(r4, 1)
    data(2, 0x940C)  # str r4, [sp, 48]  slices_left
    bne(PIECE)
    data(2, 0x9C06)  # ldr r4, [sp, 24]  most
    data(2, 0x9D07)  # ldr r5, [sp, 28]  sum
    cmp(r5, r4)
    ble(L20)
    data(2, 0x9506)  # str r5, [sp, 24]  most
    label(L20)
    data(2, 0x9C05)  # ldr r4, [sp, 20]  sets_left
    cmp(r4, 0)
    bne(CODES)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    ldr(r5, [r3, 12])  # SLICES
    data(2, 0x9C06)  # ldr r4, [sp, 24]  most
    lsl(r6, r4, 7)
    sub(r4, r6, r4)
    mov(r2, 1)
    lsl(r2, r2, 19)
    mov(r7, 0)
    sub(r7, 1)
    label(DOTS)
    add(r7, 1)
    mov(r6, r4)
    lsr(r6, r7)
    add(r6, r6, r5)
    cmp(r6, r2)
    bgt(DOTS)
    data(2, 0x9901)  # ldr r1, [sp, 4]  record
    str(r7, [r1, 8])  # QUERY_DOWN
    data(2, 0x9C09)  # ldr r4, [sp, 36]  element
    str(r4, [r1, 12])  # QUERY_AT
    add(r3, 100)  # CORR
    ldr(r5, [r3, 28])  # HEAD_DIM
    add(r4, r4, r5)
    data(2, 0x9409)  # str r4, [sp, 36]  element
    ldr(r6, [r3, 32])  # QUERY_BYTES
    add(r1, r1, r6)
    data(2, 0x9101)  # str r1, [sp, 4]  record
    lsl(r5, r5, 1)
    ldr(r6, [r3, 40])  # Q_SHIFT
    cmp(r6, 0)
    bne(L21)
    lsl(r5, r5, 1)
    label(L21)
    data(2, 0x9C02)  # ldr r4, [sp, 8]  q
    add(r4, r4, r5)
    data(2, 0x9402)  # str r4, [sp, 8]  q
    data(2, 0x9C03)  # ldr r4, [sp, 12]  qs
    add(r4, r4, r5)
    data(2, 0x9403)  # str r4, [sp, 12]  qs
    data(2, 0x9C04)  # ldr r4, [sp, 16]  heads_left
    sub(r4, 1)
    data(2, 0x9404)  # str r4, [sp, 16]  heads_left
    beq(L22)
    b(HEAD)
    label(L22)
    mov(r0, 0)
    label(REFUSE)
    data(2, 0xB00E)  # add sp, 56
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)


@micropython.asm_thumb
def heads(r0, r1, r2, r3):
    # r0 buffer, r1 attend, r2 out, r3 calls
    # All heads of a layer, which row() of attention.py says how to go through: each kernel is called by
    # its address, which takes a hundredth of a call from viper.
    # r4 calls, r5 attend, r6 buffer, r8 out, r9 KV heads left, r10 heads left of this one, r11 those left
    # that share scales
    # Instructions of inner loops: SCORES 20, SUMS 33
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    mov(r4, r3)
    mov(r5, r1)
    mov(r6, r0)
    mov(r8, r2)
    ldr(r0, [r4, 36])  # LAYER_AT
    str(r0, [r5, 20])  # CODES
    ldr(r1, [r4, 44])  # TO_SCALES
    add(r1, r1, r0)
    str(r1, [r5, 28])  # SCALES
    ldr(r1, [r4, 40])  # TO_VALUES
    add(r0, r0, r1)
    str(r0, [r5, 24])  # VCODES
    ldr(r1, [r4, 48])  # TO_VSCALES
    add(r0, r0, r1)
    str(r0, [r5, 32])  # VSCALES
    ldr(r0, [r4, 68])  # FIRST_QUERY
    str(r0, [r5, 68])  # QUERY
    ldr(r0, [r4, 72])  # KV_HEADS
    mov(r9, r0)
    mov(r0, 0)
    str(r0, [r5, 76])  # SLICE
    label(KV_HEAD)
    cmp(r0, 0)
    bne(L1)
    mov(r0, r6)
    mov(r1, r6)
    mov(r2, 0)
    mov(r3, r5)
    ldr(r7, [r4, 0])  # CALL_SCALES
    data(2, 0x47B8)  # blx r7
    mov(r0, r6)
    mov(r1, r6)
    mov(r2, 1)
    mov(r3, r5)
    ldr(r7, [r4, 0])  # CALL_SCALES
    data(2, 0x47B8)  # blx r7
    ldr(r0, [r4, 80])  # SHARED_SCALES
    mov(r11, r0)
    label(L1)
    ldr(r0, [r4, 76])  # GROUP_HEADS
    mov(r10, r0)
    label(HEAD)
    mov(r0, 0)
    label(SCORES)
    str(r0, [r5, 76])  # SLICE
    mov(r0, r6)
    mov(r1, r6)
    mov(r2, 255)
    lsl(r2, r2, 16)
    add(r2, 255)
    mov(r3, r5)
    ldr(r7, [r4, 4])  # CALL_QK
    data(2, 0x47B8)  # blx r7
    mov(r0, r6)
    mov(r1, r6)
    mov(r2, 0)
    mov(r3, r5)
    ldr(r7, [r4, 8])  # CALL_SCORE
    data(2, 0x47B8)  # blx r7
    ldr(r0, [r5, 76])  # SLICE
    add(r0, 1)
    ldr(r1, [r5, 12])  # SLICES
    cmp(r0, r1)
    blt(SCORES)
    mov(r0, 0)
    label(SUMS)
    str(r0, [r5, 76])  # SLICE
    ldr(r7, [r4, 12])  # CALL_USES
    cmp(r7, 0)
    beq(L2)
    mov(r0, r6)
    ldr(r1, [r4, 28])  # POLICY_AT
    ldr(r2, [r4, 32])  # TABLES_AT
    mov(r3, r5)
    data(2, 0x47B8)  # blx r7
    label(L2)
    mov(r0, r6)
    mov(r1, r6)
    ldr(r2, [r4, 32])  # TABLES_AT
    mov(r3, r5)
    ldr(r7, [r4, 16])  # CALL_WEIGHTS
    data(2, 0x47B8)  # blx r7
    mov(r0, r6)
    mov(r1, r6)
    mov(r2, 255)
    lsl(r2, r2, 16)
    add(r2, 255)
    mov(r3, r5)
    ldr(r7, [r4, 20])  # CALL_AV
    data(2, 0x47B8)  # blx r7
    mov(r0, r6)
    mov(r1, r5)
    mov(r2, r8)
    ldr(r7, [r4, 24])  # CALL_EMIT
    data(2, 0x47B8)  # blx r7
    ldr(r0, [r5, 76])  # SLICE
    add(r0, 1)
    ldr(r1, [r5, 12])  # SLICES
    cmp(r0, r1)
    blt(SUMS)
    mov(r0, r10)
    sub(r0, 1)
    mov(r10, r0)
    beq(NEXT)
    ldr(r0, [r4, 64])  # NEXT_QUERY
    ldr(r1, [r5, 68])  # QUERY
    add(r1, r1, r0)
    str(r1, [r5, 68])  # QUERY
    b(HEAD)
    label(NEXT)
    mov(r0, r9)
    sub(r0, 1)
    mov(r9, r0)
    beq(DONE)
    ldr(r0, [r4, 64])  # NEXT_QUERY
    ldr(r1, [r5, 68])  # QUERY
    add(r1, r1, r0)
    str(r1, [r5, 68])  # QUERY
    ldr(r0, [r4, 52])  # NEXT_CODES
    ldr(r1, [r5, 20])  # CODES
    add(r1, r1, r0)
    str(r1, [r5, 20])  # CODES
    ldr(r0, [r4, 56])  # NEXT_VCODES
    ldr(r1, [r5, 24])  # VCODES
    add(r1, r1, r0)
    str(r1, [r5, 24])  # VCODES
    mov(r0, r11)
    sub(r0, 1)
    mov(r11, r0)
    bne(L3)
    ldr(r0, [r4, 60])  # NEXT_SCALES
    ldr(r1, [r5, 28])  # SCALES
    add(r1, r1, r0)
    str(r1, [r5, 28])  # SCALES
    ldr(r0, [r4, 60])  # NEXT_SCALES
    ldr(r1, [r5, 32])  # VSCALES
    add(r1, r1, r0)
    str(r1, [r5, 32])  # VSCALES
    mov(r0, 0)
    label(L3)
    b(KV_HEAD)
    label(DONE)
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
