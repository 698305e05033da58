"""Inputs whose right results are known, each hard for integers in its own way; what steps must not change."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kvlab.bench.accuracy import reference
from kvlab.bench.accuracy.inputs import Array, Case, Drawn
from kvlab.bench.accuracy.runner import Run, on_unix

# What counts as right: an L2 error of the values' RMS norm; an excess over a channel's largest magnitude.
WITHIN, BEYOND = 0.01, 0.005


@dataclass(frozen=True)
class Known:
    """`right`: the result of channel `channel` in exact numbers, whatever the element type, but for what its
    codes round. codec: the type it was found with."""

    name: str
    what: str
    codec: str
    make: Callable[[], Drawn]
    right: float
    channel: int = 0

    def case(self, codec: str | None = None) -> Case:
        return Case.of(codec or self.codec, self.make())


@dataclass(frozen=True)
class Found:
    """What the package computes of one, and float64 over what it stores."""

    known: Known
    codec: str
    reference: float
    result: float
    off: float  # L2, a part of the values' RMS norm
    excess: float  # beyond the largest stored magnitude of a channel, a part of that

    @property
    def good(self) -> bool:
        return self.off <= WITHIN and self.excess <= BEYOND


def computed(pairs: Sequence[tuple[Known, str]], run: Run = on_unix) -> list[Found]:
    """Each of the inputs, in each element type named."""
    cases = [known.case(codec) for known, codec in pairs]
    found = []
    for (known, codec), case, got in zip(pairs, cases, run(cases), strict=True):
        errors = reference.errors(case, got)
        want = reference.attention(case)[0, 0, known.channel]
        off, excess = float(errors.l2[0, 0]), float(errors.excess[0, 0])
        found.append(Found(known, codec, float(want), float(got[0, 0, known.channel]), off, excess))
    return found


def _rows(*rows: Sequence[float]) -> Array:
    return np.array(rows, np.float32)


def _light_against_heavy() -> Drawn:
    keys = _rows([0], *[[-5.58]] * 7)
    return Drawn(keys, _rows([1], *[[-1]] * 7), _rows([1]))


def _tail(tokens: int, share: float, first: float = 0.0) -> Callable[[], Drawn]:
    """The first token has that share and the value `first`; all others are alike, with the value 1."""

    def make() -> Drawn:
        keys, values = np.zeros((tokens, 4), np.float32), np.ones((tokens, 4), np.float32)
        keys[0, 0] = 1
        values[0] = first
        return Drawn(keys, values, _rows([2 * np.log((tokens - 1) * share / (1 - share)), 0, 0, 0]))

    return make


def _key_far_off() -> Drawn:
    keys = _rows([0, 1024], [0.71, 0], [0.6, 0])
    return Drawn(keys, _rows([0, 0], [1, 1], [-1, -1]), _rows([32, 0]))


def _denormal() -> Drawn:
    keys = np.zeros((4, 8), np.float32)
    return Drawn(keys, np.full((4, 8), _TINY, np.float32), np.ones((1, 8), np.float32))


_TINY = 7.5e-6  # of int8 the code 126 times the smallest float16

CASES: tuple[Known, ...] = (
    Known(
        "light",
        "token 0 with key 0, value 1; seven with key -5.58, value -1; query 1",
        "int8",
        _light_against_heavy,
        0.9485,
    ),
    Known(
        "tail-4096",
        "token 0 has a share of 0.8 and value 0, 4,095 others value 1",
        "int4",
        _tail(4096, 0.8),
        0.2,
    ),
    Known(
        "tail-16384",
        "token 0 has a share of 0.9 and value 0, 16,383 others value 1",
        "int8",
        _tail(16384, 0.9),
        0.1,
    ),
    Known(
        "tail-65536",
        "token 0 has a share of 0.9 and value 0, 65,535 others value 1",
        "int8",
        _tail(65536, 0.9),
        0.1,
    ),
    Known(
        "constant-65536",
        "65,536 tokens of value 1, the first with a share of 0.3",
        "int8",
        _tail(65536, 0.3, 1.0),
        1.0,
    ),
    Known(
        "far",
        "keys (0, 1024), (0.71, 0), (0.6, 0), values 0, 1, -1, query (32, 0)",
        "float16",
        _key_far_off,
        0.8467,
    ),
    Known("denormal", f"four tokens of the value {_TINY:g}", "int8", _denormal, _TINY),
)


@dataclass(frozen=True)
class Kept:
    """What steps forth and back must leave as it was: `compute`d in this process, by plain kernels."""

    name: str
    what: str
    codec: str
    compute: Callable[[], float]
    right: float
    within: float

    def good(self, value: float) -> bool:
        return abs(value - self.right) <= self.within


def _drift() -> float:
    """How many times as large the error of what is stored is, once a block was sealed anew 300 times."""
    from mpy_kv import cache_for, geometry_for, kernels

    rows = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    given = [array("f", row.tobytes()) for row in rows]
    cache = cache_for(geometry_for("int4", 1, 1, 1, 4, capacity=32), kernels=kernels.of("int4").get("plain"))

    def step(row: array[float]) -> None:
        cache.append(0, row, row)
        cache.commit()

    def error() -> float:
        back = [[cache.read(0, which, p) for p in range(16)] for which in "kv"]
        return float(np.sqrt(((np.array(back) - rows[:16]) ** 2).mean()))

    for row in given:
        step(row)
    first = error()
    for _ in range(300):
        cache.rollback(1)
        step(given[-1])
    return error() / first


def _sink_pages() -> float:
    """Blocks that a request holds once all of its tokens are rolled back."""
    from mpy_kv import kernels
    from mpy_kv.paged import PagedGeometry, Requests

    g = PagedGeometry(1, 1, 1, 8, window=4, sinks=8, block_tokens=4)
    requests = Requests(g, 4, kernels=kernels.of("int8").get("plain"))
    request, row = requests.open(), array("f", bytes(32))
    for _ in range(40):
        request.append(0, row, row)
        request.commit()
    request.rollback(40)
    return float(requests.header(request)["references"])


KEPT: tuple[Kept, ...] = (
    Kept(
        "reopened",
        "32 tokens, then 300 times rollback(1) and the last one again: error of what is stored, first = 1",
        "int4",
        _drift,
        1.0,
        0.05,
    ),
    Kept(
        "sink-pages",
        "8 sinks, a window of 4 in blocks of 4: 40 tokens, rollback(40): blocks still held",
        "int8",
        _sink_pages,
        0.0,
        0.0,
    ),
)

MEANING = (
    "off by: L2, % of the values' RMS norm; wrong: more than 1 %, or more than 0.5 % beyond the largest value"
    " of a channel; docs/PERFORMANCE.md says which inputs these limits hold for"
)
NOTES = (
    MEANING,
    *(f"{each.name}: {each.what}" for each in CASES),
    *(f"{each.name}: {each.what}" for each in KEPT),
)
