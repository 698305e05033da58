"""How commands write: JSON figures, tables, a bar or a spinner on stderr when work is slow."""

from __future__ import annotations

import json
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kvlab import files

if TYPE_CHECKING:  # rich is slow to import, and most of --help needs none of it
    from rich.progress import Progress

F = TypeVar("F", bound=Callable[..., Any])

PROGRESS_AFTER_S = 2.0


def json_option(command: F) -> F:
    """`--json FILE` as parameter `json_path: Path | None`; refused early if not writable."""
    decorate = click.option(
        "--json",
        "json_path",
        type=files.OutFile(),
        metavar="FILE",
        callback=lambda _context, _option, path: path and files.prepare(path, stream=True),
        help="Write the figures to FILE.",
    )
    return decorate(command)


def write_json(path: Path, figures: dict[str, Any]) -> None:
    """Write `figures` as JSON to what --json named, whole or not at all. ValueError as in `as_json`."""
    data = as_json(figures)
    files.prepare(path, stream=True)
    files.write(path, data, "--json")


def as_json(figures: dict[str, Any]) -> bytes:
    """`figures` as a JSON file. NaN and infinities are bugs: ValueError names the key."""
    odd = next(_not_finite(figures, ""), None)
    if odd is not None:
        raise ValueError(f"{odd} is not a finite number")
    text = json.dumps(figures, indent=2, ensure_ascii=False, allow_nan=False, default=_plain)
    return encoded(text + "\n")


def encoded(text: str) -> bytes:
    """UTF-8. Bytes of a file name that are none become escapes, which in JSON stand for just those."""
    return text.encode("utf-8", "backslashreplace")


def _not_finite(value: Any, where: str) -> Iterator[str]:
    """The places below `value` that hold NaN or an infinity."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, (list, tuple)):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, f"{where}[{index}]")
    elif hasattr(value, "tolist"):  # numpy, scalars too
        yield from _not_finite(value.tolist(), where)
    elif isinstance(value, float) and not math.isfinite(value):
        yield where


def _plain(value: Any) -> Any:
    """numpy scalars and arrays, and paths, as what JSON knows."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} does not go into JSON")


def table(title: str, rows: Iterable[Sequence[str]], header: Sequence[str] = ()) -> None:
    """Print rows of text as a table, folded to the terminal's width where there is one; no word is cut, so
    that a table of many columns may be wider."""
    from rich import box
    from rich.table import Table

    rows = list(rows)
    grid = Table(
        title=title, title_justify="left", box=box.SIMPLE, show_header=bool(header), pad_edge=False
    )
    console = _console()
    columns = list(zip_longest(*rows, header, fillvalue=""))
    between = 3 * len(columns) - 1
    widths = _widths(columns, (console.width if console.is_terminal else 160) - between)
    for width, column in zip(widths, columns, strict=True):
        grid.add_column(column[-1] if header else "", width=width)
    for row in rows:
        grid.add_row(*row)
    _console(width=max(console.width, sum(widths) + between)).print(grid)


def _widths(columns: Iterable[Sequence[str]], room: int) -> list[int]:
    """Of columns of cells, together no more than `room` where their longest words allow it."""
    from rich.cells import cell_len

    wanted, least = [], []
    for column in columns:
        wanted.append(max(cell_len(line) for cell in column for line in (cell or " ").split("\n")))
        least.append(max((cell_len(word) for cell in column for word in cell.split()), default=1))
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
