"""`kvlab soak`: random operations on pools and requests, everything promised checked after each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from commandline.errors import BadInput, FellShort, did_you_mean
from kvlab import output

if TYPE_CHECKING:
    from kvlab.soak.subject import Outcome

ALL = "all"


@click.command(
    epilog="""Examples:

\b
  kvlab soak --pool all --ops 100000 --seed 1
  kvlab soak --pool buddy --ops 1000 --json out/soak.json
"""
)
@click.option(
    "--pool",
    "names",
    multiple=True,
    metavar="NAME",
    default=(ALL,),
    show_default=True,
    help="A pool, or requests; may be repeated.",
)
@click.option(
    "--ops",
    type=click.IntRange(1, 100_000_000),
    default=100_000,
    show_default=True,
    metavar="OPERATIONS",
    help="So many on each.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 64) - 1),
    default=1,
    show_default=True,
    metavar="SEED",
    help="Of the random choices: the same seed, the same operations.",
)
@output.json_option
def command(names: tuple[str, ...], ops: int, seed: int, json_path: Path | None) -> None:
    """Soak pools and requests in random operations, good and bad, and check every promise after each.

    No block is given out twice or shares a byte with another, counts add up, what is locked stays, bytes
    written are read back after whatever happens to others, what is refused changes nothing, and check()
    finds nothing. A run ends at the first broken promise. Exit status: 0 none broken, 1 some.
    """
    from kvlab.soak.subject import soak
    from kvlab.soak.subjects import SUBJECTS

    for name in names:
        if name not in (*SUBJECTS, ALL):
            hint = did_you_mean(name, (*SUBJECTS, ALL)) or f"; pools: {', '.join((*SUBJECTS, ALL))}"
            raise BadInput(f"--pool {name}: no such pool{hint}")
    chosen = list(SUBJECTS) if ALL in names else list(dict.fromkeys(names))
    with output.progress("Operations", ops * len(chosen)) as done:
        outcomes = [soak(name, SUBJECTS[name](seed), ops, done) for name in chosen]
    show(outcomes)
    checked = sum(outcome.checked for outcome in outcomes)
    broken = sum(len(outcome.violations) for outcome in outcomes)
    click.echo(f"Invariants checked: {checked:,}. Violations: {broken}.")
    if json_path is not None:
        figures = {outcome.name: outcome.figures() for outcome in outcomes}
        output.write_json(
            json_path,
            {"seed": seed, "ops": ops, "invariants_checked": checked, "violations": broken, "pools": figures},
        )
    failed = next((outcome for outcome in outcomes if outcome.violations), None)
    if failed is not None:
        raise FellShort(
            f"{failed.name}, operation {failed.failed_at:,}: {failed.violations[0]}; again with"
            f" --pool {failed.name} --ops {failed.failed_at} --seed {seed}"
        )


def show(outcomes: Sequence[Outcome]) -> None:
    rows = [
        (
            outcome.name,
            f"{sum(outcome.operations.values()):,}",
            f"{outcome.checked:,}",
            f"{len(outcome.violations):,}",
        )
        for outcome in outcomes
    ]
    output.table("Soaked", rows, ("", "operations", "invariants checked", "violations"))
