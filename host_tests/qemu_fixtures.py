"""The emulated 32-bit board as tests drive it: one for a worker's whole session."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import firmware
from firmware import tools
from kvlab import boards
from qemu_port import machines
from qemu_port.board import Qemu
from qemu_port.launcher import firmware_heap_bytes
from unix_port import compiled

# For modules of the board's side that tests also import.
sys.path.insert(0, str(Path(__file__).parent / "device"))

# Room for every case on the Arm machine, which has 4 MiB in all.
HEAP_BYTES = firmware.MOST_HEAP_BYTES

# What a Pico, a Pico 2 and an ESP32-C3 are given.
ARCHES = ("armv6m", "armv7m", "rv32imc")


def unavailable(why: str) -> None:
    """Skip, by name; where all tests must run (CI=true) fail instead."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"32-bit firmware: {why}")
    pytest.skip(f"32-bit firmware: {why}")


class Qemu32:
    """Called like the unix port's fixture `upy`."""

    def __init__(self, machine: machines.Emulated) -> None:
        self.machine = machine
        self.elf = built(machine.target.most_heap_bytes, machine)
        self.board = Qemu(elf=self.elf, machine=machine)

    def run(
        self,
        code_or_path: str | Path,
        args: Sequence[object] = (),
        heap_bytes: int | None = None,
        timeout: float = 120,
        env: Mapping[str, str] | None = None,
        arch: str | None = None,
    ) -> str:
        """Run source text, or the script at a `Path`, and return its stdout. AssertionError unless
        it exits with 0.

        mpy_kv and the apps are .mpy files for `arch`, or as source if that is "". The heap is always
        the largest the machine has; a board has no environment.
        """
        assert env is None
        if arch is None:
            arch = self.machine.arch
        path = [compiled.tree(arch)] if arch else None
        done = self.board.run(code_or_path, args, path=path, timeout_s=timeout)
        if done.status != 0:
            how = f"no end after {timeout} s" if done.status is None else f"exit status {done.status}"
            raise AssertionError(f"board: {how}\n--- stdout\n{done.stdout}\n--- error\n{done.stderr}")
        return done.stdout

    def close(self) -> None:
        self.board.close()


def needed_by(name: str) -> None:
    """The firmware, if the board of that name is this emulated one."""
    board = boards.load(name)
    if board.emulated:
        built(firmware_heap_bytes(board.machine.heap_bytes))


def built(heap_bytes: int, machine: machines.Emulated = machines.ARM) -> Path:
    """The firmware, or the end of the test that wants it."""
    programs = (tools.MAKE.program, machine.target.compiler.program, machine.program)
    absent = [program for program in programs if shutil.which(program) is None]
    if absent:
        unavailable(f"no {', '.join(absent)}")
    try:
        return firmware.build(heap_bytes, machine.target)
    except firmware.FirmwareError as error:
        unavailable(str(error))
        raise AssertionError("not reached") from error
