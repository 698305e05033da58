"""Fixed-point shifts of keys, values and queries, found by letting the float model talk."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from commandline.errors import BadInput

from .llama2c import Config, Weights
from .reference import Array, Reference, Session

TOKENS = 256  # each run; the context if that is shorter
RUNS = ((0.0, 0), (1.0, 1), (1.0, 2))  # (temperature, seed)
HEADROOM = 2.0  # the largest magnitude seen may double before an int16 clips
STEPS = TOKENS * len(RUNS)  # at most
SHIFT_MAX = 24  # of values so small that their rounding no longer matters
LARGEST = 32767 / HEADROOM  # at shift 0


def calibrate(c: Config, weights: Weights, done: Callable[[int], None] | None = None) -> NDArray[np.int8]:
    """Shifts (layers, 3) of k, v and q: a value is int16 * 2**-shift.

    Float64, so that the same tokens are drawn on every machine. Keys and queries are measured by
    the length of their rotated pairs: no rotation at any position exceeds what was measured.
    `done(1)` is called for each token. Raises BadInput for numbers no shift can hold.
    """
    largest = np.zeros((c.layers, 3))

    def watch(layer: int, q: Array, k: Array, v: Array) -> None:
        seen = (_longest_pair(k), float(np.abs(v).max()), _longest_pair(q))
        np.maximum(largest[layer], seen, out=largest[layer])

    model = Reference(c, weights, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # shift_for refuses what comes of it
        for temperature, seed in RUNS:
            session = Session(model, min(TOKENS, c.seq_len), watch)
            for _ in session.generate(temperature=temperature, seed=seed):
                if done is not None:
                    done(1)
    return np.array([[shift_for(x) for x in row] for row in largest], np.int8)


def _longest_pair(x: Array) -> float:
    return float(np.hypot(x[..., 0::2], x[..., 1::2]).max())


def shift_for(largest: float) -> int:
    """Largest shift at which HEADROOM times `largest` still fits an int16: 0 to SHIFT_MAX."""
    if not largest <= LARGEST:  # NaN too
        raise BadInput(
            f"running the model gives keys, values or queries of {largest:.4g}, beyond the "
            f"{LARGEST} of 16-bit fixed point: pass a model whose training did not diverge"
        )
    if largest <= math.ldexp(LARGEST, -SHIFT_MAX):
        return SHIFT_MAX
    return math.floor(math.log2(LARGEST / largest))
