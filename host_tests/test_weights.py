"""The weights kernels as 32-bit boards run them give plain's bits for any number of tokens: the last batch is
a part of one, and the sums are anything from nothing on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import thumb32
import viper32

from mpy_kv.kernels import params as P
from mpy_kv.kernels import plain
from mpy_kv.kernels.tables import TABLES
from unix_port.port import ROOT

KERNELS = {
    "viper": viper32.load(ROOT / "mpy_kv" / "kernels" / "viper.py")["weights"],
    "thumb": thumb32.load(ROOT / "mpy_kv" / "kernels" / "thumb.py")["weights"],
}
SCORES, VSCALE, UNITS = 16, 16 + 4 * 40, 16 + 4 * 40 + 2 * 40
SIZE = UNITS + 4 * 5


def scores(seed: int) -> tuple[bytearray, list[int]]:
    """A buffer and parameters: 1 to 40 scores, how far apart they are, and scales, by chance."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 41)) if seed % 2 else int(rng.integers(1, 10))
    buffer, a = bytearray(SIZE), [0] * P.A_COUNT
    record = (int(rng.integers(1024, 2048)), 2048 + int(rng.integers(-30, 30)), int(rng.choice([0, 3])))
    for i, word in enumerate(record):
        plain.put32(buffer, 4 * i, word)
    top = int(rng.choice([-(1 << 29), 0, 1 << 29]))
    spread = 1 << int(rng.choice([0, 4, 8, 12, 16, 20, 24, 28]))
    numbers = top - rng.integers(0, spread, n)
    shifts = (14, 17, 18, 20, 25, 31) if seed % 3 else (1, 2, 5, 30, 31)
    for i, number in enumerate(numbers.tolist()):
        plain.put32(buffer, SCORES + 4 * i, number)
        scale = int(rng.integers(1024, 2048)) << 5 | int(rng.choice(shifts))
        plain.put16(buffer, VSCALE + 2 * i, int(rng.choice([0, scale, scale, 2047 << 5 | shifts[0]])))
    a[P.N], a[P.SLICES], a[P.SCORES], a[P.DOTS] = n, 1, SCORES, SCORES
    a[P.VSCALE], a[P.UNITS], a[P.MAX] = VSCALE, UNITS, int(max(numbers))
    a[P.KEXP], a[P.LOG_EXP], a[P.LOG_SCALE] = 15, 15, int(rng.integers(1 << 14, 1 << 15))
    return buffer, a


@pytest.mark.parametrize("seed", range(24))
def test_weights_of_any_number_of_tokens(seed: int) -> None:
    buffer, a = scores(seed)
    results = {}
    for name, weights in {"plain": plain.weights, **KERNELS}.items():
        own, numbers = np.array(buffer), np.array(a, np.int32)
        tables: np.ndarray | object = np.array(TABLES, np.uint16)
        if name == "plain":
            own, numbers, tables = bytearray(buffer), list(a), TABLES  # type: ignore[assignment]
        run: Callable[..., int] = weights
        assert run(own, own, tables, numbers) == 0
        results[name] = bytes(own), [int(x) for x in numbers]
    assert results["viper"] == results["plain"]
    assert results["thumb"] == results["plain"]


def test_the_distance_that_thumb_takes_for_nothing_is_one() -> None:
    """From 7168 steps on all becomes 0, below 8192 no product overflows: the limit lies between, at every
    exponent and mantissa, although it comes from a table."""
    m = np.arange(1 << 14, 1 << 15)
    reciprocals = np.array(TABLES)[256 + (m >> 7) + 3 - 131]
    for e in range(1, 18):
        limit = (reciprocals.astype(np.int64) << 2 >> 17 - e) + 1
        assert np.all(limit >= -(-(7168 << e) // m))
        assert np.all(limit <= -(-(8192 << e) // m))


# Cycles of a Cortex-M0+ a score in Thumb, 255 tokens in view, by how many doublings weights lie apart.
MOST_CYCLES = {0: 51, 2: 55, 20: 56, 40: 50}


@pytest.mark.parametrize("doublings", MOST_CYCLES)
def test_what_a_score_costs(doublings: int) -> None:
    n = 255
    rng = np.random.default_rng(1)
    vscale = SCORES + 4 * 256
    buffer, a = bytearray(vscale + 2 * 256 + 4 * 32), [0] * P.A_COUNT
    for i, word in enumerate((1500, 2048, 0)):
        plain.put32(buffer, 4 * i, word)
    for i, x in enumerate(rng.random(n) * doublings):
        plain.put32(buffer, SCORES + 4 * i, (1 << 28) - int(x * (1 << 19)))
        plain.put16(buffer, vscale + 2 * i, int(rng.integers(1024, 2048)) << 5 | int(rng.integers(1, 4)))
    a[P.N], a[P.SLICES], a[P.SCORES], a[P.DOTS] = n, 1, SCORES, SCORES
    a[P.VSCALE], a[P.UNITS], a[P.MAX] = vscale, vscale + 2 * 256, 1 << 28
    # A doubling is 2^19, as 256 steps are: (d >> 8) * 2^14 >> 17.
    a[P.KEXP], a[P.LOG_SCALE], a[P.LOG_EXP] = 15, 22370, 15 + 11 + 8
    assert plain.distance_scale(buffer, a) == (1 << 14, 17, 8)
    own = np.array(buffer)
    thumb = KERNELS["thumb"]
    thumb(own, own, np.array(TABLES, np.uint16), np.array(a, np.int32))
    cost = thumb.cycles / n  # type: ignore[attr-defined]
    print(f"{doublings} doublings: {cost:.1f} cycles a score")
    assert MOST_CYCLES[doublings] * 0.9 < cost <= MOST_CYCLES[doublings]
