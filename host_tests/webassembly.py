"""MicroPython's webassembly port under node: 32-bit words, and no emitter of native code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from fetched import Missing, npm

from kvlab.paths import APPS, ROOT
from unix_port import processes

PACKAGE = "@micropython/micropython-webassembly-pyscript"
VERSION = "1.27.0"

SOURCES = {ROOT / "mpy_kv": "/lib/mpy_kv", APPS / "stories": "/lib/stories"}


class Webassembly:
    """Drives it as conftest.Upy drives the unix port."""

    def __init__(self, folder: Path) -> None:
        self._loader = folder / "node_modules" / PACKAGE / "micropython.mjs"

    def run(
        self,
        code_or_path: str | Path,
        args: Sequence[object] = (),
        heap_bytes: int = 4 << 20,
        timeout: float = 120,
    ) -> str:
        """Run source text, or the script at a `Path`, and return its stdout. AssertionError when it raises.

        mpy_kv and the story app are in /lib. The folders of those `args` that are absolute paths are shared
        with the script, both ways.
        """
        script = code_or_path.read_text() if isinstance(code_or_path, Path) else code_or_path
        name = str(code_or_path) if isinstance(code_or_path, Path) else "-c"
        plan = {
            "loader": str(self._loader),
            "heap_bytes": heap_bytes,
            "sources": [[str(folder), place] for folder, place in SOURCES.items()],
            "shared": sorted({str(Path(a).parent) for a in map(str, args) if Path(a).is_absolute()}),
            "script": script,
            "argv": [name, *map(str, args)],
        }
        done = processes.run(
            ["node", str(Path(__file__).with_suffix(".mjs"))],
            input=json.dumps(plan),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(
                f"webassembly: exit status {done.returncode}\n--- stdout\n{done.stdout}\n"
                f"--- stderr\n{done.stderr}"
            )
        return done.stdout


def fetch() -> Path:
    """The folder with the port, for Webassembly. Raises Missing."""
    if shutil.which("node") is None:
        raise Missing(f"{PACKAGE}: no node on PATH")
    return npm(f"{PACKAGE}@{VERSION}")
