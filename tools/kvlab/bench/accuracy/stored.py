"""What a cache holds of keys and values, in float64: by the definition of each element type
(quality/codecs.py, quality/sealed.py), which shares no code with mpy_kv."""

from __future__ import annotations

import numpy as np

from kvlab.bench.accuracy.inputs import Array, Case
from kvlab.quality import codecs, sealed
from mpy_kv.geometry import default_group

BLOCK = 16


def keys(case: Case) -> Array:
    """(tokens, kv_heads * head_dim)"""
    return _stored(case, case.keys, True)


def values(case: Case) -> Array:
    """(layers, tokens, kv_heads * head_dim)"""
    return np.stack([_stored(case, rows, False) for rows in case.value_sets])


def step(case: Case) -> Array:
    """(layers, kv_heads * head_dim): what a code counts in each channel of the first token's values; of
    floats the 127th part of the largest, as of int8; of int4 the 15th of the range, where any token is sealed
    and that is more."""
    rows = np.asarray(case.value_sets[:, 0], np.float32)
    groups = _groups(case, rows)
    levels = 7 if case.codec == "int8-int4" else 127
    scales = codecs.symmetric(groups, levels).scales.astype(np.float64)
    if case.codec == "int4" and sealed_tokens(len(case.keys), case.sinks):
        scales = np.maximum(scales, (groups.max(-1) - groups.min(-1)) / 15)
    return np.broadcast_to(scales[..., None], groups.shape).reshape(rows.shape)


def sealed_tokens(tokens: int, sinks: int) -> int:
    """Of int4, while the last of them is attended: all full blocks but the newest, of those before it."""
    return BLOCK * max(0, max(0, tokens - 1 - sinks) // BLOCK - 1)


def _groups(case: Case, rows: Array) -> Array:
    group = default_group(case.kv_heads, rows.shape[-1] // case.kv_heads)
    return rows.reshape(*rows.shape[:-1], -1, group)


def _stored(case: Case, rows: Array, of_keys: bool) -> Array:
    codec, sinks = case.codec, case.sinks
    rows = np.ascontiguousarray(rows, np.float32)
    if codec == "float32":
        return rows.astype(np.float64)
    if codec == "float16":
        return codecs.half(rows).astype(np.float64)
    groups = _groups(case, rows)
    if codec == "sparse" and not of_keys:
        return codecs.sparse(groups).values().reshape(rows.shape)
    fresh = codecs.symmetric(groups, 7 if codec == "int8-int4" and not of_keys else 127)
    found = fresh.values()
    if codec == "int4":
        count = sealed_tokens(len(rows), sinks)
        cut = slice(sinks, sinks + count)
        blocks = codecs.Symmetric(
            *(part[cut].reshape(-1, BLOCK, *part.shape[1:]) for part in (fresh.codes, fresh.scales))
        )
        if count:
            of = sealed.keys(blocks) if of_keys else sealed.values(blocks)
            found[cut] = of.values().reshape(count, *found.shape[1:])
    return found.reshape(rows.shape)
