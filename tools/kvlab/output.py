"""How commands write: JSON figures, tables, a bar or a spinner on stderr when work is slow."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from commandline.figures import as_json, encoded, json_option, streams, with_settings, write_json

if TYPE_CHECKING:  # rich is slow to import, and most of --help needs none of it
    from rich.progress import Progress

__all__ = [
    "as_json",
    "encoded",
    "json_option",
    "notes",
    "progress",
    "size",
    "streams",
    "table",
    "waiting",
    "with_settings",
    "write_json",
]

PROGRESS_AFTER_S = 2.0


def table(title: str, rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> None:
    """Print rows of text as a table that fits the terminal, or 80 columns.

    Cells are folded between words. Where that is not enough the columns go on in further tables below, each
    with the first column; only a word that is too long beside that is cut in two.
    """
    from rich import box
    from rich.table import Table

    console = _console()
    columns = list(zip_longest(*rows, header, fillvalue="")) or [("",)]
    for at, part in enumerate(_parts(columns, console.width)):
        grid = Table(
            title=title if at == 0 else None,
            title_justify="left",
            box=box.SIMPLE,
            show_header=bool(header),
            pad_edge=False,
        )
        for width, column in zip(_widths(part, console.width), part, strict=True):
            grid.add_column(column[-1] if header else "", width=width, overflow="fold")
        for row in list(zip(*part, strict=True))[:-1]:
            grid.add_row(*row)
        console.print(grid)


def notes(texts: Iterable[str]) -> None:
    """Print what is to be said of a table, a line each."""
    for text in texts:
        click.echo(f"- {text}")


_BETWEEN = 3  # what rich leaves between columns; a line begins and ends with one more space


def _taken(count: int) -> int:
    """Of a line by what is no cell of its `count` columns."""
    return _BETWEEN * count - 1


def _parts(columns: Sequence[Sequence[str]], room: int) -> list[list[Sequence[str]]]:
    """Columns in groups that fit `room`, each with the first column."""
    first, *rest = columns
    parts = [[first]]
    for column in rest:
        tried = [*parts[-1], column]
        if len(parts[-1]) > 1 and sum(_least(tried, room)) + _taken(len(tried)) > room:
            tried = [first, column]
            parts.append(tried)
        parts[-1] = tried
    return parts


def _least(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths that no word of the columns exceeds, or that let the first and any other one fit `room`."""
    from rich.cells import cell_len

    first, *rest = (
        max((cell_len(word) for cell in column for word in cell.split()), default=1) for column in columns
    )
    if not rest:
        return [min(first, max(1, room - _taken(1)))]
    both = room - _taken(2)
    first = min(first, max(1, both // 2, both - max(rest)))
    return [first, *(min(each, max(1, both - first)) for each in rest)]


def _widths(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Of columns of cells, which together fit `room` as far as `_least` allows it."""
    from rich.cells import cell_len

    least = _least(columns, room)
    wanted = [
        max(cell_len(line) for cell in column for line in (cell or " ").split("\n")) for column in columns
    ]
    room -= _taken(len(columns))
    while sum(wanted) > room:
        slack = [have - need for have, need in zip(wanted, least, strict=True)]
        if not max(slack):
            break
        wanted[slack.index(max(slack))] -= 1
    return wanted


def _console(**how: Any) -> Any:
    """rich's console for tables. A reader that went away is the command line's to handle, not rich's."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # the BrokenPipeError at hand

    return Plain(highlight=False, markup=False, **how)


def size(count: int) -> str:
    """Bytes for people: `239,776 B (234.2 KiB)`."""
    if count < 1024:
        return f"{count:,} B"
    if count < 1024 * 1024:
        return f"{count:,} B ({count / 1024:.1f} KiB)"
    if count < 1024**3:
        return f"{count:,} B ({count / 1024**2:.2f} MiB)"
    return f"{count:,} B ({count / 1024**3:,.2f} GiB)"


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr for work of `total` steps, shown only once it has taken longer than two
    seconds.

    `with progress("Converting", 45) as done: ...; done(1)`. Silent when stderr is no terminal.
    """
    started = time.monotonic()
    bar: Progress | None = None
    finished = 0

    def done(steps: int = 1) -> None:
        nonlocal bar, finished
        finished += steps
        if bar is None and sys.stderr.isatty() and time.monotonic() - started > PROGRESS_AFTER_S:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            bar.add_task(what, total=total)
            bar.start()
        if bar is not None:
            bar.update(bar.task_ids[0], completed=finished)

    try:
        yield done
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner on stderr for work of unknown length, shown only after two seconds."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(what)
    timer = threading.Timer(PROGRESS_AFTER_S, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        status.stop()
