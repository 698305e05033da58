"""Which tokens are visible, at which positions the sinks are asked, what a full cache says."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import pytest
from known_cases import RUNTIMES, result

from kvlab.element_types import NAMES
from mpy_kv import Geometry, KVCache, geometry_for, kernels
from mpy_kv.errors import BadArgument, CacheFull, KVError
from mpy_kv.int4_blocks import SealedGeometry
from mpy_kv.paged import PagedGeometry
from mpy_kv.per_layer import MixedGeometry

everywhere = pytest.mark.parametrize("runtime", RUNTIMES)


def check_seen(found: list[Any], want: list[int]) -> None:
    """What cases.see() saw is exactly `want`: by visible(), by the mean of V, by V one-hot."""
    visible, mean, attended = found
    assert visible == want
    assert mean == pytest.approx(np.mean(want), rel=0.004)
    assert attended == sorted({p % 64 for p in want})


@everywhere
def test_survivors_with_sinks(runtime: str, upy) -> None:
    got = result("survivors", runtime, upy)
    check_seen(got["4/16"], [*range(16)])
    check_seen(got["4/17"], [*range(17)])
    check_seen(got["4/20"], [*range(20)])
    check_seen(got["4/21"], [*range(4), *range(5, 21)])
    check_seen(got["4/100"], [*range(4), *range(84, 100)])
    assert np.mean([*range(4), *range(84, 100)]) == 73.5
    for n in (16, 17, 20, 21, 100):
        check_seen(got[f"0/{n}"], [*range(max(0, n - 16), n)])
        check_seen(got[f"16/{n}"], [*range(min(16, n)), *range(max(16, n - 16), n)])


def test_survivors_of_70000_tokens(upy) -> None:
    """Counters of 8 or 16 bits would wrap."""
    got = result("long_run", "viper on unix", upy)
    for n in (256, 257, 32768, 32769, 65536, 65537, 70000):
        check_seen(got[str(n)], [*range(4), *range(n - 16, n)])


@everywhere
def test_length_passes_the_window(runtime: str, upy) -> None:
    got = result("boundary", runtime, upy)
    for way in ("steps", "prefill"):
        check_seen(got[f"{way}/8"], [*range(8)])
        check_seen(got[f"{way}/9"], [*range(1, 9)])
        check_seen(got[f"{way}/11"], [*range(3, 11)])
        assert got[f"{way}/11"][1] == pytest.approx(6.5, abs=0.03)
    assert got["steps/bytes"] == got["prefill/bytes"]


SHAPE = {"layers": 2, "heads": 2, "kv_heads": 1, "head_dim": 8}
MADE = {
    "Geometry": lambda **sizes: Geometry(**SHAPE, **sizes),
    "MixedGeometry": lambda **sizes: MixedGeometry(**SHAPE, codec=["int8", "float16"], **sizes),
    "PagedGeometry": lambda **sizes: PagedGeometry(**SHAPE, **sizes),
    "SealedGeometry": lambda **sizes: SealedGeometry(**SHAPE, **sizes),
    **{name: lambda name=name, **sizes: geometry_for(name, **SHAPE, **sizes) for name in NAMES},
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_window_has_four_sinks_unless_none_are_asked_for(made: Any) -> None:
    for sizes, want in (
        ({}, (256, 4)),
        ({"window": 9}, (9, 4)),
        ({"window": 9, "sinks": 0}, (9, 0)),
        ({"window": 9, "sinks": 1}, (9, 1)),
        ({"capacity": 9}, (9, 0)),
        ({"capacity": 9, "sinks": 0}, (9, 0)),
    ):
        g = made(**sizes)
        assert (g.window, g.sinks, g.max_visible) == (*want, sum(want)), sizes
    assert made(window=9).bytes() == made(window=9, sinks=4).bytes() > made(window=9, sinks=0).bytes()


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_window_or_a_capacity_not_both(made: Any) -> None:
    """Neither is dropped without a word."""
    with pytest.raises(BadArgument, match="^window 4 beside capacity 5: take one; "):
        made(capacity=5, window=4)
    with pytest.raises(BadArgument, match="^sinks 4 need a window; with capacity nothing is evicted"):
        made(capacity=5, sinks=4)


def softmax(scores: np.ndarray) -> np.ndarray:
    w = np.exp(scores - scores.max())
    return w / w.sum()


@everywhere
def test_sinks_are_asked_at_their_own_position(runtime: str, upy) -> None:
    """Raw key (1, 0), one radian a position, query 8 times as long: the weights show each score."""
    got = result("sink_positions", runtime, upy)
    positions = np.array([*range(4), *range(84, 100)])
    place = np.where(positions < 4, positions, 4 + (positions - 4) % 16)
    for way, query_at in (("R", 19), ("O", 99)):
        assert got[way]["visible"] == positions.tolist()
        distance = np.where(positions < 4, query_at - positions, 99 - positions)
        scores = np.cos(distance)
        if way == "R":
            assert scores[[0, 3, 4, 19]] == pytest.approx([0.98870, -0.95766, -0.75969, 1], abs=1e-5)
        else:
            assert scores[[0, 3, 4, 19]] == pytest.approx([0.03982, -0.18043, -0.75969, 1], abs=1e-5)
        want = softmax(8 * scores / np.sqrt(2))
        weights = np.array(got[way]["weights"])[place]
        # The query's 7 bits and the keys' 8 move a score of 5.66 by up to 0.07.
        assert weights == pytest.approx(want, rel=0.08, abs=2e-4), way
    for way in ("R", "O"):
        assert got[way]["asked"] == [min(t, 19) for t in range(100)]
        assert got[way]["after rollback"] == [95, 19, 19]
        assert got[way]["deep"] == [7, 7, 19]


def full_cache() -> tuple[KVCache, array, array]:
    cache = KVCache(Geometry(2, 1, 1, 4, capacity=6), kernels=kernels.get("plain"))
    x = array("f", [1, 2, 3, 4])
    many = array("f", list(x) * 4)
    for layer in (0, 1):
        cache.prefill(layer, many, many, 4)
    cache.commit()
    return cache, x, many


def test_a_full_cache_says_so_in_numbers() -> None:
    cache, x, many = full_cache()
    before = bytes(cache.buffer), cache.length, cache.visible()
    with pytest.raises(CacheFull) as full:
        cache.prefill(0, many, many, 4)
    error = full.value
    assert isinstance(error, KVError)
    assert (error.needed, error.free, error.largest, error.evictable, error.pinned) == (4, 2, 2, 0, 0)
    assert error.unit == "tokens"
    for text in ("capacity 6", "raise capacity", "window", "needed 4 tokens", "free 2"):
        assert text in str(error)
    assert (bytes(cache.buffer), cache.length, cache.visible()) == before
    assert cache.stats()["pending_layers"] == 0
    # The next smaller one works, and so does the room that is left, to the last token.
    for layer in (0, 1):
        cache.prefill(layer, many, many, 2)
    cache.commit()
    assert cache.length == 6
    with pytest.raises(CacheFull) as full:
        cache.append(0, x, x)
    assert (full.value.needed, full.value.free) == (1, 0)
    assert cache.length == 6
    assert cache.check() == 0
    cache.rollback(1)
    for layer in (0, 1):
        cache.append(layer, x, x)
    cache.commit()
    assert cache.visible() == [0, 1, 2, 3, 4, 5]


def test_nothing_is_written_beyond_the_buffer() -> None:
    """A cache without a window, filled to the last token inside a larger buffer."""
    g = Geometry(2, 2, 1, 5, capacity=7)
    frame = bytearray(b"\xee" * (g.bytes() + 64))
    cache = KVCache(g, memoryview(frame)[32 : 32 + g.bytes()], kernels=kernels.get("plain"))
    x = array("f", range(5))
    q, out = array("f", range(10)), array("f", range(10))
    for _ in range(7):
        for layer in (0, 1):
            cache.append(layer, x, x)
            cache.attend(layer, q, out)
        cache.commit()
    with pytest.raises(CacheFull):
        cache.append(0, x, x)
    assert frame[:32] == frame[-32:] == b"\xee" * 32
