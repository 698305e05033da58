"""The emulated flash: the emulator's own model of NOR, loaded by its path as it is no module of the
host's."""

from __future__ import annotations

import importlib.util
from typing import Any

from kvlab.paths import ROOT


def module(name: str) -> Any:
    """A module of the emulator's side."""
    spec = importlib.util.spec_from_file_location(
        f"kvlab_{name}", ROOT / "unix_port" / "side" / "emu" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


_nor = module("nor")
Nor: Any = _nor.Nor
PowerCut: type[BaseException] = _nor.PowerCut
