"""The bus's queue on the port and on 32-bit firmware: the same is done, nothing is allocated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from known_cases import DEVICE

import bus_queue  # isort: skip

PLAIN = f"""
import sys
sys.path.append({str(DEVICE)!r})
import without_emitter, json, bus_queue
print(json.dumps(bus_queue.run(1, 60)))
assert type(sys.modules["mpy_kv.bus.queue"]).__name__ == "_Names"
"""


def test_the_same_in_native_code(upy: Any) -> None:
    found = json.loads(upy.run(DEVICE / "bus_queue.py", [1, 120]))
    assert found == bus_queue.run(1, 120)
    assert found["wrong"] == 0
    assert found["chains"] > 120


def test_the_same_without_an_emitter(upy: Any) -> None:
    assert json.loads(upy.run(PLAIN)) == bus_queue.run(1, 60)


@pytest.mark.parametrize("machine", ["qemu", "qemu_riscv"])
def test_the_same_on_32_bits(machine: str, request: pytest.FixtureRequest) -> None:
    board = request.getfixturevalue(machine)
    assert json.loads(board.run(DEVICE / "bus_queue.py", [1, 60])) == bus_queue.run(1, 60)


@pytest.mark.exhaustive
def test_ten_thousand_lists_in_native_code(upy: Any) -> None:
    found = json.loads(upy.run(DEVICE / "bus_queue.py", [1000, 10_000], timeout=600))
    assert found == bus_queue.run(1000, 10_000)
    assert found["wrong"] == 0


@pytest.mark.parametrize("machine", ["upy", "qemu"])
def test_nothing_is_allocated(machine: str, request: pytest.FixtureRequest) -> None:
    found = json.loads(request.getfixturevalue(machine).run(DEVICE / "bus_queue_allocation.py"))
    assert found.pop("control") > 0, "the counter sees nothing"
    assert found == dict.fromkeys(("push", "push_rows", "push_layer", "chains"), 0)
