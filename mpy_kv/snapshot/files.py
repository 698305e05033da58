"""Snapshots in files: written beside the name and renamed to it, read whole before anything is loaded.

Transient (mpy_kv/transient.py).
"""

import os

from ..transient import load_module
from . import BESIDE, BadSnapshot

L = load_module("mpy_kv.snapshot.loading")
F = L.F
H = L.H
S = L.S


def save(cache, path, model, rope, ids, sections, buffer):
    """As mpy_kv.snapshot.save_file."""
    beside = path + BESIDE
    try:
        with open(beside, "wb") as f:
            total = L.W.save(cache, f.write, model, rope, ids, sections, buffer)
            f.flush()
        # A file system may have said that it has what it has not.
        with open(beside, "rb") as f:
            L.check(f.readinto, None, buffer)
            _end(f, total)
        if hasattr(os, "sync"):
            os.sync()
        # Of MicroPython it replaces a file, on littlefs and FAT alike; of CPython not everywhere.
        getattr(os, "replace", os.rename)(beside, path)
    except BaseException:
        try:
            os.remove(beside)
        except OSError:
            pass
        raise
    return total


def load(cache, path, model, rope, ids, sections, buffer):
    """As mpy_kv.snapshot.load_file."""
    form = F.of(cache)
    F.check_empty(cache)
    buffer = S.chunk(buffer)
    wanted = set(sections or ())

    def seen(tag, index, n):
        wanted.discard(tag)

    with open(path, "rb") as f:
        r = S.Reader(f.readinto, buffer, H.BYTES)
        h = L.walk(r, L.compared(r, form, model, rope), seen)
        _end(f, h.total_bytes)
        if wanted:
            raise BadSnapshot("has no section %s" % ", ".join([tag.decode() for tag in sorted(wanted)]))
        f.seek(0)
        return L.load(cache, f.readinto, model, rope, ids, sections, buffer)


def _end(f, total):
    """The file has no byte more."""
    if f.read(1):
        raise BadSnapshot("the file is longer than the %d bytes of its snapshot" % total)
