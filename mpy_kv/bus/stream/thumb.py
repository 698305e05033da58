# Made by `python tools/generate_kernels.py --write` from tools/kernelgen/sources/stream.py: change that.
"""Steps of what comes from flash chunk by chunk while the core computes, in Thumb assembler. CHUNK and STREAM
in tools/field_tables/stream.py are what they read.

A chunk is taken in when it is ready, never else; its place is given to the next chunk when it is done with,
not before. So what fetches needs no knowledge of the core, and no interrupt. ARMv6-M only. `data(2, ...)` is
an instruction that MicroPython's assembler lacks, written beside it in the assembler's own words.
"""

import micropython


@micropython.asm_thumb
def chunk(r0, r1):
    # r0 record, r1 state
    # Waits for a chunk, has it worked on, and the next chunk of its place fetched.
    # r4 chunk, r5 stream
    # Instructions of inner loops: WAIT 3
    cmp(r1, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    mov(r4, r0)
    mov(r5, r1)
    label(WAIT)
    ldr(r6, [r4, 0])  # CHUNK_READY
    cmp(r6, 0)
    beq(WAIT)
    mov(r6, 0)
    str(r6, [r4, 0])  # CHUNK_READY
    ldr(r7, [r4, 24])  # CHUNK_GATE
    str(r6, [r7, 0])
    ldr(r6, [r4, 16])  # CHUNK_NEXT
    str(r6, [r5, 0])  # STREAM_NEXT
    ldr(r0, [r4, 4])  # CHUNK_PLACE
    ldr(r1, [r5, 20])  # STREAM_ONE_WORD
    ldr(r2, [r5, 24])  # STREAM_OTHER_WORD
    mov(r3, r4)
    add(r3, 32)  # CHUNK_FIELDS
    ldr(r6, [r5, 16])  # STREAM_WORK
    data(2, 0x47B0)  # blx r6
    ldr(r0, [r4, 20])  # CHUNK_FILLS
    mov(r1, r5)
    ldr(r6, [r5, 12])  # STREAM_FETCH
    data(2, 0x47B0)  # blx r6
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def skip(r0):
    # r0 state
    # Lets all chunks go by up to the first of a round: those that the round before did not ask for.
    # r4 chunk, r5 stream
    # Instructions of inner loops: WAIT 3
    cmp(r0, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    mov(r5, r0)
    b(TEST)
    label(SKIP)
    label(WAIT)
    ldr(r6, [r4, 0])  # CHUNK_READY
    cmp(r6, 0)
    beq(WAIT)
    mov(r6, 0)
    str(r6, [r4, 0])  # CHUNK_READY
    ldr(r7, [r4, 24])  # CHUNK_GATE
    str(r6, [r7, 0])
    ldr(r6, [r4, 16])  # CHUNK_NEXT
    str(r6, [r5, 0])  # STREAM_NEXT
    ldr(r0, [r4, 20])  # CHUNK_FILLS
    mov(r1, r5)
    ldr(r6, [r5, 12])  # STREAM_FETCH
    data(2, 0x47B0)  # blx r6
    label(TEST)
    ldr(r4, [r5, 0])  # STREAM_NEXT
    ldr(r6, [r5, 4])  # STREAM_FIRST
    cmp(r4, r6)
    bne(SKIP)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def rest(r0):
    # r0 state
    # Waits until all places are filled: nothing is fetched from then on, and the flash may be written.
    # r1 chunk, r2 places
    # Instructions of inner loops: WAIT 6
    cmp(r0, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    ldr(r2, [r0, 8])  # STREAM_PLACES
    ldr(r1, [r0, 0])  # STREAM_NEXT
    label(WAIT)
    ldr(r3, [r1, 0])  # CHUNK_READY
    cmp(r3, 0)
    beq(WAIT)
    ldr(r1, [r1, 16])  # CHUNK_NEXT
    sub(r2, 1)
    bne(WAIT)
    mov(r0, 0)
    label(ASKED)


@micropython.asm_thumb
def fetch(r0, r1):
    # r0 record, r1 state
    # Opens a chunk's gate, and starts the channel that loads control blocks if it had stopped there.
    # A channel that loads is done in a few cycles. Where it had read the closed gate, it stands right
    # behind it, and the other channel does nothing. Both are looked at twice: between the end of one and
    # the begin of the other there are cycles in which neither is busy.
    # r2 behind the gate, r4 the channel that loads, r5 the one that moves, r6 busy
    # Instructions of inner loops: LOADING 11
    cmp(r1, 0)
    bne(KERNEL)
    data(2, 0x4678)  # mov r0, pc  the address, for kernels that call this one
    sub(r0, 9)
    b(ASKED)
    label(KERNEL)
    ldr(r2, [r0, 24])  # CHUNK_GATE
    ldr(r3, [r0, 28])  # CHUNK_OPEN
    str(r3, [r2, 0])
    add(r2, 4)
    ldr(r4, [r1, 36])  # STREAM_CONTROL
    ldr(r5, [r1, 40])  # STREAM_DATA
    ldr(r6, [r1, 44])  # STREAM_BUSY
    mov(r7, 2)
    label(LOADING)
    ldr(r3, [r4, 12])
    and_(r3, r6)
    bne(LOADING)
    ldr(r3, [r4, 0])
    cmp(r3, r2)
    bne(GOES)
    ldr(r3, [r5, 12])
    and_(r3, r6)
    bne(GOES)
    sub(r7, 1)
    bne(LOADING)
    sub(r2, 16)
    str(r2, [r4, 60])
    label(GOES)
    mov(r0, 0)
    label(ASKED)
