"""Values chosen against the rounding of the weights.

The weights that a cache uses are found by asking it: a result is linear in values of one magnitude, whose
codes and scales differ in nothing but the sign, so that the results for many patterns of signs give every
token's weight. Of values v with |v| = 1 the error is then largest where each has the sign of its weight's
error: the sum of these errors' magnitudes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kvlab.bench.accuracy import reference, stored
from kvlab.bench.accuracy.inputs import Array, Case, Drawn
from kvlab.bench.accuracy.runner import Run

_MORE = 1.5  # patterns for a token


def sharpened(codec: str, inputs: Sequence[Drawn], run: Run) -> list[Case]:
    """A case for each of the inputs, its values the worst for one of its queries."""
    probes = [_probe(codec, drawn) for drawn in inputs]
    return [_worst(drawn, probe, got) for drawn, probe, got in zip(inputs, probes, run(probes), strict=True)]


def _probe(codec: str, drawn: Drawn) -> Case:
    rng = np.random.default_rng(drawn.tokens * 1000 + drawn.head_dim)
    layers = -(-round(_MORE * drawn.tokens + 4) // drawn.head_dim)
    layers += codec == "sparse" and layers // 2  # of a quarter of the channels nothing is stored
    signs = rng.choice([-1.0, 1.0], size=(layers, *drawn.values.shape))
    return Case(codec, drawn.keys, np.asarray(signs * drawn.values, np.float32), drawn.queries, drawn.sinks)


def used_weights(case: Case, got: Array) -> Array:
    """(queries, tokens): what the results for the patterns of `case` say of the weights."""
    values = stored.values(case)
    patterns = values.transpose(0, 2, 1).reshape(-1, values.shape[1])  # of a channel of a layer each
    results = got.transpose(0, 2, 1).reshape(len(patterns), -1)
    found: Array = np.linalg.lstsq(patterns, results, rcond=None)[0].T
    return found


def _worst(drawn: Drawn, probe: Case, got: Array) -> Case:
    off = used_weights(probe, got) - reference.weights(probe.queries, stored.keys(probe))
    signs = np.sign(off[np.abs(off).sum(-1).argmax()])
    signs[signs == 0] = 1
    turned = np.where(np.arange(drawn.head_dim) % 2, -1, 1)  # a row of one sign has no range
    values = np.asarray(signs[:, None] * turned * drawn.values, np.float32)
    return Case(probe.codec, drawn.keys, values[None], drawn.queries, drawn.sinks)
