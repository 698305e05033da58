"""An element type for each layer's keys and values, the smallest found whose loss stays within a budget."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .codecs import Refused
from .harness import Harness
from .kinds import CODECS, EXACT, WARNING, Arrangement
from .score import figures
from .trials import stored

SIDES = ("keys", "values")
MILDEST = "float16"
_LEAST_NATS = 1e-12  # of a move that adds nothing, or less
_SEALED = ("int4-sealed", "int4-sealed-float16")
# What each side may become.
CANDIDATES = (("int8", *_SEALED), ("int8", "int4", "sparse", *_SEALED))

Done = Callable[[int], None]


@dataclass(frozen=True)
class Move:
    """The keys (side 0) or values (1) of a layer become `kind`."""

    layer: int
    side: int
    kind: str


@dataclass
class Measured:
    """An arrangement with its loss and its bytes at the context asked about."""

    arrangement: Arrangement
    kld: float
    bytes: int
    figures: dict[str, Any]


class Gate:
    """Greedy: each step makes the change that saves most bytes for each nat of divergence that it adds, as
    measured, as long as the whole stays within `budget_kld` nats a token. Once from float16 everywhere, and
    once from the smallest codec that passes in all layers; the smaller end is taken.
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
        """Every change of one kind."""
        layers = range(self.harness.model.config.layers)
        return [Move(n, side, kind) for n in layers for side in (0, 1) for kind in CANDIDATES[side]]

    def uniform(self) -> dict[str, Measured]:
        """Each codec in all layers, by name, the mildest first; without those that cannot store the model."""
        found = {}
        for name in (MILDEST, *(each for each in CODECS if each not in (EXACT, WARNING, MILDEST))):
            with suppress(Refused):
                found[name] = self.measure(self.harness.uniform(name))
        return found

    def measure(self, arrangement: Arrangement) -> Measured:
        """codecs.Refused where it cannot store what the model computes."""
        found = figures(self.harness.measure([stored(arrangement)])[0])
        return Measured(arrangement, found["kld"], arrangement.bytes(self.context).exact, found)

    def choose(self, done: Done = lambda _n: None) -> Measured | None:
        """The smallest arrangement found within the budget; None when no codec is. `done` gets `steps`."""
        starts = [each for each in self.uniform().values() if each.kld <= self.budget_kld]
        if not starts:
            return None
        first, least = starts[0], min(starts, key=lambda each: each.bytes)
        ends = [self._descend(first, done)]
        if least is not first:
            ends.append(self._descend(least, done))
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
                now = self.measure(self._after(now, best))
        return now, refused

    def _worth(self, now: Measured, move: Move, refused: dict[Move, float | None]) -> float | None:
        """Bytes saved for each nat added. None when it saves nothing or costs too much; later moves change
        neither.
        """
        changed = self._after(now, move)
        saved = now.bytes - changed.bytes(self.context).exact
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

    @staticmethod
    def _after(now: Measured, move: Move) -> Arrangement:
        return now.arrangement.with_kind(move.layer, move.side, move.kind)


def as_figures(found: Measured, context: int) -> dict[str, Any]:
    """For people and --json: the kind of each layer's keys and values."""
    layers = [{"keys": key, "values": value} for key, value in found.arrangement.layers]
    return {**found.figures, "bytes_per_token": found.bytes / context, "layers": layers}
