"""A whole passage at once through the float model, each query reading keys and values back as stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvlab.models.reference import Reference

from .codecs import Refused
from .kinds import BLOCK, FLOAT32, KEYS, VALUES, Arrangement, Kind, Sealed, Seen, Shape

Array = NDArray[Any]

_QUERIES = 128  # attended at once where all queries read the same; whole blocks


@dataclass(frozen=True)
class View:
    """What a query sees: the newest `window` tokens, its own included, and the first `sinks`; None: all.

    near: sinks are scored by the query rotated as if nothing lay between, else by the query as it is.
    """

    window: int | None = None
    sinks: int = 0
    near: bool = False

    def hidden(self, first: int, end: int) -> Array:
        """(end - first, end): whether the query at row first + i does not see token j."""
        i, j = np.arange(first, end)[:, None], np.arange(end)[None, :]
        out: Array = j > i
        if self.window is not None:
            out |= (j <= i - self.window) & (j >= self.sinks)
        return out

    @property
    def name(self) -> str:
        return f"window {self.window} sinks {self.sinks} near {self.near}"


EVERYTHING = View()


def hidden(model: Reference, ids: Sequence[int], arrangement: Arrangement, view: View = EVERYTHING) -> Array:
    """What the classifier reads after each of `ids`: (T, dim). codecs.Refused names layer and side."""
    count = len(ids)
    at = np.arange(count)
    x: Array = model.w.embed[np.asarray(ids)]
    for layer in range(model.config.layers):
        q, k, v = model.project(layer, x)
        near = None
        if view.near and view.window is not None and view.sinks:
            near = model.rotate(q, np.minimum(at, view.sinks + view.window - 1))
        q, k = model.rotate(q, at), model.rotate(k, at)
        keys, values = read(arrangement, layer, k, v, view.sinks)
        x = model.finish(layer, x, _attend(model, (q, near), keys, values, view))
    return x


def read(arrangement: Arrangement, layer: int, k: Array, v: Array, sinks: int = 0) -> tuple[Seen, Seen]:
    """k, v (T, kv_heads, head_dim) of a layer as read back, in their own type. codecs.Refused says which."""
    out = []
    for side, name, known, x in zip(("keys", "values"), arrangement.layers[layer], (KEYS, VALUES), (k, v)):
        try:
            out.append(_read(known[name], x, arrangement.shape, sinks))
        except Refused as error:
            raise Refused(f"{side} of layer {layer}: {error}") from error
    return out[0], out[1]


def _read(kind: Kind, x: Array, shape: Shape, sinks: int) -> Seen:
    if kind is FLOAT32 and x.dtype != np.float32:
        return Seen(x, x)  # a reference in float64 stays what it is
    given = np.ascontiguousarray(x, np.float32)
    seen = kind.read(given, shape, sinks) if isinstance(kind, Sealed) else kind.read(given, shape)
    new = seen.new.astype(x.dtype, copy=False)
    return Seen(new, new if seen.old is seen.new else seen.old.astype(x.dtype, copy=False))


def _attend(
    model: Reference, queries: tuple[Array, Array | None], keys: Seen, values: Seen, view: View
) -> Array:
    """(T, dim): attention of all queries."""
    q, near = queries
    count, sinks = len(q), view.sinks
    out = np.empty((count, model.config.dim), q.dtype)
    sealed = keys.old is not keys.new or values.old is not values.new
    for start, end in _chunks(count, sinks, BLOCK if sealed else _QUERIES):
        # The chunk's own block and the one before it are new; sinks are so for ever, in both forms.
        cut = max(0, start - BLOCK) if sealed else 0
        k, v = (np.concatenate([seen.old[:cut], seen.new[cut:end]]) for seen in (keys, values))
        scores = model.scores(q[start:end], k)
        if near is not None:
            scores[:, :, :sinks] = model.scores(near[start:end], k[: min(sinks, end)])
        np.copyto(scores, -np.inf, where=view.hidden(start, end))
        out[start:end] = model.mix(scores, v)
    return out


def _chunks(count: int, sinks: int, size: int) -> list[tuple[int, int]]:
    """Runs of queries: the sinks, then blocks of `size` counted after them."""
    edges = [0, *range(sinks, count, size), count] if sinks else [*range(0, count, size), count]
    return [(a, b) for a, b in zip(edges, edges[1:]) if a < b]
