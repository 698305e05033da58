"""NOR flash: erasing a block sets every bit, programming only clears bits. Read where it lies.

The image is one `bytes` object, taken before anything else, so that a memoryview of it is
read-only as on a board; only `erase` and `program` change it, through its address. A cut leaves half of an
operation done or, where `attach` is given a seed, what nor.py says that real chips leave; then bits may be
weak in the runs after it.
"""

from io import BytesIO

import micropython
from uctypes import addressof, bytearray_at

# Before the storage, up to which it reaches; set by boot. What lies before it in turn is erased.
below = b""
storage_at = 0  # bytes of the flash before the storage, that part included

# Set by `attach`: the storage.
image = b""
size = 0
erase_bytes = 0
program_bytes = 0

# Counted over the whole run.
erases = 0  # blocks erased
programs = 0  # pages programmed, whole or in part
lost_bits = 0  # bits that were to become 1 by programming: they stay 0, as on a real chip

_writable = bytearray(0)
_BYTEARRAY = type(_writable)  # the name is another's once scripts are watched
_reader = BytesIO(b"")  # of the image itself, no copy: what it reads into is checked as in C
_operations_left = -1  # until the power is cut; -1 is never
_dead = False
_torn = False  # whether a cut leaves what real chips leave
_model = None  # a Nor of the image: what a cut leaves, and bits that are weak since


class PowerCut(BaseException):
    """The power went away in the middle of a flash operation. No `except Exception` sees it."""


def attach(content, erase_size, program_size, cut_after, torn=None, state=None):
    """Make `content` the flash: bytes, and one more than the flash has, by which `read` sees that a
    buffer is too long. Operation `cut_after` loses power; < 0: none does. torn: a seed of what it leaves.
    state: what an earlier cut has left that no byte shows, see `state`.
    """
    global _torn, _model
    global image, size, erase_bytes, program_bytes, _writable, _reader, _operations_left
    image = content
    size = len(content) - 1
    erase_bytes = erase_size
    program_bytes = program_size
    _operations_left = cut_after
    _writable = bytearray_at(addressof(content), size)
    _reader = BytesIO(content)
    _torn = torn is not None
    if _torn or state:
        from emu.nor import Nor

        _model = Nor(0, torn or 1, erase_size, program_size)
        _model.sectors = size // erase_size
        _model.cells = _writable
        for sector, bits in (state or {}).get("weak", {}).items():
            _model.weak[int(sector)] = {int(offset): mask for offset, mask in bits.items()}
        for sector, held in (state or {}).get("unerased", {}).items():
            _model.unerased[int(sector)] = bytes(held)
        _model.power_on()


def state():
    """What cuts have left that no byte of the image shows, for the next start: JSON; None: nothing."""
    if _model is None or not (_model.weak or _model.unerased):
        return None
    return {
        "weak": _model.weak,
        "unerased": {sector: list(held) for sector, held in _model.unerased.items()},
    }


def cut_next():
    """The next operation loses power."""
    global _operations_left
    _operations_left = 0


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


@micropython.native
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


@micropython.native
def _check(offset, count, end, start=0):
    if offset < start or offset + count > end:
        raise OSError(5)  # EIO


@micropython.native
def read(offset, buf, end):
    """Fill `buf` from `offset`. Allocates nothing. TypeError when it cannot be written, as on a board;
    OSError when its bytes, known only once they are read, go beyond `end`.
    """
    _reader.seek(offset)
    _check(offset, _reader.readinto(buf), end)
    if _model is not None and not (
        _model.plain(offset // erase_bytes) and _model.plain((offset + len(buf)) // erase_bytes)
    ):
        _model.read_weak(bytes_of(buf), offset)


def bytes_of(buf):
    """The bytes of any object with the buffer protocol, where they lie. TypeError for others."""
    view = memoryview(buf)
    # The view's items are the array's. How wide one is shows in where the second begins.
    width = addressof(view[1:]) - addressof(view) if len(view) else 1
    return bytearray_at(addressof(view), len(view) * width)


@micropython.native
def erase(offset, count):
    """Erase `count` bytes from `offset`, in whole blocks. A cut leaves half a block erased."""
    global erases
    _check(offset, count, size)
    if offset % erase_bytes or count % erase_bytes:
        raise ValueError("erase %d+%d: not whole blocks of %d" % (offset, count, erase_bytes))
    start = offset - erase_bytes
    while start + erase_bytes < offset + count:  # a range is an object
        start += erase_bytes
        if _spend():
            if _torn:
                _model.cut_erase(start // erase_bytes)
            else:
                _fill(_writable, start, erase_bytes // 2)
            raise PowerCut()
        _fill(_writable, start, erase_bytes)
        if _model is not None and not _model.plain(start // erase_bytes):
            _model.erased(start // erase_bytes)
        erases += 1


def program(offset, buf):
    """Program `buf` at `offset`, page by page. A cut leaves half of a page's part programmed."""
    global programs, lost_bits
    _check(offset, len(buf), size)
    view = memoryview(buf)
    at = 0
    while at < len(view):
        count = min(program_bytes - (offset + at) % program_bytes, len(view) - at)
        if _model is not None:
            sector = (offset + at) // erase_bytes
            here = (offset + at) % erase_bytes
            part = bytes(view[at : at + count])
        if _spend():
            if _torn:
                _model.cut_program(sector, here, part)
            else:
                _clear(_writable, offset + at, view[at:], count // 2)
            raise PowerCut()
        lost_bits += _clear(_writable, offset + at, view[at:], count)
        programs += 1
        at += count
        if _model is not None:
            _model.programmed(sector, here, part)


class BlockDevice:
    """The block protocol of rp2.Flash and esp32.Partition over `size` bytes from `start`."""

    def __init__(self, start, size):
        self._start = start
        self._size = size

    @micropython.native
    def readblocks(self, block, buf, offset=0):
        read(self._offset(block, offset), buf, self._start + self._size)

    @micropython.native
    def writeblocks(self, block, buf, offset=None):
        """Without an offset the blocks are erased first; with one they must have been. A page in a bytearray
        is programmed without an allocation, as on a board."""
        if offset is not None and type(buf) is _BYTEARRAY and self._page(block, buf, offset):
            return
        data = bytes_of(buf)
        at = self._offset(block, offset or 0, len(data))
        if offset is None:
            erase(at, len(data))
        program(at, data)

    @micropython.native
    def _page(self, block, buf, offset):
        """Program what lies within one page, unless a cut has left something there, or is due."""
        global _operations_left, programs, lost_bits
        n = len(buf)
        at = self._offset(block, offset, n)
        _check(at, n, size)
        if not n or at % program_bytes + n > program_bytes or _dead or _operations_left == 0:
            return False
        if _model is not None and not _model.plain(at // erase_bytes):
            return False
        _operations_left -= _operations_left > 0
        lost_bits += _clear(_writable, at, buf, n)
        programs += 1
        return True

    @micropython.native
    def _offset(self, block, offset, count=0):
        """Of `count` bytes, in the whole flash. OSError when they are not all in this device."""
        at = self._start + block * erase_bytes + offset
        _check(at, count, self._start + self._size, self._start)
        return at

    @micropython.native
    def ioctl(self, op, arg):
        if op == 4:
            return self._size // erase_bytes
        if op == 5:
            return erase_bytes
        if op == 6:
            erase(self._offset(arg, 0, erase_bytes), erase_bytes)
        return 0 if op in (1, 2, 3, 6) else None
