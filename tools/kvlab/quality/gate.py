"""An element type for each layer, of those that a cache on a device can have: the smallest arrangement found
whose loss stays within a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kvlab.element_types import EXACT, IN_IMAGES, SEALED

from .codecs import Refused
from .defaults import WARNING
from .harness import Harness
from .kinds import CODECS, Arrangement
from .score import figures
from .trials import stored

# What a layer may have, whatever the others have; and with what takes all layers or none.
OF_A_LAYER = tuple(name for name in IN_IMAGES if name != SEALED)
_LEAST_NATS = 1e-12  # of a move that adds nothing, or less

Done = Callable[[int], None]


@dataclass(frozen=True)
class Move:
    """A layer's keys and values become `codec`."""

    layer: int
    codec: str


@dataclass
class Measured:
    """The codec of each layer, with their loss and their bytes at the context asked about."""

    codecs: tuple[str, ...]
    kld: float
    bytes: int
    figures: dict[str, Any]


class Gate:
    """Greedy: each step makes the change that saves most bytes for each nat of divergence that it adds, as
    measured, as long as the whole stays within `budget_kld` nats a token. Once from the mildest codec that
    passes in all layers and once from the smallest; the smaller end is taken.
    """

    def __init__(self, harness: Harness, budget_kld: float, context: int) -> None:
        self.harness = harness
        self.budget_kld = budget_kld
        self.context = context
        # On the way to what was chosen: moves that would have been too much on top of those before them, and
        # the loss there; None for what cannot be stored.
        self.refused: dict[Move, float | None] = {}

    @property
    def steps(self) -> int:
        """At most, of `choose`."""
        return 4 * len(self.moves)

    @property
    def moves(self) -> list[Move]:
        """Every change of one layer."""
        layers = range(self.harness.model.config.layers)
        return [Move(layer, codec) for layer in layers for codec in OF_A_LAYER]

    def uniform(self) -> dict[str, Measured]:
        """Each codec in all layers, by name, those included that no device has; without those that cannot
        store the model."""
        found = {}
        for name in CODECS:
            if name not in (EXACT, WARNING):
                with suppress(Refused):
                    found[name] = self.measure((name,) * self.harness.model.config.layers)
        return found

    def measure(self, codecs: tuple[str, ...]) -> Measured:
        """codecs.Refused where it cannot store what the model computes."""
        arrangement = self._arrangement(codecs)
        found = figures(self.harness.measure([stored(arrangement)])[0])
        return Measured(codecs, found["kld"], arrangement.bytes(self.context).exact, found)

    def choose(self, done: Done = lambda _n: None) -> Measured | None:
        """The smallest arrangement found within the budget; None when no codec is. `done` gets `steps`."""
        passing = {name: each for name, each in self.uniform().items() if each.kld <= self.budget_kld}
        ends: list[tuple[Measured, dict[Move, float | None]]] = []
        starts = [passing[name] for name in OF_A_LAYER if name in passing]
        if starts:
            first = min(starts, key=lambda each: each.kld)
            least = min(starts, key=lambda each: each.bytes)
            ends.append(self._descend(first, done))
            if least is not first:
                ends.append(self._descend(least, done))
        if SEALED in IN_IMAGES and SEALED in passing:
            ends.append((passing[SEALED], {}))
        if not ends:
            return None
        chosen, self.refused = min(ends, key=lambda end: (end[0].bytes, end[0].kld))
        return chosen

    def _descend(self, now: Measured, done: Done) -> tuple[Measured, dict[Move, float | None]]:
        """Where the best moves lead, and what was refused on the way.

        What a move adds hardly changes by others made before it: so the moves are tried in the order of their
        worth alone, each measured again on top of what has been chosen.
        """
        refused: dict[Move, float | None] = {}
        waiting = {}
        for move in self.moves:
            worth = self._worth(now, move, refused)
            done(1 if worth is not None else 2)
            if worth is not None:
                waiting[move] = worth
        while waiting:
            best = max(waiting, key=lambda move: waiting[move])
            last = waiting.pop(best)
            worth = self._worth(now, best, refused)
            if worth is not None and worth < last and any(worth < other for other in waiting.values()):
                waiting[best] = worth  # no longer the best: its turn comes again
                continue
            done(1)
            if worth is not None:
                now = self.measure(_after(now, best))
        return now, refused

    def _worth(self, now: Measured, move: Move, refused: dict[Move, float | None]) -> float | None:
        """Bytes saved for each nat added. None when it saves nothing or costs too much; later moves change
        neither.
        """
        changed = _after(now, move)
        saved = now.bytes - self._arrangement(changed).bytes(self.context).exact
        if saved <= 0:
            return None
        try:
            after = self.measure(changed)
        except Refused:
            refused[move] = None
            return None
        if after.kld > self.budget_kld:
            refused[move] = after.kld
            return None
        return saved / max(after.kld - now.kld, _LEAST_NATS)

    def _arrangement(self, codecs: tuple[str, ...]) -> Arrangement:
        return Arrangement.of(codecs, self.harness.shape)


def _after(now: Measured, move: Move) -> tuple[str, ...]:
    return (*now.codecs[: move.layer], move.codec, *now.codecs[move.layer + 1 :])
