"""README's programs run as they stand there, on every board it names, from what it says to install."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kvlab import boards
from kvlab.paths import ROOT
from mpy_kv import Geometry
from unix_port import launcher

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAMS = dict(
    zip(("cache", "requests"), re.findall(r"^```python\n(.*?)^```$", README, re.S | re.M), strict=True)
)
SAYS = {"cache": r"140 132 (\S+)\n", "requests": r"0\n32\n()"}
PICO = boards.load("rp2040").machine.heap_bytes


def judge(name: str, output: str) -> None:
    """What README says that it prints, and no other word."""
    found = re.fullmatch(SAYS[name], output)
    assert found is not None, output
    assert not found[1] or abs(float(found[1]) - 3) <= 3 * 0.008  # the mean of equal values


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Each program in a file."""
    folder = tmp_path_factory.mktemp("readme")
    for name, text in PROGRAMS.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.py" for name in PROGRAMS}


def test_every_board_is_named() -> None:
    assert [name for name in boards.real_names() if f"`{name}`" not in README] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_buffer_has_the_bytes_that_are_said(name: str) -> None:
    made: dict[str, object] = {}
    exec(PROGRAMS[name], made)  # what it makes has its own name
    assert f" {len(made[name].buffer):,} bytes" in PROGRAMS[name]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("board", boards.real_names())
def test_a_program_runs_behind_the_heap_of_a_board(board: str, name: str, scripts: dict[str, Path]) -> None:
    """Compiled, as `kvlab deploy --mpy` installs it; from sources it need not."""
    report = launcher.emulate(scripts[name], [], boards.load(board).machine, compiled=True)
    assert report.outcome == "ok", report.error
    judge(name, report.stdout)


def test_the_programs_run_on_32_bits_with_the_heap_of_a_pico(qemu, scripts: dict[str, Path]) -> None:
    from unix_port import compiled

    for name, script in scripts.items():
        done = qemu.board.run(script, path=[compiled.tree("armv6m")], fence_bytes=PICO)
        assert done.status == 0, done.stderr
        judge(name, done.stdout)


def test_sources_take_the_heap_that_is_said(qemu, scripts: dict[str, Path]) -> None:
    """No more, on a Pico; and far less does not suffice, or README need not say so.

    Between the two the layout of the heap decides.
    """
    words = r"takes ([\d,]+) bytes of heap with the cache below and\n([\d,]+) with the requests"
    said = re.search(words, README)
    assert said is not None
    for name, figure in zip(("cache", "requests"), said.groups(), strict=True):
        enough = int(figure.replace(",", ""))
        assert enough <= PICO
        for heap, status in ((PICO, 0), (enough, 0), (enough * 3 // 4, 1)):
            done = qemu.board.run(scripts[name], fence_bytes=heap)
            assert done.status == status, (name, heap, done.stderr)
            if not status:
                judge(name, done.stdout)


LARGE = """
from mpy_kv import Geometry, KVCache
g = Geometry(layers=5, heads=8, kv_heads=4, head_dim=8, window=400)
{}
cache = KVCache(g, buffer)
print(g.bytes())
"""
BYTES = Geometry(layers=5, heads=8, kv_heads=4, head_dim=8, window=400).bytes()


def test_a_large_buffer_finds_room(qemu) -> None:
    """One that the program makes, as README says to do about a MemoryError, and one that the cache makes:
    what is imported lies together."""
    from unix_port import compiled

    for line in (f"buffer = bytearray({BYTES})", "buffer = None"):
        done = qemu.board.run(LARGE.format(line), path=[compiled.tree("armv6m")], fence_bytes=PICO)
        assert (done.status, done.stdout) == (0, f"{BYTES}\n"), done.stderr


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_under_cpython(name: str, scripts: dict[str, Path]) -> None:
    done = subprocess.run(
        [sys.executable, scripts[name]],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    judge(name, done.stdout)
