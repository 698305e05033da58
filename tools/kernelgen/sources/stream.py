"""Steps of what comes from flash chunk by chunk while the core computes, in Thumb assembler. CHUNK and STREAM
in tools/field_tables/stream.py are what they read.

A chunk is taken in when it is ready, never else; its place is given to the next chunk when it is done with,
not before. So what fetches needs no knowledge of the core, and no interrupt. ARMv6-M only. `data(2, ...)` is
an instruction that MicroPython's assembler lacks, written beside it in the assembler's own words.
"""

from field_tables.stream import CHUNK, STREAM
from kernelgen.language import *

# Registers of a DMA channel, in bytes: RP2040 datasheet, section 2.5.7.
READ_ADDR = 0
CTRL_TRIG = 12
AL3_READ_ADDR_TRIG = 60


def taken(chunk: Array, stream: Array, gate: Register, by: Register) -> None:
    """Waits for a chunk, and has it fetched no more until its gate is opened again."""
    with repeat("WAIT", eq(by, 0)):
        ldr(by, chunk.CHUNK_READY)
    mov(by, 0)
    str_(by, chunk.CHUNK_READY)
    ldr(gate, chunk.CHUNK_GATE)
    str_(by, Place(gate, 0))
    put(stream.STREAM_NEXT, chunk.CHUNK_NEXT, by=by)


def given(chunk: Array, state: Register, by: Register) -> None:
    """Gives the chunk's place to the next that has it."""
    stream = Array(state, STREAM)
    ldr(r0, chunk.CHUNK_FILLS)
    mov(r1, state)
    ldr(by, stream.STREAM_FETCH)
    blx(by)


@called
def chunk(record: Register, state: Register) -> None:
    """Waits for a chunk, has it worked on, and the next chunk of its place fetched.

    r4 chunk, r5 stream
    """
    mov(r4, r0)
    mov(r5, r1)
    c, s = Array(r4, CHUNK), Array(r5, STREAM)
    taken(c, s, gate=r7, by=r6)
    ldr(r0, c.CHUNK_PLACE)
    ldr(r1, s.STREAM_ONE_WORD)
    ldr(r2, s.STREAM_OTHER_WORD)
    mov(r3, r4)
    add(r3, c.CHUNK_FIELDS.offset)
    ldr(r6, s.STREAM_WORK)
    blx(r6)
    given(c, r5, by=r6)
    mov(r0, 0)


@called
def skip(state: Register) -> None:
    """Lets all chunks go by up to the first of a round: those that the round before did not ask for.

    r4 chunk, r5 stream
    """
    mov(r5, r0)
    c, s = Array(r4, CHUNK), Array(r5, STREAM)
    b("TEST")
    label("SKIP")
    taken(c, s, gate=r7, by=r6)
    given(c, r5, by=r6)
    label("TEST")
    ldr(r4, s.STREAM_NEXT)
    ldr(r6, s.STREAM_FIRST)
    branch(ne(r4, r6), "SKIP")
    mov(r0, 0)


@called
def rest(state: Register) -> None:
    """Waits until all places are filled: nothing is fetched from then on, and the flash may be written.

    r1 chunk, r2 places
    """
    s, c = Array(r0, STREAM), Array(r1, CHUNK)
    ldr(r2, s.STREAM_PLACES)
    ldr(r1, s.STREAM_NEXT)
    label("WAIT")
    ldr(r3, c.CHUNK_READY)
    cmp(r3, 0)
    branch(eq, "WAIT")
    ldr(r1, c.CHUNK_NEXT)
    sub(r2, 1)
    branch(ne, "WAIT")
    mov(r0, 0)


@called
def fetch(record: Register, state: Register) -> None:
    """Opens a chunk's gate, and starts the channel that loads control blocks if it had stopped there.

    A channel that loads is done in a few cycles. Where it had read the closed gate, it stands right behind
    it, and the other channel does nothing. Both are looked at twice: between the end of one and the begin of
    the other there are cycles in which neither is busy.

    r2 behind the gate, r4 the channel that loads, r5 the one that moves, r6 busy
    """
    c, s = Array(r0, CHUNK), Array(r1, STREAM)
    ldr(r2, c.CHUNK_GATE)
    put(Place(r2, 0), c.CHUNK_OPEN, by=r3)
    add(r2, 4)
    ldr(r4, s.STREAM_CONTROL)
    ldr(r5, s.STREAM_DATA)
    ldr(r6, s.STREAM_BUSY)
    mov(r7, 2)
    label("LOADING")
    ldr(r3, Place(r4, CTRL_TRIG))
    and_(r3, r6)
    branch(ne, "LOADING")
    ldr(r3, Place(r4, READ_ADDR))
    branch(ne(r3, r2), "GOES")
    ldr(r3, Place(r5, CTRL_TRIG))
    and_(r3, r6)
    branch(ne, "GOES")
    sub(r7, 1)
    branch(ne, "LOADING")
    sub(r2, 16)
    str_(r2, Place(r4, AL3_READ_ADDR_TRIG))
    label("GOES")
    mov(r0, 0)
