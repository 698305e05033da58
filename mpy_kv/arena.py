"""One preallocated bytearray and its carve-outs.

Allocates only when no buffer is supplied, once. take() is O(1). The arena keeps the buffer
referenced; it never resizes it. Offsets are bytes from the start of the buffer.
"""

from .errors import BadArgument, NoRoom
from .port import addressof


class Arena:
    """`buffer`: bytearray or memoryview of bytes to use, or None to allocate `size` bytes, less
    than 2^30: offsets are small ints on 32-bit boards. BadArgument."""

    def __init__(self, size, buffer=None):
        if type(size) is not int or size < 0 or size >> 30:
            raise BadArgument("size must be a whole number of bytes below 2^30, got %r" % (size,))
        if buffer is None:
            buffer = bytearray(size)
        if not _is_bytes(buffer):
            raise BadArgument(
                "buffer must be a writable bytearray or memoryview of bytes, got %s"
                % type(buffer).__name__
            )
        have = len(buffer)
        addr = addressof(buffer)
        # Kernels read whole words: the first carve-out starts on a word of real memory.
        self.start = (4 - addr % 4) % 4
        if have < self.start + size:
            raise BadArgument(
                "buffer has %d bytes, %d needed%s"
                % (have, size + self.start, " (its start is not on a word)" if self.start else "")
            )
        self.buffer = buffer
        self.size = size
        self._address = addr + self.start
        self._used = 0

    def take(self, size, align=4):
        """Reserve `size` bytes for good, on a multiple of `align` in real memory; returns their offset
        in the buffer."""
        if type(size) is not int or size < 0:
            raise BadArgument("size must be a whole number of bytes, got %r" % (size,))
        if type(align) is not int or align < 1 or align & (align - 1):
            raise BadArgument("align must be a power of two, got %r" % (align,))
        at = (self._address + self._used + align - 1) // align * align - self._address
        if at + size > self.size:
            raise NoRoom("arena", size, max(self.size - at, 0), unit="bytes")
        self._used = at + size
        return self.start + at

    def free_bytes(self):
        """Bytes not taken yet."""
        return self.size - self._used


def _is_bytes(buffer):
    """Writable, one byte an item, unsigned."""
    if not isinstance(buffer, (bytearray, memoryview)):
        return False
    if len(buffer) == 0:
        return True  # too short, as the caller finds
    try:
        first = buffer[0]
        buffer[0] = 255
        unsigned = buffer[0] == 255
        buffer[0] = first
    except (TypeError, ValueError, NotImplementedError):
        return False
    return unsigned and len(bytes(buffer[0:1])) == 1
