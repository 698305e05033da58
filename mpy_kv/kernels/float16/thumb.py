# Made by `python tools/generate_kernels.py --write` from tools/kernelgen/sources/float16.py: change that.
"""scales, qk and av of float16 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py.

A number h has its entry of the table at 8 * (h >> 10); 12 instructions make a product of it.
"""

import micropython


@micropython.asm_thumb
def scales(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 which, r3 attend
    # The largest exponent of a head's visible numbers, and the table they are read by: plain.py's scales.
    # From float16[RUNS][RUN_COUNT][ROW / 2] at CODES or, with `which` 1, VCODES, to KEXP or VEXP, 64
    # entries (t, base) before KSCALE, and uint16[N] of relative scales there or at VSCALE; of K to
    # VARIED.
    # RUN: r0 words, r2 largest of the token, r5 end of it, r1 relative scales, r8 which times 4, r9
    # buffer, r10 largest so far, r11 words left of the run, r12 run, lr runs left; LEVELS: r1 scales, r5
    # their end, r2 exponent, r6 varied; ENTRIES: r5 r0 entries of plus and minus, r4 exponents left, r6
    # t, r7 b
    # Instructions of inner loops: WORD 11, MORE 4, VALUES 4, SPARE 4, KEYS 16, ENTRIES 27
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
    data(2, 0xB082)  # sub sp, 8
    lsl(r2, r2, 2)
    mov(r8, r2)
    mov(r9, r0)
    ldr(r4, [r3, 8])  # ROW
    data(2, 0x9400)  # str r4, [sp, 0]  row_bytes
    add(r4, r3, r2)
    ldr(r1, [r4, 48])  # KSCALE
    add(r1, r1, r0)
    ldr(r5, [r4, 20])  # CODES
    add(r0, r0, r5)
    mov(r7, r0)
    mov(r4, 0)
    mov(r10, r4)
    mov(r6, r3)
    add(r6, 180)  # RUN
    ldr(r4, [r3, 4])  # RUNS
    mov(r14, r4)
    label(RUN)
    ldr(r4, [r6, 8])  # RUN_COUNT
    mov(r11, r4)
    ldr(r0, [r6, 0])  # RUN_CODES
    add(r0, r0, r7)
    add(r6, 16)  # RUN_WORDS
    mov(r12, r6)
    b(TOKEN_TEST)
    label(TOKEN)
    mov(r11, r4)
    mov(r2, 0)
    data(2, 0x9D00)  # ldr r5, [sp, 0]  row_bytes
    add(r5, r5, r0)
    label(WORD)
    data(2, 0xC810)  # ldm r0!, {r4}
    lsl(r6, r4, 1)
    cmp(r6, r2)
    bls(L1)
    mov(r2, r6)
    label(L1)
    lsl(r6, r4, 17)
    cmp(r6, r2)
    bls(L2)
    mov(r2, r6)
    label(L2)
    cmp(r0, r5)
    bcc(WORD)
    lsr(r2, r2, 17)
    strh(r2, [r1, 0])
    add(r1, 2)
    mov(r6, r10)
    cmp(r2, r6)
    bls(L3)
    mov(r10, r2)
    label(L3)
    label(TOKEN_TEST)
    mov(r4, r11)
    sub(r4, 1)
    bpl(TOKEN)
    mov(r6, r12)
    mov(r4, r14)
    sub(r4, 1)
    mov(r14, r4)
    bne(RUN)
    mov(r4, r10)
    lsr(r2, r4, 10)
    bne(L4)
    mov(r2, 1)
    cmp(r4, 0)
    bne(L5)
    sub(r2, 10)
    b(EXPONENT)
    label(L5)
    label(MORE)
    lsl(r4, r4, 1)
    sub(r2, 1)
    lsr(r5, r4, 10)
    beq(MORE)
    label(L4)
    label(EXPONENT)
    mov(r4, r8)
    add(r4, r4, r3)
    mov(r5, r2)
    add(r5, 10)
    str(r5, [r4, 80])  # KEXP
    mov(r5, r1)
    ldr(r1, [r4, 48])  # KSCALE
    data(2, 0x4449)  # add r1, r9
    mov(r6, 0)
    mov(r4, r8)
    cmp(r4, 0)
    beq(OF_KEYS)
    mov(r4, 20)
    data(2, 0x9401)  # str r4, [sp, 4]  bits
    mov(r4, 128)
    lsl(r4, r4, 8)
    add(r4, 1)
    label(VALUES)
    strh(r4, [r1, 0])
    add(r1, 2)
    cmp(r1, r5)
    bne(VALUES)
    b(TABLE)
    label(OF_KEYS)
    mov(r7, 5)
    mov(r4, r3)
    add(r4, 128)  # HEAD_DIM
    ldr(r4, [r4, 0])  # HEAD_DIM
    sub(r4, 1)
    lsr(r4, r4, 3)
    b(SPARE_TEST)
    label(SPARE)
    sub(r7, 1)
    lsr(r4, r4, 1)
    label(SPARE_TEST)
    cmp(r4, 0)
    bne(SPARE)
    mov(r4, 32)
    cmp(r7, 0)
    blt(L6)
    add(r4, r4, r7)
    b(L7)
    label(L6)
    neg(r0, r7)
    lsl(r4, r0)
    label(L7)
    mov(r10, r4)
    add(r7, 15)
    data(2, 0x9701)  # str r7, [sp, 4]  bits
    label(KEYS)
    ldrh(r4, [r1, 0])
    lsr(r4, r4, 10)
    mov(r7, 12)
    cmp(r4, r7)
    bcs(L8)
    mov(r4, r7)
    label(L8)
    sub(r4, r2, r4)
    mov(r7, r10)
    cmp(r4, 4)
    blt(L9)
    mov(r6, r7)
    add(r7, r7, r4)
    label(L9)
    strh(r7, [r1, 0])
    add(r1, 2)
    cmp(r1, r5)
    bne(KEYS)
    mov(r4, r3)
    add(r4, 128)  # HEAD_DIM
    str(r6, [r4, 40])  # VARIED
    label(TABLE)
    ldr(r5, [r3, 48])  # KSCALE
    data(2, 0x444D)  # add r5, r9
    mov(r4, r8)
    lsl(r4, r4, 7)
    add(r5, r5, r4)
    mov(r4, 1)
    lsl(r4, r4, 10)
    sub(r5, r5, r4)
    mov(r0, r5)
    add(r0, 128)
    add(r0, 128)
    mov(r4, 0)
    mov(r1, 1)
    b(ENTRY)
    label(ENTRIES)
    mov(r1, r4)
    label(ENTRY)
    sub(r1, r2, r1)
    mov(r6, 1)
    data(2, 0x9F01)  # ldr r7, [sp, 4]  bits
    lsl(r6, r7)
    cmp(r1, 0)
    bge(L10)
    neg(r1, r1)
    lsl(r6, r1)
    mov(r1, 0)
    label(L10)
    lsr(r6, r1)
    lsl(r7, r6, 1)
    cmp(r4, 0)
    bne(L11)
    mov(r7, 0)
    label(L11)
    data(2, 0xC5C0)  # stm r5!, {r6, r7}
    neg(r7, r7)
    lsl(r1, r6, 23)
    beq(L12)
    add(r7, 1)
    label(L12)
    neg(r6, r6)
    data(2, 0xC0C0)  # stm r0!, {r6, r7}
    add(r4, 1)
    cmp(r4, 1)
    beq(ENTRIES)
    cmp(r4, r2)
    ble(ENTRIES)
    data(2, 0xB002)  # add sp, 8
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def qk(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 spare, r3 attend
    # Dots of the query with every visible row: plain.py's qk.
    # From float16[RUNS][RUN_COUNT][ROW / 2] at CODES and the query's words at QUERY to int32[N] at DOTS,
    # a column of 4 numbers after the other.
    # r0 numbers, r1 mantissa, r2 table, r3 t, r4 number, r5 its entry, r6 base or code, r7 dot, r8
    # result, r9 its end in this run, r10 row, r11 mask of the dot so far
    # Instructions of inner loops: TOKEN 67
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
    data(2, 0xB08C)  # sub sp, 48
    data(2, 0x9304)  # str r3, [sp, 16]  a
    data(2, 0x9005)  # str r0, [sp, 20]  buffer
    ldr(r4, [r3, 16])  # WIDTH
    data(2, 0x9409)  # str r4, [sp, 36]  columns
    mov(r4, 0)
    data(2, 0x9406)  # str r4, [sp, 24]  column
    label(COLUMN)
    data(2, 0x9B04)  # ldr r3, [sp, 16]  a
    data(2, 0x9D05)  # ldr r5, [sp, 20]  buffer
    ldr(r4, [r3, 44])  # DOTS
    add(r4, r4, r5)
    mov(r8, r4)
    ldr(r4, [r3, 4])  # RUNS
    data(2, 0x9408)  # str r4, [sp, 32]  runs_left
    mov(r4, r3)
    add(r4, 180)  # RUN
    data(2, 0x9407)  # str r4, [sp, 28]  run
    data(2, 0x9A06)  # ldr r2, [sp, 24]  column
    mov(r4, 0)
    cmp(r2, 0)
    beq(L1)
    mvn(r4, r4)
    label(L1)
    mov(r11, r4)
    label(RUN)
    data(2, 0x9B04)  # ldr r3, [sp, 16]  a
    data(2, 0x9E05)  # ldr r6, [sp, 20]  buffer
    data(2, 0x9F07)  # ldr r7, [sp, 28]  run
    ldr(r4, [r3, 68])  # QUERY
    add(r4, r4, r6)
    add(r4, 16)  # QUERY_WORDS
    ldr(r5, [r7, 12])  # RUN_SINKS
    cmp(r5, 0)
    beq(L2)
    ldr(r5, [r3, 72])  # SINK_QUERY
    add(r4, r4, r5)
    label(L2)
    ldr(r0, [r3, 12])  # SLICES
    lsl(r0, r0, 2)
    add(r4, r4, r0)
    data(2, 0x9806)  # ldr r0, [sp, 24]  column
    lsl(r0, r0, 1)
    add(r4, r4, r0)
    add(r0, r0, r6)
    ldr(r5, [r3, 20])  # CODES
    add(r0, r0, r5)
    ldr(r5, [r7, 0])  # RUN_CODES
    add(r0, r0, r5)
    ldr(r5, [r3, 8])  # ROW
    mov(r10, r5)
    ldr(r5, [r7, 8])  # RUN_COUNT
    lsl(r5, r5, 2)
    data(2, 0x4445)  # add r5, r8
    mov(r9, r5)
    add(r7, 16)  # RUN_WORDS
    data(2, 0x9707)  # str r7, [sp, 28]  run
    ldr(r5, [r4, 0])
    data(2, 0xB22E)  # sxth r6, r5
    sub(r5, r5, r6)
    asr(r5, r5, 16)
    data(2, 0x9500)  # str r5, [sp, 0]  code0
    data(2, 0x9602)  # str r6, [sp, 8]  code2
    ldr(r5, [r4, 4])
    data(2, 0xB22E)  # sxth r6, r5
    sub(r5, r5, r6)
    asr(r5, r5, 16)
    data(2, 0x9501)  # str r5, [sp, 4]  code1
    data(2, 0x9603)  # str r6, [sp, 12]  code3
    ldr(r2, [r3, 48])  # KSCALE
    data(2, 0x9D05)  # ldr r5, [sp, 20]  buffer
    add(r2, r2, r5)
    mov(r1, 1)
    lsl(r1, r1, 10)
    lsl(r4, r2, 1)
    mov(r5, r3)
    add(r5, 128)  # HEAD_DIM
    ldr(r5, [r5, 40])  # VARIED
    ldr(r6, [r3, 44])  # DOTS
    sub(r4, r4, r6)
    data(2, 0x9E05)  # ldr r6, [sp, 20]  buffer
    sub(r4, r4, r6)
    cmp(r5, 0)
    bne(L3)
    mov(r4, 0)
    label(L3)
    data(2, 0x940B)  # str r4, [sp, 44]  levels
    sub(r2, r2, r1)
    lsl(r5, r5, 3)
    sub(r5, r2, r5)
    data(2, 0x950A)  # str r5, [sp, 40]  table
    sub(r1, 1)
    label(TOKEN)
    mov(r6, r8)
    data(2, 0x9C0B)  # ldr r4, [sp, 44]  levels
    cmp(r4, 0)
    beq(L4)
    add(r4, r4, r6)
    lsr(r4, r4, 1)
    ldrb(r4, [r4, 0])
    lsl(r4, r4, 3)
    data(2, 0x9A0A)  # ldr r2, [sp, 40]  table
    add(r2, r2, r4)
    label(L4)
    ldr(r7, [r6, 0])
    mov(r4, r11)
    and_(r7, r4)
    ldrh(r4, [r0, 0])
    lsr(r5, r4, 10)
    lsl(r5, r5, 3)
    add(r5, r5, r2)
    data(2, 0xCD48)  # ldm r5!, {r3, r6}
    and_(r4, r1)
    mul(r4, r3)
    asr(r4, r4, 9)
    add(r4, r4, r6)
    data(2, 0x9E00)  # ldr r6, [sp, 0]  code0
    mul(r4, r6)
    add(r7, r7, r4)
    ldrh(r4, [r0, 2])
    lsr(r5, r4, 10)
    lsl(r5, r5, 3)
    add(r5, r5, r2)
    data(2, 0xCD48)  # ldm r5!, {r3, r6}
    and_(r4, r1)
    mul(r4, r3)
    asr(r4, r4, 9)
    add(r4, r4, r6)
    data(2, 0x9E01)  # ldr r6, [sp, 4]  code1
    mul(r4, r6)
    add(r7, r7, r4)
    ldrh(r4, [r0, 4])
    lsr(r5, r4, 10)
    lsl(r5, r5, 3)
    add(r5, r5, r2)
    data(2, 0xCD48)  # ldm r5!, {r3, r6}
    and_(r4, r1)
    mul(r4, r3)
    asr(r4, r4, 9)
    add(r4, r4, r6)
    data(2, 0x9E02)  # ldr r6, [sp, 8]  code2
    mul(r4, r6)
    add(r7, r7, r4)
    ldrh(r4, [r0, 6])
    lsr(r5, r4, 10)
    lsl(r5, r5, 3)
    add(r5, r5, r2)
    data(2, 0xCD48)  # ldm r5!, {r3, r6}
    and_(r4, r1)
    mul(r4, r3)
    asr(r4, r4, 9)
    add(r4, r4, r6)
    data(2, 0x9E03)  # ldr r6, [sp, 12]  code3
    mul(r4, r6)
    add(r7, r7, r4)
    data(2, 0x4450)  # add r0, r10
    mov(r6, r8)
    data(2, 0xC680)  # stm r6!, {r7}
    mov(r8, r6)
    data(2, 0x454E)  # cmp r6, r9
    bne(TOKEN)
    data(2, 0x9C08)  # ldr r4, [sp, 32]  runs_left
    sub(r4, 1)
    data(2, 0x9408)  # str r4, [sp, 32]  runs_left
    beq(L5)
    b(RUN)
    label(L5)
    data(2, 0x9C06)  # ldr r4, [sp, 24]  column
    add(r4, 4)
    data(2, 0x9406)  # str r4, [sp, 24]  column
    data(2, 0x9D09)  # ldr r5, [sp, 36]  columns
    cmp(r4, r5)
    bge(L6)
    b(COLUMN)
    label(L6)
    data(2, 0xB00C)  # add sp, 48
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def av(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 spare, r3 attend
    # Small weights times the numbers of rows, summed over tokens: plain.py's av.
    # From int32[N] at DOTS, words at UNITS and float16 at VCODES to int32[V_WIDTH / 2] at SUMS, a column
    # of 2 numbers after the other; CORR is what the sums start from.
    # r0 numbers, r1 weights, r2 table, r3 mantissa, r4 number, r5 its entry, r6 t or weight, r7 base, r8
    # r9 sums of two channels, r10 row, r11 as r2, r12 weight, lr end of this part
    # Instructions of inner loops: HALF 32, TOKEN 29
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
    data(2, 0xB08F)  # sub sp, 60
    data(2, 0x9300)  # str r3, [sp, 0]  a
    data(2, 0x9001)  # str r0, [sp, 4]  buffer
    mov(r4, 1)
    lsl(r4, r4, 29)
    str(r4, [r3, 100])  # CORR
    mov(r7, r3)
    add(r7, 128)  # HEAD_DIM
    ldr(r4, [r7, 32])  # V_WIDTH
    data(2, 0x9409)  # str r4, [sp, 36]  row_bytes
    ldr(r4, [r3, 48])  # KSCALE
    add(r4, r4, r0)
    mov(r5, 2)
    lsl(r5, r5, 8)
    sub(r4, r4, r5)
    mov(r11, r4)
    ldr(r4, [r3, 8])  # ROW
    mov(r10, r4)
    mov(r4, 0)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x940A)  # str r4, [sp, 40]  part
    lsl(r3, r5, 1)
    sub(r3, 1)
    label(COLUMN)
    data(2, 0x9E00)  # ldr r6, [sp, 0]  a
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    data(2, 0x9A02)  # ldr r2, [sp, 8]  column
    ldr(r4, [r6, 64])  # SUMS
    add(r4, r4, r5)
    lsl(r2, r2, 1)
    add(r4, r4, r2)
    data(2, 0x9408)  # str r4, [sp, 32]  sums
    ldr(r2, [r6, 100])  # CORR
    str(r2, [r4, 0])
    str(r2, [r4, 4])
    ldr(r1, [r6, 44])  # DOTS
    add(r1, r1, r5)
    ldr(r4, [r6, 60])  # UNITS
    add(r4, r4, r5)
    data(2, 0x9407)  # str r4, [sp, 28]  units
    ldr(r4, [r6, 0])  # N
    data(2, 0x9404)  # str r4, [sp, 16]  tokens_left
    mov(r4, r6)
    add(r4, 180)  # RUN
    data(2, 0x9403)  # str r4, [sp, 12]  run
    mov(r4, 0)
    data(2, 0x9405)  # str r4, [sp, 20]  run_left
    mov(r8, r4)
    mov(r9, r4)
    mov(r2, r11)
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
    data(2, 0x9C00)  # ldr r4, [sp, 0]  a
    ldr(r0, [r4, 24])  # VCODES
    data(2, 0x9D02)  # ldr r5, [sp, 8]  column
    add(r0, r0, r5)
    data(2, 0x9D01)  # ldr r5, [sp, 4]  buffer
    add(r0, r0, r5)
    data(2, 0x9C03)  # ldr r4, [sp, 12]  run
    ldr(r5, [r4, 0])  # RUN_CODES
    add(r0, r0, r5)
    ldr(r6, [r4, 8])  # RUN_COUNT
    add(r4, 16)  # RUN_WORDS
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
    data(2, 0x9F07)  # ldr r7, [sp, 28]  units
    ldrb(r7, [r7, 3])
    cmp(r7, 0)
    beq(L4)
    cmp(r7, 1)
    beq(L5)
    mov(r4, r14)
    sub(r1, r4, r1)
    lsr(r1, r1, 2)
    mov(r5, r10)
    mul(r1, r5)
    add(r0, r0, r1)
    mov(r1, r4)
    b(PART_END)
    label(L5)
    data(2, 0x9F0A)  # ldr r7, [sp, 40]  part
    cmp(r7, 0)
    bne(L6)
    data(2, 0x900B)  # str r0, [sp, 44]  from_row
    data(2, 0x910C)  # str r1, [sp, 48]  from_weight
    mov(r4, r14)
    sub(r4, r4, r1)
    lsr(r4, r4, 2)
    data(2, 0x9D05)  # ldr r5, [sp, 20]  run_left
    add(r4, r4, r5)
    data(2, 0x940D)  # str r4, [sp, 52]  from_left
    data(2, 0x9C03)  # ldr r4, [sp, 12]  run
    data(2, 0x940E)  # str r4, [sp, 56]  from_run
    mov(r7, 1)
    lsl(r7, r7, 8)
    data(2, 0x970A)  # str r7, [sp, 40]  part
    label(L6)
    label(HALF)
    data(2, 0x9F0A)  # ldr r7, [sp, 40]  part
    data(2, 0xC940)  # ldm r1!, {r6}
    lsr(r6, r7)
    data(2, 0xB2B6)  # uxth r6, r6
    mov(r12, r6)
    ldrh(r4, [r0, 0])
    lsr(r5, r4, 10)
    lsl(r5, r5, 3)
    add(r5, r5, r2)
    data(2, 0xCDC0)  # ldm r5!, {r6, r7}
    and_(r4, r3)
    mul(r4, r6)
    asr(r4, r4, 9)
    add(r4, r4, r7)
    mov(r6, r12)
    mul(r4, r6)
    data(2, 0x44A0)  # add r8, r4
    ldrh(r4, [r0, 2])
    lsr(r5, r4, 10)
    lsl(r5, r5, 3)
    add(r5, r5, r2)
    data(2, 0xCDC0)  # ldm r5!, {r6, r7}
    and_(r4, r3)
    mul(r4, r6)
    asr(r4, r4, 9)
    add(r4, r4, r7)
    mov(r6, r12)
    mul(r4, r6)
    data(2, 0x44A1)  # add r9, r4
    data(2, 0x4450)  # add r0, r10
    data(2, 0x4571)  # cmp r1, lr
    bne(HALF)
    b(PART_END)
    label(L4)
    label(TOKEN)
    data(2, 0xC940)  # ldm r1!, {r6}
    mov(r12, r6)
    ldrh(r4, [r0, 0])
    lsr(r5, r4, 10)
    lsl(r5, r5, 3)
    add(r5, r5, r2)
    data(2, 0xCDC0)  # ldm r5!, {r6, r7}
    and_(r4, r3)
    mul(r4, r6)
    asr(r4, r4, 9)
    add(r4, r4, r7)
    mov(r6, r12)
    mul(r4, r6)
    data(2, 0x44A0)  # add r8, r4
    ldrh(r4, [r0, 2])
    lsr(r5, r4, 10)
    lsl(r5, r5, 3)
    add(r5, r5, r2)
    data(2, 0xCDC0)  # ldm r5!, {r6, r7}
    and_(r4, r3)
    mul(r4, r6)
    asr(r4, r4, 9)
    add(r4, r4, r7)
    mov(r6, r12)
    mul(r4, r6)
    data(2, 0x44A1)  # add r9, r4
    data(2, 0x4450)  # add r0, r10
    data(2, 0x4571)  # cmp r1, lr
    bne(TOKEN)
    label(PART_END)
    data(2, 0x9F06)  # ldr r7, [sp, 24]  batch_left
    cmp(r7, 0)
    bne(PART)
    data(2, 0x9C07)  # ldr r4, [sp, 28]  units
    data(2, 0xCC20)  # ldm r4!, {r5}
    data(2, 0x9407)  # str r4, [sp, 28]  units
    data(2, 0xB2AE)  # uxth r6, r5
    lsr(r5, r5, 16)
    lsr(r4, r5, 10)
    bcs(BATCH_END)
    data(2, 0x9C08)  # ldr r4, [sp, 32]  sums
    lsr(r2, r5, 9)
    bcc(L7)
    data(2, 0x9A0A)  # ldr r2, [sp, 40]  part
    cmp(r2, 16)
    bne(L8)
    add(r5, 5)
    mov(r2, 0)
    data(2, 0x920A)  # str r2, [sp, 40]  part
    b(TURNED)
    label(L8)
    mov(r2, 16)
    data(2, 0x920A)  # str r2, [sp, 40]  part
    data(2, 0x9A0C)  # ldr r2, [sp, 48]  from_weight
    sub(r1, r1, r2)
    lsr(r1, r1, 2)
    data(2, 0x9F04)  # ldr r7, [sp, 16]  tokens_left
    add(r7, r7, r1)
    data(2, 0x9704)  # str r7, [sp, 16]  tokens_left
    data(2, 0x9F0E)  # ldr r7, [sp, 56]  from_run
    data(2, 0x9703)  # str r7, [sp, 12]  run
    mov(r1, r2)
    data(2, 0x980B)  # ldr r0, [sp, 44]  from_row
    data(2, 0x9F0D)  # ldr r7, [sp, 52]  from_left
    data(2, 0x9705)  # str r7, [sp, 20]  run_left
    data(2, 0x9F07)  # ldr r7, [sp, 28]  units
    sub(r7, 4)
    data(2, 0x9707)  # str r7, [sp, 28]  units
    label(TURNED)
    label(L7)
    mov(r7, r8)
    lsl(r2, r7, 17)
    lsr(r2, r2, 17)
    mul(r2, r6)
    lsr(r2, r2, 15)
    asr(r7, r7, 15)
    mul(r7, r6)
    add(r7, r7, r2)
    asr(r7, r5)
    ldr(r2, [r4, 0])
    adc(r2, r7)
    str(r2, [r4, 0])
    mov(r7, r9)
    lsl(r2, r7, 17)
    lsr(r2, r2, 17)
    mul(r2, r6)
    lsr(r2, r2, 15)
    asr(r7, r7, 15)
    mul(r7, r6)
    add(r7, r7, r2)
    asr(r7, r5)
    ldr(r2, [r4, 4])
    adc(r2, r7)
    str(r2, [r4, 4])
    mov(r2, 0)
    mov(r8, r2)
    mov(r9, r2)
    label(BATCH_END)
    mov(r2, r11)
    data(2, 0x9D04)  # ldr r5, [sp, 16]  tokens_left
    cmp(r5, 0)
    beq(L9)
    b(BATCH)
    label(L9)
    data(2, 0x9C02)  # ldr r4, [sp, 8]  column
    add(r4, 4)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x9D09)  # ldr r5, [sp, 36]  row_bytes
    cmp(r4, r5)
    bge(L10)
    b(COLUMN)
    label(L10)
    data(2, 0xB00F)  # add sp, 60
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)
