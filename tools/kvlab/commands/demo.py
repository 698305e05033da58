"""`kvlab demo`: what `make demo` runs."""

from __future__ import annotations

import time
from pathlib import Path

import click

from kvlab import options, output, paths, pictures, story
from kvlab.boards import Board
from kvlab.commands import stories
from kvlab.errors import BadInput, FellShort
from kvlab.models.load import load_image
from kvlab.plan.models import SHIPPED

STORIES260K = "stories260K/stories260K.bin"


@click.command(
    epilog="""Example:

\b
  kvlab demo --model stories260K.bin
"""
)
@options.board_option
@click.option(
    "--model", metavar="FILE", help="Board image or llama2.c checkpoint [default: the shipped one]."
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
    help="Folder for demo.json, index.html and the pictures.",
)
def command(board: Board, model: str | None, tokens: int, out: Path) -> None:
    """Tell a story on an emulated board, and draw what it took.

    Leaves index.html with the story and the pictures, and demo.json, in the folder `out`.
    """
    started = time.monotonic()
    path = _default() if model is None else options.existing_file(model, "--model")
    image = load_image(path)
    click.echo(f"{board.title}, {output.size(board.machine.heap_bytes)} of heap. The model: {path.name}.\n")
    told = story.tell(board, image.data, story.Telling(tokens=tokens), stream=True)
    with output.waiting("Searching for the smallest heap it runs in ..."):
        told = story.with_peak(board, image.data, told)
    stories.show(board, told)
    with output.waiting("Drawing ..."):
        drawn = pictures.draw_all(told, image.data, board.title, out)
    figures = {"model": path.name, **told.figures, "total_seconds": time.monotonic() - started}
    pictures.write_page(figures, drawn, out / "index.html")
    output.write_json(out / "demo.json", figures)
    click.echo(f"Figures: {paths.shown(out / 'demo.json')}. Page: {paths.shown(out / 'index.html')}.")
    if figures["alloc_bytes_per_token"]:
        raise FellShort(
            f"the story allocated {figures['alloc_bytes_per_token']} bytes a token; it should be 0"
        )


def _default() -> Path:
    """The shipped model; in a tree without it stories260K, if the data folder has it."""
    if SHIPPED.is_file():
        return SHIPPED
    found = paths.find_data(STORIES260K)
    if found is None:
        raise BadInput(
            f"no model at {paths.shown(SHIPPED)}: name an image or llama2.c checkpoint with --model FILE"
            " (make demo MODEL=FILE), its tokenizer (tok512.bin for stories260K) beside it"
        )
    return found
