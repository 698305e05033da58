"""Runs device/cases.py where a test says: plain in this process, plain or viper on the unix port."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from mpy_kv import kernels

DEVICE = Path(__file__).parent / "device"
sys.path.insert(0, str(DEVICE))
import cases  # noqa: E402

RUNTIMES = ("plain on CPython", "plain on unix", "viper on unix")


def result(name: str, runtime: str, upy: Any) -> Any:
    """The case's result as JSON gives it back."""
    if runtime == "plain on CPython":
        return json.loads(json.dumps(cases.CASES[name](kernels.get("plain"))))
    return json.loads(upy.shared.run(DEVICE / "cases.py", [name, runtime.split()[0]]))
