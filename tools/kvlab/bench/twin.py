"""boards/apps/bench/twin.c as a native module of the emulated board, at one or more levels of gcc.

The indexes of the parameter arrays come from mpy_kv/kernels/params.py, as macros KV_NAME.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from commandline.errors import BadInput
from firmware import FirmwareError, natmod
from kvlab import paths
from mpy_kv.kernels import params

SOURCE = paths.APPS / "bench" / "twin.c"

# Name of a variant in the figures -> what the compiler is told.
LEVELS: Mapping[str, str] = {"c_o2": "-O2", "c_o3": "-O3"}


def defines() -> dict[str, int]:
    """KV_ROW=2 and so on."""
    return {f"KV_{name}": value for name, value in vars(params).items() if name.isupper()}


def build() -> dict[str, Path]:
    """The folder of each variant's module. BadInput where the compiler is missing or refuses."""
    macros = defines()
    try:
        built = {name: natmod.build(SOURCE, optimise=o, defines=macros) for name, o in LEVELS.items()}
    except FirmwareError as error:
        raise BadInput(f"--target qemu: {error}") from error
    return {name: module.parent for name, module in built.items()}
