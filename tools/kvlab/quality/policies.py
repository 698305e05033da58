"""Which token leaves when a sequence may keep only `budget` of them: one table of tokens for all layers.

A policy watches the attention of every step and names the slot to overwrite. Age is a count of steps, never
a clock; whatever else is equal, the older token leaves, so that one order of tokens decides everything. Here
many sequences run side by side in lockstep, a row of each array per sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# A token is used in a step when the heads of all layers give it more than USE / n in the mean, n tokens being
# visible; or, which needs no sums, when some head of some layer gives it more than PEAK_USE / n. With USE / n
# and any head nearly every token is used in every step, and LRU forgets just what a window does.
USE = 0.5
PEAK_USE = 8
DECAY = 0.95  # a step, of what lfu-decay has added up
SINKS = 4  # that the policy `sinks` keeps


class Table:
    """What a policy knows of the tokens of B sequences: arrays (B, capacity), `count` slots filled."""

    def __init__(self, sequences: int, capacity: int) -> None:
        self.count = 0
        self.step = 0  # tokens seen so far: the position of the next one
        self.position = np.full((sequences, capacity), -1, np.int64)
        self.used = np.zeros((sequences, capacity), np.int64)  # step of the last use; at first its own
        self.peaked = np.zeros((sequences, capacity), np.int64)  # the same by PEAK_USE
        self.mass = np.zeros((sequences, capacity), np.float64)  # attention received, mean of all heads
        self.decayed = np.zeros((sequences, capacity), np.float64)

    def insert(self, slot: Array) -> None:
        """The next token of each sequence takes `slot` (B,); what lay there is forgotten."""
        rows = np.arange(len(slot))
        self.count = max(self.count, int(slot.max()) + 1)
        self.position[rows, slot] = self.used[rows, slot] = self.peaked[rows, slot] = self.step
        self.mass[rows, slot] = self.decayed[rows, slot] = 0
        self.step += 1

    def watch(self, most: Array, mean: Array) -> None:
        """The weights of one step, (B, count): the largest of any head in any layer, and the mean of all."""
        n = self.count
        self.used[:, :n][mean > USE / n] = self.step - 1
        self.peaked[:, :n][most > PEAK_USE / n] = self.step - 1
        self.mass[:, :n] += mean
        self.decayed *= DECAY
        self.decayed[:, :n] += mean

    def keep(self, slots: Array) -> None:
        """Only `slots` (B, m) stay, in that order."""
        for array in (self.position, self.used, self.peaked, self.mass, self.decayed):
            kept = np.take_along_axis(array, slots, axis=1)
            array[:, : slots.shape[1]] = kept
        self.count = slots.shape[1]


Worth = Callable[[Table], Array]  # (B, capacity): of each token; the least worthy leaves


@dataclass(frozen=True)
class Policy:
    """The least worthy token leaves, of equals the older; sinks and the newest tokens never do.

    recent: what of the budget protects the newest tokens; of any budget at least one token, the newest.
    near: see teacher.View.
    """

    name: str
    worth: Worth
    recent: float = 0.0
    sinks: int = 0
    near: bool = False

    def protected(self, budget: int) -> int:
        """How many of the newest tokens stay whatever they are worth."""
        return max(1, int(budget * self.recent))

    def victims(self, table: Table, budget: int) -> Array:
        """(B,) slots to overwrite in a full table."""
        order = leaving(table, self.worth(table), self.protected(budget), self.sinks)
        return order[:, 0]


def leaving(table: Table, worth: Array, protect_last: int, sinks: int = 0) -> Array:
    """(B, count) filled slots, the first to leave first; those of protected tokens last, by position."""
    n = table.count
    position = table.position[:, :n]
    safe = (position >= table.step - protect_last) | (position < sinks)
    key = np.where(safe, np.inf, worth[:, :n].astype(np.float64))
    return np.lexsort((position, key))


def keep_count(tokens: int, ratio: float) -> int:
    """How many of `tokens` tokens stay at a ratio above 0, up to 1: to nearest, at least one. ValueError."""
    if not 0 < ratio <= 1:
        raise ValueError(f"keep ratio {ratio}: above 0, at most 1")
    return max(1, int(tokens * ratio + 0.5))


def compress(table: Table, ratio: float, worth: Worth, protect_last: int = 0, sinks: int = 0) -> Array:
    """Once, after a prefill: keep the worthiest `keep_count` of the tokens there, and sinks and the newest
    `protect_last` in any case; protect_last 0 protects none.

    Returns (B, m) slots that stay, in the order of positions, and leaves only them in the table.
    """
    n = table.count
    order = leaving(table, worth(table), protect_last, sinks)
    position = table.position[:, :n]
    safe = ((position >= table.step - protect_last) | (position < sinks)).sum(1)
    stay = max(keep_count(n, ratio), int(safe.max(initial=0)))
    kept = order[:, n - stay :]
    by_age = np.argsort(np.take_along_axis(position, kept, axis=1), axis=1)
    kept = np.take_along_axis(kept, by_age, axis=1)
    table.keep(kept)
    return kept


def position(table: Table) -> Array:
    return table.position


def used(table: Table) -> Array:
    return table.used


def peaked(table: Table) -> Array:
    return table.peaked


def mass(table: Table) -> Array:
    return table.mass


def decayed(table: Table) -> Array:
    return table.decayed


HALF = 0.5

POLICIES = {
    policy.name: policy
    for policy in (
        Policy("window", position),
        Policy("sinks", position, sinks=SINKS),
        Policy("sinks-near", position, sinks=SINKS, near=True),
        Policy("lru-attention", used),
        Policy("lru-peak", peaked),
        Policy("window-lru", used, recent=HALF),
        Policy("lfu", mass),
        Policy("lfu-decay", decayed, recent=HALF),
        Policy("heavy-hitters", mass, recent=HALF),
    )
}

TITLES = {
    "window": "sliding window: the oldest leaves",
    "sinks": f"{SINKS} sinks + window",
    "sinks-near": f"{SINKS} sinks, scored as if near, + window",
    "lru-attention": "LRU by attention",
    "lru-peak": "LRU by the strongest head",
    "window-lru": "half window + LRU by attention",
    "lfu": "LFU: attention added up",
    "lfu-decay": f"half window + LFU, decay {DECAY:g}",
    "heavy-hitters": "half window + attention added up (heavy hitters)",
}
