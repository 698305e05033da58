"""qk4, center, av4 of int4 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py."""

import micropython


@micropython.asm_thumb
def qk4(r0, r1, r2, r3):
    # Token: r0 nibbles, r1 product, r2 mask, r3 r4 r5 r8 factors, r6 word, r7 sum, r9 dot, r10 shift,
    # r11 what is added, r12 gap, lr end of the block's dots
    # sp: a, buffer, spread, row, tokens left, dots, sum of the minima, cut, tokens of the block, bytes of a
    # slice, column, ranges and then nibbles, factors, mask
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08E)  # sub sp, 56
    data(2, 0x9300)  # str r3, [sp, 0]
    data(2, 0x9001)  # str r0, [sp, 4]
    mov(r2, 15)
    lsl(r4, r2, 16)
    orr(r2, r4)
    data(2, 0x920D)  # str r2, [sp, 52]
    mov(r7, r3)
    add(r7, 220)
    ldr(r4, [r7, 16])
    data(2, 0x9409)  # str r4, [sp, 36]
    ldr(r4, [r7, 4])
    data(2, 0x9403)  # str r4, [sp, 12]
    ldr(r4, [r7, 12])
    sub(r4, 4)
    mov(r12, r4)
    ldr(r5, [r7, 0])
    data(2, 0x9504)  # str r5, [sp, 16]
    ldr(r4, [r3, 0])
    sub(r4, r4, r5)
    lsl(r4, r4, 2)
    ldr(r5, [r3, 44])
    add(r4, r4, r5)
    add(r4, r4, r0)
    data(2, 0x9405)  # str r4, [sp, 20]
    ldr(r6, [r7, 64])
    add(r6, r6, r0)
    data(2, 0x9602)  # str r6, [sp, 8]
    ldr(r4, [r3, 16])
    mov(r5, r4)
    add(r5, 7)
    lsr(r5, r5, 3)
    lsl(r5, r5, 4)
    ldr(r2, [r3, 76])
    mul(r5, r2)
    add(r5, r5, r0)
    ldr(r2, [r3, 68])
    add(r5, r5, r2)
    add(r5, 16)
    ldr(r2, [r3, 12])
    lsl(r2, r2, 2)
    add(r5, r5, r2)
    mov(r7, r4)
    label(SPREAD)  # the query's codes, a word each
    data(2, 0xCD03)  # ldm r5!, {r0, r1}
    data(2, 0xB202)  # sxth r2, r0
    data(2, 0xB20B)  # sxth r3, r1
    sub(r0, r0, r2)
    asr(r0, r0, 16)
    sub(r1, r1, r3)
    asr(r1, r1, 16)
    data(2, 0xC60F)  # stm r6!, {r0, r1, r2, r3}
    sub(r4, 4)
    bne(SPREAD)
    lsl(r7, r7, 29)
    bpl(BLOCK)
    mov(r0, 0)
    mov(r1, 0)
    mov(r2, 0)
    mov(r3, 0)
    data(2, 0xC60F)  # stm r6!, {r0, r1, r2, r3}
    label(BLOCK)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    mov(r7, r3)
    add(r7, 220)
    data(2, 0x9C03)  # ldr r4, [sp, 12]
    lsr(r4, r4, 4)
    ldr(r5, [r7, 44])
    mul(r4, r5)
    ldr(r5, [r7, 24])
    add(r4, r4, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]
    add(r4, r4, r5)
    ldr(r6, [r3, 124])
    ldr(r5, [r3, 76])
    mul(r5, r6)
    lsl(r5, r5, 2)
    add(r4, r4, r5)
    data(2, 0x940B)  # str r4, [sp, 44]
    data(2, 0x9802)  # ldr r0, [sp, 8]
    mov(r1, 0)
    mov(r2, 0)
    label(CHANNEL)  # r1 the sum of minima times codes, r2 the largest step times code
    data(2, 0xC808)  # ldm r0!, {r3}
    data(2, 0xCC20)  # ldm r4!, {r5}
    asr(r7, r5, 16)
    mul(r7, r3)
    add(r1, r1, r7)
    data(2, 0xB2AD)  # uxth r5, r5
    mul(r5, r3)
    asr(r7, r5, 31)
    add(r5, r5, r7)
    eor(r5, r7)
    cmp(r5, r2)
    ble(LESS)
    mov(r2, r5)
    label(LESS)
    sub(r6, 1)
    bne(CHANNEL)
    mov(r6, 255)
    lsl(r6, r6, 2)
    add(r6, 2)
    mov(r3, 0)
    label(CUT)
    mov(r5, r2)
    lsr(r5, r3)
    cmp(r5, r6)
    ble(FITS)
    add(r3, 1)
    b(CUT)
    label(FITS)
    data(2, 0x9307)  # str r3, [sp, 28]
    lsl(r1, r1, 4)
    data(2, 0x9106)  # str r1, [sp, 24]
    mov(r2, 0)
    mov(r9, r2)
    mov(r2, 1)
    lsl(r2, r3)
    lsr(r2, r2, 1)
    data(2, 0x9802)  # ldr r0, [sp, 8]
    data(2, 0x9C0B)  # ldr r4, [sp, 44]
    data(2, 0x9F09)  # ldr r7, [sp, 36]
    lsl(r6, r7, 3)
    add(r6, r6, r0)
    data(2, 0x960C)  # str r6, [sp, 48]
    mov(r8, r7)
    label(PAIR)  # channels c and c + 4 to one factor; r9 what is lost
    ldr(r5, [r0, 16])
    ldr(r1, [r4, 16])
    data(2, 0xB289)  # uxth r1, r1
    mul(r5, r1)
    data(2, 0x44A9)  # add r9, r5
    add(r5, r5, r2)
    asr(r5, r3)
    mov(r1, r5)
    lsl(r1, r3)
    mov(r7, r9)
    sub(r7, r7, r1)
    mov(r9, r7)
    data(2, 0xC802)  # ldm r0!, {r1}
    data(2, 0xCC80)  # ldm r4!, {r7}
    data(2, 0xB2BF)  # uxth r7, r7
    mul(r1, r7)
    data(2, 0x4489)  # add r9, r1
    add(r1, r1, r2)
    asr(r1, r3)
    mov(r2, r1)
    lsl(r2, r3)
    mov(r7, r9)
    sub(r7, r7, r2)
    mov(r9, r7)
    mov(r2, 1)
    lsl(r2, r3)
    lsr(r2, r2, 1)
    lsl(r1, r1, 16)
    add(r5, r5, r1)
    data(2, 0xC620)  # stm r6!, {r5}
    mov(r7, r8)
    sub(r7, 1)
    mov(r8, r7)
    lsl(r1, r7, 30)
    bne(PAIR)
    add(r0, 16)
    add(r4, 16)
    cmp(r7, 0)
    bne(PAIR)
    mov(r5, r9)
    mov(r1, 15)
    mul(r5, r1)
    asr(r5, r5, 1)
    data(2, 0x9906)  # ldr r1, [sp, 24]
    add(r1, r1, r5)
    asr(r1, r3)
    data(2, 0x9106)  # str r1, [sp, 24]
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    mov(r7, r3)
    add(r7, 220)
    data(2, 0x9C03)  # ldr r4, [sp, 12]
    mov(r5, 15)
    and_(r5, r4)
    mov(r6, 16)
    sub(r6, r6, r5)
    data(2, 0x9D04)  # ldr r5, [sp, 16]
    cmp(r5, r6)
    bcs(ENOUGH)
    mov(r6, r5)
    label(ENOUGH)
    sub(r5, r5, r6)
    data(2, 0x9504)  # str r5, [sp, 16]
    data(2, 0x9608)  # str r6, [sp, 32]
    ldr(r5, [r7, 12])
    mul(r4, r5)
    ldr(r5, [r7, 20])
    add(r4, r4, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]
    add(r4, r4, r5)
    ldr(r5, [r3, 76])
    data(2, 0x9E09)  # ldr r6, [sp, 36]
    mul(r5, r6)
    add(r4, r4, r5)
    data(2, 0x940B)  # str r4, [sp, 44]
    mov(r4, 0)
    data(2, 0x940A)  # str r4, [sp, 40]
    label(COLUMN)
    data(2, 0x9F0A)  # ldr r7, [sp, 40]
    data(2, 0x980B)  # ldr r0, [sp, 44]
    add(r0, r0, r7)
    add(r7, 4)
    data(2, 0x970A)  # str r7, [sp, 40]
    mov(r1, 0)
    data(2, 0x9E09)  # ldr r6, [sp, 36]
    cmp(r7, r6)
    bne(INNER)
    data(2, 0x9E07)  # ldr r6, [sp, 28]
    mov(r1, 12)
    sub(r1, r1, r6)
    label(INNER)
    mov(r10, r1)
    data(2, 0x9E05)  # ldr r6, [sp, 20]
    mov(r9, r6)
    data(2, 0x9908)  # ldr r1, [sp, 32]
    lsl(r1, r1, 2)
    add(r1, r1, r6)
    mov(r14, r1)
    data(2, 0x9E06)  # ldr r6, [sp, 24]
    mov(r11, r6)
    data(2, 0x9E0C)  # ldr r6, [sp, 48]
    data(2, 0xCE3A)  # ldm r6!, {r1, r3, r4, r5}
    data(2, 0x960C)  # str r6, [sp, 48]
    mov(r8, r5)
    mov(r5, r4)
    mov(r4, r3)
    mov(r3, r1)
    data(2, 0x9A0D)  # ldr r2, [sp, 52]
    cmp(r7, 4)
    bne(MORE)
    label(FIRST)
    data(2, 0xC840)  # ldm r0!, {r6}
    data(2, 0x4460)  # add r0, r12
    mov(r7, r6)
    and_(r7, r2)
    mul(r7, r3)
    asr(r7, r7, 16)
    lsr(r1, r6, 4)
    and_(r1, r2)
    mul(r1, r4)
    asr(r1, r1, 16)
    add(r7, r7, r1)
    lsr(r1, r6, 8)
    and_(r1, r2)
    mul(r1, r5)
    asr(r1, r1, 16)
    add(r7, r7, r1)
    lsr(r1, r6, 12)
    and_(r1, r2)
    mov(r6, r8)
    mul(r1, r6)
    asr(r1, r1, 16)
    add(r7, r7, r1)
    data(2, 0x445F)  # add r7, r11
    mov(r1, r10)
    asr(r7, r1)
    mov(r6, r9)
    data(2, 0xC680)  # stm r6!, {r7}
    mov(r9, r6)
    data(2, 0x4576)  # cmp r6, lr
    bne(FIRST)
    b(NEXT)
    label(MORE)  # columns after the first: added to the sum so far
    data(2, 0xC840)  # ldm r0!, {r6}
    data(2, 0x4460)  # add r0, r12
    mov(r7, r6)
    and_(r7, r2)
    mul(r7, r3)
    asr(r7, r7, 16)
    lsr(r1, r6, 4)
    and_(r1, r2)
    mul(r1, r4)
    asr(r1, r1, 16)
    add(r7, r7, r1)
    lsr(r1, r6, 8)
    and_(r1, r2)
    mul(r1, r5)
    asr(r1, r1, 16)
    add(r7, r7, r1)
    lsr(r1, r6, 12)
    and_(r1, r2)
    mov(r6, r8)
    mul(r1, r6)
    asr(r1, r1, 16)
    add(r7, r7, r1)
    mov(r6, r9)
    ldr(r1, [r6, 0])
    add(r7, r7, r1)
    mov(r1, r10)
    asr(r7, r1)
    data(2, 0xC680)  # stm r6!, {r7}
    mov(r9, r6)
    data(2, 0x4576)  # cmp r6, lr
    bne(MORE)
    label(NEXT)
    data(2, 0x9F0A)  # ldr r7, [sp, 40]
    data(2, 0x9E09)  # ldr r6, [sp, 36]
    cmp(r7, r6)
    beq(COLUMNS)
    b(COLUMN)
    label(COLUMNS)
    mov(r4, r9)
    data(2, 0x9405)  # str r4, [sp, 20]
    data(2, 0x9C03)  # ldr r4, [sp, 12]
    data(2, 0x9E08)  # ldr r6, [sp, 32]
    add(r4, r4, r6)
    data(2, 0x9B00)  # ldr r3, [sp, 0]
    mov(r7, r3)
    add(r7, 220)
    ldr(r5, [r7, 8])
    cmp(r4, r5)
    bne(ONWARD)
    mov(r4, 0)
    label(ONWARD)
    data(2, 0x9403)  # str r4, [sp, 12]
    data(2, 0x9D04)  # ldr r5, [sp, 16]
    cmp(r5, 0)
    beq(END)
    b(BLOCK)
    label(END)
    data(2, 0xB00E)  # add sp, 56
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def center(r0, r1, r2, r3):
    # r0 scores, r1 middles, r2 term, r3 shift down, r4 mantissa, r5 exponent, r6 distance, r8 MAX,
    # r9 distance that weighs nothing, r10 tables, r11 sum, r12 half of what is cut, lr end of scores
    # sp: bits cut, shift down, own parameters
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB083)  # sub sp, 12
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
    data(2, 0x9601)  # str r6, [sp, 4]
    mov(r12, r5)
    mov(r11, r7)
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
    mov(r7, r3)
    add(r7, 220)
    data(2, 0x9702)  # str r7, [sp, 8]
    ldr(r6, [r7, 52])
    add(r6, r6, r0)
    ldr(r5, [r7, 56])
    ldr(r4, [r3, 76])
    mul(r5, r4)
    add(r6, r6, r5)
    ldr(r4, [r3, 0])
    ldr(r2, [r7, 0])
    sub(r1, r4, r2)
    lsl(r1, r1, 2)
    ldr(r5, [r3, 40])
    add(r1, r1, r5)
    add(r0, r0, r1)
    lsl(r2, r2, 2)
    add(r2, r2, r0)
    mov(r14, r2)
    mov(r1, r6)
    mov(r6, 0)
    label(UNIT)
    lsr(r4, r4, 1)
    beq(BITS)
    add(r6, 1)
    b(UNIT)
    label(BITS)
    data(2, 0x9600)  # str r6, [sp, 0]
    mov(r4, 1)
    lsl(r4, r6)
    lsr(r6, r4, 1)
    mov(r4, r12)
    mov(r12, r6)
    mov(r5, r11)
    mov(r6, 0)
    mov(r11, r6)
    data(2, 0x9B01)  # ldr r3, [sp, 4]
    label(TOKEN)
    data(2, 0xC840)  # ldm r0!, {r6}
    mov(r7, r8)
    sub(r6, r7, r6)
    lsr(r6, r3)
    data(2, 0x454E)  # cmp r6, r9
    bcs(FAR)
    mul(r6, r4)
    lsr(r6, r5)
    lsl(r2, r6, 24)
    lsr(r2, r2, 23)
    data(2, 0x4452)  # add r2, r10
    ldrh(r2, [r2, 0])
    ldrh(r7, [r1, 0])
    data(2, 0xB23F)  # sxth r7, r7
    mul(r2, r7)
    lsr(r6, r6, 8)
    asr(r2, r6)
    data(2, 0x4462)  # add r2, r12
    data(2, 0x9F00)  # ldr r7, [sp, 0]
    asr(r2, r7)
    data(2, 0x4493)  # add r11, r2
    label(FAR)
    add(r1, 2)
    data(2, 0x4570)  # cmp r0, lr
    bne(TOKEN)
    data(2, 0x9F02)  # ldr r7, [sp, 8]
    mov(r4, r11)
    mov(r5, 1)
    lsl(r5, r5, 29)
    add(r4, r4, r5)
    str(r4, [r7, 60])
    data(2, 0xB003)  # add sp, 12
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def av4(r0, r1, r2, r3):
    # r0 nibbles, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this part
    # sp: a, buffer, column, tokens of the next batch, tokens left, rows to the end of the ring, of the batch,
    # UNITS, sums, mask, columns left, row 0
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08C)  # sub sp, 48
    data(2, 0x9300)  # str r3, [sp, 0]
    data(2, 0x9001)  # str r0, [sp, 4]
    ldr(r4, [r3, 100])
    mov(r5, 1)
    lsl(r5, r5, 29)
    add(r4, r4, r5)
    str(r4, [r3, 100])
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
    mov(r7, r3)
    add(r7, 220)
    ldr(r4, [r3, 64])
    add(r4, r4, r5)
    lsl(r6, r2, 3)
    add(r4, r4, r6)
    data(2, 0x9408)  # str r4, [sp, 32]
    ldr(r6, [r7, 60])
    ldr(r1, [r3, 16])
    lsl(r0, r2, 1)
    sub(r1, r1, r0)
    cmp(r1, 8)
    bge(WORD)
    mov(r0, 0)
    str(r0, [r4, 16])
    str(r0, [r4, 20])
    str(r0, [r4, 24])
    str(r0, [r4, 28])
    label(WORD)
    mov(r1, 8)
    label(LIFT)
    ldr(r0, [r4, 0])
    add(r0, r0, r6)
    data(2, 0xC401)  # stm r4!, {r0}
    sub(r1, 1)
    bne(LIFT)
    mov(r0, 0)
    mov(r8, r0)
    mov(r9, r0)
    mov(r10, r0)
    mov(r11, r0)
    ldr(r4, [r7, 12])
    sub(r4, 4)
    mov(r12, r4)
    ldr(r4, [r7, 16])
    sub(r4, r4, r2)
    data(2, 0x940A)  # str r4, [sp, 40]
    ldr(r4, [r3, 0])
    ldr(r6, [r7, 0])
    data(2, 0x9604)  # str r6, [sp, 16]
    sub(r4, r4, r6)
    ldr(r1, [r3, 44])
    add(r1, r1, r5)
    lsl(r6, r4, 2)
    add(r1, r1, r6)
    ldr(r0, [r3, 60])
    add(r0, r0, r5)
    lsr(r6, r4, 3)
    lsl(r6, r6, 2)
    add(r0, r0, r6)
    data(2, 0x9007)  # str r0, [sp, 28]
    # The first batch is what the fresh tokens have left of theirs.
    mov(r6, 7)
    and_(r4, r6)
    mov(r6, 8)
    sub(r6, r6, r4)
    data(2, 0x9603)  # str r6, [sp, 12]
    ldr(r0, [r3, 76])
    ldr(r4, [r7, 16])
    mul(r0, r4)
    ldr(r4, [r7, 28])
    add(r0, r0, r4)
    add(r0, r0, r2)
    add(r0, r0, r5)
    data(2, 0x900B)  # str r0, [sp, 44]
    ldr(r4, [r7, 4])
    ldr(r6, [r7, 8])
    sub(r6, r6, r4)
    data(2, 0x9605)  # str r6, [sp, 20]
    ldr(r6, [r7, 12])
    mul(r4, r6)
    add(r0, r0, r4)
    data(2, 0x9A09)  # ldr r2, [sp, 36]
    label(BATCH)
    data(2, 0x9D04)  # ldr r5, [sp, 16]
    data(2, 0x9F03)  # ldr r7, [sp, 12]
    mov(r6, 8)
    data(2, 0x9603)  # str r6, [sp, 12]
    cmp(r5, r7)
    bcs(FULL)
    mov(r7, r5)
    label(FULL)
    sub(r5, r5, r7)
    data(2, 0x9504)  # str r5, [sp, 16]
    label(PART)  # a batch may go on at row 0
    data(2, 0x9E05)  # ldr r6, [sp, 20]
    cmp(r6, 0)
    bne(INSIDE)
    data(2, 0x980B)  # ldr r0, [sp, 44]
    mov(r6, 1)
    lsl(r6, r6, 20)
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
    data(2, 0xB00C)  # add sp, 48
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
