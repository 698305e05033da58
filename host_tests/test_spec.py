"""The worked examples of what lies in RAM, in docs/SPEC.md, are what the code writes."""

from __future__ import annotations

import re
from array import array
from pathlib import Path

import pytest
import stories_cases  # noqa: F401  (puts boards/apps on the path)
from kv_reference import Layout
from snapshot_cases import load, saved
from stories import kernels as app_kernels

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.codecs import named
from mpy_kv.int4_blocks import SealedCache, SealedGeometry

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
    assert (g.group, g.slots, g.row_bytes, g.layer_bytes, g.bytes()) == (4, 4, 4, 48, 228)
    assert cache.visible() == [0, 2, 3]


def test_worked_example_of_values_in_four_bits():
    (dump,) = re.findall(r"```text cache-block-int4\n(.*?)```", SPEC.read_text(), re.DOTALL)
    g = Geometry(layers=1, heads=2, kv_heads=1, head_dim=4, window=2, sinks=1, codec="int8-int4")
    cache = KVCache(g, kernels=kernels.of("int8-int4").get("plain"))
    for k, v in TOKENS:
        cache.append(0, array("f", k), array("f", v))
        cache.commit()
    assert bytes(cache.buffer[: g.layer_bytes]) == _hex_of(dump)
    assert (g.v_row_bytes, g.layer_bytes, g.bytes()) == (4, 48, 244)


def test_worked_example_of_sparse_values():
    (dump,) = re.findall(r"```text cache-block-sparse\n(.*?)```", SPEC.read_text(), re.DOTALL)
    g = Geometry(layers=1, heads=2, kv_heads=1, head_dim=4, window=2, sinks=1, codec="sparse")
    cache = KVCache(g, kernels=kernels.of("sparse").get("plain"))
    for k, v in TOKENS:
        cache.append(0, array("f", k), array("f", v))
        cache.commit()
    assert bytes(cache.buffer[: g.layer_bytes]) == _hex_of(dump)
    assert (g.v_row_bytes, g.layer_bytes, g.bytes()) == (4, 48, 244)


def test_worked_example_of_float16():
    (dump,) = re.findall(r"```text cache-block-float16\n(.*?)```", SPEC.read_text(), re.DOTALL)
    g = Geometry(layers=1, heads=2, kv_heads=1, head_dim=4, window=2, sinks=1, codec="float16")
    cache = KVCache(g, kernels=kernels.of("float16").get("plain"))
    for k, v in (*TOKENS[:3], ([0.1, -65504, 5e-8, 2049], TOKENS[3][1])):
        cache.append(0, array("f", k), array("f", v))
        cache.commit()
    assert bytes(cache.buffer[: g.layer_bytes]) == _hex_of(dump)
    assert (g.groups, g.row_bytes, g.layer_bytes, g.bytes()) == (0, 8, 64, 1268)


def test_worked_example_of_a_sealed_block():
    (dump,) = re.findall(r"```text sealed-block\n(.*?)```", SPEC.read_text(), re.DOTALL)
    g = SealedGeometry(layers=1, heads=1, kv_heads=1, head_dim=4, window=16, sinks=0)
    cache = SealedCache(g, kernels=kernels.of("int4").get("plain"))
    for t in range(32):
        cache.append(0, array("f", [t, -t, 100, t % 2]), array("f", [t, 1, -1, 0.5]))
        cache.commit()
    assert bytes(cache.buffer[g.at_codes4 : g.layer_bytes]) == _hex_of(dump)
    assert (g.blocks, g.at_codes4, g.layer_bytes - g.at_codes4) == (1, 384, 212)
    at = g.place4(0, "k", 1)
    found = [c * m * 2.0**e for c, m, e in named("int4").read(cache.buffer, g, "k", *at)]
    counts = (0 * 16 + 1 * 2044, -1916 * 16 + 14 * 2044, 12803 * 16 + 3 * 1, 0 * 16 + 15 * 108)
    assert found == [count * 2 / 4096 for count in counts]


def test_worked_example_of_a_snapshot():
    (dump,) = re.findall(r"```text snapshot\n(.*?)```", SPEC.read_text(), re.DOTALL)
    g = Geometry(layers=1, heads=2, kv_heads=1, head_dim=4, window=2, sinks=1)
    cache = KVCache(g, kernels=kernels.get("plain"))
    for k, v in TOKENS:
        cache.append(0, array("f", k), array("f", v))
        cache.commit()
    made = saved(cache, model=0x6AE1D013, ids=[1, 298, 278, 402], sections=[(b"note", b"ok")])
    assert made == _hex_of(dump)
    again, ids, note = KVCache(g, kernels=kernels.get("plain")), {}, bytearray(2)
    load(again, _hex_of(dump), model=0x6AE1D013, ids=ids, sections={b"note": note})
    assert (again.visible(), ids, note) == ([0, 2, 3], {0: 1, 2: 278, 3: 402}, b"ok")


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


def test_worked_example_of_the_activation_vector():
    (dump,) = re.findall(r"```text activation\n(.*?)```", SPEC.read_text(), re.DOTALL)
    want: list[int] = []
    for line in dump.strip().splitlines():
        at, words = re.fullmatch(r"(\d+): ((?:-?\d+ ?)+).*", line).groups()
        assert int(at) == len(want)
        want += map(int, words.split())
    numbers = [3, -1, 0.5, 0, 2, 0, 0, -3] + [0] * 24 + [0.25] + [0] * 31
    v = array("i", [int(x * 65536) for x in numbers] + [0] * len(want))
    # Root 2^14 and exponent 14 - 16: the vector is v / 2^16.
    app_kernels.get("plain").quant(v, array("i", [64, 64, 0, 64, 1 << 14, -2]))
    assert v[64:].tolist() == want

    # And reads back as the text says.
    m, e = want[:2]
    assert m * 2.0**e == pytest.approx(5.25 / 2**22, rel=1e-4)
    back = []
    for g in (2, 27):
        for i in range(g, g + 24, 3):
            even, odd = want[i], (want[i + 1] + (want[i] << 8) + (1 << 31)) % (1 << 32) - (1 << 31)
            low = [(w & 0xFFFF ^ 0x8000) - 0x8000 for w in (even, odd)]
            high = [(w - x) >> 16 for w, x in zip((even, odd), low)]
            assert (want[i + 2] + (even + odd) * 0x00800080) % (1 << 32) == 1 << 15
            back += [c * want[g + 24] * m * 2.0**e for c in (high[0], high[1], low[0], low[1])]
    assert back == pytest.approx(numbers, abs=5 / 512)
    assert back[:2] == pytest.approx([3.0078, -0.9961], abs=5e-5)
