"""`kvlab train`: text -> a small model of our own, as checkpoint, tokenizer and board image."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from commandline import files
from commandline.errors import BadInput
from kvlab import options, output
from kvlab.train import shape
from kvlab.train.card import card
from kvlab.train.shape import DEFAULTS

if TYPE_CHECKING:  # slow to import: each function takes what it needs
    from kvlab.models.llama2c import Checkpoint
    from kvlab.models.tokenizer import Tokenizer
    from kvlab.train import job

STEPS = 2000
SAMPLE_TOKENS = 200


# Options of the shape, and what the shape calls them.
SIZES = {
    "--layers": "layers",
    "--dim": "dim",
    "--hidden": "hidden",
    "--heads": "heads",
    "--kv-heads": "kv_heads",
    "--context": "seq_len",
}


def _size(option: str, unit: str, text: str) -> Callable[[Any], Any]:
    """An option for one number of the shape, so many of `unit`."""
    kind = click.IntRange(min=1, max=8192)
    field = SIZES[option]
    default = DEFAULTS[field]
    how: dict[str, Any] = {"default": default, "show_default": True, "metavar": unit, "help": text}
    return click.option(option, field, type=kind, **how)


@click.command(
    epilog="""Examples:

\b
  kvlab train --text stories.jsonl --out out/mine --steps 2000 --seed 1
  kvlab train --text tales.txt --teacher stories260K.bin \\
      --out out/mine --minutes 30
""",
)
@click.option(
    "--text",
    "texts",
    multiple=True,
    required=True,
    metavar="FILE",
    help='Text to learn from; of a .jsonl the "train" lines. May be repeated.',
)
@click.option("--out", required=True, metavar="DIR", help="Folder for everything that is made.")
@click.option("--name", default="stories", show_default=True, metavar="NAME", help="Of the model's files.")
@click.option("--teacher", metavar="FILE", help="llama2.c checkpoint whose own text is added.")
@click.option(
    "--teacher-tokens",
    type=click.IntRange(min=1),
    default=1 << 22,
    show_default=True,
    metavar="TOKENS",
    help="How many of the teacher's tokens.",
)
@click.option(
    "--text-share",
    type=options.FiniteRange(0, 1, min_open=True, max_open=True),
    default=0.3,
    show_default=True,
    metavar="SHARE",
    help="Part of the training on --text when there is a teacher.",
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    metavar="STEPS",
    help=f"Length of the run [default: {STEPS}].",
)
@click.option(
    "--minutes",
    type=options.FiniteRange(min=0, min_open=True),
    metavar="MINUTES",
    help="Length of the run by the clock, about; the report says the --steps that repeat it.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="SEED",
    help="What chance starts from: first weights, batches, the teacher's text.",
)
@click.option(
    "--vocab",
    type=click.IntRange(min=261, max=32768),
    default=512,
    show_default=True,
    metavar="TOKENS",
    help="Tokens of the vocabulary.",
)
@_size("--layers", "LAYERS", "How many one after the other.")
@_size("--dim", "CHANNELS", "Width of the stream from layer to layer.")
@_size("--hidden", "CHANNELS", "Width of the feed-forward part.")
@_size("--heads", "HEADS", "Query heads, each of --dim / --heads channels.")
@_size("--kv-heads", "HEADS", "Heads of keys and values; as many as --heads is plain multi-head.")
@_size("--context", "TOKENS", "Tokens the model learns to see.")
@click.option(
    "--batch-tokens",
    type=click.IntRange(min=1),
    default=4096,
    show_default=True,
    metavar="TOKENS",
    help="Of a step.",
)
@click.option("--resume", is_flag=True, help="Go on with the run in --out.")
@output.json_option
def command(
    texts: tuple[str, ...],
    out: str,
    name: str,
    teacher: str | None,
    teacher_tokens: int,
    text_share: float,
    steps: int | None,
    minutes: float | None,
    seed: int,
    vocab: int,
    layers: int,
    dim: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    seq_len: int,
    batch_tokens: int,
    resume: bool,
    json_path: Path | None,
) -> None:
    """Train a small Llama on FILE, of stories260K's shape or another, with a tokenizer of its own.

    Leaves in DIR a llama2.c checkpoint, its tokenizer, the board image and a model card. The same
    text, seed, steps and versions give the same model on the same machine. A run that was cut
    goes on from its last 50 steps with --resume.
    """
    if steps is not None and minutes is not None:
        raise BadInput("--minutes: pass --steps or --minutes, not both")
    if not teacher:
        options.no_effect("needs --teacher", "teacher_tokens", "text_share")
    if not re.fullmatch(r"[\w.-]+", name) or name.startswith("."):
        raise BadInput(f"--name {name}: use letters, digits, dots, dashes and underscores")
    shape.check(dim, heads, kv_heads)
    from kvlab.models.corpus import check_context
    from kvlab.models.llama2c import Config
    from kvlab.models.load import load_checkpoint
    from kvlab.train import job

    if find_spec("jax") is None:
        raise BadInput(job.NEED_JAX)
    wanted = job.Job(
        texts=tuple(options.existing_file(text, "--text") for text in texts),
        out=files.prepare_folder(Path(out), "--out"),
        name=name,
        seed=seed,
        config=Config(dim, hidden, layers, heads, kv_heads, vocab, seq_len, shared=True),
        batch_tokens=batch_tokens,
        text_share=text_share,
        teacher=options.existing_file(teacher, "--teacher") if teacher else None,
        teacher_tokens=teacher_tokens,
    )
    if wanted.teacher:  # before the work: it may be unfit, or lie where the outputs go
        check_context(load_checkpoint(wanted.teacher, option="--teacher")[0].config, "--teacher")
    for made in wanted.outputs:
        files.prepare(made, "--out")
    with output.progress("Teacher", teacher_tokens if teacher else 0) as told:
        ready = job.prepare(wanted, told)
    if steps is None and minutes is None:
        steps = STEPS
    with _training(steps) as watch:
        run = job.train(wanted, ready, steps, minutes, resume, watch)
    figures = finish(wanted, ready, run)
    _show(figures)
    if json_path:
        output.write_json(json_path, figures, steps=figures["steps"])


@contextmanager
def _training(steps: int | None) -> Iterator[Any]:
    """A bar where there is a terminal, a line now and then where there is none."""
    with output.progress("Training", steps or 0) as done:
        from kvlab.train.job import LAST_STEPS

        def watch(step: int, total: int, nats: float, held: float | None) -> None:
            done(1)
            if held is not None:
                of = "" if total == LAST_STEPS else f" of {total:,}"
                click.echo(f"step {step:,}{of}: loss {nats:.3f}, held out {held:.3f} nats/token", err=True)

        yield watch


def finish(wanted: job.Job, ready: job.Prepared, run: dict[str, Any]) -> dict[str, Any]:
    """Convert, measure and describe the model; everything there is to report."""
    from kvlab.models import calibrate
    from kvlab.models.image import convert
    from kvlab.models.load import load_checkpoint
    from kvlab.train import checkpoint, heldout

    made, words = load_checkpoint(wanted.checkpoint, wanted.tokenizer, option="--out")
    with output.progress("Converting", calibrate.STEPS) as done:
        image = convert(made, words, done=done)
    checkpoint.replace(wanted.image, image)
    loss, against = None, None
    if ready.heldout:
        with output.progress("Held-out text", len(ready.heldout)) as done:
            loss = heldout.measure(made, words, ready.heldout, done)
        if wanted.teacher:
            with output.progress("Held-out text", 2 * len(ready.heldout)) as done:
                teacher = load_checkpoint(wanted.teacher, option="--teacher")
                against = compare(made, words, *teacher, ready.heldout, done)
    figures: dict[str, Any] = {
        "name": wanted.name,
        "command": repeat(wanted, run["steps"]),
        "seed": wanted.seed,
        "batch_tokens": wanted.batch_tokens,
        "text_share": wanted.text_share if wanted.teacher else 1.0,
        "teacher": wanted.teacher.name if wanted.teacher else None,
        **run,
        **ready.figures,
        "parameters": made.parameters,
        "checkpoint_bytes": wanted.checkpoint.stat().st_size,
        "image_bytes": len(image),
        "heldout_passages": len(ready.heldout),
        "heldout": loss,
        "against_teacher": against,
        "sample": sample(made, words),
    }
    checkpoint.replace(wanted.card, output.encoded(card(figures)))
    return figures


def compare(
    made: Checkpoint,
    words: Tokenizer,
    teacher: Checkpoint,
    teacher_words: Tokenizer,
    texts: list[str],
    done: Any,
) -> dict[str, Any]:
    """Both models over the beginnings of `texts` that the teacher's context holds."""
    from kvlab.train import heldout

    beginnings = [heldout.cut(teacher_words, t, teacher.config.seq_len) for t in texts]
    ours = heldout.measure(made, words, beginnings, done)
    theirs = heldout.measure(teacher, teacher_words, beginnings, done)
    return {
        "bytes": theirs["bytes"],
        "tokens": ours["tokens"],
        "nats": ours["nats"],
        "teacher_tokens": theirs["tokens"],
        "teacher_nats": theirs["nats"],
        "ratio": ours["nats"] / theirs["nats"],
    }


def repeat(wanted: job.Job, steps: int) -> str:
    """The command line that makes this model again, files by their names alone."""
    words = ["kvlab", "train"]
    for text in wanted.texts:
        words += ["--text", text.name]
    if wanted.teacher:
        words += ["--teacher", wanted.teacher.name, "--teacher-tokens", str(wanted.teacher_tokens)]
        words += ["--text-share", str(wanted.text_share)]
    words += ["--out", "DIR", "--steps", str(steps), "--seed", str(wanted.seed)]
    words += ["--vocab", str(wanted.vocab), "--batch-tokens", str(wanted.batch_tokens)]
    for option, field in SIZES.items():
        if (size := getattr(wanted.config, field)) != DEFAULTS[field]:
            words += [option, str(size)]
    return shlex.join(words)


def sample(made: Checkpoint, words: Tokenizer) -> str:
    """The story told greedily from BOS, to its end or SAMPLE_TOKENS tokens."""
    import numpy as np

    from kvlab.models.llama2c import BOS
    from kvlab.models.reference import Reference, Session

    session = Session(Reference(made.config, made.weights, np.float32), SAMPLE_TOKENS)
    ids = []
    for token in session.generate():
        if token == BOS:
            break
        ids.append(token)
    return words.decode(ids)


def _show(f: dict[str, Any]) -> None:
    rows = [
        (
            "trained",
            f"{f['steps']:,} steps of {f['batch_tokens']:,} tokens, {f['minutes']:.1f} min",
        ),
        ("parameters", f"{f['parameters']:,}"),
        ("image", output.size(f["image_bytes"])),
    ]
    if f["heldout"]:
        h = f["heldout"]
        rows.append(
            (
                "held out",
                f"{h['nats_per_token']:.4f} nats/token, {h['nats_per_byte']:.4f} nats/byte",
            )
        )
    if f["against_teacher"]:
        rows.append(("against the teacher", f"{f['against_teacher']['ratio']:.3f} x its nats"))
    output.table(f["name"], rows)
    click.echo(f["sample"])
    click.echo(f"Again: {f['command']}")
