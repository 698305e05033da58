"""Requests on the unix port and the 32-bit firmware: every act as on CPython; nothing allocates."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

JOB = Path(__file__).parent / "device" / "paged.py"
MAIN = Path(__file__).parent.parent


def on_cpython(seed: int, count: int, codec: str) -> dict[str, Any]:
    command = [sys.executable, str(JOB), str(seed), str(count), "plain", codec]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=MAIN)
    return json.loads(done.stdout)


def compare(text: str, seed: int, count: int, codec: str = "int8") -> dict[str, int]:
    """What the board allocated, its acts found equal."""
    said = json.loads(text)
    counted = said.pop("allocated")
    expected = on_cpython(seed, count, codec)
    assert expected.pop("allocated") == {}
    assert expected["wrong"] == 0
    assert dict(expected["stats"])["reused_tokens"] > 0
    assert said == expected
    return counted


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_on_the_unix_port(seed: int, upy) -> None:
    counted = compare(upy.run(JOB, [seed, 150], heap_bytes=4 << 20), seed, 150)
    assert counted == {"steps": 0, "rollback": 0, "copy": 0, "close": 0}


@pytest.mark.parametrize("codec", ["int8-int4", "sparse", "float16"])
def test_with_other_element_types(codec: str, upy) -> None:
    said = upy.run(JOB, [8, 150, "viper", codec], heap_bytes=4 << 20)
    counted = compare(said, 8, 150, codec)
    assert counted == {"steps": 0, "rollback": 0, "copy": 0, "close": 0}


@pytest.mark.parametrize("codec", ["int8", "float16"])
def test_on_a_cortex_m(codec: str, qemu) -> None:
    counted = compare(qemu.run(JOB, [5, 50, "thumb", codec], timeout=300), 5, 50, codec)
    assert counted == {"steps": 0, "rollback": 0, "copy": 0, "close": 0}


def test_on_risc_v(qemu_riscv) -> None:
    compare(qemu_riscv.run(JOB, [5, 50], timeout=300), 5, 50)
