"""Inputs of every kind of weights, each a function of a numpy Generator, a head_dim and a number of tokens.

None for the number has the generator draw one of the distribution's own range. Where weights are prescribed,
keys lie along one direction of space, as far as the scores want, with some noise beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kvlab.bench.accuracy import HEAD_DIMS, TITLES
from kvlab.bench.accuracy.inputs import Array, Drawn, levelled, within

Generator = np.random.Generator
Draw = Callable[[Generator, int, int], Drawn]

QUERIES = 4  # of a cache
_MOST_NUMBERS = 1 << 20  # keys of a cache, unless the tokens are given
_OF_SEVERAL = 0.25  # of the caches have several KV heads, of _WIDTH values or less; a query each
_WIDTH = 32


class Distribution(NamedTuple):
    """least, most: tokens that are drawn, evenly in their logarithm; fewest: that it takes at all. measure:
    the error that is searched for, a name of reference.Errors. adversary: values are then replaced by those
    of adversary.py. bounded: within the domain."""

    name: str
    draw: Draw
    least: int
    most: int
    measure: str = "l2"
    adversary: bool = False
    fewest: int = 1
    bounded: bool = True

    def inputs(self, seed: int, head_dim: int | None = None, tokens: int | None = None) -> Drawn:
        """Those of a seed: always the same."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        drawn = int(rng.choice(HEAD_DIMS))
        head_dim = drawn if head_dim is None else head_dim
        kv_heads = 1
        if not self.adversary and rng.random() < _OF_SEVERAL:
            kv_heads = int(2 ** rng.integers(1, max(2, (_WIDTH // head_dim).bit_length())))
        if (tokens or 1) * head_dim * kv_heads > _MOST_NUMBERS:
            kv_heads = 1
        most = max(self.least, min(self.most, _MOST_NUMBERS // (head_dim * kv_heads)))
        number = round(float(np.exp(rng.uniform(np.log(self.least), np.log(most)))))
        heads = [self.draw(rng, head_dim, number if tokens is None else tokens) for _ in range(kv_heads)]
        count = 1 if kv_heads > 1 else QUERIES
        keys = np.concatenate([head.keys for head in heads], 1)
        values = np.concatenate([head.values for head in heads], 1)
        if self.bounded:
            keys, values = levelled(keys, kv_heads), levelled(values, kv_heads)
        parts = zip(np.split(keys, kv_heads, 1), heads, strict=True)
        queries = np.concatenate(
            [(within(of, head.queries) if self.bounded else head.queries)[:count] for of, head in parts]
        )
        keys, values, queries = (np.asarray(x, np.float32) for x in (keys, values, queries))
        return Drawn(keys, values, queries, heads[0].sinks, kv_heads)


DISTRIBUTIONS: dict[str, Distribution] = {}


def _of(name: str, least: int, most: int, measure: str = "l2", **more: Any) -> Callable[[Draw], Draw]:
    def enter(draw: Draw) -> Draw:
        assert name in TITLES
        DISTRIBUTIONS[name] = Distribution(name, draw, least, most, measure, **more)
        return draw

    return enter


def _values(rng: Generator, tokens: int, head_dim: int) -> Array:
    """Around zero or around something else, as large as comes."""
    x = rng.normal(size=(tokens, head_dim)) + rng.choice([0.0, 0.3, 1.0])
    found: Array = x * 2 ** rng.uniform(-2, 2)
    return found


def _along(
    rng: Generator, places: Array, gains: Array, head_dim: int, noise: float = 0.0
) -> tuple[Array, Array]:
    """Keys and queries for which token j has the score gains[i] * places[j] under query i, noise aside."""
    direction = rng.normal(size=head_dim)
    direction /= np.linalg.norm(direction)
    keys = places[:, None] * direction + noise * rng.normal(size=(len(places), head_dim))
    return keys, np.sqrt(head_dim) * gains[:, None] * direction


def _odds(share: Array, heavy: int, light: int) -> Array:
    """By how much the scores of `heavy` tokens lie above those of `light` ones, that they have this share."""
    found: Array = np.log(share / (1 - share) * light / heavy)
    return found


@_of("normal", 1, 512)
def normal(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    keys = rng.normal(size=(tokens, head_dim))
    return Drawn(keys, _values(rng, tokens, head_dim), rng.normal(size=(QUERIES, head_dim)))


@_of("peaked", 2, 512)
def peaked(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    found = normal(rng, head_dim, tokens)
    found.queries *= 2 ** rng.uniform(1, 4, size=(QUERIES, 1))
    return found


@_of("heavy", 2, 64, fewest=2)
def heavy(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """One token with a share of 0.01 to 0.99 at any place, all others alike or nearly so."""
    places = np.zeros(tokens)
    places[rng.integers(tokens)] = 2 ** rng.uniform(-1, 1)
    return with_share(rng, places, rng.uniform(0.01, 0.99, QUERIES), head_dim, rng.choice([0, 0.05]))


def with_share(rng: Generator, places: Array, shares: Array, head_dim: int, noise: float = 0.0) -> Drawn:
    """Tokens whose places are not 0, all alike, have one of `shares` under each query."""
    far = int(np.count_nonzero(places))
    gains = _odds(shares, far, max(1, len(places) - far)) / places.max()
    keys, queries = _along(rng, places, gains, head_dim, noise)
    values = _values(rng, len(places), head_dim)
    return Drawn(keys, values, queries)


@_of("tails", 64, 65536, fewest=2)
def tails(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """One to eight heavy tokens and a flat tail, or weights that fall with the rank to some power."""
    if rng.random() < 0.5:
        places = np.zeros(tokens)
        places[rng.choice(tokens, min(tokens - 1, int(rng.integers(1, 9))), replace=False)] = 1
        return with_share(rng, places, rng.uniform(0.01, 0.99, QUERIES), head_dim, rng.choice([0, 0.02]))
    places = -np.log(1 + np.arange(tokens)) / np.log(tokens)
    if rng.random() < 0.5:
        rng.shuffle(places)
    powers = rng.uniform(0.5, 1.5, QUERIES)
    keys, queries = _along(rng, places, powers * np.log(tokens), head_dim)
    return Drawn(keys, _values(rng, tokens, head_dim), queries)


@_of("clusters", 8, 1024, fewest=2)
def clusters(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """Tokens of two scores, up to 14 apart: one after the other or mixed."""
    near = np.clip(round(tokens * 2 ** rng.uniform(-6, -1)), 1, tokens - 1)
    places = (np.arange(tokens) < near).astype(float)
    if rng.random() < 0.5:
        rng.shuffle(places)
    keys, queries = _along(rng, places, rng.uniform(0, 14, QUERIES), head_dim, rng.choice([0, 0.05]))
    return Drawn(keys, _values(rng, tokens, head_dim), queries)


@_of("sinks", 16, 512, fewest=6)
def sinks(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """A window with four sinks that have a share of 0.5 to 0.99."""
    places = np.zeros(tokens)
    places[:4] = 1
    found = with_share(rng, places, rng.uniform(0.5, 0.99, QUERIES), head_dim, rng.choice([0, 0.05]))
    found.sinks = 4
    return found


_PLAIN = (normal, peaked, heavy, clusters)


@_of("constant", 1, 65536, "codes")
def constant(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """One value in all tokens: it must come back, whatever the weights."""
    kinds = (*_PLAIN, tails) if tokens > 8 else _PLAIN[:1]
    found = kinds[rng.integers(len(kinds))](rng, head_dim, tokens)
    row = rng.normal(size=head_dim) * 2 ** rng.uniform(-2, 2)
    found.values = np.tile(row, (tokens, 1))
    return found


@_of("against", 2, 64, adversary=True, fewest=2)
def against(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """Values of one magnitude, whose signs adversary.py chooses."""
    kinds = _PLAIN if tokens > 8 else (normal, peaked, heavy)
    found = kinds[rng.integers(len(kinds))](rng, head_dim, tokens)
    found.values = np.full((tokens, head_dim), 2 ** rng.uniform(0, 1))
    return found


@_of("far", 2, 256, "of_output")
def far(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """Keys or values, or both, whose sizes spread up to 1,024 times; or large keys in a channel that the
    query does not see."""
    found = normal(rng, head_dim, tokens)
    kind = rng.integers(4)
    most = rng.uniform(0, 10)

    def sizes() -> Array:
        if rng.random() < 0.5:
            one = np.ones((tokens, 1))
            one[rng.integers(tokens)] = 2**most
            return one
        return 2 ** rng.uniform(0, most, size=(tokens, 1))

    if kind != 1:
        hidden = kind == 3 and head_dim > 1
        if hidden:
            found.keys[:, :1] = sizes() * rng.choice([-1, 1], size=(tokens, 1))
            found.queries[:, 0] = 0
        else:
            found.keys *= sizes()
        found.queries *= 2 ** rng.uniform(0, 6, size=(QUERIES, 1))
    if kind in (1, 2):
        found.values = rng.normal(size=found.values.shape) * sizes()
    return found


@_of("tiny", 1, 256)
def tiny(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """Values, and half of the time keys, so small that float16 scales of int8 have no full mantissa."""
    found = normal(rng, head_dim, tokens)
    found.values *= 127 * 2 ** rng.uniform(-24, -14) / np.abs(found.values).max()
    if rng.random() < 0.5:
        smaller = 127 * 2 ** rng.uniform(-24, -14) / np.abs(found.keys).max()
        found.keys *= smaller
        found.queries /= smaller
    return found


@_of("beyond", 2, 256, "of_output", bounded=False)
def beyond(rng: Generator, head_dim: int, tokens: int) -> Drawn:
    """Outside of the domain, and stored all the same."""
    found = normal(rng, head_dim, tokens)
    found.keys *= 2 ** rng.uniform(-10, 10, size=(tokens, 1))
    if rng.random() < 0.5:
        found.values = rng.normal(size=found.values.shape) * 2 ** rng.uniform(-10, 10, size=(tokens, 1))
    reach = (np.abs(found.queries) @ np.abs(found.keys).T).max(-1) / np.sqrt(head_dim)
    found.queries *= (2 ** rng.uniform(5, 10, size=QUERIES) / reach)[:, None]
    return found


assert DISTRIBUTIONS.keys() == TITLES.keys()
