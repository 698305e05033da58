"""`kvlab bench`: measurements, each repeatable by the line that names it."""

from __future__ import annotations

from pathlib import Path

import click

from kvlab import options, output
from kvlab.bench import kernels
from kvlab.errors import BadInput

GROUPS = (32, 8)


@click.group()
def command() -> None:
    """Measure kernels and quality. Speeds are ratios within one run: absolute times tell little."""


@command.command(
    name="kernels",
    epilog="""Example:

\b
  kvlab bench kernels --target unix --json out/kernels.json
""",
)
@click.option(
    "--target",
    type=click.Choice(kernels.TARGETS),
    default="unix",
    show_default=True,
    help="Where the kernels run.",
)
@click.option(
    "--head-dim",
    type=click.IntRange(8, 256),
    default=8,
    show_default=True,
    help="Length of a row; a multiple of 8.",
)
@click.option(
    "--tokens",
    type=click.IntRange(8, 4096),
    default=1024,
    show_default=True,
    help="Rows attended.",
)
@output.json_option
def kernels_command(target: str, head_dim: int, tokens: int, json_path: Path | None) -> None:
    """Time of one multiply-accumulate in attention: viper against bytecode, in one run.

    QK is the dot of a query with every stored key, AV the weighted sum of the stored values, both
    over int8 codes as they lie. The ratio is to the faster of the plain twin and an unrolled loop.
    """
    if head_dim % 8:
        raise BadInput(f"--head-dim {head_dim}: the unrolled loop takes multiples of 8")
    with output.waiting("Timing the kernels ..."):
        figures = kernels.measure(target, head_dim, tokens)
    rows = [
        (
            name.upper(),
            *(f"{figures[name][key]:,.2f} ns" for key in ("plain_ns", "unrolled_ns", "viper_ns")),
            f"{figures[name]['ratio']:.1f} x",
        )
        for name in ("qk", "av")
    ]
    title = f"Per multiply-accumulate, rows of {head_dim}, {tokens} tokens, target {target}"
    output.table(
        title, rows, ("", "plain twin", "unrolled bytecode", "viper", "viper is faster by")
    )
    if json_path is not None:
        output.write_json(json_path, figures)


@command.command(
    name="loss",
    epilog="""Example:

\b
  kvlab bench loss --model stories260K.bin --text stories.jsonl --json out/loss.json
""",
)
@click.option("--model", required=True, metavar="FILE", help="llama2.c checkpoint.")
@click.option("--tokenizer", metavar="FILE", help="Its tokenizer [default: the one beside it].")
@click.option(
    "--text", required=True, metavar="FILE", help='Text; of a .jsonl the "heldout" lines.'
)
@click.option(
    "--passages", type=click.IntRange(min=1), metavar="N", help="Only the first N passages."
)
@output.json_option
def loss_command(
    model: str, tokenizer: str | None, text: str, passages: int | None, json_path: Path | None
) -> None:
    """Loss of the fixed-point device against the same model in float32, on FILE.

    The device's figures come from its own integers, run on the unix port. Also: what storing keys
    and values as int8 costs alone, in groups of 32 and of 8.
    """
    import numpy as np

    from kvlab.bench import loss
    from kvlab.models import calibrate
    from kvlab.models.corpus import check_context, read_passages
    from kvlab.models.image import convert
    from kvlab.models.load import load_checkpoint
    from kvlab.models.reference import Reference

    path = options.existing_file(model, "--model")
    where = options.existing_file(text, "--text")
    named = options.existing_file(tokenizer, "--tokenizer") if tokenizer is not None else None
    checkpoint, words = load_checkpoint(path, named, option="--model")
    c = checkpoint.config
    check_context(c, f"--model {path.name}")
    groups = [
        g
        for g in GROUPS
        if (c.kv_heads * c.head_dim) % g == 0 and (c.head_dim % g == 0 or g % c.head_dim == 0)
    ]
    found = read_passages(where, words, max_tokens=c.seq_len, limit=passages)
    with output.progress("Converting", calibrate.STEPS) as done:
        image = convert(checkpoint, words, done=done)
    reference = Reference(c, checkpoint.weights, np.float32)
    with output.progress("Passages", len(found)) as done:
        figures = loss.measure(reference, image, found, groups, done)
    rows = [
        ("text", f"{figures['passages']:,} passages, {figures['tokens']:,} predicted tokens"),
        ("float32", f"{figures['float32_nats']:.4f} nats/token"),
        (
            "device, all fixed point",
            f"{figures['device_nats']:.4f} nats/token ({figures['device_change_pct']:+.2f} %)",
        ),
        ("device's likeliest token is float32's", f"{figures['top1_pct']:.1f} %"),
    ]
    rows += [
        (
            f"int8 keys and values alone, groups of {g}",
            f"{figures[f'int8_g{g}_ppl_pct']:+.3f} % perplexity",
        )
        for g in groups
    ]
    output.table(
        "Loss on held-out text" if where.suffix == ".jsonl" else f"Loss on {where.name}", rows
    )
    if json_path is not None:
        output.write_json(json_path, {"model": str(path), "text": str(where), **figures})
