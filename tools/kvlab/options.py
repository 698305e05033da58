"""Parameter types and options that several commands share."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from commandline.errors import BadInput, did_you_mean
from commandline.figures import long_name
from commandline.files import OutFile, existing_file
from commandline.numbers import FiniteRange
from kvlab import boards, shipped
from kvlab.engine import catalogue
from mpy_kv.eviction import tokens

__all__ = [
    "Decimal",
    "FiniteRange",
    "OutFile",
    "Size",
    "board_option",
    "existing_file",
    "given",
    "model_option",
    "no_effect",
    "parse_size",
    "policy_options",
    "pools_option",
    "tokenizer_option",
]

F = TypeVar("F", bound=Callable[..., Any])

_DIGITS_MAX = 24  # more is no size of anything, and Python refuses to read thousands
_UNITS = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "kB": 1000, "MB": 1000**2}


def given(*names: str) -> list[click.Parameter]:
    """Those of the running command's parameters of these names that the user named, in this order. ValueError
    for a name that it does not have."""
    context = click.get_current_context()
    known = {param.name: param for param in context.command.params}
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"{', '.join(unknown)}: no parameters of {context.command_path}")
    typed = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.PROMPT)
    return [known[name] for name in names if context.get_parameter_source(name) in typed]


def no_effect(why: str, *names: str) -> None:
    """BadInput if the user named one of these parameters, which have no effect: `why` names the option that
    makes it so, and what to do: "needs --requests", "has no effect with --greedy; leave one of them out".
    """
    for param in given(*names):
        raise BadInput(f"{long_name(param)}: {why}")


def parse_size(text: str) -> int:
    """Bytes: `240000`, `0x4000`, `64KiB` (65,536), `64kB` (64,000). ValueError."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text):
        return int(text, 16)
    found = re.fullmatch(r"([0-9]+(?:_[0-9]+)*) ?([A-Za-z]*)", text)
    if found is None or found[2] not in _UNITS or len(found[1]) > _DIGITS_MAX:
        raise ValueError(f"{text}: not a size; write 65536, 0x10000 or 64KiB (units: B, KiB, MiB, kB, MB)")
    return int(found[1]) * _UNITS[found[2]]


class Size(click.ParamType):
    """A size in bytes with an optional unit, between two bounds."""

    name = "bytes"

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
            raise BadInput(f"{option} {value}: {size:,} bytes is not within {self.least:,}..{self.most:,}")
        return size


class Decimal(click.ParamType):
    """A number between two bounds as a board reads it: plain digits, three places after the point.

    `1e-1` becomes `0.1`; further places are dropped, as the board drops them. What is not 0 but would
    become 0, and so mean something else, is refused.
    """

    name = "number"

    def __init__(self, least: int | str, most: int | str) -> None:
        """Bounds as errors show them."""
        self.least, self.most = decimal.Decimal(least), decimal.Decimal(most)

    @staticmethod
    def setting(value: str | None) -> float | None:
        """As figures tell it."""
        return None if value is None else float(value)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        option = param.opts[0] if param else "number"
        try:
            number = decimal.Decimal(str(value))
        except decimal.InvalidOperation:
            raise BadInput(f"{option} {value}: not a number") from None
        if not number.is_finite():
            raise BadInput(f"{option} {value}: not a number")
        if not self.least <= number <= self.most:
            raise BadInput(f"{option} {value}: not within {self.least}..{self.most}")
        milli = int(number.quantize(decimal.Decimal("0.001"), decimal.ROUND_DOWN) * 1000)
        if milli == 0 and number:
            raise BadInput(f"{option} {value}: a board cannot tell it from 0; the least above that is 0.001")
        whole, rest = divmod(milli, 1000)
        return f"{whole}.{rest:03}".rstrip("0").rstrip(".")


def pools_option(help: str) -> Callable[[F], F]:
    """`--pool NAME`, which may be repeated, as parameter `pool_names`; all when not given, or for "all"."""

    def chosen(_context: Any, _option: Any, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in (*catalogue.POOLS, "all"):
                hint = did_you_mean(name, catalogue.POOLS) or f"; pools: {', '.join(catalogue.POOLS)}"
                raise BadInput(f"--pool {name}: no such pool{hint}")
        return tuple(catalogue.POOLS) if not names or "all" in names else tuple(dict.fromkeys(names))

    return click.option("--pool", "pool_names", multiple=True, metavar="NAME", callback=chosen, help=help)


def model_option(
    usual: str | None = None, *, images: bool = True, also: str = "", **how: Any
) -> Callable[[F], F]:
    """`--model NAME|FILE`: one that ships or a file. `usual`: what help says of the default; `images`: a file
    may be a board image; `also`: what else is taken; `how`: as of click.option."""
    files = "a board image, or a llama2.c checkpoint" if images else "a llama2.c checkpoint"
    said = f"A model that ships ({', '.join(shipped.NAMES)}), or a file: {files}{also}"
    if usual is not None:
        said += f" [default: {usual}]"
    return click.option("--model", metavar="NAME|FILE", help=f"{said}.", **how)


def tokenizer_option(command: F) -> F:
    """`--tokenizer FILE`."""
    decorate = click.option(
        "--tokenizer",
        metavar="FILE",
        help="Of a llama2.c checkpoint [default: the one beside it].",
    )
    return decorate(command)


def policy_options(command: F) -> F:
    """`--policy NAME`, `--budget TOKENS`: which tokens a cache keeps, and how many."""
    policy = click.option(
        "--policy",
        type=click.Choice(tuple(tokens.POLICIES)),
        metavar="NAME",
        help="Which tokens stay: the newest, or by the attention they get; docs/CHOOSING.md compares them. Of"
        f" {', '.join(tokens.POLICIES)} [default: window].",
    )
    budget = click.option(
        "--budget",
        type=click.IntRange(min=1),
        metavar="TOKENS",
        help="Instead of --window: how many --policy keeps, sinks included [default: the window's size].",
    )
    return policy(budget(command))


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
