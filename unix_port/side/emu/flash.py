"""NOR flash: erasing a block sets every bit, programming only clears bits. Read where it lies.

The image is one `bytes` object, taken before anything else, so that a memoryview of it is
read-only as on a board; only `erase` and `program` change it, through its address.
"""

import micropython
from uctypes import addressof, bytearray_at

# Set by `attach`.
image = b""
size = 0
erase_bytes = 0
program_bytes = 0

# Counted over the whole run.
erases = 0  # blocks erased
programs = 0  # pages programmed, whole or in part
lost_bits = 0  # bits that were to become 1 by programming: they stay 0, as on a real chip

_writable = bytearray(0)
_operations_left = -1  # until the power is cut; -1 is never
_dead = False


class PowerCut(BaseException):
    """The power went away in the middle of a flash operation. No `except Exception` sees it."""


def attach(content, erase_size, program_size, cut_after):
    """Make `content` (bytes) the flash. Operation `cut_after` loses power; < 0: none does."""
    global image, size, erase_bytes, program_bytes, _writable, _operations_left
    image = content
    size = len(content)
    erase_bytes = erase_size
    program_bytes = program_size
    _operations_left = cut_after
    _writable = bytearray_at(addressof(content), len(content))


@micropython.viper
def _copy(to: ptr8, source: ptr8, offset: int, count: int):
    source = ptr8(int(source) + offset)
    i = 0
    while i < count:
        to[i] = source[i]
        i += 1


@micropython.viper
def _fill(to: ptr8, offset: int, count: int):
    i = offset
    while i < offset + count:
        to[i] = 0xFF
        i += 1


@micropython.viper
def _clear(to: ptr8, offset: int, source: ptr8, count: int) -> int:
    """AND `count` bytes in; returns how many bits were asked to rise."""
    lost = 0
    to = ptr8(int(to) + offset)
    i = 0
    while i < count:
        had = int(to[i])
        rising = int(source[i]) & (had ^ 0xFF)
        while rising:
            rising &= rising - 1
            lost += 1
        to[i] = had & int(source[i])
        i += 1
    return lost


def _spend():
    """One operation. True when this is the one in which the power goes."""
    global _operations_left, _dead
    if _dead:
        raise PowerCut()
    if _operations_left == 0:
        _dead = True
        return True
    _operations_left -= 1
    return False


def _check(offset, count):
    if offset < 0 or count < 0 or offset + count > size:
        raise OSError(5)  # EIO


def read(offset, buf):
    """Copy len(buf) bytes at `offset` into `buf`, whose items are bytes. Allocates nothing."""
    _check(offset, len(buf))
    _copy(buf, image, offset, len(buf))


def erase(offset, count):
    """Erase `count` bytes from `offset`, in whole blocks. A cut leaves half a block erased."""
    global erases
    _check(offset, count)
    if offset % erase_bytes or count % erase_bytes:
        raise ValueError("erase %d+%d: not whole blocks of %d" % (offset, count, erase_bytes))
    for start in range(offset, offset + count, erase_bytes):
        if _spend():
            _fill(_writable, start, erase_bytes // 2)
            raise PowerCut()
        _fill(_writable, start, erase_bytes)
        erases += 1


def program(offset, buf):
    """Program `buf` at `offset`, page by page. A cut leaves half of a page's part programmed."""
    global programs, lost_bits
    _check(offset, len(buf))
    view = memoryview(buf)
    at = 0
    while at < len(view):
        count = min(program_bytes - (offset + at) % program_bytes, len(view) - at)
        if _spend():
            _clear(_writable, offset + at, view[at:], count // 2)
            raise PowerCut()
        lost_bits += _clear(_writable, offset + at, view[at:], count)
        programs += 1
        at += count


class BlockDevice:
    """The block protocol of rp2.Flash and esp32.Partition over `size` bytes from `start`."""

    def __init__(self, start, size):
        self._start = start
        self._size = size

    def _offset(self, block, offset, count):
        at = block * erase_bytes + offset
        if at < 0 or at + count > self._size:
            raise OSError(5)  # EIO
        return self._start + at

    def readblocks(self, block, buf, offset=0):
        read(self._offset(block, offset, len(buf)), buf)

    def writeblocks(self, block, buf, offset=None):
        """Without an offset the blocks are erased first; with one they must have been."""
        at = self._offset(block, offset or 0, len(buf))
        if offset is None:
            erase(at, len(buf))
        program(at, buf)

    def ioctl(self, op, arg):
        if op == 4:
            return self._size // erase_bytes
        if op == 5:
            return erase_bytes
        if op == 6:
            erase(self._offset(arg, 0, erase_bytes), erase_bytes)
        return 0 if op in (1, 2, 3, 6) else None
