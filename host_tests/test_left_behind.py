"""No child outlives its parent, whatever ends that: the kernel's kill, a signal to a worker of pytest."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import left
import pytest
import qemu_fixtures

from kvlab.paths import ROOT
from qemu_port import machines
from unix_port import processes

# Starts one of each kind, each in a thread of its own but for the first, whose thread has ended by then.
PARENT = """
import pathlib, shutil, subprocess, sys, threading, time
from firmware import tools
from unix_port import port, processes

folder = pathlib.Path(sys.argv[1])

def at_once():
    processes.popen(["sleep", "1001"])

def unix():
    port.run(["-c", "while True: pass"])

def build():
    (folder / "makefile").write_text("all:\\n\\tsleep 1002 & sleep 1003\\n")
    tools.run(["make", "-f", str(folder / "makefile")], timeout_s=1000, env=tools.make_environment())

def kvlab():
    (folder / "endless.py").write_text("while True: pass")
    processes.run([sys.executable, "-m", "kvlab", "emulate", str(folder / "endless.py")])

def node():
    processes.run(["node", "-e", "setInterval(() => 0, 1000)"])

def board(name, elf):
    from qemu_port import machines
    from qemu_port.board import Qemu
    Qemu(elf=pathlib.Path(elf), machine=machines.BY_NAME[name]).run("while True: pass")

first = threading.Thread(target=at_once)
first.start()
first.join()
kinds = [unix, build, kvlab, *([node] if shutil.which("node") else [])]
for kind in kinds:
    threading.Thread(target=kind, daemon=True).start()
for name, elf in zip(sys.argv[2::2], sys.argv[3::2]):
    threading.Thread(target=board, args=(name, elf), daemon=True).start()
print(processes._watched.mark, flush=True)
time.sleep(1000)
"""


@contextmanager
def parent(*words: object, code: str = PARENT) -> Iterator[tuple[subprocess.Popen, str]]:
    """A process, and the mark of its children."""
    command = [sys.executable, "-c", code, *map(str, words)]
    with processes.started(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().decode().strip()


def programs(mark: str) -> list[str]:
    return sorted(name for _, name in left.bearing(mark))


def test_none_of_any_kind_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    boards = [
        (name, qemu_fixtures.built(machine.target.most_heap_bytes, machine))
        for name, machine in machines.BY_NAME.items()
    ]
    with parent(tmp_path, *(word for board in boards for word in board)) as (process, mark):
        # Of the command, which starts one of its own, and of make there are descendants, too.
        want = ["make", "micropython", "micropython", "-m", "sh", *["sleep"] * 3]
        want += [machine.program for machine in machines.BY_NAME.values()]
        want += ["node"] if shutil.which("node") else []
        assert left.until(lambda: programs(mark) == sorted(want)), programs(mark)
        os.kill(process.pid, signal.SIGKILL)
        assert left.until(lambda: programs(mark) == []), programs(mark)


def watches(mark: str) -> list[int]:
    """Process ids of those that watch for the end of the mark's owner."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"/bin/sh" and mark.encode() in words:
            found.append(int(folder.name))
    return found


SLEEPER = """
import time
from unix_port import processes
processes.popen(["sleep", "1000"])
print(processes._watched.mark, flush=True)
time.sleep(1000)
"""


def test_nor_when_what_watches_over_them_was_killed_before() -> None:
    with parent(code=SLEEPER) as (process, mark):
        assert left.until(lambda: len(watches(mark)) == 1)
        first = watches(mark)
        os.kill(first[0], signal.SIGKILL)
        assert left.until(lambda: len(watches(mark)) == 1 and watches(mark) != first)
        assert programs(mark) == ["sleep"]
        os.kill(process.pid, signal.SIGKILL)
        assert left.until(lambda: programs(mark) == [] and watches(mark) == [])


ENDS = {"end": "", "exit": "raise SystemExit(3)", "_exit": "import os; os._exit(4)"}


@pytest.mark.parametrize("end", ENDS)
def test_nor_one_that_ends_by_itself(end: str) -> None:
    code = SLEEPER.replace("time.sleep(1000)\n", ENDS[end] + "\n")
    with parent(code=code) as (_process, mark):
        assert left.until(lambda: programs(mark) == [] and watches(mark) == [])


WORKER = """
import os, pathlib, subprocess, time
from unix_port import processes
processes.mark_all()

def test_endless():
    child = subprocess.Popen(["sleep", "1000"])
    pathlib.Path("told").write_text(f"{os.getpid()} {processes._watched.mark}")
    time.sleep(1000)
"""


@pytest.mark.parametrize("victim", ["worker", "session"])
def test_nor_one_of_a_worker_of_pytest(victim: str, tmp_path: Path) -> None:
    """By SIGTERM to the worker, or by the kernel to the whole session's first process."""
    (tmp_path / "test_it.py").write_text(WORKER)
    (tmp_path / "conftest.py").write_text("from unix_port import processes\nprocesses.mark_all()\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", "test_it.py"]
    told = tmp_path / "told"
    with processes.started(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as session:
        assert left.until(lambda: told.is_file() and len(told.read_text().split()) == 2)
        worker, mark = told.read_text().split()
        assert programs(mark) == ["sleep"]
        if victim == "worker":
            os.kill(int(worker), signal.SIGTERM)
        else:
            os.kill(session.pid, signal.SIGKILL)
        assert left.until(lambda: programs(mark) == []), programs(mark)
        assert left.until(lambda: not Path(f"/proc/{worker}/cmdline").is_file() or dead(int(worker)))


def dead(pid: int) -> bool:
    """Whether it has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def test_all_of_ours_are_started_by_the_one_module() -> None:
    """Apt-get alone is left to finish; a fork of a child bears the child's mark."""
    starters = {"run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"}
    others = {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "spawnv", "spawn"}
    found = []
    for folder in ("tools", "unix_port", "qemu_port"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    if ast.unparse(node.func) == "subprocess.Popen":
                        found.append(f"{path.relative_to(ROOT)}: subprocess.Popen")
                elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    names = {"subprocess": starters, "os": others, "pty": others}.get(node.value.id, ())
                    if node.attr in names:
                        found.append(f"{path.relative_to(ROOT)}: {node.value.id}.{node.attr}")
                elif isinstance(node, (ast.Import, ast.ImportFrom)):
                    words = [alias.name for alias in node.names]
                    module = getattr(node, "module", None) or ""
                    if "multiprocessing" in (module.split(".")[0], *words) or "ProcessPoolExecutor" in words:
                        found.append(f"{path.relative_to(ROOT)}: processes of Python's own")
    assert sorted(found) == [
        "tools/firmware/tools.py: subprocess.run",
        "tools/mutation/worker.py: os.fork",
        *["unix_port/processes.py: subprocess.Popen"] * 2,
        "unix_port/processes.py: subprocess.run",
    ]
