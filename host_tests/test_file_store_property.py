"""The file store beside a dict, through any operations and starts: on the host, on a poor file system, and on
MicroPython's littlefs and FAT in RAM; there with cuts after each block, and what the heap gives."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from known_cases import DEVICE

import file_twin  # isort: skip
from kvlab.paths import ROOT
from kvlab.powercut.files import PoorFiles

NAMES = ("begin", "put", "put", "put", "put", "truncate", "trim", "close", "reopen")
NUMBERS = st.integers(0, 1 << 20)
OPERATIONS = st.lists(st.tuples(st.sampled_from(NAMES), NUMBERS, NUMBERS, NUMBERS), max_size=40).map(
    lambda operations: [("begin", 0, 0, 0), ("put", 0, 0, 0), *operations]
)
FULL = ("short", "write", "flush", "close", "silent")


@pytest.fixture(autouse=True, scope="module")
def _disk_is_not_waited_for() -> Iterator[None]:
    """What a cut leaves is tried on a model of a file system; of the host's disk it would only take time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda handle: None)
        patch.setattr("os.sync", lambda: None)
        yield


@settings(max_examples=40, deadline=None, derandomize=True)
@given(operations=OPERATIONS)
def test_on_the_host(operations: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file_twin.run(f"{folder}/kv", operations)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(operations=OPERATIONS, room=st.integers(600, 3000), full=st.sampled_from(FULL))
def test_where_it_is_full(operations: Any, room: int, full: str) -> None:
    twin = file_twin.run("/kv", operations, PoorFiles(room, full))
    assert twin.store.used_bytes == twin.store.fs.used() <= room


@pytest.mark.parametrize("kind", ["lfs", "fat"])
def test_on_a_device(upy: Any, kind: str) -> None:
    """In a file system with room for few of them."""
    refused = []

    @settings(max_examples=12, deadline=None, derandomize=True)
    @given(operations=OPERATIONS)
    def run(operations: Any) -> None:
        refused.append(device(upy, kind, "twin", json.dumps(operations)))

    run()
    assert len(refused) > 5


def test_on_a_device_where_it_is_full(upy: Any) -> None:
    """The poor file system, mounted."""
    puts = [("put", 0, i, 29) for i in range(5)]
    grown = [("begin", 0, 0, 0), *puts, ("truncate", 0, 1, 0), *puts]
    for full in FULL:
        refused = device(upy, "poor", full, ROOT / "unix_port" / "side" / "emu", 800, json.dumps(grown))
        assert refused > 1, full


@pytest.mark.parametrize("kind", ["lfs", "fat"])
@pytest.mark.parametrize("files", [0, 11])
def test_cut_after_each_block(upy: Any, kind: str, files: int) -> None:
    """And each start after such a cut is cut after each of its blocks. With more files in the folder FAT's
    rename is two writes, and a cut between them leaves two names for the same bytes."""
    looked, doubled = device(upy, kind, "cuts", files)
    assert looked > 50
    assert (doubled > 0) == (kind == "fat" and files > 0)


@pytest.mark.parametrize("kind", ["lfs", "fat"])
def test_what_it_takes_of_the_heap(upy: Any, kind: str) -> None:
    """Files are opened, so it is not nothing; but it is no more for a long record than for a short one."""
    told = device(upy, kind, "heap")
    for name, most in (("put", 9000), ("read", 3000)):
        short, long = told[f"{name} 1000"], told[f"{name} 8000"]
        assert 0 < max(short) < most
        assert max(long) < max(short) + 2500, name


def device(upy: Any, *words: object) -> Any:
    return json.loads(upy.shared.run(DEVICE / "file_store.py", words))
