"""`kvlab bench accuracy`: the search for the inputs on which attention is worst."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from commandline import files
from commandline.errors import BadInput
from kvlab import element_types, options, output, paths
from kvlab.bench.accuracy import HEAD_DIMS, SEEDS, TITLES

_MOST_TOKENS = 1 << 16
_MOST_VALUES = 1 << 23  # of keys: what a process has room for


@click.command(
    name="accuracy",
    epilog="""Examples:

\b
  kvlab bench accuracy --json out/accuracy.json --plot out/accuracy.png
  kvlab bench accuracy --codec int8 --distribution heavy --seeds 20000
  kvlab bench accuracy --codec int8 --distribution heavy --seed 18
  kvlab bench accuracy --cases
""",
)
@click.option(
    "--codec",
    "codecs",
    multiple=True,
    type=click.Choice(element_types.NAMES),
    metavar="NAME",
    help=f"Element type; may be repeated. Of {', '.join(element_types.NAMES)} [default: all of them].",
)
@click.option(
    "--distribution",
    "distributions",
    multiple=True,
    type=click.Choice(tuple(TITLES)),
    metavar="NAME",
    help=f"Kind of inputs; may be repeated. Of {', '.join(TITLES)} [default: all of them].",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000_000),
    default=SEEDS,
    show_default=True,
    metavar="INPUTS",
    help="Inputs of each distribution, from seed 0 on; the full search has 20000.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="SEED", help="Only the inputs of that seed.")
@click.option(
    "--tokens",
    type=click.IntRange(1, _MOST_TOKENS),
    metavar="TOKENS",
    help="In view, in all inputs [default: drawn by the seed].",
)
@click.option(
    "--head-dim",
    type=click.IntRange(1, 256),
    metavar="VALUES",
    help="Length of a row in all inputs [default: drawn by the seed].",
)
@click.option(
    "--cases", is_flag=True, help="Instead, inputs whose right results are known, and what is computed."
)
@click.option(
    "--plot",
    type=options.OutFile(),
    metavar="FILE",
    help="Also draw the error against the share of a heavy token, and against tokens.",
)
@output.json_option
def accuracy_command(
    codecs: tuple[str, ...],
    distributions: tuple[str, ...],
    seeds: int,
    seed: int | None,
    tokens: int | None,
    head_dim: int | None,
    cases: bool,
    plot: Path | None,
    json_path: Path | None,
) -> None:
    """Search for the inputs on which attention is worst; of each kind the worst error and its seed.

    The native kernels of the unix port are compared with float64 over the same stored codes, scales and
    query codes. An error is the L2 norm of a result's deviation, in % of the RMS norm of the values; in
    "far" of the result's own norm where that is larger. In "constant" it is a channel's deviation in codes.
    "against" chooses values by the rounding of the very weights. Keys, values, their number and head_dim (1,
    5, 8, 12, 64 or 128) are drawn by the seed, for all element types alike; of float32 the first 4,096.
    """
    if cases:
        why = "has no effect with --cases; leave one of them out"
        options.no_effect(why, "distributions", "seeds", "seed", "tokens", "head_dim", "plot")
    if seed is not None:
        options.no_effect("has no effect with --seed; leave one of them out", "seeds")
    if plot is not None:
        files.prepare(plot, "--plot")
    chosen = tuple(dict.fromkeys(codecs or element_types.NAMES))
    figures = _of_cases(chosen) if cases else _searched(chosen, distributions, seeds, seed, tokens, head_dim)
    if plot is not None:
        figures["curves"] = _drawn(chosen, plot)
    if json_path is not None:
        output.write_json(json_path, figures, codec=chosen)


def _searched(
    codecs: tuple[str, ...],
    distributions: tuple[str, ...],
    seeds: int,
    seed: int | None,
    tokens: int | None,
    head_dim: int | None,
) -> dict[str, Any]:
    from kvlab.bench.accuracy import tables
    from kvlab.bench.accuracy.distributions import DISTRIBUTIONS
    from kvlab.bench.accuracy.search import Settings, search

    names = tuple(dict.fromkeys(distributions or TITLES))
    for name in names:
        least = DISTRIBUTIONS[name].fewest
        if tokens is not None and tokens < least:
            raise BadInput(f"--tokens {tokens}: {name} takes {least} at least")
    if (tokens or 1) * (head_dim or max(HEAD_DIMS)) > _MOST_VALUES:
        raise BadInput(f"--tokens {tokens}: at most {_MOST_VALUES:,} / head_dim")
    first, count = (0, seeds) if seed is None else (seed, 1)
    settings = Settings(codecs, names, count, first, head_dim, tokens)
    with output.progress("Inputs", settings.steps) as done:
        worst = search(settings, done)
    output.table("Worst error", *tables.errors(worst))
    output.table("Largest excess", *tables.excess(worst))
    output.notes((f"of {count:,} inputs each", *tables.NOTES))
    return {"seeds": count, "first_seed": first, "distributions": list(names), "worst": worst}


def _of_cases(codecs: tuple[str, ...]) -> dict[str, Any]:
    from kvlab.bench.accuracy import known, search, tables

    attended = [
        (each, codec)
        for each in known.CASES
        for codec in codecs
        if search.is_quick(codec, each.case().keys.size)
    ]
    with output.waiting("Computing ..."):
        found = known.computed(attended)
        kept = [(each, each.compute()) for each in known.KEPT if each.codec in codecs]
    rows, header = tables.cases(found, kept)
    output.table("Inputs whose results are known", rows, header)
    output.notes(known.NOTES)
    return {"cases": tables.case_figures(found, kept)}


def _drawn(codecs: tuple[str, ...], plot: Path) -> Mapping[str, Any]:
    from kvlab.bench.accuracy import curves

    try:
        from kvlab.plots import accuracy
    except Exception as error:  # a broken installation of a big library fails in many ways
        raise BadInput(
            f"--plot {plot}: matplotlib cannot be imported ({type(error).__name__}: {error}): install"
            " it with `.venv/bin/pip install --force-reinstall matplotlib`, or leave --plot away"
        ) from error
    with output.progress("Curves", curves.steps(codecs)) as done:
        figures = curves.measure(codecs, done)
    accuracy.draw(figures, plot, "--plot")
    click.echo(f"Picture: {paths.shown(plot)}")
    return figures
