"""What joining saves: by the device's own queue, and by arithmetic."""

from __future__ import annotations

import pytest

from kvlab.bus import overhead

STORIES = (5, 8, 4, 8)


@pytest.mark.parametrize("tokens", [1, 2, 16, 64])
def test_a_run_a_plane_however_many_tokens(tokens: int) -> None:
    """10 planes a layer; a token has 34 bytes of K and V each: 32 codes and a scale."""
    joined = overhead.of_tokens(*STORIES, tokens)
    assert joined == overhead.Joined(5 * 10 * tokens, 50, 5, 5 * tokens * 2 * 34)
    assert overhead.saved(joined.pushes, joined.descriptors, 64) == pytest.approx(100 * (1 - 1 / tokens))


def test_twice_that_where_the_ring_ends() -> None:
    joined = overhead.of_tokens(*STORIES, 64, wraps=True)
    assert (joined.pushes, joined.descriptors, joined.chains) == (3200, 100, 5)


def test_of_all_the_time() -> None:
    """100 transfers of 8 bytes at 64 ns and 500 MB/s: 6.4 and 1.6 us; 10 descriptors save 90 * 64 ns."""
    assert overhead.saved(100, 10, 64, 800, 500_000_000) == pytest.approx(100 * 90 * 64 / 8000)
    assert overhead.saved(100, 10, 0, 800, 500_000_000) == 0
    assert overhead.saved(0, 0, 64) == 0
