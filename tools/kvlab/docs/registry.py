"""Who makes the figures: every `PRODUCERS` of the modules in producers/."""

from __future__ import annotations

import enum
import importlib
import pkgutil
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache

from kvlab import paths
from kvlab.docs import producers
from kvlab.docs.tolerance import EXACT, Tolerance

PICTURES = "docs/pictures/"


def is_file(name: str) -> bool:
    """Whether a figure is no text between markers but a file of the repository, by its path."""
    return "/" in name


class Cost(enum.Enum):
    """What making the figures takes, and so who checks them."""

    CHEAP = "seconds"  # make test, kvlab docs --check
    MINUTES = "up to two minutes"  # make test-long
    LONG = "longer"  # kvlab docs --check --all


@dataclass(frozen=True)
class Producer:
    """Makes a family of figures.

    `figures`: each that it can make, with its tolerance; pictures and tables of measured constants by the
    paths of their files. `make` is given the names that are wanted and returns those at least: text, or the
    bytes of a file. `command`: what a reader runs to see them. `missing`: why it cannot run here, None if
    it can. `group`: a name that several share, each of which is written when it is made.
    """

    name: str
    command: str
    cost: Cost
    figures: Mapping[str, Tolerance]
    make: Callable[[Collection[str]], Mapping[str, str | bytes]]
    missing: Callable[[], str | None] = lambda: None
    group: str = ""

    def called(self, name: str) -> bool:
        """Whether that is its own name, its group's, or a figure's that it makes."""
        return name in (self.name, self.group) or name in self.figures


def named(*names: str, tolerance: Tolerance = EXACT) -> dict[str, Tolerance]:
    """Figures that share a tolerance."""
    return dict.fromkeys(names, tolerance)


def needs_data(*relative: str) -> Callable[[], str | None]:
    """`missing` of a producer that reads these files of the data folder, which do not come with the
    repository."""

    def missing() -> str | None:
        absent = [name for name in relative if paths.find_data(name) is None]
        return f"needs the download of {', '.join(absent)}, see ${paths.DATA_ENV}" if absent else None

    return missing


def needs_firmware() -> str | None:
    """`missing` of a producer that runs on the emulated 32-bit board."""
    tools = [tool for tool in ("arm-none-eabi-gcc", "qemu-system-arm") if shutil.which(tool) is None]
    return f"no {' and no '.join(tools)} here: `python -m firmware --install`" if tools else None


@cache
def all_producers() -> tuple[Producer, ...]:
    """Those of every module, in the order of their names. ValueError where two claim the same."""
    found: list[Producer] = []
    for module in sorted(pkgutil.iter_modules(producers.__path__), key=lambda module: module.name):
        found += importlib.import_module(f"{producers.__name__}.{module.name}").PRODUCERS
    claimed: set[str] = set()
    for producer in found:
        for name in (producer.name, *(name for name in producer.figures if name != producer.name)):
            if name in claimed:
                raise ValueError(f"{name} has two producers")
            claimed.add(name)
    return tuple(found)


def producer_of(name: str) -> Producer | None:
    """Who makes the figure of that name."""
    return next((producer for producer in all_producers() if name in producer.figures), None)
