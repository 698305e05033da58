"""The codecs by their definition: groups of float32 -> codes, scales, minima, and what these stand for.

This is the reference that every other implementation is held to, byte for byte. Each decision is an exact
comparison: a float32 has 24 bits and a float16 11, so that the products and sums compared below are exact in
float64. Where a quotient is taken, the reason why its rounding cannot decide is given there.

All functions work on the last axis, or the one named, of arrays of any shape. Input is float32: float64 is
refused, as the caller has to say how it rounds. Denormals count as 0, as on the device; what is not finite,
or whose scale, minimum or value is beyond float16, is `Refused`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

HALF_MAX = 65504.0  # largest float16
_TINY = float(np.finfo(np.float32).tiny)  # smallest normal float32


class Refused(ValueError):
    """Numbers that a codec cannot store. The message says which and why."""


class Symmetric(NamedTuple):
    """Groups around zero: value = code * scale."""

    codes: Array  # int8, -levels..levels, shape of the input
    scales: Array  # float16, without the last axis

    def values(self) -> Array:
        """float64, exact."""
        out: Array = self.codes * self.scales.astype(np.float64)[..., None]
        return out


class Ranged(NamedTuple):
    """Groups with a minimum: value = minimum + scale * code."""

    codes: Array  # uint8, 0..15, shape of the input
    minima: Array  # float16, the input's shape without the axis of the group
    scales: Array  # float16, likewise
    axis: int

    def values(self) -> Array:
        """float64, exact: multiples of 2^-24 below 2^21."""
        m, s = (np.expand_dims(x.astype(np.float64), self.axis) for x in (self.minima, self.scales))
        out: Array = m + s * self.codes
        return out


class Kept(NamedTuple):
    """Groups of which the largest magnitudes are kept: value = code * scale, the others 0."""

    kept: Array  # bool, shape of the input
    codes: Array  # int8, -127..127; 0 where not kept
    scales: Array  # float16, without the last axis

    def values(self) -> Array:
        """float64, exact."""
        return Symmetric(self.codes, self.scales).values()


def half_up(x: Array) -> Array:
    """The smallest float16 >= x; infinity beyond float16."""
    near = _nearest_half(x)
    return np.where(near.astype(np.float64) < x, _next(near, np.inf), near)


def half_down(x: Array) -> Array:
    """The largest float16 <= x; minus infinity beyond float16. Zero is +0."""
    near = _nearest_half(x)
    down = np.where(near.astype(np.float64) > x, _next(near, -np.inf), near)
    out: Array = down + np.float16(0)  # -0 + 0 = +0
    return out


def half(x: Array) -> Array:
    """float16 to nearest, ties to even, signs of zeros kept; what is below 2^-25 becomes zero. Refused: a
    magnitude beyond 65504, even if it would round to that.
    """
    _check(x)
    _refuse(np.abs(x) > HALF_MAX, x, f"beyond {HALF_MAX:g}, the largest float16")
    return x.astype(np.float16)


def symmetric(x: Array, levels: int = 127) -> Symmetric:
    """Each last axis is a group: s is the smallest float16 with levels * s >= the largest magnitude, codes
    are x / s to nearest, halves away from zero. levels: 127 for int8, 7 for int4.
    """
    wide = _given(x).astype(np.float64)
    top = np.abs(wide).max(-1)
    # levels * s has 18 bits at most, top 24: they are equal or at least 2^-25 of their size apart, far more
    # than the 2^-53 by which the quotient may err.
    scales = half_up(top / levels)
    _refuse(np.isinf(scales), top, f"beyond {levels} * {HALF_MAX:g}, all that a float16 scale reaches")
    step = np.where(scales > 0, scales, 1).astype(np.float64)[..., None]
    # |x| / s is k + 1/2 exactly or at least 2^-27 away from it: near there x >= s / 4, so that its 24 bits
    # end above 2^-27 s, and those of (k + 1/2) s end above 2^-12 s. The quotient errs by 2^-46 at most.
    codes = np.sign(wide) * np.floor(np.abs(wide) / step + 0.5)
    return Symmetric(codes.astype(np.int8), scales)


def ranged(x: Array, axis: int = -1, clip: bool = False) -> Ranged:
    """Each run along `axis` is a group: m is the largest float16 <= the minimum, s the smallest float16 with
    m + 15 s >= the maximum, codes are (x - m) / s to nearest, halves up; 0 where s is 0.

    clip: what is beyond float16 is stored as the next to it, -65504 or 65504 for m, 65504 for s.
    """
    wide = _given(x).astype(np.float64)
    low, high = wide.min(axis), wide.max(axis)
    minima = half_down(np.clip(low, -HALF_MAX, HALF_MAX) if clip else low)
    _refuse(np.isinf(minima), low, f"below {-HALF_MAX:g}, the smallest float16")
    if clip:
        high = np.clip(high, minima.astype(np.float64), minima.astype(np.float64) + 15 * HALF_MAX)
    m = minima.astype(np.float64)
    scales = half_up(np.minimum((high - m) / 15, 2 * HALF_MAX))
    # The difference may have been rounded. m + 15 s is exact, so that the neighbours decide.
    below = _next(scales, 0)
    scales = np.where(m + 15 * below.astype(np.float64) >= high, below, scales)
    short = m + 15 * scales.astype(np.float64) < high
    scales = np.where(short, _next(scales, np.inf), scales)
    _refuse(np.isinf(scales), high, f"more than 15 * {HALF_MAX:g} above the group's minimum")
    # x reaches code c when x >= m + (c - 1/2) s, a multiple of 2^-25 below 2^21 and so exact.
    first = np.expand_dims(m, axis)
    step = np.expand_dims(scales.astype(np.float64), axis)
    codes = np.zeros(wide.shape, np.uint8)
    for code in range(1, 16):
        codes += wide >= first + (code - 0.5) * step
    codes[np.broadcast_to(step == 0, codes.shape)] = 0
    return Ranged(codes, minima, scales, axis)


def kept_count(group: int) -> int:
    """How many values of a group `sparse` keeps: three quarters, rounded up."""
    return -(-3 * group // 4)


def sparse(x: Array) -> Kept:
    """Each last axis is a group: its `kept_count` largest magnitudes, of equal ones the lower channels, are
    stored as `symmetric` stores them; the others read back as 0.
    """
    x = _given(x)
    order = np.argsort(-np.abs(x), axis=-1, kind="stable")
    kept = np.zeros(x.shape, bool)
    np.put_along_axis(kept, order[..., : kept_count(x.shape[-1])], True, axis=-1)
    found = symmetric(x)
    return Kept(kept, np.where(kept, found.codes, np.int8(0)), found.scales)


def offset_bytes(codes: Array) -> Array:
    """Signed codes as bytes: code + 128."""
    return (codes.astype(np.int16) + 128).astype(np.uint8)


def pack_nibbles(codes: Array, spare: int = 0) -> Array:
    """Codes 0..15 along the last axis, two a byte, the earlier in the low nibble; the high nibble left over
    by an odd count is `spare`.
    """
    if codes.shape[-1] % 2:
        codes = np.concatenate([codes, np.full((*codes.shape[:-1], 1), spare, codes.dtype)], -1)
    pairs = codes.astype(np.uint8)
    out: Array = pairs[..., 0::2] | (pairs[..., 1::2] << 4)
    return out


def unpack_nibbles(packed: Array, count: int) -> Array:
    """The reverse of pack_nibbles."""
    out = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
    return out[..., :count]


def pack_bitmap(kept: Array) -> Array:
    """Which channels are kept: channel c is bit c mod 8 of byte c div 8."""
    return np.packbits(kept, axis=-1, bitorder="little")


def _nearest_half(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(x, np.float64).astype(np.float16)


def _next(halves: Array, towards: float) -> Array:
    """The next float16, which may be infinite."""
    with np.errstate(over="ignore", under="ignore"):
        out: Array = np.nextafter(halves, np.float16(towards))
    return out


def _given(x: Array) -> Array:
    """x with its denormals as zeros, once checked."""
    _check(x)
    return np.where(np.abs(x) < _TINY, np.float32(0), x)


def _check(x: Array) -> None:
    """TypeError unless float32, Refused unless finite."""
    if x.dtype != np.float32:
        raise TypeError(f"a codec takes float32, not {x.dtype}")
    _refuse(~np.isfinite(x), x, "not finite")


def _refuse(where: Array, x: Array, why: str) -> None:
    if where.any():
        raise Refused(f"{float(x[where].flat[0]):g} is {why}")
