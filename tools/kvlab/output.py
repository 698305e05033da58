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
from contextvars import ContextVar
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from kvlab import files

if TYPE_CHECKING:  # rich is slow to import, and most of --help needs none of it
    from rich.progress import Progress

F = TypeVar("F", bound=Callable[..., Any])

PROGRESS_AFTER_S = 2.0
STDOUT = Path("-")  # as FILE of --json

# Where figures go with `--json -`, while sys.stdout is stderr.
_figures_to: ContextVar[TextIO | None] = ContextVar("figures_to", default=None)


@contextmanager
def streams() -> Iterator[None]:
    """One command: whatever it does with stdout is over at its end."""
    token, stdout = _figures_to.set(None), sys.stdout
    try:
        yield
    finally:
        sys.stdout = stdout
        _figures_to.reset(token)


def json_option(command: F) -> F:
    """`--json FILE` as parameter `json_path: Path | None`; refused early if not writable.

    With `-` the figures go to stdout, and from then on all else that is printed to stderr.
    """
    decorate = click.option(
        "--json",
        "json_path",
        type=files.OutFile(),
        metavar="FILE",
        callback=_json_target,
        help="Write the figures to FILE; - is stdout, and all else then goes to stderr.",
    )
    return decorate(command)


def _json_target(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    if path == STDOUT:
        _figures_to.set(sys.stdout)
        sys.stdout = sys.stderr
    elif path is not None:
        files.prepare(path, stream=True)
    return path


def write_json(path: Path, figures: dict[str, Any], **resolved: Any) -> None:
    """Write `figures` and the settings that made them as JSON to what --json named, whole or not at all.
    `resolved` as in `with_settings`, ValueError as in `as_json`."""
    data = as_json(with_settings(figures, **resolved))
    out = _figures_to.get()
    if path == STDOUT and out is not None:
        out.flush()
        out.buffer.write(data)
        out.flush()
        return
    files.prepare(path, stream=True)
    files.write(path, data, "--json")


def with_settings(figures: dict[str, Any], **resolved: Any) -> dict[str, Any]:
    """`figures` with `settings`: the running command and the value of each of its arguments and options, by
    its long name. `resolved`: what became of those that were left to a default, or are not what was typed.

    Where output goes is no setting. Outside of a command there are none.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return figures
    settings: dict[str, Any] = {"command": context.command_path.partition(" ")[2]}
    for param in context.command.params:
        of_output = isinstance(param.type, click.Path) or param.name == "no_plot"
        if param.name in context.params and not of_output:
            shown = getattr(param.type, "setting", _setting)
            settings[long_name(param).lstrip("-").replace("-", "_")] = shown(context.params[param.name])
    unknown = resolved.keys() - settings.keys()
    if unknown:
        raise ValueError(f"{', '.join(sorted(unknown))}: no options of {context.command_path}")
    return {**figures, "settings": {**settings, **resolved}}


def long_name(param: click.Parameter) -> str:
    """`--seq-len` of an option, the name of an argument in lower case."""
    return max(param.opts, key=len)


def _setting(value: Any) -> Any:
    """A board is its name, as it was typed."""
    return getattr(value, "name", value)


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
