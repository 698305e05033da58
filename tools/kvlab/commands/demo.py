"""`kvlab demo`: what `make demo` runs."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kvlab import options, output, paths, story
from kvlab.boards import Board
from kvlab.commands import stories
from kvlab.errors import BadInput, FellShort
from kvlab.models.load import load_image
from kvlab.plots import heap

MODEL = "stories260K/stories260K.bin"


@click.command(
    epilog="""Example:

\b
  kvlab demo --model stories260K.bin
"""
)
@options.board_option
@click.option(
    "--model",
    metavar="FILE",
    help=f"Board image or llama2.c checkpoint [default: {MODEL} of the data folder].",
)
@click.option(
    "--tokens",
    type=click.IntRange(8, 1_000_000),
    default=500,
    show_default=True,
    help="How many to tell.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=paths.OUT,
    show_default="out",
    help="Folder for demo.json and heap.png.",
)
def command(board: Board, model: str | None, tokens: int, out: Path) -> None:
    """Tell a story on an emulated board, and draw what fills its heap.

    Leaves demo.json and heap.png in the folder `out`.
    """
    started = time.monotonic()
    path = paths.find_data(MODEL) if model is None else options.existing_file(model, "--model")
    if path is None:
        raise BadInput(
            "no model here: name a llama2.c checkpoint with --model FILE (make demo MODEL=FILE),"
            " its tokenizer (tok512.bin for stories260K) beside it, or put"
            f" {MODEL} into ${paths.DATA_ENV}"
        )
    image = load_image(path)
    click.echo(f"{board.title}, {output.size(board.machine.heap_bytes)} of heap. The model: {path.name}.\n")
    told = story.tell(board, image.data, story.Telling(tokens=tokens), stream=True)
    with output.waiting("Searching for the smallest heap it runs in ..."):
        told = story.with_peak(board, image.data, told)
    stories.show(board, told)
    figures = {"model": path.name, **told.figures, "total_seconds": time.monotonic() - started}
    output.write_json(out / "demo.json", figures)
    heap.draw(
        told.report,
        f"Heap of the {board.title} while it tells {figures['tokens']:,} tokens",
        out / "heap.png",
    )
    click.echo(f"Figures: {paths.shown(out / 'demo.json')}. Picture: {paths.shown(out / 'heap.png')}.")
    if figures["alloc_bytes_per_token"]:
        raise FellShort(
            f"the story allocated {figures['alloc_bytes_per_token']} bytes a token; it should be 0"
        )
