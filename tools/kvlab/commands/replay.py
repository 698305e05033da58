"""`kvlab replay`: miss ratio against capacity of every eviction policy, over the blocks of a trace."""

from __future__ import annotations

import importlib
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click

from commandline import files
from commandline.errors import BadInput, did_you_mean
from kvlab import options, output, paths


@click.command(
    epilog="""Examples:

\b
  kvlab replay mooncake_conversation_trace.jsonl --policies all \\
      --capacities 1e3,1e4 --json out/replay.json
  kvlab replay weka_cc_compact.jsonl.gz --policies lru,sieve,optimal \\
      --plot out/weka.png
  kvlab replay accesses.csv --capacities 100
"""
)
@click.argument("trace", metavar="TRACE")
@click.option(
    "--policies",
    "wanted",
    default="all",
    show_default=True,
    metavar="NAME,...",
    help="Of fifo, lru, lfu, hybrid, sieve, s3fifo, optimal.",
)
@click.option(
    "--capacities",
    "sizes",
    metavar="SIZE,...",
    help="In blocks, or in the unit of sizes where objects differ in it [default: 1, 2, 5, 10, 20, 50, 100 %"
    " of what the trace holds].",
)
@click.option(
    "--window",
    type=click.IntRange(0, 1 << 24),
    metavar="ENTRIES",
    help="Of hybrid: the newest entries, which are not evicted [default: an eighth of them].",
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    metavar="REQUESTS",
    help="How many, from the first on; of a list of keys so many lines [default: all].",
)
@click.option("--count", is_flag=True, help="Sizes are not looked at: each object counts as one.")
@click.option(
    "--plot", type=options.OutFile(), metavar="FILE", help="Picture to draw [default: out/replay.png]."
)
@click.option("--no-plot", is_flag=True, help="Draw none.")
@output.json_option
def command(
    trace: str,
    wanted: str,
    sizes: str | None,
    window: int | None,
    requests: int | None,
    count: bool,
    plot: Path | None,
    no_plot: bool,
    json_path: Path | None,
) -> None:
    """Replay the accesses of a trace through caches of several capacities, under several policies.

    TRACE: Mooncake or WEKA JSON lines, a RAGPulse folder, or a list of keys: one a line, or a CSV of key and
    size, or with a header that names these columns. Each block of each prompt is an access, in the order of
    arrival. The policies are those of the device, compiled; optimal evicts what is used again last.

    Sizes (RAGPulse's components, a CSV's second column) fill the capacity: an object larger than it is never
    admitted and evicts nothing. One that comes back with another size is another one, a miss.
    """
    from kvlab.replay import runs, source

    names = _names(wanted, runs.NAMES)
    if "hybrid" not in names:
        options.no_effect("is of hybrid, which --policies does not name; leave one of them out", "window")
    capacities = None if sizes is None else _capacities(sizes)
    if no_plot and plot is not None:
        raise BadInput("--no-plot: is at odds with --plot; name one of them")
    with output.waiting("Reading ..."):
        accesses = source.read(trace, requests, count)
    picture = None if no_plot else files.prepare(plot or paths.OUT / "replay.png", "--plot")
    if capacities is None:
        capacities = runs.default_capacities(accesses)
    runs.check(accesses, names, capacities, window)
    with output.progress("Replaying", len(names) * len(capacities) * runs.parts(accesses)) as done:
        found = runs.replay(accesses, names, capacities, window, done)
    figures = {
        "trace": accesses.name,
        "kind": accesses.kind,
        "unit": accesses.unit,
        "accesses": len(accesses),
        "distinct": accesses.distinct,
        "capacities": capacities,
        "policies": found,
    }
    show(figures)
    if len(found) < len(names):
        click.echo("optimal is known only for objects of one size, as with --count.")
    if json_path is not None:
        output.write_json(json_path, figures, policies=list(found), capacities=capacities)
    if picture is not None:
        _draw(figures, picture, plot is not None)


def show(figures: dict[str, Any]) -> None:
    """The figures as tables."""
    found = figures["policies"]
    output.table(
        f"{figures['trace']}: misses in %; {figures['accesses']:,} accesses, {figures['distinct']:,} objects",
        [
            (name, *(f"{100 * each['miss_ratio']:.2f}" for each in by_capacity.values()))
            for name, by_capacity in found.items()
        ],
        (f"capacity ({figures['unit']})", *(f"{capacity:,}" for capacity in figures["capacities"])),
    )
    for capacity in figures["capacities"]:
        refused = {name: by[str(capacity)].get("refused", 0) for name, by in found.items()}
        least = min(refused.values(), default=0)
        if least:
            click.echo(f"{capacity:,}: {least:,} accesses were to objects larger than that, never admitted.")
        if refused.get("hybrid", 0) > least:
            click.echo(
                f"{capacity:,}: {refused['hybrid'] - least:,} times the window of hybrid left too little to"
                " evict; take a smaller --window."
            )


def _names(text: str, known: tuple[str, ...]) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in (*known, "all"):
            hint = did_you_mean(name, known) or f"; policies: {', '.join(known)}"
            raise BadInput(f"--policies {text}: no policy {name!r}{hint}")
    return list(known) if "all" in names else list(dict.fromkeys(names))


def _capacities(text: str) -> list[int]:
    """Whole numbers such as 1000 or 1e3, in rising order."""
    found = set()
    for word in text.split(","):
        try:
            number = Decimal(word.strip())
        except InvalidOperation:
            raise BadInput(f"--capacities {text}: {word!r} is no number; write such as 1e3,1e4") from None
        if not (number.is_finite() and 1 <= number <= 1 << 40) or number != number.to_integral_value():
            raise BadInput(f"--capacities {text}: {word.strip()} is no whole number from 1 to 2^40")
        found.add(int(number))
    return sorted(found)


def _draw(figures: dict[str, Any], path: Path, asked: bool) -> None:
    """A picture nobody asked for is no reason to fail where matplotlib is missing."""
    try:
        importlib.import_module("matplotlib.pyplot")
    except Exception as error:  # a broken installation of a big library fails in many ways
        why = (
            f"matplotlib cannot be imported ({type(error).__name__}: {error}): install it with"
            " `.venv/bin/pip install --force-reinstall matplotlib`"
        )
        if asked:
            raise BadInput(f"--plot {path}: {why}, or leave --plot away") from error
        click.echo(f"No picture: {why}", err=True)
        return
    from kvlab.plots import replay

    title = f"{figures['trace']}: {figures['accesses']:,} accesses to {figures['distinct']:,} objects"
    with output.waiting("Drawing ..."):
        replay.draw(figures["policies"], figures["unit"], title, path, "--plot")
    click.echo(f"Picture: {paths.shown(path)}")
