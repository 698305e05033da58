"""`kvlab convert`: a llama2.c checkpoint and its tokenizer -> one board image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from kvlab import output, paths
from kvlab.errors import BadInput
from kvlab.models import calibrate
from kvlab.models.image import Image, convert
from kvlab.models.llama2c import Checkpoint, Weights
from kvlab.models.load import load_checkpoint

_KINDS = {
    "embed": "embedding",
    "wq": "query",
    "wk": "key",
    "wv": "value",
    "wo": "attention output",
    "w1": "gate",
    "w3": "up",
    "w2": "down",
    "att_norm": "attention norm",
    "ffn_norm": "feed-forward norm",
    "final_norm": "final norm",
    "classifier": "classifier",
}


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Its tokenizer [default: tokVOCAB.bin, tokenizer.bin or tok*.bin beside MODEL].",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The image to write [default: MODEL's name with .mkvm, in the current folder].",
)
@click.option(
    "--seq-len",
    type=int,
    metavar="N",
    help="Context in tokens [default: what MODEL was trained for, which is also the largest].",
)
@output.json_option
def command(
    model: Path,
    tokenizer: Path | None,
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
    checkpoint, words = load_checkpoint(model, tokenizer, option="MODEL")
    target = target or Path(model.name).with_suffix(".mkvm")
    _check_target(target, [model, *filter(None, [words.path])])
    with output.progress("Converting", calibrate.STEPS) as done:
        data = convert(checkpoint, words, seq_len, done=done)
    _write(target, data)
    figures = report(checkpoint, Image.parse(data, target.name))
    figures = {"model": str(model), "tokenizer": str(words.path), "image": str(target), **figures}
    _show(figures)
    if json_path:
        output.write_json(json_path, figures)


def report(checkpoint: Checkpoint, image: Image) -> dict[str, Any]:
    """What the conversion kept and what it cost, in plain numbers."""
    c = image.config
    return {
        "header": checkpoint.header,
        "dim": c.dim,
        "hidden": c.hidden,
        "layers": c.layers,
        "heads": c.heads,
        "kv_heads": c.kv_heads,
        "head_dim": c.head_dim,
        "vocab": c.vocab,
        "seq_len_tokens": c.seq_len,
        "trained_seq_len_tokens": checkpoint.config.seq_len,
        "shared_classifier": c.shared,
        "parameters": checkpoint.parameters,
        "model_id": f"{image.header.model_id:08x}",
        "image_bytes": len(image.data),
        "sections_bytes": image.sections(),
        "quantisation": errors(checkpoint.weights, image.weights(), c.shared),
        "shifts": {name: image.shifts[:, i].tolist() for i, name in enumerate(("k", "v", "q"))},
    }


def errors(before: Weights, after: Weights, shared: bool) -> dict[str, dict[str, float]]:
    """Per kind of tensor: root mean square of weights, of their error, and the largest error."""
    found = {}
    for field, kind in _KINDS.items():
        if field == "classifier" and shared:
            continue
        w = getattr(before, field).astype(np.float64)
        error = getattr(after, field) - w
        rms = float(np.sqrt(np.mean(w * w)))
        lost = float(np.sqrt(np.mean(error * error)))
        found[kind] = {
            "rms": rms,
            "error_rms": lost,
            "error_pct": 100 * lost / rms if rms else 0.0,
            "error_max": float(np.abs(error).max()),
        }
    return found


def _check_target(target: Path, inputs: list[Path]) -> None:
    """Refuse a target that cannot be written, or is one of the inputs, before the work."""
    if any(target.resolve() == p.resolve() for p in inputs):
        raise BadInput(f"--output {target}: would overwrite an input; name another file")
    output.prepare(target, "--output")


def _write(target: Path, data: bytes) -> None:
    try:
        output.replace_file(target, data)
    except OSError as e:
        raise BadInput(f"--output {target}: cannot be written: {e.strerror}") from None


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
