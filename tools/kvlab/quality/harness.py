"""Runs trials over passages, several at a time, and keeps what it finds."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvlab.element_types import EXACT
from kvlab.models.reference import Reference
from unix_port import processes

from .cache import Results, passage_key
from .kinds import Arrangement, Shape
from .score import Sums, compare
from .teacher import hidden
from .trials import Trial

Array = NDArray[Any]
Done = Callable[[int], None]


class Harness:
    """A model, passages of one length, and results known already.

    Every passage is judged against the same model in float32 with nothing evicted. Codecs refuse what they
    cannot store: codecs.Refused passes through.
    """

    def __init__(self, model: Reference, passages: Sequence[Sequence[int]], results: Results) -> None:
        c = model.config
        self.model = model
        self.passages = [list(ids) for ids in passages]
        self.results = results
        self.shape = Shape.of(c.kv_heads, c.head_dim)
        self.exact = self.uniform(EXACT)
        self._keys = [passage_key(ids) for ids in self.passages]
        self._references: dict[int, Array] = {}
        self._lock = threading.Lock()

    def uniform(self, codec: str) -> Arrangement:
        """A codec in all layers."""
        return Arrangement.uniform(codec, self.model.config.layers, self.shape)

    def steps(self, trials: Iterable[Trial]) -> int:
        """How often `measure` calls done(1) in all."""
        return sum(len(self._missing(trial)) for trial in trials)

    def measure(self, trials: Sequence[Trial], done: Done = lambda _n: None) -> list[list[Sums]]:
        """For each trial the sums of each passage."""
        work = [(trial, some) for trial in trials for some in self._batches(trial)]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            with processes.signals_held():
                jobs = {pool.submit(self._judge, trial, some): (trial, some) for trial, some in work}
            try:
                for job in processes.as_completed(jobs):
                    trial, some = jobs[job]
                    self.results.add(trial.name, dict(zip((self._keys[i] for i in some), job.result())))
                    done(len(some))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [[self.results.of(trial.name)[key] for key in self._keys] for trial in trials]

    def _missing(self, trial: Trial) -> list[int]:
        known = self.results.of(trial.name)
        return [i for i, key in enumerate(self._keys) if key not in known]

    def _batches(self, trial: Trial) -> Iterator[list[int]]:
        missing = self._missing(trial)
        for at in range(0, len(missing), trial.together):
            yield missing[at : at + trial.together]

    def _judge(self, trial: Trial, some: list[int]) -> list[Sums]:
        processes.check_going_on()
        found = trial.hidden(self.model, [self.passages[i][:-1] for i in some])
        return [
            compare(self.model, self._reference(i), row, self.passages[i][1:], trial.first)
            for i, row in zip(some, found, strict=True)
        ]

    def _reference(self, index: int) -> Array:
        with self._lock:
            found = self._references.get(index)
        if found is None:  # two threads may both compute it, and find the same
            found = hidden(self.model, self.passages[index][:-1], self.exact)
            with self._lock:
                self._references[index] = found
        return np.asarray(found)
