"""Fixtures of all tests: the unix port, the optional data folder."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import case_ids
import pytest
import qemu_fixtures
from shared_upy import Shared

from kvlab import cli, paths
from qemu_port import machines
from unix_port import port, processes

# Nothing that a test starts outlives it, however it is started; nor do a session's workers.
processes.mark_all()

# A shell starts what runs in the background deaf to Ctrl-C, and so would be all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What is there besides kvlab is no installed package: field_tables, kernelgen, mutation.
sys.path.insert(0, str(paths.ROOT / "tools"))

pytest_plugins = ("sampling", "processor_time")


def pytest_make_parametrize_id(val: object) -> str:
    return case_ids.case_id(val)


class Upy:
    """The MicroPython unix port, as tests drive it."""

    def __init__(self, shared: Shared | None = None) -> None:
        # One process for many scripts: for tests that need no process, heap or environment of their own.
        self.shared = shared or self

    def run(
        self,
        code_or_path: str | Path,
        args: Sequence[object] = (),
        heap_bytes: int | None = None,
        timeout: float = 120,
        env: Mapping[str, str] | None = None,
    ) -> str:
        """Run source text, or the script at a `Path`, and return its stdout. AssertionError unless
        it exits with 0.

        The root of the repository and boards/apps are on the module path. `args` become
        sys.argv[1:].
        """
        # `-c` takes sys.argv from what follows it; sys.argv[0] is then "-c".
        start = [str(code_or_path)] if isinstance(code_or_path, Path) else ["-c", code_or_path]
        done = port.run(
            [*start, *map(str, args)], heap_bytes=heap_bytes, timeout_s=timeout, env=env
        )
        if done.status != 0:
            how = (
                f"no end after {timeout} s"
                if done.status is None
                else f"exit status {done.status}"
            )
            raise AssertionError(
                f"micropython: {how}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
            )
        return done.stdout


@pytest.fixture(scope="session")
def upy() -> Iterator[Upy]:
    with Shared() as shared:
        yield Upy(shared)


@pytest.fixture
def kvlab(capfd):
    """`kvlab(*arguments)`: exit status, stdout, stderr of one command run in this process."""

    def run(*arguments):
        status = cli.main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return status, out, err

    return run


@pytest.fixture(scope="session")
def qemu() -> Iterator[qemu_fixtures.Qemu32]:
    """The 32-bit firmware on an emulated Cortex-M3. Skips by name where a tool is missing."""
    board = qemu_fixtures.Qemu32(machines.ARM)
    yield board
    board.close()


@pytest.fixture(scope="session")
def qemu_riscv() -> Iterator[qemu_fixtures.Qemu32]:
    """The same on an emulated 32-bit RISC-V core."""
    board = qemu_fixtures.Qemu32(machines.RV32)
    yield board
    board.close()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of optional data. Skips the test when it is not there: CI has none."""
    folder = paths.data_dir()
    if folder is None:
        pytest.skip(f"no data folder (../shared/data or ${paths.DATA_ENV})")
    return folder


@pytest.fixture(scope="session")
def needs_data(data_dir: Path):
    """`needs_data("stories260K/tok512.bin")`: its path; skips by its name when it is absent."""

    def find(relative: str) -> Path:
        path = data_dir / relative
        if not path.exists():
            pytest.skip(f"no {relative} in the data folder")
        return path

    return find
