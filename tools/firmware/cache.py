"""Where what was built is kept: outside the tree, found whole or not at all, one builder at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from firmware.errors import FirmwareError

PLACE_ENV = "XDG_CACHE_HOME"

# A disk with less than this has refused somebody what he wanted to write.
_FULL_BYTES = 1 << 20


def folder() -> Path:
    """`$XDG_CACHE_HOME/kvlab/firmware`, else `~/.cache/kvlab/firmware`. FirmwareError without a home."""
    base = os.environ.get(PLACE_ENV)
    try:
        return (Path(base) if base else Path.home() / ".cache") / "kvlab" / "firmware"
    except RuntimeError as error:
        raise FirmwareError(f"no home folder for the cache: name one in {PLACE_ENV}") from error


@contextmanager
def usable() -> Iterator[None]:
    """Around all that reads or writes the cache, or decorating it: what cannot be is a FirmwareError."""
    try:
        yield
    except OSError as error:
        raise FirmwareError(
            f"the cache {folder()}: {error.strerror or error}; {PLACE_ENV} names another place"
        ) from error


@contextmanager
def filled_by_others() -> Iterator[None]:
    """Around programs that write to the cache: where one fails on a full disk, the error says so.

    Compilers, linkers and apt have each their own words for it, or none.
    """
    try:
        yield
    except FirmwareError as error:
        if shutil.disk_usage(folder()).free >= _FULL_BYTES:
            raise
        raise FirmwareError(
            f"the cache {folder()}: no space left on its disk; {PLACE_ENV} names another place"
        ) from error


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """Hold `path`.lock; another process waits here. It goes with the process that dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(path.name + ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def put(source: Path, target: Path) -> None:
    """Copy a file into place so that whoever looks sees all of it or nothing."""
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_bytes(source.read_bytes())
        part.chmod(source.stat().st_mode & 0o755)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
