"""What is drawn, and what is computed of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpy_kv.geometry import default_group

Array = NDArray[Any]

# The domain: sum of |q_i k_i| / sqrt(head_dim), at most; how many times one another scales may be.
DOMAIN = 32.0
RATIO = 1024.0


@dataclass
class Drawn:
    """Inputs of one cache, all float32: keys and values (tokens, kv_heads * head_dim), queries (queries,
    head_dim), as many for each KV head.

    sinks: how many of the first tokens are; of 0 the cache has a capacity."""

    keys: Array
    values: Array
    queries: Array
    sinks: int = 0
    kv_heads: int = 1

    @property
    def tokens(self) -> int:
        return int(self.keys.shape[0])

    @property
    def head_dim(self) -> int:
        return int(self.queries.shape[1])


@dataclass
class Case:
    """Inputs for an element type; value_sets: (layers, tokens, kv_heads * head_dim), with the same keys."""

    codec: str
    keys: Array
    value_sets: Array
    queries: Array
    sinks: int = 0
    kv_heads: int = 1

    @classmethod
    def of(cls, codec: str, drawn: Drawn) -> Case:
        return cls(codec, drawn.keys, drawn.values[None], drawn.queries, drawn.sinks, drawn.kv_heads)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the result: layers, queries, head_dim."""
        queries, head_dim = self.queries.shape
        return len(self.value_sets), queries, head_dim

    @property
    def line(self) -> str:
        """As boards/apps/bench/accuracy.py reads it."""
        heads, head_dim = self.queries.shape
        tokens, layers = len(self.keys), len(self.value_sets)
        return f"{self.codec} {heads} {self.kv_heads} {head_dim} {tokens} {self.sinks} {layers}"

    @property
    def data(self) -> bytes:
        return b"".join(
            np.ascontiguousarray(x, "<f4").tobytes() for x in (self.keys, self.value_sets, self.queries)
        )


def levelled(rows: Array, kv_heads: int) -> Array:
    """Keys or values (tokens, kv_heads * head_dim), with groups made larger whose scale is too small."""
    groups = rows.reshape(len(rows), -1, default_group(kv_heads, rows.shape[1] // kv_heads))
    top = np.abs(groups).max(-1, keepdims=True)
    least = top.max() / (0.98 * RATIO)
    found: Array = groups * np.where((top > 0) & (top < least), least / np.where(top > 0, top, 1), 1)
    return found.reshape(rows.shape)


def within(keys: Array, queries: Array) -> Array:
    """The queries, each made smaller where it would leave the domain."""
    most = (np.abs(queries) @ np.abs(keys).T).max(-1) / np.sqrt(keys.shape[1])
    found: Array = queries * np.minimum(1, 0.98 * DOMAIN / np.maximum(most, 1e-300))[:, None]
    return found
