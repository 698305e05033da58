"""Passages token by token through the float model, some of their tokens evicted by a policy.

Passages of one length run side by side. Keys are stored rotated at their own position and never again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvlab.models.reference import Reference

from .policies import Policy, Table

Array = NDArray[Any]

Store = Callable[[int, Array, Array], tuple[Array, Array]]  # (layer, k, v) -> as read back; (B, kv_heads, d)
Slots = Callable[[Table], Array]  # where the next token of each sequence goes, (B,)
After = Callable[["Run"], None]


class Run:
    """B sequences at the same position, and the keys and values they keep in `capacity` slots."""

    def __init__(self, model: Reference, sequences: int, capacity: int, store: Store | None = None) -> None:
        c = model.config
        self.model = model
        self.table = Table(sequences, capacity)
        self.store = store
        shape = (c.layers, sequences, c.kv_heads, capacity, c.head_dim)
        self.k = np.zeros(shape, model.dtype)
        self.v = np.zeros(shape, model.dtype)

    def step(self, tokens: Array, slot: Array) -> Array:
        """Take one token of each sequence in, at `slot`; returns what the classifier reads: (B, dim)."""
        m, c, table = self.model, self.model.config, self.table
        rows = np.arange(len(tokens))
        at = np.full(len(tokens), table.step)
        table.insert(slot)
        n = table.count
        most = np.zeros((len(tokens), n), m.dtype)
        mean = np.zeros_like(most)
        x = m.w.embed[tokens]
        for layer in range(c.layers):
            q, k, v = m.project(layer, x)
            q, k = m.rotate(q, at), m.rotate(k, at)
            if self.store is not None:
                k, v = self.store(layer, k, v)
            self.k[layer][rows, :, slot], self.v[layer][rows, :, slot] = k, v
            weights, mixed = self._attend(layer, q, n)
            np.maximum(most, weights.max(1), out=most)
            mean += weights.mean(1)
            x = m.finish(layer, x, mixed)
        table.watch(most, mean / c.layers)
        return x

    def _attend(self, layer: int, q: Array, n: int) -> tuple[Array, Array]:
        """q (B, heads, d) over the first n slots: weights (B, heads, n), output (B, dim)."""
        c = self.model.config
        grouped = (q / self.model.dtype.type(np.sqrt(c.head_dim))).reshape(len(q), c.kv_heads, -1, c.head_dim)
        weights = grouped @ self.k[layer, :, :, :n].transpose(0, 1, 3, 2)
        weights -= weights.max(-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(-1, keepdims=True)
        mixed = weights @ self.v[layer, :, :, :n]
        return weights.reshape(len(q), c.heads, n), mixed.reshape(len(q), c.dim)

    def keep(self, slots: Array) -> None:
        """Move what lies in `slots` (B, m) to the front; the table has done so already."""
        for array in (self.k, self.v):
            kept = np.take_along_axis(array, slots[None, :, None, :, None], axis=3)
            array[:, :, :, : slots.shape[1]] = kept


def evicting(policy: Policy, budget: int) -> Slots:
    """Fill `budget` slots in order, then overwrite what the policy gives up."""

    def slot(table: Table) -> Array:
        if table.count < budget:
            return np.full(len(table.position), table.count)
        return policy.victims(table, budget)

    return slot


def growing(table: Table) -> Array:
    """Each token a slot of its own."""
    return np.full(len(table.position), table.count)


def hidden(
    model: Reference,
    passages: Sequence[Sequence[int]],
    capacity: int,
    slots: Slots,
    after: After | None = None,
    done: Callable[[], None] = lambda: None,
    store: Store | None = None,
) -> Array:
    """What the classifier reads after each token of passages of equal length: (B, T, dim).

    `after(run)` follows each step; `done()` too.
    """
    tokens = np.array(passages, np.int64)
    run = Run(model, len(tokens), capacity, store)
    out = np.empty((*tokens.shape, model.config.dim), model.dtype)
    for at in range(tokens.shape[1]):
        out[:, at] = run.step(tokens[:, at], slots(run.table))
        if after is not None:
            after(run)
        done()
    return out
