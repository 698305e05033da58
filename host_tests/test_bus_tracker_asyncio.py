"""Asyncio tasks that wait for the bus: in order, cancelled anywhere, given up; and what a wait allocates."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from known_cases import DEVICE

from kvlab.paths import ROOT

SCRIPT = DEVICE / "bus_awaiting.py"
AGAIN = ["again"] * 3

# What each gives, and who came in when.
SEEN: dict[str, list[Any]] = {
    "in_order": [[[2, 0], 0], ["other", "large", "small"]],
    "first": [[3, 0], ["0 cancelled", "1", "2", *AGAIN]],
    "behind": [[3, 0], ["1 cancelled", "0", "2", *AGAIN]],
    "last": [[3, 0], ["2 cancelled", "0", "1", *AGAIN]],
    "first_two": [[3, 0], ["0 cancelled", "1 cancelled", "2", *AGAIN]],
    "all": [[3, 0], ["0 cancelled", "1 cancelled", "2 cancelled", *AGAIN]],
    "given_up": [[[1, 1, 1], 0, [0, 2000]], [*["late cancelled"] * 3, "first cancelled"]],
    "full": [["nbytes must be 1..2000", "nbytes must be 1..2000", "waiters: needed 1 waiters"], ["one"]],
    "off": [True, []],
}


def python(case: str) -> str:
    """The same script under CPython, where futures stand for the scheduler's queue."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), case], env=env, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout


@pytest.mark.parametrize("where", ["unix", "CPython"])
@pytest.mark.parametrize("case", SEEN)
def test_waiting(case: str, where: str, upy: Any) -> None:
    said = upy.shared.run(SCRIPT, [case]) if where == "unix" else python(case)
    result, log = json.loads(said)
    expected, order = SEEN[case]
    assert result == expected
    assert log == order


def test_a_wait_allocates_nothing_beside_its_round(upy: Any) -> None:
    """As many bytes as asyncio.sleep_ms(1), which is one round, too. The first time of each is left out."""
    result, _ = json.loads(upy.run(SCRIPT, ["rounds"]))
    sleeps, waits = result[::2], result[1::2]
    assert sleeps[1:] == waits[1:]
    assert sleeps[1] > 0
