"""The pools by name: how the host makes one, and how its transitions are called.

A pool's transitions take its arrays in an order of their own. An entry says in one place what alloc and free
are made of, so that whatever drives compiled pools need not know them.
"""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from kvlab.engine import compiled
from mpy_kv.arena import Arena

BLOCK_BYTES = 64
WIDTH = 6


@dataclass(frozen=True)
class Compiled:
    """alloc(*state, size) -> handle, or negative; free(*state, handle) -> 0, or negative. Both compiled."""

    alloc: Callable[..., Any]
    free: Callable[..., Any]


@dataclass(frozen=True)
class Entry:
    """A pool of the catalogue.

    build(arena, blocks): one for `blocks` requests of BLOCK_BYTES, in an arena of room(blocks) bytes, always
    with the same handles. names: the arrays that its alloc and free work on, at most WIDTH. transitions: of
    the module's native functions, compiled, makes these two as `Compiled` says. beside: other modules with
    transitions of that pool.
    """

    name: str
    module: str
    build: Callable[[Arena, int], Any]
    names: tuple[str, ...]
    transitions: Callable[[dict[str, Any]], tuple[Any, Any]]
    beside: tuple[str, ...] = ()
    room: Callable[[int], int] = BLOCK_BYTES.__mul__
    most_blocks: int = 1 << 20

    @property
    def modules(self) -> tuple[str, ...]:
        """Those whose transitions the pool's methods call."""
        return (self.module, *self.beside)

    def pool(self, blocks: int) -> Any:
        return self.build(Arena(self.room(blocks)), blocks)

    def state(self, pool: Any) -> tuple[Any, ...]:
        """What compiled functions take: the pool's arrays, and empty ones up to WIDTH."""
        arrays = [attrgetter(name)(pool) for name in self.names]
        return (*arrays, *(array("i") for _ in range(WIDTH - len(arrays))))

    def compiled(self) -> Compiled:
        return _compiled(self)


@cache
def _compiled(entry: Entry) -> Compiled:
    return Compiled(*map(compiled.adapter, entry.transitions(compiled.transitions(entry.module))))


# Arguments of the adapters below: the arrays of `names` in order, the rest of WIDTH, then the request.
# mypy: disable-error-code="no-untyped-def"


def _fixed(native: dict[str, Any]) -> tuple[Any, Any]:
    take, give = native["take_block"], native["give_block"]

    def alloc(meta, word, _c, _d, _e, _f, size):
        return take(meta, word)

    def free(meta, word, _c, _d, _e, _f, handle):
        return give(meta, word, handle)

    return alloc, free


def _buddy(native: dict[str, Any]) -> tuple[Any, Any]:
    take, give = native["take"], native["give"]

    def alloc(meta, word, order, link, _e, _f, size):
        return take(meta, word, order, link, size, 4)

    def free(meta, word, order, link, _e, _f, handle):
        return give(meta, word, order, link, handle)

    return alloc, free


def _region(native: dict[str, Any]) -> tuple[Any, Any]:
    seek, take, give = native["seek"], native["take"], native["give"]

    def alloc(meta, word, node, _d, _e, _f, size):
        start = seek(meta, node, size, 4, -1)
        return start if start < 0 else take(meta, word, node, start, size, 4)

    def free(meta, word, node, _d, _e, _f, handle):
        return give(meta, word, node, handle)

    return alloc, free


def _slab(native: dict[str, Any]) -> tuple[Any, Any]:
    take, give = native["take_object"], native["give_object"]

    def alloc(meta, word, lost, slab, table, _f, size):
        # meta[RECORDS] is where the record of the default region is.
        return take(meta, word, lost, slab, table, meta[21], size, 4)

    def free(meta, word, lost, slab, table, _f, handle):
        return give(meta, word, lost, slab, table, handle)

    return alloc, free


def _slabs(blocks: int) -> int:
    return -(-blocks * BLOCK_BYTES // _SLAB_BYTES)


def _of(module: str, name: str) -> Any:
    """A pool's class, its module imported only now."""
    return getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)


_PACKAGE = "mpy_kv.pools"
_TAG = 5
_SLAB_BYTES = 4096
_CLASSES = (BLOCK_BYTES, 4 * BLOCK_BYTES)

POOLS = {
    entry.name: entry
    for entry in (
        Entry(
            "fixed",
            f"{_PACKAGE}.fixed",
            lambda arena, blocks: _of("fixed", "FixedPool")(arena, blocks, BLOCK_BYTES, _TAG),
            ("_meta", "_word"),
            _fixed,
            (f"{_PACKAGE}.batch",),
        ),
        Entry(
            "slab",
            f"{_PACKAGE}.slab",
            lambda arena, blocks: _of("slab", "SlabPool")(
                arena, _SLAB_BYTES, _slabs(blocks), _CLASSES, tag=_TAG
            ),
            ("_meta", "_word", "_lost", "_slab", "_table"),
            _slab,
            (f"{_PACKAGE}.units",),
            room=lambda blocks: _slabs(blocks) * _SLAB_BYTES,
        ),
        Entry(
            "buddy",
            f"{_PACKAGE}.buddy",
            lambda arena, blocks: _of("buddy", "BuddyPool")(
                arena, blocks * BLOCK_BYTES, BLOCK_BYTES, tag=_TAG
            ),
            ("_meta", "_word", "_order", "_link"),
            _buddy,
            (f"{_PACKAGE}.units",),
        ),
        Entry(
            "region",
            f"{_PACKAGE}.region",
            lambda arena, blocks: _of("region", "RegionPool")(arena, blocks * BLOCK_BYTES, blocks, tag=_TAG),
            ("_meta", "_word", "_node"),
            _region,
            (f"{_PACKAGE}.units",),
            most_blocks=4095,
        ),
        Entry(
            "slab+region",
            f"{_PACKAGE}.slab",
            lambda arena, blocks: _of("slab_region", "SlabRegionPool")(
                arena, _SLAB_BYTES, _slabs(blocks), _CLASSES, tag=_TAG
            ),
            ("_meta", "_word", "_lost", "_slab", "_table"),
            _slab,
            (f"{_PACKAGE}.slab_region", f"{_PACKAGE}.units"),
            room=lambda blocks: _slabs(blocks) * _SLAB_BYTES,
        ),
    )
}
