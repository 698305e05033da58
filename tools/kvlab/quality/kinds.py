"""Element types of keys and values: what a query reads back, and how many bytes are stored.

A codec of a cache is a pair of them, one for keys and one for values; an arrangement has a pair a layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kvlab import element_types
from mpy_kv.geometry import default_group

from . import codecs, sealed
from .defaults import OPEN_FLOAT16, WARNING

Array = NDArray[Any]

BLOCK = 16  # tokens that are sealed together
FRESH_BLOCKS = 2  # the open block and the newest full one, which are not sealed yet


@dataclass(frozen=True)
class Shape:
    """Of one token's keys or values in one layer; group: values that share a scale."""

    kv_heads: int
    head_dim: int
    group: int

    @classmethod
    def of(cls, kv_heads: int, head_dim: int) -> Shape:
        """With the group that the device takes."""
        return cls(kv_heads, head_dim, default_group(kv_heads, head_dim))

    @property
    def width(self) -> int:
        return self.kv_heads * self.head_dim

    @property
    def groups(self) -> int:
        return self.width // self.group

    @property
    def run(self) -> int:
        """Values of one head with one scale: their codes lie together and start on a whole byte."""
        return min(self.group, self.head_dim)

    @property
    def runs(self) -> int:
        return self.width // self.run


class Seen(NamedTuple):
    """Keys or values as queries read them back, float32 like what was given.

    new: by queries of the token's own block and the next; old: by later ones. The same but for sealed types.
    """

    new: Array
    old: Array


class Bytes(NamedTuple):
    """exact: of codes, bitmaps, scales and minima. allocated: with all that an array of them pads."""

    exact: int
    allocated: int

    def times(self, count: int) -> Bytes:
        return Bytes(self.exact * count, self.allocated * count)

    def plus(self, other: Bytes) -> Bytes:
        return Bytes(self.exact + other.exact, self.allocated + other.allocated)


NOTHING = Bytes(0, 0)


def _words(count: int) -> int:
    return -(-count // 4) * 4


def _codes(shape: Shape, bits: int) -> Bytes:
    """A row of codes: each run takes whole bytes, and of memory whole words."""
    run = -(-shape.run * bits // 8)
    return Bytes(run, _words(run)).times(shape.runs)


def _halves(count: int) -> Bytes:
    """Scales and minima lie in tables of their own, which pad nothing worth counting for each token."""
    return Bytes(2 * count, 2 * count)


@dataclass(frozen=True)
class Plain:
    """Stored once and for all when its token comes.

    store: (T, groups, group) float32 -> the values read back. row: bytes of a token.
    """

    name: str
    store: Callable[[Array], Array]
    row: Callable[[Shape], Bytes]

    def read(self, x: Array, shape: Shape) -> Seen:
        """x (T, kv_heads, head_dim) float32. codecs.Refused where it cannot be stored."""
        stored = self.store(x.reshape(len(x), shape.groups, shape.group))
        back = stored.astype(np.float32).reshape(x.shape)
        return Seen(back, back)

    def bytes(self, tokens: int, shape: Shape, sinks: int = 0) -> Bytes:
        """Of `tokens` committed tokens."""
        return self.row(shape).times(tokens)


@dataclass(frozen=True)
class Sealed:
    """int4 with minima by blocks of BLOCK tokens, made from what `fresh` reads back once the block is neither
    the open one nor the newest full one. The first `sinks` tokens stay fresh; blocks are counted after them.

    channels: a group is one channel of the block (keys), else one token's `group` values (values). From int8
    keys are sealed as the device seals them, in steps of a power of two a group (quality/sealed.py).
    """

    name: str
    fresh: Plain
    channels: bool

    @property
    def powers(self) -> bool:
        """Whether a block has a power of two for each group besides two numbers for each channel."""
        return self.channels and self.fresh is INT8

    def read(self, x: Array, shape: Shape, sinks: int = 0) -> Seen:
        """As Plain.read. Tokens of an unfinished last block have no old form: it is the new one."""
        new = self.fresh.read(x, shape).new
        old = new.copy()
        count = (len(x) - sinks) // BLOCK * BLOCK
        if count > 0:
            whole = x if self.fresh is INT8 else new
            whole = whole[sinks : sinks + count]
            old[sinks : sinks + count] = self._sealed(whole, shape).reshape(whole.shape)
        return Seen(new, old)

    def _sealed(self, x: Array, shape: Shape) -> Array:
        """x: what fresh reads back; where that is int8, what it was given."""
        if self.fresh is INT8:
            rows = codecs.symmetric(x.reshape(-1, BLOCK, shape.groups, shape.group))
            values = sealed.keys(rows).values() if self.channels else sealed.values(rows).values()
        elif self.channels:
            values = codecs.ranged(x.reshape(-1, BLOCK, shape.width), axis=1).values()
        else:
            values = codecs.ranged(x.reshape(-1, shape.groups, shape.group)).values()
        return values.astype(np.float32)

    def bytes(self, tokens: int, shape: Shape, sinks: int = 0) -> Bytes:
        """Of `tokens` committed tokens. Allocated is what a cache for that many must have: fresh rows for the
        sinks and FRESH_BLOCKS blocks, sealed ones for all blocks but the newest.
        """
        first = min(sinks, tokens)
        rest = tokens - first
        row, block = self.fresh.row(shape), self.block(shape)
        sealed = max(0, rest // BLOCK - 1)
        exact = row.times(first + rest - BLOCK * sealed).plus(block.times(sealed)).exact
        blocks = -(-rest // BLOCK)
        fresh = first + BLOCK * min(FRESH_BLOCKS, blocks)
        return Bytes(exact, row.times(fresh).plus(block.times(max(0, blocks - 1))).allocated)

    def block(self, shape: Shape) -> Bytes:
        """Of one sealed block."""
        groups = shape.width if self.channels else BLOCK * shape.groups
        return _codes(shape, 4).times(BLOCK).plus(_halves(2 * groups + self.powers * shape.groups))


Kind = Plain | Sealed


def _sparse_row(shape: Shape) -> Bytes:
    codes = -(-shape.group // 8) + codecs.kept_count(shape.group)
    return Bytes(codes, _words(codes)).times(shape.groups).plus(_halves(shape.groups))


def _unscaled(bits: int) -> Callable[[Shape], Bytes]:
    def row(shape: Shape) -> Bytes:
        head = shape.head_dim * bits // 8
        return Bytes(head, _words(head)).times(shape.kv_heads)

    return row


def _scaled(bits: int) -> Callable[[Shape], Bytes]:
    """Codes of `bits` bits, and for each group a scale."""
    return lambda shape: _codes(shape, bits).plus(_halves(shape.groups))


FLOAT32 = Plain("float32", lambda x: x, _unscaled(32))
FLOAT16 = Plain("float16", codecs.half, _unscaled(16))
INT8 = Plain("int8", lambda x: codecs.symmetric(x).values(), _scaled(8))
INT4 = Plain("int4", lambda x: codecs.symmetric(x, 7).values(), _scaled(4))
NAIVE = Plain(WARNING, INT4.store, INT4.row)  # of keys, which it ruins
_BLOCKS, _BLOCKS_OF_FLOAT16 = "int4-sealed", "int4-sealed-float16"
SPARSE = Plain("sparse", lambda x: codecs.sparse(x).values(), _sparse_row)


def _named(*kinds: Kind) -> dict[str, Kind]:
    return {kind.name: kind for kind in kinds}


KEYS = _named(
    *(FLOAT32, FLOAT16, INT8, NAIVE),
    *(Sealed(_BLOCKS, INT8, True), Sealed(_BLOCKS_OF_FLOAT16, FLOAT16, True)),
)
VALUES = _named(
    *(FLOAT32, FLOAT16, INT8, INT4, SPARSE),
    *(Sealed(_BLOCKS, INT8, False), Sealed(_BLOCKS_OF_FLOAT16, FLOAT16, False)),
)

# The element types of a cache by name: those of its keys and of its values.
_OF_BITS = {32: FLOAT32.name, 16: FLOAT16.name, 8: INT8.name, 7: SPARSE.name, 4: INT4.name}


def _pairs() -> Iterator[tuple[str, tuple[str, str]]]:
    """The types that a device has, with what no device has beside what it is like."""
    for name, of in element_types.TYPES.items():
        if name == element_types.SEALED:
            yield name, (_BLOCKS, _BLOCKS)
            yield OPEN_FLOAT16, (_BLOCKS_OF_FLOAT16, _BLOCKS_OF_FLOAT16)
        else:
            yield name, (_OF_BITS[of.k_bits], _OF_BITS[of.v_bits])
    yield WARNING, (NAIVE.name, INT4.name)


CODECS = dict(_pairs())

Pair = tuple[str, str]  # names of the kinds of one layer's keys and values


@dataclass(frozen=True)
class Arrangement:
    """The kinds of each layer's keys and values, and the shape they store."""

    layers: tuple[Pair, ...]
    shape: Shape

    @classmethod
    def uniform(cls, codec: str, layers: int, shape: Shape) -> Arrangement:
        return cls.of((codec,) * layers, shape)

    @classmethod
    def of(cls, codecs: Iterable[str], shape: Shape) -> Arrangement:
        """Of a codec a layer."""
        return cls(tuple(CODECS[codec] for codec in codecs), shape)

    def kinds(self) -> Iterable[tuple[Kind, Kind]]:
        return ((KEYS[key], VALUES[value]) for key, value in self.layers)

    def bytes(self, tokens: int, sinks: int = 0) -> Bytes:
        """Of `tokens` committed tokens in all layers."""
        total = NOTHING
        for pair in self.kinds():
            for kind in pair:
                total = total.plus(kind.bytes(tokens, self.shape, sinks))
        return total

    @property
    def name(self) -> str:
        """Tells any two apart."""
        s = self.shape
        pairs = " ".join(f"{key}/{value}" for key, value in self.layers)
        return f"{pairs} {s.kv_heads}x{s.head_dim} g{s.group}"
