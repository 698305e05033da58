"""Numbers on which other caches failed: zero vectors, outliers, signed bytes, grouped heads."""

from __future__ import annotations

import numpy as np
import pytest
from known_cases import RUNTIMES, result

pytestmark = pytest.mark.parametrize("runtime", RUNTIMES)


def half_up(x: float) -> float:
    """The smallest float16 that is not below x."""
    h = np.float16(x)
    return float(h if float(h) >= x else np.nextafter(h, np.float16(np.inf)))


def test_a_zero_vector_has_scale_zero_and_takes_part(runtime: str, upy) -> None:
    got = result("zero_vector", runtime, upy)
    assert got["scales"] == [half_up(1 / 127), 0, half_up(1 / 127)]
    assert got["read"][1] == [0.0] * 16
    assert got["read"][0] == [127 * half_up(1 / 127)] + [0.0] * 15
    weights = np.exp([0.25, 0, -0.25])
    want = (weights / weights.sum()) @ [1, 2, 3]
    assert want == pytest.approx(1.835046, abs=1e-6)
    assert got["out"] == pytest.approx([want] * 16, rel=0.004)


def test_a_constant_vector_reads_back(runtime: str, upy) -> None:
    got = result("constant_vector", runtime, upy)
    assert np.abs(np.array(got["read"]) - 0.5).max() <= got["scale"] / 2
    assert got["out"] == pytest.approx([0.5] * 16, rel=0.002)


def test_an_outlier_costs_its_own_group_only(runtime: str, upy) -> None:
    got = result("outlier", runtime, upy)
    s0, s1 = got["scales"]
    assert s0 == half_up(100 / 127)
    assert s1 == half_up(0.5 / 127)
    assert s0 == pytest.approx(0.787402, rel=1e-3)
    assert s1 == pytest.approx(0.00393701, rel=1e-3)
    assert got["read"][0] == 127 * s0
    assert got["read"][1:16] == [s0] * 15
    assert np.abs(np.array(got["read"][16:]) - 0.5).max() <= s1 / 2
    want = np.array([100] + [0.5] * 31)
    steps = np.repeat([s0, s1], 16)
    assert (np.abs(got["read"] - want) <= steps / 2).all()


def test_bytes_are_signed(runtime: str, upy) -> None:
    got = result("signed_bytes", runtime, upy)
    assert got["minus one"] == [-8]
    assert got["sweep"] == [[v - 128 for v in range(1, 256)]] * 8
    q = np.array([64, -64, -64, 64, 64, -64, 64, -64])
    rows = np.array([[1, 255, 1, 255, 255, 1, 255, 1], [255] * 8, [1] * 8]) - 128
    assert got["extremes"] == [*(rows @ q).tolist(), *(rows @ np.full(8, -64)).tolist()]


def test_a_buffer_may_begin_at_any_address(runtime: str, upy) -> None:
    got = result("offsets", runtime, upy)
    assert all(aligned for aligned, _ in got)
    assert got[0][1] == got[1][1] == got[2][1] == got[3][1]


def test_query_heads_share_kv_heads_in_blocks(runtime: str, upy) -> None:
    got = result("grouped_heads", runtime, upy)
    by_head = {name: np.array(got[name]).reshape(-1, 4) for name in ("6/2", "8/1", "6/6")}
    assert by_head["6/2"] == pytest.approx(np.repeat([1, 1, 1, 2, 2, 2], 4).reshape(6, 4), rel=0.01)
    assert by_head["8/1"] == pytest.approx(np.ones((8, 4)), rel=0.01)
    assert by_head["6/6"] == pytest.approx(np.repeat([1, 2, 3, 4, 5, 6], 4).reshape(6, 4), rel=0.01)
    assert "heads 6 is not a multiple of kv_heads 4" in got["6/4"]


def test_rows_may_be_views_and_results_may_replace_queries(runtime: str, upy) -> None:
    arrays, views, in_place = result("views", runtime, upy)
    assert arrays == views == in_place


def test_a_buffer_need_not_be_cleared(runtime: str, upy) -> None:
    clean, ones, rubbish = result("dirty", runtime, upy)
    assert clean == ones == rubbish
    assert clean[1] == 0
