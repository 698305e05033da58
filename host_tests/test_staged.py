"""Between prefill and attend or commit the caller's arrays may change: see device/staged.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from mpy_kv import kernels

DEVICE = Path(__file__).parent / "device"
sys.path.insert(0, str(DEVICE))
import staged  # noqa: E402


def test_on_cpython() -> None:
    found = staged.complaints(kernels.get("plain"))
    assert len(found) == 11
    assert found == dict.fromkeys(found)


@pytest.mark.parametrize("name", ["plain", "viper"])
def test_on_the_port(name: str, upy) -> None:
    """Here views are compared too, by address."""
    found = json.loads(upy.run(DEVICE / "staged.py", [name], heap_bytes=16 << 20))
    assert len(found) == 23
    assert found == dict.fromkeys(found)
