#!/usr/bin/env python3
"""Writes package.json, from which `mip` installs mpy_kv: mip knows no globs, so every file is
listed.

python tools/package_json.py            write it
python tools/package_json.py --check    exit 1 when it is out of date
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "package.json"


def version(root: Path = ROOT) -> str:
    """`__version__` of mpy_kv, read without importing it."""
    text = (root / "mpy_kv" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise SystemExit("mpy_kv/__init__.py has no __version__ line")
    return found.group(1)


def wanted(root: Path = ROOT) -> str:
    """The text that package.json should have for the tree under `root`."""
    files = sorted(path.relative_to(root).as_posix() for path in (root / "mpy_kv").rglob("*.py"))
    urls = ",\n".join(f"    {json.dumps([name, name])}" for name in files)
    tail = json.dumps(version(root))
    return f'{{\n  "urls": [\n{urls}\n  ],\n  "deps": [],\n  "version": {tail}\n}}\n'


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        current = TARGET.read_text(encoding="utf-8") if TARGET.exists() else ""
        if current == wanted():
            return 0
        print("package.json is out of date: run python tools/package_json.py", file=sys.stderr)
        return 1
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    TARGET.write_text(wanted(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
