"""Keys as numbers from 0 on, in the order in which they first come: once a trace, so that replays need no
hashing."""

from __future__ import annotations

from typing import Any

import numpy as np

from kvlab.engine import compiled

_FIRST_PLACES = 1 << 16
_EMPTY = -1
_MIX = np.int64(-7046029254386353131)  # 2^64 / golden ratio, odd


class Numbering:
    """Numbers for whole numbers of at least 0, with a compiled hash table: some 20 bytes a key."""

    def __init__(self) -> None:
        self.distinct = 0
        self._enter = compiled.compiled(_enter)
        self._clear(_FIRST_PLACES)

    def numbers(self, keys: Any) -> Any:
        """The numbers (int32) of an int64 array of keys; new keys get the next ones."""
        places = len(self._keys)
        while 2 * (self.distinct + len(keys)) > places:
            places *= 2
        if places > len(self._keys):
            known = self._keys >= 0
            old_keys, old_values = self._keys[known], self._values[known]
            self._clear(places)
            self._enter(self._keys, self._values, old_keys[np.argsort(old_values)], 0, np.zeros(0, np.int32))
        found = np.empty(len(keys), np.int32)
        self.distinct = self._enter(self._keys, self._values, keys, self.distinct, found)
        return found

    def _clear(self, places: int) -> None:
        self._keys = np.full(places, _EMPTY, np.int64)
        self._values = np.zeros(places, np.int32)


def _enter(table, values, keys, distinct, found):  # type: ignore[no-untyped-def]
    """Open addressing in a table of 2^n places, never more than half full."""
    mask = len(table) - 1
    for t in range(len(keys)):
        key = keys[t]
        mixed = key * _MIX
        at = (mixed ^ (mixed >> 29)) & mask
        while table[at] != key and table[at] != _EMPTY:
            at = (at + 1) & mask
        if table[at] == _EMPTY:
            table[at] = key
            values[at] = distinct
            distinct += 1
        if t < len(found):
            found[t] = values[at]
    return distinct
