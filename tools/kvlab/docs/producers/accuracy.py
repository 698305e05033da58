"""The worst errors of attention that the default sample of `kvlab bench accuracy` finds, and its picture."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from kvlab.docs.picture import with_figures
from kvlab.docs.registry import PICTURES, Cost, Producer, named
from kvlab.docs.tolerance import Tolerance
from kvlab.element_types import NAMES

PICTURE = f"{PICTURES}accuracy.png"
# What another processor's exponential makes of inputs and of the float side.
ERRORS = Tolerance(absolute=0.05, points=0.05)


def _table(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab.bench import tables
    from kvlab.bench.accuracy import TITLES
    from kvlab.bench.accuracy.search import Settings, search

    return {"accuracy": tables.accuracy(search(Settings(NAMES, tuple(TITLES)), _nothing))}


def _picture(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab.bench.accuracy import curves
    from kvlab.plots import accuracy

    figures = curves.measure(NAMES, _nothing)
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "accuracy.png"
        accuracy.draw(figures, path, "--plot")
        return {PICTURE: with_figures(path.read_bytes(), figures, accuracy)}


def _nothing(_steps: int) -> None:
    """What is asked how far it has come."""


_COMMAND = "kvlab bench accuracy"
PRODUCERS = (
    Producer("bench_accuracy", _COMMAND, Cost.MINUTES, named("accuracy", tolerance=ERRORS), _table),
    Producer(
        "accuracy_picture",
        f"{_COMMAND} --plot FILE",
        Cost.MINUTES,
        named(PICTURE, tolerance=ERRORS),
        _picture,
    ),
)
