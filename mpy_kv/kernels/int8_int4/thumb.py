"""encode and av of int8-int4 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py."""

import micropython


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
    mov(r2, 240)
    lsl(r4, r2, 16)
    orr(r2, r4)
    data(2, 0x9209)  # str r2, [sp, 36]
    mov(r4, 0)
    data(2, 0x9402)  # str r4, [sp, 8]
    label(COLUMN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    data(2, 0x9D01)  # ldr r5, [sp, 4]
    data(2, 0x9A02)  # ldr r2, [sp, 8]
    ldr(r4, [r3, 64])
    add(r4, r4, r5)
    lsl(r6, r2, 3)
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
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    mov(r7, r3)
    add(r7, 128)
    ldr(r1, [r7, 32])
    sub(r1, r1, r2)
    data(2, 0x910A)  # str r1, [sp, 40]
    ldr(r4, [r7, 28])
    sub(r4, 4)
    mov(r12, r4)
    ldr(r4, [r7, 36])
    add(r4, r4, r3)
    data(2, 0x9403)  # str r4, [sp, 12]
    ldr(r1, [r3, 44])
    add(r1, r1, r5)
    ldr(r4, [r3, 60])
    add(r4, r4, r5)
    data(2, 0x9407)  # str r4, [sp, 28]
    ldr(r4, [r3, 0])
    data(2, 0x9404)  # str r4, [sp, 16]
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
    mov(r5, r3)
    add(r5, 128)
    ldr(r5, [r5, 32])
    mul(r0, r5)
    ldr(r5, [r3, 24])
    add(r0, r0, r5)
    data(2, 0x9D02)  # ldr r5, [sp, 8]
    add(r0, r0, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]
    add(r0, r0, r5)
    ldr(r5, [r4, 0])
    add(r0, r0, r5)
    ldr(r6, [r4, 4])
    add(r4, 8)
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
    data(2, 0xC810)  # ldm r0!, {r4}
    data(2, 0x4460)  # add r0, r12
    data(2, 0xC908)  # ldm r1!, {r3}
    lsl(r5, r4, 4)
    and_(r5, r2)
    mul(r5, r3)
    data(2, 0x44A8)  # add r8, r5
    mov(r5, r4)
    and_(r5, r2)
    mul(r5, r3)
    data(2, 0x44A9)  # add r9, r5
    lsr(r5, r4, 4)
    and_(r5, r2)
    mul(r5, r3)
    data(2, 0x44AA)  # add r10, r5
    lsr(r4, r4, 8)
    and_(r4, r2)
    mul(r4, r3)
    data(2, 0x44A3)  # add r11, r4
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
    ldr(r2, [r7, 16])
    add(r2, r2, r5)
    str(r2, [r7, 16])
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
    ldr(r2, [r7, 20])
    add(r2, r2, r5)
    str(r2, [r7, 20])
    mov(r5, r10)
    data(2, 0xB2AE)  # uxth r6, r5
    lsr(r5, r5, 16)
    mul(r6, r3)
    mul(r5, r3)
    lsr(r6, r4)
    lsr(r5, r4)
    ldr(r2, [r7, 8])
    add(r2, r2, r6)
    str(r2, [r7, 8])
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
    ldr(r2, [r7, 12])
    add(r2, r2, r6)
    str(r2, [r7, 12])
    ldr(r2, [r7, 28])
    add(r2, r2, r5)
    str(r2, [r7, 28])
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
    add(r4, 4)
    data(2, 0x9402)  # str r4, [sp, 8]
    data(2, 0x9D0A)  # ldr r5, [sp, 40]
    cmp(r5, 4)
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
def encode(r0, r1, r2, r3):
    # r0 values, r1 codes, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift or 0 for float32,
    # lr end, r12 what is added to a code; 0: it goes above the one before
    # sp: e, buffer, v, shift, codes of the head, scale, slice of the head, values left, vector, end of
    # the group, entry of the table, end of the slice
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
    ldr(r6, [r3, 40])
    ldr(r7, [r3, 44])
    data(2, 0x9D08)  # ldr r5, [sp, 32]
    cmp(r5, 0)
    beq(PLACED)
    ldr(r6, [r3, 64])
    ldr(r7, [r3, 68])
    label(PLACED)
    ldr(r5, [r3, 4])
    mul(r6, r5)
    add(r6, r6, r0)
    data(2, 0x9604)  # str r6, [sp, 16]
    add(r6, r7, r0)
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
    label(LARGEST)  # r6 t = (r4 + most - 1) // most, as 128 a + b = 127 a + (a + b); most r0, its bits r2
    mov(r0, 127)
    mov(r2, 7)
    data(2, 0x9F08)  # ldr r7, [sp, 32]
    cmp(r7, 0)
    beq(EIGHT)
    mov(r0, 7)
    mov(r2, 3)
    label(EIGHT)
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
    bne(QUOTIENT)
    add(r6, 1)
    label(QUOTIENT)
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
    ldr(r6, [r7, 24])
    ldr(r1, [r7, 32])
    mov(r5, 128)
    data(2, 0x9C08)  # ldr r4, [sp, 32]
    cmp(r4, 0)
    beq(BYTES)
    ldr(r6, [r7, 56])
    ldr(r1, [r7, 60])
    mov(r5, 136)
    label(BYTES)
    mov(r12, r5)
    data(2, 0x9D06)  # ldr r5, [sp, 24]
    mov(r4, r6)
    mul(r4, r5)
    add(r5, 1)
    data(2, 0x9506)  # str r5, [sp, 24]
    data(2, 0x9D04)  # ldr r5, [sp, 16]
    add(r4, r4, r5)
    add(r6, r6, r4)
    data(2, 0x960B)  # str r6, [sp, 44]
    add(r5, r5, r1)
    mov(r1, r4)
    data(2, 0x9E06)  # ldr r6, [sp, 24]
    ldr(r4, [r7, 28])
    cmp(r6, r4)
    bne(SAME)
    mov(r6, 0)
    data(2, 0x9606)  # str r6, [sp, 24]
    data(2, 0x9504)  # str r5, [sp, 16]
    label(SAME)
    ldr(r4, [r7, 20])
    mov(r6, r11)
    lsl(r4, r4, 1)
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
    eor(r6, r7)
    sub(r6, r6, r7)
    # A code of V is first put in the low nibble with 8 above it, to which the next one is added.
    mov(r4, r12)
    cmp(r4, 0)
    beq(ABOVE)
    add(r6, r6, r4)
    strb(r6, [r1, 0])
    cmp(r4, 128)
    beq(NEXT)
    mov(r4, 0)
    mov(r12, r4)
    b(STORED)
    label(ABOVE)
    ldrb(r4, [r1, 0])
    lsl(r6, r6, 4)
    add(r6, r6, r4)
    strb(r6, [r1, 0])
    mov(r4, 136)
    mov(r12, r4)
    label(NEXT)
    add(r1, 1)
    label(STORED)
    data(2, 0x4570)  # cmp r0, lr
    bne(VALUE)
    mov(r6, r12)
    cmp(r6, 0)
    bne(EVEN)
    add(r1, 1)
    mov(r6, 136)
    label(EVEN)
    data(2, 0x9D0B)  # ldr r5, [sp, 44]
    label(PAD)
    cmp(r1, r5)
    beq(PADDED)
    strb(r6, [r1, 0])
    add(r1, 1)
    b(PAD)
    label(PADDED)
    data(2, 0x9C09)  # ldr r4, [sp, 36]
    cmp(r0, r4)
    beq(PIECES)
    b(PIECE)
    label(PIECES)
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
    beq(BOTH)
    b(VECTOR)
    label(BOTH)
    mov(r0, 0)
    label(REFUSE)
    data(2, 0xB00C)  # add sp, 48
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
