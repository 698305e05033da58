"""Which MicroPython the firmware is built from: `MICROPYTHON_SRC`, else Debian's source package."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from firmware import cache, debian
from firmware.errors import FirmwareError

SOURCE_ENV = "MICROPYTHON_SRC"

# What a build reads. Enough to tell one state of a checkout from another.
_PARTS = ("extmod", "lib", "mpy-cross", "ports/qemu", "py", "shared", "tools")


@dataclass(frozen=True)
class Source:
    """A source tree. `key` differs whenever what would be built from it may."""

    path: Path
    version: str
    key: str
    origin: str


def find(*, refresh: bool = False) -> Source:
    """The source. Debian's is fetched once and then taken from the cache; `refresh` looks again.

    FirmwareError when there is none, or it is older than 1.25.
    """
    given = os.environ.get(SOURCE_ENV)
    return _checkout(Path(given).resolve()) if given else _package(refresh)


def _checkout(path: Path) -> Source:
    version = _version(path)
    digest = hashlib.sha256(str(path).encode())
    for part in _PARTS:
        for folder, folders, files in os.walk(path / part):
            folders[:] = sorted(name for name in folders if not name.startswith(("build", ".")))
            for name in sorted(files):
                status = os.stat(os.path.join(folder, name), follow_symlinks=False)
                digest.update(f"{folder}/{name}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return Source(path, version, f"{version}-{digest.hexdigest()[:12]}", str(path))


def _package(refresh: bool) -> Source:
    place = cache.folder() / "source"
    note = place / "package.json"
    with cache.lock(place):
        if refresh or not note.is_file():
            place.mkdir(parents=True, exist_ok=True)
            # A folder of its own for each fetch: whoever builds from an older one goes on with it.
            target = place / f"fetch-{len(list(place.glob('fetch-*')))}"
            package = debian.fetch(target)
            part = note.with_suffix(".part")
            part.write_text(json.dumps({"folder": target.name, **asdict(package)}), encoding="utf-8")
            part.replace(note)
        known = json.loads(note.read_text(encoding="utf-8"))
    path = place / known["folder"]
    origin = f"Debian {known['suite']}, {debian.PACKAGE} {known['version']}"
    return Source(path, _version(path), known["version"], origin)


def _version(path: Path) -> str:
    """MAJOR.MINOR.MICRO as the source says it."""
    try:
        text = (path / "py" / "mpconfig.h").read_text(encoding="utf-8")
    except OSError as error:
        raise FirmwareError(f"{SOURCE_ENV}={path}: not a checkout of MicroPython") from error
    found = [re.search(rf"MICROPY_VERSION_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "MICRO")]
    numbers = tuple(int(match[1]) for match in found if match)
    if numbers < debian.LEAST or not (path / "ports" / "qemu" / "Makefile").is_file():
        shown = ".".join(map(str, numbers))
        raise FirmwareError(f"{SOURCE_ENV}={path}: MicroPython {shown}; 1.25 or newer is needed")
    return ".".join(map(str, numbers))
