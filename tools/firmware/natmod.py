"""Compiles C to a native module (.mpy) that MicroPython on an Arm core imports: what C is measured with.

The linker is MicroPython's own, from the source tree the firmware is built from; it needs pyelftools.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from firmware import cache, source, tools
from firmware.errors import FirmwareError

BUILD_TIMEOUT_S = 300

ARCH = "armv7m"  # of the emulated Cortex-M3

# A native module has no C library behind it: the compiler must not make calls to memset of loops.
FREESTANDING = "-fno-tree-loop-distribute-patterns"


@cache.usable()
def build(code: Path, *, optimise: str, defines: Mapping[str, int] | None = None, arch: str = ARCH) -> Path:
    """The .mpy of one C file, named after it, compiled with `optimise` ("-O2") and `defines` as macros.

    Found in the cache when the same was built before. FirmwareError with the compiler's first error.
    """
    tools.need(tools.MAKE, tools.GCC, tools.HOST_CC)
    if importlib.util.find_spec("elftools") is None:
        raise FirmwareError("linking C needs pyelftools: pip install pyelftools")
    origin = source.find()
    flags = [f"-D{name}={value}" for name, value in (defines or {}).items()]
    flags += [FREESTANDING, optimise]
    compiler = tools.run([tools.GCC.program, "-dumpfullversion"], timeout_s=60).strip()
    digest = hashlib.sha256("\0".join([compiler, arch, *flags]).encode() + code.read_bytes())
    place = cache.folder() / f"{origin.key}-natmod" / digest.hexdigest()[:16]
    target = place / f"{code.stem}.mpy"
    with cache.lock(place):
        if not target.is_file():
            place.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
                _make(Path(folder), code, origin.path, arch, flags)
                made = Path(folder) / target.name
                if not made.is_file():
                    raise FirmwareError(f"make with the rules of {origin.path} makes no {made.name}")
                cache.put(made, target)
    return target


def _make(folder: Path, code: Path, tree: Path, arch: str, flags: list[str]) -> None:
    """Run MicroPython's rules for such modules in `folder`. Flags come last: the last -O counts."""
    (folder / code.name).write_bytes(code.read_bytes())
    lines = [
        f"MPY_DIR = {tree}",
        f"MOD = {code.stem}",
        f"SRC = {code.name}",
        f"ARCH = {arch}",
        f"include {tree}/py/dynruntime.mk",
        f"PYTHON = {sys.executable}",
        f"CFLAGS += {' '.join(flags)}",
    ]
    (folder / "Makefile").write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogateescape")
    tools.run(["make", "-C", str(folder)], timeout_s=BUILD_TIMEOUT_S, env=tools.make_environment())
