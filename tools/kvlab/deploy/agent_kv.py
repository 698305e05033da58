"""More of the board's half: the files of a flash log. Sent after agent.py."""

import binascii
import os


def file_system():
    """Prints the class of the file system that the interpreter stands in; nothing where it cannot be told."""
    try:
        import vfs

        here = os.getcwd() + "/"
        best, kind = "", ""
        for fs, where in vfs.mount():  # from MicroPython 1.25 on
            where = where.rstrip("/") + "/"
            if here.startswith(where) and len(where) > len(best):
                best, kind = where, type(fs).__name__
        print(kind)
    except (ImportError, TypeError, AttributeError):
        print()


def start(path):
    """Prints the first 8 bytes."""
    with open(path, "rb") as f:
        print(binascii.hexlify(f.read(8)).decode())
