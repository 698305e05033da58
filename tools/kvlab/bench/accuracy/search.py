"""The search: for each element type and distribution the worst error among so many seeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from kvlab.bench.accuracy import SEEDS, adversary, reference
from kvlab.bench.accuracy.distributions import DISTRIBUTIONS, Distribution
from kvlab.bench.accuracy.inputs import Array, Case, Drawn
from kvlab.bench.accuracy.runner import Run, on_unix
from kvlab.element_types import EXACT

Steps = Callable[[int], None]

MEASURES = ("l2", "of_output", "excess", "of_largest", "codes")

_MOST_EXACT = 4096  # numbers of a cache of float32, whose kernels are no native code
_NUMBERS = 1 << 18  # of keys, about, that a process is given at once


def is_quick(codec: str, numbers: int) -> bool:
    """Whether kernels that are no native code have done with so many in seconds, or need not."""
    return codec != EXACT or numbers <= _MOST_EXACT


@dataclass(frozen=True)
class Settings:
    """Which inputs: `seeds` of each distribution from `first` on; all of a head_dim, or of so many tokens,
    where that is given."""

    codecs: tuple[str, ...]
    distributions: tuple[str, ...]
    seeds: int = SEEDS
    first: int = 0
    head_dim: int | None = None
    tokens: int | None = None

    @property
    def steps(self) -> int:
        """What `search` reports."""
        return len(self.codecs) * len(self.distributions) * self.seeds


@dataclass
class Piece:
    """Seeds of a distribution for an element type, which one process computes."""

    codec: str
    distribution: Distribution
    seeds: list[int]
    inputs: list[Drawn]


def search(settings: Settings, done: Steps, run: Run = on_unix) -> dict[str, Any]:
    """{codec: {distribution: {measure: WORST, "seeds": count, "mean_l2"}}}; WORST: "value" (a part, of codes
    a number), and what it was found with: "seed", "query", "kv_heads", "head_dim", "tokens"."""
    found: dict[str, Any] = {
        codec: {name: {"seeds": 0, "mean_l2": 0.0} for name in settings.distributions}
        for codec in settings.codecs
    }
    pieces = _pieces(settings)
    workers = os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        try:
            running: set[Future[tuple[Piece, list[tuple[Case, Array]]]]] = set()
            while True:
                for piece in islice(pieces, 2 * workers - len(running)):
                    running.add(pool.submit(_computed, piece, run))
                if not running:
                    break
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    piece, results = future.result()
                    _note(found, piece, results)
                    done(len(piece.seeds))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def _pieces(settings: Settings) -> Iterator[Piece]:
    """A seed has the same inputs in every element type, but that float32 has fewer tokens."""
    for name in settings.distributions:
        distribution = DISTRIBUTIONS[name]
        inputs: list[Drawn] = []
        seeds: list[int] = []
        for seed in range(settings.first, settings.first + settings.seeds):
            inputs.append(distribution.inputs(seed, settings.head_dim, settings.tokens))
            seeds.append(seed)
            size = sum(drawn.keys.size for drawn in inputs)
            if size >= _NUMBERS or len(seeds) >= 100 or seed == settings.first + settings.seeds - 1:
                for codec in settings.codecs:
                    yield Piece(codec, distribution, seeds, inputs)
                inputs, seeds = [], []


def _computed(piece: Piece, run: Run) -> tuple[Piece, list[tuple[Case, Array]]]:
    inputs = piece.inputs
    if piece.codec == EXACT:
        inputs = [_cut(drawn, _MOST_EXACT // drawn.keys.shape[1]) for drawn in inputs]
    if piece.distribution.adversary:
        cases = adversary.sharpened(piece.codec, inputs, run)
    else:
        cases = [Case.of(piece.codec, drawn) for drawn in inputs]
    return piece, list(zip(cases, run(cases), strict=True))


def _cut(drawn: Drawn, tokens: int) -> Drawn:
    """The first tokens."""
    return Drawn(drawn.keys[:tokens], drawn.values[:tokens], drawn.queries, drawn.sinks, drawn.kv_heads)


def _note(found: dict[str, Any], piece: Piece, results: Sequence[tuple[Case, Array]]) -> None:
    of = found[piece.codec][piece.distribution.name]
    for seed, (case, got) in zip(piece.seeds, results, strict=True):
        errors = reference.errors(case, got)
        of["mean_l2"] = (of["mean_l2"] * of["seeds"] + float(errors.l2.mean())) / (of["seeds"] + 1)
        of["seeds"] += 1
        for measure in MEASURES:
            each = getattr(errors, measure)[0]
            query = int(np.argmax(each))
            worst = of.get(measure)
            # Processes end in any order: of equals the first seed counts.
            if worst is None or (-each[query], seed) < (-worst["value"], worst["seed"]):
                of[measure] = {
                    "value": float(each[query]),
                    "seed": seed,
                    "query": query,
                    "kv_heads": case.kv_heads,
                    "head_dim": case.queries.shape[1],
                    "tokens": len(case.keys),
                }


def headline(distribution: str, of: Mapping[str, Any]) -> dict[str, Any]:
    """The worst by the measure of that distribution."""
    found: dict[str, Any] = of[DISTRIBUTIONS[distribution].measure]
    return found
