"""Which kernels have passed their self-check on this board: read at the start, written when one has.

Transient (mpy_kv/transient.py). The file is text: a line for each set, its key (mpy_kv/kernels/trial.py),
and last a line with the CRC-32 of all that precede it, in lower case. Whatever is not such a file, to the
byte, is none, and what cannot be written is not there at the next start: then the check runs.
"""

import sys
from binascii import crc32

FILE = "kernels.checked"
_MOST_BYTES = 4096


def usual():
    """Where a board keeps it; "" on a host, where a check takes no time, and on the emulated board, whose
    folder is the host's."""
    return FILE if sys.platform not in ("linux", "darwin", "win32", "webassembly", "qemu") else ""


def read(path):
    """The keys in the file, as tuple of text; none in doubt."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
        body, end = data[:-9], data[-9:]
        if len(data) > _MOST_BYTES or end != _end(body):
            return ()
        return tuple(str(body, "utf-8").split("\n")[:-1])
    except (OSError, ValueError):  # a UnicodeError is one
        return ()


def write(path, keys):
    """Replace the file. One that cannot be written whole is removed."""
    body = "".join([key + "\n" for key in keys]).encode()
    try:
        with open(path, "wb") as file:
            file.write(body + _end(body))
    except OSError:
        import os

        try:
            os.remove(path)
        except OSError:
            pass


def note(path, known, new):
    """Write `new` keys beside those `known` from the file, of which one of the same set goes. Nothing is
    written where nothing is new: flash wears."""
    if not [key for key in new if key not in known]:
        return
    sets = [_set(key) for key in new]
    write(path, [key for key in known if _set(key) not in sets] + new)


def _set(key):
    """Package and name."""
    return key.split("\t")[:2]


def _end(body):
    return b"%08x\n" % (crc32(body) & 0xFFFFFFFF)
