"""int4 in sealed blocks: what is stored, that cuts into steps do not matter, attention, sizes, refusals."""

from __future__ import annotations

import json
from array import array
from pathlib import Path

import kv_reference
import numpy as np
import pytest
from known_cases import DEVICE
from sealed_model import Model
from test_twins import PACKAGE

import mpy_kv
from kvlab.quality import codecs, kinds, sealed
from kvlab.quality.kinds import Shape
from mpy_kv import Geometry, KVCache, cache_for, geometry_for, kernels, selfcheck
from mpy_kv.errors import BadArgument
from mpy_kv.int4_blocks import SealedCache, SealedGeometry
from mpy_kv.kernels.int4 import ADDED
from mpy_kv.paged import PagedGeometry

PLAIN = kernels.of("int4").get("plain")


def floats(x):
    return array("f", np.asarray(x, np.float32).ravel().tolist())


# --- what a sealed block holds


def random_rows(rng, blocks, kv_heads, head_dim, group):
    """int8 rows (blocks, 16, groups, group) of every kind: random, zero, equal, one outlier channel, both
    ends of float16's scales."""
    shape = blocks, 16, kv_heads * head_dim // group, group
    codes = rng.integers(-127, 128, shape)
    scales = rng.lognormal(0, 1, shape[:3]) * np.exp2(rng.integers(-14, 12, (blocks, 1, 1)))
    scales = np.minimum(scales, 65504).astype(np.float16)
    kind = np.arange(blocks) % 12
    spread = kind == 1  # of tokens far apart in size
    scales[spread] = rng.integers(0, 0x7C00, scales[spread].shape).astype(np.uint16).view(np.float16)
    codes[kind == 2] = 0
    codes[kind == 3] = codes[kind == 3][:, :1]
    scales[kind == 3] = scales[kind == 3][:, :1]
    outlier = codes[kind == 4] // 100
    outlier[..., 0] = 127
    codes[kind == 4] = outlier
    scales[kind == 5] = np.float16(2.0**-24)
    scales[kind == 6] = np.float16(65504)
    scales[kind == 7] = 0
    codes[kind == 8] = np.abs(codes[kind == 8])
    codes[kind == 9] = -np.abs(codes[kind == 9])
    scales[kind == 9] = np.float16(65504)
    codes[kind == 10] = np.where(codes[kind == 10] > 0, 127, -127)
    scales[kind == 11] = np.float16(2.0**-24) * rng.integers(0, 40, scales[kind == 11].shape).astype(
        np.float16
    )
    return codecs.Symmetric(codes.astype(np.int8), scales)


def plane(rows, kv_heads, head_dim, slots):
    """Codes [kv_heads][slots][row] and scales [groups][slots] of each block, the first 16 slots filled."""
    blocks = len(rows.codes)
    width = rows.codes.shape[-1] if rows.codes.shape[-1] < head_dim else head_dim
    padded = -(-width // 4) * 4
    codes = np.full((blocks, kv_heads, slots, head_dim // width, padded), 128, np.uint8)
    parts = rows.codes.reshape(blocks, 16, kv_heads, head_dim // width, width).transpose(0, 2, 1, 3, 4)
    codes[:, :, :16, :, :width] = parts.astype(int) + 128
    scales = np.zeros((blocks, rows.scales.shape[2], slots), np.float16)
    scales[..., :16] = rows.scales.transpose(0, 2, 1)
    flat = scales.reshape(blocks, -1).view(np.uint8)
    return np.concatenate([codes.reshape(blocks, -1), flat], axis=1)


def nibble_rows(nibbles, kv_heads, head_dim):
    """(blocks, 16, groups, group) to bytes [kv_heads][16][row]."""
    blocks, width = len(nibbles), min(nibbles.shape[-1], head_dim)
    parts = nibbles.reshape(blocks, 16, kv_heads, head_dim // width, width).transpose(0, 2, 1, 3, 4)
    padded = np.zeros((*parts.shape[:-1], -(-width // 8) * 8), np.uint8)
    padded[..., :width] = parts
    return codecs.pack_nibbles(padded).reshape(blocks, -1)


def sealed_bytes(k, v, kv_heads, head_dim):
    """What a layer with one sealed block holds of it, by the spec, from int8 rows of both."""
    keys, values = sealed.keys(k), sealed.values(v)
    blocks = len(keys.nibbles)
    powers = keys.powers.view(np.uint8).reshape(blocks, -1)
    powers = np.pad(powers, ((0, 0), (0, -powers.shape[1] % 4)))
    ranges = np.stack([keys.steps, keys.minima.view(np.uint16)], -1).reshape(blocks, -1).view(np.uint8)

    def halves(x):
        return np.ascontiguousarray(x.transpose(0, 2, 1)).reshape(blocks, -1).view(np.uint8)

    return np.concatenate(
        [
            nibble_rows(keys.nibbles, kv_heads, head_dim),
            *(powers, ranges),
            nibble_rows(values.codes, kv_heads, head_dim),
            *(halves(values.scales), halves(values.minima)),
        ],
        axis=1,
    )


SHAPES = [(2, 8, 16), (1, 5, 5), (1, 24, 12), (3, 2, 1), (1, 32, 32)]


@pytest.mark.parametrize(("kv_heads", "head_dim", "group"), SHAPES)
def test_the_kernels_seal_as_the_reference_does(kv_heads, head_dim, group, upy, tmp_path):
    """Byte for byte: a thousand blocks by viper, some of them by plain."""
    rng = np.random.default_rng(head_dim)
    k, v = (random_rows(rng, 1008, kv_heads, head_dim, group) for _ in range(2))
    slots = 32
    fresh = np.concatenate([plane(k, kv_heads, head_dim, slots), plane(v, kv_heads, head_dim, slots)], axis=1)
    want = sealed_bytes(k, v, kv_heads, head_dim)
    given, out = tmp_path / "fresh", tmp_path / "sealed"
    given.write_bytes(fresh.tobytes())
    arguments = given, out, "viper", kv_heads, head_dim, group
    assert int(upy.run(DEVICE / "sealed_blocks.py", arguments, heap_bytes=16 << 20)) == 1008
    got = np.frombuffer(out.read_bytes(), np.uint8).reshape(want.shape)
    wrong = np.flatnonzero((got != want).any(1))
    assert not len(wrong), (wrong[:5] % 12, np.argwhere(got != want)[:8].tolist())

    import sealed_blocks

    some = slice(0, 36)
    plain = sealed_blocks.run(fresh[some].tobytes(), "plain", kv_heads, head_dim, group)
    assert plain == [row.tobytes() for row in want[some]]


def test_codes_are_to_nearest_wherever_nothing_saturates():
    """The definition against plain arithmetic: no value is further than half a step from what reads back, but
    for the units that the fixed point drops."""
    rows = random_rows(np.random.default_rng(2), 240, 2, 8, 16)
    largest = np.abs(rows.values()).max((1, 2, 3))
    normal = np.flatnonzero((largest < 65504) & (np.arange(240) % 12 != 1))
    x = rows.values()[normal]
    assert len(normal) > 120
    keys = sealed.keys(codecs.Symmetric(rows.codes[normal], rows.scales[normal]))
    unit = keys.powers.astype(float)[:, None, :, None] / 4096
    assert (np.abs(keys.values() - x) <= keys.steps[:, None] * unit / 2 + 2 * unit).all()
    assert (np.abs(x) < 64 * 4096 * unit).all()
    values = sealed.values(codecs.Symmetric(rows.codes[normal], rows.scales[normal]))
    assert (np.abs(values.values() - x) <= values.scales.astype(float)[..., None] / 2).all()


def test_quality_reads_back_what_the_device_stores():
    rng = np.random.default_rng(6)
    n, sinks = 71, 3
    x = (rng.normal(size=(2, n, 2, 8)) * np.exp2(rng.integers(-8, 6, (2, n, 1, 1)))).astype(np.float32)
    x[0, :, 0, 3] *= 90
    x[1, 20] = 0.37
    cache = cache_for(geometry_for("int4", 1, 2, 2, 8, window=n, sinks=sinks), kernels=PLAIN)
    for k, v in zip(*x):
        cache.append(0, floats(k), floats(v))
        cache.commit()
    last = sinks + 16 * 3  # of four full blocks the newest is fresh
    for which, given, known in (("k", x[0], kinds.KEYS), ("v", x[1], kinds.VALUES)):
        seen = known["int4-sealed"].read(given, Shape.of(2, 8), sinks)
        want = np.concatenate([seen.old[:last], seen.new[last:]])
        got = np.array([cache.read(0, which, p) for p in range(n)])
        assert (got.reshape(want.shape) == want).all()


# --- cuts


def drive(cache, steps, seed=0):
    """Feed tokens in steps of so many (0: a single append); returns the outputs of all, and the layers'
    bytes."""
    g = cache.geometry
    rng = np.random.default_rng(seed)
    count = sum(max(n, 1) for n in steps)
    k, v = rng.normal(size=(2, g.layers, count, g.width)).astype(np.float32) * 3
    q = rng.normal(size=(g.layers, count, g.heads * g.head_dim)).astype(np.float32)
    outs, at = [], 0
    for i, n in enumerate(steps):
        m = max(n, 1)
        found = []
        for layer in range(g.layers):
            part = slice(at, at + m)
            out = floats(np.zeros_like(q[layer, part]))
            if n == 0:
                cache.append(layer, floats(k[layer, part]), floats(v[layer, part]))
            else:
                cache.prefill(layer, floats(k[layer, part]), floats(v[layer, part]), n)
            if n == 0 or i % 3 != 2:
                cache.attend(layer, floats(q[layer, part]), out, floats(q[layer, part] + 1), m)
                found.append(np.array(out).reshape(m, -1))
            else:
                found.append(np.full((m, q.shape[-1]), np.nan))
        cache.commit()
        outs.append(np.stack(found, 1))
        at += m
    return np.concatenate(outs), bytes(cache.buffer[: g.layers * g.layer_bytes])


CUTS = [[90], [45, 45], [16] * 5 + [10], [1, 31, 7, 40, 11], [0] * 20 + [50] + [0] * 20, [33, 17, 33, 7]]


@pytest.mark.parametrize(("window", "sinks"), [(40, 2), (32, 0), (16, 1), (9, 3), (90, 0)])
def test_bytes_and_results_do_not_depend_on_the_cuts(window, sinks):
    g = geometry_for("int4", 2, 2, 1, 4, window=window, sinks=sinks)
    want, stored = drive(cache_for(g, kernels=PLAIN), [0] * 90)
    for cuts in CUTS:
        cache = cache_for(g, kernels=PLAIN)
        got, there = drive(cache, cuts)
        assert there == stored, cuts
        seen = ~np.isnan(got)
        assert (got[seen] == want[seen]).all(), cuts
        assert seen.any()
        assert cache.check() == 0


def test_a_whole_capacity_is_sealed_but_its_two_newest_blocks():
    cache = cache_for(geometry_for("int4", 1, 1, 1, 4, capacity=83), kernels=PLAIN)
    drive(cache, [83])
    assert cache.visible() == list(range(83))
    assert [cache.sealed(0, p) for p in range(83)] == [p < 64 for p in range(83)]
    assert cache.geometry.blocks == 4


# --- attention


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((4, 2, 8), {"window": 70, "sinks": 2}),
        ((2, 1, 16), {"window": 33, "sinks": 0}),
        ((2, 2, 12), {"window": 64, "sinks": 0, "group": 6}),
        ((1, 1, 64), {"capacity": 100}),
        ((1, 1, 5), {"window": 20, "sinks": 1}),
    ],
)
def test_attention_is_that_over_what_is_stored(shape, options):
    """Against softmax in float64 over the numbers read back, the query rounded as int8's is: within 2 % of
    the largest value, as int8's attention is held to. A channel of the keys is an outlier, values are off
    zero."""
    heads, kv_heads, d = shape
    rng = np.random.default_rng(d)
    cache = cache_for(geometry_for("int4", 1, *shape, **options), kernels=PLAIN)
    sinks = cache.geometry.sinks
    for t in range(99):
        k, v = rng.normal(size=(2, kv_heads, d)) + np.array([0, 1])[:, None, None]
        k[:, 0] *= 20
        q = rng.normal(size=(heads, d)) * 2
        qs = q[:, ::-1]
        out = floats(np.zeros(heads * d))
        cache.append(0, floats(k), floats(v))
        if t % 9 == 0 or t > 90:
            cache.attend(0, floats(q), out, floats(qs) if sinks else None)
            # All its query sees, itself included, is read before commit seals anything.
            seen = [
                p
                for p in [*range(min(sinks, t + 1)), *range(sinks, t + 1)]
                if p < sinks or p > t - cache.geometry.window
            ]
            keys, values = (read_pending(cache, which, seen) for which in ("k", "v"))
            for h in range(heads):
                at = slice(h // (heads // kv_heads) * d, (h // (heads // kv_heads) + 1) * d)
                one, near = kv_reference.quantise_query(q[h], qs[h] if sinks else None)
                want = kv_reference.attention(one, keys[:, at], values[:, at], sinks, near)
                assert np.array(out[h * d : (h + 1) * d]) == pytest.approx(
                    want, abs=0.02 * np.abs(values).max()
                )
        cache.commit()


def read_pending(cache, which, positions):
    """Vectors of these tokens, the uncommitted one included."""
    g = cache.geometry
    found = []
    for p in positions:
        name = cache.codec_of(0, p)
        at = cache.place(0, which, p)
        codec = mpy_kv.codecs.named(name)
        found.append([c * m * 2.0**e for c, m, e in codec.read(cache.buffer, g, which, *at)])
    return np.array(found)


# --- known failures of others (NUM-1, NUM-2, NUM-9)


def sealed_cache(head_dim, tokens, **options):
    """A cache whose first block holds `tokens` (pairs k, v), in turns, and is sealed."""
    cache = cache_for(geometry_for("int4", 1, 1, 1, head_dim, window=64, sinks=0, **options), kernels=PLAIN)
    for t in range(32):
        k, v = tokens[t % len(tokens)]
        cache.append(0, floats(k), floats(v))
        cache.commit()
    assert cache.sealed(0, 15)
    assert not cache.sealed(0, 16)
    return cache


def test_zeros_and_constants():
    one = np.eye(1, 16)[0]
    tokens = [(one, np.full(16, 1)), (0 * one, np.full(16, 2)), (-one, np.full(16, 3))]
    cache = sealed_cache(16, tokens)
    assert np.array(cache.read(0, "k", 1)) == pytest.approx(
        np.zeros(16), abs=0.0668
    )  # half a step of channel 0
    assert cache.read(0, "k", 1)[1:] == [0.0] * 15
    assert np.array(cache.read(0, "v", 1)) == pytest.approx([2.0] * 16, abs=2 / 127)
    out = floats(np.zeros(16))
    cache.append(0, floats(tokens[0][0] * 0), floats(np.full(16, 2)))
    cache.attend(0, floats(one), out)
    seen = [np.array([cache.read(0, w, p) for p in range(32)]) for w in "kv"]
    want = kv_reference.attention(one, np.vstack([seen[0], 0 * one]), np.vstack([seen[1], np.full(16, 2)]))
    assert np.array(out) == pytest.approx(want, rel=0.02)

    zeros = sealed_cache(16, [(0 * one, 0 * one)])
    assert zeros.read(0, "k", 3) == zeros.read(0, "v", 3) == [0.0] * 16
    half = sealed_cache(16, [(np.full(16, 0.5), np.full(16, 0.5))])
    for which in "kv":
        assert np.array(half.read(0, which, 3)) == pytest.approx([0.5] * 16, abs=0.5 / 254 + 1e-3)
    out = floats(np.zeros(16))
    half.append(0, floats(np.full(16, 0.5)), floats(np.full(16, 0.5)))
    half.attend(0, floats(one), out)
    assert np.array(out) == pytest.approx([0.5] * 16, rel=0.01)


def test_nibbles_keep_their_place():
    """Sixteen values that a step of one tells apart; every nibble in either half of a byte, rows of odd
    length."""
    values = np.arange(16) - 7
    cache = sealed_cache(16, [(values, values), (values[::-1], values[::-1])])
    at = cache.place(0, "v", 0)[0]
    step = np.array(cache.read(0, "v", 0))
    assert step == pytest.approx(values, abs=0.6)
    assert list(cache.buffer[at : at + 8]) == [2 * i | 2 * i + 1 << 4 for i in range(8)]
    odd = sealed_cache(5, [([7, t % 7, -t % 5, t % 3, -7], [7, t % 7, -t % 5, t % 3, -7]) for t in range(16)])
    for which in "kv":
        at = odd.place(0, which, 3)[0]
        assert odd.buffer[at + 2] >> 4 == 0
        assert odd.buffer[at + 3] == 0
        assert odd.read(0, which, 3)[0] == pytest.approx(7, abs=0.5)
        assert odd.read(0, which, 3)[4] == pytest.approx(-7, abs=0.5)
    assert odd.check() == 0


def test_an_outlier_costs_no_other_channel_of_the_keys():
    x = np.array([100] + [0.5] * 31)
    signs = [np.where(np.arange(32) > 0, s, 1) for s in (1, -1)]
    cache = sealed_cache(32, [(x * s, x * s) for s in signs], group=16)
    k, v = (np.array(cache.read(0, which, 0)) for which in "kv")
    assert k[0] == pytest.approx(100, rel=0.01)
    fresh = np.array(cache.read(0, "k", 16))
    assert k[1:] == pytest.approx(fresh[1:], abs=0.01)  # int8 itself cannot do more in the outlier's group
    assert v[16:] == pytest.approx([0.5] * 16, abs=0.5 / 15)
    assert v[1:16] == pytest.approx([0.5] * 15, abs=100 / 15 / 2 + 0.8)


# --- rollback


def test_a_rollback_into_sealed_blocks_reopens_them():
    cache = cache_for(geometry_for("int4", 1, 1, 1, 4, window=96, sinks=0), kernels=PLAIN)
    drive(cache, [0] * 70)
    before = {p: cache.read(0, "k", p) for p in range(70)}
    cache.rollback(30)
    assert cache.visible() == list(range(40))
    assert all(cache.read(0, "k", p) == before[p] for p in range(40))  # nothing moves before the next step
    cache.append(0, floats([1] * 4), floats([1] * 4))
    assert [cache.sealed(0, p) for p in range(40)] == [p < 16 for p in range(40)]
    assert not cache.placement.uneven  # mended once, and check is as strict as before
    for p in range(16, 40):
        step = max(abs(x) for x in before[p]) / 127
        assert np.array(cache.read(0, "k", p)) == pytest.approx(before[p], abs=step)
    assert cache.check() == 0


def test_a_block_begun_without_its_first_tokens_is_sealed_with_zeros():
    """A rollback beyond the window, into the middle of a block: its older tokens are gone."""
    g = geometry_for("int4", 1, 1, 1, 4, window=20, sinks=0, group=2)
    cache, model = cache_for(g, kernels=PLAIN), Model(1, 2, 20, 0, None)
    rng = np.random.default_rng(3)

    def step():
        k, v = rng.normal(size=(2, 4)).astype(np.float32) + 5
        model.begin()
        model.store(0, 0, k, v)
        cache.append(0, floats(k), floats(v))
        cache.commit()
        model.commit(1)

    for _ in range(100):
        step()
    cache.rollback(60)
    model.rollback(60)
    assert cache.visible() == []
    for _ in range(30):
        step()
        for which in "kv":
            for p in model.visible():
                assert cache.read(0, which, p) == model.read(0, which, p).tolist(), (cache.length, p)
    assert cache.sealed(0, 47)
    assert cache.length - 20 <= 50


# --- sizes and refusals


@pytest.mark.parametrize("shape", [(4, 8), (1, 5), (2, 64), (3, 6)])
def test_bytes_are_those_of_the_quality_tool(shape):
    g = SealedGeometry(1, shape[0], *shape, window=100, sinks=0)
    for tokens in (0, 1, 16, 31, 32, 40, 99):
        cost = [
            known["int4-sealed"].bytes(tokens, Shape.of(*shape)).exact for known in (kinds.KEYS, kinds.VALUES)
        ]
        assert g.kv_bytes(tokens) == sum(cost)


def test_what_a_cache_of_stories260k_takes():
    g = SealedGeometry(5, 8, 4, 8, window=512, sinks=0)
    assert g.kv_bytes(512) <= 0.36 * Geometry(5, 8, 4, 8, window=512, sinks=0, codec="float16").kv_bytes(512)
    assert len(cache_for(g, kernels=PLAIN).buffer) == g.bytes()


def test_visible_bytes_count_each_block_once():
    cache = cache_for(geometry_for("int4", 2, 1, 1, 4, window=40, sinks=2), kernels=PLAIN)
    drive(cache, [0] * 34)
    g = cache.geometry
    assert cache.kv_bytes == g.kv_bytes(34) == g.block_bytes() + 18 * g.token_bytes()
    assert cache.stats()["kv_bytes"] == cache.kv_bytes


def test_refusals_name_what_to_use():
    g = geometry_for("int4", 1, 1, 1, 4)
    with pytest.raises(BadArgument, match="SealedCache"):
        KVCache(g)
    with pytest.raises(BadArgument, match="SealedGeometry"):
        Geometry(1, 1, 1, 4, codec="int4")
    with pytest.raises(BadArgument, match="SealedGeometry, got Geometry"):
        SealedCache(Geometry(1, 1, 1, 4))
    with pytest.raises(BadArgument, match="requests cannot share them"):
        PagedGeometry(1, 1, 1, 4, codec="int4")
    with pytest.raises(BadArgument, match="'int8' is not sealed"):
        SealedGeometry(1, 1, 1, 4, codec="int8")
    with pytest.raises(BadArgument, match="group 64: int4 takes at most 32"):
        SealedGeometry(1, 1, 1, 64, group=64)
    with pytest.raises(BadArgument, match="kernels 'plain' are for codec 'int8', not 'int4'"):
        SealedCache(g, kernels=kernels.get("plain"))
    with pytest.raises(BadArgument, match="lower capacity"):
        SealedCache(geometry_for("int4", 1, 1, 1, 4, capacity=1 << 20))


def test_places_that_are_none():
    cache = SealedCache(SealedGeometry(1, 1, 1, 4, window=40, sinks=0))
    for layer, which, position in ((1, "k", 0), (0, "q", 0), (0, "k", -1), (0, "k", 1.0)):
        with pytest.raises(BadArgument, match="^(layer|which|position) must be"):
            cache.place(layer, which, position)
        with pytest.raises(BadArgument, match="must be|is not visible"):
            cache.read(layer, which, position)


def test_the_right_cache_for_each_codec():
    assert type(cache_for(g := geometry_for("int4", 1, 1, 1, 4), None, None, kernels=PLAIN)) is SealedCache
    assert repr(g).startswith("SealedGeometry(")
    assert "codec='int4'" in repr(g)
    assert type(cache_for(geometry_for("int8-int4", 1, 1, 1, 4))) is KVCache
    mixed = geometry_for(["int8", "int8-int4"], 2, 1, 1, 4)
    assert type(cache_for(mixed)).__name__ == "MixedCache"


def test_a_program_without_int4_loads_nothing_of_it(upy):
    said = upy.run(
        "import sys\nfrom mpy_kv import cache_for, geometry_for\n"
        "cache_for(geometry_for('int8', 1, 1, 1, 4))\n"
        "print([m for m in sys.modules if 'sealed' in m or 'int4' in m])"
    )
    assert said.strip() == "[]"


WITHOUT_EMITTER = """
import sys
sys.path.append("host_tests/device")
import without_emitter
import sealed_blocks
from mpy_kv import kernels
assert type(sys.modules["mpy_kv.sequence"]).__name__ == "_Names"
rows = bytes(range(1, 129)) + bytes([0, 60] * 32)  # 32 slots of 4 codes, then their scales
print(kernels.of("int4").best().name, len(sealed_blocks.run(rows + rows, "plain", 1, 4, 4)))
print(type(sys.modules["mpy_kv.int4_blocks.cache"]).__name__)
"""


def test_a_port_without_an_emitter_has_it_too(upy, monkeypatch):
    monkeypatch.chdir(PACKAGE.parent)
    assert upy.run(WITHOUT_EMITTER, heap_bytes=4 << 20).split() == ["plain", "1", "_Names"]


@pytest.mark.parametrize("kind", ["float32", "int16"])
def test_nothing_is_allocated_per_token_that_seals_or_reopens(kind, upy):
    """As test_allocation.py, whose measurements pass the ends of many blocks."""
    measured = json.loads(upy.run(DEVICE / "allocation.py", [kind, "int4"], heap_bytes=6 << 20))
    assert min(measured.pop("control")) > 0
    assert len(measured) == 9
    assert measured == {name: [0, 0] for name in measured}


def test_every_call_of_a_kernel_is_plains(upy):
    assert int(upy.run(DEVICE / "sealed_twins.py", ["viper"], heap_bytes=16 << 20, timeout=100)) > 5000


@pytest.mark.parametrize("name", ["scales", *ADDED])
def test_a_set_with_a_kernel_that_does_nothing_is_refused(name):
    broken = {each: getattr(PLAIN, each) for each in kernels.of("int4").names} | {name: lambda *_: 0}
    found = kernels.of("int4")._set_of("broken", broken)
    assert selfcheck.compare(PLAIN, found)
    assert selfcheck.compare(PLAIN, PLAIN) == ""


def test_a_place_that_was_is_one_without_sealed_blocks_too() -> None:
    """A window of less than a block seals nothing: whatever leaves it is gone."""
    cache = SealedCache(SealedGeometry(1, 1, 1, 4, window=15, sinks=0), kernels=PLAIN)
    x = array("f", [1.0] * 4)
    for _ in range(33):
        cache.append(0, x, x)
        cache.commit()
    size = cache.geometry.bytes()
    assert all(0 <= at < size for p in range(33) for which in "kv" for at in cache.place(0, which, p))


def test_files_of_int4_are_in_the_package():
    listed = (Path(mpy_kv.__file__).parents[1] / "package.json").read_text()
    for name in ("factory.py", "int4_blocks/cache.py", "kernels/int4/thumb.py", "codecs/int4.py"):
        assert f'"mpy_kv/{name}"' in listed
