"""One preallocated bytearray and its carve-outs.

Allocates only when no buffer is supplied, once. take() is O(1). The arena keeps the buffer
referenced; it never resizes it. Offsets are bytes from the start of the buffer.
"""

from .errors import BadArgument, NoRoom
from .port import addressof


class Arena:
    """`buffer`: bytearray or memoryview of bytes to use, or None to allocate `size` bytes."""

    def __init__(self, size, buffer=None):
        if buffer is None:
            buffer = bytearray(size)
        try:
            have = len(buffer)
            addr = addressof(buffer)
            if have:
                buffer[0] = buffer[0]  # refuses bytes and read-only views
        except TypeError:
            raise BadArgument(
                "buffer must be a writable bytearray or memoryview, got %s"
                % type(buffer).__name__
            )
        # Kernels read whole words: the first carve-out starts on a word of real memory.
        self.start = (4 - addr % 4) % 4
        if have - self.start < size:
            raise BadArgument(
                "buffer has %d bytes, %d needed%s"
                % (have, size + self.start, " (its start is not on a word)" if self.start else "")
            )
        self.buffer = buffer
        self.size = size
        self._used = 0

    def take(self, size, align=4):
        """Reserve `size` bytes for good; returns their offset in the buffer."""
        at = (self._used + align - 1) // align * align
        if size < 0 or at + size > self.size:
            raise NoRoom(
                "arena", size, self.size - self._used, unit="bytes"
            )
        self._used = at + size
        return self.start + at

    def free_bytes(self):
        return self.size - self._used
