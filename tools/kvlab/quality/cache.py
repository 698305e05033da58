"""Results that are kept: what a passage lost under one trial, in the user's cache.

A file for each model and trial, in a folder named by the code that makes the figures: when that changes, all
are measured anew. A file that cannot be read counts as absent, and one that cannot be written is no error.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from commandline import files
from kvlab.models import reference

from .score import Sums

PLACE_ENV = "XDG_CACHE_HOME"

# What the figures follow from.
_SOURCES = (Path(__file__).parent, Path(reference.__file__))

# Of so many states of the sources results are kept.
_KEPT = 4


def folder() -> Path | None:
    """`$XDG_CACHE_HOME/kvlab/quality`, else `~/.cache/kvlab/quality`; None without a home."""
    base = os.environ.get(PLACE_ENV)
    try:
        return (Path(base) if base else Path.home() / ".cache") / "kvlab" / "quality"
    except RuntimeError:
        return None


def passage_key(ids: Sequence[int]) -> str:
    return hashlib.sha256(np.asarray(ids, "<i8").tobytes()).hexdigest()[:16]


class Results:
    """Sums by trial and passage of one model. `place` None keeps nothing; `fresh` reads nothing kept."""

    def __init__(self, place: Path | None, model_crc32: int, fresh: bool = False) -> None:
        self._model = model_crc32
        self._fresh = fresh
        self._place = None if place is None else place / _digest()
        self._known: dict[str, dict[str, Sums]] = {}
        if place is not None and self._place is not None:
            with suppress(OSError):
                self._place.mkdir(parents=True, exist_ok=True)
                os.utime(self._place)
                _drop_old(place, self._place)

    def of(self, trial: str) -> Mapping[str, Sums]:
        """What is known of a trial, by passage_key."""
        if trial not in self._known:
            self._known[trial] = {} if self._fresh else self._read(trial)
        return self._known[trial]

    def add(self, trial: str, found: Mapping[str, Sums]) -> None:
        """Keep more of a trial."""
        self._known[trial] = {**self.of(trial), **found}
        path = self._path(trial)
        if path is None:
            return
        every = {**self._read(trial), **self._known[trial]}
        plain = {key: each.plain() for key, each in every.items()}
        with suppress(OSError):
            files.replace_file(path, json.dumps({"trial": trial, "passages": plain}).encode())

    def _path(self, trial: str) -> Path | None:
        if self._place is None:
            return None
        name = hashlib.sha256(f"{self._model:08x} {trial}".encode()).hexdigest()[:24]
        return self._place / f"{name}.json"

    def _read(self, trial: str) -> dict[str, Sums]:
        path = self._path(trial)
        if path is None:
            return {}
        try:
            kept = json.loads(path.read_bytes())
            if kept["trial"] != trial:
                return {}
            return {key: Sums(**each) for key, each in kept["passages"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def _digest() -> str:
    """Names the sources as they are now, and what computes."""
    total = hashlib.sha256(f"{np.__version__} {sys.version}".encode())
    for source in _SOURCES:
        for path in sorted(source.glob("*.py")) if source.is_dir() else [source]:
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def _drop_old(place: Path, present: Path) -> None:
    """Each state of the sources leaves a folder behind: the oldest go."""
    others = [path for path in place.iterdir() if path != present]
    others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for path in others[_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
