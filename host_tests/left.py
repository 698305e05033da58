"""Which processes bear a mark of unix_port.processes, for tests of what is left behind."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path


def bearing(mark: str) -> list[tuple[int, str]]:
    """(process id, program) of each that is there, dead ones that nobody has waited for aside.

    The program is a script's name, or its option, where Python runs it.
    """
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended, or is somebody else's
            if mark.encode() in (folder / "environ").read_bytes():
                words = [word.rpartition("/")[2] for word in (folder / "cmdline").read_text().split("\0")]
                found.append((int(folder.name), words[words[0].startswith("python")]))
    return found


def until(met: Callable[[], bool], tries: int = 600) -> bool:
    """Whether it is met in one of so many looks, a tenth of a second apart."""
    for _ in range(tries):
        if met():
            return True
        time.sleep(0.1)
    return False
