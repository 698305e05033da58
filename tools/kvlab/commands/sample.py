"""`kvlab sample`: stories told by a model, as a text for `kvlab quality` and `kvlab train`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from commandline import files
from kvlab import options, output, paths, shipped


@click.command(
    epilog="""Examples:

\b
  kvlab sample --out told.jsonl
  kvlab sample --model stories-mha --stories 100 --least 300 --seed 7 \\
      --out told.jsonl
"""
)
@options.model_option(shipped.NAMES[0], default=shipped.NAMES[0])
@options.tokenizer_option
@click.option(
    "--stories",
    type=click.IntRange(1, 100_000),
    default=48,
    show_default=True,
    metavar="STORIES",
    help="How many are kept.",
)
@click.option(
    "--least",
    type=click.IntRange(min=2),
    metavar="TOKENS",
    help="Only stories of at least so many tokens [default: what fills the model's context].",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=shipped.SEED,
    show_default=True,
    metavar="SEED",
    help="What chance starts from.",
)
@click.option("--out", "target", required=True, type=options.OutFile(), metavar="FILE", help="The .jsonl.")
@output.json_option
def command(
    model: str,
    tokenizer: str | None,
    stories: int,
    least: int | None,
    seed: int,
    target: Path,
    json_path: Path | None,
) -> None:
    """Write stories that a model tells at temperature 1, from its beginning of a text, one a line.

    Most stories end before the context does. The longer ones are kept, so that a passage of `kvlab quality`
    is one story. In float64: the same model and seed give the same text on every machine.
    """
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import numpy as np

    from commandline.errors import BadInput
    from kvlab.models.reference import Reference
    from kvlab.quality import text as texts
    from kvlab.train import teacher

    source = shipped.find(model, "--model", ".bin")
    words = options.existing_file(tokenizer, "--tokenizer") if tokenizer is not None else None
    files.prepare(target, "--out")
    subject = texts.load_model(source, words)
    context = subject.context
    if least is not None and least > context:
        raise BadInput(f"--least {least}: {subject.name} was trained for {context} tokens; pass at most that")
    wide = Reference(subject.reference.config, subject.reference.w, np.float64)
    with output.progress("Telling", stories) as done:
        told = teacher.long_stories(wide, subject.tokenizer, stories, least or context, seed, done)
    lines = [json.dumps({"text": each, "split": "heldout"}, ensure_ascii=False) + "\n" for each in told]
    files.write(target, "".join(lines).encode(), "--out")
    figures = {
        "model": subject.name,
        "seed": seed,
        "stories": len(told),
        "least_tokens": least or context,
        "tokens": sum(len(subject.tokenizer.encode(each)) for each in told),
        "bytes": sum(len(each.encode()) for each in told),
    }
    click.echo(
        f"Wrote {paths.shown(target)}: {figures['stories']:,} stories, {figures['tokens']:,} tokens,"
        f" {figures['bytes']:,} bytes."
    )
    if json_path is not None:
        output.write_json(json_path, figures)
