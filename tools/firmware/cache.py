"""Where what was built is kept: outside the tree, found whole or not at all, one builder at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def folder() -> Path:
    """`$XDG_CACHE_HOME/kvlab`, else `~/.cache/kvlab`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kvlab" / "firmware"


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
