"""The files a command reads and writes: checked before the work, written whole or not at all.

Within `session()` (one command) every file is noted with the option that named it, and an output that is
also an input or another output is refused, in whatever order they were named; a folder that was made for
an output goes again if nothing came into it. Names that cannot be (too long, a loop of links, in a folder
that may not be entered) are BadInput like any other.
"""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from commandline.errors import BadInput


class Overlap(BadInput):
    """An output is an input or another output."""


_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))
_ABSENT = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True)
class _Named:
    """A file and the option that named it; `real` is its path without links."""

    option: str
    real: str
    output: bool


_named: ContextVar[list[_Named] | None] = ContextVar("named", default=None)
_made: ContextVar[list[Path] | None] = ContextVar("made", default=None)  # folders, outer before inner


class OutFile(click.Path):
    """Path of a file to write. A name that ends as a folder's does is refused: pathlib drops that end."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).endswith(_SEPARATORS):
            option = param.opts[-1] if param else "file"
            raise BadInput(f"{option} {value}: names a folder; name a file")
        return super().convert(value, param, ctx)


@contextmanager
def session() -> Iterator[None]:
    """The files of one command: what is named inside is held against all else named inside."""
    made: list[Path] = []
    token, token_made = _named.set([]), _made.set(made)
    try:
        yield
    finally:
        for folder in reversed(made):
            with suppress(OSError):  # something is in it
                folder.rmdir()
        _named.reset(token)
        _made.reset(token_made)


def _make_folder(folder: Path) -> None:
    """With those above it. OSError. Within a session those that stay empty go at its end."""
    real = Path(os.path.realpath(folder))
    made, absent = _made.get(), [each for each in (real, *real.parents) if not os.path.lexists(each)]
    if made is not None:  # before they are: also what an interrupt or an error leaves half made
        made += [each for each in reversed(absent) if each not in made]
    folder.mkdir(parents=True, exist_ok=True)


def reads(path: Path, option: str) -> Path:
    """Note an input. BadInput if it is an output too."""
    _note(path, option, output=False)
    return path


def existing_file(text: str | Path, option: str) -> Path:
    """A file that can be read, noted as an input, or BadInput that names the option."""
    path = Path(text)
    try:
        mode = os.stat(text).st_mode
    except _ABSENT:
        raise BadInput(f"{option} {text}: no such file") from None
    except OSError as error:
        raise BadInput(f"{option} {text}: cannot be read: {error.strerror}") from None
    if stat.S_ISDIR(mode):
        raise BadInput(f"{option} {text}: is a folder; name a file")
    if not stat.S_ISREG(mode):
        raise BadInput(f"{option} {text}: is a device or a stream; name a regular file")
    if not os.access(path, os.R_OK):
        raise BadInput(f"{option} {text}: not readable")
    return reads(path, option)


def prepare(path: Path, option: str = "--json", *, stream: bool = False) -> Path:
    """Note an output, make its folder and check that a file can be written there. BadInput.

    It may be new or a regular file, which is then replaced. With `stream` also a pipe or a character device
    such as /dev/stdout or /dev/null, which is written to and never replaced.
    """
    try:
        mode = os.stat(path).st_mode
    except _ABSENT:
        mode = None
    except OSError as error:
        raise BadInput(f"{option} {path}: cannot be written: {error.strerror}") from None
    if mode is not None and stat.S_ISDIR(mode):
        raise BadInput(f"{option} {path}: is a folder; name a file")
    if stream and _is_stream(path):
        return path
    if mode is not None and (_is_stream(path) or not stat.S_ISREG(mode)):
        raise BadInput(f"{option} {path}: is a device or a stream; name a regular file")
    _note(path, option, output=True)
    folder = Path(os.path.realpath(path)).parent
    try:
        _make_folder(folder)
    except OSError as error:
        raise BadInput(f"{option} {path}: cannot make its folder: {error.strerror}") from None
    if not os.access(folder, os.W_OK | os.X_OK) or (mode is not None and not os.access(path, os.W_OK)):
        raise BadInput(f"{option} {path}: not writable; name another file")
    return path


def prepare_folder(path: Path, option: str) -> Path:
    """Make a folder for outputs, which goes again if none comes; files can be made in it, or BadInput."""
    try:
        _make_folder(path)
    except OSError as error:
        raise BadInput(f"{option} {path}: cannot be made: {error.strerror}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise BadInput(f"{option} {path}: not writable; name another folder")
    return path


def write(path: Path, data: bytes, option: str) -> None:
    """Write what `prepare` allowed: a file whole or not at all, a stream as it is. BadInput."""
    try:
        if _is_stream(path):
            _write_stream(path, data)
        else:
            replace_file(path, data)
    except BrokenPipeError:
        raise  # its reader went away, as that of stdout may: no error of the user's
    except OSError as error:
        raise BadInput(f"{option} {path}: cannot be written: {error.strerror}") from None


def replace_file(path: Path, data: bytes) -> None:
    """All of it or nothing: a full disk leaves no half file in the place of a good one. OSError.

    Of a link the file it leads to is replaced; a file keeps its permissions.
    """
    real = Path(os.path.realpath(path))
    # Not made of the target's name: with more at its end that may become too long.
    part = real.with_name(f".{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(data)
        if os.path.exists(real):
            part.chmod(stat.S_IMODE(real.stat().st_mode))
        part.replace(real)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _note(path: Path, option: str, *, output: bool) -> None:
    known = _named.get()
    if known is None:
        return
    new = _Named(option, os.path.realpath(path), output)
    for old in known:
        if old == new or not (old.output or new.output) or not _same_file(old.real, new.real):
            continue
        if old.output and new.output:
            raise Overlap(f"{option} {path}: is also written by {old.option}; name another file")
        out, read = (new, old) if new.output else (old, new)
        raise Overlap(
            f"{out.option} {out.real}: would overwrite the file of {read.option}; name another file"
        )
    known.append(new)


def _same_file(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _is_stream(path: Path) -> bool:
    """Whether the path leads to a pipe, a character device, or what stdout or stderr is now."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    if stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode):
        return True
    return _standard(found) is not None


def _standard(found: os.stat_result) -> int | None:
    """The descriptor, 1 or 2, that goes to this very file."""
    for descriptor in (1, 2):
        try:
            if os.path.samestat(found, os.fstat(descriptor)):
                return descriptor
        except OSError:  # closed
            continue
    return None


def _write_stream(path: Path, data: bytes) -> None:
    descriptor = _standard(os.stat(path))
    if descriptor is None:
        path.write_bytes(data)
        return
    # Behind what was printed, and through the same open file: another one would start at its beginning.
    sys.stdout.flush()
    with open(descriptor, "wb", closefd=False) as out:
        out.write(data)
