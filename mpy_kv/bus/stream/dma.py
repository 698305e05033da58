"""Fetches chunks on an rp2 chip: two DMA channels and the flash's stream, no core.

The chip streams words from flash into a FIFO beside what the core reads, which goes first (XIP streaming:
RP2040 datasheet, section 2.6.3.3; RP2350's, 4.4.3). One DMA channel does what control blocks say, another
loads these one after the other (control blocks: RP2040 datasheet, section 2.5.6.2). Of each chunk there are
three: tell the stream where it begins and how long it is; move its words; write that it is ready. The control
word of the first is the chunk's gate: while it is 0 the channels stop there. A last block sends them to the
first chunk again.

Not tried on a chip yet, so a start checks it: the first chunks must arrive in time and be what the flash has.
"""

try:
    from micropython import const
except ImportError:
    from ...cpython import const

import time
from array import array

from ...errors import BadArgument
from ...port import addressof
from ...transient import load_module

# fields: chunk, stream, descriptor
_CHUNK_READY = const(0)
_CHUNK_PLACE = const(1)
_CHUNK_FROM = const(2)
_CHUNK_WORDS = const(3)
_CHUNK_GATE = const(6)
_CHUNK_OPEN = const(7)
_STREAM_PLACES = const(2)
_STREAM_ONE = const(7)
_STREAM_LIST = const(8)
_STREAM_CONTROL = const(9)
_STREAM_DATA = const(10)
_STREAM_BUSY = const(11)
_READ_ADDR = const(0)
_WRITE_ADDR = const(1)
_TRANS_COUNT = const(2)
_CTRL = const(3)
_DESCRIPTOR_WORDS = const(4)
# end of fields

_BLOCKS = const(3)  # of a chunk

# What a chip says of itself, its revision left out: registers of its stream, where its FIFO is read, the
# stream's request, bit of a channel that is at work (addressmap.h, dreq.h and dma.h of pico-sdk's
# hardware/regs).
_CHIPS = {
    0x0002927: (0x14000000, 0x50400000, 37, 24),
    0x0004927: (0x400C8000, 0x50500000, 49, 26),
}
_CHIP_ID = const(0x40000000)
_STAT = const(0x08)
_FIFO_EMPTY = const(2)
_STREAM_ADDR = const(0x14)
_STREAM_CTR = const(0x18)
_STREAM_FIFO = const(0x1C)
_CHANNELS = const(0x50000000)
_CHANNEL_BYTES = const(0x40)
_AL3_READ_ADDR_TRIG = const(0x3C)

_MOST_MS = const(200)  # in which the first chunks arrive, of 1 MiB of RAM at most


class Chained:
    """The two channels and their control blocks; `fetch` is the kernel that opens a chunk's gate. BadArgument
    where the port or the chip has none, OSError where all channels are taken."""

    def __init__(self):
        try:
            import machine
            import rp2

            chip = machine.mem32[_CHIP_ID] & 0x0FFFFFFF
            self.xip, self.fifo, self.request, self.busy_bit = _CHIPS[chip]
            self.control = rp2.DMA()
        except (ImportError, AttributeError, KeyError):
            raise BadArgument("stream needs an RP2040 or RP2350: rp2.DMA and its flash's stream")
        self.registers = machine.mem32
        self.blocks = array("I")
        self.data = None
        try:
            self.fetch = load_module("mpy_kv.bus.stream.thumb").fetch
            self.data = rp2.DMA()
        finally:
            if self.data is None:
                self.control.close()

    def prepare(self, chunks, state, record_bytes):
        """Make the control blocks of all chunks and fetch the first. What is wrong with these; None: nothing,
        they are what the flash has."""
        count = 4 * len(chunks) // record_bytes
        self.blocks = array("I", bytes(4 * _DESCRIPTOR_WORDS * (_BLOCKS * count + 1)))
        self._fill(chunks, state, record_bytes, count)
        self._begin()
        at, shared = addressof(chunks), addressof(state)
        for i in range(state[_STREAM_PLACES]):
            self.fetch(at + i * record_bytes, shared)
        words = record_bytes // 4
        for i in range(state[_STREAM_PLACES]):
            wrong = _wrong(memoryview(chunks)[i * words : (i + 1) * words])
            if wrong:
                return "chunk %d %s" % (i, wrong)
        return None

    def _fill(self, chunks, state, record_bytes, count):
        data, control = self.data, self.control
        at, shared, blocks = addressof(chunks), addressof(state), addressof(self.blocks)
        told = data.pack_ctrl(chain_to=control.channel)
        moved = data.pack_ctrl(chain_to=control.channel, inc_read=False, treq_sel=self.request)
        state[_STREAM_ONE] = 1
        state[_STREAM_LIST] = blocks
        state[_STREAM_CONTROL] = _CHANNELS + _CHANNEL_BYTES * control.channel
        state[_STREAM_DATA] = _CHANNELS + _CHANNEL_BYTES * data.channel
        state[_STREAM_BUSY] = 1 << self.busy_bit
        words = record_bytes // 4
        n = 0
        for i in range(count):
            chunk = memoryview(chunks)[i * words : (i + 1) * words]
            here = at + i * record_bytes
            chunk[_CHUNK_GATE] = blocks + 4 * (n * _DESCRIPTOR_WORDS + _CTRL)
            chunk[_CHUNK_OPEN] = told
            n = self._put(n, here + 4 * _CHUNK_FROM, self.xip + _STREAM_ADDR, 2, 0)
            n = self._put(n, self.fifo, chunk[_CHUNK_PLACE], chunk[_CHUNK_WORDS], moved)
            n = self._put(n, shared + 4 * _STREAM_ONE, here + 4 * _CHUNK_READY, 1, told)
        again = state[_STREAM_CONTROL] + _AL3_READ_ADDR_TRIG
        self._put(n, shared + 4 * _STREAM_LIST, again, 1, data.pack_ctrl())

    def _put(self, n, read, write, count, control):
        block = memoryview(self.blocks)[n * _DESCRIPTOR_WORDS : (n + 1) * _DESCRIPTOR_WORDS]
        block[_READ_ADDR] = read
        block[_WRITE_ADDR] = write
        block[_TRANS_COUNT] = count
        block[_CTRL] = control
        return n + 1

    def _begin(self):
        registers, xip = self.registers, self.xip
        registers[xip + _STREAM_CTR] = 0
        while not registers[xip + _STAT] & _FIFO_EMPTY:
            registers[xip + _STREAM_FIFO]
        # Four words a time, to the first four registers of the other channel.
        control = self.control
        control.config(
            read=self.blocks,
            write=_CHANNELS + _CHANNEL_BYTES * self.data.channel,
            count=_DESCRIPTOR_WORDS,
            ctrl=control.pack_ctrl(ring_sel=True, ring_size=4),
            trigger=True,
        )

    def ram_bytes(self):
        return 4 * len(self.blocks)

    def close(self):
        """Stop, and give the channels back."""
        for channel in (self.control, self.data, self.control):
            channel.active(0)  # the one that loads again: the other may have ended in between
        self.registers[self.xip + _STREAM_CTR] = 0
        self.data.close()
        self.control.close()


def _wrong(chunk):
    """What is wrong with a chunk that is being fetched; None once it is there."""
    from uctypes import bytearray_at

    start = time.ticks_ms()
    while not chunk[_CHUNK_READY]:
        if time.ticks_diff(time.ticks_ms(), start) > _MOST_MS:
            return "does not arrive"
    size = 4 * chunk[_CHUNK_WORDS]
    if bytearray_at(chunk[_CHUNK_PLACE], size) != bytearray_at(chunk[_CHUNK_FROM], size):
        return "is not what the flash has"
    return None
