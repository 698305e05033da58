"""What is drawn, and what is computed of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

DOMAIN = 32.0  # sum of |q_i k_i| / sqrt(head_dim), at most


@dataclass
class Drawn:
    """Inputs of one cache, all float32: keys and values (tokens, head_dim), queries (queries, head_dim).

    sinks: how many of the first tokens are; of 0 the cache has a capacity."""

    keys: Array
    values: Array
    queries: Array
    sinks: int = 0
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return int(self.keys.shape[0])

    @property
    def head_dim(self) -> int:
        return int(self.keys.shape[1])


@dataclass
class Case:
    """Inputs for an element type; value_sets: (layers, tokens, head_dim), all with the same keys."""

    codec: str
    keys: Array
    value_sets: Array
    queries: Array
    sinks: int = 0

    @classmethod
    def of(cls, codec: str, drawn: Drawn) -> Case:
        return cls(codec, drawn.keys, drawn.values[None], drawn.queries, drawn.sinks)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the result: layers, queries, head_dim."""
        queries, head_dim = self.queries.shape
        return len(self.value_sets), queries, head_dim

    @property
    def line(self) -> str:
        """As boards/apps/bench/accuracy.py reads it."""
        tokens, head_dim = self.keys.shape
        heads, layers = len(self.queries), len(self.value_sets)
        return f"{self.codec} {head_dim} {heads} {tokens} {self.sinks} {layers}"

    @property
    def data(self) -> bytes:
        return b"".join(
            np.ascontiguousarray(x, "<f4").tobytes() for x in (self.keys, self.value_sets, self.queries)
        )


def within(keys: Array, queries: Array) -> Array:
    """The queries, each made smaller where it would leave the domain."""
    most = (np.abs(queries) @ np.abs(keys).T).max(-1) / np.sqrt(keys.shape[1])
    found: Array = queries * np.minimum(1, 0.98 * DOMAIN / np.maximum(most, 1e-300))[:, None]
    return found
