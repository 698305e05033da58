"""Caches of every kind, small, and their snapshots as bytes; the format read by itself, from docs/SPEC.md."""

from __future__ import annotations

import random
import struct
import zlib
from array import array
from collections.abc import Callable, Iterator
from typing import Any

from mpy_kv import Geometry, cache_for, geometry_for, snapshot
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.token_eviction import BudgetCache

HEADER = struct.Struct("<4sHHIIHHHHIIIBBHIIIII16sI")
HEAD = struct.Struct("<4sII")
SHAPE = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 4}
Make = Callable[[], Any]


def vector(n: int, seed: int) -> array[float]:
    r = random.Random(seed)
    return array("f", [r.uniform(-2, 2) for _ in range(n)])


def step(cache: Any, t: int) -> list[bytes]:
    """One token, its id t; what each layer attends to."""
    g = cache.geometry
    kv, q = g.kv_heads * g.head_dim, g.heads * g.head_dim
    out, seen = array("f", [0] * q), []
    for layer in range(g.layers):
        cache.append(layer, vector(kv, 3 * t + layer), vector(kv, 7 * t + layer))
        sinks = vector(q, 13 * t + layer) if g.sinks else None
        cache.attend(layer, vector(q, 11 * t + layer), out, sinks)
        seen.append(bytes(out))
    if hasattr(cache, "ledger"):
        cache.commit(t)
    else:
        cache.commit()
    return seen


def grown(make: Make, tokens: int) -> Any:
    cache = make()
    for t in range(tokens):
        step(cache, t)
    return cache


def plain(codec: Any, **shape: Any) -> Make:
    return lambda: cache_for(geometry_for(codec, **{**SHAPE, **shape}))


def budget(policy: str, **options: Any) -> Make:
    return lambda: BudgetCache(Geometry(**SHAPE, window=9, sinks=2), policy=policy, **options)


def request(block_tokens: int = 8, **shape: Any) -> Make:
    g = PagedGeometry(**SHAPE, block_tokens=block_tokens, **shape)
    return lambda: Requests(g, 3 * g.pages).open()


WINDOW = {"window": 18, "sinks": 2}
KINDS: dict[str, Make] = {
    "ring": plain("int8", **WINDOW),
    "capacity": plain("int8", capacity=80),
    "sliced": plain("int8", group=2, **WINDOW),
    "int8-int4": plain("int8-int4", **WINDOW),
    "sparse": plain("sparse", **WINDOW),
    "float16": plain("float16", **WINDOW),
    "float32": plain("float32", **WINDOW),
    "mixed": plain(["float16", "int8-int4"], **WINDOW),
    "sealed": plain("int4", window=37, sinks=1),
    "sealed, short": plain("int4", window=7, sinks=0),
    "sealed, capacity": plain("int4", capacity=80),
    "window": budget("window"),
    "lru-peak": budget("lru-peak"),
    "window-lru": budget("window-lru", recent=3),
    "heavy-hitters": budget("heavy-hitters"),
    "lfu-decay": budget("lfu-decay"),
    "paged": request(**WINDOW),
    "paged, capacity": request(capacity=80),
}


class Stream:
    """A stream to write to and read from. short: it reads so many bytes at a time; asked: what it was
    asked for in all."""

    def __init__(self, data: bytes = b"", short: int = 1 << 30) -> None:
        self.data, self.at, self.short, self.asked = bytearray(data), 0, short, 0

    def write(self, part: Any) -> int:
        self.data += part
        return len(part)

    def readinto(self, view: Any) -> int:
        self.asked += len(view)
        k = min(len(view), len(self.data) - self.at, self.short)
        view[:k] = self.data[self.at : self.at + k]
        self.at += k
        return k


def saved(cache: Any, **options: Any) -> bytes:
    stream = Stream()
    assert snapshot.save(cache, stream.write, **options) == len(stream.data)
    return bytes(stream.data)


def load(cache: Any, data: bytes, **options: Any) -> int:
    return int(snapshot.load(cache, Stream(data).readinto, **options))


def sections(data: bytes) -> Iterator[tuple[bytes, int, int, int]]:
    """(tag, index, where its payload begins, its length), checksums verified, all by the format's page."""
    fields = HEADER.unpack_from(data)
    assert fields[0] == b"MKVS"
    assert fields[3] == len(data)
    crc = zlib.crc32(data[:76])
    assert fields[-1] == crc
    at = fields[2]
    while at < len(data):
        tag, index, n = HEAD.unpack_from(data, at)
        crc = zlib.crc32(data[at : at + 12 + n], crc)
        assert struct.unpack_from("<I", data, at + 12 + n) == (crc,)
        yield tag, index, at + 12, n
        at += 16 + n


def mended(data: bytes, total: bool = True) -> bytes:
    """The same with right checksums and, with total, the right length: what only a hostile writer makes."""
    made = bytearray(data)
    if total:
        struct.pack_into("<I", made, 8, len(made))
    crc = zlib.crc32(made[:76])
    struct.pack_into("<I", made, 76, crc)
    at = 80
    while at + 16 <= len(made):
        n = HEAD.unpack_from(made, at)[2]
        if at + 16 + n > len(made):
            break
        crc = zlib.crc32(made[at : at + 12 + n], crc)
        struct.pack_into("<I", made, at + 12 + n, crc)
        at += 16 + n
    return bytes(made)
