"""int4 in sealed blocks by its definition in integers (docs/SPEC.md, "The sealed cache"), all blocks at once.

The reference that the device's kernels are held to, bit for bit: int8 rows, as codecs.symmetric has them, to
what a sealed block stores. int64 throughout; no intermediate exceeds 2^40.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import codecs

Array = NDArray[Any]

_MOST = 1 << 18  # of a key in units of P / 4096
_EXPONENTS = -24, 15  # of P, a power of two in float16


class Keys(NamedTuple):
    """Of blocks of tokens: value = (16 minimum + step * nibble) * power / 4096."""

    nibbles: Array  # uint8 (blocks, tokens, groups, group)
    minima: Array  # int16 (blocks, groups, group)
    steps: Array  # uint16 (blocks, groups, group)
    powers: Array  # float16 (blocks, groups)

    def values(self) -> Array:
        """float64, exact."""
        counts = (
            16 * self.minima.astype(np.int64)[:, None] + self.steps.astype(np.int64)[:, None] * self.nibbles
        )
        out: Array = counts * (self.powers.astype(np.float64) / 4096)[:, None, :, None]
        return out


def keys(rows: codecs.Symmetric) -> Keys:
    """rows: of shape (blocks, tokens, groups, group). Magnitudes from 2^21 on are sealed as 2^21."""
    mantissa, exponent = _halves(rows.scales)  # (blocks, tokens, groups)
    top = exponent.max(1)
    relative = (mantissa << 4) >> (top[:, None] - exponent)
    x = rows.codes.astype(np.int64) * relative[..., None]
    power = np.clip(_bits(np.abs(x).max((1, 3))) + top - 35, *_EXPONENTS)
    x = np.clip(_shifted(x, (top - 17 - power)[:, None, :, None]), -_MOST, _MOST - 1)
    minima = x.min(1) >> 4
    steps = -((16 * minima - x.max(1)) // 15)
    twice = 2 * (x - 16 * minima[:, None]) + steps[:, None]
    nibbles = np.where(steps[:, None] > 0, twice // np.maximum(2 * steps[:, None], 1), 0)
    return Keys(
        nibbles.astype(np.uint8),
        minima.astype(np.int16),
        steps.astype(np.uint16),
        np.exp2(power.astype(np.float64)).astype(np.float16),
    )


def values(rows: codecs.Symmetric) -> codecs.Ranged:
    """rows: each last axis is a group. Minima below -65504, and steps beyond 65504, are sealed as these."""
    return codecs.ranged(rows.values().astype(np.float32), clip=True)


def _halves(scales: Array) -> tuple[Array, Array]:
    """(mantissa, exponent field) of float16 numbers >= 0: mantissa * 2^(field - 25)."""
    bits = scales.view(np.uint16).astype(np.int64)
    field = bits >> 10
    return np.where(field > 0, bits & 1023 | 1024, bits & 1023), np.maximum(field, 1)


def _bits(x: Array) -> Array:
    """How many bits a whole number >= 0, below 2^52, has."""
    return np.frexp(x.astype(np.float64))[1].astype(np.int64)


def _shifted(x: Array, left: Array) -> Array:
    """x * 2^left, rounded down."""
    out: Array = (x << np.maximum(left, 0)) >> np.maximum(-left, 0)
    return out
