"""Sequences in a flash log, cut off and gone on with, beside twins that nothing happened to."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

from snapshot_cases import plain, saved

from kvlab.powercut.flash import Nor, PowerCut
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.opening import open_log
from mpy_kv.resume import BlockLog, sizes

TAIL = 16
RINGS: dict[str, Callable[[], Any]] = {
    "int8": plain("int8", window=40, sinks=2),
    "no sinks": plain("int8", window=40, sinks=0),
    "as many sinks as in a block": plain("int8", window=32, sinks=16),
    "more sinks": plain("int8", window=33, sinks=20),
    "one sink": plain("int8", window=48, sinks=1),
    "short": plain("int8", window=7, sinks=4),
    "window 1": plain("int8", window=1, sinks=1),
    "sliced": plain("int8", group=2, window=40, sinks=2),
    "float16": plain("float16", window=40, sinks=2),
    "float32": plain("float32", window=40, sinks=2),
    "int8-int4": plain("int8-int4", window=40, sinks=2),
    "sparse": plain("sparse", window=40, sinks=3),
    "mixed": plain(["float16", "int8-int4"], window=35, sinks=2),
    "sealed": plain("int4", window=70, sinks=2),
    "sealed, short": plain("int4", window=7, sinks=0),
    "sealed, one block": plain("int4", window=16, sinks=1),
    "sealed, two blocks": plain("int4", window=32, sinks=3),
    "sealed, groups": plain("int4", window=40, sinks=2, group=4),
    "sealed, capacity": plain("int4", capacity=200),
    "capacity": plain("int8", capacity=200),
    # A record is longer than a sector.
    "wide": plain("int8", layers=4, kv_heads=4, head_dim=8, heads=4, window=40, sinks=2),
}


def step(cache: Any) -> None:
    """One token, its rows told by its position."""
    g, t = cache.geometry, cache.length
    n = g.kv_heads * g.head_dim
    for layer in range(g.layers):
        rows = [((37 * t + 11 * layer + 13 * i * i + t * t // 7) % 101 - 50) / 25 for i in range(2 * n)]
        cache.append(layer, array("f", rows[:n]), array("f", rows[n:]))
    cache.commit()


def sectors(make: Callable[[], Any]) -> int:
    """The smallest region for it."""
    return int(sizes.smallest_sectors(make(), TAIL))


def blank(make: Callable[[], Any], more: int = 0) -> Any:
    """An empty log in the smallest region, or one so much larger."""
    nor = Nor(sectors(make) + more)
    format_log(sizes.make(nor, make(), TAIL))
    return nor


class Told:
    """A sequence over a flash, from a start of it on. went_on: tokens that were in the log."""

    def __init__(self, make: Callable[[], Any], nor: Any, identity: int = 5, accept: Any = None) -> None:
        self.cache, self.tail = make(), bytearray(TAIL)
        log = open_log(sizes.make(nor, self.cache, TAIL))
        while log.step():
            pass
        self.put: list[tuple[int, int]] = []  # (block, version)
        self.blocks = BlockLog(log, self.cache, identity, self.tail)
        self._put, log.put = log.put, self._noted
        self.went_on = int(self.blocks.restore(accept))
        if self.went_on:
            assert self.tail == _tail(self.went_on + 1)
        else:
            self.blocks.begin()

    def _noted(self, slot: int, block: int, *how: Any) -> None:
        version = self._put(slot, block, *how)
        if slot == self.blocks.slot:
            self.put.append((block, version))

    def kept(self) -> int:
        """Blocks that no cut can take back, of those put since the start."""
        log, slot = self.blocks.log, self.blocks.slot
        return max((block + 1 for block, version in self.put if log.durable(slot, version)), default=0)

    def tell(self, to: int) -> Told:
        """Tokens up to that length."""
        while self.cache.length < to:
            self.tail[:] = _tail(self.cache.length + 1)
            step(self.cache)
            self.blocks.stepped()
        return self


def _tail(length: int) -> bytes:
    return bytes([length & 255, length >> 8]) * (TAIL // 2)


class Twins:
    """Snapshots of a sequence that was never cut, at those lengths."""

    def __init__(self, make: Callable[[], Any], *lengths: int) -> None:
        self._lengths = lengths
        self._cache = make()
        self._seen: dict[int, bytes] = {}

    def at(self, length: int) -> bytes:
        while self._cache.length < length:
            step(self._cache)
            if self._cache.length in self._lengths:
                self._seen[self._cache.length] = saved(self._cache)
        return self._seen[length]


def cut_after(make: Callable[[], Any], nor: Any, operations: int, to: int) -> Told | None:
    """Told until the power goes in that operation of the flash; None: it does in the start already."""
    nor.cut_after = operations
    told = None
    try:
        told = Told(make, nor)
        told.tell(to)
    except PowerCut:
        pass
    return told
