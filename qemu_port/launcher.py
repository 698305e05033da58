"""Runs a script on the emulated 32-bit board behind a board's fence, and reports as unix_port.launcher.

What the unix port can only bound is exact here: objects have 32-bit words, the code of viper and native
functions lies in the heap as on a Raspberry Pi Pico, and modules are the .mpy files of a Pico, loaded
into the heap. What lies in flash is read where it lies. There is no clock, no flash that can be written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import firmware
from qemu_port import machines
from qemu_port.board import FLASH_BYTES, NoRoom, Qemu
from unix_port import compiled as modules
from unix_port.errors import PortError
from unix_port.launcher import FlashFile, Mark, Report
from unix_port.machine import Machine
from unix_port.port import MODULE_PATH, Finished, check_timeout

# A garbage collector's block, and what it takes with its 3 bits in the collector's tables, in eighths.
BLOCK_BYTES = 16
_BLOCK_EIGHTHS = 131

# Room for the board's side of this package, and a bit of ballast to make the fence exact.
SIDE_BYTES = 56 * 1024

# Firmware sizes are rounded up to this, so that fences that lie close together share one.
_STEP_BYTES = 4096


def firmware_heap_bytes(free_bytes: int) -> int:
    """The least heap of a firmware (of those that are built) in which a script can have `free_bytes`."""
    needed = (free_bytes + SIDE_BYTES) * _BLOCK_EIGHTHS // (8 * BLOCK_BYTES)
    return -(-needed // _STEP_BYTES) * _STEP_BYTES


# The largest fence: whole blocks, in the largest firmware.
MOST_HEAP_BYTES = (
    (firmware.MOST_HEAP_BYTES // _STEP_BYTES * _STEP_BYTES * 8 * BLOCK_BYTES // _BLOCK_EIGHTHS - SIDE_BYTES)
    // BLOCK_BYTES
    * BLOCK_BYTES
)


def emulate(
    script: str | Path,
    args: Sequence[object],
    machine: Machine,
    *,
    heap_bytes: int | None = None,
    flash: Sequence[FlashFile] = (),
    timeout_s: float | None = None,
    stream: bool = False,
    compiled: bool = False,
    keep_flash: bool = False,
    cut_after: int | None = None,
    cwd: Path | None = None,
) -> Report:
    """Run `script` with `args` behind the fence of `machine`, or behind `heap_bytes` instead of its heap.

    `flash` lies in memory-mapped flash. `stream` also passes the script's output on as it comes. With
    `compiled` the script finds mpy_kv and the apps as .mpy files, as they are deployed.
    Relative names are looked up in `cwd`, or our folder. PortError on bad input, or when there is no
    emulator; what the script does is in the report.
    """
    if keep_flash or cut_after is not None:
        raise PortError(f"the flash of {machine.name} cannot be written: choose another board")
    file = Path(script)
    if not file.is_file():
        raise PortError(f"no script {file}")
    check_timeout(timeout_s)
    limit = machine.heap_bytes if heap_bytes is None else heap_bytes
    limit -= limit % BLOCK_BYTES
    if not BLOCK_BYTES <= limit <= MOST_HEAP_BYTES:
        raise PortError(
            f"a heap of {limit:,} bytes: the emulated machine has no such; it takes {BLOCK_BYTES:,} to"
            f" {MOST_HEAP_BYTES:,}"
        )
    # A smaller fence in the board's own firmware: the search for the smallest heap builds none.
    whole = firmware_heap_bytes(max(limit, machine.heap_bytes))
    path = [modules.tree(machines.ARM.arch)] if compiled else MODULE_PATH
    with Qemu(whole, flash=_image(machine, flash)) as board:
        started = time.monotonic()
        unstarted = ""
        try:
            done = board.run(
                file,
                args,
                path=path,
                cwd=cwd,
                fence_bytes=limit,
                timeout_s=timeout_s,
                stream=sys.stdout if stream else None,
            )
        except NoRoom as full:
            done, unstarted = Finished(1, "", ""), str(full)
        seconds = time.monotonic() - started
        figures = board.report
        gone = board.ended
    if unstarted:
        outcome, error = "does not fit", unstarted
    elif figures:
        outcome, error = figures["outcome"], figures["error"]
    elif done.status is None:
        outcome, error = "timed out", f"no end after {timeout_s:g} s" if timeout_s else "no end"
    elif gone and done.status == 1:
        outcome, error = "crashed", "the board ended before its script, as by machine.reset()"
    else:
        said = (done.stderr or done.stdout).strip().splitlines()
        outcome, error = "crashed", f"the board gave no report: {said[-1] if said else 'and no word'}"
    return _report(machine, file, limit, outcome, error, done.stdout, done.stderr, figures, seconds)


def _report(
    machine: Machine,
    script: Path,
    limit: int,
    outcome: str,
    error: str | None,
    stdout: str,
    stderr: str,
    figures: dict[str, Any],
    seconds: float,
) -> Report:
    marks = [Mark(label, 0, live) for label, live in figures.get("marks", ())]
    live = figures.get("heap_live_end_bytes")
    return Report(
        board=machine.name,
        script=str(script),
        outcome=outcome,
        status=figures.get("status", 1),
        error=error and " ".join(error.split()),
        heap_limit_bytes=figures.get("heap_limit_bytes", limit),
        heap_live_peak_bytes=None if live is None else max([live, *(mark.live_bytes for mark in marks)]),
        heap_live_end_bytes=live,
        allocated_bytes=figures.get("allocated_bytes"),
        largest_object_bytes=None,
        largest_object_kind=None,
        largest_object_limit_bytes=machine.largest_object_bytes,
        native_code_bytes=None,
        native_code_in_heap=True,
        clock_hz=machine.clock_hz,
        seconds=seconds,
        flash_bytes=machine.flash_bytes,
        flash_erases=None,
        flash_programs=None,
        flash_lost_bits=None,
        instructions=figures.get("instructions"),
        marks=marks,
        notes=[
            "Objects have 32-bit words, and machine code lies in this heap and is counted: the same code"
            " takes the same bytes on a Raspberry Pi Pico."
        ],
        stdout=stdout,
        stderr=stderr,
    )


def _image(machine: Machine, files: Sequence[FlashFile]) -> bytes:
    """Erased flash with `files` in it. PortError where one does not fit or two overlap."""
    size = min(machine.flash_bytes, FLASH_BYTES)
    image = bytearray(b"\xff" * size)
    end = 0
    for file in sorted(files, key=lambda file: file.offset):
        if file.offset < end:
            raise PortError(f"{file.name} at {file.offset:,} overlaps what ends at {end:,}")
        end = file.offset + len(file.content)
        if end > size:
            raise PortError(
                f"{file.name}: {len(file.content):,} bytes at {file.offset:,} do not fit the"
                f" {size:,} bytes of flash of {machine.name}"
            )
        image[file.offset : end] = file.content
    return bytes(image)
