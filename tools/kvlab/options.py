"""Parameter types and options that several commands share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kvlab import boards
from kvlab.errors import BadInput

F = TypeVar("F", bound=Callable[..., Any])

_UNITS = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "kB": 1000, "MB": 1000**2}


def parse_size(text: str) -> int:
    """Bytes: `240000`, `0x4000`, `64KiB` (65,536), `64kB` (64,000). ValueError."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]+", text):
        return int(text, 16)
    found = re.fullmatch(r"([0-9][0-9_]*) ?([A-Za-z]*)", text)
    if found is None or found[2] not in _UNITS:
        raise ValueError(
            f"{text}: not a size; write 65536, 0x10000 or 64KiB (units: B, KiB, MiB, kB, MB)"
        )
    return int(found[1]) * _UNITS[found[2]]


class Size(click.ParamType):
    """A size in bytes with an optional unit, between two bounds."""

    name = "size"

    def __init__(self, least: int = 0, most: int = 1 << 30) -> None:
        self.least = least
        self.most = most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        option = param.opts[0] if param else "size"
        if isinstance(value, int):
            return value
        try:
            size = parse_size(value)
        except ValueError as error:
            raise BadInput(f"{option} {error}") from error
        if not self.least <= size <= self.most:
            raise BadInput(
                f"{option} {value}: {size:,} bytes is not within {self.least:,}..{self.most:,}"
            )
        return size


def board_option(command: F) -> F:
    """`--board NAME` as parameter `board: Board`; the Pico when not given."""
    decorate = click.option(
        "--board",
        metavar="NAME",
        default="rp2040",
        show_default=True,
        callback=lambda _context, _option, name: boards.load(name),
        help=f"The board to stand in for: {', '.join(boards.names())}.",
    )
    return decorate(command)


def existing_file(text: str, option: str) -> Path:
    """A path that can be read as a file, or BadInput that names the option."""
    path = Path(text)
    if path.is_dir():
        raise BadInput(f"{option} {text}: is a folder; name a file")
    if not path.is_file():
        raise BadInput(f"{option} {text}: no such file")
    if not os.access(path, os.R_OK):
        raise BadInput(f"{option} {text}: not readable")
    return path
