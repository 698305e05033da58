"""Attention in float64 over what is stored and over the query as the kernels see it, and how far a result is
from that."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kvlab.bench.accuracy import stored
from kvlab.bench.accuracy.inputs import Array, Case
from mpy_kv.geometry import default_group


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


def _by_head(case: Case, rows: Array) -> Array:
    """(..., tokens, kv_heads * head_dim) as (..., kv_heads, tokens, head_dim)."""
    return np.moveaxis(rows.reshape(*rows.shape[:-1], case.kv_heads, -1), -2, -3)


def _each(case: Case, of_heads: Array) -> Array:
    """(layers, kv_heads, ...) for each query: (layers, queries, ...)."""
    return np.repeat(of_heads, len(case.queries) // case.kv_heads, axis=1)


def attention(case: Case) -> Array:
    """(layers, queries, head_dim)"""
    return _attended(case, _by_head(case, stored.values(case)))


def _attended(case: Case, values: Array) -> Array:
    """values: (layers, kv_heads, tokens, head_dim)."""
    queries = case.queries.reshape(case.kv_heads, -1, case.queries.shape[1])
    heads = zip(queries, _by_head(case, stored.keys(case)), strict=True)
    shares = np.stack([weights(some, keys) for some, keys in heads])
    found: Array = (shares @ values).reshape(case.shape)
    return found


def _of_groups(case: Case, rms: Array) -> Array:
    """(layers, queries): the root mean square over the heads that share a scale."""
    heads = max(1, default_group(case.kv_heads, case.queries.shape[1]) // case.queries.shape[1])
    queries = heads * (len(case.queries) // case.kv_heads)
    found: Array = np.sqrt((rms**2).reshape(len(rms), -1, queries).mean(-1))
    return np.repeat(found, queries, axis=1)


@dataclass
class Errors:
    """Each of (layers, queries)."""

    l2: Array  # of the values' RMS norm
    of_output: Array  # of that of all heads that share a scale, or the right result's norm if that is larger
    excess: Array  # by how much a channel exceeds the largest stored magnitude in it, a part of that
    of_largest: Array  # the same, a part of the largest magnitude in any channel of the head
    codes: Array  # the largest deviation of a channel, in what a code of the first token counts


def errors(case: Case, got: Array) -> Errors:
    values = _by_head(case, stored.values(case))
    want = _attended(case, values)
    rms = _each(case, np.sqrt((values**2).sum(-1).mean(-1)))
    size = np.maximum(_of_groups(case, rms), np.linalg.norm(want, axis=-1))
    off = np.linalg.norm(got - want, axis=-1)
    most = _each(case, np.abs(values).max(-2))
    largest = most.max(-1, keepdims=True)
    whole = np.where(most > 0, most, largest)
    beyond = np.maximum(np.abs(got) - most, 0)
    excess, of_largest = (beyond / np.where(by > 0, by, 1) for by in (whole, largest))
    step = _each(case, stored.step(case).reshape(len(values), case.kv_heads, -1))
    codes = np.abs(got - want) / np.where(step > 0, step, 1)
    l2, of_output = (off / np.where(by > 0, by, 1) for by in (rms, size))
    return Errors(l2, of_output, excess.max(-1), of_largest.max(-1), codes.max(-1))
