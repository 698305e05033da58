"""`kvlab demo`: what `make demo` runs."""

from __future__ import annotations

import importlib
import os
import time
from pathlib import Path
from types import ModuleType

import click

from commandline import files
from commandline.errors import BadInput, FellShort
from kvlab import options, output, paths, shipped, story
from kvlab.boards import Board
from kvlab.commands import stories


@click.command(
    epilog="""Example:

\b
  kvlab demo --model stories260K.bin
"""
)
@options.board_option
@options.model_option(shipped.NAMES[0])
@click.option(
    "--tokens",
    type=click.IntRange(8, 1_000_000),
    default=500,
    show_default=True,
    metavar="TOKENS",
    help="How many to tell.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=paths.OUT,
    show_default="out",
    metavar="DIR",
    help="Folder for demo.json, index.html and the pictures.",
)
def command(board: Board, model: str | None, tokens: int, out: Path) -> None:
    """Tell a story on an emulated board, and draw what it took.

    Leaves index.html with the story and the pictures, and demo.json, in the folder `out`.
    """
    from kvlab.models.load import load_image

    if board.emulated:
        raise BadInput(f"--board {board.name}: its firmware tells nothing of its heap that could be drawn")
    started = time.monotonic()
    pictures = _pictures()
    path = shipped.find(str(_default()) if model is None else model, "--model")
    image = load_image(path)
    files.prepare_folder(out, "--out")  # not before: what is refused leaves no folder behind
    for name in ("demo.json", "index.html", *pictures.NAMES):
        files.prepare(out / name, "--out")
    click.echo(f"{board.title}, {output.size(board.machine.heap_bytes)} of heap. The model: {path.name}.\n")
    telling = story.Telling(tokens=tokens)
    told = story.tell(board, image.data, telling, stream=True)
    with output.waiting("Searching for the smallest heap it runs in ..."):
        told = story.with_peak(board, image.data, telling, told)
    stories.show(board, told)
    with output.waiting("Drawing ..."):
        drawn = pictures.draw_all(told, image.data, board.title, out)
    figures = {"model": path.name, **told.figures, "total_seconds": time.monotonic() - started}
    pictures.write_page(figures, pictures.parameters(image.data), drawn, out / "index.html")
    files.write(out / "demo.json", output.as_json(output.with_settings(figures, model=str(path))), "--out")
    click.echo(f"Figures: {paths.shown(out / 'demo.json')}. Page: {paths.shown(out / 'index.html')}.")
    if figures["alloc_bytes_per_token"]:
        raise FellShort(
            f"the story allocated {figures['alloc_bytes_per_token']} bytes a token; it should be 0"
        )


def _pictures() -> ModuleType:
    """The module that draws, or BadInput that says how to get what it draws with."""
    try:
        importlib.import_module("matplotlib.pyplot")
    except Exception as error:  # a broken installation of a big library fails in many ways
        raise BadInput(
            f"demo draws with matplotlib, which cannot be imported ({type(error).__name__}: {error}): install"
            " it with `.venv/bin/pip install --force-reinstall matplotlib`, or tell the story alone with"
            " `kvlab stories`"
        ) from error
    from kvlab import pictures

    return pictures


def _default() -> Path:
    """The shipped model; in a tree without it stories260K, if the data folder has it."""
    if os.path.isfile(paths.SHIPPED):
        return paths.SHIPPED
    found = paths.find_data(paths.STORIES260K)
    if found is None:
        raise BadInput(
            f"no model at {paths.shown(paths.SHIPPED)}: name an image or llama2.c checkpoint with"
            " --model FILE (make demo MODEL=FILE), its tokenizer (tok512.bin for stories260K) beside it"
        )
    return found
