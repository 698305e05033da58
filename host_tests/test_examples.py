"""Programs of examples/ run as pasted, from what each says to install, behind a Pico's heap."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest
import qemu_fixtures

from kvlab import boards
from kvlab.parts import closure
from kvlab.paths import BOARDS, ROOT
from qemu_port.board import Qemu
from unix_port import compiled, launcher

PICO = boards.load("rp2040").machine
MODEL = BOARDS / "models" / "stories.mkvm"
EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples").glob("*.py"))}
MOST_LINES = 60

# What it says at its end, where that is no part of its docstring.
TOLD = {
    "chat": """turn 1: 15 tokens and 24 of the answer, 39 in all
turn 2: 8 tokens and 24 of the answer, 71 in all
turn 3: 12 tokens and 24 of the answer, 107 in all
""",
    "shared_prefix": """16 of the 26 tokens it begins with were there
2 blocks of 8 tokens were held by both
""",
}
BEGINS = {
    "chat": "Once upon a time there was a small dragon.",
    "shared_prefix": "Once upon a time there was a little girl named Lily. She had a red ball and she",
}

# What an option of `kvlab deploy` brings.
PART_OF = {"--policy": "token-eviction", "--requests": "paged"}

# The model in the flash of a Pico, whose module the emulated Cortex-M3 has not.
AS_A_PICO = """
import sys
class rp2:
    def Flash():
        from uctypes import bytearray_at
        return bytearray_at({at}, {size})
sys.modules["rp2"] = rp2
"""


def about(name: str) -> str:
    return ast.get_docstring(ast.parse(EXAMPLES[name].read_text(encoding="utf-8"))) or ""


def judge(name: str, said: str) -> None:
    if name in TOLD:
        assert said.startswith(BEGINS[name])
        assert said.endswith(TOLD[name])
    else:
        assert said == re.sub("^    ", "", about(name).partition("Prints\n")[2] + "\n", flags=re.M)


def installed(name: str, arch: str, folder: Path) -> Path:
    """The compiled modules that the example's first command copies, in an otherwise empty folder."""
    (line,) = re.findall(r"^    kvlab (deploy .*--mpy.*?)(?:  +then.*)?$", about(name), re.M)
    words = shlex.split(line)
    parts = [
        part for option, part in (("--policy", "token-eviction"), ("--requests", "paged")) if option in words
    ]
    if "none" in words:
        names = closure.of_parts(parts) if parts else closure.all_of(closure.PACKAGE)
    else:
        names = closure.of_parts(parts, "stories")
    for file in map(closure.file_of, names):
        source = (compiled.tree(arch) / file).with_suffix(".mpy")
        if source.exists():
            target = (folder / file).with_suffix(".mpy")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return folder


def test_what_there_is() -> None:
    assert list(EXAMPLES) == ["chat", "own_cache", "policy", "saved", "shared_prefix"]
    for name, path in EXAMPLES.items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES, name
        assert f"`{path.name}`" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_on_the_unix_port(name: str) -> None:
    flash = [launcher.FlashFile(MODEL.read_bytes(), 0, name="model")]
    report = launcher.emulate(EXAMPLES[name], [], PICO, compiled=True, flash=flash)
    assert report.outcome == "ok", report.error
    judge(name, report.stdout)


@pytest.fixture(scope="module")
def pico() -> Qemu:
    elf = qemu_fixtures.built(qemu_fixtures.machines.ARM.target.most_heap_bytes)
    with Qemu(elf=elf, flash=MODEL.read_bytes()) as board:
        yield board


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.exhaustive] * (name in TOLD)) for name in EXAMPLES]
)
def test_an_example_runs_on_32_bits_as_pasted(name: str, pico: Qemu, tmp_path: Path) -> None:
    """From what it says to install and nothing else."""
    at, size = pico.machine.flash_at, len(MODEL.read_bytes())
    text = AS_A_PICO.format(at=at, size=size) + EXAMPLES[name].read_text(encoding="utf-8")
    lib = installed(name, "armv6m", tmp_path)
    done = pico.run(text, path=[lib], fence_bytes=PICO.heap_bytes)
    assert done.status == 0, done.stderr
    judge(name, done.stdout)
