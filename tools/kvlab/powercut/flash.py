"""The emulated flash: the emulator's own model of NOR, loaded by its path as it is no module of the
host's."""

from __future__ import annotations

import importlib.util
from typing import Any

from kvlab.paths import ROOT

_PATH = ROOT / "unix_port" / "side" / "emu" / "nor.py"
_spec = importlib.util.spec_from_file_location("kvlab_nor", _PATH)
assert _spec is not None
assert _spec.loader is not None
_module: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

Nor: Any = _module.Nor
PowerCut: type[BaseException] = _module.PowerCut
