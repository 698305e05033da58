# Made by `python tools/generate_kernels.py --write` from tools/kernelgen/sources/int8_int4.py: change that.
"""encode and av of int8-int4 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py."""

import micropython


@micropython.asm_thumb
def av(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 mask, r3 attend
    # Small weights times the nibbles of a slice, summed over tokens: plain.py's av, B5 and B6.
    # From int32[N] at DOTS, words at UNITS and codes of 4 bits at VCODES to int32[2 * V_WIDTH] at SUMS, a
    # column of 8 codes after the other.
    # r0 codes, r1 weights, r2 mask, r3 weight, r8 r9 r10 r11 two lanes each, r12 gap, lr end of this part
    # Instructions of inner loops: TOKEN 21
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08B)  # sub sp, 44
    data(2, 0x9300)  # str r3, [sp, 0]  a
    data(2, 0x9001)  # str r0, [sp, 4]  buffer
    mov(r2, 240)
    lsl(r4, r2, 16)
    orr(r2, r4)
    data(2, 0x9209)  # str r2, [sp, 36]  mask
    mov(r4, 0)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    label(COLUMN)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    data(2, 0x9A02)  # ldr r2, [sp, 8]  column
    ldr(r4, [r3, 64])  # SUMS
    add(r4, r4, r5)
    lsl(r6, r2, 3)
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
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    data(2, 0xC4C0)  # stm r4!, {r6, r7}
    mov(r7, r3)
    add(r7, 128)  # HEAD_DIM
    ldr(r1, [r7, 32])  # V_WIDTH
    sub(r1, r1, r2)
    data(2, 0x910A)  # str r1, [sp, 40]  columns_left
    ldr(r4, [r7, 28])  # V_ROW
    sub(r4, 4)
    mov(r12, r4)
    ldr(r4, [r7, 36])  # V_RUNS
    add(r4, r4, r3)
    data(2, 0x9403)  # str r4, [sp, 12]  run
    ldr(r1, [r3, 44])  # DOTS
    add(r1, r1, r5)
    ldr(r4, [r3, 60])  # UNITS
    add(r4, r4, r5)
    data(2, 0x9407)  # str r4, [sp, 28]  units
    ldr(r4, [r3, 0])  # N
    data(2, 0x9404)  # str r4, [sp, 16]  tokens_left
    data(2, 0x9A09)  # ldr r2, [sp, 36]  mask
    label(BATCH)
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    mov(r7, 8)
    cmp(r5, r7)
    bcs(L1)
    mov(r7, r5)
    label(L1)
    sub(r5, r5, r7)
    data(2, 0x9504)  # str r5, [sp, 16]  tokens_left
    label(PART)
    data(2, 0x9E05)  # ldr r6, [sp, 20]  run_left
    cmp(r6, 0)
    bne(L2)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    data(2, 0x9C03)  # ldr r4, [sp, 12]  run
    ldr(r0, [r3, 76])  # SLICE
    mov(r5, r3)
    add(r5, 128)  # HEAD_DIM
    ldr(r5, [r5, 32])  # V_WIDTH
    mul(r0, r5)
    ldr(r5, [r3, 24])  # VCODES
    add(r0, r0, r5)
    data(2, 0x9D02)  # ldr r5, [sp, 8]  column
    add(r0, r0, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    add(r0, r0, r5)
    ldr(r5, [r4, 0])  # V_RUN_CODES
    add(r0, r0, r5)
    ldr(r6, [r4, 4])  # V_RUN_COUNT
    add(r4, 8)  # V_RUN_WORDS
    data(2, 0x9403)  # str r4, [sp, 12]  run
    label(L2)
    mov(r5, r7)
    cmp(r6, r5)
    bcs(L3)
    mov(r5, r6)
    label(L3)
    sub(r6, r6, r5)
    data(2, 0x9605)  # str r6, [sp, 20]  run_left
    sub(r7, r7, r5)
    data(2, 0x9706)  # str r7, [sp, 24]  batch_left
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
    data(2, 0x9F06)  # ldr r7, [sp, 24]  batch_left
    cmp(r7, 0)
    bne(PART)
    data(2, 0x9F07)  # ldr r7, [sp, 28]  units
    data(2, 0xCF10)  # ldm r7!, {r4}
    data(2, 0x9707)  # str r7, [sp, 28]  units
    data(2, 0xB2A3)  # uxth r3, r4
    lsr(r4, r4, 16)
    data(2, 0x9F08)  # ldr r7, [sp, 32]  sums
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
    data(2, 0x9A09)  # ldr r2, [sp, 36]  mask
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    cmp(r5, 0)
    beq(L4)
    b(BATCH)
    label(L4)
    data(2, 0x9C02)  # ldr r4, [sp, 8]  column
    add(r4, 4)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x9D0A)  # ldr r5, [sp, 40]  columns_left
    cmp(r5, 4)
    ble(L5)
    b(COLUMN)
    label(L5)
    data(2, 0xB00B)  # add sp, 44
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def encode(r0, r1, r2, r3):
    # r0 buffer, r1 k, r2 v, r3 storing
    # A token's K to codes of 8 bits and V to codes of 4 at slot E_SLOT: plain.py's encode.
    # From E_COUNT values of k and of v, int16 or float32, to codes and float16 scales. Returns -1 - which
    # vector has a value too large. B1.
    # r0 values, r1 codes, r2 2^23 / r3, r3 twice the scale, r10 the scale, r11 shift or 0 for float32, lr
    # end, r12 what is added to a code; 0: it goes above the one before
    # Instructions of inner loops: SHORT 11, NORMAL 5, FLOATS 8, FOLD 7, NARROW 8, DIVIDE 8, VALUE 55, PAD
    # 5
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    data(2, 0xB08C)  # sub sp, 48
    data(2, 0x9300)  # str r3, [sp, 0]  e
    data(2, 0x9001)  # str r0, [sp, 4]  buffer
    data(2, 0x9202)  # str r2, [sp, 8]  v
    mov(r5, 0)
    data(2, 0x9508)  # str r5, [sp, 32]  vector
    ldr(r4, [r3, 0])  # E_LAYER
    mov(r6, 12)  # LAYER_WORDS
    mul(r4, r6)
    add(r4, r4, r3)
    add(r4, 72)  # E_TABLE
    data(2, 0x940A)  # str r4, [sp, 40]  layer
    label(VECTOR)
    data(2, 0x9801)  # ldr r0, [sp, 4]  buffer
    ldr(r6, [r4, 0])  # LAYER_CODES
    add(r0, r0, r6)
    ldr(r6, [r3, 48])  # E_PLANE
    mul(r6, r5)
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
    ldr(r6, [r3, 40])  # E_ROW
    ldr(r7, [r3, 44])  # E_CODES
    data(2, 0x9D08)  # ldr r5, [sp, 32]  vector
    cmp(r5, 0)
    beq(L2)
    ldr(r6, [r3, 64])  # E_V_ROW
    ldr(r7, [r3, 68])  # E_V_CODES
    label(L2)
    ldr(r5, [r3, 4])  # E_SLOT
    mul(r6, r5)
    add(r6, r6, r0)
    data(2, 0x9604)  # str r6, [sp, 16]  head
    add(r6, r7, r0)
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
    lsr(r5, r5, 1)
    cmp(r5, r4)
    bls(L5)
    mov(r4, r5)
    label(L5)
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
    label(LARGEST)
    mov(r0, 127)
    mov(r2, 7)
    data(2, 0x9F08)  # ldr r7, [sp, 32]  vector
    cmp(r7, 0)
    beq(L6)
    mov(r0, 7)
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
    ldr(r6, [r3, 36])  # E_STRIDE
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
    ldr(r6, [r7, 24])  # E_BYTES
    ldr(r1, [r7, 32])  # E_HEAD
    mov(r5, 128)
    data(2, 0x9C08)  # ldr r4, [sp, 32]  vector
    cmp(r4, 0)
    beq(L15)
    ldr(r6, [r7, 56])  # E_V_BYTES
    ldr(r1, [r7, 60])  # E_V_HEAD
    mov(r5, 136)
    label(L15)
    mov(r12, r5)
    data(2, 0x9D06)  # ldr r5, [sp, 24]  slice
    mov(r4, r6)
    mul(r4, r5)
    add(r5, 1)
    data(2, 0x9506)  # str r5, [sp, 24]  slice
    data(2, 0x9D04)  # ldr r5, [sp, 16]  head
    add(r4, r4, r5)
    add(r6, r6, r4)
    data(2, 0x960B)  # str r6, [sp, 44]  slice_end
    add(r5, r5, r1)
    mov(r1, r4)
    data(2, 0x9E06)  # ldr r6, [sp, 24]  slice
    ldr(r4, [r7, 28])  # E_SLICES
    cmp(r6, r4)
    bne(L16)
    mov(r6, 0)
    data(2, 0x9606)  # str r6, [sp, 24]  slice
    data(2, 0x9504)  # str r5, [sp, 16]  head
    label(L16)
    ldr(r4, [r7, 20])  # E_WIDTH
    mov(r6, r11)
    lsl(r4, r4, 1)
    cmp(r6, 0)
    bne(L17)
    lsl(r4, r4, 1)
    label(L17)
    add(r4, r4, r0)
    mov(r14, r4)
    label(VALUE)
    mov(r4, r11)
    cmp(r4, 0)
    beq(L18)
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
    b(L19)
    label(L18)
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
    label(L19)
    data(2, 0x4455)  # add r5, r10
    mov(r6, r5)
    mul(r6, r2)
    lsr(r6, r6, 23)
    mov(r4, r6)
    mul(r4, r3)
    sub(r5, r5, r4)
    cmp(r5, r3)
    bcc(L20)
    add(r6, 1)
    label(L20)
    eor(r6, r7)
    sub(r6, r6, r7)
    mov(r4, r12)
    cmp(r4, 0)
    beq(L21)
    add(r6, r6, r4)
    strb(r6, [r1, 0])
    cmp(r4, 128)
    beq(NEXT)
    mov(r4, 0)
    mov(r12, r4)
    b(L22)
    label(L21)
    ldrb(r4, [r1, 0])
    lsl(r6, r6, 4)
    add(r6, r6, r4)
    strb(r6, [r1, 0])
    mov(r4, 136)
    mov(r12, r4)
    label(NEXT)
    add(r1, 1)
    label(L22)
    data(2, 0x4570)  # cmp r0, lr
    bne(VALUE)
    mov(r6, r12)
    cmp(r6, 0)
    bne(L23)
    add(r1, 1)
    mov(r6, 136)
    label(L23)
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
    mov(r0, 0)
    label(REFUSE)
    data(2, 0xB00C)  # add sp, 48
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
