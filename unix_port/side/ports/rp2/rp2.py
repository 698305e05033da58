"""Stand-in for `rp2`: the flash after the firmware, memory-mapped as on the chip, and the DMA controller,
which is loaded when a program asks for it."""

import micropython
from emu import flash
from emu.chip_uctypes import install

install()


def __getattr__(name):
    if name != "DMA":
        raise AttributeError(name)
    from emu.dma import DMA

    return DMA


class Flash(memoryview):
    """`rp2.Flash(*, start, len)`: block device, and through `memoryview(...)` a read-only view
    with no copy.

    A class of MicroPython cannot offer the buffer protocol, but it inherits that of memoryview; so
    unlike the real one this object also has a len() and items.
    """

    def __init__(self, *, start=-1, len=-1):
        size = flash.size
        start_given = 0 if start == -1 else start
        length = size - start_given if len == -1 else len
        block = flash.erase_bytes
        whole_blocks = start_given % block == 0 and length % block == 0
        if not whole_blocks or start_given < 0 or not 0 < length <= size - start_given:
            raise ValueError("Flash(start=%d, len=%d) of %d" % (start, len, size))
        super().__init__(memoryview(flash.image)[start_given : start_given + length])
        self._device = flash.BlockDevice(start_given, length)

    @micropython.native
    def readblocks(self, block, buf, offset=0):
        self._device.readblocks(block, buf, offset)

    @micropython.native
    def writeblocks(self, block, buf, offset=None):
        self._device.writeblocks(block, buf, offset)

    @micropython.native
    def ioctl(self, op, arg):
        return self._device.ioctl(op, arg)
