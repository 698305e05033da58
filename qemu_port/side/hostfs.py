"""Files of the host on the emulated board, over ARM semihosting.

`vfs.mount(HostFS("/some/folder"), "/lib")`. Python files and .mpy files are read through a stream into
the heap, as from littlefs on a board; nothing runs where it lies. Seeking, and reading into a
bytearray, allocate nothing.
This file is the first thing a freshly started board is given (see qemu_port/board.py).
"""

import io
from array import array

import micropython
from micropython import const
from uctypes import addressof

_OPEN = const(1)
_CLOSE = const(2)
_WRITE = const(5)
_READ = const(6)
_SEEK = const(10)
_LENGTH = const(12)
_REMOVE = const(14)
_RENAME = const(15)
_ERRNO = const(19)

# Of io streams.
_STREAM_CLOSE = const(4)
_STREAM_BUFFER_SIZE = const(11)
_BUFFER_BYTES = const(256)  # what is read at a time on import; a board's littlefs has as much

# trap(operation, array of arguments), one semihosting call, is there already: see machines.py.
_words = array("i", [0, 0, 0, 0])


def _fail():
    raise OSError(trap(_ERRNO, _words) or 5)


def _path(name):
    return name.encode() + b"\0"


def _open(name, mode):
    """A handle, or -1."""
    text = _path(name)
    _words[0] = addressof(text)
    _words[1] = mode
    _words[2] = len(text) - 1
    return trap(_OPEN, _words)


class File(io.IOBase):
    """One open file of the host. With `text` it reads str, as UTF-8."""

    def __init__(self, handle, text):
        self._handle = handle
        self._text = text
        self._at = 0
        _words[0] = handle
        self._size = trap(_LENGTH, _words)

    @micropython.native
    def readinto(self, buf):
        """Bytes read; `buf` has items of any size."""
        n = _bytes(buf)
        _words[0] = self._handle
        _words[1] = addressof(buf)
        _words[2] = n
        n -= trap(_READ, _words)
        self._at += n
        return n

    @micropython.native
    def write(self, buf):
        if isinstance(buf, str):
            buf = buf.encode()
        n = _bytes(buf)
        _words[0] = self._handle
        _words[1] = addressof(buf)
        _words[2] = n
        if trap(_WRITE, _words):
            _fail()
        self._at += n
        self._size = max(self._size, self._at)
        return n

    @micropython.native
    def seek(self, offset, whence=0):
        if whence == 1:
            offset += self._at
        elif whence == 2:
            offset += self._size
        _words[0] = self._handle
        _words[1] = offset
        if trap(_SEEK, _words):
            _fail()
        self._at = offset
        return offset

    def tell(self):
        return self._at

    def _returned(self, buf):
        return str(buf, "utf-8") if self._text else bytes(buf)

    def read(self, size=-1):
        left = max(self._size - self._at, 0)
        buf = bytearray(left if size is None or size < 0 else min(size, left))
        self.readinto(buf)
        return self._returned(buf)

    def readline(self):
        start = self._at
        line = b""
        piece = bytearray(128)
        while b"\n" not in line:
            n = self.readinto(piece)
            if not n:
                break
            line += piece[:n]
        end = line.find(b"\n") + 1
        line = line[: end or len(line)]
        self.seek(start + len(line))
        return self._returned(line)

    def __iter__(self):
        return self

    def __next__(self):
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def flush(self):
        pass

    def close(self):
        if self._handle >= 0:
            _words[0] = self._handle
            trap(_CLOSE, _words)
            self._handle = -1

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.close()

    def ioctl(self, request, argument):
        if request == _STREAM_CLOSE:
            self.close()
            return 0
        return _BUFFER_BYTES if request == _STREAM_BUFFER_SIZE else -22  # EINVAL


def _bytes(buf):
    """Length of what has the buffer protocol, in bytes. Allocates unless it is a bytearray or bytes."""
    n = len(buf)
    if isinstance(buf, (bytearray, bytes)) or not n:
        return n
    return n * len(bytes(memoryview(buf)[:1]))


class HostFS:
    """The host's folder `root` as a file system; one that ends in "/" is all of the host, with relative
    paths from there."""

    def __init__(self, root=""):
        self._root = root

    def mount(self, readonly, mkfs):
        pass

    def umount(self):
        pass

    def chdir(self, path):
        pass

    def getcwd(self):
        return "/"

    def _name(self, path):
        if self._root[-1] == "/" and path[:1] == "/":
            return path
        return self._root + path

    def open(self, path, mode):
        writes = 4 if "w" in mode else 8 if "a" in mode else 0
        handle = _open(self._name(path), writes + (2 if "+" in mode else 0) + 1)
        if handle < 0:
            _fail()
        file = File(handle, "b" not in mode)
        if "a" in mode:
            file.seek(0, 2)  # the emulator leaves that to us
        return file

    def stat(self, path):
        name = self._name(path)
        kind = 0x4000
        handle = _open(name + "/.", 1)
        if handle < 0:
            kind = 0x8000
            handle = _open(name, 1)
        if handle < 0:
            raise OSError(2)
        _words[0] = handle
        size = trap(_LENGTH, _words)
        trap(_CLOSE, _words)
        return (kind, 0, 0, 0, 0, 0, size, 0, 0, 0)

    def remove(self, path):
        text = _path(self._name(path))
        _words[0] = addressof(text)
        _words[1] = len(text) - 1
        if trap(_REMOVE, _words):
            _fail()

    def rename(self, old, new):
        old = _path(self._name(old))
        new = _path(self._name(new))
        _words[0] = addressof(old)
        _words[1] = len(old) - 1
        _words[2] = addressof(new)
        _words[3] = len(new) - 1
        if trap(_RENAME, _words):
            _fail()
