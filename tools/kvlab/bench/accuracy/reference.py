"""Attention in float64 over what is stored and over the query as the kernels see it, and how far a result is
from that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvlab.bench.accuracy import stored
from kvlab.bench.accuracy.inputs import Array, Case


def quantised(queries: Array) -> Array:
    """Of each query 7-bit codes times the smallest scale of 11 bits with 64 times it >= the largest
    magnitude; halves away from zero."""
    x = queries.astype(np.float64)
    need = np.abs(x).max(-1, keepdims=True) / 64
    unit = np.exp2(np.floor(np.log2(np.where(need > 0, need, 1))) - 10)
    scale = np.where(need > 0, np.ceil(need / unit) * unit, 1)
    found: Array = np.sign(x) * np.floor(np.abs(x) / scale + 0.5) * scale
    return found


def weights(queries: Array, keys: Array) -> Array:
    """softmax of (queries, tokens)."""
    scores = quantised(queries) @ keys.T / np.sqrt(keys.shape[1])
    found = np.exp(scores - scores.max(-1, keepdims=True))
    shares: Array = found / found.sum(-1, keepdims=True)
    return shares


def attention(case: Case) -> Array:
    """(layers, queries, head_dim)"""
    found: Array = weights(case.queries, stored.keys(case)) @ stored.values(case)
    return found


@dataclass
class Errors:
    """Each of (layers, queries)."""

    l2: Array  # of the values' RMS norm
    of_output: Array  # the same, but of the right result's own norm where that is larger
    excess: Array  # by how much a channel exceeds the largest stored magnitude in it, a part of that
    codes: Array  # the largest deviation of a channel, in what a code of the first token counts


def errors(case: Case, got: Array) -> Errors:
    values = stored.values(case)
    want = weights(case.queries, stored.keys(case)) @ values
    rms = np.sqrt((values**2).sum(-1).mean(-1))[:, None]
    size = np.maximum(rms, np.linalg.norm(want, axis=-1))
    off = np.linalg.norm(got - want, axis=-1)
    most = np.abs(values).max(1)  # (layers, head_dim)
    whole = np.where(most > 0, most, most.max(-1, keepdims=True))[:, None]
    excess = np.maximum(np.abs(got) - most[:, None], 0) / np.where(whole > 0, whole, 1)
    step = stored.step(case.codec, case.value_sets[:, 0])[:, None]
    codes = np.abs(got - want) / np.where(step > 0, step, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        l2, of_output = (np.where(off > 0, off / by, 0) for by in (rms, size))
    return Errors(l2, of_output, excess.max(-1), codes.max(-1))
