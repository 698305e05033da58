"""The arrays that make up a pool's state, found by looking: nobody has to name them.

A pool keeps arrays, bytearrays and, in CPython, lists of ints (mpy_kv.port.ints) as attributes; so do pools
inside it. `buffer`, the arena's bytes, is no state of the pool.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any


def arrays_of(pool: Any) -> dict[str, Any]:
    """Each of the pool's arrays by dotted name."""
    return {name: getattr(owner, key) for owner, key, name in _places(pool, "", set())}


def widened(pool: Any) -> Any:
    """The pool itself, each of its arrays now of signed 32 bits, as machine code wants them.

    A sum of two unsigned numbers is unsigned in numba, and with a signed one a float; a device's arrays of
    16 and 8 bits save its memory and mean nothing else. Arrays that two owners share stay shared.
    """
    wide: dict[int, array[int]] = {}
    for owner, key, _ in list(_places(pool, "", set())):
        old = getattr(owner, key)
        setattr(owner, key, wide.setdefault(id(old), array("i", list(old))))
    return pool


def _places(pool: Any, prefix: str, seen: set[int]) -> Iterator[tuple[Any, str, str]]:
    """(owner, attribute, dotted name) of each array."""
    if id(pool) in seen:
        return
    seen.add(id(pool))
    for key, value in sorted(vars(pool).items()):
        name = prefix + key
        if key == "buffer":
            continue
        if isinstance(value, (array, bytearray)) or _is_ints(value):
            yield pool, key, name
        elif hasattr(value, "metadata_bytes"):
            yield from _places(value, f"{name}.", seen)


def _is_ints(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is int for item in value)
