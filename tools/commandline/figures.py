"""The figures of a command as JSON: `--json FILE`, and the settings that made them."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from commandline import files

F = TypeVar("F", bound=Callable[..., Any])

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
