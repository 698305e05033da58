"""`kvlab quality`: what element types and eviction cost a model in quality, on text it was not trained on."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commandline import files
from commandline.errors import BadInput, FellShort, did_you_mean
from kvlab import options, output, paths
from kvlab.element_types import EXACT, NAMES
from kvlab.quality.defaults import BUDGETS, CODECS, TOKENS, WARNING

if TYPE_CHECKING:  # slow to import: each function takes what it needs
    from kvlab.judging import Pair
    from kvlab.quality.harness import Harness

ALL, NONE = "all", "none"
PICTURES = ("quality-frontier.png", "quality-budget.png", "quality-keys.png")
KEYS_PASSAGES = 8  # enough to see how far the keys of each channel reach


@click.command(
    epilog="""Examples:

\b
  kvlab quality --json out/quality.json
  kvlab quality --model stories-mha --policies none --tokens 20000
  kvlab quality --model stories15M.bin --text mine.txt \\
      --codecs int8,int4 --policies none
  kvlab quality --codecs none --policies window,lru-attention \\
      --budgets 256,128,64
  kvlab quality --model stories --policies none --gate 0.002 \\
      --image gated.mkvm
"""
)
@options.model_option("all that ship in turn, and stories260K where `kvlab doctor` finds it")
@options.tokenizer_option
@click.option(
    "--text",
    metavar="FILE",
    help='Text; of a .jsonl the "heldout" lines [default: for a shipped model what another one told, else the'
    " held-out stories where found].",
)
@click.option(
    "--tokens",
    type=click.IntRange(1, 10_000_000),
    default=TOKENS,
    show_default=True,
    metavar="TOKENS",
    help="At least so many are predicted, in whole passages, as far as the text goes.",
)
@click.option(
    "--codecs",
    "codec_names",
    default=ALL,
    show_default=True,
    metavar="NAME,...",
    help=f"Of {', '.join(CODECS)}; or none.",
)
@click.option(
    "--policies",
    "policy_names",
    default=ALL,
    show_default=True,
    metavar="NAME,...",
    help="Of window, sinks, sinks-near, lru-attention, lru-peak, window-lru, lfu, lfu-decay, heavy-hitters,"
    " compress; or none.",
)
@click.option(
    "--budgets",
    metavar="TOKENS,...",
    help=f"Tokens that a policy may keep [default: those of {','.join(map(str, BUDGETS))} that a passage"
    " exceeds].",
)
@click.option(
    "--policy-codec",
    default=EXACT,
    show_default=True,
    metavar="NAME",
    help="How keys and values are stored under the policies.",
)
@click.option(
    "--context",
    type=click.IntRange(1, 1 << 20),
    default=512,
    show_default=True,
    metavar="TOKENS",
    help="Tokens over which bytes are counted.",
)
@click.option(
    "--gate",
    "gate_kld",
    type=options.FiniteRange(0, 100, min_open=True),
    metavar="KLD",
    help="Choose an element type for each layer, of those a cache on a device can have, with at most that"
    " divergence in nats.",
)
@click.option(
    "--image",
    "target",
    type=options.OutFile(),
    metavar="FILE",
    help="Write what --gate chooses into a board image of the model: the app on a board obeys it.",
)
@click.option("--fresh", is_flag=True, help="Measure anew what was measured before.")
@click.option(
    "--out",
    "out_dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder for the pictures [default: out/].",
)
@click.option("--no-plot", is_flag=True, help="Draw none.")
@output.json_option
def command(
    model: str | None,
    tokenizer: str | None,
    text: str | None,
    tokens: int,
    codec_names: str,
    policy_names: str,
    budgets: str | None,
    policy_codec: str,
    context: int,
    gate_kld: float | None,
    target: Path | None,
    fresh: bool,
    out_dir: Path | None,
    no_plot: bool,
    json_path: Path | None,
) -> None:
    """Loss of each element type and eviction policy against the same model in float32 that forgets nothing.

    Passages are 512 tokens long, or the model's context: beginnings of stories, short ones joined by the
    next. The intervals hold 95 % of what drawing such passages anew gives. Codes, scales and minima are those
    a device stores, bit for bit; all else is float32. Results are kept in the user's cache. Several models
    are the "models" of one JSON file.

    \b
    int8          groups of up to 32 values with a scale
    int8-int4     keys int8, values int4 with a scale
    int4          blocks of 16 tokens; the open and the newest full one are int8
                  (int4-float16: float16)
    sparse        keys int8, of the values the largest three quarters in int8
    int4-naive    one scale per token for keys too: a warning, no device has it

    The budget of a policy is the tokens that a query sees. compress keeps a part once, after half a passage.
    """
    if "numpy" not in sys.modules:
        # Passages run side by side; threads inside of a small product would only wait for each other.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from kvlab import judging
    from kvlab.quality import kinds, policies, trials

    if no_plot and out_dir is not None:
        raise BadInput("--no-plot: is at odds with --out; name one of them")
    codecs = _names("--codecs", codec_names, CODECS)
    chosen = _names("--policies", policy_names, [*policies.POLICIES, trials.COMPRESS])
    under = _names("--policy-codec", policy_codec, list(kinds.CODECS))
    if len(under) != 1:
        raise BadInput(f"--policy-codec {policy_codec}: name one")
    _check_effects(codecs, chosen, gate_kld is not None)
    if "sealed" in kinds.CODECS[under[0]][0]:
        chosen = _without_choice(chosen, policy_names == ALL, under[0])
    if target is not None and gate_kld is None:
        raise BadInput(f"--image {target}: holds what the gate chooses; pass a budget as --gate")
    pairs = judging.pairs(model, text)
    for option, given in (("--image", target), ("--tokenizer", tokenizer)):
        if given is not None and len(pairs) > 1:
            raise BadInput(f"{option} {given}: is for one model; name it as --model")
    words = options.existing_file(tokenizer, "--tokenizer") if tokenizer is not None else None
    folder = None if no_plot else out_dir or paths.OUT
    pictures = [_pictures(folder, pair, len(pairs)) if folder else None for pair in pairs]
    asked = judging.Asked(codecs, chosen, budgets, under[0], tokens, context, gate_kld, target, fresh)
    found = []
    for pair, drawn in zip(pairs, pictures):
        figures, harness = judging.judge(pair, asked, words)
        show(figures, codecs)
        found.append(figures)
        if drawn is not None:
            _draw(figures, codecs, harness, drawn, out_dir is not None)
    if json_path is not None:
        _write(json_path, found, pairs, {"codecs": codecs, "policies": chosen})
    for figures in found:
        _refuse_gate(figures, gate_kld)


def _check_effects(codecs: Sequence[str], chosen: Sequence[str], gate: bool) -> None:
    """BadInput where nothing is to be measured, or an option has no effect on what is."""
    from kvlab.quality import policies

    if not codecs and not chosen and not gate:
        raise BadInput("--codecs none and --policies none: nothing to measure; name one")
    if not chosen:
        options.no_effect("needs --policies", "policy_codec")
    if not any(name in policies.POLICIES for name in chosen):
        options.no_effect("needs --policies with one that keeps a budget, such as window", "budgets")
        if not codecs:
            options.no_effect("nothing is drawn; name --codecs, or --policies that keep a budget", "out_dir")
    if not codecs and not gate:
        options.no_effect("counts the bytes of element types: name --codecs or --gate", "context")


def _without_choice(chosen: Sequence[str], all_of_them: bool, codec: str) -> list[str]:
    """Those of the policies that drop no single token, as a sealed `codec` needs it. BadInput for others,
    unless nobody named them."""
    from kvlab.quality import policies

    if all_of_them:
        return [name for name in chosen if name in policies.POLICIES and not _chooses(name)]
    for name in chosen:
        if _chooses(name):
            raise BadInput(
                f"--policies {name}: chooses among tokens, those of a sealed block stay together; with"
                f" --policy-codec {codec} take window, sinks or sinks-near"
            )
    return list(chosen)


def _write(path: Path, found: list[dict[str, Any]], pairs: Sequence[Pair], names: dict[str, Any]) -> None:
    """The figures of one model, or of several as "models"; in the settings a list has an entry of each."""
    resolved: dict[str, list[Any]] = {
        "model": [str(pair.model) for pair in pairs],
        "text": [str(pair.text) for pair in pairs],
        "tokens": [figures["tokens"] for figures in found],
        "budgets": [figures["budgets"] for figures in found],
    }
    if len(found) == 1:
        output.write_json(path, found[0], **names, **{key: each for key, (each,) in resolved.items()})
    else:
        output.write_json(path, {"models": found}, **names, **resolved)


def _refuse_gate(figures: dict[str, Any], gate_kld: float | None) -> None:
    if gate_kld is not None and figures["gate"]["layers"] is None:
        known = figures["gate"]["codecs"].values()
        why = "no codec can store what the model computes; pass another --model"
        if known:
            why = f"the mildest codec already costs {min(each['kld'] for each in known):.3g} nats; allow more"
        raise FellShort(f"--gate {gate_kld:g}: {why}")


def _chooses(name: str) -> bool:
    from kvlab.quality import policies, trials

    return name not in policies.POLICIES or trials.chooses_tokens(policies.POLICIES[name])


def _names(option: str, text: str, known: Sequence[str]) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if names == [NONE]:
        return []
    for name in names:
        if name not in (*known, ALL):
            hint = did_you_mean(name, known) or f"; known: {', '.join(known)}"
            raise BadInput(f"{option} {text}: no {name!r}{hint}")
    return [name for name in known if name in names or ALL in names]


def show(f: dict[str, Any], codecs: Sequence[str]) -> None:
    """The figures as tables."""
    rows = [
        ("model", f["model"]),
        ("text", f["text"]),
        ("passages", f"{f['passages']:,} of {f['passage_tokens']:,} tokens, {f['tokens']:,} predicted"),
    ]
    if "float32_nats" in f:
        rows.append(("float32", f"{f['float32_nats']:.4f} nats/token"))
    output.table("Quality", rows)
    head = ("perplexity\n(%)", "95 % interval", "divergence\n(nats)", "top 1\n(%)")  # 80 columns hold it
    if codecs:
        output.table("Element types", [(name, *_columns(f[name])) for name in codecs], ("", *head))
        output.table(
            f"Bytes a token of {f['context_tokens']:,} tokens",
            [
                (
                    *(name, f"{f[name]['bytes_per_token']:,.1f}"),
                    *(f"{f[name]['allocated_bytes_per_token']:,.1f}", f"{f[name]['of_float16']:.3f}"),
                )
                for name in codecs
            ],
            ("", "stored", "allocated", "stored / float16"),
        )
    if f.get("policies"):
        output.table(
            f"Policies, keys and values in {f['policy_codec']}; compress keeps that part of half a passage",
            [
                (name, budget, *_columns(each))
                for name, by_budget in f["policies"].items()
                for budget, each in by_budget.items()
            ],
            ("", "kept", *head),
        )
        show_against_window(f["policies"])
    if "gate" in f:
        show_gate(f["gate"], f["context_tokens"])


def show_against_window(policies: dict[str, Any]) -> None:
    """What each policy loses more than the window of its budget, where both were measured."""
    rows = [
        (name, budget, *_change(each["against_window"]))
        for name, by_budget in policies.items()
        for budget, each in by_budget.items()
        if "against_window" in each
    ]
    if rows:
        head = ("perplexity\n(%, with 95 % interval)", "divergence\n(nats, with 95 % interval)")
        output.table("Against the window of the same budget", rows, ("", "kept", *head))


def _change(each: dict[str, Any]) -> tuple[str, ...]:
    said = []
    for name, digits in (("perplexity_change", ".2f"), ("kld_change", ".3f")):
        percent = "_pct" if name == "perplexity_change" else ""
        interval = _between(each[f"{name}_interval{percent}"], digits)
        said.append(f"{each[name + percent]:+{digits}} ({interval})")
    return tuple(said)


def _between(interval: list[float] | None, digits: str) -> str:
    return "-" if interval is None else f"{interval[0]:+{digits}} .. {interval[1]:+{digits}}"


def _columns(each: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{each['perplexity_change_pct']:+.3f}",
        _between(each["perplexity_change_interval_pct"], ".3f"),
        f"{each['kld']:.6f}",
        f"{each['top1_pct']:.2f}",
    )


def show_gate(g: dict[str, Any], context: int) -> None:
    output.table(
        f"Gate: at most {g['budget_kld']:g} nats",
        [
            (name, f"{each['kld']:.6f}", f"{each['bytes_per_token']:,.1f}", _verdict(each))
            for name, each in g["codecs"].items()
        ],
        ("in all layers", "divergence (nats)", "bytes a token", ""),
    )
    if g["layers"] is None:
        return
    output.table(
        "Chosen",
        [
            (str(layer), codec, _refused(each for each in g["refused"] if each["layer"] == layer))
            for layer, codec in enumerate(g["layers"])
        ],
        ("layer", "element type", "refused, with the divergence it would have come to"),
    )
    click.echo(
        f"{g['bytes_per_token']:,.1f} bytes a token of {context:,}, {g['kld']:.6f} nats,"
        f" {g['perplexity_change_pct']:+.3f} % perplexity"
    )
    if "image" in g:
        click.echo(f"Wrote {paths.shown(Path(g['image']))}, with an element type for each layer.")


def _verdict(each: dict[str, Any]) -> str:
    if not each["held"]:
        return "refused: no device has it"
    return "within" if each["within"] else "refused: over the budget"


def _refused(moves: Iterable[dict[str, Any]]) -> str:
    """What a layer was refused, with the divergence there."""
    said = []
    for move in moves:
        loss = "cannot store it" if move["kld"] is None else f"{move['kld']:.6f}"
        said.append(f"{move['codec']} ({loss})")
    return ", ".join(said)


def _pictures(folder: Path, pair: Pair, models: int) -> list[Path]:
    """Where the pictures of a model go; of several models each has its name in them."""
    files.prepare_folder(folder, "--out")
    of = f"-{pair.model.stem}" if models > 1 else ""
    names = [name.replace(".png", f"{of}.png") for name in PICTURES]
    return [files.prepare(folder / name, "--out") for name in names]


def _draw(
    figures: dict[str, Any], codecs: Sequence[str], harness: Harness, pictures: Sequence[Path], asked: bool
) -> None:
    """Pictures nobody asked for are no reason to fail where matplotlib is missing."""
    try:
        importlib.import_module("matplotlib.pyplot")
    except Exception as error:  # a broken installation of a big library fails in many ways
        why = (
            f"matplotlib cannot be imported ({type(error).__name__}: {error}): install it with"
            " `.venv/bin/pip install --force-reinstall matplotlib`"
        )
        if asked:
            raise BadInput(f"--out: {why}, or leave --out away") from error
        click.echo(f"No pictures: {why}", err=True)
        return
    from kvlab.plots import quality_budget, quality_frontier, quality_keys
    from kvlab.quality import policies, ranges

    frontier, budget, keys = pictures
    of = f"{figures['model']}, {figures['tokens']:,} tokens: {figures['text']}"
    drawn = []
    with output.waiting("Drawing ..."):
        if codecs:
            shown = {name: figures[name] for name in codecs}
            unbuilt = [name for name in codecs if name not in (*NAMES, WARNING)]
            title = f"Loss against bytes\n{of}"
            quality_frontier.draw(shown, [WARNING], unbuilt, title, frontier, "--out")
            found = ranges.key_ranges(harness.model, harness.passages[:KEYS_PASSAGES])
            quality_keys.draw(found, f"Why int4 keys need channels\n{figures['model']}", keys, "--out")
            drawn += [frontier, keys]
        evicted = {
            name: by for name, by in figures.get("policies", {}).items() if name in policies.POLICIES and by
        }
        if evicted:
            title = f"Loss against budget, keys and values in {figures['policy_codec']}\n{of}"
            quality_budget.draw(evicted, policies.TITLES, title, budget, "--out")
            drawn.append(budget)
    for path in drawn:
        click.echo(f"Picture: {paths.shown(path)}")
