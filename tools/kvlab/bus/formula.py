"""What a token moves over the bus by the shapes alone: bytes by stage and kind, as the kernels move them.

The running code counts the same (mpy_kv/kernels/counting.py, `kvlab.bench.access`), and a test holds both to
the same bytes; what is too large to run is told by this alone. Of int8, with the vectors of the stories app.
Attention leaves out batches of tokens that weigh next to nothing, and what is further than 28 doublings from
the largest score: what is counted may be less.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from mpy_kv import geometry_for
from mpy_kv.geometry import BATCH, Geometry

STAGES = ("append", "qk", "av", "model", "sample")

# Of boards/apps/stories/kernels: bytes of an element, values of a group, its words in an activation vector
# (for each four codes three, of which the plain kernels read two), words in front of the first.
_ELEMENT, _HALF, _SCALE = 4, 2, 2
_GROUP = 32
_ACT_GROUP, _ACT_GROUP_READ, _ACT_HEADER = 25, 17, 2

# Of a query's record (mpy_kv/kernels/plain.py): its four words, of which score() reads one, weights() three
# and emit() one.
_WORD = 4


@dataclass(frozen=True)
class Bytes:
    """By kind. Of vectors, which are what is neither of the cache nor a weight, what goes into kernels and
    what comes out."""

    kv_read: int = 0
    kv_write: int = 0
    weights: int = 0
    io_read: int = 0
    io_write: int = 0

    def __add__(self, other: Bytes) -> Bytes:
        return Bytes(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def times(self, n: int) -> Bytes:
        return Bytes(*(n * getattr(self, f.name) for f in fields(self)))

    @property
    def read(self) -> int:
        return self.kv_read + self.weights + self.io_read

    @property
    def written(self) -> int:
        return self.kv_write + self.io_write

    @property
    def total(self) -> int:
        return self.read + self.written

    @property
    def io(self) -> int:
        return self.io_read + self.io_write


ByStage = dict[str, Bytes]


def together(*stages: ByStage) -> ByStage:
    return {stage: sum((found[stage] for found in stages), Bytes()) for stage in STAGES}


def token(shape: Any, visible: int, *, sinks: int = 0, logits: bool = True, sample: bool = True) -> ByStage:
    """Of one token that sees so many, itself among them; `sinks` of the cache (0: a query of its own is never
    made for them). shape: has the fields layers, heads, kv_heads, head_dim, dim, hidden and vocab. Without
    `logits` as one of a prompt; `sample`: the next is chosen from them, greedily."""
    g = geometry_for(
        "int8", *(shape.layers, shape.heads, shape.kv_heads, shape.head_dim), window=visible, sinks=sinks
    )
    return {
        **of_cache(g, visible),
        "model": _model(shape, sinks, logits),
        "sample": Bytes(io_read=_ELEMENT * shape.vocab) if sample else Bytes(),
    }


def of_cache(g: Geometry, visible: int) -> ByStage:
    """Of a token that is stored and answered in a cache of that geometry, in all layers."""
    found = {"append": _append(g), "qk": _qk(g, visible), "av": _av(g, visible)}
    return {stage: of.times(g.layers) for stage, of in found.items()}


def prompt(shape: Any, tokens: int, window: int, *, sinks: int = 0) -> ByStage:
    """Of a prompt read token by token, of whose last logits are made."""
    most = window + sinks
    found = together()
    for n in range(1, tokens + 1):
        one = token(shape, min(n, most), sinks=sinks, logits=n == tokens, sample=False)
        found = together(found, one)
    return found


def _append(g: Geometry) -> Bytes:
    """A layer's keys and values of a token, from two int16 vectors to codes and scales."""
    codes = g.kv_heads * g.slices * (g.slice_bytes + g.v_slice_bytes)
    return Bytes(kv_write=codes + 2 * _SCALE * g.groups, io_read=2 * _HALF * g.width)


def _scales(g: Geometry, n: int) -> Bytes:
    """Scales of K or of V, read and put down relative to the largest."""
    return Bytes(kv_read=_SCALE * n * g.groups, io_write=_HALF * n * g.groups)


def _qk(g: Geometry, n: int) -> Bytes:
    """A layer's scores."""
    sets = g.query_sets
    made = Bytes(io_read=sets * _HALF * g.heads * g.head_dim, io_write=g.heads * g.query_bytes)
    # Sinks have a set of the query of their own; until there is more, no other is read.
    used = 2 if 0 < g.sinks < n else 1
    dot = Bytes(kv_read=n * g.slice_bytes, io_read=used * (_WORD + 2 * g.slice_bytes), io_write=_ELEMENT * n)
    score = Bytes(io_read=_WORD + (_HALF + _ELEMENT) * n, io_write=_ELEMENT * n)
    further = Bytes(io_read=_ELEMENT * n).times(g.slices - 1)  # scores are added up over slices
    head = (dot + score).times(g.slices) + further
    return made + _scales(g, n) + head.times(g.heads)


def _av(g: Geometry, n: int) -> Bytes:
    """A layer's weighted sums of values."""
    batches = -(-n // BATCH)
    weights = Bytes(
        io_read=3 * _WORD + (_ELEMENT + _HALF) * n, io_write=_ELEMENT * BATCH * batches + _WORD * batches
    )
    sums = Bytes(
        kv_read=n * g.v_slice_bytes,
        io_read=_WORD * batches + _ELEMENT * n,
        io_write=_ELEMENT * g.v_slice_bytes,
    )
    emit = Bytes(io_read=_WORD + _ELEMENT * g.slice_width, io_write=_HALF * g.slice_width)
    head = (weights + sums + emit).times(g.slices)
    return _scales(g, n) + head.times(g.heads)


def _groups(n: int) -> int:
    return -(-n // _GROUP)


def _row(columns: int) -> int:
    """Bytes of a row of weights that are read: codes, padded to whole groups, and their scales."""
    return (_GROUP + _SCALE) * _groups(columns)


def _matrix(rows: int, columns: int) -> Bytes:
    act = _ACT_HEADER + _ACT_GROUP_READ * _groups(columns)
    return Bytes(weights=rows * _row(columns), io_read=_ELEMENT * act, io_write=_ELEMENT * rows)


def _quant(n: int) -> Bytes:
    """A vector as an activation vector."""
    groups = _groups(n)
    return Bytes(io_read=_ELEMENT * _GROUP * groups, io_write=_ELEMENT * (_ACT_HEADER + _ACT_GROUP * groups))


def _norm(dim: int) -> Bytes:
    """With the quant() behind it."""
    padded = _GROUP * _groups(dim)
    return Bytes(weights=2 * dim, io_read=_ELEMENT * dim, io_write=_ELEMENT * padded) + _quant(dim)


def _model(shape: Any, sinks: int, logits: bool) -> Bytes:
    """All but the cache's."""
    dim, hidden, d = shape.dim, shape.hidden, shape.head_dim
    q, kv = shape.heads * d, shape.kv_heads * d
    sets = 2 if sinks else 1
    turned = Bytes(io_write=sets * _HALF * d)
    embedded = Bytes(weights=dim + _SCALE * _groups(dim), io_write=_ELEMENT * dim)

    def rotated(n: int) -> Bytes:
        return Bytes(io_read=_ELEMENT * n + _HALF * d, io_write=_HALF * n)

    add = Bytes(io_read=2 * _ELEMENT * dim, io_write=_ELEMENT * dim)
    mixed = (
        _norm(dim)
        + _matrix(q, dim)
        + _matrix(kv, dim).times(2)
        + rotated(kv)
        + Bytes(io_read=_ELEMENT * kv, io_write=_HALF * kv)
        + rotated(q).times(sets)
        + Bytes(io_read=_HALF * q, io_write=_ELEMENT * _GROUP * _groups(q))
        + _quant(q)
        + _matrix(dim, q)
        + add
    )
    gated = Bytes(io_read=2 * _ELEMENT * hidden, io_write=_ELEMENT * _GROUP * _groups(hidden))
    forward = _norm(dim) + _matrix(hidden, dim).times(2) + gated + _quant(hidden) + _matrix(dim, hidden) + add
    found = turned + embedded + (mixed + forward).times(shape.layers)
    return found + _norm(dim) + _matrix(shape.vocab, dim) if logits else found
