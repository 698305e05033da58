"""`kvlab emulate`: a script on the unix port, as if on a board."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from commandline import files
from commandline.errors import BadInput, FellShort
from kvlab import emulators, flash_gap, options, output, uf2
from kvlab.boards import Board
from unix_port import launcher


def _flash_files(board: Board, given: tuple[str, ...]) -> list[launcher.FlashFile]:
    """`FILE` or `FILE@OFFSET`, any number of them; a UF2 file says itself where it belongs. BadInput."""
    found = []
    for text in given:
        name, at, place = text.rpartition("@")
        if not at:
            name, place = text, "0"
        path = options.existing_file(name, "--flash")
        if not at and path.suffix.lower() == ".uf2":
            found += _dropped(board, path)
            continue
        try:
            offset = options.parse_size(place)
        except ValueError as error:
            raise BadInput(f"--flash {text}: offset {error}") from error
        found.append(launcher.FlashFile(path.read_bytes(), offset, name=f"--flash {name}"))
    return found


def _dropped(board: Board, path: Path) -> list[launcher.FlashFile]:
    """What the board's boot loader makes of a UF2 file, by runs of bytes. BadInput."""
    if not flash_gap.known(board):
        raise BadInput(f"--flash {path}: {board.title} takes no UF2 file; FILE@OFFSET puts it there as it is")
    try:
        runs = flash_gap.written(board, uf2.read_bytes(path, "--flash"))
    except ValueError as error:
        raise BadInput(f"--flash {path}: {error}") from None
    storage_at = board.machine.storage_at
    return [launcher.FlashFile(data, at - storage_at, name=f"--flash {path}") for at, data in runs]


def _check_emulated(board: Board, heap_bytes: int | None, flash_out: Path | None) -> None:
    """BadInput for what the unix port can do and the 32-bit firmware cannot."""
    from qemu_port.launcher import MOST_HEAP_BYTES

    if heap_bytes is not None and heap_bytes > MOST_HEAP_BYTES:
        raise BadInput(
            f"--heap-bytes: {heap_bytes:,} bytes; --board {board.name} takes {launcher.MIN_HEAP_BYTES:,} to"
            f" {MOST_HEAP_BYTES:,}"
        )
    if flash_out is not None:
        raise BadInput(f"--flash-out: the flash of {board.name} cannot be written: choose another --board")


def _within_limits(board: Board, first: launcher.Report) -> Callable[..., launcher.Report]:
    """The board's emulator; in a heap that it cannot have, a script does as in its `first` run."""
    run = emulators.emulate(board)
    if not board.emulated:
        return run
    from qemu_port.launcher import MOST_HEAP_BYTES

    def tried(*what: Any, heap_bytes: int, **how: Any) -> launcher.Report:
        return first if heap_bytes > MOST_HEAP_BYTES else run(*what, heap_bytes=heap_bytes, **how)

    return tried


@click.command(
    epilog="""Examples:

\b
  kvlab emulate hello.py --board rp2040
  kvlab emulate boards/rp2040/main.py --compiled \\
      --flash out/model.mkvm@0 --peak
  kvlab emulate soak.py --heap-bytes 128KiB --json out/soak.json \\
      -- --tokens 1000
"""
)
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@options.board_option
@click.option(
    "--heap-bytes",
    type=options.Size(least=launcher.MIN_HEAP_BYTES),
    metavar="BYTES",
    help="Another heap than the board's: 200000, 128KiB.",
)
@click.option(
    "--flash",
    multiple=True,
    metavar="FILE@OFFSET",
    help="Put FILE into the flash, OFFSET bytes into the storage region; a FILE.uf2 of a Pico without OFFSET"
    " where it says, before that region too. May be repeated.",
)
@click.option(
    "--flash-out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    callback=lambda _context, _option, path: path and files.prepare(path, "--flash-out"),
    help="Write the flash as the script leaves it to FILE.",
)
@click.option(
    "--compiled",
    is_flag=True,
    help="Let it find mpy_kv and the apps as .mpy files, as they are deployed.",
)
@click.option(
    "--peak",
    is_flag=True,
    help="Also search for the smallest heap it runs in: some ten runs more.",
)
@click.option(
    "--timeout",
    "timeout_s",
    type=options.FiniteRange(min=0.1),
    metavar="SECONDS",
    help="Stop it after that.",
)
@output.json_option
def command(
    script: str,
    arguments: tuple[str, ...],
    board: Board,
    heap_bytes: int | None,
    flash: tuple[str, ...],
    flash_out: Path | None,
    compiled: bool,
    peak: bool,
    timeout_s: float | None,
    json_path: Path | None,
) -> None:
    """Run SCRIPT on the MicroPython unix port behind a board's fence: its heap, its flash, its
    modules.

    ARGUMENTS after `--` become sys.argv[1:]. What SCRIPT prints comes first, the report after it.
    Exit status: 0 it ran and fits, 1 it failed or does not fit, 2 bad input.
    """
    path = options.existing_file(script, "SCRIPT")
    laid = _flash_files(board, flash)
    if board.emulated:
        _check_emulated(board, heap_bytes, flash_out)
    how: dict[str, Any] = {
        "heap_bytes": heap_bytes,
        "flash": laid,
        "timeout_s": timeout_s,
        "compiled": compiled,
    }
    sys.stdout.flush()
    report = emulators.emulate(board)(
        path, arguments, board.machine, keep_flash=flash_out is not None, stream=True, **how
    )
    if peak and report.outcome in ("ok", "does not fit"):
        with output.waiting("Searching for the smallest heap ..."):
            report.heap_peak_bytes = launcher.smallest_heap(
                path, arguments, board.machine, first=report, run=_within_limits(board, report), **how
            )
    click.echo(report.stderr, err=True, nl=False)
    verdict = report.verdict + _remedy(report, compiled)
    show(board, report, verdict)
    if flash_out is not None and report.flash_after is not None:
        files.write(flash_out, report.flash_after, "--flash-out")
    if json_path is not None:
        output.write_json(
            *(json_path, {**report.figures(), "verdict": verdict}),
            heap_bytes=report.heap_limit_bytes,
            flash=[{"file": each.name.removeprefix("--flash "), "offset": each.offset} for each in laid],
        )
    if not report.fits:
        raise FellShort(verdict)


def _remedy(report: launcher.Report, compiled: bool) -> str:
    """What to try where the heap was too small: compiling takes a part of it."""
    if compiled or report.outcome != "does not fit" or not (report.error or "").startswith("MemoryError"):
        return ""
    return "; where it imports mpy_kv or an app, add --compiled, which takes less"


def show(board: Board, report: launcher.Report, verdict: str) -> None:
    """Print the report as a table, and below it in what its figures differ from the board's."""

    def size(count: int | None) -> str:
        return "unknown" if count is None else output.size(count)

    rows = [
        ("board", f"{board.title} ({board.name}), {report.clock_hz / 1e6:g} MHz"),
        ("outcome", verdict),
        ("heap limit", size(report.heap_limit_bytes)),
        ("most live at a mark or the end", size(report.heap_live_peak_bytes)),
    ]
    if report.heap_peak_bytes is not None:
        rows.append(("peak heap (smallest that runs)", size(report.heap_peak_bytes)))
    if not board.emulated:
        rows.append(("machine code, not counted", f"{size(report.native_code_bytes)} of x64"))
        rows.append(
            (
                "largest single object",
                f"{size(report.largest_object_bytes)} {report.largest_object_kind or ''}"
                f"; the board has {size(report.largest_object_limit_bytes)} in one piece",
            )
        )
    rows.append(("allocated in all", size(report.allocated_bytes)))
    if report.flash_erases is not None:
        rows.append(
            (
                "flash",
                f"{size(report.flash_bytes)}; {report.flash_erases:,} blocks erased,"
                f" {report.flash_programs:,} pages programmed",
            )
        )
    if report.instructions is not None:
        rows.append(("instructions", f"{report.instructions:,}"))
    if report.seconds is not None:
        rows.append(("time on this machine", f"{report.seconds:.3f} s"))
    output.table("", rows)
    output.notes(report.notes)
