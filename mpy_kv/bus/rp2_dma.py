"""Chained: a Queue's chains done by two channels of an RP2040's or RP2350's DMA, while the core computes.

One channel copies a descriptor, four words, into the registers of the other, which begins with the fourth,
and once it is done has the first one go on; four zeros begin nothing. So a chain is one start of the core.

    backend = rp2_dma.best()                       # Copying where there is no DMA or a small copy fails
    try:
        q = queue.Queue(32, regions, backend.ctrl)
        ...
    finally:
        backend.close()                            # two channels are taken until then

Of an RP2350 it takes MicroPython 1.26: before, the default of pack_ctrl() is wrong there. What begin() to
stop() do allocates nothing on a chip, where addresses are below 2^30.
"""

import sys
from array import array

import micropython
from rp2 import DMA

from .copying import Copying
from .queue import Queue

_EIO = 5
_ETIMEDOUT = 110
_ERRORS = 0x1FFFFFFF  # of CTRL all that is above tells of a bus error
_CLEAR = 3 << 29  # of CTRL, both errors
_LOOKS = 10000  # at a small copy that should be done within a few


class Chained:
    """OSError where no two channels are free, or what should be copied is not: nothing is taken then."""

    def __init__(self):
        if "RP2350" in getattr(sys.implementation, "_machine", "") and sys.implementation.version < (1, 26):
            raise OSError("DMA of an RP2350 takes MicroPython 1.26")
        self.control = self.data = None
        try:
            self._take()
            self._check()
        except BaseException:
            self.close()
            raise

    def _take(self):
        self.control = control = DMA()
        self.data = data = DMA()
        # `registers` makes a view each time.
        self.registers = data.registers
        # Its write side wraps behind the four words.
        self._control = control.pack_ctrl(ring_size=4, ring_sel=True)
        control.config(write=self.registers, count=4, ctrl=self._control)
        pack = data.pack_ctrl
        self.ctrl = array("I", [pack(size=size, chain_to=control.channel) for size in range(3)])
        self._queue = None
        self._words_at = 0
        self._end = 0  # what the first channel's read address is once it has read a chain's four zeros

    def _check(self):
        """A small copy of each width, from both halves of a queue."""
        source = bytearray(range(64))
        to = bytearray(64)
        queue = Queue(4, (source, to), self.ctrl)
        for half in (0, 32):
            for at, n in ((0, 16), (18, 6), (27, 5)):
                queue.push(half + at, queue.at(1) + half + at, n)
            queue.start(self)
            looks = 0
            while not queue.done():
                looks += 1
                if looks == _LOOKS:
                    queue.give_up()
                    raise OSError(_ETIMEDOUT)
        for at in range(64):
            here = at & 31
            copied = here < 16 or 18 <= here < 24 or 27 <= here < 32
            if to[at] != (source[at] if copied else 0):
                raise OSError(_EIO)

    @micropython.native
    def begin(self, queue, first, descriptors):
        """Take the chain of so many descriptors whose first is at that word of the queue's."""
        control = self.control
        if queue is not self._queue:
            self._queue = queue  # its arrays must stay while they are read
            control.read = queue.words
            self._words_at = control.read
        begin = self._words_at + 4 * first
        self._end = begin + 16 * (descriptors + 1)
        control.read = begin
        control.active(1)

    @micropython.native
    def done(self):
        """Whether the chain is through. OSError(EIO) for a bus error, which stops it."""
        control, data = self.control, self.data
        if control.read == self._end and not data.active():
            return True
        if data.ctrl > _ERRORS or control.ctrl > _ERRORS:
            raise OSError(_EIO)
        return False

    def stop(self):
        """End the chain where it is: a channel that is stopped may have begun the other one."""
        for _ in range(2):
            self.control.active(0)
            self.data.active(0)
        # Errors are forgotten once they are written back.
        self.data.ctrl = self.ctrl[0] | _CLEAR
        self.control.ctrl = self._control | _CLEAR
        self.control.write = self.registers  # it may have come to a stop between two words

    def close(self):
        """Give both channels back; firmware before 1.27 would leave them running."""
        for channel in (self.data, self.control):
            if channel is not None:
                channel.active(0)
        for channel in (self.data, self.control):
            if channel is not None:
                channel.active(0)
                channel.close()
        self.control = self.data = self._queue = None


def best():
    """Chained() where it works, else Copying()."""
    try:
        return Chained()
    except OSError:
        return Copying()
