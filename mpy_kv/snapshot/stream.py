"""Bytes to and from a stream, through one small buffer, with a checksum that goes on from section to section.

A pipe has move(buffer, at, n), which carries n bytes out of `buffer` or into it, and number(value), which
carries 32 bits and returns them. So one description of what is stored serves Writer, Reader and Count alike.
Transient (mpy_kv/transient.py).
"""

from binascii import crc32

from ..errors import BadArgument
from . import BadSnapshot

USUAL_BYTES = 256
_LEAST_BYTES = 16


def chunk(buffer):
    """The caller's buffer, or one of the usual size."""
    if buffer is None:
        return bytearray(USUAL_BYTES)
    if not isinstance(buffer, bytearray) or len(buffer) < _LEAST_BYTES:
        raise BadArgument("buffer must be a bytearray of at least %d bytes" % _LEAST_BYTES)
    return buffer


def put32(buffer, at, value):
    for i in range(4):
        buffer[at + i] = value >> 8 * i & 255


def get32(buffer, at):
    return buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16 | buffer[at + 3] << 24


class Count:
    """How many bytes would be moved."""

    def __init__(self):
        self.n = 0

    def move(self, buffer, at, n):
        self.n += n

    def number(self, value):
        self.n += 4
        return value


class Writer:
    """write(bytes-like) -> how many bytes it took, or None for all."""

    def __init__(self, write, buffer):
        self._write = write
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._fill = 0
        self._summed = 0  # bytes of the buffer that `crc` has
        self._word = bytearray(4)
        self.crc = 0
        self.written = 0

    def move(self, source, at, n):
        view = self._view
        source = memoryview(source)
        while n:
            if self._fill == len(view):
                self.flush()
            k = min(n, len(view) - self._fill)
            view[self._fill : self._fill + k] = source[at : at + k]
            self._fill += k
            at += k
            n -= k

    def number(self, value):
        put32(self._word, 0, value)
        self.move(self._word, 0, 4)
        return value

    def end_section(self):
        """The checksum of all so far but the checksums."""
        self._sum()
        if len(self._view) - self._fill < 4:
            self.flush()
        put32(self._buffer, self._fill, self.crc)
        self._fill += 4
        self._summed = self._fill

    def _sum(self):
        self.crc = crc32(self._view[self._summed : self._fill], self.crc) & 0xFFFFFFFF
        self._summed = self._fill

    def flush(self):
        self._sum()
        n = self._fill
        took = self._write(self._view[:n]) if n else n
        if took is not None and took != n:
            raise BadSnapshot("cannot be written: %d of %d bytes taken at byte %d" % (took, n, self.written))
        self.written += n
        self._fill = self._summed = 0


class Reader:
    """readinto(memoryview) -> how many bytes it has put there, 0 or None at the end. `left`: bytes of the
    snapshot that have not been asked for, so many are at most."""

    def __init__(self, readinto, buffer, left):
        self._readinto = readinto
        self._buffer = buffer
        self._view = memoryview(buffer)
        self._at = self._end = self._summed = 0
        self._word = bytearray(4)
        self.left = left
        self.fetched = 0
        self.crc = 0

    def rest(self):
        """Bytes of the snapshot not read yet."""
        return self.left + self._end - self._at

    def _fetch(self):
        self._sum()
        k = min(len(self._view), self.left)
        got = self._readinto(self._view[:k]) if k else 0
        if not got or not 0 < got <= k:
            raise BadSnapshot("ends after %d bytes, too early" % self.fetched)
        self.left -= got
        self.fetched += got
        self._at = self._summed = 0
        self._end = got

    def move(self, to, at, n):
        to = None if to is None else memoryview(to)
        while n:
            if self._at == self._end:
                self._fetch()
            k = min(n, self._end - self._at)
            if to is not None:
                to[at : at + k] = self._view[self._at : self._at + k]
            self._at += k
            at += k
            n -= k

    def skip(self, n):
        self.move(None, 0, n)

    def number(self, value=0):
        self.move(self._word, 0, 4)
        return get32(self._word, 0)

    def _sum(self):
        self.crc = crc32(self._view[self._summed : self._at], self.crc) & 0xFFFFFFFF
        self._summed = self._at

    def end_section(self, what):
        """The checksum that stands here is that of all before; else BadSnapshot."""
        self._sum()
        stored = 0
        for i in range(4):
            if self._at == self._end:
                self._fetch()
            stored |= self._buffer[self._at] << 8 * i
            self._at += 1
            self._summed = self._at
        if stored != self.crc:
            raise BadSnapshot("damaged: checksum of %s" % what)
