"""`kvlab bus`: what a token moves over a board's memory bus, who waits for it, and what pays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from commandline import files
from commandline.errors import BadInput
from kvlab import options, output, paths, shipped
from kvlab.boards import Board
from kvlab.bus import access, pays, simulated
from kvlab.bus.contention import Outcome
from kvlab.bus.pays import Way
from kvlab.plan.shape import Model

_TOLD = 256  # tokens in view of a model that is told
_LOOKED_UP = 2048  # of one known by its shape alone
_PROMPT = 8


@click.command(
    epilog="""Examples:

\b
  kvlab bus --board rp2040 --model stories --json out/bus.json
  kvlab bus --board rp2350 --model qwen2.5-1.5b --tokens 4096
  kvlab bus --stagger on --plot out/bus.png --trace out/bus-trace.json
"""
)
@options.board_option
@options.model_option(
    shipped.NAMES[0], also=", or a config.json; or another name of `kvlab models`, by its shape alone"
)
@click.option(
    "--tokens",
    type=click.IntRange(1, 1 << 16),
    metavar="TOKENS",
    help="In view of the token whose bytes are counted, itself included [default:"
    f" {_TOLD}; of a model known by its shape alone {_LOOKED_UP:,}; or what it was trained for].",
)
@click.option(
    "--prompt",
    type=click.IntRange(1, 1 << 16),
    default=_PROMPT,
    show_default=True,
    metavar="TOKENS",
    help="Of a prompt that is read.",
)
@click.option(
    "--stagger",
    type=click.Choice(("on", "off")),
    help="Simulate the model with its slots of the bus, or without them [default: both, of which the first is"
    " what the bound is told of].",
)
@click.option(
    "--plot", type=options.OutFile(), metavar="FILE", help="Draw a token on the bus, layer by layer."
)
@click.option(
    "--trace",
    type=options.OutFile(),
    metavar="FILE",
    help="Write the same in JSON for chrome://tracing and ui.perfetto.dev.",
)
@output.json_option
def command(
    board: Board,
    model: str | None,
    tokens: int | None,
    prompt: int,
    stagger: str | None,
    plot: Path | None,
    trace: Path | None,
    json_path: Path | None,
) -> None:
    """What a token and a prompt of a model move over the memory bus of a board, how long others wait for it,
    and what pays.

    Of a model that is here, its kernels count as they run on the unix port: each byte that one reads or
    writes, once a call. Of one known by its shape alone a formula tells the same; tests hold both to the
    same bytes.
    """
    from kvlab.plan import models

    for picture, option in ((plot, "--plot"), (trace, "--trace")):
        if picture is not None:
            files.prepare(picture, option)
    name = model or shipped.NAMES[0]
    shape = models.find(name)
    path = _file(name)
    tokens = tokens or _usual(shape, _TOLD if path else _LOOKED_UP)
    window, sinks = _window(shape, tokens)
    if prompt > window + sinks:
        raise BadInput(f"--prompt {prompt}: at most the {window + sinks:,} tokens of the cache")
    token, whole = _counted(path, tokens, prompt, window, sinks) if path else _told(shape, tokens, prompt)
    table = access.rows(token, whole, prompt, board.memories)
    shares = access.shares(token)
    ways = pays.pays(board, shape)
    work = simulated.work(shape, token, ways[pays.PLAIN].tokens_per_s, board)
    slots = {None: (True, False), "on": (True,), "off": (False,)}[stagger]
    runs, waits = simulated.runs(board, work, slots), simulated.waits(board, work, slots)
    bound, worst = next(iter(waits.values()))
    figures = {
        "board": board.name,
        "model": shape.id,
        "counted": path is not None,
        "tokens": tokens,
        "prompt_tokens": prompt,
        "shares": shares,
        "document_shares": access.DOCUMENT_SHARES,
        "access": [row.figures() for row in table],
        "differences": access.differences(table, shares),
        "bound_us": bound,
        "worst_us": worst,
        "simulated": {
            name: {**run.figures(), "bound_us": waits[name][0], "worst_us": waits[name][1]}
            for name, run in runs.items()
        },
        "overhead_saved_pct": simulated.overhead_saved_pct(shape),
        "tokens_per_s": {name: way.tokens_per_s for name, way in ways.items()},
        "tokens_per_s_notes": {name: way.note for name, way in ways.items()},
    }
    _show_access(figures, table, board, shape)
    _show_waits(figures, board)
    _show_ways(ways, board)
    _draw(runs, f"{shape.id} on the bus of {board.title}", plot, trace)
    if json_path is not None:
        output.write_json(json_path, figures, model=name, tokens=tokens)


def _file(name: str) -> Path | None:
    """The model's file, if it can be run."""
    if name.lower() in shipped.NAMES:
        return shipped.find(name, "--model")
    path = Path(name)
    return path if os.path.exists(path) and path.suffix != ".json" else None


def _usual(shape: Model, tokens: int) -> int:
    """So many, or what the model was trained for, or a layer sees, where that is less."""
    most = [tokens, shape.seq_len, *shape.windows]
    return min(n for n in most if n is not None)


def _window(shape: Model, tokens: int) -> tuple[int, int]:
    """Of a cache in which a token sees so many: the app's window and sinks, or larger ones. BadInput."""
    from kvlab.story import USUAL_SINKS, USUAL_WINDOW, sinks_beside

    most = shape.seq_len or 1 << 30
    if tokens > most:
        raise BadInput(f"--tokens {tokens}: {shape.id} was trained for {most:,}")
    window = max(min(USUAL_WINDOW, most), tokens - USUAL_SINKS)
    sinks = sinks_beside(window, most)
    return min(window, most - sinks), sinks


def _counted(path: Path, tokens: int, prompt: int, window: int, sinks: int) -> Any:
    """Bytes of a token and of a prompt as the kernels count them."""
    from kvlab.bench import access as counting
    from kvlab.models.load import load_image

    if tokens < 2:
        raise BadInput("--tokens 1: a token that is told sees another one; 2 at least")
    image = load_image(path).data
    with output.progress("Tokens", counting.steps([tokens - 1], prompt)) as done:
        found = counting.count(image, [tokens - 1], prompt, window=window, sinks=sinks, done=done)
    return found.tokens[tokens - 1], found.prompt


def _told(shape: Model, tokens: int, prompt: int) -> Any:
    """The same by the formula, of a cache that keeps everything."""
    from kvlab.bus import formula

    if not shape.plain or shape.vocab is None:
        raise BadInput(f"--model {shape.id}: bytes are known of layers that are all alike, as a Llama's are")
    least = min((window for window in shape.windows if window is not None), default=tokens)
    if tokens > least:
        raise BadInput(
            f"--tokens {tokens}: layers of {shape.id} see {least:,} at most; of more no bytes are known"
        )
    return formula.token(shape, tokens), formula.prompt(shape, prompt, tokens)


def _show_access(figures: Mapping[str, Any], table: Sequence[access.Row], board: Board, shape: Model) -> None:
    how = "counted as it ran" if figures["counted"] else "by its shape"
    title = (
        f"{shape.id}, {how}: bytes of a token with {figures['tokens']:,} in view, and of a prompt of"
        f" {figures['prompt_tokens']:,}"
    )
    rows = [
        (
            access.STEPS[row.step],
            *(f"{n:,}" for n in (row.bytes.kv_read, row.bytes.kv_write, row.bytes.weights)),
            *(f"{n:,}" for n in (row.bytes.io_read, row.bytes.io_write)),
        )
        for row in table
    ]
    header = ("", "KV read", "KV write", "weights", "vectors in", "vectors out")
    output.table(title, rows, header)
    over = [
        (
            access.STEPS[row.step],
            f"{row.bus_us:,.1f} us",
            f"{row.bytes_per_s / 1e6:,.4g} MB/s",
            "-" if row.latency_ns is None else f"{row.latency_ns:,} ns",
            *(_beside(row, word) for word in access.WORDS),
        )
        for row in table
    ]
    output.table(
        f"Over the memories of {board.title}; in brackets the document's word",
        over,
        ("", "at least", "at most", "latency", *access.WORDS),
    )
    parts = [
        (access.TITLES[kind], f"{100 * part:.1f} %", f"{100 * access.DOCUMENT_SHARES[kind]:.0f} %")
        for kind, part in figures["shares"].items()
    ]
    output.table("Shares of a token's bytes", parts, ("", "here", "document"))
    output.notes(figures["differences"])


def _beside(row: access.Row, word: str) -> str:
    """A word, and in brackets the document's where that is another one."""
    here = row.words.get(word, "-")
    said = (row.document or {}).get(word)
    return here if said in (None, here) or word not in row.words else f"{here} ({said})"


def _show_waits(figures: Mapping[str, Any], board: Board) -> None:
    rows = [
        (
            name,
            f"{run['token_us']:,.0f} us",
            f"{run['worst_us']:,.0f} us",
            f"{run['bound_us']:,.0f} us",
            f"{run['contention_us']:,.0f} us",
        )
        for name, run in figures["simulated"].items()
    ]
    header = ("", "a token", "others wait, found", "at most, proven", "the model waits")
    output.table(f"In simulation, the bus of {board.title}, with four other tasks", rows, header)
    saved = f"{figures['overhead_saved_pct']:.1f} % of what starts of transfers take is saved"
    output.notes([f"{saved} where {simulated.PREFILL} tokens are written as one chain a layer"])


def _show_ways(ways: Mapping[str, Way], board: Board) -> None:
    rows = [
        (name, "-" if way.tokens_per_s is None else f"{way.tokens_per_s:.1f}", way.note)
        for name, way in ways.items()
    ]
    output.table(f"Tokens/s on {board.title}, modelled", rows, ("", "tokens/s", ""))


def _draw(runs: Mapping[str, Outcome], title: str, plot: Path | None, trace: Path | None) -> None:
    """What was asked for."""
    if plot is not None:
        from kvlab.plots import bus_timeline

        bus_timeline.draw(runs, title, plot, "--plot")
        click.echo(f"Picture: {paths.shown(plot)}")
    if trace is not None:
        from kvlab.bus import trace as traces

        traces.write(trace, runs, "--trace")
        click.echo(f"Trace: {paths.shown(trace)}")
