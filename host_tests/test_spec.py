"""The worked example of the cache buffer in docs/SPEC.md is what the code writes."""

from __future__ import annotations

import re
from array import array
from pathlib import Path

from kv_reference import Layout

from mpy_kv import Geometry, KVCache, kernels

SPEC = Path(__file__).parents[1] / "docs" / "SPEC.md"
# The table of the example.
TOKENS = (
    ([1, -2, 0.5, 0], [0, 0, 0, 0]),
    ([0.25, 3, -1, 127], [1, 2, 3, 4]),
    ([-0.125, 0, 0, 0.125], [4, 3, 2, 1]),
    ([8319008, -1, 0, 1e6], [-1, 1, -1, 1]),
)


def _hex_of(text: str) -> bytes:
    """Bytes of a dump: `offset: hex words   comment`, offsets without gaps."""
    found = bytearray()
    for line in text.strip().splitlines():
        at, words = re.fullmatch(r"([0-9a-f]+): ((?:[0-9a-f]{4} ?)+).*", line).groups()
        assert int(at, 16) == len(found)
        found += bytes.fromhex(words)
    return bytes(found)


def test_worked_example_of_the_cache_buffer():
    (dump,) = re.findall(r"```text cache-block\n(.*?)```", SPEC.read_text(), re.DOTALL)
    g = Geometry(layers=1, heads=2, kv_heads=1, head_dim=4, window=2, sinks=1)
    cache = KVCache(g, kernels=kernels.get("plain"))
    for k, v in TOKENS:
        cache.append(0, array("f", k), array("f", v))
        cache.commit()
    assert bytes(cache.buffer[: g.layer_bytes]) == _hex_of(dump)
    assert (g.group, g.slots, g.row_bytes, g.layer_bytes, g.bytes()) == (4, 4, 4, 48, 176)
    assert cache.visible() == [0, 2, 3]


def test_an_independent_reading_of_the_spec_finds_the_values():
    cache = KVCache(
        Geometry(layers=1, heads=2, kv_heads=1, head_dim=4, window=2, sinks=1),
        kernels=kernels.get("plain"),
    )
    for k, v in TOKENS:
        cache.append(0, array("f", k), array("f", v))
        cache.commit()
    layout = Layout(1, 2, 1, 4, window=2, sinks=1, group=4)
    for position in cache.visible():
        for value in (False, True):
            stored = layout.read(bytes(cache.buffer), 0, value)[layout.slot(position)]
            for x, y in zip(TOKENS[position][value], stored, strict=True):
                top = max(map(abs, TOKENS[position][value]))
                assert abs(x - y) <= top / 127 / 2 * 1.002
