"""Parts of mpy_kv compiled for a core, as files that mip installs: modules, and a list of them for each part.

mip takes an address that ends in .json for such a list, and looks up what it names beside it. Lists in
packages/ name sources; these name compiled modules.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import mpy_kv
from commandline import files as outputs
from commandline.errors import BadInput
from kvlab.deploy import NO_APP, files
from kvlab.deploy.identity import ARCHS, Identity
from kvlab.parts import closure, mip
from unix_port import compiled
from unix_port.errors import PortError

# Instruction sets, as mpy-cross names them, and who has them.
CORES = {
    "armv6m": "RP2040",
    "armv7m": "Cortex-M3",
    "armv7em": "Cortex-M4",
    "armv7emsp": "RP2350 and other Cortex-M33 and M4F",
    "xtensawin": "ESP32, ESP32-S3",
    "rv32imc": "ESP32-C3, RP2350 with its RISC-V cores",
    "x64": "unix port",
}

WHOLE = "package.json"  # all parts together: what mip takes for an address without a file


def of_core(core: str) -> Identity:
    """What a board with such a core says of itself, if it loads what the mpy-cross here makes. BadInput."""
    try:
        version = (compiled.tree(core) / f"{closure.PACKAGE}/__init__.mpy").read_bytes()[1]
    except PortError as error:
        raise BadInput(f"--core {core}: {error}") from error
    sub = 3  # of native code: what MicroPython 1.23 and later load
    return Identity("micropython", (1, 24, 0), "", "", version | sub << 8 | ARCHS.index(core) << 10)


def make(core: str, parts: Sequence[str]) -> dict[str, bytes]:
    """Files by their path in the folder: modules, NAME.json for each part, and WHOLE. BadInput."""
    found = of_core(core)
    made: dict[str, bytes] = {}
    for name, several in [*((f"{part}.json", [part]) for part in parts), (WHOLE, list(parts))]:
        modules = {
            file.path.removeprefix(f"{files.LIB}/"): file.data
            for file in files.modules(NO_APP, found, True, several)
        }
        made[name] = listed(core, modules)
        made |= modules
    return made


def listed(core: str, paths: Iterable[str]) -> bytes:
    """A list for mip. `core` is for people, and tells a folder of ours."""
    urls = [(path, path) for path in sorted(paths)]
    return mip.listed(urls, mpy_kv.__version__, core=core).encode()


def write(made: dict[str, bytes], folder: Path, option: str) -> None:
    """Into a folder that is not there, is empty, or has what this made before, which goes. BadInput."""
    if folder.is_dir() and any(folder.iterdir()):
        if not _ours(folder):
            raise BadInput(f"{option} {folder}: has files that this did not make; name another folder")
        shutil.rmtree(folder)
    outputs.prepare_folder(folder, option)
    for name, data in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        outputs.write(path, data, option)


def _ours(folder: Path) -> bool:
    """Lists that name a core, and modules."""
    try:
        lists = [json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")]
        modules = [path for path in (folder / closure.PACKAGE).rglob("*") if path.is_file()]
    except (OSError, ValueError):
        return False
    return (
        (folder / WHOLE).is_file()
        and all(isinstance(each, dict) and each.get("core") in CORES for each in lists)
        and all(path.suffix == ".mpy" for path in modules)
        and {path.name for path in folder.iterdir() if path.suffix != ".json"} <= {closure.PACKAGE}
    )
