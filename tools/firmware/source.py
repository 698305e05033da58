"""Which MicroPython the firmware is built from: `MICROPYTHON_SRC`, else Debian's source package."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from firmware import cache, debian
from firmware.errors import FirmwareError

SOURCE_ENV = "MICROPYTHON_SRC"

_HEADER = "py/mpconfig.h"
_MAKEFILE = "ports/qemu/Makefile"

# What a build reads. Enough to tell one state of a checkout from another.
_PARTS = ("extmod", "lib", "mpy-cross", "ports/qemu", "py", "shared", "tools")


@dataclass(frozen=True)
class Source:
    """A source tree. `key` differs whenever what would be built from it may."""

    path: Path
    version: str
    key: str
    origin: str


@cache.usable()
def find(*, refresh: bool = False) -> Source:
    """The source. Debian's is fetched once and then taken from the cache; `refresh` looks again.

    FirmwareError when there is none, or it is older than 1.25.
    """
    given = os.environ.get(SOURCE_ENV)
    return _checkout(Path(os.path.realpath(given))) if given else _package(refresh)


def _checkout(path: Path) -> Source:
    name = f"{SOURCE_ENV}={path}"
    version = _version(path, name)
    try:
        key = f"{version}-{_digest(path)}"
    except OSError as error:
        raise FirmwareError(f"{name}: {error.filename or ''}: {error.strerror}") from error
    return Source(path, version, key, str(path))


def _digest(path: Path) -> str:
    """Of the names, sizes and times of all that a build reads. OSError."""
    digest = hashlib.sha256(os.fsencode(path))
    for part in _PARTS:
        for folder, folders, files in os.walk(path / part):
            folders[:] = sorted(name for name in folders if not name.startswith(("build", ".")))
            for name in sorted(files):
                status = os.stat(os.path.join(folder, name), follow_symlinks=False)
                line = f"{folder}/{name}\0{status.st_size}\0{status.st_mtime_ns}\n"
                digest.update(os.fsencode(line))
    return digest.hexdigest()[:12]


def _package(refresh: bool) -> Source:
    place = cache.folder() / "source"
    note = place / "package.json"
    known = None if refresh else _noted(note)
    if known is None:
        known = _fetched(place, note, refresh)
    path = place / known["folder"]
    origin = f"Debian {known['suite']}, {debian.PACKAGE} {known['version']}"
    return Source(path, _version(path, f"{origin}, in {path}"), known["version"], origin)


def _noted(note: Path) -> dict[str, Any] | None:
    """What was fetched before; None where that is nothing, or is no longer whole."""
    try:
        known: dict[str, Any] = json.loads(note.read_text(encoding="utf-8"))
        whole = (note.parent / known["folder"] / _HEADER).is_file()
        return known if whole and {"suite", "version"} <= known.keys() else None
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _fetched(place: Path, note: Path, refresh: bool) -> dict[str, Any]:
    """Fetch Debian's package, unless another process just has, and note it."""
    with cache.lock(place):
        known = None if refresh else _noted(note)
        if known is None:
            place.mkdir(parents=True, exist_ok=True)
            # A folder of its own for each fetch: whoever builds from an older one goes on with it.
            names = (place / f"fetch-{number}" for number in itertools.count())
            target = next(name for name in names if not name.exists())
            with cache.filled_by_others():
                package = debian.fetch(target)
            part = note.with_suffix(".part")
            known = {"folder": target.name, **asdict(package)}
            part.write_text(json.dumps(known), encoding="utf-8")
            part.replace(note)
    return known


def _version(path: Path, name: str) -> str:
    """MAJOR.MINOR.MICRO as the source says it. FirmwareError begins with its `name`."""
    header = path / _HEADER
    try:
        # Of a pipe or a device there is no end.
        text = header.read_text(encoding="utf-8", errors="replace") if header.is_file() else None
    except OSError:
        text = None
    if text is None:
        raise FirmwareError(f"{name}: not a checkout of MicroPython: no readable {_HEADER}")
    found = [re.search(rf"MICROPY_VERSION_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "MICRO")]
    numbers = tuple(int(match[1]) for match in found if match)
    shown = ".".join(map(str, numbers))
    if len(numbers) < len(found):
        raise FirmwareError(f"{name}: not a checkout of MicroPython: {_HEADER} tells no version")
    if numbers < debian.LEAST:
        least = ".".join(map(str, debian.LEAST))
        raise FirmwareError(f"{name}: MicroPython {shown}; {least} or newer is needed")
    if not (path / _MAKEFILE).is_file():
        raise FirmwareError(f"{name}: MicroPython {shown}, but without {_MAKEFILE}: not a whole checkout")
    return shown
