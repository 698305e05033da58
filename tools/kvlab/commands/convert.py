"""`kvlab convert`: a llama2.c checkpoint and its tokenizer -> one board image."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from commandline import files
from commandline.errors import BadInput
from kvlab import boards, flash_gap, options, output, paths, shipped, uf2
from kvlab.boards import Board


def _boards() -> list[str]:
    """Those that take UF2 files."""
    return [name for name in boards.names() if flash_gap.known(boards.load(name))]


def _with_boot_loader(name: str) -> Board:
    """BadInput for a board that takes no UF2 file."""
    board = boards.load(name)
    if not flash_gap.known(board):
        raise BadInput(
            f"--board {name}: {board.title} takes no UF2 file; boards that do: {', '.join(_boards())}"
        )
    return board


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
@click.option(
    "--uf2",
    "drop",
    type=options.OutFile(),
    metavar="FILE",
    help="Also write a UF2 file that puts the image into a Pico's flash, outside of its file system, where"
    " the app reads it in place: drop it on the board in boot-loader mode, after the firmware.",
)
@click.option(
    "--firmware",
    metavar="FILE",
    help="With --uf2: the firmware that the board runs, a UF2 file; the image comes right behind it [default:"
    " none known, it comes just below the file system].",
)
@click.option(
    "--board",
    metavar="NAME",
    default="rp2040",
    show_default=True,
    help="With --uf2: the board it is for, one with an RP2040 or an RP2350.",
)
@output.json_option
def command(
    model: str,
    tokenizer: str | None,
    target: Path | None,
    seq_len: int | None,
    drop: Path | None,
    firmware: str | None,
    board: str,
    json_path: Path | None,
) -> None:
    """Turn the llama2.c checkpoint MODEL into a board image.

    Weights become int8 in groups of 32, norms int16, and the tokenizer goes in with them; the
    shifts of keys, values and queries come from the float model telling itself a few stories.

    \b
    Examples:
      kvlab convert stories260K.bin -o stories260K.mkvm
      kvlab convert stories -o stories.mkvm --uf2 stories.uf2 \\
          --firmware RPI_PICO.uf2
    """
    from kvlab.models import calibrate
    from kvlab.models.image import Image, convert
    from kvlab.models.load import load_checkpoint
    from kvlab.models.report import report

    if drop is None:
        options.no_effect("needs --uf2", "firmware", "board")
    source = shipped.find(model, "MODEL", ".bin")
    named = options.existing_file(tokenizer, "--tokenizer") if tokenizer is not None else None
    target = target or Path(source.name).with_suffix(".mkvm")
    checkpoint, words = load_checkpoint(source, named, option="MODEL")
    files.prepare(target, "--output")
    gap = None
    if drop is not None:
        on = _with_boot_loader(board)
        files.prepare(drop, "--uf2")
        gap = flash_gap.of_board(on)
        if firmware is not None:
            gap = flash_gap.read(on, options.existing_file(firmware, "--firmware"))
    with output.progress("Converting", calibrate.STEPS) as done:
        data = convert(checkpoint, words, seq_len, done=done)
    place = None if gap is None else flash_gap.place(gap, len(data), high=firmware is None)
    files.write(target, data, "--output")
    figures = report(checkpoint, Image.parse(data, target.name))
    figures = {"model": model, "tokenizer": str(words.path), "image": str(target), **figures}
    _show(figures)
    if drop is not None and place is not None:
        files.write(drop, place.uf2(data), "--uf2")
        figures |= _of_drop(drop, board, firmware, place)
        _show_drop(firmware, place, drop)
    if json_path:
        output.write_json(json_path, figures, tokenizer=str(words.path), seq_len=figures["seq_len_tokens"])


def _of_drop(drop: Path, board: str, firmware: str | None, place: flash_gap.Place) -> dict[str, Any]:
    """For --json."""
    return {
        "uf2": str(drop),
        "board": board,
        "firmware": firmware,
        "address": place.address,
        "bytes": place.image_bytes,
        "free_bytes": place.free_bytes,
    }


def _show_drop(firmware: str | None, place: flash_gap.Place, drop: Path) -> None:
    click.echo(
        f"Wrote {paths.shown(drop)}: the image comes to {place.address:#010x} of the flash, and"
        f" {output.size(place.free_bytes)} stay free up to the file system"
    )
    click.echo(
        "Drop it on the board in boot-loader mode (BOOTSEL held while it is plugged in), after the firmware"
    )
    if firmware is None:
        room = place.address - uf2.FLASH_AT
        click.echo(
            f"kvlab: warning: --uf2: without --firmware it comes just below the file system: firmware of more"
            f" than {room:,} bytes overwrites it, or is damaged by it; name yours with --firmware",
            err=True,
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
