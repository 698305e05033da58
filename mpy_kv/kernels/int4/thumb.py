# Made by `python tools/generate_kernels.py --write` from tools/kernelgen/sources/int4.py: change that.
"""qk4, center, av4 of int4 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py."""

import micropython


@micropython.asm_thumb
def qk4(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 mask, r3 attend
    # Dots of a slice with the sealed rows, a block after the other: plain.py's qk4.
    # From nibbles [SEALED][WIDTH4] at CODES4, uint16 counts and minima of each channel at RANGES and the
    # query's words at QUERY to int32[SEALED] behind the fresh ones at DOTS; SPREAD is for the query's
    # codes and factors.
    # A token: r0 nibbles, r1 product, r2 mask, r3 r4 r5 r8 factors, r6 word, r7 sum, r9 dot, r10 shift,
    # r11 what is added, r12 gap, lr end of the block's dots
    # Instructions of inner loops: SPREAD 10, CHANNEL 15, CUT 6, PAIR 39, FIRST 30, MORE 31, UP 5
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08F)  # sub sp, 60
    data(2, 0x9300)  # str r3, [sp, 0]  a
    data(2, 0x9001)  # str r0, [sp, 4]  buffer
    mov(r2, 15)
    lsl(r4, r2, 16)
    orr(r2, r4)
    data(2, 0x920D)  # str r2, [sp, 52]  mask
    mov(r7, r3)
    add(r7, 228)  # SEALED
    ldr(r4, [r7, 16])  # WIDTH4
    data(2, 0x9409)  # str r4, [sp, 36]  slice_bytes
    ldr(r4, [r7, 72])  # FINER
    data(2, 0x940E)  # str r4, [sp, 56]  finer
    ldr(r4, [r7, 4])  # FIRST
    data(2, 0x9403)  # str r4, [sp, 12]  row
    ldr(r4, [r7, 12])  # ROW4
    sub(r4, 4)
    mov(r12, r4)
    ldr(r5, [r7, 0])  # SEALED
    data(2, 0x9504)  # str r5, [sp, 16]  tokens_left
    ldr(r4, [r3, 0])  # N
    sub(r4, r4, r5)
    lsl(r4, r4, 2)
    ldr(r5, [r3, 44])  # DOTS
    add(r4, r4, r5)
    add(r4, r4, r0)
    data(2, 0x9405)  # str r4, [sp, 20]  dots
    ldr(r6, [r7, 68])  # SPREAD
    add(r6, r6, r0)
    data(2, 0x9602)  # str r6, [sp, 8]  spread
    ldr(r4, [r3, 16])  # WIDTH
    mov(r5, r4)
    add(r5, 7)
    lsr(r5, r5, 3)
    lsl(r5, r5, 4)
    ldr(r2, [r3, 76])  # SLICE
    mul(r5, r2)
    add(r5, r5, r0)
    ldr(r2, [r3, 68])  # QUERY
    add(r5, r5, r2)
    add(r5, 16)  # QUERY_WORDS
    ldr(r2, [r3, 12])  # SLICES
    lsl(r2, r2, 2)
    add(r5, r5, r2)
    mov(r7, r4)
    label(SPREAD)
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
    bpl(L1)
    mov(r0, 0)
    mov(r1, 0)
    mov(r2, 0)
    mov(r3, 0)
    data(2, 0xC60F)  # stm r6!, {r0, r1, r2, r3}
    label(L1)
    label(BLOCK)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    mov(r7, r3)
    add(r7, 228)  # SEALED
    data(2, 0x9C03)  # ldr r4, [sp, 12]  row
    lsr(r4, r4, 4)
    ldr(r5, [r7, 44])  # HEADER
    mul(r4, r5)
    ldr(r5, [r7, 24])  # RANGES
    add(r4, r4, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    add(r4, r4, r5)
    ldr(r6, [r3, 124])  # SLICE_WIDTH
    ldr(r5, [r3, 76])  # SLICE
    mul(r5, r6)
    lsl(r5, r5, 2)
    add(r4, r4, r5)
    data(2, 0x940B)  # str r4, [sp, 44]  ranges
    data(2, 0x9802)  # ldr r0, [sp, 8]  spread
    mov(r1, 0)
    mov(r2, 0)
    label(CHANNEL)
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
    ble(L2)
    mov(r2, r5)
    label(L2)
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
    data(2, 0x9307)  # str r3, [sp, 28]  cut
    lsl(r1, r1, 4)
    data(2, 0x9106)  # str r1, [sp, 24]  minima
    mov(r2, 0)
    mov(r9, r2)
    mov(r2, 1)
    lsl(r2, r3)
    lsr(r2, r2, 1)
    data(2, 0x9802)  # ldr r0, [sp, 8]  spread
    data(2, 0x9C0B)  # ldr r4, [sp, 44]  ranges
    data(2, 0x9F09)  # ldr r7, [sp, 36]  slice_bytes
    lsl(r6, r7, 3)
    add(r6, r6, r0)
    data(2, 0x960C)  # str r6, [sp, 48]  factors
    mov(r8, r7)
    label(PAIR)
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
    data(2, 0x9906)  # ldr r1, [sp, 24]  minima
    add(r1, r1, r5)
    asr(r1, r3)
    data(2, 0x9106)  # str r1, [sp, 24]  minima
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    mov(r7, r3)
    add(r7, 228)  # SEALED
    data(2, 0x9C03)  # ldr r4, [sp, 12]  row
    mov(r5, 15)
    and_(r5, r4)
    mov(r6, 16)
    sub(r6, r6, r5)
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    cmp(r5, r6)
    bcs(L3)
    mov(r6, r5)
    label(L3)
    sub(r5, r5, r6)
    data(2, 0x9504)  # str r5, [sp, 16]  tokens_left
    data(2, 0x9608)  # str r6, [sp, 32]  block_tokens
    ldr(r5, [r7, 12])  # ROW4
    mul(r4, r5)
    ldr(r5, [r7, 20])  # CODES4
    add(r4, r4, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    add(r4, r4, r5)
    ldr(r5, [r3, 76])  # SLICE
    data(2, 0x9E09)  # ldr r6, [sp, 36]  slice_bytes
    mul(r5, r6)
    add(r4, r4, r5)
    data(2, 0x940B)  # str r4, [sp, 44]  ranges
    mov(r4, 0)
    data(2, 0x940A)  # str r4, [sp, 40]  column
    label(COLUMN)
    data(2, 0x9F0A)  # ldr r7, [sp, 40]  column
    data(2, 0x980B)  # ldr r0, [sp, 44]  ranges
    add(r0, r0, r7)
    add(r7, 4)
    data(2, 0x970A)  # str r7, [sp, 40]  column
    mov(r1, 0)
    data(2, 0x9E09)  # ldr r6, [sp, 36]  slice_bytes
    cmp(r7, r6)
    bne(L4)
    data(2, 0x9E07)  # ldr r6, [sp, 28]  cut
    mov(r1, 12)
    sub(r1, r1, r6)
    data(2, 0x9E0E)  # ldr r6, [sp, 56]  finer
    sub(r1, r1, r6)
    cmp(r1, 0)
    bge(L5)
    mov(r1, 0)
    label(L5)
    label(L4)
    mov(r10, r1)
    data(2, 0x9E05)  # ldr r6, [sp, 20]  dots
    mov(r9, r6)
    data(2, 0x9908)  # ldr r1, [sp, 32]  block_tokens
    lsl(r1, r1, 2)
    add(r1, r1, r6)
    mov(r14, r1)
    data(2, 0x9E06)  # ldr r6, [sp, 24]  minima
    mov(r11, r6)
    data(2, 0x9E0C)  # ldr r6, [sp, 48]  factors
    data(2, 0xCE3A)  # ldm r6!, {r1, r3, r4, r5}
    data(2, 0x960C)  # str r6, [sp, 48]  factors
    mov(r8, r5)
    mov(r5, r4)
    mov(r4, r3)
    mov(r3, r1)
    data(2, 0x9A0D)  # ldr r2, [sp, 52]  mask
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
    label(MORE)
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
    data(2, 0x9F0A)  # ldr r7, [sp, 40]  column
    data(2, 0x9E09)  # ldr r6, [sp, 36]  slice_bytes
    cmp(r7, r6)
    bne(COLUMN)
    data(2, 0x9C07)  # ldr r4, [sp, 28]  cut
    data(2, 0x9D0E)  # ldr r5, [sp, 56]  finer
    add(r4, r4, r5)
    sub(r4, 12)
    cmp(r4, 0)
    ble(L6)
    data(2, 0x9E05)  # ldr r6, [sp, 20]  dots
    label(UP)
    ldr(r5, [r6, 0])
    lsl(r5, r4)
    data(2, 0xC620)  # stm r6!, {r5}
    data(2, 0x4576)  # cmp r6, lr
    bne(UP)
    label(L6)
    mov(r4, r9)
    data(2, 0x9405)  # str r4, [sp, 20]  dots
    data(2, 0x9C03)  # ldr r4, [sp, 12]  row
    data(2, 0x9E08)  # ldr r6, [sp, 32]  block_tokens
    add(r4, r4, r6)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    mov(r7, r3)
    add(r7, 228)  # SEALED
    ldr(r5, [r7, 8])  # ROWS
    cmp(r4, r5)
    bne(L7)
    mov(r4, 0)
    label(L7)
    data(2, 0x9403)  # str r4, [sp, 12]  row
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    cmp(r5, 0)
    beq(L8)
    b(BLOCK)
    label(L8)
    data(2, 0xB00F)  # add sp, 60
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def center(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 tables, r3 attend
    # What the middles of the ranges of V weigh together, to LIFT: plain.py's center.
    # From int32[N] at SCORES and int16[SEALED] at CENTERS; `tables` is tables.TABLES.
    # r0 scores, r1 middles, r2 term, r3 shift down, r4 mantissa, r5 exponent, r6 distance, r8 MAX, r9
    # distance that weighs nothing, r10 tables, r11 sum >> 14, r12 the rest, lr end of scores
    # Instructions of inner loops: DIVIDE 8, TOKEN 30
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB082)  # sub sp, 8
    mov(r10, r2)
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
    data(2, 0x9600)  # str r6, [sp, 0]  down
    mov(r12, r5)
    mov(r11, r7)
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
    bcc(L3)
    sub(r6, r6, r5)
    add(r4, 1)
    label(L3)
    lsr(r5, r5, 1)
    sub(r7, 1)
    bne(DIVIDE)
    mov(r9, r4)
    ldr(r4, [r3, 88])  # MAX
    mov(r8, r4)
    mov(r7, r3)
    add(r7, 228)  # SEALED
    data(2, 0x9701)  # str r7, [sp, 4]  own
    ldr(r6, [r7, 52])  # CENTERS
    add(r6, r6, r0)
    ldr(r5, [r7, 56])  # CENTER_ROW
    ldr(r4, [r3, 76])  # SLICE
    mul(r5, r4)
    add(r6, r6, r5)
    ldr(r4, [r3, 0])  # N
    ldr(r2, [r7, 0])  # SEALED
    sub(r1, r4, r2)
    lsl(r1, r1, 2)
    ldr(r5, [r3, 40])  # SCORES
    add(r1, r1, r5)
    add(r0, r0, r1)
    lsl(r2, r2, 2)
    add(r2, r2, r0)
    mov(r14, r2)
    mov(r1, r6)
    mov(r4, r12)
    mov(r5, r11)
    mov(r6, 0)
    mov(r11, r6)
    mov(r12, r6)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  down
    label(TOKEN)
    data(2, 0xC840)  # ldm r0!, {r6}
    mov(r7, r8)
    sub(r6, r7, r6)
    lsr(r6, r3)
    data(2, 0x454E)  # cmp r6, r9
    bcs(L4)
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
    asr(r7, r2, 31)
    add(r2, r2, r7)
    eor(r2, r7)
    lsl(r2, r2, 3)
    lsr(r2, r6)
    eor(r2, r7)
    sub(r2, r2, r7)
    data(2, 0xB297)  # uxth r7, r2
    data(2, 0x44BC)  # add r12, r7
    asr(r2, r2, 16)
    data(2, 0x4493)  # add r11, r2
    label(L4)
    add(r1, 2)
    data(2, 0x4570)  # cmp r0, lr
    bne(TOKEN)
    data(2, 0x9F01)  # ldr r7, [sp, 4]  own
    mov(r4, r12)
    lsr(r5, r4, 16)
    data(2, 0x445D)  # add r5, r11
    str(r5, [r7, 60])  # LIFT
    data(2, 0xB2A4)  # uxth r4, r4
    str(r4, [r7, 64])  # LIFT_LOW
    data(2, 0xB002)  # add sp, 8
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def av4(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 mask, r3 attend
    # Small weights times the nibbles of the sealed rows, added to the sums of the fresh ones: plain.py's
    # av4, B5.
    # From int32[SEALED] behind the fresh ones at DOTS, words at UNITS and nibbles [SEALED][WIDTH4] at
    # VCODES4 to int32[2 * WIDTH4] at SUMS, a column of 8 channels after the other; LIFT is added to each.
    # r0 nibbles, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this
    # part
    # Instructions of inner loops: LIFT 5, HALF 23, TOKEN 21
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB092)  # sub sp, 72
    data(2, 0x9300)  # str r3, [sp, 0]  a
    data(2, 0x9001)  # str r0, [sp, 4]  buffer
    ldr(r4, [r3, 100])  # CORR
    mov(r5, 1)
    lsl(r5, r5, 29)
    add(r4, r4, r5)
    str(r4, [r3, 100])  # CORR
    mov(r7, r3)
    add(r7, 228)  # SEALED
    ldr(r6, [r7, 60])  # LIFT
    mov(r4, r3)
    add(r4, 128)  # HEAD_DIM
    ldr(r4, [r4, 44])  # UNIT
    sub(r4, 40)
    cmp(r4, 0)
    bge(L1)
    neg(r4, r4)
    lsl(r6, r4)
    ldr(r1, [r7, 64])  # LIFT_LOW
    lsl(r1, r4)
    lsr(r1, r1, 16)
    add(r6, r6, r1)
    mov(r4, 0)
    label(L1)
    asr(r6, r4)
    add(r6, r6, r5)
    data(2, 0x960C)  # str r6, [sp, 48]  lift
    mov(r2, 240)
    lsl(r4, r2, 16)
    orr(r2, r4)
    data(2, 0x9209)  # str r2, [sp, 36]  mask
    mov(r4, 0)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x940D)  # str r4, [sp, 52]  part
    label(COLUMN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    data(2, 0x9A02)  # ldr r2, [sp, 8]  column
    mov(r7, r3)
    add(r7, 228)  # SEALED
    ldr(r4, [r3, 64])  # SUMS
    add(r4, r4, r5)
    lsl(r6, r2, 3)
    add(r4, r4, r6)
    data(2, 0x9408)  # str r4, [sp, 32]  sums
    data(2, 0x9E0C)  # ldr r6, [sp, 48]  lift
    ldr(r1, [r3, 16])  # WIDTH
    lsl(r0, r2, 1)
    sub(r1, r1, r0)
    cmp(r1, 8)
    bge(L2)
    mov(r0, 0)
    str(r0, [r4, 16])
    str(r0, [r4, 20])
    str(r0, [r4, 24])
    str(r0, [r4, 28])
    label(L2)
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
    ldr(r4, [r7, 12])  # ROW4
    sub(r4, 4)
    mov(r12, r4)
    ldr(r4, [r7, 16])  # WIDTH4
    sub(r4, r4, r2)
    data(2, 0x940A)  # str r4, [sp, 40]  columns_left
    ldr(r4, [r3, 0])  # N
    ldr(r6, [r7, 0])  # SEALED
    data(2, 0x9604)  # str r6, [sp, 16]  tokens_left
    sub(r4, r4, r6)
    ldr(r1, [r3, 44])  # DOTS
    add(r1, r1, r5)
    lsl(r6, r4, 2)
    add(r1, r1, r6)
    ldr(r0, [r3, 60])  # UNITS
    add(r0, r0, r5)
    lsr(r6, r4, 3)
    lsl(r6, r6, 2)
    add(r0, r0, r6)
    data(2, 0x9007)  # str r0, [sp, 28]  units
    mov(r6, 7)
    and_(r4, r6)
    mov(r6, 8)
    sub(r6, r6, r4)
    data(2, 0x9603)  # str r6, [sp, 12]  next_batch
    ldr(r0, [r3, 76])  # SLICE
    ldr(r4, [r7, 16])  # WIDTH4
    mul(r0, r4)
    ldr(r4, [r7, 28])  # VCODES4
    add(r0, r0, r4)
    add(r0, r0, r2)
    add(r0, r0, r5)
    data(2, 0x900B)  # str r0, [sp, 44]  row_0
    ldr(r4, [r7, 4])  # FIRST
    ldr(r6, [r7, 8])  # ROWS
    sub(r6, r6, r4)
    data(2, 0x9605)  # str r6, [sp, 20]  ring_left
    ldr(r6, [r7, 12])  # ROW4
    mul(r4, r6)
    add(r0, r0, r4)
    data(2, 0x9A09)  # ldr r2, [sp, 36]  mask
    label(BATCH)
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    data(2, 0x9F03)  # ldr r7, [sp, 12]  next_batch
    mov(r6, 8)
    data(2, 0x9603)  # str r6, [sp, 12]  next_batch
    cmp(r5, r7)
    bcs(L3)
    mov(r7, r5)
    label(L3)
    sub(r5, r5, r7)
    data(2, 0x9504)  # str r5, [sp, 16]  tokens_left
    label(PART)
    data(2, 0x9E05)  # ldr r6, [sp, 20]  ring_left
    cmp(r6, 0)
    bne(L4)
    data(2, 0x980B)  # ldr r0, [sp, 44]  row_0
    mov(r6, 1)
    lsl(r6, r6, 20)
    label(L4)
    mov(r5, r7)
    cmp(r6, r5)
    bcs(L5)
    mov(r5, r6)
    label(L5)
    sub(r6, r6, r5)
    data(2, 0x9605)  # str r6, [sp, 20]  ring_left
    sub(r7, r7, r5)
    data(2, 0x9706)  # str r7, [sp, 24]  batch_left
    lsl(r5, r5, 2)
    add(r5, r5, r1)
    mov(r14, r5)
    data(2, 0x9F07)  # ldr r7, [sp, 28]  units
    ldrb(r7, [r7, 3])
    cmp(r7, 0)
    beq(L6)
    cmp(r7, 1)
    beq(L7)
    mov(r4, r14)
    sub(r1, r4, r1)
    lsr(r1, r1, 2)
    mov(r5, r12)
    add(r5, 4)
    mul(r1, r5)
    add(r0, r0, r1)
    mov(r1, r4)
    b(PART_END)
    label(L7)
    data(2, 0x9F0D)  # ldr r7, [sp, 52]  part
    cmp(r7, 0)
    bne(L8)
    data(2, 0x900E)  # str r0, [sp, 56]  from_row
    data(2, 0x910F)  # str r1, [sp, 60]  from_weight
    mov(r4, r14)
    sub(r4, r4, r1)
    lsr(r4, r4, 2)
    data(2, 0x9D05)  # ldr r5, [sp, 20]  ring_left
    add(r4, r4, r5)
    data(2, 0x9410)  # str r4, [sp, 64]  from_left
    mov(r7, 1)
    lsl(r7, r7, 8)
    data(2, 0x970D)  # str r7, [sp, 52]  part
    label(L8)
    label(HALF)
    data(2, 0xC810)  # ldm r0!, {r4}
    data(2, 0x4460)  # add r0, r12
    data(2, 0xC908)  # ldm r1!, {r3}
    lsr(r3, r7)
    data(2, 0xB29B)  # uxth r3, r3
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
    bne(HALF)
    b(PART_END)
    label(L6)
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
    bcc(L9)
    data(2, 0x9D0D)  # ldr r5, [sp, 52]  part
    cmp(r5, 16)
    bne(L10)
    add(r4, 5)
    mov(r5, 0)
    data(2, 0x950D)  # str r5, [sp, 52]  part
    b(TURNED)
    label(L10)
    mov(r5, 16)
    data(2, 0x950D)  # str r5, [sp, 52]  part
    data(2, 0x9D0F)  # ldr r5, [sp, 60]  from_weight
    sub(r1, r1, r5)
    lsr(r1, r1, 2)
    data(2, 0x9E04)  # ldr r6, [sp, 16]  tokens_left
    add(r6, r6, r1)
    data(2, 0x9604)  # str r6, [sp, 16]  tokens_left
    data(2, 0x9103)  # str r1, [sp, 12]  next_batch
    mov(r1, r5)
    data(2, 0x980E)  # ldr r0, [sp, 56]  from_row
    data(2, 0x9E10)  # ldr r6, [sp, 64]  from_left
    data(2, 0x9605)  # str r6, [sp, 20]  ring_left
    data(2, 0x9E07)  # ldr r6, [sp, 28]  units
    sub(r6, 4)
    data(2, 0x9607)  # str r6, [sp, 28]  units
    label(TURNED)
    label(L9)
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
    label(BATCH_END)
    data(2, 0x9A09)  # ldr r2, [sp, 36]  mask
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    cmp(r5, 0)
    beq(L11)
    b(BATCH)
    label(L11)
    data(2, 0x9C02)  # ldr r4, [sp, 8]  column
    add(r4, 4)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x9D0A)  # ldr r5, [sp, 40]  columns_left
    cmp(r5, 4)
    ble(L12)
    b(COLUMN)
    label(L12)
    data(2, 0xB012)  # add sp, 72
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
