"""`kvlab predict`: reserve the maximum, nothing, or a predicted length: a trace against a pool."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import click

from commandline import files
from commandline.errors import BadInput
from kvlab import options, output, paths

_RATE = options.FiniteRange(0.001, 1e9)


@click.command(
    epilog="""Examples:

\b
  kvlab predict --trace AzureLLMInferenceTrace_conv.csv \\
      --json out/predict.json
  kvlab predict --trace AzureLLMInferenceTrace_code.csv \\
      --trace AzureLLMInferenceTrace_conv.csv --quantile 0.5
  kvlab predict --trace ragpulse --speedup 50 --plot out/ragpulse.png
"""
)
@click.option(
    "--trace",
    "named",
    multiple=True,
    required=True,
    metavar="FILE",
    help="Azure CSV, Mooncake or WEKA JSON lines, RAGPulse folder; several run together.",
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    metavar="REQUESTS",
    help="How many, from the first on [default: all].",
)
@click.option(
    "--blocks",
    type=click.IntRange(1, 1 << 28),
    metavar="BLOCKS",
    help="Of the pool [default: 1.25 times what would be in use on average if nobody waited, and enough"
    " for the largest request].",
)
@click.option(
    "--block-tokens",
    type=click.IntRange(1, 1 << 16),
    default=16,
    show_default=True,
    metavar="TOKENS",
    help="Tokens of a block.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1, 1 << 28),
    metavar="TOKENS",
    help="Longest answer; longer ones are cut [default: the longest in the first tenth of the requests,"
    " rounded up to a power of two].",
)
@click.option(
    "--quantile",
    type=options.FiniteRange(0.001, 1.0),
    default=0.9,
    show_default=True,
    metavar="SHARE",
    help="Share of answers that the predicted length shall suffice for.",
)
@click.option(
    "--tokens-per-s",
    type=_RATE,
    default=30.0,
    show_default=True,
    metavar="TOKENS",
    help="Decoded in a second, by each request.",
)
@click.option(
    "--prefill-tokens-per-s",
    type=_RATE,
    default=5000.0,
    show_default=True,
    metavar="TOKENS",
    help="Of a prompt, computed in a second before the first token; also what a preempted request computes"
    " anew.",
)
@click.option(
    "--speedup",
    type=_RATE,
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Requests arrive that many times as fast as in the trace.",
)
@click.option(
    "--plot",
    type=options.OutFile(),
    metavar="FILE",
    help="Picture to draw [default: out/predict.png].",
)
@click.option("--no-plot", is_flag=True, help="Draw none.")
@output.json_option
def command(
    named: tuple[str, ...],
    requests: int | None,
    blocks: int | None,
    block_tokens: int,
    max_tokens: int | None,
    quantile: float,
    tokens_per_s: float,
    prefill_tokens_per_s: float,
    speedup: float,
    plot: Path | None,
    no_plot: bool,
    json_path: Path | None,
) -> None:
    """Run the requests of a trace through a pool of blocks, under three rules of admission.

    \b
    maximum  a request reserves blocks for its prompt and --max-tokens
    nothing  for its prompt and one token; it grows block by block, and gives
             way when none is free
    predict  for its prompt and the --quantile of the lengths of its task's
             answers so far

    The queue and the predictor are those of the device. Answers are learnt from when they end, never
    before. Speeds are a request's own, whatever else runs; who gives way computes its tokens anew.
    """
    from kvlab import traces
    from kvlab.predict import simulate, workload

    if no_plot and plot is not None:
        raise BadInput("--no-plot: is at odds with --plot; name one of them")
    opened = [traces.open_trace(name) for name in named]
    picture = None if no_plot else files.prepare(plot or paths.OUT / "predict.png", "--plot")
    with output.waiting("Reading ..."):
        work = workload.Workload.of(traces.together(opened), max_tokens, requests, speedup)
    speed = workload.Speed(prefill_tokens_per_s, tokens_per_s)
    pool = simulate.Pool(blocks or work.default_blocks(block_tokens, speed), block_tokens, quantile)
    workload.check_blocks(pool.blocks, work, block_tokens)
    rules = {}
    with output.progress("Requests", len(simulate.RULES) * len(work.jobs)) as done:
        for rule in simulate.RULES:
            rules[rule] = simulate.simulate(work, pool, speed, rule, done).figures()
    counts = Counter(job.task for job in work.jobs)
    figures = {
        "traces": [trace.name for trace in opened],
        "requests": len(work.jobs),
        "tasks": {name: counts[number] for number, name in enumerate(work.tasks)},
        "speedup": speedup,
        "max_tokens": work.max_tokens,
        "cut_answers": work.cut,
        "blocks": pool.blocks,
        "block_tokens": block_tokens,
        "demand_blocks": work.demand(block_tokens, speed),
        "quantile": quantile,
        "tokens_per_s": tokens_per_s,
        "prefill_tokens_per_s": prefill_tokens_per_s,
        "rules": rules,
    }
    show(figures)
    if json_path is not None:
        output.write_json(json_path, figures, blocks=pool.blocks, max_tokens=work.max_tokens)
    if picture is not None:
        _draw(figures, picture, plot is not None)


def show(f: dict[str, Any]) -> None:
    """The figures as tables."""
    cut = f", {f['cut_answers']:,} cut there" if f["cut_answers"] else ""
    output.table(
        " and ".join(f["traces"]),
        [
            ("requests", f"{f['requests']:,} of {len(f['tasks'])} tasks"),
            ("longest answer", f"{f['max_tokens']:,} tokens{cut}"),
            (
                "pool",
                f"{f['blocks']:,} blocks of {f['block_tokens']} tokens;"
                f" {f['demand_blocks']:,.0f} in use on average if nobody waited",
            ),
        ],
    )
    rules = f["rules"].values()

    def row(name: str, key: str, form: str = ",") -> tuple[str, ...]:
        return name, *(format(each[key], form) for each in rules)

    def of_used(name: str, key: str) -> tuple[str, ...]:
        return name, *(f"{each[key]:,} ({100 * each[key] / max(1, each['used']):.1f} %)" for each in rules)

    output.table(
        f"Blocks and requests, predicted at the {f['quantile']:g} quantile",
        [
            row("refused", "refused"),
            of_used("blocks reserved", "reserved"),
            row("blocks used", "used"),
            of_used("reserved, never used", "over_reserved"),
            of_used("used, not reserved", "under_reserved"),
            row("requests that reserved enough (%)", "sufficed_pct", ".1f"),
            row("preempted", "preempted"),
            row("tokens computed anew", "recomputed_tokens"),
            row("waiting, mean (s)", "waiting_mean_s", ",.1f"),
            row("waiting, 95 % (s)", "waiting_p95_s", ",.1f"),
            row("response, mean (s)", "response_mean_s", ",.1f"),
            row("running at a time, mean", "running_mean", ",.1f"),
            row("running at a time, most", "running_most"),
            row("pool filled (%)", "filled_pct", ".1f"),
            row("reserved but empty (%)", "idle_pct", ".1f"),
            row("end of the last (s)", "end_s", ",.0f"),
        ],
        header=("", *f["rules"]),
    )
    if not any(each["waiting_mean_s"] for each in rules):
        click.echo("Nobody waited: take fewer --blocks or more --speedup to see the rules differ.")


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
    from kvlab.plots import predict

    names = " and ".join(figures["traces"])
    with output.waiting("Drawing ..."):
        predict.draw(
            figures["rules"],
            f"{names}: a pool of {figures['blocks']:,} blocks of {figures['block_tokens']} tokens",
            path,
            "--plot",
        )
    click.echo(f"Picture: {paths.shown(path)}")
