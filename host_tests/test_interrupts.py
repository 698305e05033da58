"""An interrupt shows one line and never a traceback, whenever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unix_port import processes

SCRIPT = Path(sys.executable).with_name("kvlab")

# As the script does, but the interrupt comes when the n-th module is looked for.
AT_IMPORT = """
import os, signal, sys
from kvlab.__main__ import run
class Finder:
    left = {count}
    def find_spec(self, name, path=None, target=None):
        Finder.left -= 1
        if Finder.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
run()
"""


def kvlab(*command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


# Before its first line runs, a signal ends the script without a word, as it does any program.
ENDS = [(130, b"kvlab: interrupted"), (-signal.SIGINT, b"")]


@pytest.mark.parametrize("delay_ms", [0, 3, 6, 10, 15, 20, 30, 40, 60, 90, 130, 200])
def test_an_interrupt_while_it_starts(delay_ms: int) -> None:
    process = kvlab(str(SCRIPT), "stories", "--tokens", "1000000")
    time.sleep(delay_ms / 1000)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) in ENDS


@pytest.mark.exhaustive
@pytest.mark.parametrize("line", ["stories --tokens 1000000", "quality --fresh", "boards"])
def test_an_interrupt_at_any_moment_of_the_start(line: str) -> None:
    words = line.split()
    for delay_ms in range(0, 300, 7):
        process = kvlab(str(SCRIPT), *words)
        time.sleep(delay_ms / 1000)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        ends = [*ENDS, (0, b"")] if line == "boards" else ENDS
        assert (process.returncode, said.strip()) in ends, delay_ms


@pytest.mark.parametrize("count", [3, 40, 90, 160, 230, 300])
def test_an_interrupt_while_modules_are_imported(count: int) -> None:
    process = kvlab(sys.executable, "-c", AT_IMPORT.format(count=count), "stories", "--tokens", "1000000")
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.strip()) == (130, b"kvlab: interrupted")


@pytest.mark.exhaustive
def test_an_interrupt_at_the_import_of_any_module() -> None:
    """Counts up to what a run without an interrupt imports."""
    for count in range(3, 10_000):
        process = kvlab(sys.executable, "-c", AT_IMPORT.format(count=count), "stories", "--tokens", "1")
        _, said = process.communicate(timeout=60)
        if process.returncode == 0:
            assert count > 200, "it imports more than that"
            return
        assert (process.returncode, said.strip()) == (130, b"kvlab: interrupted"), count


def test_where_interrupts_are_ignored_they_stay_so() -> None:
    """As under nohup, and of what a shell starts in the background."""
    held = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = kvlab(str(SCRIPT), "stories", "--tokens", "30")
    finally:
        signal.signal(signal.SIGINT, held)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    told, said = process.communicate(timeout=120)
    assert (process.returncode, said) == (0, b"")
    assert b"30 tokens" in told


def test_what_it_starts_sees_interrupts(tmp_path: Path) -> None:
    """The signal is held back until the script runs, and no longer."""
    env = {**os.environ, "KVLAB_MICROPYTHON": blocked(tmp_path)}
    done = subprocess.run([str(SCRIPT), "doctor"], capture_output=True, env=env)
    assert b"SigBlk: 0" in done.stdout


def blocked(folder: Path) -> str:
    """An interpreter that complains with the mask of the signals that it was started with."""
    script = folder / "micropython"
    script.write_text("#!/bin/sh\nawk '/^SigBlk/ { print $1, $2 + 0 }' /proc/self/status >&2\nexit 1\n")
    script.chmod(0o755)
    return str(script)


def test_the_script_works_through_a_link(tmp_path: Path) -> None:
    link = tmp_path / "bin" / "kv"
    link.parent.mkdir()
    link.symlink_to(SCRIPT)
    done = subprocess.run([str(link), "--version"], capture_output=True, text=True, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "kvlab 0.1.0\n", "")


class Swallows:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)
        assert [0 for _ in range(10)]  # the exception comes in between, and cannot leave a destructor


def test_an_interrupt_that_was_swallowed_comes_again() -> None:
    def wait() -> None:
        with processes.stopped_by_signals():
            Swallows()
            time.sleep(30)

    with pytest.raises(KeyboardInterrupt):
        wait()
