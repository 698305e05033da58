#!/usr/bin/env python3
"""Writes package.json, from which `mip` installs mpy_kv, and packages/NAME.json, from which it installs a
part and what that needs: mip knows no globs, so every file is listed.

python tools/package_json.py            write them
python tools/package_json.py --check    exit 1 when one is out of date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))  # mpy_kv, of which parts take the element types, where nothing is installed

from kvlab.parts import closure, mip  # noqa: E402
from kvlab.parts.table import PARTS  # noqa: E402

PLACE = ROOT  # where they are written
FOLDER = "packages"


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
    return mip.listed(((name, name) for name in files), version(root))


def of_part(part: str) -> str:
    """The text that the package file of a part should have: all that the part needs, with every kernel set.
    A source is relative to that file."""
    names = [closure.file_of(name) for name in closure.of_parts([part])]
    return mip.listed(((name, f"../{name}") for name in names), version())


def all_wanted() -> dict[str, str]:
    """Text of each file, by its path."""
    return {"package.json": wanted(), **{f"{FOLDER}/{part}.json": of_part(part) for part in PARTS}}


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    texts = all_wanted()
    extra = [path for path in sorted((PLACE / FOLDER).glob("*.json")) if f"{FOLDER}/{path.name}" not in texts]
    if arguments:
        wrong = [f"{path.relative_to(PLACE).as_posix()} is of no part" for path in extra]
        for name, text in texts.items():
            path = PLACE / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                wrong.append(f"{name} is out of date")
        for line in wrong:
            print(f"{line}: run python tools/package_json.py", file=sys.stderr)
        return 1 if wrong else 0
    (PLACE / FOLDER).mkdir(exist_ok=True)
    for path in extra:
        path.unlink()
    for name, text in texts.items():
        (PLACE / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
