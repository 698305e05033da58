"""What a cache holds of keys and values, in float64: by the definition of each element type
(quality/codecs.py, quality/sealed.py), which shares no code with mpy_kv."""

from __future__ import annotations

import numpy as np

from kvlab.bench.accuracy.inputs import Array, Case
from kvlab.quality import codecs, sealed
from mpy_kv.geometry import default_group

BLOCK = 16


def keys(case: Case) -> Array:
    """(tokens, head_dim)"""
    return _stored(case.codec, case.keys, case.sinks, True)


def values(case: Case) -> Array:
    """(layers, tokens, head_dim)"""
    return np.stack([_stored(case.codec, rows, case.sinks, False) for rows in case.value_sets])


def step(codec: str, rows: Array) -> Array:
    """What a code counts in each channel of a token; of floats the 127th part of the largest, as of int8."""
    groups = _groups(np.asarray(rows, np.float32))
    levels = 7 if codec == "int8-int4" else 127
    scales = codecs.symmetric(groups, levels).scales.astype(np.float64)
    return np.broadcast_to(scales[..., None], groups.shape).reshape(rows.shape)


def sealed_tokens(tokens: int, sinks: int) -> int:
    """Of int4, while the last of them is attended: all full blocks but the newest, of those before it."""
    return BLOCK * max(0, max(0, tokens - 1 - sinks) // BLOCK - 1)


def _groups(rows: Array) -> Array:
    return rows.reshape(*rows.shape[:-1], -1, default_group(1, rows.shape[-1]))


def _stored(codec: str, rows: Array, sinks: int, of_keys: bool) -> Array:
    rows = np.ascontiguousarray(rows, np.float32)
    if codec == "float32":
        return rows.astype(np.float64)
    if codec == "float16":
        return codecs.half(rows).astype(np.float64)
    groups = _groups(rows)
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
