"""Sparse values: which are kept, their bytes by the definition of the numpy codecs, known answers."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from jobs import Job
from known_cases import RUNTIMES, result
from kv_reference import Layout

from kvlab.quality import codecs
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import BadArgument

everywhere = pytest.mark.parametrize("runtime", RUNTIMES)


@everywhere
def test_a_value_of_zeros_has_scale_zero(runtime: str, upy) -> None:
    got = result("sparse zeros", runtime, upy)
    assert got["value"] == [0.0] * 16
    assert got["scale"] == 0
    assert got["row"] == [0xFF, 0x0F] + [128] * 14
    assert got["out"][:12] == pytest.approx([1.835046] * 12, rel=0.02)
    assert got["out"][12:] == [0.0] * 4


@everywhere
def test_of_equal_magnitudes_the_lower_channels_stay(runtime: str, upy) -> None:
    got = result("sparse ties", runtime, upy)
    kept = [3, -1, 1, 2, -1, 127, 0, 0]
    assert got["row"] == [0b00111111, *(128 + x for x in kept[:6]), 128]
    assert got["read"] == kept
    assert got["out"] == pytest.approx(kept, rel=0.01)
    assert got["rows"] == [[0b1011, 129, 128, 255], [0b1101, 128, 1, 127]]
    assert got["read two"] == [1, 0, 0, 127, 0, 0, -127, -1]
    assert got["sound"] == 0


@everywhere
def test_many_heads_in_a_group(runtime: str, upy) -> None:
    got = result("sparse narrow heads", runtime, upy)
    kept = codecs.sparse(np.array(got["values"], np.float32)).values()
    assert got["read"] == kept.tolist()
    assert got["out"] == pytest.approx(kept, rel=0.005, abs=1e-6)
    assert np.count_nonzero(got["read"]) >= 23


@everywhere
def test_rows_of_an_odd_number_of_values(runtime: str, upy) -> None:
    got = result("sparse odd rows", runtime, upy)
    rows = [[127, t % 7, -t % 5, t % 3 + 3, t % 2 - 7] for t in (8, 9, 10)]
    for row in rows:
        row[min(range(5), key=lambda c: (abs(row[c]), -c))] = 0
    assert got["read"] == rows
    assert got["row"] == [0b11011, 255, 131, 132, 121, 128, 128, 128]


@everywhere
def test_each_bitmap_of_a_head(runtime: str, upy) -> None:
    got = result("sparse lanes", runtime, upy)
    assert got["wrong"] == []
    most, least = 127 * 257, -127 * 257
    assert got["full"] == [[most] * 8, [least] * 8, [most, 0] * 4, [0, least] * 4]


# --- bytes ---------------------------------------------------------------------------------------

# kv_heads, head_dim, group: over four heads, over two of 12, within a head, no multiple of 8 or of 4.
SHAPES = [(4, 8, 32), (2, 12, 24), (1, 64, 32), (2, 48, 16), (3, 5, 5), (2, 7, 14), (5, 3, 1), (1, 29, 29)]


def hard(width: int, group: int) -> np.ndarray:
    """Vectors [T][width]: ties of every kind, zeros, denormals, extremes, sizes beyond a scale's range."""
    rng = np.random.default_rng(width + group)
    rows = [rng.normal(size=width) for _ in range(12)]
    rows += [rng.integers(-3, 4, size=width) for _ in range(12)]
    rows += [np.full(width, x) for x in (0, 1, -1, 127 * 65504.0, -127 * 65504.0, 1e-39, 1e-30)]
    signs = rng.choice([-1, 1], size=width)
    rows += [signs, signs * 127 * 65504.0, np.arange(width), -np.arange(width)[::-1]]
    rows += [np.where(rng.random(width) < p, rng.normal(size=width), 0) for p in (0.2, 0.5)]
    rows += [np.where(rng.random(width) < 0.5, tiny, 0) * signs for tiny in (1e-39, 2.0**-126, 1e-8, 3e-9)]
    rows += [rng.normal(size=width) * np.exp2(rng.integers(-30, 20, size=width)) for _ in range(6)]
    return np.array(rows).astype(np.float32)


def rows_of(x: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """By the definition: rows [groups][T][bytes], padded with 128 to words, and scales [groups][T]."""
    found = codecs.sparse(x.reshape(len(x), -1, group))
    bitmaps = codecs.pack_bitmap(found.kept)
    count = codecs.kept_count(group)
    codes = codecs.offset_bytes(found.codes)[found.kept].reshape(*found.kept.shape[:2], count)
    padding = np.full((*codes.shape[:2], -(bitmaps.shape[-1] + count) % 4), 128, np.uint8)
    return np.concatenate([bitmaps, codes, padding], -1).transpose(1, 0, 2), found.scales.T


@pytest.mark.parametrize("int16", [False, True], ids=["float32", "int16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bytes_are_those_of_the_definition(shape: tuple[int, int, int], int16: bool, upy) -> None:
    kv_heads, head_dim, group = shape
    v = hard(kv_heads * head_dim, group)
    options: dict = {}
    if int16:
        options = {"kv_shift": [[0, 9]]}
        v = np.clip(np.round(v * 2.0**9), -32768, 32767)
    tokens = len(v)
    geometry = {"layers": 1, "heads": kv_heads, "kv_heads": kv_heads, "head_dim": head_dim}
    geometry |= {"capacity": tokens, "group": group, "codec": "sparse"}
    v = v[:, None]
    job = Job(geometry, [["prefill-commit", 0, tokens]], np.ones_like(v), v, np.zeros_like(v), **options)
    layout = Layout(**geometry)
    rows, scales = rows_of((v[:, 0] * (2.0**-9 if int16 else 1)).astype(np.float32), group)
    at = layout.plane_at(0, True)
    for _, buffer in (job.plain(), job.unix(upy)):
        stored = np.frombuffer(buffer, np.uint8, layout.codes[1], at).reshape(rows.shape)
        assert np.array_equal(stored, rows)
        halves = np.frombuffer(buffer, "<f2", scales.size, at + layout.codes[1]).reshape(scales.shape)
        assert np.array_equal(halves, scales)


def filled(**options) -> tuple[KVCache, np.ndarray]:
    """A cache of the shape of stories260K with values by chance."""
    g = Geometry(5, 8, 4, 8, codec="sparse", **options)
    cache = KVCache(g, kernels=kernels.of("sparse").get("plain"))
    rng = np.random.default_rng(3)
    values = rng.normal(size=(12, 32)).astype(np.float32)
    for v in values:
        x = array("f", v.tolist())
        for layer in range(5):
            cache.append(layer, x, x)
        cache.commit()
    return cache, values


def test_read_is_exact_and_sizes_are_those_of_the_bytes() -> None:
    cache, values = filled(window=8, sinks=2)
    assert cache.visible() == [0, 1, *range(4, 12)]
    for p in cache.visible():
        assert cache.read(3, "v", p) == codecs.sparse(values[p]).values().tolist()
        assert cache.read(3, "k", p) == codecs.symmetric(values[p]).values().tolist()
    g = cache.geometry
    assert g.token_bytes() == 320 == 5 * (34 + 30)
    assert cache.kv_bytes == 10 * 320
    assert (g.v_row_bytes, g.v_codes_bytes, g.v_head_stride) == (28, 28 * g.slots, 0)
    assert cache.check() == 0


@pytest.mark.parametrize(
    ("byte", "value"),
    [(0, 0x00), (3, 0xFF), (4, 0), (27, 0)],
    ids=["bits missing", "bits more", "a code", "the last code"],
)
def test_damage_is_found(byte: int, value: int) -> None:
    cache, _ = filled(capacity=12)
    row = cache.place(2, "v", 7)[0]
    assert cache.buffer[row + byte] != value
    cache.buffer[row + byte] = value
    assert cache.check() == 1


def test_padding_and_bits_beyond_the_group_are_looked_at() -> None:
    g = Geometry(1, 1, 1, 5, capacity=2, codec="sparse")
    cache = KVCache(g, kernels=kernels.of("sparse").get("plain"))
    x = array("f", [1, 2, 3, 4, 5])
    cache.append(0, x, x)
    cache.commit()
    row = cache.place(0, "v", 0)[0]
    good = bytes(cache.buffer)
    for at, value in ((0, 0b111100), (5, 0), (7, 127)):
        cache.buffer[row + at] = value
        assert cache.check() == 1
        cache.buffer[:] = good


def test_a_row_has_room_for_what_choosing_keeps_in_it() -> None:
    """encode sorts the smallest quarter in it, but for one value, as words."""
    for group in range(1, 33):
        assert 4 * (group // 4 - 1) <= Geometry(1, 1, 1, group, codec="sparse", group=group).v_row_bytes


def test_groups_are_of_a_word_of_bits_at_most() -> None:
    assert Geometry(1, 1, 1, 64, codec="sparse", group_limit=64).group == 32
    with pytest.raises(BadArgument, match="group 64: sparse takes at most 32"):
        Geometry(1, 1, 1, 64, codec="sparse", group=64)
