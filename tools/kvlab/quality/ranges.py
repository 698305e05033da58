"""Why int4 keys need channels: how far each channel of the keys reaches, and what one int4 step is in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvlab.models.reference import Reference

from . import codecs
from .kinds import BLOCK, Shape

Array = NDArray[Any]


@dataclass(frozen=True)
class Ranges:
    """(layers, width) each. Magnitudes of the keys as they are stored, over all tokens."""

    low: Array  # 5th percentile
    high: Array  # 95th percentile
    constant: Array  # magnitude of the mean: what every key carries there
    spread: Array  # standard deviation within a block of 16 tokens, its mean
    token_step: Array  # step of int4 with one scale for a token's group: the mean
    channel_step: Array  # step of int4 with a minimum, per channel over a block: the mean

    def ratio(self) -> Array:
        """(layers,): the largest channel's constant over the median channel's."""
        out: Array = self.constant.max(1) / np.maximum(np.median(self.constant, axis=1), 1e-30)
        return out


def key_ranges(model: Reference, passages: Sequence[Sequence[int]]) -> Ranges:
    """Of passages of BLOCK tokens at least. codecs.Refused for keys that no scale reaches."""
    c = model.config
    shape = Shape.of(c.kv_heads, c.head_dim)
    seen: list[list[Array]] = [[] for _ in range(c.layers)]

    def watch(layer: int, _q: Array, k: Array, _v: Array) -> None:
        whole = len(k) // BLOCK * BLOCK
        seen[layer].append(np.asarray(k[:whole], np.float32).reshape(-1, BLOCK, shape.width))

    for ids in passages:
        model.forward(ids, watch=watch)
    rows = [_of_layer(np.concatenate(blocks), shape) for blocks in seen]
    return Ranges(*(np.stack(column) for column in zip(*rows, strict=True)))


def _of_layer(blocks: Array, shape: Shape) -> tuple[Array, ...]:
    """blocks (n, BLOCK, width) of one layer -> a row of each field."""
    flat = blocks.reshape(-1, shape.width)
    low, high = np.percentile(flat, [5, 95], axis=0)
    by_token = codecs.symmetric(flat.reshape(-1, shape.groups, shape.group), 7).scales.astype(np.float64)
    by_channel = codecs.ranged(blocks, axis=1).scales.astype(np.float64)
    return (
        low,
        high,
        np.abs(flat.mean(0)),
        blocks.std(axis=1).mean(0),
        np.repeat(by_token.mean(0), shape.group),
        by_channel.mean(0),
    )
