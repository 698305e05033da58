"""Floats to the integers of a board image, and back: int8 in groups, int16 vectors.

All arithmetic is float64 on float32 input: products and quotients that decide a code are exact,
so every machine makes the same bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

GROUP = 32  # weights that share a scale
CODE_MAX = 127
SCALE_MAX = 4095  # 12 bits: code dot activations times scale then stays within 32 bits
VECTOR_MAX = 32767


@dataclass(frozen=True)
class Matrix:
    """real = codes * scales * 2**exponent, one scale for `GROUP` columns of a row."""

    codes: NDArray[np.int8]  # (rows, groups * GROUP), columns past cols are 0
    scales: NDArray[np.uint16]  # (rows, groups)
    exponent: int
    cols: int

    def dequantise(self) -> Doubles:
        """Exactly the numbers a board computes with: (rows, cols)."""
        step = np.repeat(np.ldexp(self.scales.astype(np.float64), self.exponent), GROUP, axis=1)
        real: Doubles = step * self.codes.astype(np.float64)
        return real[:, : self.cols]


@dataclass(frozen=True)
class Vector:
    """real = values * 2**exponent."""

    values: NDArray[np.int16]  # (cols,)
    exponent: int

    def dequantise(self) -> Doubles:
        real: Doubles = np.ldexp(self.values.astype(np.float64), self.exponent)
        return real


def half_away(x: Doubles) -> Doubles:
    """Round to the nearest integer, halves away from zero."""
    rounded: Doubles = np.copysign(np.floor(np.abs(x) + 0.5), x)
    return rounded


def quantise_matrix(w: NDArray[Any]) -> Matrix:
    """w (rows, cols), finite float32 -> Matrix with |error| <= scale * 2**exponent / 2.

    The exponent is the smallest with which the largest group's scale fits 12 bits. Scales are
    rounded up, so that no code leaves -127..127.
    """
    w = np.asarray(w, np.float32).astype(np.float64)
    rows, cols = w.shape
    groups = -(-cols // GROUP)
    padded = np.zeros((rows, groups * GROUP))
    padded[:, :cols] = w
    grouped = padded.reshape(rows, groups, GROUP)
    top = np.abs(grouped).max(axis=2)  # (rows, groups)
    exponent = _exponent(float(top.max(initial=0.0)), CODE_MAX * SCALE_MAX)
    # A float32 over 127 lies too far from the next integer for float64 to round it there.
    scales = np.ceil(np.ldexp(top, -exponent) / CODE_MAX)
    step = np.ldexp(np.where(scales > 0, scales, 1.0), exponent)
    codes = half_away(grouped / step[:, :, None])
    return Matrix(codes.reshape(rows, -1).astype(np.int8), scales.astype(np.uint16), exponent, cols)


def quantise_vector(v: NDArray[Any]) -> Vector:
    """v (cols,), finite float32 -> Vector with |error| <= 2**exponent / 2."""
    v = np.asarray(v, np.float32).astype(np.float64)
    exponent = _exponent(float(np.abs(v).max(initial=0.0)), VECTOR_MAX)
    return Vector(half_away(np.ldexp(v, -exponent)).astype(np.int16), exponent)


def _exponent(largest: float, steps: int) -> int:
    """Smallest e with largest <= steps * 2**e; 0 when there is nothing to scale."""
    if largest == 0.0:
        return 0
    e = math.frexp(largest)[1] - steps.bit_length() - 1  # surely too small
    while math.ldexp(steps, e) < largest:
        e += 1
    return e
