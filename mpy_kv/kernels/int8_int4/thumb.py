# Made by `python tools/generate_kernels.py --write` from tools/kernelgen/sources/int8_int4.py: change that.
"""av of int8-int4 in Thumb assembler: the bits of plain.py here. Style and limits: ../thumb.py."""

import micropython


@micropython.asm_thumb
def av(r0, r1, r2, r3):
    # r0 buffer, r1 same, r2 mask, r3 attend
    # Small weights times the nibbles of a slice, summed over tokens: plain.py's av, B5 and B6.
    # From int32[N] at DOTS, words at UNITS and codes of 4 bits at VCODES to int32[2 * V_WIDTH] at SUMS, a
    # column of 8 codes after the other.
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
    mov(r2, 240)
    lsl(r4, r2, 16)
    orr(r2, r4)
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
    data(2, 0x9F07)  # ldr r7, [sp, 28]  units
    ldrb(r7, [r7, 3])
    cmp(r7, 0)
    beq(L4)
    cmp(r7, 1)
    beq(L5)
    mov(r4, r14)
    sub(r1, r4, r1)
    lsr(r1, r1, 2)
    mov(r5, r12)
    add(r5, 4)
    mul(r1, r5)
    add(r0, r0, r1)
    mov(r1, r4)
    b(PART_END)
    label(L5)
    data(2, 0x9F0B)  # ldr r7, [sp, 44]  part
    cmp(r7, 0)
    bne(L6)
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
    label(L6)
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
    label(L4)
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
    bcc(L7)
    data(2, 0x9D0B)  # ldr r5, [sp, 44]  part
    cmp(r5, 16)
    bne(L8)
    add(r4, 5)
    mov(r5, 0)
    data(2, 0x950B)  # str r5, [sp, 44]  part
    b(TURNED)
    label(L8)
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
    label(L7)
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
    beq(L9)
    b(BATCH)
    label(L9)
    data(2, 0x9C02)  # ldr r4, [sp, 8]  column
    add(r4, 4)
    data(2, 0x9402)  # str r4, [sp, 8]  column
    data(2, 0x9D0A)  # ldr r5, [sp, 40]  columns_left
    cmp(r5, 4)
    ble(L10)
    b(COLUMN)
    label(L10)
    data(2, 0xB010)  # add sp, 64
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)
