"""`kvlab plan`: does a model's cache fit a board or a level of hardware, and what if not?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from commandline.errors import BadInput, FellShort
from kvlab import boards, options, output, profiles, story
from kvlab.cost.model import Pace, pace, rows_of
from kvlab.element_types import NAMES
from kvlab.plan import planner, targets
from kvlab.plan.planner import MOST_TOKENS as MOST
from kvlab.plan.program import weighs
from kvlab.plan.shape import Model
from kvlab.plan.sizes import WEIGHTS, WEIGHTS_GROUP, Layers, weight_bits
from mpy_kv.eviction import tokens as tokens_kept
from mpy_kv.geometry import SINKS


@click.command(
    epilog="""Examples:

\b
  kvlab plan --model stories --board rp2040
  kvlab plan --model stories260k --board rp2040 --codec int8 --tokens 256
  kvlab plan --model stories --board rp2040 --policy lru-peak --budget 64
  kvlab plan --model stories260K.bin --board esp32 --tokens 1000 \\
      --window 128
  kvlab plan --model qwen2.5-7b --profile server --batch 32 \\
      --tokens 4096 --codec float16
"""
)
@options.model_option(also=", or a config.json; or another name of `kvlab models`", required=True)
@click.option("--board", metavar="NAME", help=f"{', '.join(boards.names())}.")
@click.option("--profile", metavar="NAME", help=f"Instead of a board: {', '.join(profiles.names())}.")
@click.option(
    "--tokens",
    type=click.IntRange(1, MOST),
    metavar="TOKENS",
    help="Tokens of a request [default: as many as --window and --sinks show; on a board the app's window].",
)
@click.option(
    "--codec", type=click.Choice(NAMES), help="How a value is stored [default: the profile's, int8]."
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Recent tokens kept; on a board with --sinks at most what the model was trained for [default: all of"
    " --tokens].",
)
@click.option(
    "--sinks",
    type=click.IntRange(min=0),
    metavar="TOKENS",
    help=f"First tokens kept on top of the window [default: {SINKS}, or on a board as many as the model's"
    " context has room for beside --window; none under a policy that weighs tokens].",
)
@options.policy_options
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="REQUESTS",
    help="So many at once.",
)
@click.option(
    "--group",
    type=click.IntRange(min=1),
    metavar="VALUES",
    help="So many share a scale [default: up to 32].",
)
@click.option(
    "--weights",
    type=click.Choice(list(WEIGHTS)),
    help=f"How weights are stored: int4 takes {weight_bits('int4'):g} bits a weight and int8"
    f" {weight_bits('int8'):g}, with a scale for {WEIGHTS_GROUP} of them [default: float16; int8 on"
    " microcontrollers, as in a board image].",
)
@output.json_option
def command(
    model: str,
    board: str | None,
    profile: str | None,
    tokens: int | None,
    codec: str | None,
    window: int | None,
    sinks: int | None,
    policy: str | None,
    budget: int | None,
    batch: int,
    group: int | None,
    weights: str | None,
    json_path: Path | None,
) -> None:
    """Plan the KV cache of a model on a board or a level of hardware.

    Sizes come from the cache's own geometry, to the byte. The speed is what the memories could
    feed, an upper bound: interpreters and small processors stay far below it. For a Raspberry Pi Pico
    tokens/s are also modelled, from counted instructions.
    Exit status: 0 it fits, 1 it does not, 2 bad input.
    """
    from kvlab.plan import models

    if (board is None) == (profile is None):
        raise BadInput("name either --board or --profile")
    if board is not None:
        target = targets.of_board(boards.load(board))
        if weights not in (None, "int8"):
            raise BadInput(f"--weights {weights}: a board reads a board image, which has int8")
    else:
        target = _profile(profile or "")
    shape = models.find(model)
    usual = 0 if weighs(policy) else SINKS
    if budget is not None:
        window = _window(budget, window, usual if sinks is None else sinks, policy)
    elif tokens is None and window is None:
        window = _usual_window(shape, target, usual if sinks is None else sinks)
    fewer = None  # why there are
    told = budget is None and sinks is None  # a budget is refused where it is too large
    if told and window is not None and target.board is not None and shape.seq_len is not None:
        chosen = story.sinks_beside(window, shape.seq_len, usual)  # as kvlab stories has it
        if chosen < usual:
            sinks, fewer = chosen, story.fewer_sinks(window, chosen, shape.seq_len)
    if sinks is None and window is not None and window + usual > MOST >= window:
        raise BadInput(
            f"--window {window}: with {usual} sinks more than {MOST} tokens: at most {MOST - usual}, or add"
            " --sinks 0"
        )
    if tokens is None:
        tokens = (window or 0) + (usual if sinks is None else sinks)
    question = planner.Question(
        *(tokens, codec or target.codec, window, sinks, batch, group),
        weights or ("int8" if target.weights_apart else "float16"),
        policy,
        lowered=fewer is not None,
        budget=budget is not None,
    )
    found = planner.plan(shape, target, question)
    if target.board is not None and (firmware := boards.firmware_of(target.board)) is not None:
        found.stand_in(firmware.name, planner.largest_window(shape, targets.of_board(firmware), question))
    if fewer is not None:
        found.warnings.append(fewer)
    if not found.fits:
        found.advice += _others(found)
    modelled = _pace(found)
    show(found, modelled)
    if json_path is not None:
        output.write_json(
            json_path, {**found.figures(), **modelled}, codec=question.codec, weights=question.weights
        )
    if not found.fits:
        raise FellShort(found.verdict)


def _window(budget: int, window: int | None, sinks: int, policy: str | None) -> int:
    """Places for recent tokens, or for those that the policy keeps, beside the sinks."""
    if policy is None:
        raise BadInput(f"--budget {budget}: needs --policy: one of {', '.join(tokens_kept.POLICIES)}")
    if window is not None:
        raise BadInput(f"--budget {budget}: holds window and sinks together: leave --window out")
    if budget > MOST:
        raise BadInput(f"--budget {budget}: must be at most {MOST}")
    if budget <= sinks:
        raise BadInput(f"--budget {budget}: leaves no token beside {sinks} sinks: at least {sinks + 1}")
    return budget - sinks


def _usual_window(model: Model, target: targets.Target, sinks: int) -> int:
    """The window that the board's program takes by itself. BadInput on a profile, which has none."""
    if target.board is None:
        raise BadInput("--tokens: needed with --profile, or --window")
    usual = story.usual_window(target.board)
    return max(1, min(usual, (model.seq_len or usual) - sinks))


def _others(found: planner.Plan) -> list[str]:
    """The other boards, or profiles, that have room for it."""
    kind, names = found.target.kind, boards.real_names() if found.target.board else profiles.names()
    read = (lambda name: targets.of_board(boards.load(name))) if found.target.board else _profile
    others = [name for name in names if planner.fits(found.model, read(name), found.question)]
    return [f"--{kind} {' or '.join(others)}: there it fits as it is"] if others else []


def _profile(name: str) -> targets.Target:
    return targets.of_profile(profiles.load(name))


def _pace(found: planner.Plan) -> dict[str, Any]:
    """What a story on the board would take, modelled: figures of a Pace; {} with a profile."""
    q, board = found.question, found.target.board
    if board is None:
        return {}
    if not found.fits:
        return Pace(note="no figure: it does not fit").figures()
    if q.batch > 1 or q.policy is not None or q.window is None:
        return Pace(note="no figure: counted for one story with a window, without --policy").figures()
    made = pace(board, found.model, q.codec, tokens=max(1, q.tokens), window=q.window, sinks=q.kept_sinks)
    return made.figures()


def show(found: planner.Plan, modelled: Mapping[str, Any]) -> None:
    """The plan as tables. modelled: figures of a Pace."""
    q, t, m, one = found.question, found.target, found.model, found.need
    asked = f"{q.tokens:,} tokens, {q.codec}"
    if q.window is not None:
        asked += f", window {q.window:,} tokens and {planner.sinks_said(q.kept_sinks)}"
    if q.batch > 1:
        asked += f", {q.batch:,} requests"
    rows = [
        ("model", f"{m.title}: {m.layers} layers, {_heads(m)}"),
        (t.kind, f"{t.title} ({t.name})"),
        ("asked", asked),
        ("answer", _answer(found)),
        ("KV, visible", output.size(q.batch * one.kv_bytes)),
    ]
    if len(one.layers) > 1 or len(m.cached) < m.layers:
        rows.append(("layers", _kinds(m, one.layers)))
    rows += [
        *_room(found),
        (
            "read for a token",
            f"{output.size(found.weights_read_bytes)} of weights, {output.size(found.kv_read_bytes)} of KV",
        ),
        (
            "bound by bandwidth",
            f"at most {_rate(found.tokens_per_s)} tokens/s"
            + (f", {_rate(found.tokens_per_s / q.batch)} tokens/s a request" if q.batch > 1 else ""),
        ),
        *(rows_of(modelled) if modelled else []),
    ]
    output.table("", rows)
    output.table(
        "Where it lies",
        [(part.name, output.size(part.bytes), part.memory) for part in found.parts]
        + [("room for all but weights" if t.weights_apart else "room", output.size(t.room), t.main.name)],
    )
    output.table(
        "By element type",
        [
            (
                codec,
                f"{output.size(size['kv_bytes'])} of KV",
                f"{output.size(size['buffer_bytes'])} of buffer",
            )
            for codec, size in found.by_codec.items()
        ]
        + [(codec, f"not with --policy {q.policy}") for codec in NAMES if codec not in found.by_codec],
    )
    for text in found.warnings:
        click.echo(f"- warning: {text}")
    for text in found.advice:
        click.echo(f"- try: {text}")


def _answer(found: planner.Plan) -> str:
    if found.fits:
        return "fits"
    any_room = found.largest_context or found.largest_window or (found.firmware and found.firmware[1])
    least = "one token" + " of each request" * (found.question.batch > 1)
    return "does not fit" if any_room else f"does not fit, not even {least}"


def _room(found: planner.Plan) -> list[tuple[str, str]]:
    """How much there is room for, without what there is no room for at all."""
    rows = []
    if found.largest_context:
        rows.append(("largest context", f"{found.largest_context:,} tokens{_trained(found)}"))
    if found.most_requests:
        rows.append(("most requests at once", f"{found.most_requests:,} of that size"))
    firmware = found.firmware[1] if found.firmware else 0
    if found.largest_window or firmware:
        text = f"{found.largest_window:,} tokens" if found.largest_window else "none"
        if found.firmware is not None:
            beside = f"{firmware:,} tokens" if firmware else "none"
            text += f"; {beside} with 32-bit objects ({found.firmware[0]})"
        rows.append(("largest window", text))
    return rows


def _rate(tokens_per_s: float) -> str:
    """With one decimal, or as many as tell something."""
    return f"{tokens_per_s:,.1f}" if tokens_per_s >= 0.1 else f"{tokens_per_s:.1g}"


def _heads(m: Model) -> str:
    if m.latent:
        return f"{m.heads} heads on a latent of {m.latent} values"
    kinds = sorted({(layer.kv_heads, layer.head_dim, layer.v_dim) for layer in m.cached})
    return f"{m.heads} heads on " + ", or ".join(
        f"{kv_heads} KV heads of {head_dim} values" + (f" ({v_dim} in V)" if v_dim != head_dim else "")
        for kv_heads, head_dim, v_dim in kinds
    )


def _kinds(m: Model, parts: tuple[Layers, ...]) -> str:
    """The layers of every kind, those without a cache last."""
    shapes = {(part.kv_heads, part.head_dim, part.v_head_dim) for part in parts}
    said = []
    for part in parts:
        text = f"{part.count} see " + ("all tokens" if part.window is None else f"{part.window:,} tokens")
        if len(shapes) > 1:
            text += f" with {part.kv_heads} KV heads of {part.head_dim}"
        said.append(text)
    if len(m.cached) < m.layers:
        said.append(f"{m.layers - len(m.cached)} keep none of their own")
    return "; ".join(said)


def _trained(found: planner.Plan) -> str:
    if found.target.board is not None:
        return ""
    trained = found.model.seq_len
    return f" by memory; trained for {trained:,} tokens" if trained else " by memory"
