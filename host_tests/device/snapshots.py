"""Snapshots of every kind of cache: their bytes and what comes after them, the same on every port.

usage: snapshots.py [NAME FILE ...]   write the snapshot of that kind to the file, before all are told
"""

import binascii
import sys
from array import array

from mpy_kv import Geometry, cache_for, geometry_for, kernels, snapshot
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.token_eviction import BudgetCache
from mpy_kv.transient import unload_all

LAYERS = 2
WINDOW = {"window": 20, "sinks": 2}


def numbers(count, seed):
    return array("f", [((seed * 7 + i * 5) % 23 - 11) / 8 for i in range(count)])


OUT = array("f", [0] * 32)


def step(cache, t):
    """One token of all layers, its id t; a checksum of what it attends to."""
    seen = 0
    for layer in range(LAYERS):
        cache.append(layer, numbers(10, 3 * t + layer), numbers(10, 5 * t + layer))
        q = numbers(20, t + 9)
        cache.attend(layer, q, OUT, numbers(20, t + 4) if cache.geometry.sinks else None)
        seen = binascii.crc32(bytes(OUT)[:80], seen)
    if hasattr(cache, "ledger"):
        cache.commit(t)
    else:
        cache.commit()
    return seen


def plain(codec, **shape):
    return lambda: cache_for(geometry_for(codec, LAYERS, 4, 2, 5, **shape))


def budget(policy):
    return lambda: BudgetCache(Geometry(LAYERS, 4, 2, 5, window=12, sinks=1), policy=policy)


def request(**shape):
    return lambda: Requests(PagedGeometry(LAYERS, 4, 2, 5, block_tokens=8, **shape), 12).open()


KINDS = {
    "int8": plain("int8", **WINDOW),
    "capacity": plain("int8", capacity=60),
    "int8-int4": plain("int8-int4", **WINDOW),
    "sparse": plain("sparse", **WINDOW),
    "float16": plain("float16", **WINDOW),
    "mixed": plain(["int8", "int8-int4"], **WINDOW),
    "int4": plain("int4", window=37, sinks=1),
    "window-lru": budget("window-lru"),
    "lru-peak": budget("lru-peak"),
    "lfu": budget("lfu"),
    "paged": request(**WINDOW),
}


def lived(cache):
    """Tokens beyond every window, some of them rolled back."""
    for t in range(45):
        step(cache, t)
    cache.rollback(6)
    for t in range(100, 109):
        step(cache, t)
    return cache


class Bytes:
    """What write() appends to, and readinto() reads from."""

    def __init__(self):
        self.all = bytearray()
        self.at = 0

    def write(self, part):
        self.all.extend(bytes(part))
        return len(part)

    def readinto(self, view):
        k = min(len(view), len(self.all) - self.at, 50)
        view[:k] = self.all[self.at : self.at + k]
        self.at += k
        return k


def saved(cache, extra=b"as it was"):
    made = Bytes()
    snapshot.save(cache, made.write, model=0x89ABCDEF, rope=1, sections=((b"note", extra),))
    return made


def told(name):
    """Checksum of a snapshot, of what comes after it in the one and in the other."""
    cache = lived(KINDS[name]())
    made = saved(cache)
    other = KINDS[name]()
    note = bytearray(9)
    reused = snapshot.load(other, made.readinto, model=0x89ABCDEF, rope=1, sections={b"note": note})
    same = bytes(note) == b"as it was" and other.visible() == cache.visible() and other.check() == 0
    end = 12 if cache.geometry.capacity else 50
    after = [step(cache, t) for t in range(200, 200 + end)]
    same = same and after == [step(other, t) for t in range(200, 200 + end)]
    return "%s: %d bytes, %08x, %d tokens, after it %08x, %s" % (
        name,
        len(made.all),
        binascii.crc32(made.all),
        reused,
        binascii.crc32(repr(after).encode()),
        "the same" if same else "OTHERS",
    )


def refused(name, which, byte):
    """What a load says of a code, or a scale, that no encoder writes, checksums and all else being right."""
    cache = lived(KINDS[name]())
    codes, scales = cache.place(1, which, cache.length - 1)
    cache.buffer[codes if byte == 0 else scales + 1] = byte
    other = KINDS[name]()
    try:
        snapshot.load(other, saved(cache).readinto, model=0x89ABCDEF, rope=1)
    except snapshot.BadSnapshot as error:
        return "%s: %s, length %d" % (name, error, other.length)
    return "%s: taken" % name


def main(words):
    for i in range(0, len(words), 2):
        with open(words[i + 1], "wb") as f:
            f.write(saved(lived(KINDS[words[i]]())).all)
    for name in sorted(KINDS):
        print(told(name))
        kernels.release()
        unload_all()
    for name, which, byte in (
        ("int8", "k", 0),
        ("int8", "v", 0x7C),
        ("int8-int4", "v", 0),
        ("lfu", "k", 0xFF),
    ):
        print(refused(name, which, byte))


if __name__ == "__main__":
    main(sys.argv[1:])
