"""`kvlab powercut`: the power cut in every operation of the flash log or plain files, and what is left."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commandline.errors import BadInput, FellShort, did_you_mean
from kvlab import options, output
from kvlab.boards import Board

if TYPE_CHECKING:
    from kvlab.powercut.cuts import Outcome, Plan
    from kvlab.powercut.files import FileOutcome

# Of the workload: small enough to go round and to be full.
SECTORS = 64
RECORD_TOKENS = 16
SAMPLE = 47
# Of what happens beside other files: operations a start, cuts.
BESIDE_OPERATIONS = 60
BESIDE_CUTS = 4
BESIDE_ALL = 100
WHOLE = 50  # recoveries of which every operation is cut, where every operation of the workload is


def _broken(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    from kvlab.powercut.breaks import BREAKS
    from kvlab.powercut.files import FILE_BREAKS

    known = [*BREAKS, *FILE_BREAKS]
    if name is not None and name not in known:
        hint = did_you_mean(name, known) or f"; safeguards: {', '.join(known)}"
        raise BadInput(f"--break {name}: no such safeguard{hint}")
    return name


@click.command(
    epilog="""Examples:

\b
  kvlab powercut --board rp2040
  kvlab powercut --board rp2040 --all --json out/powercut.json
  kvlab powercut --break torn-page
  kvlab powercut --break flush-before-rename
"""
)
@options.board_option
@click.option(
    "--operations",
    type=click.IntRange(2, 100_000),
    default=500,
    show_default=True,
    metavar="OPERATIONS",
    help="Of the workload: records put, sequences closed.",
)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help=f"Cut every operation on the flash and on files, not one of {SAMPLE}; some minutes. Of a Pico also"
    " count what a start takes.",
)
@click.option(
    "--break",
    "broken",
    metavar="NAME",
    callback=_broken,
    help="Take one safeguard of the log or of files away: violations are found, up to 20, and the exit status"
    " is 1. crc, write-order, superblock-alternation, erase-record, torn-page, last-close, generation,"
    " early-success, marker-check; of files flush-before-rename, name-sync, replace-order, temporary.",
)
@click.option(
    "--seed",
    type=click.IntRange(1, (1 << 30) - 1),
    default=1,
    show_default=True,
    metavar="SEED",
    help="Of the workload and of what cuts leave.",
)
@output.json_option
def command(
    board: Board, operations: int, every: bool, broken: str | None, seed: int, json_path: Path | None
) -> None:
    """Cut the power in the operations of a flash log, let it recover, cut it again there, and compare. The
    same for records in plain files, on a file system that keeps any part of what was not synced.

    After each cut every record must be its old or its new version to the bit, what was told to be kept must
    be there, and another start must find the same. Exit status: 0 so it is, 1 it is not, 2 bad input.
    """
    from kvlab.cost.model import CHIP
    from kvlab.powercut.beside import Beside
    from kvlab.powercut.breaks import OF_FILES
    from kvlab.powercut.cuts import Cuts, Plan
    from kvlab.powercut.files import FILE_BREAKS, FileCuts

    if board.emulated:
        raise BadInput(f"--board {board.name}: its flash cannot be written: choose another")
    plan = Plan(
        SECTORS,
        record_bytes(),
        operations,
        every=1 if every or broken and broken not in OF_FILES else SAMPLE,
        whole=WHOLE if every or broken else 1,
        seed=seed,
        broken=broken,
    )
    with output.waiting("Cutting the power ..."):
        if broken in FILE_BREAKS:
            fell_short(FileCuts(operations, 1, seed, broken).run(), seed, json_path)
            return
        outcome = Cuts(plan).run()
        beside = Beside(board, min(BESIDE_OPERATIONS, operations), seed, unchecked=broken in OF_FILES)
        if not broken or broken in OF_FILES:
            beside.run((BESIDE_ALL if every else BESIDE_CUTS) if not broken else 0)
        of_files = None if broken else FileCuts(operations, plan.every, seed).run()
    outcome.violations += beside.outcome.violations
    if of_files is not None:
        outcome.violations += of_files.violations
    figures = {
        **figures_of(board, plan, outcome),
        "files": {
            "starts": beside.outcome.starts,
            "cuts": beside.outcome.cuts,
            "violations": len(beside.outcome.violations),
        },
    }
    if of_files is not None:
        figures["file_cuts"] = of_files.cuts + of_files.second_cuts
    if every and not broken and board.chip == CHIP:
        from kvlab.powercut.reopening import files_us, reopen_us

        clock_hz = board.machine.clock_hz
        figures["reopen_us"] = reopen_us(plan.record_bytes, clock_hz)
        figures["files_us"], figures["marker_us"] = files_us(clock_hz)
    show(board, outcome, figures)
    if json_path is not None:
        output.write_json(json_path, figures)
    if outcome.violations:
        raise FellShort(f"{outcome.violations[0]}; seed {seed}")


def fell_short(outcome: FileOutcome, seed: int, json_path: Path | None) -> None:
    """What comes of files without one safeguard."""
    rows = [
        ("operations of the workload", f"{outcome.operations:,}"),
        ("cuts in operations on files", f"{outcome.cuts + outcome.second_cuts:,}"),
        ("violations", f"{len(outcome.violations):,}"),
    ]
    output.table("Power cuts, plain files", rows)
    for says in outcome.violations[:5]:
        click.echo(says)
    if json_path is not None:
        figures = {
            "operations": outcome.operations,
            "file_cuts": outcome.cuts + outcome.second_cuts,
            "violations": len(outcome.violations),
        }
        output.write_json(json_path, figures)
    if outcome.violations:
        raise FellShort(f"{outcome.violations[0]}; seed {seed}")


def record_bytes() -> int:
    """Of a block of the stories' model: 16 tokens in int8."""
    from mpy_kv import Geometry

    return RECORD_TOKENS * int(Geometry(5, 8, 4, 8).token_bytes())


def figures_of(board: Board, plan: Plan, outcome: Outcome) -> dict[str, Any]:
    from kvlab.powercut.cuts import KINDS, STATES

    flash = {name: board.facts[f"flash.{name}"].value for name in ("sector_erase_us", "page_program_us")}
    cycles = board.facts["flash.endurance_cycles"].value
    sectors = board.machine.flash_bytes // board.machine.flash_erase_bytes
    a_token = plan.record_bytes / RECORD_TOKENS
    lifetime = sectors * cycles * board.machine.flash_erase_bytes / (a_token * outcome.write_amplification)
    return {
        "operations": outcome.operations,
        "cuts": outcome.cuts,
        "second_cuts": outcome.second_cuts,
        "whole_recoveries": outcome.whole,
        "cuts_by_kind": {kind: outcome.cuts_by_kind[kind] for kind in KINDS},
        "states": {state: outcome.states[state] for state in STATES},
        "violations": len(outcome.violations),
        "write_amplification": outcome.write_amplification,
        "wear": {"least": outcome.wear[0], "most": outcome.wear[1]},
        "lifetime_tokens": int(lifetime),
        "irq_off_us": max(flash.values()),
    }


def show(board: Board, outcome: Outcome, figures: dict[str, Any]) -> None:
    kinds = ", ".join(f"{count:,} in {kind}" for kind, count in figures["cuts_by_kind"].items())
    states = ", ".join(f"{count:,} {state}" for state, count in figures["states"].items())
    days = figures["lifetime_tokens"] / (24 * 3600 * 10)
    rows = [
        ("board", f"{board.title} ({board.name})"),
        ("operations of the workload", f"{outcome.operations:,}"),
        ("cuts", f"{outcome.cuts:,}, and {outcome.second_cuts:,} more in their recovery"),
        ("recoveries cut at each operation", f"{outcome.whole:,}"),
        ("by kind", kinds),
        ("with the log", states),
        *([("cuts in plain files", f"{figures['file_cuts']:,}")] if "file_cuts" in figures else []),
        ("violations", f"{len(outcome.violations):,}"),
        (
            "beside other files",
            f"{figures['files']['starts']} starts, {figures['files']['cuts']} of them cut,"
            f" {figures['files']['violations']} violations",
        ),
        ("bytes programmed for one put", f"{outcome.write_amplification:.3f}"),
        ("erases of a sector", f"{outcome.wear[0]} to {outcome.wear[1]}"),
        ("lifetime of all the storage", f"{figures['lifetime_tokens']:,} tokens, {days:,.0f} days of 10/s"),
        *(
            [("a start, with 180 records in 246 sectors", f"{figures['reopen_us']:,} us, modelled")]
            if "reopen_us" in figures
            else []
        ),
        *(
            [
                ("blocks of 264 files found", f"{figures['files_us']:,} us, modelled"),
                ("each checked before its first write", f"{figures['marker_us']:,} us in all, modelled"),
            ]
            if "marker_us" in figures
            else []
        ),
        ("longest time without interrupts", f"{figures['irq_off_us']:,} us, an erase"),
    ]
    output.table("Power cuts", rows)
    for says in outcome.violations[:5]:
        click.echo(says)
