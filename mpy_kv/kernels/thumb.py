"""The kernels of plain.py in Thumb assembler: same bits, about a third of viper's instructions and memory.

ARMv6-M only, so RP2040 and RP2350 run the same code. Indexes into `a` and `e` are those of params.py, times
four; bounds B1..B6 those of plain.py. `data(2, ...)` is an instruction that MicroPython's assembler lacks,
written beside it in the assembler's own words. r8 and above hold what a loop only adds, compares or copies;
r8 to r11 belong to the caller and are saved, r12 and lr are free. sp[4 * i] is word i of the frame.
"""

import micropython


@micropython.asm_thumb
def qk(r0, r1, r2, r3):
    # r0 codes, r1 mask, r2 r3 r4 r8 query words, r9 result, r10 its end in this run, r11 constant, r12 gap
    # sp: a, buffer, column, run, runs left, columns
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB086)  # sub sp, 24
    data(2, 0x9300)  # str r3, [sp, 0]
    data(2, 0x9001)  # str r0, [sp, 4]
    mov(r1, r2)
    ldr(r4, [r3, 16])
    add(r4, 7)
    lsr(r4, r4, 3)
    lsl(r4, r4, 3)
    data(2, 0x9405)  # str r4, [sp, 20]
    mov(r4, 0)
    data(2, 0x9402)  # str r4, [sp, 8]
    label(COLUMN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    ldr(r4, [r3, 44])
    data(2, 0x9D01)  # ldr r5, [sp, 4]
    add(r4, r4, r5)
    mov(r9, r4)
    ldr(r4, [r3, 4])
    data(2, 0x9404)  # str r4, [sp, 16]
    mov(r4, r3)
    add(r4, 172)
    data(2, 0x9403)  # str r4, [sp, 12]
    label(RUN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    data(2, 0x9E01)  # ldr r6, [sp, 4]
    data(2, 0x9F03)  # ldr r7, [sp, 12]
    ldr(r4, [r3, 68])
    add(r4, r4, r6)
    add(r4, 16)
    ldr(r5, [r7, 12])
    cmp(r5, 0)
    beq(WINDOW)
    ldr(r5, [r3, 72])
    add(r4, r4, r5)
    label(WINDOW)
    ldr(r5, [r3, 76])
    lsl(r0, r5, 2)
    data(2, 0x5820)  # ldr r0, [r4, r0]
    mov(r11, r0)
    ldr(r0, [r3, 12])
    lsl(r0, r0, 2)
    add(r4, r4, r0)
    data(2, 0x9805)  # ldr r0, [sp, 20]
    mul(r0, r5)
    data(2, 0x9A02)  # ldr r2, [sp, 8]
    add(r0, r0, r2)
    lsl(r0, r0, 1)
    add(r4, r4, r0)
    ldr(r0, [r3, 16])
    mul(r0, r5)
    add(r0, r0, r2)
    add(r0, r0, r6)
    ldr(r5, [r3, 20])
    add(r0, r0, r5)
    ldr(r5, [r7, 0])
    add(r0, r0, r5)
    ldr(r5, [r3, 8])
    sub(r5, 8)
    mov(r12, r5)
    ldr(r5, [r7, 8])
    lsl(r5, r5, 2)
    data(2, 0x444D)  # add r5, r9
    mov(r10, r5)
    add(r7, 16)
    data(2, 0x9703)  # str r7, [sp, 12]
    ldr(r3, [r4, 4])
    ldr(r5, [r4, 12])
    mov(r8, r5)
    cmp(r2, 0)
    bne(MORE)
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
    b(NEXT)
    label(MORE)  # columns after the first: added to the dot so far
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
    label(NEXT)
    data(2, 0x9C04)  # ldr r4, [sp, 16]
    sub(r4, 1)
    data(2, 0x9404)  # str r4, [sp, 16]
    beq(RUNS)
    b(RUN)
    label(RUNS)
    data(2, 0x9C02)  # ldr r4, [sp, 8]
    add(r4, 8)
    data(2, 0x9402)  # str r4, [sp, 8]
    data(2, 0x9D05)  # ldr r5, [sp, 20]
    cmp(r4, r5)
    bge(END)
    b(COLUMN)
    label(END)
    data(2, 0xB006)  # add sp, 24
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def score(r0, r1, r2, r3):
    # r0 dots, r1 scales, r2 dot shift, r3 tokens left, r6 result, r7 slice, r8 largest
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    mov(r7, 1)
    lsl(r7, r7, 30)
    neg(r7, r7)
    mov(r8, r7)
    ldr(r7, [r3, 76])
    ldr(r1, [r3, 56])
    mul(r1, r7)
    ldr(r4, [r3, 48])
    add(r1, r1, r4)
    add(r1, r1, r0)
    ldr(r4, [r3, 68])
    add(r4, r4, r0)
    ldr(r2, [r4, 8])
    ldr(r6, [r3, 40])
    add(r6, r6, r0)
    ldr(r4, [r3, 44])
    add(r0, r0, r4)
    mov(r12, r3)
    ldr(r4, [r3, 12])
    ldr(r3, [r3, 0])
    cmp(r4, 1)
    bne(SINGLE)
    # One slice: scores replace dots. Four tokens a turn, after the odd ones.
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
    asr(r4, r2)
    ldrh(r3, [r1, 0])
    mul(r4, r3)
    data(2, 0x4544)  # cmp r4, r8
    ble(A)
    mov(r8, r4)
    label(A)
    asr(r5, r2)
    ldrh(r3, [r1, 2])
    mul(r5, r3)
    data(2, 0x4545)  # cmp r5, r8
    ble(B)
    mov(r8, r5)
    label(B)
    asr(r6, r2)
    ldrh(r3, [r1, 4])
    mul(r6, r3)
    data(2, 0x4546)  # cmp r6, r8
    ble(C)
    mov(r8, r6)
    label(C)
    asr(r7, r2)
    ldrh(r3, [r1, 6])
    mul(r7, r3)
    data(2, 0x4547)  # cmp r7, r8
    ble(D)
    mov(r8, r7)
    label(D)
    add(r1, 8)
    sub(r0, 16)
    data(2, 0xC0F0)  # stm r0!, {r4, r5, r6, r7}
    label(TEST)
    data(2, 0x4550)  # cmp r0, r10
    bne(FOUR)
    b(END)
    label(SINGLE)
    data(2, 0xC810)  # ldm r0!, {r4}
    asr(r4, r2)
    ldrh(r5, [r1, 0])
    add(r1, 2)
    mul(r4, r5)
    cmp(r7, 0)
    beq(ALONE)
    ldr(r5, [r6, 0])
    add(r4, r4, r5)
    label(ALONE)
    data(2, 0xC610)  # stm r6!, {r4}
    data(2, 0x4544)  # cmp r4, r8
    ble(LESS)
    mov(r8, r4)
    label(LESS)
    sub(r3, 1)
    bne(SINGLE)
    mov(r3, r12)
    ldr(r4, [r3, 12])
    cmp(r4, 1)
    bne(END)
    ldr(r3, [r3, 0])
    lsr(r3, r3, 2)
    lsl(r3, r3, 2)
    b(FOURS)
    label(END)
    mov(r3, r12)
    mov(r4, r8)
    str(r4, [r3, 88])
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def weights(r0, r1, r2, r3):
    # r0 weights, r1 scales, r2 shift down, r3 mantissa, r4 exponent, r8 MAX, r9 distance that weighs nothing,
    # r10 tables, r11 sum of weights, r12 the same times their scales, lr end of the batch
    # sp: a, buffer, down, mantissa, exponent, tokens left, UNITS, unit, exponent of the batch, CORR, sum of
    # weights low and high, scales, start of the batch
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08E)  # sub sp, 56
    data(2, 0x9300)  # str r3, [sp, 0]
    data(2, 0x9001)  # str r0, [sp, 4]
    mov(r10, r2)
    ldr(r4, [r3, 68])
    add(r4, r4, r0)
    ldr(r5, [r3, 104])
    ldr(r6, [r4, 0])
    mul(r5, r6)
    mov(r6, 10)
    lsr(r7, r5, 25)
    beq(TEN)
    add(r6, 1)
    label(TEN)
    lsr(r5, r6)
    mov(r7, 129)
    lsl(r7, r7, 4)
    add(r7, 5)
    sub(r7, r7, r6)
    ldr(r6, [r3, 108])
    add(r7, r7, r6)
    ldr(r6, [r4, 4])
    sub(r7, r7, r6)
    ldr(r6, [r3, 80])
    sub(r7, r7, r6)
    ldr(r6, [r4, 8])
    sub(r7, r7, r6)
    mov(r6, 0)
    cmp(r7, 1)
    bge(COARSE)
    mov(r7, 1)
    lsl(r5, r7, 15)
    sub(r5, 1)
    label(COARSE)
    cmp(r7, 17)
    ble(FINE)
    mov(r6, r7)
    sub(r6, 17)
    mov(r7, 17)
    cmp(r6, 31)
    ble(FINE)
    mov(r6, 31)
    label(FINE)
    data(2, 0x9602)  # str r6, [sp, 8]
    data(2, 0x9503)  # str r5, [sp, 12]
    data(2, 0x9704)  # str r7, [sp, 16]
    # far = ceil(7168 << e / m), by subtraction: 16 bits
    mov(r6, 7)
    lsl(r6, r6, 10)
    lsl(r6, r7)
    add(r6, r6, r5)
    sub(r6, 1)
    lsl(r5, r5, 15)
    mov(r4, 0)
    mov(r7, 16)
    label(DIVIDE)
    add(r4, r4, r4)
    cmp(r6, r5)
    bcc(SMALLER)
    sub(r6, r6, r5)
    add(r4, 1)
    label(SMALLER)
    lsr(r5, r5, 1)
    sub(r7, 1)
    bne(DIVIDE)
    mov(r9, r4)
    ldr(r4, [r3, 88])
    mov(r8, r4)
    ldr(r6, [r3, 0])
    data(2, 0x9605)  # str r6, [sp, 20]
    mov(r5, 19)
    mov(r4, r6)
    label(UNIT)
    add(r5, 1)
    lsr(r4, r4, 1)
    bne(UNIT)
    data(2, 0x9507)  # str r5, [sp, 28]
    ldr(r4, [r3, 60])
    add(r4, r4, r0)
    data(2, 0x9406)  # str r4, [sp, 24]
    mov(r4, 0)
    data(2, 0x9408)  # str r4, [sp, 32]
    data(2, 0x9409)  # str r4, [sp, 36]
    data(2, 0x940A)  # str r4, [sp, 40]
    data(2, 0x940B)  # str r4, [sp, 44]
    mov(r11, r4)
    ldr(r1, [r3, 56])
    ldr(r4, [r3, 76])
    mul(r1, r4)
    ldr(r4, [r3, 52])
    add(r1, r1, r4)
    add(r1, r1, r0)
    ldr(r4, [r3, 44])
    ldr(r5, [r3, 40])
    ldr(r7, [r3, 12])
    cmp(r7, 1)
    beq(COPIED)
    # Scores serve every slice.
    add(r5, r5, r0)
    add(r0, r0, r4)
    label(COPY)
    data(2, 0xCD80)  # ldm r5!, {r7}
    data(2, 0xC080)  # stm r0!, {r7}
    sub(r6, 1)
    bne(COPY)
    data(2, 0x9801)  # ldr r0, [sp, 4]
    label(COPIED)
    add(r0, r0, r4)
    label(BATCH)
    data(2, 0x900D)  # str r0, [sp, 52]
    data(2, 0x9A02)  # ldr r2, [sp, 8]
    data(2, 0x9B03)  # ldr r3, [sp, 12]
    data(2, 0x9D05)  # ldr r5, [sp, 20]
    mov(r4, 8)
    cmp(r5, r4)
    bcs(FULL)
    mov(r4, r5)
    label(FULL)
    sub(r5, r5, r4)
    data(2, 0x9505)  # str r5, [sp, 20]
    lsl(r4, r4, 2)
    add(r4, r4, r0)
    mov(r14, r4)
    data(2, 0x9C04)  # ldr r4, [sp, 16]
    mov(r5, 0)
    mov(r12, r5)
    label(TOKEN)
    mov(r6, r8)
    ldr(r5, [r0, 0])
    sub(r5, r6, r5)
    lsr(r5, r2)
    mov(r6, 0)
    data(2, 0x454D)  # cmp r5, r9
    bcs(NOTHING)
    mul(r5, r3)
    lsr(r5, r4)
    data(2, 0xB2EF)  # uxtb r7, r5
    lsl(r7, r7, 1)
    data(2, 0x4457)  # add r7, r10
    ldrh(r6, [r7, 0])
    lsr(r5, r5, 8)
    lsl(r7, r6, 15)
    lsr(r7, r5)
    data(2, 0x44BB)  # add r11, r7
    ldrh(r7, [r1, 0])
    mul(r6, r7)
    lsr(r6, r5)
    data(2, 0x44B4)  # add r12, r6
    label(NOTHING)
    data(2, 0xC040)  # stm r0!, {r6}
    add(r1, 2)
    data(2, 0x4570)  # cmp r0, lr
    bne(TOKEN)
    data(2, 0x910C)  # str r1, [sp, 48]
    # The sum of all weights has up to 46 bits.
    mov(r6, r11)
    mov(r7, 0)
    mov(r11, r7)
    data(2, 0x9C0A)  # ldr r4, [sp, 40]
    data(2, 0x9D0B)  # ldr r5, [sp, 44]
    add(r4, r4, r6)
    adc(r5, r7)
    data(2, 0x940A)  # str r4, [sp, 40]
    data(2, 0x950B)  # str r5, [sp, 44]
    # The smallest exponent that fits the batch, from the last one on.
    mov(r5, r12)
    data(2, 0x9B08)  # ldr r3, [sp, 32]
    label(UP)
    mov(r6, r5)
    lsr(r6, r3)
    cmp(r6, 252)
    bls(DOWN)
    add(r3, 1)
    b(UP)
    label(DOWN)
    cmp(r3, 0)
    beq(FOUND)
    sub(r6, r3, 1)
    mov(r7, r5)
    lsr(r7, r6)
    cmp(r7, 253)
    bcs(FOUND)
    mov(r3, r6)
    b(DOWN)
    label(FOUND)
    data(2, 0x9308)  # str r3, [sp, 32]
    mov(r1, r5)
    mov(r4, 1)
    lsl(r4, r4, 14)
    cmp(r3, 0)
    beq(EXACT)
    mov(r2, 1)
    lsl(r2, r3)
    lsr(r2, r2, 1)
    mov(r1, 0)
    data(2, 0x980D)  # ldr r0, [sp, 52]
    mov(r6, r14)
    sub(r6, r6, r0)
    cmp(r6, 32)
    bne(LAST)
    label(FOUR)
    data(2, 0xC8F0)  # ldm r0!, {r4, r5, r6, r7}
    add(r4, r4, r2)
    lsr(r4, r3)
    add(r1, r1, r4)
    add(r5, r5, r2)
    lsr(r5, r3)
    add(r1, r1, r5)
    add(r6, r6, r2)
    lsr(r6, r3)
    add(r1, r1, r6)
    add(r7, r7, r2)
    lsr(r7, r3)
    add(r1, r1, r7)
    sub(r0, 16)
    data(2, 0xC0F0)  # stm r0!, {r4, r5, r6, r7}
    data(2, 0x4570)  # cmp r0, lr
    bne(FOUR)
    b(FACTOR)
    label(LAST)
    ldr(r4, [r0, 0])
    add(r4, r4, r2)
    lsr(r4, r3)
    add(r1, r1, r4)
    data(2, 0xC010)  # stm r0!, {r4}
    data(2, 0x4570)  # cmp r0, lr
    bne(LAST)
    label(FACTOR)
    mov(r4, r12)
    sub(r5, r3, 7)
    bmi(LEFT)
    lsr(r4, r5)
    b(SHIFTED)
    label(LEFT)
    neg(r5, r5)
    lsl(r4, r5)
    label(SHIFTED)  # reciprocals of the sums from 123 on start at byte 512
    lsl(r5, r1, 1)
    data(2, 0x4455)  # add r5, r10
    mov(r6, 133)
    lsl(r6, r6, 1)
    data(2, 0x5BAD)  # ldrh r5, [r5, r6]
    mul(r4, r5)
    lsr(r4, r4, 14)
    label(EXACT)
    data(2, 0x9D07)  # ldr r5, [sp, 28]
    sub(r5, r5, r3)
    cmp(r5, 31)
    ble(SHIFT)
    mov(r5, 31)
    label(SHIFT)
    lsl(r6, r5, 16)
    orr(r6, r4)
    data(2, 0x9F06)  # ldr r7, [sp, 24]
    data(2, 0xC740)  # stm r7!, {r6}
    data(2, 0x9706)  # str r7, [sp, 24]
    lsl(r1, r1, 7)
    mul(r1, r4)
    lsr(r1, r5)
    data(2, 0x9E09)  # ldr r6, [sp, 36]
    add(r6, r6, r1)
    data(2, 0x9609)  # str r6, [sp, 36]
    data(2, 0x990C)  # ldr r1, [sp, 48]
    data(2, 0x9D05)  # ldr r5, [sp, 20]
    cmp(r5, 0)
    beq(END)
    b(BATCH)
    label(END)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    data(2, 0x9C0A)  # ldr r4, [sp, 40]
    data(2, 0x9D0B)  # ldr r5, [sp, 44]
    lsl(r5, r5, 16)
    lsr(r6, r4, 16)
    orr(r5, r6)
    str(r5, [r3, 92])
    data(2, 0xB2A4)  # uxth r4, r4
    str(r4, [r3, 96])
    data(2, 0x9C09)  # ldr r4, [sp, 36]
    str(r4, [r3, 100])
    data(2, 0xB00E)  # add sp, 56
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def av(r0, r1, r2, r3):
    # r0 codes, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this part
    # sp: a, buffer, column, run, tokens left, those of the run, of the batch, UNITS, sums, mask, columns left
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08B)  # sub sp, 44
    data(2, 0x9300)  # str r3, [sp, 0]
    data(2, 0x9001)  # str r0, [sp, 4]
    data(2, 0x9209)  # str r2, [sp, 36]
    mov(r4, 0)
    data(2, 0x9402)  # str r4, [sp, 8]
    label(COLUMN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    data(2, 0x9D01)  # ldr r5, [sp, 4]
    data(2, 0x9A02)  # ldr r2, [sp, 8]
    ldr(r4, [r3, 64])
    add(r4, r4, r5)
    lsl(r6, r2, 2)
    add(r4, r4, r6)
    data(2, 0x9408)  # str r4, [sp, 32]
    mov(r6, 0)
    mov(r7, 0)
    mov(r8, r6)
    mov(r9, r6)
    mov(r10, r6)
    mov(r11, r6)
    data(2, 0x9605)  # str r6, [sp, 20]
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    ldr(r1, [r3, 16])
    sub(r1, r1, r2)
    data(2, 0x910A)  # str r1, [sp, 40]
    cmp(r1, 4)
    ble(NARROW)
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    label(NARROW)
    ldr(r1, [r3, 44])
    add(r1, r1, r5)
    ldr(r4, [r3, 60])
    add(r4, r4, r5)
    data(2, 0x9407)  # str r4, [sp, 28]
    ldr(r4, [r3, 0])
    data(2, 0x9404)  # str r4, [sp, 16]
    ldr(r4, [r3, 8])
    sub(r4, 8)
    mov(r12, r4)
    mov(r4, r3)
    add(r4, 172)
    data(2, 0x9403)  # str r4, [sp, 12]
    data(2, 0x9A09)  # ldr r2, [sp, 36]
    label(BATCH)
    data(2, 0x9D04)  # ldr r5, [sp, 16]
    mov(r7, 8)
    cmp(r5, r7)
    bcs(FULL)
    mov(r7, r5)
    label(FULL)
    sub(r5, r5, r7)
    data(2, 0x9504)  # str r5, [sp, 16]
    label(PART)  # a batch may span runs
    data(2, 0x9E05)  # ldr r6, [sp, 20]
    cmp(r6, 0)
    bne(INSIDE)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    data(2, 0x9C03)  # ldr r4, [sp, 12]
    ldr(r0, [r3, 76])
    ldr(r5, [r3, 16])
    mul(r0, r5)
    ldr(r5, [r3, 24])
    add(r0, r0, r5)
    data(2, 0x9D02)  # ldr r5, [sp, 8]
    add(r0, r0, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]
    add(r0, r0, r5)
    ldr(r5, [r4, 0])
    add(r0, r0, r5)
    ldr(r6, [r4, 8])
    add(r4, 16)
    data(2, 0x9403)  # str r4, [sp, 12]
    label(INSIDE)
    mov(r5, r7)
    cmp(r6, r5)
    bcs(WHOLE)
    mov(r5, r6)
    label(WHOLE)
    sub(r6, r6, r5)
    data(2, 0x9605)  # str r6, [sp, 20]
    sub(r7, r7, r5)
    data(2, 0x9706)  # str r7, [sp, 24]
    lsl(r5, r5, 2)
    add(r5, r5, r1)
    mov(r14, r5)
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
    data(2, 0x9F06)  # ldr r7, [sp, 24]
    cmp(r7, 0)
    bne(PART)
    data(2, 0x9F07)  # ldr r7, [sp, 28]
    data(2, 0xCF10)  # ldm r7!, {r4}
    data(2, 0x9707)  # str r7, [sp, 28]
    data(2, 0xB2A3)  # uxth r3, r4
    lsr(r4, r4, 16)
    data(2, 0x9F08)  # ldr r7, [sp, 32]
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
    data(2, 0x9A0A)  # ldr r2, [sp, 40]
    cmp(r2, 4)
    ble(FLUSHED)
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
    label(FLUSHED)
    mov(r2, 0)
    mov(r8, r2)
    mov(r9, r2)
    mov(r10, r2)
    mov(r11, r2)
    data(2, 0x9A09)  # ldr r2, [sp, 36]
    data(2, 0x9D04)  # ldr r5, [sp, 16]
    cmp(r5, 0)
    beq(BATCHES)
    b(BATCH)
    label(BATCHES)
    data(2, 0x9C02)  # ldr r4, [sp, 8]
    add(r4, 8)
    data(2, 0x9402)  # str r4, [sp, 8]
    data(2, 0x9D0A)  # ldr r5, [sp, 40]
    cmp(r5, 8)
    ble(END)
    b(COLUMN)
    label(END)
    data(2, 0xB00B)  # add sp, 44
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def emit(r0, r1, r2):
    # r0 sums, r1 result, r4 1 / sum of weights, r5 shift down, r7 up, r8 -CORR, r9 half, lr end of the sums
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    ldr(r3, [r1, 68])
    add(r3, r3, r0)
    ldr(r3, [r3, 12])
    ldr(r4, [r1, 124])
    ldr(r5, [r1, 76])
    mul(r5, r4)
    add(r3, r3, r5)
    ldr(r5, [r1, 64])
    add(r0, r0, r5)
    lsl(r4, r4, 2)
    add(r4, r4, r0)
    mov(r14, r4)
    ldr(r5, [r1, 116])
    mov(r10, r5)
    lsl(r3, r3, 1)
    cmp(r5, 0)
    bne(HALVES)
    lsl(r3, r3, 1)
    label(HALVES)
    add(r2, r2, r3)
    # The sum of weights as 16 bits times 2^r5.
    ldr(r3, [r1, 92])
    ldr(r4, [r1, 96])
    lsl(r4, r4, 16)
    mov(r5, 16)
    label(LOW)
    lsr(r6, r3, 15)
    bne(HIGH)
    add(r4, r4, r4)
    adc(r3, r3)
    sub(r5, 1)
    b(LOW)
    label(HIGH)
    lsr(r6, r3, 16)
    beq(NORMAL)
    lsr(r3, r3, 1)
    add(r5, 1)
    b(HIGH)
    label(NORMAL)
    mov(r6, 1)
    lsl(r6, r6, 30)
    lsl(r3, r3, 15)
    mov(r4, 0)
    mov(r7, 16)
    label(DIVIDE)
    add(r4, r4, r4)
    cmp(r6, r3)
    bcc(SMALLER)
    sub(r6, r6, r3)
    add(r4, 1)
    label(SMALLER)
    lsr(r3, r3, 1)
    sub(r7, 1)
    bne(DIVIDE)
    ldr(r6, [r1, 0])
    add(r5, 3)
    label(BITS)
    sub(r5, 1)
    lsr(r6, r6, 1)
    bne(BITS)
    mov(r7, 0)
    cmp(r5, 0)
    bge(POSITIVE)
    neg(r7, r5)
    mov(r5, 0)
    label(POSITIVE)
    mov(r6, 1)
    lsl(r6, r5)
    lsr(r6, r6, 1)
    mov(r9, r6)
    ldr(r6, [r1, 100])
    neg(r6, r6)
    mov(r8, r6)
    ldr(r6, [r1, 84])
    ldr(r3, [r1, 112])
    sub(r6, r6, r3)
    mov(r1, r2)
    mov(r3, r10)
    cmp(r3, 0)
    beq(FLOATS)
    # r2 last shift down, r6 up, r12 its half, r10 r11 limits
    mov(r2, 64)
    sub(r2, r2, r3)
    sub(r2, r2, r6)
    cmp(r2, 30)
    ble(NEAR)
    mov(r4, 0)
    mov(r2, 1)
    label(NEAR)
    mov(r6, 0)
    mov(r3, 0)
    cmp(r2, 0)
    ble(GROW)
    mov(r3, 1)
    lsl(r3, r2)
    lsr(r3, r3, 1)
    b(READY)
    label(GROW)
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
    lsl(r3, r7)
    data(2, 0x444B)  # add r3, r9
    asr(r3, r5)
    mul(r3, r4)
    data(2, 0x4463)  # add r3, r12
    asr(r3, r2)
    data(2, 0x4553)  # cmp r3, r10
    ble(A)
    mov(r3, r10)
    label(A)
    data(2, 0x455B)  # cmp r3, r11
    bge(B)
    mov(r3, r11)
    label(B)
    lsl(r3, r6)
    data(2, 0x4553)  # cmp r3, r10
    ble(C)
    mov(r3, r10)
    label(C)
    data(2, 0x455B)  # cmp r3, r11
    bge(D)
    mov(r3, r11)
    label(D)
    strh(r3, [r1, 0])
    add(r1, 2)
    data(2, 0x4570)  # cmp r0, lr
    bne(SHORT)
    b(END)
    label(FLOATS)  # r10 exponent, r12 shift up
    add(r6, 150)
    mov(r10, r6)
    mov(r12, r7)
    label(FLOAT)
    data(2, 0xC804)  # ldm r0!, {r2}
    data(2, 0x4442)  # add r2, r8
    mov(r3, r12)
    lsl(r2, r3)
    data(2, 0x444A)  # add r2, r9
    asr(r2, r5)
    mul(r2, r4)
    beq(STORE)
    asr(r3, r2, 31)
    add(r2, r2, r3)
    eor(r2, r3)
    lsl(r6, r3, 31)
    mov(r7, r10)
    label(ABOVE)
    lsr(r3, r2, 24)
    beq(BELOW)
    lsr(r2, r2, 1)
    add(r7, 1)
    b(ABOVE)
    label(BELOW)
    lsr(r3, r2, 23)
    bne(FITS)
    add(r2, r2, r2)
    sub(r7, 1)
    b(BELOW)
    label(FITS)
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
    label(END)
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def scales(r0, r1, r2, r3):
    # sp: a, scales, result, slices left, which, run, runs left
    data(2, 0xB087)  # sub sp, 28
    data(2, 0x9300)  # str r3, [sp, 0]
    data(2, 0x9204)  # str r2, [sp, 16]
    lsl(r4, r2, 2)
    add(r4, r4, r3)
    ldr(r5, [r4, 28])
    add(r5, r5, r0)
    data(2, 0x9501)  # str r5, [sp, 4]
    ldr(r2, [r4, 48])
    add(r2, r2, r0)
    data(2, 0x9202)  # str r2, [sp, 8]
    mov(r2, r5)
    mov(r1, 0)
    ldr(r4, [r3, 12])
    data(2, 0x9403)  # str r4, [sp, 12]
    label(LARGEST)  # r1 largest, r2 scales of the slice, r6 run, r7 runs left
    mov(r6, r3)
    add(r6, 172)
    ldr(r7, [r3, 4])
    label(PART)
    ldr(r0, [r6, 4])
    add(r0, r0, r2)
    ldr(r5, [r6, 8])
    add(r6, 16)
    lsl(r5, r5, 1)
    add(r5, r5, r0)
    label(SCALE)
    ldrh(r4, [r0, 0])
    add(r0, 2)
    cmp(r4, r1)
    bls(LESS)
    mov(r1, r4)
    label(LESS)
    cmp(r0, r5)
    bne(SCALE)
    sub(r7, 1)
    bne(PART)
    ldr(r4, [r3, 36])
    add(r2, r2, r4)
    data(2, 0x9C03)  # ldr r4, [sp, 12]
    sub(r4, 1)
    data(2, 0x9403)  # str r4, [sp, 12]
    bne(LARGEST)
    lsr(r1, r1, 10)
    bne(NORMAL)
    mov(r1, 1)
    label(NORMAL)
    data(2, 0x9C04)  # ldr r4, [sp, 16]
    lsl(r4, r4, 2)
    add(r4, r4, r3)
    str(r1, [r4, 80])
    # (1024 + m) << 21 >> 17 + r1 - exponent
    mov(r7, r1)
    add(r7, 17)
    mov(r6, 1)
    lsl(r6, r6, 31)
    ldr(r4, [r3, 12])
    data(2, 0x9403)  # str r4, [sp, 12]
    label(SLICE)
    data(2, 0x9A02)  # ldr r2, [sp, 8]
    ldr(r4, [r3, 4])
    data(2, 0x9406)  # str r4, [sp, 24]
    mov(r4, r3)
    add(r4, 172)
    data(2, 0x9405)  # str r4, [sp, 20]
    label(RUN)
    data(2, 0x9C05)  # ldr r4, [sp, 20]
    ldr(r0, [r4, 4])
    data(2, 0x9D01)  # ldr r5, [sp, 4]
    add(r0, r0, r5)
    ldr(r5, [r4, 8])
    lsl(r5, r5, 1)
    add(r5, r5, r0)
    mov(r14, r5)
    add(r4, 16)
    data(2, 0x9405)  # str r4, [sp, 20]
    label(TOKEN)
    ldrh(r4, [r0, 0])
    add(r0, 2)
    lsr(r5, r4, 10)
    beq(TINY)
    lsl(r4, r4, 22)
    lsr(r4, r4, 1)
    orr(r4, r6)
    sub(r5, r7, r5)
    label(STORE)
    lsr(r4, r5)
    strh(r4, [r2, 0])
    add(r2, 2)
    data(2, 0x4570)  # cmp r0, lr
    bne(TOKEN)
    data(2, 0x9C06)  # ldr r4, [sp, 24]
    sub(r4, 1)
    data(2, 0x9406)  # str r4, [sp, 24]
    bne(RUN)
    data(2, 0x9C01)  # ldr r4, [sp, 4]
    ldr(r5, [r3, 36])
    add(r4, r4, r5)
    data(2, 0x9401)  # str r4, [sp, 4]
    data(2, 0x9C02)  # ldr r4, [sp, 8]
    ldr(r5, [r3, 56])
    add(r4, r4, r5)
    data(2, 0x9402)  # str r4, [sp, 8]
    data(2, 0x9C03)  # ldr r4, [sp, 12]
    sub(r4, 1)
    data(2, 0x9403)  # str r4, [sp, 12]
    bne(SLICE)
    b(END)
    label(TINY)
    lsl(r4, r4, 4)
    mov(r5, r7)
    sub(r5, 18)
    b(STORE)
    label(END)
    data(2, 0xB007)  # add sp, 28
    mov(r0, 0)


@micropython.asm_thumb
def encode(r0, r1, r2, r3):
    # r0 values, r1 codes, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift or 0 for float32, lr end
    # sp: e, buffer, v, shift, codes of the head, scale, slice of the head, values left, vector, end of
    # the group, entry of the table, bytes of padding
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08C)  # sub sp, 48
    data(2, 0x9300)  # str r3, [sp, 0]
    data(2, 0x9001)  # str r0, [sp, 4]
    data(2, 0x9202)  # str r2, [sp, 8]
    mov(r5, 0)
    data(2, 0x9508)  # str r5, [sp, 32]
    ldr(r4, [r3, 0])
    mov(r6, 12)
    mul(r4, r6)
    add(r4, r4, r3)
    add(r4, 72)
    data(2, 0x940A)  # str r4, [sp, 40]
    label(VECTOR)
    data(2, 0x9801)  # ldr r0, [sp, 4]
    ldr(r6, [r4, 0])
    add(r0, r0, r6)
    ldr(r6, [r3, 48])
    mul(r6, r5)
    add(r0, r0, r6)
    lsl(r5, r5, 2)
    add(r5, r5, r4)
    ldr(r5, [r5, 4])
    data(2, 0x9503)  # str r5, [sp, 12]
    ldr(r6, [r3, 8])
    lsl(r6, r6, 1)
    cmp(r5, 0)
    bne(HALVES)
    lsl(r6, r6, 1)
    label(HALVES)
    add(r1, r1, r6)
    ldr(r5, [r3, 4])
    ldr(r6, [r3, 40])
    mul(r6, r5)
    add(r6, r6, r0)
    data(2, 0x9604)  # str r6, [sp, 16]
    ldr(r6, [r3, 44])
    add(r6, r6, r0)
    lsl(r5, r5, 1)
    add(r6, r6, r5)
    data(2, 0x9605)  # str r6, [sp, 20]
    mov(r5, 0)
    data(2, 0x9506)  # str r5, [sp, 24]
    ldr(r5, [r3, 12])
    data(2, 0x9507)  # str r5, [sp, 28]
    mov(r0, r1)
    label(GROUP)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    ldr(r2, [r3, 16])
    data(2, 0x9F03)  # ldr r7, [sp, 12]
    lsl(r2, r2, 1)
    cmp(r7, 0)
    bne(SIZED)
    lsl(r2, r2, 1)
    label(SIZED)
    add(r2, r2, r0)
    data(2, 0x9209)  # str r2, [sp, 36]
    mov(r1, r0)
    mov(r4, 0)
    # r4 largest magnitude, as 24 bits; r5 its exponent
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
    ble(LESS)
    mov(r4, r5)
    label(LESS)
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
    lsr(r5, r5, 1)
    cmp(r5, r4)
    bls(SMALL)
    mov(r4, r5)
    label(SMALL)
    cmp(r0, r2)
    bne(FLOATS)
    lsr(r5, r4, 23)
    beq(NOUGHT)
    lsl(r4, r4, 9)
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
    label(LARGEST)  # r4 = t = (r4 + 126) // 127, as 128 a + b = 127 a + (a + b)
    add(r4, 126)
    mov(r6, 0)
    label(FOLD)
    lsr(r7, r4, 7)
    beq(FOLDED)
    add(r6, r6, r7)
    lsl(r4, r4, 25)
    lsr(r4, r4, 25)
    add(r4, r4, r7)
    b(FOLD)
    label(FOLDED)
    cmp(r4, 127)
    bne(QUOTIENT)
    add(r6, 1)
    label(QUOTIENT)
    mov(r2, 6)
    mov(r4, r6)
    add(r4, 63)
    lsr(r4, r4, 6)
    lsr(r7, r4, 11)
    beq(ELEVEN)
    mov(r2, 7)
    mov(r4, r6)
    add(r4, 127)
    lsr(r4, r4, 7)
    label(ELEVEN)
    add(r5, r5, r2)
    cmp(r5, 5)
    ble(STORABLE)
    data(2, 0x9808)  # ldr r0, [sp, 32]
    mvn(r0, r0)
    b(REFUSE)
    label(STORABLE)
    mov(r7, 24)
    add(r7, r7, r5)
    bmi(TINY)
    # se + 25 in the exponent field, where sm adds its 1024
    lsl(r6, r7, 10)
    add(r6, r6, r4)
    b(SCALED)
    label(TINY)
    sub(r2, r2, r7)
    mov(r4, 1)
    cmp(r2, 30)
    bgt(LEAST)
    lsl(r4, r2)
    sub(r4, 1)
    add(r4, r4, r6)
    lsr(r4, r2)
    label(LEAST)
    mov(r6, r4)
    mov(r5, 24)
    neg(r5, r5)
    label(SCALED)  # r4 sm, r5 se, r6 float16
    data(2, 0x9F05)  # ldr r7, [sp, 20]
    strh(r6, [r7, 0])
    ldr(r6, [r3, 36])
    add(r7, r7, r6)
    data(2, 0x9705)  # str r7, [sp, 20]
    mov(r10, r4)
    mov(r0, r1)
    # 2^23 // 2 sm, bit by bit
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
    bcc(SMALLER)
    sub(r6, r6, r3)
    add(r2, 1)
    label(SMALLER)
    sub(r7, 1)
    bne(DIVIDE)
    data(2, 0x9F03)  # ldr r7, [sp, 12]
    mov(r11, r7)
    cmp(r7, 0)
    beq(BITS)
    # int16: left r8, right r9
    mov(r6, 65)
    sub(r6, r6, r7)
    sub(r6, r6, r5)
    mov(r7, 0)
    cmp(r6, 0)
    bge(LEFT)
    neg(r7, r6)
    mov(r6, 0)
    label(LEFT)
    mov(r8, r6)
    mov(r9, r7)
    b(SHIFTS)
    label(BITS)  # float32: the hidden bit, and right by r9 - exponent
    mov(r6, 1)
    lsl(r6, r6, 31)
    mov(r8, r6)
    mov(r6, 157)
    add(r6, r6, r5)
    mov(r9, r6)
    label(SHIFTS)
    label(PIECE)
    data(2, 0x9F00)  # ldr r7, [sp, 0]
    data(2, 0x9D06)  # ldr r5, [sp, 24]
    ldr(r6, [r7, 24])
    mov(r1, r6)
    mul(r1, r5)
    data(2, 0x9C04)  # ldr r4, [sp, 16]
    add(r1, r1, r4)
    ldr(r4, [r7, 20])
    sub(r6, r6, r4)
    data(2, 0x960B)  # str r6, [sp, 44]
    mov(r6, r11)
    lsl(r4, r4, 1)
    cmp(r6, 0)
    bne(COUNTED)
    lsl(r4, r4, 1)
    label(COUNTED)
    add(r4, r4, r0)
    mov(r14, r4)
    add(r5, 1)
    ldr(r4, [r7, 28])
    cmp(r5, r4)
    bne(SAME)
    mov(r5, 0)
    data(2, 0x9C04)  # ldr r4, [sp, 16]
    ldr(r6, [r7, 32])
    add(r4, r4, r6)
    data(2, 0x9404)  # str r4, [sp, 16]
    label(SAME)
    data(2, 0x9506)  # str r5, [sp, 24]
    # floor((2 |x| + s) / 2 s); the reciprocal may fall one short, never over
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
    bcc(A)
    add(r6, 1)
    label(A)
    eor(r6, r7)
    sub(r6, r6, r7)
    add(r6, 128)
    strb(r6, [r1, 0])
    add(r1, 1)
    data(2, 0x4570)  # cmp r0, lr
    bne(WHOLE)
    b(PIECES)
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
    bcc(B)
    add(r6, 1)
    label(B)
    eor(r6, r7)
    sub(r6, r6, r7)
    add(r6, 128)
    strb(r6, [r1, 0])
    add(r1, 1)
    data(2, 0x4570)  # cmp r0, lr
    bne(REAL)
    label(PIECES)
    mov(r6, 128)
    data(2, 0x9D0B)  # ldr r5, [sp, 44]
    label(PAD)
    cmp(r5, 0)
    beq(PADDED)
    strb(r6, [r1, 0])
    add(r1, 1)
    sub(r5, 1)
    b(PAD)
    label(PADDED)
    data(2, 0x9C09)  # ldr r4, [sp, 36]
    cmp(r0, r4)
    bne(PIECE)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    ldr(r4, [r3, 16])
    data(2, 0x9D07)  # ldr r5, [sp, 28]
    sub(r5, r5, r4)
    data(2, 0x9507)  # str r5, [sp, 28]
    beq(VECTORS)
    b(GROUP)
    label(VECTORS)
    data(2, 0x9902)  # ldr r1, [sp, 8]
    data(2, 0x9C0A)  # ldr r4, [sp, 40]
    data(2, 0x9D08)  # ldr r5, [sp, 32]
    add(r5, 1)
    data(2, 0x9508)  # str r5, [sp, 32]
    cmp(r5, 2)
    beq(STORED)
    b(VECTOR)
    label(STORED)
    mov(r0, 0)
    label(REFUSE)
    data(2, 0xB00C)  # add sp, 48
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)


@micropython.asm_thumb
def query(r0, r1, r2, r3):
    # r0 values, r1 words, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift (0: float32), lr end
    # sp: a, record, q, qs, heads left, sets left, largest sum of magnitudes, sum, constants, element, words
    # of the next slice, constant, slices left, buffer
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08E)  # sub sp, 56
    data(2, 0x9300)  # str r3, [sp, 0]
    data(2, 0x900D)  # str r0, [sp, 52]
    mov(r7, r3)
    add(r7, 100)
    ldr(r4, [r7, 68])
    add(r4, r4, r0)
    data(2, 0x9401)  # str r4, [sp, 4]
    # Both sets are read from the same element on.
    ldr(r4, [r3, 120])
    data(2, 0x9409)  # str r4, [sp, 36]
    lsl(r4, r4, 1)
    ldr(r5, [r7, 40])
    cmp(r5, 0)
    bne(HALVES)
    lsl(r4, r4, 1)
    label(HALVES)
    add(r1, r1, r4)
    data(2, 0x9102)  # str r1, [sp, 8]
    add(r2, r2, r4)
    data(2, 0x9203)  # str r2, [sp, 12]
    ldr(r4, [r7, 48])
    data(2, 0x9404)  # str r4, [sp, 16]
    label(HEAD)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    add(r3, 100)
    ldr(r7, [r3, 40])
    ldr(r6, [r3, 36])
    data(2, 0x9605)  # str r6, [sp, 20]
    mov(r4, 0)
    label(SET)  # r4 largest magnitude, as 24 bits; r5 its exponent
    data(2, 0x9E05)  # ldr r6, [sp, 20]
    sub(r6, 1)
    data(2, 0x9605)  # str r6, [sp, 20]
    data(2, 0x9802)  # ldr r0, [sp, 8]
    beq(OWN)
    data(2, 0x9803)  # ldr r0, [sp, 12]
    label(OWN)
    ldr(r2, [r3, 28])
    lsl(r2, r2, 1)
    cmp(r7, 0)
    bne(SIZED)
    lsl(r2, r2, 1)
    label(SIZED)
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
    ble(LESS)
    mov(r4, r5)
    label(LESS)
    cmp(r0, r2)
    bne(SHORT)
    b(SCANNED)
    label(FLOATS)
    data(2, 0xC820)  # ldm r0!, {r5}
    lsl(r5, r5, 1)
    lsr(r5, r5, 1)
    cmp(r5, r4)
    bls(SMALL)
    mov(r4, r5)
    label(SMALL)
    cmp(r0, r2)
    bne(FLOATS)
    label(SCANNED)
    data(2, 0x9E05)  # ldr r6, [sp, 20]
    cmp(r6, 0)
    bne(SET)
    cmp(r7, 0)
    beq(FIELDS)
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
    label(FIELDS)
    lsr(r5, r4, 23)
    beq(NOUGHT)
    cmp(r5, 255)
    bne(FINITE)
    mov(r0, 0)
    mvn(r0, r0)
    b(REFUSE)
    label(FINITE)
    lsl(r4, r4, 9)
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
    label(SCALED)  # r4 sm, r5 se
    data(2, 0x9901)  # ldr r1, [sp, 4]
    str(r4, [r1, 0])
    mov(r6, 1)
    lsl(r6, r6, 11)
    add(r6, r6, r5)
    str(r6, [r1, 4])
    mov(r10, r4)
    # 2^23 // 2 sm, bit by bit; sm has 11 bits
    lsl(r3, r4, 1)
    mov(r2, 0)
    mov(r6, 1)
    lsl(r6, r6, 10)
    mov(r4, 13)
    label(DIVIDE)
    add(r2, r2, r2)
    add(r6, r6, r6)
    cmp(r6, r3)
    bcc(SMALLER)
    sub(r6, r6, r3)
    add(r2, 1)
    label(SMALLER)
    sub(r4, 1)
    bne(DIVIDE)
    mov(r11, r7)
    cmp(r7, 0)
    beq(BITS)
    # int16: left r8, right r9
    mov(r6, 65)
    sub(r6, r6, r7)
    sub(r6, r6, r5)
    mov(r7, 0)
    cmp(r6, 0)
    bge(LEFT)
    neg(r7, r6)
    mov(r6, 0)
    label(LEFT)
    mov(r8, r6)
    mov(r9, r7)
    b(SHIFTS)
    label(BITS)  # float32: the hidden bit, and right by r9 - exponent
    mov(r6, 1)
    lsl(r6, r6, 31)
    mov(r8, r6)
    mov(r6, 157)
    add(r6, r6, r5)
    mov(r9, r6)
    label(SHIFTS)
    mov(r4, 0)
    data(2, 0x9406)  # str r4, [sp, 24]
    data(2, 0x9F00)  # ldr r7, [sp, 0]
    add(r7, 100)
    ldr(r4, [r7, 36])
    data(2, 0x9405)  # str r4, [sp, 20]
    label(CODES)
    data(2, 0x9F00)  # ldr r7, [sp, 0]
    ldr(r5, [r7, 12])
    data(2, 0x950C)  # str r5, [sp, 48]
    lsl(r5, r5, 2)
    data(2, 0x9901)  # ldr r1, [sp, 4]
    add(r1, 16)
    mov(r4, 0)
    data(2, 0x9407)  # str r4, [sp, 28]
    add(r7, 100)
    data(2, 0x9802)  # ldr r0, [sp, 8]
    data(2, 0x9C05)  # ldr r4, [sp, 20]
    sub(r4, 1)
    data(2, 0x9405)  # str r4, [sp, 20]
    beq(FIRST)
    data(2, 0x9803)  # ldr r0, [sp, 12]
    ldr(r4, [r7, 52])
    add(r1, r1, r4)
    label(FIRST)
    data(2, 0x9108)  # str r1, [sp, 32]
    add(r1, r1, r5)
    label(PIECE)  # r12 column
    data(2, 0x9F00)  # ldr r7, [sp, 0]
    ldr(r4, [r7, 16])
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
    data(2, 0x960A)  # str r6, [sp, 40]
    data(2, 0x950B)  # str r5, [sp, 44]
    mov(r12, r5)
    ldr(r4, [r7, 124])
    lsl(r4, r4, 1)
    mov(r6, r11)
    cmp(r6, 0)
    bne(COUNTED)
    lsl(r4, r4, 1)
    label(COUNTED)
    add(r4, r4, r0)
    mov(r14, r4)
    label(VALUE)
    mov(r4, r11)
    cmp(r4, 0)
    beq(REAL)
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
    b(MAGNITUDE)
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
    label(MAGNITUDE)  # floor((2 |x| + s) / 2 s); the reciprocal may fall one short, never over
    data(2, 0x4455)  # add r5, r10
    mov(r6, r5)
    mul(r6, r2)
    lsr(r6, r6, 23)
    mov(r4, r6)
    mul(r4, r3)
    sub(r5, r5, r4)
    cmp(r5, r3)
    bcc(EXACT)
    add(r6, 1)
    label(EXACT)
    data(2, 0x9C07)  # ldr r4, [sp, 28]
    add(r4, r4, r6)
    data(2, 0x9407)  # str r4, [sp, 28]
    eor(r6, r7)
    sub(r6, r6, r7)
    data(2, 0x9C0B)  # ldr r4, [sp, 44]
    lsl(r5, r6, 7)
    sub(r4, r4, r5)
    mov(r7, r12)
    lsr(r5, r7, 1)
    beq(UPPER)
    # Columns 2 and 3: the lower half, and the borrow of a negative code
    lsr(r5, r6, 31)
    add(r4, r4, r5)
    b(PACK)
    label(UPPER)
    lsl(r6, r6, 16)
    label(PACK)
    data(2, 0x940B)  # str r4, [sp, 44]
    mov(r5, 1)
    and_(r5, r7)
    lsl(r5, r5, 2)
    data(2, 0x594C)  # ldr r4, [r1, r5]
    add(r4, r4, r6)
    data(2, 0x514C)  # str r4, [r1, r5]
    add(r7, 1)
    cmp(r7, 4)
    bne(INSIDE)
    mov(r7, 0)
    add(r1, 8)
    label(INSIDE)
    mov(r12, r7)
    data(2, 0x4570)  # cmp r0, lr
    bne(VALUE)
    data(2, 0x990A)  # ldr r1, [sp, 40]
    data(2, 0x9E08)  # ldr r6, [sp, 32]
    data(2, 0x9D0B)  # ldr r5, [sp, 44]
    data(2, 0xC620)  # stm r6!, {r5}
    data(2, 0x9608)  # str r6, [sp, 32]
    data(2, 0x9C0C)  # ldr r4, [sp, 48]
    sub(r4, 1)
    data(2, 0x940C)  # str r4, [sp, 48]
    beq(PIECES)
    b(PIECE)
    label(PIECES)
    data(2, 0x9C06)  # ldr r4, [sp, 24]
    data(2, 0x9D07)  # ldr r5, [sp, 28]
    cmp(r5, r4)
    ble(FEWER)
    data(2, 0x9506)  # str r5, [sp, 24]
    label(FEWER)
    data(2, 0x9C05)  # ldr r4, [sp, 20]
    cmp(r4, 0)
    beq(CODED)
    b(CODES)
    label(CODED)  # the shift that keeps all sums of dots within 15 bits
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    ldr(r5, [r3, 12])
    data(2, 0x9C06)  # ldr r4, [sp, 24]
    lsl(r6, r4, 7)
    sub(r4, r6, r4)
    mov(r2, 1)
    lsl(r2, r2, 15)
    mov(r7, 0)
    sub(r7, 1)
    label(DOTS)
    add(r7, 1)
    mov(r6, r4)
    lsr(r6, r7)
    add(r6, r6, r5)
    cmp(r6, r2)
    bgt(DOTS)
    data(2, 0x9901)  # ldr r1, [sp, 4]
    str(r7, [r1, 8])
    data(2, 0x9C09)  # ldr r4, [sp, 36]
    str(r4, [r1, 12])
    add(r3, 100)
    ldr(r5, [r3, 28])
    add(r4, r4, r5)
    data(2, 0x9409)  # str r4, [sp, 36]
    ldr(r6, [r3, 32])
    add(r1, r1, r6)
    data(2, 0x9101)  # str r1, [sp, 4]
    lsl(r5, r5, 1)
    ldr(r6, [r3, 40])
    cmp(r6, 0)
    bne(MOVED)
    lsl(r5, r5, 1)
    label(MOVED)
    data(2, 0x9C02)  # ldr r4, [sp, 8]
    add(r4, r4, r5)
    data(2, 0x9402)  # str r4, [sp, 8]
    data(2, 0x9C03)  # ldr r4, [sp, 12]
    add(r4, r4, r5)
    data(2, 0x9403)  # str r4, [sp, 12]
    data(2, 0x9C04)  # ldr r4, [sp, 16]
    sub(r4, 1)
    data(2, 0x9404)  # str r4, [sp, 16]
    beq(HEADS)
    b(HEAD)
    label(HEADS)
    mov(r0, 0)
    label(REFUSE)
    data(2, 0xB00E)  # add sp, 56
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
