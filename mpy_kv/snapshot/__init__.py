"""Snapshots: one sequence as a stream of bytes, the same on every port (docs/SPEC.md, "The snapshot").

    from mpy_kv import snapshot
    snapshot.save_file(cache, "story.mkvs", model=ID)
    snapshot.load_file(other, "story.mkvs", model=ID)    # other: empty, of the same geometry
    # or, over whatever writes and reads bytes: save(cache, f.write), load(other, f.readinto)

Any cache of mpy_kv, between steps: KVCache, MixedCache, SealedCache, BudgetCache, a request of mpy_kv.paged.
What comes after a load is to the bit what would have come without. Memory: a buffer of 256 bytes, or the
caller's, and small objects, whatever is saved; nothing is as large as a length in the file says.

Everything but the exception is transient (mpy_kv/transient.py). A part of its own: see tools/kvlab/parts.
"""

from ..errors import KVError
from ..transient import load_module


BESIDE = ".new"  # ends the name of a file that save_file() has not finished


class BadSnapshot(KVError):
    """Bytes that are no sound snapshot, or one of another version, geometry, policy or model; or a stream
    that took only a part of one."""


def save(cache, write, model=0, rope=0, ids=None, sections=(), buffer=None):
    """Write the committed tokens of `cache` through write(bytes-like); returns the number of bytes.

    model, rope: numbers below 2^32 and 256 that say whose keys these are, and how they are rotated; load()
    compares them. ids: what gives the id of a visible token as ids[position] (a Request has its
    own while it knows all of them: one with a window that was loaded past it does not).
    sections: pairs (tag, bytes) of the program's, a tag of four bytes, the first a small letter.
    buffer: a bytearray to work in. Raises StepError within a step, BadSnapshot where write() takes less than
    all; the sequence stays as it is, but for blocks of int4 that a rollback left to the next step to open."""
    return load_module("mpy_kv.snapshot.saving").save(cache, write, model, rope, ids, sections, buffer)


def save_file(cache, path, model=0, rope=0, ids=None, sections=(), buffer=None):
    """save() to a file beside `path`, which is read back and then renamed to it: whatever fails, path has
    what it had."""
    return load_module("mpy_kv.snapshot.files").save(cache, path, model, rope, ids, sections, buffer)


def load(cache, readinto, model=0, rope=0, ids=None, sections=None, buffer=None):
    """Take over what save() has written; returns how many tokens that are, which need not be computed.

    readinto(memoryview) fills a part of it and returns how much, 0 at the end; no byte beyond the snapshot
    is asked for. cache: empty, no step begun. ids: takes the id of a visible token by ids[position] = id.
    sections: a dict of those that the program wants, by tag: a bytearray as long as the section, or a
    function of the length that returns one, or refuses.
    Raises StepError, BadSnapshot, of a request also NoRoom; any exception leaves the sequence empty (one that
    comes from outside, behind the last store, loaded)."""
    return load_module("mpy_kv.snapshot.loading").load(cache, readinto, model, rope, ids, sections, buffer)


def load_file(cache, path, model=0, rope=0, ids=None, sections=None, buffer=None):
    """load() from a file that is first read to its end: what it holds is whole, or nothing is loaded."""
    return load_module("mpy_kv.snapshot.files").load(cache, path, model, rope, ids, sections, buffer)


def check(readinto, seen=None, buffer=None):
    """Read a snapshot to its end, checksums and lengths alone; its Header (header.py). BadSnapshot.
    seen: called with the tag, index and length of each section."""
    return load_module("mpy_kv.snapshot.loading").check(readinto, seen, buffer)
