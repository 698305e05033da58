"""The board's half of `kvlab deploy`: sent over the raw REPL and run there, from MicroPython 1.24 on.

Plain Python that CPython runs too. Answers are printed, a line for each thing asked. Files are read in
pieces of 1 KiB, so that a full heap is no obstacle.
"""

import binascii
import os

try:
    import hashlib

    sha256 = hashlib.sha256
except (ImportError, AttributeError):  # firmware without it: a checksum must do
    sha256 = None

try:
    import io
    from deflate import RAW, DeflateIO
except ImportError:  # CPython, and firmware without it
    DeflateIO = None

WINDOW_BITS = 10  # of what is sent compressed


def digest(read):
    """Hash of what `read(buffer)` (the count of bytes it put there) gives until it gives nothing."""
    piece = memoryview(bytearray(1024))
    checksum = 0
    h = sha256() if sha256 else None
    while True:
        n = read(piece)
        if not n:
            break
        if h:
            h.update(piece[:n])
        else:
            checksum = binascii.crc32(piece[:n], checksum)
    return binascii.hexlify(h.digest()).decode() if h else "%08x" % checksum


def survey(paths):
    """Of each path: its size and hash, or `-` where there is no file."""
    for path in paths:
        try:
            size = os.stat(path)[6]
            with open(path, "rb") as f:
                print(size, digest(f.readinto))
        except OSError:
            print("-")


def walk(folder):
    """Every file below: its size and its path. Nothing where there is no such folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in sorted(names):
        path = folder + "/" + name
        status = os.stat(path)
        if status[0] & 0x4000:
            walk(path)
        else:
            print(status[6], path)


def folders(path):
    """Make the folders that lead to `path`, those that are missing."""
    at = path.find("/", 1)
    while at > 0:
        try:
            os.stat(path[:at])
        except OSError:
            os.mkdir(path[:at])
        at = path.find("/", at + 1)


def begin(path):
    global out
    folders(path)
    out = open(path, "wb")


def unpacked(text):
    """Bytes of a piece: base 64, of itself if it is of type str, of its deflated form if bytes."""
    piece = binascii.a2b_base64(text)
    return DeflateIO(io.BytesIO(piece), RAW, WINDOW_BITS).read() if isinstance(text, bytes) else piece


def more(text):
    """Append a piece to the file that begin() opened."""
    out.write(unpacked(text))


def end(path):
    """Close it, and tell what is there now."""
    out.close()
    survey((path,))


def drop(path):
    """Remove a half-written file, whatever state it is in; nothing that can be done is an error here."""
    try:
        out.close()
    except (NameError, OSError):
        pass
    try:
        os.remove(path)
    except OSError:
        pass
