"""What one run told: the figures of the board's side, read and judged."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from unix_port.machine import Machine
from unix_port.port import Finished


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
    # With a seed `torn` a cut does not leave half of an operation, but what real chips do: weak bits, which
    # no byte shows. They are for the next run, beside flash_after.
    flash_state: dict[str, Any] | None = None
    heap_peak_bytes: int | None = None  # the smallest heap that runs; see smallest_heap
    instructions: int | None = None  # that the script took, where they are counted: not on this port
    marks: list[Mark] = field(default_factory=list)
    samples: list[tuple[int, int]] = field(
        default_factory=list
    )  # (us, bytes in use, garbage included)
    notes: list[str] = field(default_factory=list)
    stdout: str = field(default="", repr=False)
    stderr: str = field(default="", repr=False)
    flash_after: bytes | None = field(default=None, repr=False)  # when asked for, and it was written

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
        """Everything but the script's output and the flash, as JSON takes it."""
        plain = asdict(self)
        del plain["stdout"], plain["stderr"], plain["flash_after"], plain["flash_state"]
        return {
            "verdict": self.verdict,
            "fits": self.fits,
            **plain,
        }


def read_report(
    machine: Machine,
    script: Path,
    limit: int,
    done: Finished,
    written: bytes,
    timeout_s: float | None,
) -> Report:
    """The report that the script's side wrote, or what can be said without a whole one."""
    lines = written.decode("utf-8", "replace").split("\n")
    whole = len(lines) == 4
    figures: dict[str, Any] = json.loads(lines[0]) if whole else {}
    marks = [Mark(label, us, live) for us, live, label in json.loads(lines[1])] if whole else []
    samples = [(us, used) for us, used in json.loads(lines[2])] if whole else []
    if whole:
        outcome, status, error = figures["outcome"], figures["status"], figures["error"]
        error = error and " ".join(error.split())
    elif done.status is None:
        outcome, status, error = "timed out", 1, f"no end after {timeout_s:g} s"
    else:
        how = f"signal {-done.status}" if done.status < 0 else f"exit status {done.status}"
        said = done.stderr.strip().split("\n")[-1][:200]
        outcome, status = "crashed", 1
        error = f"the interpreter ended with {how} and no report{': ' if said else ''}{said}"
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
        flash_state=figures.get("flash_state"),
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
