#!/usr/bin/env python3
"""Command line of mutation: random one-line faults, and whether the tests of `make test` find them."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import click

from mutation import plan, record, run

ENOUGH = 0.95


@click.command(
    epilog="Example: python tools/mutants.py --seed 7 --count 50 --only mpy_kv/paged. Exit status: 0 at "
    "least 95 % found, 1 fewer, 2 bad input."
)
@click.option("--seed", type=int, help="Of the choice of faults (default: a new one, which is printed).")
@click.option(
    "--count",
    type=click.IntRange(1),
    default=200,
    show_default=True,
    help="How many faults, explained ones not counted.",
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="How many at a time.")
@click.option("--only", metavar="FILE", help="Faults of this file or folder alone, as paged/prefix.py.")
@click.option("--mutant", "ids", multiple=True, metavar="ID", help="This fault alone; may be repeated.")
@click.option("--line", type=click.IntRange(1), help="With --only: all faults of this line.")
@click.option("--list", "listed", is_flag=True, help="Print the faults and run nothing.")
@click.option("--all", "hidden", is_flag=True, help="Choose and judge explained ones too.")
@click.option("--json", "target", metavar="FILE", type=click.Path(path_type=Path), help="Write the results.")
def main(
    seed: int | None,
    count: int,
    jobs: int,
    only: str | None,
    ids: tuple[str, ...],
    line: int | None,
    listed: bool,
    hidden: bool,
    target: Path | None,
) -> None:
    """Put random faults into copies of the tree, one at a time, and run the tests that concern each.

    A fault that changes nothing that anybody could see, as tools/mutation/equivalent.json explains, is not
    chosen; one that is asked for by --mutant or --line is told as explained.
    """
    known = [] if hidden else run.explained()
    faults, seed = _asked(seed, count, only, ids, line, known)
    if listed:
        for fault in faults:
            click.echo(_shown(fault))
        return
    verdicts = _judged(faults, known, jobs, each=bool(ids) or line is not None)
    found = [v for v in verdicts if v.how not in ("missed", "explained")]
    missed = [v for v in verdicts if v.how == "missed"]
    _tell(verdicts, len(found), len(missed))
    if target is not None:
        _write(target, seed, verdicts, len(found), len(missed))
    if len(found) < ENOUGH * (len(found) + len(missed)):
        raise SystemExit(1)


def _asked(
    seed: int | None,
    count: int,
    only: str | None,
    ids: tuple[str, ...],
    line: int | None,
    known: list[dict[str, str]],
) -> tuple[list[run.Fault], int | None]:
    """The faults to judge, and the seed they were drawn by, where they were. UsageError."""
    faults = run.all_faults(plan.ROOT, only)
    if not faults:
        raise click.UsageError(f"--only {only}: no such file among those broken: {', '.join(plan.BROKEN)}")
    if ids:
        by_id = {f.id: f for f in faults}
        for name in ids:
            if name not in by_id:
                raise click.UsageError(f"--mutant {name}: no such fault in this tree; see --list")
        faults = [by_id[name] for name in ids]
    elif line is not None:
        if only is None:
            raise click.UsageError("--line: name its file with --only")
        faults = [f for f in faults if f.lines[0] <= line <= f.lines[1]]
        if not faults:
            raise click.UsageError(f"--line {line}: no fault can be put there; see --list")
    else:
        seed = random.SystemRandom().randrange(1 << 16) if seed is None else seed
        total = len(faults)
        faults, more = run.chosen(plan.ROOT, faults, seed, count, known)
        click.echo(f"seed {seed}: {len(faults)} of {total} faults; {more} more explained as equivalent")
        if not faults:
            raise click.UsageError(f"--only {only}: every fault of it is explained; see --all")
    return faults, seed


def _judged(faults: list[run.Fault], known: list[dict[str, str]], jobs: int, each: bool) -> list[run.Verdict]:
    """A verdict on every fault, told as it comes: those that are missed, or with `each` all of them."""
    plan.OUT.mkdir(parents=True, exist_ok=True)
    kept = plan.OUT / "record"
    trees = [plan.OUT / f"tree-{os.getpid()}-{at}" for at in range(min(jobs, len(faults)))]
    copies = [run.Copy(plan.ROOT, tree, kept) for tree in trees]
    verdicts: list[run.Verdict] = []

    def told(verdict: run.Verdict) -> None:
        verdicts.append(verdict)
        if verdict.how == "missed":
            click.echo(f"\r\033[Kmissed: {_shown(verdict.fault)}")
        elif each:
            click.echo(f"{verdict.how} ({verdict.by}, {verdict.cpu_s:.1f} s): {_shown(verdict.fault)}")
        else:
            click.echo(f"\r\033[K{len(verdicts)} of {len(faults)}", nl=False)

    try:
        made = record.make(plan.ROOT, kept, copies[0].ask, click.echo)
        run.judge_all(copies, faults, made, told, known)
    except record.Broken as error:
        raise click.ClickException(str(error)) from error
    finally:
        for copy in copies:
            copy.close()
    return verdicts


def _tell(verdicts: list[run.Verdict], found: int, missed: int) -> None:
    judged = found + missed
    if judged:
        cpu_s = sum(v.cpu_s for v in verdicts)
        click.echo(
            f"\r\033[K{found} of {judged} found ({found / judged:.1%}), {missed} missed; "
            f"{cpu_s / judged:.1f} CPU seconds each"
        )


def _write(target: Path, seed: int | None, verdicts: list[run.Verdict], found: int, missed: int) -> None:
    faults = [
        {"id": v.fault.id, "file": v.fault.file, "in": v.fault.function, "line": v.fault.line,
         "was": v.fault.was, "now": v.fault.now, "how": v.how, "by": v.by, "cpu_s": v.cpu_s}
        for v in verdicts
    ]  # fmt: skip
    figures = {"seed": seed, "found": found, "missed": missed, "faults": faults}
    target.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _shown(fault: run.Fault) -> str:
    return f"{fault.id} {fault.file}:{fault.line} {fault.function}\n    - {fault.was}\n    + {fault.now}"


if __name__ == "__main__":
    main()
