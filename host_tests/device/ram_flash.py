"""Flash in RAM that makes no object in any call, so that what is counted beside it is the log's."""

try:
    import micropython
except ImportError:
    from mpy_kv import cpython as micropython

from mpy_kv.flash_log.words import copy, fill


class Flash:
    def __init__(self, sectors):
        self.sectors = sectors
        self.cells = bytearray(sectors * 4096)
        fill(self.cells, 0, len(self.cells), 255)

    @micropython.native
    def ioctl(self, op, arg):
        if op == 4:
            return self.sectors
        if op == 5:
            return 4096
        if op == 6:
            fill(self.cells, arg * 4096, 4096, 255)
        return 0

    @micropython.native
    def readblocks(self, block, buf, offset):
        copy(buf, self.cells, 0, block * 4096 + offset, len(buf))

    @micropython.native
    def writeblocks(self, block, buf, offset):
        at = block * 4096 + offset
        i = 0
        n = len(buf)
        cells = self.cells
        while i < n:
            cells[at + i] &= buf[i]
            i += 1
