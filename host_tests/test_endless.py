"""The millionth token costs what the hundredth does (counted, not timed) and gives the same."""

from __future__ import annotations

import json
import sys
from array import array
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import mpy_kv.attention
import mpy_kv.cache
import mpy_kv.sequence
from mpy_kv import Geometry, KVCache, kernels

SCRIPT = Path(__file__).parent / "device" / "endless.py"


@pytest.mark.parametrize(("name", "real"), [("viper", 70000), ("plain", 1100)])
def test_a_step_costs_the_same_for_ever(name: str, real: int, upy) -> None:
    got = json.loads(upy.run(SCRIPT, [name, real], heap_bytes=8 << 20))
    first = got["100"]
    # Two layers of one head, one slice: K and V scales, all else once a layer.
    visible = 36
    per_head = {n: [2, 2 * visible] for n in ("qk", "score", "weights", "av", "emit")}
    assert first["calls"] == {**per_head, "encode": [2, 0], "query": [2, 0], "scales": [4, 4 * visible]}
    assert first["changed_bytes"] == 2 * 2 * 8  # the codes of one token, nothing else
    for when, position in (("1000", 1000), (str(real), real), ("million", 1000000)):
        assert got[when]["calls"] == first["calls"], when
        assert got[when]["changed_bytes"] == first["changed_bytes"], when
        assert got[when]["visible"] == visible
        assert got[when]["newest"] == position
    assert got[str(real)]["evicted"] == real + 1 - visible
    assert got["same"], "results depend on the position"

FILES = (mpy_kv.cache.__file__, mpy_kv.sequence.__file__, mpy_kv.attention.__file__)


def lines_of_a_step(cache: KVCache) -> int:
    """Lines of FILES that one step executes."""
    x, q, out = array("f", [1] * 8), array("f", [1] * 16), array("f", [0] * 16)
    count = 0

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        return local if frame.f_code.co_filename in FILES else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for layer in (0, 1):
            cache.append(layer, x, x)
            cache.attend(layer, q, out, q)
        cache.commit()
    finally:
        sys.settrace(before)
    return count


def test_a_step_executes_the_same_lines_for_ever() -> None:
    cache = KVCache(Geometry(2, 2, 1, 8, window=32, sinks=4), kernels=kernels.get("plain"))
    while cache.length < 200:
        lines_of_a_step(cache)
    ring = cache.geometry.ring_slots
    # One turn of the ring: the same lines again, whatever the turn.
    turn = [lines_of_a_step(cache) for _ in range(ring)]
    cache.seek(cache.length + ring * 30000 - 32)
    for _ in range(32):
        lines_of_a_step(cache)
    assert cache.length > 900000
    later = [lines_of_a_step(cache) for _ in range(ring)]
    assert sorted(later) == sorted(turn)
    assert max(turn) - min(turn) < 20  # visible tokens lie in one run or in two
