"""check() counts what one changed word breaks: every word of every structure, against known counts.

goldens/damage.txt is written by `python host_tests/test_damage.py --write`; look at what has changed in it.
"""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from typing import Any

import damaged
import pytest

from mpy_kv.errors import KVError

KNOWN = Path(__file__).parent / "goldens" / "damage.txt"

STUMBLES = (IndexError, ValueError, KVError, OverflowError)
# Whatever stands in a word of these is seen, in each structure that has them.
ALWAYS_SEEN = {
    "fixed": (),
    "slab": ("_slab",),
    "slab+region": ("_slab",),
    "buddy": ("_word", "_order"),
    "region": ("_word",),
    "admission": ("_nxt",),
    "predictor": ("_totals", "_counts"),
    "requests": ("ref", "common", "held", "share", "bucket"),
    "fifo": ("_meta", "_nxt", "_prv"),
    "lru": ("_meta", "_nxt", "_prv"),
    "lfu": ("_nxt", "_prv"),
    "hybrid": ("_nxt", "_prv", "_newer", "_older", "_fresh"),
    "hybrid 3": ("_nxt", "_prv", "_newer", "_older", "_fresh"),
    "sieve": ("_nxt", "_prv"),
    "s3fifo": ("_nxt", "_prv"),
    "s3fifo 3": ("_nxt", "_prv"),
}


def told(made: Any) -> dict[str, tuple[int, int, int, int, int]]:
    """Of each array: changes, those that are not seen, those that check() stumbles over, the sum of the
    counts of the others, and a checksum of all of them in order."""
    counts: dict[str, list[int | None]] = {}
    for name, _, _, _ in damaged.damages(made):
        try:
            found = made.check()
        except STUMBLES:
            found = None
        counts.setdefault(name, []).append(found)
    return {
        name: (
            len(found),
            found.count(0),
            found.count(None),
            sum(x or 0 for x in found),
            zlib.crc32(repr(found).encode()),
        )
        for name, found in counts.items()
    }


def lines(name: str) -> list[str]:
    """As in the file of the known ones."""
    made = damaged.MADE[name]()
    assert made.check() == 0
    found = told(made)
    assert made.check() == 0
    for array in ALWAYS_SEEN.get(name, ()):
        assert found[array][1] == 0, array
    return [
        f"{name}: {array}: {changes} changes, {unseen} unseen, {stumbled} stumbled over, {counted} broken, "
        f"{crc:08x}"
        for array, (changes, unseen, stumbled, counted, crc) in found.items()
    ]


@pytest.mark.parametrize("name", damaged.MADE)
def test_each_word_breaks_as_many_invariants_as_is_known(name: str) -> None:
    known = [line for line in KNOWN.read_text().splitlines() if line.startswith(f"{name}: ")]
    assert lines(name) == known


@pytest.mark.parametrize("name", damaged.MADE)
def test_damage_is_never_counted_below_zero(name: str) -> None:
    made = damaged.MADE[name]()
    for damage in damaged.damages(made):
        try:
            assert made.check() >= 0, damage
        except STUMBLES:
            continue


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    KNOWN.write_text("".join(f"{line}\n" for each in damaged.MADE for line in lines(each)))
