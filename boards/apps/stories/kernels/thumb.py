# Made by `python tools/generate_kernels.py --write` from tools/kernelgen/sources/stories.py: change that.
"""The kernels of plain.py in Thumb assembler: same bits, less than half of viper's instructions and of its
code.

ARMv6-M only, so RP2040 and RP2350 run the same code. Parameters `a` and bounds B1..B7 are those of
plain.py, fields those of tools/field_tables/stories.py. `data(2, ...)` is an instruction that MicroPython's
assembler lacks, written beside it in the assembler's own words. r8 and above hold what the loop only adds
or compares; they belong to the caller, so whoever uses r8..r11 saves them first. `adc` after `asr` adds the
bit shifted out last: round half up in one instruction. The shift is by 1 at least: what a shift by 0 leaves
of the carry, some emulators of this core get wrong.
"""

import micropython


@micropython.asm_thumb
def embed(r0, r1, r2):
    # r0 image, r1 vectors, r2 fields
    # One row of the embedding as fixed point, ROW_COLUMNS values at ROW_TO: plain.py's embed.
    # r0 codes, r1 result, r2 twice the scale, r3 scales, r4 shift left, r5 shift right + 1, r8 most, r9
    # least, r10 end of the group, r12 end of the result. Twice the product is shifted, so by 1 at least;
    # and by 31 at most: a product has 24 bits, 30 is as good as more.
    # Instructions of inner loops: ELEMENT 18
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
    ldr(r3, [r2, 12])  # ROW_AT
    add(r0, r0, r3)
    ldr(r3, [r2, 4])  # ROW_CODES
    add(r3, r3, r0)
    ldr(r4, [r2, 8])  # ROW_TO
    lsl(r4, r4, 2)
    add(r1, r1, r4)
    ldr(r4, [r2, 0])  # ROW_COLUMNS
    lsl(r4, r4, 2)
    add(r4, r4, r1)
    mov(r12, r4)
    ldr(r4, [r2, 16])  # ROW_EXPONENT
    mov(r5, 30)
    cmp(r4, r5)
    ble(L1)
    mov(r4, r5)
    label(L1)
    neg(r5, r5)
    cmp(r4, r5)
    bge(L2)
    mov(r4, r5)
    label(L2)
    mov(r6, 1)
    lsl(r6, r6, 30)
    sub(r6, 1)
    mov(r5, 0)
    cmp(r4, 0)
    bge(L3)
    neg(r5, r4)
    mov(r4, 0)
    label(L3)
    lsr(r6, r4)
    mov(r8, r6)
    neg(r6, r6)
    mov(r9, r6)
    add(r5, 1)
    b(TEST)
    label(GROUP)
    ldrh(r2, [r3, 0])
    lsl(r2, r2, 1)
    add(r3, 2)
    mov(r7, r0)
    add(r7, 32)
    mov(r10, r7)
    mov(r7, 0)
    label(ELEMENT)
    ldrb(r6, [r0, 0])
    add(r0, 1)
    sub(r6, 128)
    mul(r6, r2)
    asr(r6, r5)
    adc(r6, r7)
    data(2, 0x4546)  # cmp r6, r8
    ble(L4)
    mov(r6, r8)
    label(L4)
    data(2, 0x454E)  # cmp r6, r9
    bge(L5)
    mov(r6, r9)
    label(L5)
    lsl(r6, r4)
    data(2, 0xC140)  # stm r1!, {r6}
    data(2, 0x4561)  # cmp r1, r12
    beq(END)
    data(2, 0x4550)  # cmp r0, r10
    bne(ELEMENT)
    label(TEST)
    data(2, 0x4561)  # cmp r1, r12
    bne(GROUP)
    label(END)
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def norm(r0, r1, r2):
    # r0 image, r1 vectors, r2 fields
    # x * weight of N values at TO, and the root of the mean square: plain.py's norm, B5, B6.
    # r0 weights, r1 result, r3 source, r5 shift, r8 half, r9 a, r12 end of the source, r2:r6 sum of
    # squares
    # Instructions of inner loops: LARGEST 9, FOLD 5, SQUARE 14, PAD 3, DIVIDE 9, HIGH 5, LOW 5, BIT 8
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
    mov(r9, r2)
    ldr(r3, [r2, 28])  # FROM
    lsl(r3, r3, 2)
    add(r3, r3, r1)
    ldr(r5, [r2, 0])  # N
    lsl(r5, r5, 2)
    add(r5, r5, r3)
    mov(r12, r5)
    ldr(r5, [r2, 24])  # WEIGHTS
    add(r0, r0, r5)
    ldr(r5, [r2, 8])  # TO
    lsl(r5, r5, 2)
    add(r1, r1, r5)
    mov(r7, r3)
    mov(r6, 0)
    label(LARGEST)
    data(2, 0xCF10)  # ldm r7!, {r4}
    asr(r5, r4, 31)
    add(r4, r4, r5)
    eor(r4, r5)
    cmp(r4, r6)
    ble(L1)
    mov(r6, r4)
    label(L1)
    data(2, 0x4567)  # cmp r7, r12
    bne(LARGEST)
    mov(r5, 0)
    label(FOLD)
    lsr(r4, r6, 15)
    beq(FOLDED)
    lsr(r6, r6, 1)
    add(r5, 1)
    b(FOLD)
    label(FOLDED)
    mov(r4, 1)
    lsl(r4, r5)
    lsr(r4, r4, 1)
    mov(r8, r4)
    mov(r2, 0)
    mov(r6, 0)
    label(SQUARE)
    data(2, 0xCB10)  # ldm r3!, {r4}
    data(2, 0x4444)  # add r4, r8
    asr(r4, r5)
    ldrh(r7, [r0, 0])
    add(r0, 2)
    data(2, 0xB23F)  # sxth r7, r7
    mul(r7, r4)
    data(2, 0xC180)  # stm r1!, {r7}
    mul(r4, r4)
    mov(r7, 0)
    add(r6, r6, r4)
    adc(r2, r7)
    data(2, 0x4563)  # cmp r3, r12
    bne(SQUARE)
    mov(r3, r9)
    ldr(r4, [r3, 4])  # PADDED
    ldr(r3, [r3, 0])  # N
    sub(r4, r4, r3)
    ble(L2)
    mov(r7, 0)
    label(PAD)
    data(2, 0xC180)  # stm r1!, {r7}
    sub(r4, 1)
    bne(PAD)
    label(L2)
    lsl(r2, r2, 16)
    lsr(r0, r6, 16)
    orr(r2, r0)
    lsl(r6, r6, 16)
    mov(r0, 0)
    mov(r4, 0)
    mov(r7, 48)
    label(DIVIDE)
    add(r6, r6, r6)
    adc(r2, r2)
    adc(r0, r0)
    cmp(r0, r3)
    bcc(L3)
    sub(r0, r0, r3)
    label(L3)
    adc(r4, r4)
    sub(r7, 1)
    bne(DIVIDE)
    mov(r3, r9)
    ldr(r6, [r3, 36])  # EPS
    lsr(r6, r5)
    lsr(r6, r5)
    add(r4, r4, r6)
    ldr(r5, [r3, 32])  # WEIGHTS_EXPONENT
    mov(r0, 1)
    lsl(r0, r0, 14)
    cmp(r4, 0)
    beq(ROOTED)
    label(HIGH)
    lsr(r6, r4, 30)
    beq(LOW)
    lsr(r4, r4, 2)
    sub(r5, 1)
    b(HIGH)
    label(LOW)
    lsr(r6, r4, 28)
    bne(L4)
    lsl(r4, r4, 2)
    add(r5, 1)
    b(LOW)
    label(L4)
    mov(r1, r0)
    mov(r0, 0)
    label(BIT)
    add(r2, r0, r1)
    mov(r7, r2)
    mul(r7, r2)
    cmp(r7, r4)
    bhi(L5)
    mov(r0, r2)
    label(L5)
    lsr(r1, r1, 1)
    bne(BIT)
    mov(r7, r0)
    mul(r7, r0)
    sub(r4, r4, r7)
    cmp(r4, r0)
    bls(ROOTED)
    add(r0, 1)
    label(ROOTED)
    str(r0, [r3, 16])  # ROOT
    str(r5, [r3, 20])  # EXPONENT
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def quant(r0, r1):
    # r0 vectors, r1 fields
    # The vector at TO as an activation vector at ACT: plain.py's quant.
    # r0 source, r3 result, r8 half, r9 1 << 21, r10 total, r11 fold, r12 end of the source. sp: a, the
    # starts
    # Instructions of inner loops: TOP 22, FOLD 5, TOTAL 6, UP 5, DOWN 6, NARROW 6, WIDEN 5, CODES 40,
    # DIVIDE 6
    cmp(r1, 0)
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
    ldr(r2, [r1, 8])  # TO
    lsl(r2, r2, 2)
    add(r2, r2, r0)
    ldr(r3, [r1, 12])  # ACT
    lsl(r3, r3, 2)
    add(r3, r3, r0)
    ldr(r4, [r1, 4])  # PADDED
    lsl(r4, r4, 2)
    add(r4, r4, r2)
    mov(r12, r4)
    push({r1, r2, r3})
    mov(r0, r3)
    add(r0, 8)
    mov(r7, 0)
    label(TOPS)
    mov(r6, 0)
    mov(r5, r2)
    add(r5, 128)
    mov(r8, r5)
    label(TOP)
    data(2, 0xCA18)  # ldm r2!, {r3, r4}
    asr(r5, r3, 31)
    asr(r3, r3, 2)
    eor(r3, r5)
    asr(r5, r4, 31)
    asr(r4, r4, 2)
    eor(r4, r5)
    add(r1, r3, r4)
    data(2, 0xCA18)  # ldm r2!, {r3, r4}
    asr(r5, r3, 31)
    asr(r3, r3, 2)
    eor(r3, r5)
    asr(r5, r4, 31)
    asr(r4, r4, 2)
    eor(r4, r5)
    add(r3, r3, r4)
    add(r1, r1, r3)
    cmp(r1, r6)
    ble(L1)
    mov(r6, r1)
    label(L1)
    data(2, 0x4542)  # cmp r2, r8
    bne(TOP)
    add(r6, 4)
    str(r6, [r0, 96])
    add(r0, 100)
    cmp(r6, r7)
    ble(L2)
    mov(r7, r6)
    label(L2)
    data(2, 0x4562)  # cmp r2, r12
    bne(TOPS)
    mov(r4, 0)
    label(FOLD)
    lsr(r5, r7, 15)
    beq(FOLDED)
    lsr(r7, r7, 1)
    add(r4, 1)
    b(FOLD)
    label(FOLDED)
    mov(r11, r4)
    data(2, 0x9B02)  # ldr r3, [sp, 8]  result
    mov(r2, r3)
    add(r2, 8)
    mov(r6, 0)
    label(TOTAL)
    ldr(r5, [r2, 96])
    lsr(r5, r4)
    add(r6, r6, r5)
    add(r2, 100)
    cmp(r2, r0)
    bne(TOTAL)
    mov(r10, r6)
    data(2, 0x9900)  # ldr r1, [sp, 0]  a
    ldr(r7, [r1, 20])  # EXPONENT
    add(r4, r4, r7)
    sub(r4, 20)
    mov(r5, 1)
    lsl(r5, r5, 29)
    label(UP)
    cmp(r6, r5)
    bcs(TOTALLED)
    lsl(r6, r6, 1)
    sub(r4, 1)
    b(UP)
    label(TOTALLED)
    ldr(r7, [r1, 16])  # ROOT
    lsr(r5, r7, 1)
    add(r6, r6, r5)
    lsl(r7, r7, 16)
    mov(r5, 1)
    lsl(r5, r5, 16)
    bl(DIVIDE)
    label(DOWN)
    lsr(r7, r5, 15)
    beq(STORE)
    add(r5, 1)
    lsr(r5, r5, 1)
    add(r4, 1)
    b(DOWN)
    label(STORE)
    data(2, 0xC320)  # stm r3!, {r5}
    str(r4, [r3, 0])
    add(r3, 4)
    data(2, 0x9801)  # ldr r0, [sp, 4]  source
    mov(r4, 1)
    lsl(r4, r4, 21)
    mov(r9, r4)
    label(GROUP)
    ldr(r1, [r3, 96])
    mov(r4, r11)
    mov(r6, r1)
    lsr(r6, r4)
    mov(r7, r10)
    mov(r5, 1)
    lsl(r5, r5, 18)
    bl(DIVIDE)
    lsr(r4, r7, 1)
    add(r6, r6, r4)
    mov(r4, 0)
    cmp(r6, r7)
    adc(r5, r4)
    str(r5, [r3, 96])
    mov(r4, 0)
    mov(r6, 1)
    label(NARROW)
    lsr(r5, r1, 13)
    lsr(r5, r4)
    beq(NARROWED)
    lsl(r6, r6, 1)
    add(r4, 1)
    b(NARROW)
    label(NARROWED)
    lsr(r6, r6, 1)
    mov(r8, r6)
    add(r1, r1, r6)
    lsr(r1, r4)
    mov(r2, 0)
    label(WIDEN)
    lsr(r5, r1, 12)
    bne(WIDENED)
    lsl(r1, r1, 1)
    add(r2, 1)
    b(WIDEN)
    label(WIDENED)
    lsl(r7, r1, 16)
    mov(r6, 1)
    lsl(r6, r6, 28)
    sub(r6, 1)
    mov(r5, 1)
    lsl(r5, r5, 16)
    bl(DIVIDE)
    mov(r7, r5)
    lsl(r7, r2)
    mov(r2, 1)
    lsl(r2, r2, 15)
    mov(r5, r0)
    add(r5, 128)
    mov(r14, r5)
    label(CODES)
    ldr(r5, [r0, 0])
    data(2, 0x4445)  # add r5, r8
    asr(r5, r4)
    mul(r5, r7)
    data(2, 0x444D)  # add r5, r9
    asr(r5, r5, 22)
    ldr(r1, [r0, 8])
    data(2, 0x4441)  # add r1, r8
    asr(r1, r4)
    mul(r1, r7)
    data(2, 0x4449)  # add r1, r9
    asr(r1, r1, 22)
    lsl(r5, r5, 16)
    add(r5, r5, r1)
    ldr(r6, [r0, 4])
    data(2, 0x4446)  # add r6, r8
    asr(r6, r4)
    mul(r6, r7)
    data(2, 0x444E)  # add r6, r9
    asr(r6, r6, 22)
    ldr(r1, [r0, 12])
    data(2, 0x4441)  # add r1, r8
    asr(r1, r4)
    mul(r1, r7)
    data(2, 0x4449)  # add r1, r9
    asr(r1, r1, 22)
    lsl(r6, r6, 16)
    add(r6, r6, r1)
    add(r0, 16)
    data(2, 0xC320)  # stm r3!, {r5}
    add(r1, r5, r6)
    lsl(r5, r5, 8)
    sub(r5, r6, r5)
    lsl(r6, r1, 7)
    lsl(r1, r1, 23)
    add(r6, r6, r1)
    sub(r6, r2, r6)
    data(2, 0xC360)  # stm r3!, {r5, r6}
    data(2, 0x4570)  # cmp r0, lr
    bne(CODES)
    add(r3, 4)
    data(2, 0x4560)  # cmp r0, r12
    beq(END)
    b(GROUP)
    label(DIVIDE)
    add(r6, r6, r6)
    cmp(r6, r7)
    bcc(L3)
    sub(r6, r6, r7)
    label(L3)
    adc(r5, r5)
    bcc(DIVIDE)
    bx(r14)
    label(END)
    data(2, 0xB003)  # add sp, 12
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def matvec(r0, r1, r2, r3):
    # r0 image, r1 vectors, r2 mask, r3 fields
    # M_ROWS rows of int8 weights times an activation vector: plain.py's matvec, B1 to B4.
    # r0 weights, r1 codes, r2 mask, r8 dot of a group, r9 scales of the weights, r10 2, r11 8192, r12 sum
    # of the row, lr end of the codes. The sums of all rows come first; then they are scaled where they
    # lie.
    # Instructions of inner loops: GROUP 87, SCALE 28
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
    ldr(r5, [r3, 20])  # M_TO
    lsl(r5, r5, 2)
    add(r5, r5, r1)
    ldr(r6, [r3, 4])  # M_ROWS
    lsl(r6, r6, 2)
    add(r6, r6, r5)
    ldr(r7, [r3, 12])  # M_SKIP
    mov(r4, r5)
    push({r4, r5, r6, r7})
    ldr(r4, [r3, 0])  # M_AT
    add(r0, r0, r4)
    ldr(r5, [r3, 16])  # M_ACT
    lsl(r5, r5, 2)
    add(r5, r5, r1)
    add(r5, 8)
    ldr(r7, [r3, 8])  # M_GROUPS
    lsl(r6, r7, 5)
    mov(r4, 100)
    mul(r4, r7)
    add(r4, r4, r5)
    mov(r14, r4)
    mov(r4, r3)
    push({r4, r5, r6})
    mov(r4, 2)
    mov(r10, r4)
    lsl(r4, r4, 12)
    mov(r11, r4)
    data(2, 0x9D04)  # ldr r5, [sp, 16]  result
    b(TEST)
    label(ROW)
    data(2, 0x9C02)  # ldr r4, [sp, 8]  row_bytes
    add(r4, r4, r0)
    mov(r9, r4)
    data(2, 0x9901)  # ldr r1, [sp, 4]  codes
    mov(r4, 0)
    mov(r12, r4)
    label(GROUP)
    data(2, 0xC9C0)  # ldm r1!, {r6, r7}
    data(2, 0xC818)  # ldm r0!, {r3, r4}
    lsr(r5, r3, 8)
    and_(r5, r2)
    mul(r3, r6)
    mul(r5, r7)
    add(r3, r3, r5)
    data(2, 0xC9E0)  # ldm r1!, {r5, r6, r7}
    add(r3, r3, r5)
    asr(r3, r3, 16)
    mov(r8, r3)
    lsr(r5, r4, 8)
    and_(r5, r2)
    mul(r4, r6)
    mul(r5, r7)
    add(r4, r4, r5)
    data(2, 0xC9E0)  # ldm r1!, {r5, r6, r7}
    add(r4, r4, r5)
    asr(r4, r4, 16)
    data(2, 0x44A0)  # add r8, r4
    data(2, 0xC818)  # ldm r0!, {r3, r4}
    lsr(r5, r3, 8)
    and_(r5, r2)
    mul(r3, r6)
    mul(r5, r7)
    add(r3, r3, r5)
    data(2, 0xC9E0)  # ldm r1!, {r5, r6, r7}
    add(r3, r3, r5)
    asr(r3, r3, 16)
    data(2, 0x4498)  # add r8, r3
    lsr(r5, r4, 8)
    and_(r5, r2)
    mul(r4, r6)
    mul(r5, r7)
    add(r4, r4, r5)
    data(2, 0xC9E0)  # ldm r1!, {r5, r6, r7}
    add(r4, r4, r5)
    asr(r4, r4, 16)
    data(2, 0x44A0)  # add r8, r4
    data(2, 0xC818)  # ldm r0!, {r3, r4}
    lsr(r5, r3, 8)
    and_(r5, r2)
    mul(r3, r6)
    mul(r5, r7)
    add(r3, r3, r5)
    data(2, 0xC9E0)  # ldm r1!, {r5, r6, r7}
    add(r3, r3, r5)
    asr(r3, r3, 16)
    data(2, 0x4498)  # add r8, r3
    lsr(r5, r4, 8)
    and_(r5, r2)
    mul(r4, r6)
    mul(r5, r7)
    add(r4, r4, r5)
    data(2, 0xC9E0)  # ldm r1!, {r5, r6, r7}
    add(r4, r4, r5)
    asr(r4, r4, 16)
    data(2, 0x44A0)  # add r8, r4
    data(2, 0xC818)  # ldm r0!, {r3, r4}
    lsr(r5, r3, 8)
    and_(r5, r2)
    mul(r3, r6)
    mul(r5, r7)
    add(r3, r3, r5)
    data(2, 0xC9E0)  # ldm r1!, {r5, r6, r7}
    add(r3, r3, r5)
    asr(r3, r3, 16)
    data(2, 0x4498)  # add r8, r3
    lsr(r5, r4, 8)
    and_(r5, r2)
    mul(r4, r6)
    mul(r5, r7)
    add(r4, r4, r5)
    data(2, 0xC960)  # ldm r1!, {r5, r6}
    add(r4, r4, r5)
    asr(r4, r4, 16)
    data(2, 0x4444)  # add r4, r8
    mov(r5, r9)
    ldrh(r5, [r5, 0])
    data(2, 0x44D1)  # add r9, r10
    mul(r4, r5)
    data(2, 0x445C)  # add r4, r11
    asr(r4, r4, 14)
    mul(r4, r6)
    data(2, 0x44A4)  # add r12, r4
    data(2, 0x4571)  # cmp r1, lr
    bne(GROUP)
    mov(r4, r12)
    data(2, 0x9D04)  # ldr r5, [sp, 16]  result
    data(2, 0xC510)  # stm r5!, {r4}
    data(2, 0x9504)  # str r5, [sp, 16]  result
    data(2, 0x9C06)  # ldr r4, [sp, 24]  skip
    add(r0, r0, r4)
    label(TEST)
    data(2, 0x9C05)  # ldr r4, [sp, 20]  end
    cmp(r5, r4)
    bne(ROW)
    mov(r1, r4)
    data(2, 0x9B00)  # ldr r3, [sp, 0]  a
    ldr(r4, [r3, 24])  # M_EXPONENT
    data(2, 0x9801)  # ldr r0, [sp, 4]  codes
    sub(r0, 8)
    data(2, 0xC824)  # ldm r0!, {r2, r5}
    add(r4, r4, r5)
    add(r4, 29)
    mov(r3, 31)
    cmp(r4, r3)
    ble(L1)
    mov(r4, r3)
    label(L1)
    neg(r3, r3)
    cmp(r4, r3)
    bge(L2)
    mov(r4, r3)
    label(L2)
    mov(r6, 1)
    lsl(r6, r6, 30)
    sub(r6, 1)
    mov(r3, 0)
    cmp(r4, 0)
    bge(L3)
    neg(r3, r4)
    mov(r4, 0)
    label(L3)
    lsr(r6, r4)
    data(2, 0x9803)  # ldr r0, [sp, 12]  first
    mov(r8, r6)
    neg(r6, r6)
    mov(r9, r6)
    mov(r10, r4)
    b(SCALED)
    label(SCALE)
    ldr(r4, [r0, 0])
    lsl(r5, r4, 17)
    lsr(r5, r5, 17)
    asr(r4, r4, 15)
    mul(r4, r2)
    mul(r5, r2)
    lsr(r5, r5, 15)
    add(r4, r4, r5)
    cmp(r3, 0)
    beq(L4)
    asr(r4, r3)
    mov(r5, 0)
    adc(r4, r5)
    data(2, 0xC010)  # stm r0!, {r4}
    cmp(r0, r1)
    bne(SCALE)
    b(END)
    label(L4)
    data(2, 0x4544)  # cmp r4, r8
    ble(L5)
    mov(r4, r8)
    label(L5)
    data(2, 0x454C)  # cmp r4, r9
    bge(L6)
    mov(r4, r9)
    label(L6)
    mov(r5, r10)
    lsl(r4, r5)
    data(2, 0xC010)  # stm r0!, {r4}
    label(SCALED)
    cmp(r0, r1)
    bne(SCALE)
    label(END)
    data(2, 0xB007)  # add sp, 28
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def rope_table(r0, r1, r2, r3):
    # r0 increments, r1 turns, r2 sine, r3 fields
    # cos and sin of a position, int16[FREQUENCIES][2]: plain.py's rope_table.
    # r0 increments, r1 result, r2 sine, r3 end of the increments, r8 position, r12 phase
    # Instructions of inner loops: TURN 32
    cmp(r3, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    mov(r4, r8)
    push({r4})
    ldr(r4, [r3, 4])  # POSITION
    mov(r8, r4)
    ldr(r3, [r3, 0])  # FREQUENCIES
    lsl(r3, r3, 2)
    add(r3, r3, r0)
    b(TEST)
    label(TURN)
    data(2, 0xC810)  # ldm r0!, {r4}
    mov(r5, r8)
    mul(r4, r5)
    mov(r12, r4)
    lsl(r4, r4, 2)
    lsr(r4, r4, 2)
    push({r4})
    bl(LOOKUP)
    pop({r4})
    push({r6})
    mov(r5, 1)
    lsl(r5, r5, 30)
    sub(r4, r5, r4)
    bl(LOOKUP)
    pop({r5})
    mov(r4, r12)
    lsl(r7, r4, 1)
    bpl(L1)
    mov(r7, r5)
    mov(r5, r6)
    neg(r6, r7)
    label(L1)
    cmp(r4, 0)
    bge(L2)
    neg(r5, r5)
    neg(r6, r6)
    label(L2)
    strh(r6, [r1, 0])
    strh(r5, [r1, 2])
    add(r1, 4)
    label(TEST)
    cmp(r0, r3)
    bne(TURN)
    b(END)
    label(LOOKUP)
    lsr(r5, r4, 22)
    lsl(r5, r5, 1)
    add(r5, r5, r2)
    ldrh(r6, [r5, 0])
    ldrh(r7, [r5, 2])
    sub(r7, r7, r6)
    lsl(r5, r4, 10)
    lsr(r5, r5, 17)
    mul(r7, r5)
    asr(r7, r7, 15)
    adc(r6, r7)
    lsr(r7, r6, 15)
    sub(r6, r6, r7)
    bx(r14)
    label(END)
    pop({r4})
    mov(r8, r4)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def rotate(r0, r1, r2, r3):
    # r0 vectors, r1 result, r2 turns, r3 fields
    # R_HEADS heads rotated, as int16: plain.py's rotate, B7.
    # r0 source, r1 result, r2 cosine and sine, r3 gap in bytes of the result, r8 step in bytes of the
    # source, r9 32767, r10 -32767, r11 0x4000. sp: the table, its end, end of the result, its bytes to
    # the next head
    # Instructions of inner loops: PAIR 61
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
    ldr(r4, [r3, 0])  # R_FROM
    lsl(r4, r4, 2)
    add(r0, r0, r4)
    ldr(r7, [r3, 8])  # R_PAIRS
    lsl(r5, r7, 2)
    ldr(r6, [r3, 4])  # R_HEADS
    mul(r6, r5)
    add(r6, r6, r1)
    add(r5, r5, r2)
    ldr(r4, [r3, 12])  # R_STEP
    sub(r4, 2)
    neg(r4, r4)
    mul(r7, r4)
    lsl(r7, r7, 1)
    mov(r4, r2)
    push({r4, r5, r6, r7})
    ldr(r4, [r3, 12])  # R_STEP
    lsl(r4, r4, 2)
    mov(r8, r4)
    mov(r4, 1)
    lsl(r4, r4, 15)
    sub(r4, 1)
    mov(r9, r4)
    neg(r4, r4)
    mov(r10, r4)
    mov(r4, 1)
    lsl(r4, r4, 14)
    mov(r11, r4)
    ldr(r3, [r3, 16])  # R_GAP
    lsl(r3, r3, 1)
    b(TEST)
    label(PAIR)
    ldr(r4, [r0, 0])
    add(r5, r0, r3)
    data(2, 0x58ED)  # ldr r5, [r5, r3]
    data(2, 0x454C)  # cmp r4, r9
    ble(L1)
    mov(r4, r9)
    label(L1)
    data(2, 0x4554)  # cmp r4, r10
    bge(L2)
    mov(r4, r10)
    label(L2)
    data(2, 0x454D)  # cmp r5, r9
    ble(L3)
    mov(r5, r9)
    label(L3)
    data(2, 0x4555)  # cmp r5, r10
    bge(L4)
    mov(r5, r10)
    label(L4)
    ldrh(r6, [r2, 0])
    data(2, 0xB236)  # sxth r6, r6
    mov(r7, r6)
    mul(r6, r4)
    mul(r7, r5)
    mov(r12, r7)
    ldrh(r7, [r2, 2])
    data(2, 0xB23F)  # sxth r7, r7
    mul(r5, r7)
    mul(r4, r7)
    sub(r6, r6, r5)
    data(2, 0x445E)  # add r6, r11
    asr(r6, r6, 15)
    data(2, 0x454E)  # cmp r6, r9
    ble(L5)
    mov(r6, r9)
    label(L5)
    data(2, 0x4556)  # cmp r6, r10
    bge(L6)
    mov(r6, r10)
    label(L6)
    strh(r6, [r1, 0])
    data(2, 0x4464)  # add r4, r12
    data(2, 0x445C)  # add r4, r11
    asr(r4, r4, 15)
    data(2, 0x454C)  # cmp r4, r9
    ble(L7)
    mov(r4, r9)
    label(L7)
    data(2, 0x4554)  # cmp r4, r10
    bge(L8)
    mov(r4, r10)
    label(L8)
    data(2, 0x52CC)  # strh r4, [r1, r3]
    add(r2, 4)
    data(2, 0x4440)  # add r0, r8
    mov(r4, r8)
    lsr(r4, r4, 1)
    add(r1, r1, r4)
    data(2, 0x9C01)  # ldr r4, [sp, 4]  table_end
    cmp(r2, r4)
    bne(PAIR)
    data(2, 0x9C03)  # ldr r4, [sp, 12]  to_next_head
    add(r1, r1, r4)
    add(r0, r0, r4)
    add(r0, r0, r4)
    label(TEST)
    data(2, 0x9A00)  # ldr r2, [sp, 0]  table
    data(2, 0x9C02)  # ldr r4, [sp, 8]  end
    cmp(r1, r4)
    bne(PAIR)
    data(2, 0xB004)  # add sp, 16
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def narrow(r0, r1, r2):
    # r0 vectors, r1 result, r2 fields
    # NARROW_COUNT elements as int16, saturated: plain.py's narrow.
    # r0 source, r1 result, r2 its end, r5 32767, r6 -32767
    # Instructions of inner loops: ELEMENT 11
    cmp(r2, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    ldr(r3, [r2, 0])  # NARROW_FROM
    lsl(r3, r3, 2)
    add(r0, r0, r3)
    ldr(r2, [r2, 4])  # NARROW_COUNT
    lsl(r2, r2, 1)
    add(r2, r2, r1)
    mov(r5, 1)
    lsl(r5, r5, 15)
    sub(r5, 1)
    neg(r6, r5)
    b(TEST)
    label(ELEMENT)
    data(2, 0xC810)  # ldm r0!, {r4}
    cmp(r4, r5)
    ble(L1)
    mov(r4, r5)
    label(L1)
    cmp(r4, r6)
    bge(L2)
    mov(r4, r6)
    label(L2)
    strh(r4, [r1, 0])
    add(r1, 2)
    label(TEST)
    cmp(r1, r2)
    bne(ELEMENT)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def widen(r0, r1, r2):
    # r0 source, r1 vectors, r2 fields
    # N int16 to elements at TO, filled up with zeros: plain.py's widen.
    # r0 source, r1 result, r3 end of the source, r5 end of the result
    # Instructions of inner loops: ELEMENT 6, PAD 3
    cmp(r2, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    ldr(r3, [r2, 8])  # TO
    lsl(r3, r3, 2)
    add(r1, r1, r3)
    ldr(r4, [r2, 0])  # N
    lsl(r3, r4, 1)
    add(r3, r3, r0)
    ldr(r5, [r2, 4])  # PADDED
    lsl(r5, r5, 2)
    add(r5, r5, r1)
    b(TEST)
    label(ELEMENT)
    ldrh(r6, [r0, 0])
    add(r0, 2)
    data(2, 0xB236)  # sxth r6, r6
    data(2, 0xC140)  # stm r1!, {r6}
    label(TEST)
    cmp(r0, r3)
    bne(ELEMENT)
    mov(r6, 0)
    b(PADDED)
    label(PAD)
    data(2, 0xC140)  # stm r1!, {r6}
    label(PADDED)
    cmp(r1, r5)
    bcc(PAD)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def swiglu(r0, r1, r2):
    # r0 vectors, r1 sigmoid, r2 fields
    # gate * sigmoid(gate) * up of N values at TO: plain.py's swiglu.
    # r0 gate, r1 sigmoid, r2 up, r8 largest gate, r9 largest up, r12 end of the gate. sp: a, gate, up,
    # result
    # Instructions of inner loops: GATE 49, FOLD 5, FOLD_UP 5, PRODUCT 10, PAD 3
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
    ldr(r4, [r2, 24])  # GATE
    lsl(r4, r4, 2)
    add(r4, r4, r0)
    ldr(r5, [r2, 28])  # UP
    lsl(r5, r5, 2)
    add(r5, r5, r0)
    ldr(r6, [r2, 8])  # TO
    lsl(r6, r6, 2)
    add(r6, r6, r0)
    ldr(r7, [r2, 0])  # N
    lsl(r7, r7, 2)
    add(r7, r7, r4)
    mov(r12, r7)
    mov(r0, r4)
    mov(r3, r2)
    mov(r2, r5)
    push({r3, r4, r5, r6})
    mov(r4, 0)
    mov(r8, r4)
    mov(r9, r4)
    label(GATE)
    ldr(r3, [r0, 0])
    asr(r4, r3, 31)
    add(r5, r3, r4)
    eor(r5, r4)
    lsr(r6, r5, 20)
    beq(L1)
    bic(r5, r4)
    b(LARGEST)
    label(L1)
    lsr(r6, r5, 12)
    lsl(r6, r6, 1)
    add(r6, r6, r1)
    ldrh(r7, [r6, 0])
    ldrh(r6, [r6, 2])
    sub(r6, r6, r7)
    lsl(r3, r5, 20)
    lsr(r3, r3, 20)
    mul(r6, r3)
    asr(r6, r6, 12)
    adc(r7, r6)
    cmp(r4, 0)
    beq(L2)
    mov(r3, 1)
    lsl(r3, r3, 15)
    sub(r7, r3, r7)
    label(L2)
    lsr(r6, r5, 6)
    mul(r6, r7)
    lsl(r5, r5, 26)
    lsr(r5, r5, 26)
    mul(r5, r7)
    lsr(r5, r5, 6)
    add(r5, r5, r6)
    mov(r6, 0)
    lsr(r5, r5, 9)
    adc(r5, r6)
    label(LARGEST)
    data(2, 0x4545)  # cmp r5, r8
    ble(L3)
    mov(r8, r5)
    label(L3)
    eor(r5, r4)
    sub(r5, r5, r4)
    data(2, 0xC020)  # stm r0!, {r5}
    data(2, 0xCA08)  # ldm r2!, {r3}
    asr(r4, r3, 31)
    add(r3, r3, r4)
    eor(r3, r4)
    data(2, 0x454B)  # cmp r3, r9
    ble(L4)
    mov(r9, r3)
    label(L4)
    data(2, 0x4560)  # cmp r0, r12
    bne(GATE)
    mov(r3, 0)
    mov(r5, r8)
    label(FOLD)
    lsr(r6, r5, 15)
    beq(FOLDED)
    lsr(r5, r5, 1)
    add(r3, 1)
    b(FOLD)
    label(FOLDED)
    mov(r4, 0)
    mov(r5, r9)
    label(FOLD_UP)
    lsr(r6, r5, 15)
    beq(FOLDED_UP)
    lsr(r5, r5, 1)
    add(r4, 1)
    b(FOLD_UP)
    label(FOLDED_UP)
    mov(r5, 1)
    lsl(r5, r3)
    lsr(r5, r5, 1)
    mov(r8, r5)
    mov(r5, 1)
    lsl(r5, r4)
    lsr(r5, r5, 1)
    mov(r9, r5)
    data(2, 0x9801)  # ldr r0, [sp, 4]  gate
    data(2, 0x9A02)  # ldr r2, [sp, 8]  up
    data(2, 0x9903)  # ldr r1, [sp, 12]  result
    label(PRODUCT)
    data(2, 0xC820)  # ldm r0!, {r5}
    data(2, 0x4445)  # add r5, r8
    asr(r5, r3)
    data(2, 0xCA40)  # ldm r2!, {r6}
    data(2, 0x444E)  # add r6, r9
    asr(r6, r4)
    mul(r5, r6)
    data(2, 0xC120)  # stm r1!, {r5}
    data(2, 0x4560)  # cmp r0, r12
    bne(PRODUCT)
    data(2, 0x9A00)  # ldr r2, [sp, 0]  a
    add(r3, r3, r4)
    sub(r3, 18)
    str(r3, [r2, 20])  # EXPONENT
    ldr(r3, [r2, 4])  # PADDED
    ldr(r4, [r2, 0])  # N
    sub(r3, r3, r4)
    ble(L5)
    mov(r5, 0)
    label(PAD)
    data(2, 0xC120)  # stm r1!, {r5}
    sub(r3, 1)
    bne(PAD)
    label(L5)
    data(2, 0xB004)  # add sp, 16
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def add(r0, r1):
    # r0 vectors, r1 fields
    # x += y, saturated: plain.py's add.
    # r2 x, r3 y, r4 end of x, r6 the most, r7 the least
    # Instructions of inner loops: ELEMENT 12
    cmp(r1, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    ldr(r2, [r1, 4])  # ADD_X
    lsl(r2, r2, 2)
    add(r2, r2, r0)
    ldr(r3, [r1, 8])  # ADD_Y
    lsl(r3, r3, 2)
    add(r3, r3, r0)
    ldr(r4, [r1, 0])  # ADD_COUNT
    lsl(r4, r4, 2)
    add(r4, r4, r2)
    mov(r6, 1)
    lsl(r6, r6, 30)
    sub(r6, 1)
    neg(r7, r6)
    b(TEST)
    label(ELEMENT)
    ldr(r0, [r2, 0])
    data(2, 0xCB02)  # ldm r3!, {r1}
    add(r0, r0, r1)
    cmp(r0, r6)
    ble(L1)
    mov(r0, r6)
    label(L1)
    cmp(r0, r7)
    bge(L2)
    mov(r0, r7)
    label(L2)
    data(2, 0xC201)  # stm r2!, {r0}
    label(TEST)
    cmp(r2, r4)
    bne(ELEMENT)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def argmax(r0, r1):
    # r0 vectors, r1 fields
    # Index of the largest of VOCAB logits, the first of equals: plain.py's argmax.
    # r1 vector, r2 what comes next, r3 end, r4 the largest so far, r0 what follows it
    # Instructions of inner loops: ELEMENT 7
    ldr(r2, [r1, 4])  # LOGITS
    lsl(r2, r2, 2)
    add(r2, r2, r0)
    ldr(r3, [r1, 0])  # VOCAB
    lsl(r3, r3, 2)
    add(r3, r3, r2)
    mov(r1, r2)
    data(2, 0xCA10)  # ldm r2!, {r4}
    mov(r0, r2)
    b(TEST)
    label(ELEMENT)
    data(2, 0xCA20)  # ldm r2!, {r5}
    cmp(r5, r4)
    ble(TEST)
    mov(r4, r5)
    mov(r0, r2)
    label(TEST)
    cmp(r2, r3)
    bne(ELEMENT)
    sub(r0, r0, r1)
    lsr(r0, r0, 2)
    sub(r0, 1)


@micropython.asm_thumb
def softmax(r0, r1, r2):
    # r0 vectors, r1 exp2, r2 fields
    # VOCAB logits to weights, in place, and their SUM: plain.py's softmax.
    # r0 logits, r1 table, r2 mantissa, r3 bits, r8 largest, r9 shift right, r10 shift left, r11 most that
    # can be shifted left, r12 end, lr sum. sp: 30 - bits, a
    # Instructions of inner loops: LARGEST 6, WEIGHT 46
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    ldr(r4, [r2, 4])  # LOGITS
    lsl(r4, r4, 2)
    add(r0, r0, r4)
    ldr(r4, [r2, 0])  # VOCAB
    lsl(r4, r4, 2)
    add(r4, r4, r0)
    mov(r12, r4)
    ldr(r3, [r2, 16])  # BITS
    mov(r4, 30)
    sub(r4, r4, r3)
    mov(r5, r2)
    push({r4, r5})
    mov(r6, 1)
    lsl(r6, r6, 30)
    sub(r6, 1)
    mov(r4, 0)
    ldr(r5, [r2, 12])  # HEAT_EXPONENT
    cmp(r5, 0)
    bge(L1)
    neg(r4, r5)
    mov(r5, 0)
    label(L1)
    lsr(r6, r5)
    mov(r9, r4)
    mov(r10, r5)
    mov(r11, r6)
    ldr(r2, [r2, 8])  # HEAT
    mov(r5, r0)
    data(2, 0xCD10)  # ldm r5!, {r4}
    b(LAST)
    label(LARGEST)
    data(2, 0xCD40)  # ldm r5!, {r6}
    cmp(r6, r4)
    ble(LAST)
    mov(r4, r6)
    label(LAST)
    data(2, 0x4565)  # cmp r5, r12
    bne(LARGEST)
    mov(r8, r4)
    mov(r4, 0)
    mov(r14, r4)
    label(WEIGHT)
    ldr(r5, [r0, 0])
    mov(r4, r8)
    sub(r4, r4, r5)
    lsr(r5, r4, 30)
    beq(L2)
    mov(r4, 1)
    lsl(r4, r4, 30)
    sub(r4, 1)
    label(L2)
    lsl(r5, r4, 17)
    lsr(r5, r5, 17)
    mul(r5, r2)
    lsr(r5, r5, 15)
    lsr(r4, r4, 15)
    mul(r4, r2)
    add(r4, r4, r5)
    mov(r5, r9)
    lsr(r4, r5)
    data(2, 0x455C)  # cmp r4, r11
    bls(L3)
    mov(r4, r11)
    label(L3)
    mov(r5, r10)
    lsl(r4, r5)
    mov(r7, 0)
    lsr(r6, r4, 16)
    cmp(r6, r3)
    bhi(L4)
    lsl(r4, r4, 16)
    lsr(r5, r4, 26)
    lsl(r5, r5, 1)
    add(r5, r5, r1)
    ldrh(r7, [r5, 0])
    ldrh(r5, [r5, 2])
    sub(r5, r5, r7)
    lsl(r4, r4, 6)
    lsr(r4, r4, 22)
    mul(r5, r4)
    asr(r5, r5, 10)
    adc(r7, r5)
    lsl(r7, r7, 15)
    data(2, 0x9D00)  # ldr r5, [sp, 0]  down
    lsr(r7, r5)
    lsr(r7, r6)
    data(2, 0x44BE)  # add lr, r7
    label(L4)
    data(2, 0xC080)  # stm r0!, {r7}
    data(2, 0x4560)  # cmp r0, r12
    bne(WEIGHT)
    data(2, 0x9A01)  # ldr r2, [sp, 4]  a
    mov(r4, r14)
    str(r4, [r2, 20])  # SUM
    data(2, 0xB002)  # add sp, 8
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)
    mov(r0, 0)


@micropython.asm_thumb
def pick(r0, r1):
    # r0 vectors, r1 fields
    # An index drawn by weight from the smallest set that holds TOP_P of all: plain.py's pick.
    # r0 weights, r1 a, r8 least, r9 sum of all above it, r10 how many of its equals join, r11 high, r12
    # end of the weights, lr goal
    # Instructions of inner loops: TEST 5, MORE 4, EACH 12
    mov(r4, r8)
    mov(r5, r9)
    mov(r6, r10)
    mov(r7, r11)
    push({r4, r5, r6, r7})
    ldr(r2, [r1, 4])  # LOGITS
    lsl(r2, r2, 2)
    add(r0, r0, r2)
    ldr(r3, [r1, 0])  # VOCAB
    mov(r10, r3)
    lsl(r2, r3, 2)
    add(r2, r2, r0)
    mov(r12, r2)
    mov(r2, 1)
    mov(r8, r2)
    ldr(r7, [r1, 20])  # SUM
    ldr(r4, [r1, 24])  # TOP_P
    lsr(r2, r4, 15)
    bne(L1)
    lsl(r6, r7, 17)
    lsr(r6, r6, 17)
    mul(r6, r4)
    lsr(r6, r6, 15)
    lsr(r7, r7, 15)
    mul(r7, r4)
    add(r7, r7, r6)
    mov(r14, r7)
    ldr(r3, [r1, 16])  # BITS
    mov(r2, 2)
    lsl(r2, r3)
    sub(r2, 1)
    mov(r11, r2)
    mov(r3, 0)
    mov(r8, r3)
    label(BOUND)
    mov(r4, r8)
    data(2, 0x445C)  # add r4, r11
    add(r4, 1)
    lsr(r4, r4, 1)
    mov(r2, r0)
    mov(r5, 0)
    mov(r7, 0)
    mvn(r6, r7)
    b(TEST)
    label(REACHED)
    add(r5, r5, r3)
    cmp(r3, r6)
    bhi(TEST)
    beq(L2)
    mov(r6, r3)
    mov(r7, 0)
    label(L2)
    add(r7, r7, r3)
    label(TEST)
    data(2, 0x4562)  # cmp r2, r12
    beq(SCANNED)
    data(2, 0xCA08)  # ldm r2!, {r3}
    cmp(r3, r4)
    bcc(TEST)
    b(REACHED)
    label(SCANNED)
    data(2, 0x4575)  # cmp r5, lr
    bhi(L3)
    sub(r4, 1)
    mov(r11, r4)
    b(CLOSER)
    label(L3)
    mov(r8, r6)
    sub(r5, r5, r7)
    mov(r9, r5)
    data(2, 0x4575)  # cmp r5, lr
    bls(FOUND)
    label(CLOSER)
    data(2, 0x45D8)  # cmp r8, r11
    bcc(BOUND)
    label(FOUND)
    mov(r7, r9)
    mov(r3, 0)
    label(MORE)
    data(2, 0x4447)  # add r7, r8
    add(r3, 1)
    data(2, 0x4577)  # cmp r7, lr
    bls(MORE)
    mov(r10, r3)
    label(L1)
    ldr(r3, [r1, 28])  # STATE
    lsl(r4, r3, 13)
    eor(r3, r4)
    lsr(r4, r3, 17)
    eor(r3, r4)
    lsl(r4, r3, 5)
    eor(r3, r4)
    str(r3, [r1, 28])  # STATE
    lsr(r4, r3, 17)
    lsl(r5, r3, 15)
    lsr(r5, r5, 17)
    lsr(r6, r7, 15)
    lsl(r7, r7, 17)
    lsr(r7, r7, 17)
    mul(r7, r4)
    mul(r5, r6)
    add(r7, r7, r5)
    lsr(r7, r7, 15)
    mul(r6, r4)
    add(r6, r6, r7)
    mov(r1, r0)
    add(r1, 4)
    mov(r2, r0)
    mov(r4, r8)
    mov(r5, r10)
    b(NEXT)
    label(EACH)
    data(2, 0xCA08)  # ldm r2!, {r3}
    cmp(r3, r4)
    bcc(NEXT)
    bne(L4)
    sub(r5, 1)
    bmi(NEXT)
    label(L4)
    mov(r1, r2)
    cmp(r6, r3)
    bcc(DRAWN)
    sub(r6, r6, r3)
    label(NEXT)
    data(2, 0x4562)  # cmp r2, r12
    bne(EACH)
    label(DRAWN)
    sub(r0, r1, r0)
    lsr(r0, r0, 2)
    sub(r0, 1)
    pop({r4, r5, r6, r7})
    mov(r8, r4)
    mov(r9, r5)
    mov(r10, r6)
    mov(r11, r7)


@micropython.asm_thumb
def run(r0):
    # r0 steps
    # Steps one after the other, on to one of 0: see STEP.
    # r4 the next step, r7 what it calls
    # Instructions of inner loops: STEP 5
    mov(r4, r0)
    b(FIRST)
    label(STEP)
    data(2, 0xCC0F)  # ldm r4!, {r0, r1, r2, r3}
    data(2, 0x47B8)  # blx r7
    label(FIRST)
    data(2, 0xCC80)  # ldm r4!, {r7}
    cmp(r7, 0)
    bne(STEP)
    mov(r0, 0)
