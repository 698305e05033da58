"""Values of 4 bits on numbers that other caches failed on: packing, signs, zero groups, outliers."""

from __future__ import annotations

import numpy as np
import pytest
from known_cases import RUNTIMES, result
from test_cases_numerics import half_up

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)


def test_a_value_of_zeros_has_scale_zero(runtime: str, upy) -> None:
    got = result("int4 zeros", runtime, upy)
    assert got["key"] == [0.0] * 16
    assert got["value"] == [0.0] * 16
    assert got["scale"] == 0
    assert got["codes"] == [0x88] * 8
    assert got["out"] == pytest.approx([1.835046] * 16, rel=0.02)


def test_a_constant_value_reads_back(runtime: str, upy) -> None:
    got = result("int4 constant", runtime, upy)
    assert got["scale"] == half_up(0.5 / 7)
    assert np.abs(np.array(got["read"]) - 0.5).max() <= got["scale"] / 2
    assert got["out"] == pytest.approx([0.5] * 16, rel=0.002)


def test_an_outlier_costs_its_own_group_only(runtime: str, upy) -> None:
    got = result("int4 outlier", runtime, upy)
    s0, s1 = got["scales"]
    assert s0 == half_up(100 / 7)
    assert s0 == pytest.approx(14.2857, rel=1e-3)
    assert s1 == half_up(0.5 / 7)
    assert got["read"][0] == 7 * s0
    assert got["read"][1:16] == [0.0] * 15
    assert np.abs(np.array(got["read"][16:]) - 0.5).max() <= s1 / 2


def test_signs_and_neighbours(runtime: str, upy) -> None:
    got = result("int4 packing", runtime, upy)
    values = [*range(-7, 8), 0]
    assert got["scale"] == 1
    assert got["codes"] == [a + 8 | b + 8 << 4 for a, b in zip(values[::2], values[1::2], strict=True)]
    assert got["read"] == values
    assert got["out"] == pytest.approx(values, abs=0.01)
    assert result("int4 pairs", runtime, upy) == []


def test_rows_of_an_odd_number_of_values(runtime: str, upy) -> None:
    """Three bytes hold a row, the fourth is padding, and its neighbours' rewriting leaves it alone."""
    got = result("int4 odd rows", runtime, upy)
    rows = [[7, t % 7, -t % 5, t % 3, t % 2 - 7] for t in (8, 9, 10)]
    assert got["read"] == rows
    a, b, c, d, e = (x + 8 for x in rows[-1])
    assert got["codes"] == [a | b << 4, c | d << 4, e | 0x80, 0x88]


def test_each_nibble_in_each_lane(runtime: str, upy) -> None:
    got = np.array(result("int4 lanes", runtime, upy))
    assert not (got % 16).any()  # a nibble counts 16 times
    got = (got // 16).tolist()
    single = [[n - 8 if i == place else -8 for i in range(8)] for place in range(8) for n in range(1, 16)]
    assert got[: len(single)] == single
    full, least, *mixed, last = got[len(single) :]
    assert full == [7 * 257] * 8
    assert least == [-7 * 257] * 8
    assert mixed == [[-7 * 257, 7 * 257] * 4, [7 * 257, -7 * 257] * 4]
    words = [0x87654321 + i for i in range(19)]
    want = [sum(((w >> 4 * c & 15) - 8) * (i % 5) for i, w in enumerate(words)) for c in range(8)]
    assert last == want
