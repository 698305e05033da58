"""`kvlab convert`: a llama2.c checkpoint and its tokenizer -> one board image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commandline import files
from kvlab import options, output, paths, shipped


@click.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "--tokenizer",
    metavar="FILE",
    help="Its tokenizer [default: tokVOCAB.bin, tokenizer.bin or tok*.bin beside MODEL].",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=options.OutFile(),
    metavar="FILE",
    help="The image to write [default: MODEL's name with .mkvm, in the current folder].",
)
@click.option(
    "--seq-len",
    type=int,
    metavar="TOKENS",
    help="Its context [default: what MODEL was trained for, which is also the largest].",
)
@output.json_option
def command(
    model: str,
    tokenizer: str | None,
    target: Path | None,
    seq_len: int | None,
    json_path: Path | None,
) -> None:
    """Turn the llama2.c checkpoint MODEL into a board image.

    Weights become int8 in groups of 32, norms int16, and the tokenizer goes in with them; the
    shifts of keys, values and queries come from the float model telling itself a few stories.

    \b
    Example:
      kvlab convert stories260K.bin -o stories260K.mkvm
    """
    from kvlab.models import calibrate
    from kvlab.models.image import Image, convert
    from kvlab.models.load import load_checkpoint
    from kvlab.models.report import report

    source = shipped.find(model, "MODEL", ".bin")
    named = options.existing_file(tokenizer, "--tokenizer") if tokenizer is not None else None
    target = target or Path(source.name).with_suffix(".mkvm")
    checkpoint, words = load_checkpoint(source, named, option="MODEL")
    files.prepare(target, "--output")
    with output.progress("Converting", calibrate.STEPS) as done:
        data = convert(checkpoint, words, seq_len, done=done)
    files.write(target, data, "--output")
    figures = report(checkpoint, Image.parse(data, target.name))
    figures = {"model": model, "tokenizer": str(words.path), "image": str(target), **figures}
    _show(figures)
    if json_path:
        output.write_json(
            json_path, figures, tokenizer=str(words.path), seq_len=figures["seq_len_tokens"]
        )


def _show(f: dict[str, Any]) -> None:
    heads = f"{f['heads']} heads on {f['kv_heads']} KV heads of {f['head_dim']}"
    context = f"{f['seq_len_tokens']:,} tokens"
    if f["seq_len_tokens"] != f["trained_seq_len_tokens"]:
        context += f" (trained for {f['trained_seq_len_tokens']:,})"
    classifier = "shared with the embedding" if f["shared_classifier"] else "separate"
    output.table(
        f"{Path(f['model']).name} ({f['header']} header)",
        [
            ("shape", f"{f['layers']} layers, dim {f['dim']}, hidden {f['hidden']}, {heads}"),
            ("vocabulary", f"{f['vocab']:,} tokens, classifier {classifier}"),
            ("context", context),
            ("parameters", f"{f['parameters']:,}"),
            ("model id", f["model_id"]),
        ],
    )
    sections = [(k, output.size(n)) for k, n in f["sections_bytes"].items()]
    output.table("Image", [*sections, ("total", output.size(f["image_bytes"]))])
    output.table(
        "Quantisation error (root mean square, largest)",
        [
            (
                *(kind, f"{e['rms']:.4f}", f"{e['error_rms']:.6f}"),
                *(f"{e['error_pct']:.3f} %", f"{e['error_max']:.6f}"),
            )
            for kind, e in f["quantisation"].items()
        ],
        header=("tensor", "weights", "error", "of the weights", "largest error"),
    )
    output.table(
        "Shifts",
        [(str(i), *map(str, s)) for i, s in enumerate(zip(*f["shifts"].values(), strict=True))],
        header=("layer", *f["shifts"]),
    )
    click.echo(f"Wrote {paths.shown(Path(f['image']))}, {output.size(f['image_bytes'])}")
