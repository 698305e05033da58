"""kvlab soak: what it checks it finds, says where, and finds again from what it said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from field_tables import tables
from kvlab.soak.subject import Subject, soak
from kvlab.soak.subjects import SUBJECTS
from mpy_kv.errors import BadHandle
from mpy_kv.paged import blocks, request
from mpy_kv.pools import buddy, fixed, region, slab_region, units

META = tables.of("slab_pool")

Run = Callable[..., tuple[int, str, str]]


def nothing(_count: int) -> None:
    pass


def test_all_is_well(kvlab: Run, tmp_path: Path) -> None:
    path = tmp_path / "soak.json"
    status, out, err = kvlab("soak", "--pool", "all", "--ops", 600, "--seed", 3, "--json", path)
    assert (status, err) == (0, "")
    figures = json.loads(path.read_text())
    assert figures["violations"] == 0
    assert figures["invariants_checked"] > 10_000 * len(SUBJECTS)
    assert f"Invariants checked: {figures['invariants_checked']:,}. Violations: 0." in out
    assert set(figures["pools"]) == set(SUBJECTS)
    for name, by in figures["pools"].items():
        assert sum(by["operations"].values()) == by["done"] == 600
        assert set(by["operations"]) == set(SUBJECTS[name](0).operations), name
        assert by["failed_at"] is None


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_seed_is_a_run(name: str) -> None:
    first, again, other = (soak(name, SUBJECTS[name](seed), 300, nothing) for seed in (5, 5, 6))
    assert first == again
    assert first.operations != other.operations


def swallowed(method: Callable[..., Any]) -> Callable[..., Any]:
    """A pool that obeys or ignores, and never refuses a handle."""

    def call(pool: Any, *arguments: Any) -> Any:
        try:
            return method(pool, *arguments)
        except BadHandle:
            return None

    return call


def moved_nothing(to: int, at: int, words: int, buffer: Any) -> None:
    pass


def misplaced(pool: Any, handle: int) -> int:
    return int(pool.base)


def taken_unlocked(meta: Any, word: Any, handle: int, lock: int) -> int:
    return 0


def opened_anyway(meta: Any, table: Any, place: int, limit: int, guaranteed: int) -> int:
    """Without asking whether so many slabs are there."""
    meta[META.UNFILLED] += guaranteed
    table[place : place + 4] = [0, guaranteed, limit, 1]
    return 0


def found_by_hash_alone(*arguments: Any) -> int:
    """The first block of any entry: what the index must never take for the one asked for."""
    _meta, _hashes, parent, *_, under, _under_serial, _h, _tokens, _at = arguments
    return list(parent).index(under) if under in parent else -1


def miscounted(stats: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    return lambda pool: {**stats(pool), "locked_blocks": 99}


def broken(_pool: Any) -> int:
    raise IndexError("list index out of range")


FAULTS = {
    "a free that refuses nothing": (
        *("buddy", buddy.BuddyPool, "free", swallowed(buddy.BuddyPool.free)),
        r"(free|bad handle): not refused, but gave None",
    ),
    "a move that moves nothing": (
        *("buddy", buddy, "move_down", moved_nothing),
        r"grow: grow lost what was written",
    ),
    "a compaction that moves nothing": (
        *("region", region, "move_down", moved_nothing),
        r"(grow: grow lost what was written|compact: bytes of block \d+ changed)",
    ),
    "all blocks at one place": (
        *("fixed", fixed.FixedPool, "offset", misplaced),
        r"\w+: (bytes of block \d+ changed|two blocks share bytes)",
    ),
    "a lock that locks nothing": (
        *("fixed", fixed, "lock_block", taken_unlocked),
        r"lock: (locked_blocks is off|the lock of block \d+ is off)",
    ),
    "a guarantee given twice": (
        *("slab+region", slab_region, "open_quota", opened_anyway),
        r"\w.*: (check\(\) finds|a slab that was guaranteed cannot be had)",
    ),
    "a copy that copies nothing": (
        *("requests", request, "move_down", moved_nothing),
        r"(step|prefill): bytes of token \d+ of a request changed",
    ),
    "a reference not counted": (
        *("requests", blocks.Blocks, "hold", lambda self, i: 0),
        r"\w+: check\(\) finds \d+ broken",
    ),
    "other tokens found": (
        *("requests", blocks, "find", found_by_hash_alone),
        r"\w+: bytes of token \d+ of a request changed",
    ),
    "a count that is off": (
        *("region", region.RegionPool, "stats", miscounted(units.UnitPool.stats)),
        r"\w+: locked_blocks is off",
    ),
    "a check that fails": (*("fixed", fixed.FixedPool, "check", lambda pool: 2), r"\w+: check\(\) finds 2"),
    "an exception nobody promised": (
        *("region", region.RegionPool, "largest_free_bytes", broken),
        r"\w+: IndexError: list index",
    ),
}


@pytest.mark.parametrize(("name", "owner", "attribute", "fault", "promise"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found_and_found_again(
    kvlab: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    owner: Any,
    attribute: str,
    fault: Any,
    promise: str,
) -> None:
    monkeypatch.setattr(owner, attribute, fault)
    named = re.escape(name)
    path = tmp_path / "soak.json"
    status, out, err = kvlab("soak", "--pool", name, "--ops", 2000, "--seed", 9, "--json", path)
    assert status == 1
    assert err.count("\n") == 1
    said = re.fullmatch(
        rf"kvlab: error: {named}, operation [\d,]+: ({promise}).*;"
        rf" again with (--pool {named} --ops (\d+) --seed 9)\n",
        err,
    )
    assert said is not None, err
    assert "Violations: 0" not in out
    figures = json.loads(path.read_text())
    assert figures["violations"] >= 1
    assert figures["pools"][name]["failed_at"] == int(said[said.re.groups])
    # What it says to run ends the same way.
    assert kvlab("soak", *said[said.re.groups - 1].split())[::2] == (1, err)
    monkeypatch.undo()
    assert kvlab("soak", *said[said.re.groups - 1].split())[0] == 0


def test_progress_adds_up() -> None:
    class Quiet(Subject):
        operations = 0

        def step(self) -> str:
            self.operations += 1
            return "nothing"

        def inspect(self) -> None:
            self.expect(self.operations != self.stop, "stopped")

        def __init__(self, stop: int) -> None:
            super().__init__()
            self.stop = stop

    runs = ((1, 0), (499, 0), (500, 0), (1234, 0), (1234, 1), (1234, 1000), (1234, 1234), (500, 500))
    for count, stop in runs:
        steps: list[int] = []
        outcome = soak("quiet", Quiet(stop), count, steps.append)
        assert sum(steps) == count, (count, stop)
        assert outcome.failed_at == (stop or None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--pool", "budy"], '--pool budy: no such pool; did you mean "buddy"?'),
        (["--pool", "xyzzy"], "--pool xyzzy: no such pool; pools: fixed, "),
        (["--ops", "0"], "Invalid value for '--ops'"),
        (["--ops", "many"], "Invalid value for '--ops'"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
        (["--sed", "1"], 'no option --sed; did you mean "--seed"?'),
        (["--json", "."], "--json .: is a folder"),
    ],
)
def test_bad_input_is_one_line(kvlab: Run, words: list[str], message: str) -> None:
    status, out, err = kvlab("soak", *words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
