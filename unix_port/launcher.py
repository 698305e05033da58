"""Runs a MicroPython script on the unix port as if on a board: its heap, its flash, its modules.

`emulate` runs a script once. `smallest_heap` searches for the least heap it still runs in.

What the fence means. The script starts with `gc.mem_free()` equal to the board's. The flash image
and the emulator's own objects lie in the same process's heap but are not counted. Objects here
have 64-bit words and take up to twice a board's bytes, so for them what fits here fits the board.
Two things go the other way and are reported: machine code of viper and native functions lies
outside the heap here, and a heap that the board has in several areas is one area here.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unix_port import compiled as modules
from unix_port import port
from unix_port.machine import Machine
from unix_port.port import PortError

SIDE = Path(__file__).resolve().parent / "side"

# Room in the process for the emulator's own objects and for the report when the script has filled
# its heap.
SPARE_BYTES = 192 * 1024

# gc blocks of the 64-bit port: limits are cut to whole ones.
BLOCK_BYTES = 32

# The least heap in which `execfile` of an empty script works.
MIN_HEAP_BYTES = 2 * 1024

# How far above the board's heap `smallest_heap` looks before it gives up.
SEARCH_FACTOR = 8


@dataclass(frozen=True)
class FlashFile:
    """Bytes that are in the flash when the script starts."""

    content: bytes
    offset: int = 0
    name: str = "flash image"


@dataclass(frozen=True)
class Mark:
    """The live heap (garbage collected) when the script called `emu.mark(label)`."""

    label: str
    us: int
    live_bytes: int


@dataclass
class Report:
    """One run. Heap figures count the script's bytes alone, in 64-bit objects."""

    board: str
    script: str
    outcome: str  # ok, failed, does not fit, power cut, interrupted, timed out, crashed
    status: int  # exit status of the script; 1 when it did not end by itself
    error: str | None
    heap_limit_bytes: int
    heap_live_peak_bytes: int | None  # most that was live at a mark or at the end
    heap_live_end_bytes: int | None
    allocated_bytes: int | None  # in the whole run, freed or not
    largest_object_bytes: (
        int | None
    )  # bytearray or array; see side/emu/watch.py for what is not seen
    largest_object_kind: str | None
    largest_object_limit_bytes: int  # what the board can give in one piece
    native_code_bytes: int | None  # x64 code, outside this heap and not counted in it
    native_code_in_heap: bool  # on the board
    clock_hz: int
    seconds: float | None  # of this machine, not of the board
    flash_bytes: int
    flash_erases: int | None  # blocks
    flash_programs: int | None  # pages
    flash_lost_bits: int | None  # asked to rise without an erase
    heap_peak_bytes: int | None = None  # the smallest heap that runs; see smallest_heap
    marks: list[Mark] = field(default_factory=list)
    samples: list[tuple[int, int]] = field(
        default_factory=list
    )  # (us, bytes in use, garbage included)
    notes: list[str] = field(default_factory=list)
    stdout: str = field(default="", repr=False)
    stderr: str = field(default="", repr=False)

    @property
    def ok(self) -> bool:
        return self.outcome == "ok"

    @property
    def verdict(self) -> str:
        """One line: "fits", or why not with the numbers. Machine code: see `notes`."""
        if self.outcome == "does not fit":
            return f"does not fit: {self.error}, in a heap of {self.heap_limit_bytes:,}"
        if not self.ok:
            return f"{self.outcome}: {self.error or f'exit status {self.status}'}"
        largest = self.largest_object_bytes or 0
        if largest > self.largest_object_limit_bytes:
            return (
                f"does not fit: one {self.largest_object_kind} of {largest:,} bytes, and the"
                f" board has {self.largest_object_limit_bytes:,} in one piece"
            )
        return "fits"

    @property
    def fits(self) -> bool:
        """Ran to a good end within the heap, no object larger than the board has room for."""
        return self.verdict == "fits"

    def figures(self) -> dict[str, Any]:
        """Everything but the script's output, as JSON takes it."""
        plain = asdict(self)
        del plain["stdout"], plain["stderr"]
        return {
            "verdict": self.verdict,
            "fits": self.fits,
            **plain,
        }


def emulate(
    script: str | Path,
    args: Sequence[object],
    machine: Machine,
    *,
    heap_bytes: int | None = None,
    flash: Sequence[FlashFile] = (),
    flash_out: Path | None = None,
    cut_after: int | None = None,
    timeout_s: float | None = None,
    stream: bool = False,
    compiled: bool = False,
    env: Mapping[str, str] | None = None,
) -> Report:
    """Run `script` with `args` behind the fence of `machine`, or behind `heap_bytes` instead of
    its heap.

    `flash` is laid over erased flash; `flash_out` takes the flash as it is at the end.
    `cut_after=k` cuts the power in the k-th flash operation (0 is the first). `stream` also passes
    the script's output on as it comes. With `compiled` the script finds mpy_kv and the apps as
    .mpy files, as they are deployed. PortError on bad input; what the script does is in the
    report.
    """
    file = Path(script)
    if not file.is_file():
        raise PortError(f"no script {file}")
    limit = machine.heap_bytes if heap_bytes is None else heap_bytes
    if limit < MIN_HEAP_BYTES:
        raise PortError(
            f"a heap of {limit:,} bytes starts no script; the least is {MIN_HEAP_BYTES:,}"
        )
    if cut_after is not None and cut_after < 0:
        raise PortError(f"power cut in operation {cut_after}: the first is 0")
    limit -= limit % BLOCK_BYTES
    image = _image(machine, flash)
    path = [SIDE, SIDE / "ports" / machine.port, *([modules.tree()] if compiled else [])]
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        place = Path(folder)
        (place / "flash").write_bytes(image)
        config = {
            "board": machine.name,
            "port": machine.port,
            "heap_bytes": limit,
            "clock_hz": machine.clock_hz,
            "clock_max_hz": machine.clock_max_hz,
            "partition": vars(machine.partition) if machine.partition else None,
            "flash_file": str(place / "flash"),
            "flash_bytes": machine.flash_bytes,
            "erase_bytes": machine.flash_erase_bytes,
            "program_bytes": machine.flash_program_bytes,
            "cut_after": -1 if cut_after is None else cut_after,
            "flash_out": None if flash_out is None else os.path.abspath(flash_out),
            "report_file": str(place / "report"),
        }
        (place / "config").write_text(json.dumps(config))
        # The collector's tables take 3 bits of a 32-byte block: 1.2 %.
        whole = (limit + machine.flash_bytes) * 102 // 100 + SPARE_BYTES
        done = port.run(
            [str(SIDE / "boot.py"), str(place / "config"), str(file), *map(str, args)],
            heap_bytes=whole,
            timeout_s=timeout_s,
            env=env,
            path=path,
            stream=stream,
        )
        written = place / "report"
        lines = written.read_text().splitlines() if written.exists() else []
    return _report(machine, file, limit, done, lines, timeout_s)


def smallest_heap(
    script: str | Path,
    args: Sequence[object],
    machine: Machine,
    *,
    heap_bytes: int | None = None,
    resolution_bytes: int = 1024,
    first: Report | None = None,
    **how: Any,
) -> int | None:
    """The least heap, to within `resolution_bytes`, in which the script still ends well; None if
    none does.

    Each try is a run of its own, so give a short form of the work. The search starts from the
    board's heap or `heap_bytes`; `first` is the report of a run there, if there was one; `how`
    goes to `emulate`. When the script does not fit, the search goes up, to SEARCH_FACTOR times
    that.

    A run may succeed in less heap than another that fails (objects come to lie elsewhere): the
    answer is a size that was seen to run, with one that was seen to fail (or the least that is
    tried) at most `resolution_bytes` below it.
    """

    def runs(limit: int) -> bool:
        return emulate(script, args, machine, heap_bytes=limit, **how).ok

    start = machine.heap_bytes if heap_bytes is None else heap_bytes
    report = first or emulate(script, args, machine, heap_bytes=start, **how)
    bad, good = MIN_HEAP_BYTES - 1, start
    if not report.ok:
        if report.outcome != "does not fit":
            return None
        while True:
            bad, good = good, good * 2
            if good > start * SEARCH_FACTOR:
                return None
            if runs(good):
                break
    workers = max(2, min(4, os.cpu_count() or 2))
    with ThreadPoolExecutor(workers) as pool:
        while good - bad > resolution_bytes:
            step = (good - bad) / (workers + 1)
            sizes = sorted({bad + round(step * i) for i in range(1, workers + 1)} - {bad, good})
            ran = dict(zip(sizes, pool.map(runs, sizes)))
            good = next((size for size in sizes if ran[size]), good)
            bad = max((size for size in sizes if size < good), default=bad)
    return good - good % BLOCK_BYTES


def _image(machine: Machine, files: Sequence[FlashFile]) -> bytes:
    """Erased flash with `files` in it. PortError where one does not fit or two overlap."""
    image = bytearray(b"\xff" * machine.flash_bytes)
    taken: list[tuple[int, int, str]] = []
    for file in files:
        end = file.offset + len(file.content)
        if file.offset < 0 or end > machine.flash_bytes:
            raise PortError(
                f"{file.name}: {len(file.content):,} bytes at {file.offset:,} do not fit the "
                f"{machine.flash_bytes:,} bytes of flash of {machine.name}"
            )
        for first, last, name in taken:
            if file.offset < last and first < end:
                raise PortError(
                    f"{file.name} at {file.offset:,} overlaps {name} at {first:,}..{last:,}"
                )
        taken.append((file.offset, end, file.name))
        image[file.offset : end] = file.content
    return bytes(image)


def _report(
    machine: Machine,
    script: Path,
    limit: int,
    done: port.Finished,
    lines: Sequence[str],
    timeout_s: float | None,
) -> Report:
    """The report the script's side wrote, or what can be said without it."""
    figures: dict[str, Any] = json.loads(lines[0]) if len(lines) == 3 else {}
    marks = [Mark(label, us, live) for us, live, label in json.loads(lines[1])] if figures else []
    samples = [(us, used) for us, used in json.loads(lines[2])] if figures else []
    if figures:
        outcome, status, error = figures["outcome"], figures["status"], figures["error"]
    elif done.status is None:
        outcome, status, error = "timed out", 1, f"no end after {timeout_s:g} s"
    else:
        how = f"signal {-done.status}" if done.status < 0 else f"exit status {done.status}"
        outcome, status, error = "crashed", 1, f"the interpreter ended with {how} and no report"
    report = Report(
        board=machine.name,
        script=str(script),
        outcome=outcome,
        status=status,
        error=error,
        heap_limit_bytes=figures.get("heap_limit_bytes", limit),
        heap_live_peak_bytes=max([figures["heap_live_end_bytes"], *(m.live_bytes for m in marks)])
        if figures
        else None,
        heap_live_end_bytes=figures.get("heap_live_end_bytes"),
        allocated_bytes=figures.get("allocated_bytes"),
        largest_object_bytes=figures.get("largest_object_bytes"),
        largest_object_kind=figures.get("largest_object_kind") or None,
        largest_object_limit_bytes=machine.largest_object_bytes,
        native_code_bytes=figures.get("native_code_bytes"),
        native_code_in_heap=machine.native_code_in_heap,
        clock_hz=figures.get("clock_hz", machine.clock_hz),
        seconds=figures.get("seconds"),
        flash_bytes=machine.flash_bytes,
        flash_erases=figures.get("flash_erases"),
        flash_programs=figures.get("flash_programs"),
        flash_lost_bits=figures.get("flash_lost_bits"),
        marks=marks,
        samples=samples,
        stdout=done.stdout,
        stderr=done.stderr,
    )
    report.notes = _notes(machine, report)
    return report


def _notes(machine: Machine, report: Report) -> list[str]:
    """How these figures differ from the board's, in sentences."""
    notes = [
        "Objects here have 64-bit words and take up to twice a 32-bit board's bytes; buffers take"
        " the same. For data, what fits here fits the board."
    ]
    code = report.native_code_bytes
    if code is None:
        notes.append(
            "The size of the machine code could not be read on this system; it is not counted."
        )
    elif code and machine.native_code_in_heap:
        notes.append(
            f"{code:,} bytes of x64 machine code lie outside this heap; the board's heap must hold"
            " its own, about 60 % of that in Thumb. The fence does not count it."
        )
    elif code:
        notes.append(
            f"{code:,} bytes of x64 machine code lie outside this heap, as they do on the board."
        )
    if machine.split_heap:
        notes.append(
            "The board's heap is several areas, of which one object must fit one. Here it is one of"
            f" {machine.heap_bytes:,} bytes; only an object of more than"
            f" {machine.largest_object_bytes:,} bytes is told not to fit."
        )
    return notes
