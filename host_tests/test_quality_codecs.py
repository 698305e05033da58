"""The codecs of `kvlab quality` against their definition in fractions, the device's encoder, known traps."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import product

import kv_reference
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.bench.stored import DeviceCodec
from kvlab.quality import codecs, kinds
from kvlab.quality import sealed as sealed_blocks
from kvlab.quality.kinds import BLOCK, CODECS, KEYS, VALUES, Arrangement, Shape
from mpy_kv import Geometry, KVCache

_BITS = np.arange(0x7C00, dtype=np.uint16)  # every float16 from 0 to 65504, in order
_HALVES = [Fraction(float(h)) for h in _BITS.view(np.float16)]


def smallest_half(x):
    """(Fraction) the smallest float16 >= x >= 0, or None beyond."""
    at = bisect_left(_HALVES, x)
    return _HALVES[at] if at < len(_HALVES) else None


def largest_half(x):
    """The largest float16 <= x of either sign, or None below."""
    if x >= 0:
        return _HALVES[bisect_right(_HALVES, x) - 1]
    up = smallest_half(-x)
    return None if up is None else -up


def flushed(row):
    return [Fraction(0) if abs(x) < 2.0**-126 else Fraction(float(x)) for x in row]


def by_hand_symmetric(row, levels):
    """(codes, scale), or None where it must be refused."""
    xs = flushed(row)
    s = smallest_half(max(map(abs, xs)) / levels)
    if s is None:
        return None
    if s == 0:
        return [0] * len(xs), s
    sign = [1 if x >= 0 else -1 for x in xs]
    return [g * math.floor(abs(x) / s + Fraction(1, 2)) for g, x in zip(sign, xs)], s


def by_hand_ranged(row):
    """(codes, minimum, scale), or None."""
    xs = flushed(row)
    m = largest_half(min(xs))
    if m is None:
        return None
    s = smallest_half((max(xs) - m) / 15)
    if s is None:
        return None
    return [math.floor((x - m) / s + Fraction(1, 2)) if s else 0 for x in xs], m, s


def _near(value):
    """A float32 and its neighbours."""
    x = np.float32(value)
    return [float(y) for y in (x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(-np.inf)))]


halves = st.integers(0, 0x7BFF).map(lambda bits: float(np.array(bits, np.uint16).view(np.float16)))
signs = st.sampled_from((1.0, -1.0))
# Where a code, a scale or a minimum changes: multiples and half multiples of float16 numbers, and their next.
edges = st.builds(
    lambda h, k, sign, which: sign * _near(min(h * k / 2, 2.0**40))[which],
    halves,
    st.integers(0, 255),
    signs,
    st.integers(0, 2),
)
tiny = [0.0, -0.0, 2.0**-149, 2.0**-126, 2.0**-25, 2.0**-24, 2.0**-100]
small = st.sampled_from([*tiny, *(-x for x in tiny)])
large = st.sampled_from([65504.0, 65519.0, 65520.0, -65504.0, -65505.0, 982560.0, 7 * 65504.0, 127 * 65504.0])
plain = st.floats(-1000, 1000, width=32)
rows = st.lists(st.one_of(plain, edges, small, large), min_size=1, max_size=8)


@given(rows, st.sampled_from((127, 7)))
@settings(max_examples=400, deadline=None)
def test_symmetric_is_its_definition(row, levels):
    x = np.array([row], np.float32)
    want = by_hand_symmetric(x[0], levels)
    if want is None:
        with pytest.raises(codecs.Refused):
            codecs.symmetric(x, levels)
        return
    got = codecs.symmetric(x, levels)
    assert (got.codes[0].tolist(), Fraction(float(got.scales[0]))) == want
    assert [Fraction(v) for v in got.values()[0].tolist()] == [c * want[1] for c in want[0]]


@given(rows)
@settings(max_examples=600, deadline=None)
def test_ranged_is_its_definition(row):
    x = np.array([row], np.float32)
    want = by_hand_ranged(x[0])
    if want is None:
        with pytest.raises(codecs.Refused):
            codecs.ranged(x)
        return
    got = codecs.ranged(x)
    codes, m, s = want
    found = got.codes[0].tolist(), Fraction(float(got.minima[0])), Fraction(float(got.scales[0]))
    assert found == (codes, m, s)
    assert all(0 <= code <= 15 for code in codes)
    values = [Fraction(v) for v in got.values()[0].tolist()]
    assert values == [m + s * code for code in codes]
    assert all(abs(v - x) <= s / 2 for v, x in zip(values, flushed(x[0])))
    assert not np.signbit(got.minima[got.minima == 0]).any()


@given(rows)
@settings(max_examples=300, deadline=None)
def test_sparse_is_its_definition(row):
    x = np.array([row], np.float32)
    want = by_hand_symmetric(x[0], 127)
    if want is None:
        return
    got = codecs.sparse(x)
    order = sorted(range(len(row)), key=lambda i: (-abs(flushed(x[0])[i]), i))
    kept = set(order[: math.ceil(Fraction(3 * len(row), 4))])
    assert set(np.flatnonzero(got.kept[0])) == kept
    assert got.codes[0].tolist() == [c if i in kept else 0 for i, c in enumerate(want[0])]
    assert Fraction(float(got.scales[0])) == want[1]


@given(st.one_of(plain, edges, small, large))
@settings(max_examples=400, deadline=None)
def test_half_is_to_nearest_ties_to_even(value):
    x = np.array([value], np.float32)
    exact = Fraction(float(x[0]))
    if abs(exact) > 65504:
        with pytest.raises(codecs.Refused):
            codecs.half(x)
        return
    got = codecs.half(x)
    at = bisect_left(_HALVES, abs(exact))
    around = range(max(0, at - 1), min(at + 2, len(_HALVES)))
    near = min(around, key=lambda i: (abs(_HALVES[i] - abs(exact)), i % 2))
    assert got.view(np.uint16)[0] == near | (0x8000 if np.signbit(x[0]) else 0)


def test_every_float16_is_kept_by_half():
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    finite = every[np.isfinite(every)]
    assert (codecs.half(finite.astype(np.float32)).view(np.uint16) == finite.view(np.uint16)).all()


def test_every_float16_is_a_minimum_and_a_scale():
    """A group of a float16 alone has it as its minimum, and of 0 and 15 times it, it as its scale."""
    every = np.arange(0x7C00, dtype=np.uint16).view(np.float16)
    both = np.concatenate([every, -every]).astype(np.float32)
    alone = codecs.ranged(both[:, None])
    assert (alone.minima.astype(np.float32) == both).all()
    assert not alone.scales.any()
    assert not alone.codes.any()
    spans = codecs.ranged(np.stack([np.zeros_like(every, np.float32), 15 * every.astype(np.float32)], 1))
    assert (spans.scales == every).all()
    assert (spans.codes[1:, 1] == 15).all()


@pytest.mark.parametrize("encode", [codecs.half, codecs.symmetric, codecs.ranged, codecs.sparse])
def test_what_is_no_number_is_refused(encode):
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(codecs.Refused, match="not finite"):
            encode(np.array([[1, bad]], np.float32))
    with pytest.raises(TypeError, match="float64"):
        encode(np.zeros((1, 2)))


def test_int4_values_are_what_the_device_stores():
    """By the plain kernels, to which all others give equal bits."""
    rng = np.random.default_rng(4)
    x = (rng.normal(size=(64, 4, 8)) * np.exp2(rng.integers(-20, 12, size=(64, 1, 1)))).astype(np.float32)
    x[3] = 0
    cache = KVCache(Geometry(1, 4, 4, 8, capacity=64, codec="int8-int4"))
    for row in x:
        values = array("f", row.ravel().tolist())
        cache.append(0, values, values)
        cache.commit()
    for which, kind in (("k", kinds.INT8), ("v", kinds.INT4)):
        stored = np.array([cache.read(0, which, p) for p in range(64)], np.float32)
        assert (stored.reshape(x.shape) == kind.read(x, Shape.of(4, 8)).new).all()


def test_int8_is_what_the_device_stores():
    """The device's own encoder, on the unix port."""
    rng = np.random.default_rng(5)
    x = (rng.normal(size=(64, 4, 8)) * 10.0 ** rng.integers(-9, 5, size=(64, 1, 1))).astype(np.float32)
    x[3] = 0
    x[4, 0, 0] = 1e6
    x[5] = np.float32(2.0**-26)
    shape = Shape(4, 8, 32)
    with DeviceCodec(4, 8, 32) as device:
        assert (device.stored(x) == kinds.INT8.read(x, shape).new).all()
    codes, scales = kv_reference.encode(x.reshape(64, 32), 32)
    got = codecs.symmetric(x.reshape(64, 1, 32))
    assert (got.codes.reshape(64, 32) == codes).all()
    assert (got.scales == scales).all()


def test_zeros_among_the_keys():
    """NUM-1."""
    keys = np.zeros((3, 16), np.float32)
    keys[0, 0], keys[2, 0] = 1, -1
    values = np.repeat(np.array([[1], [2], [3]], np.float32), 16, axis=1)
    for read in (codecs.symmetric, lambda x: codecs.symmetric(x, 7), codecs.ranged, codecs.sparse):
        found = read(keys)
        assert np.isfinite(found.scales).all()
        assert (found.values()[1] == 0).all()
        score = found.values()[:, 0] * 0.25
        weights = np.exp(score) / np.exp(score).sum()
        assert weights == pytest.approx([0.419229, 0.326496, 0.254275], rel=2e-3)
        kept = slice(12) if read is codecs.sparse else slice(None)  # of equals the first three quarters
        assert (weights @ read(values).values())[kept] == pytest.approx(1.835046, rel=1e-3)
        half = read(np.full((1, 16), 0.5, np.float32))
        assert (np.abs(half.values() - 0.5)[0, kept] <= half.scales[0] / 2).all()


def test_nibbles_keep_sign_and_neighbour():
    """NUM-2."""
    row = np.array([*range(-7, 8), 0], np.float32)
    found = codecs.symmetric(row, 7)
    assert float(found.scales) == 1
    packed = codecs.pack_nibbles(found.codes + 8, spare=8)
    assert len(packed) == 8
    assert (codecs.unpack_nibbles(packed, 16).astype(int) - 8 == row).all()
    pairs = np.array(list(product(range(16), repeat=2)), np.uint8)
    assert (codecs.unpack_nibbles(codecs.pack_nibbles(pairs), 2) == pairs).all()
    odd = np.array([[1, 2, 3, 4, 5], [15, 14, 13, 12, 11]], np.uint8)
    packed = codecs.pack_nibbles(odd)
    assert packed.tolist() == [[0x21, 0x43, 0x05], [0xEF, 0xCD, 0x0B]]
    assert (codecs.unpack_nibbles(packed, 5) == odd).all()
    assert codecs.pack_nibbles(odd, spare=8)[0, 2] == 0x85


def test_an_outlier_spoils_its_own_group_alone():
    """NUM-9."""
    x = np.full((1, 2, 16), 0.5, np.float32)
    x[0, 0, 0] = 100
    int8, int4 = codecs.symmetric(x), codecs.symmetric(x, 7)
    assert float(int8.scales[0, 0]) == pytest.approx(0.787402, rel=1e-3)
    assert int8.values()[0, 0, 1] == float(int8.scales[0, 0])
    assert float(int8.scales[0, 1]) == pytest.approx(0.00393701, rel=1e-3)
    assert float(int4.scales[0, 0]) == pytest.approx(14.2857, rel=1e-3)
    assert (int4.values()[0, 0, 1:] == 0).all()
    for found in (int8, int4, codecs.ranged(x)):
        assert (np.abs(found.values() - x) <= found.scales[..., None].astype(float) / 2).all()


def test_channels_as_groups_are_rows_of_the_transposed():
    x = np.random.default_rng(0).normal(size=(2, BLOCK, 6)).astype(np.float32)
    a, b = codecs.ranged(x, axis=1), codecs.ranged(np.ascontiguousarray(x.transpose(0, 2, 1)))
    assert (a.codes == b.codes.transpose(0, 2, 1)).all()
    assert (a.values() == b.values().transpose(0, 2, 1)).all()
    assert (a.scales == b.scales).all()


def test_sparse_takes_the_lower_of_equals():
    found = codecs.sparse(np.full((1, 32), -2, np.float32))
    assert found.kept[0].tolist() == [True] * 24 + [False] * 8
    assert codecs.pack_bitmap(found.kept)[0].tolist() == [255, 255, 255, 0]
    assert codecs.pack_bitmap(np.eye(1, 9, 8, dtype=bool))[0].tolist() == [0, 1]


# --- element types


def stored_bytes(name, side, tokens, shape):
    """Bytes of what is packed in the end, counted on the arrays."""
    x = np.random.default_rng(1).normal(size=(tokens, shape.width)).astype(np.float32)

    def halves(*found):
        return sum(each.nbytes for each in found)

    def nibbles(codes):
        return codecs.pack_nibbles(codes.reshape(-1, shape.run)).nbytes

    def plain(name, x):
        groups = x.reshape(len(x), shape.groups, shape.group)
        if name == "float32":
            return x.nbytes
        if name == "float16":
            return codecs.half(x).nbytes
        if name in ("int8", "int4", "int4-naive"):
            found = codecs.symmetric(groups, 127 if name == "int8" else 7)
            codes = codecs.offset_bytes(found.codes).nbytes if name == "int8" else nibbles(found.codes + 8)
            return codes + halves(found.scales)
        found = codecs.sparse(groups)
        return int(found.kept.sum()) + codecs.pack_bitmap(found.kept).nbytes + halves(found.scales)

    if not name.startswith("int4-sealed"):
        return plain(name, x)
    sealed = max(0, tokens // BLOCK - 1) * BLOCK
    fresh = "float16" if name.endswith("float16") else "int8"
    blocks = x[:sealed].reshape(-1, BLOCK, shape.width)
    if side == "keys" and fresh == "int8" and sealed:
        rows = codecs.symmetric(blocks.reshape(-1, BLOCK, shape.groups, shape.group))
        keys = sealed_blocks.keys(rows)
        return nibbles(keys.nibbles) + halves(keys.minima, keys.steps, keys.powers) + plain(fresh, x[sealed:])
    if side == "keys":
        found = codecs.ranged(blocks, axis=1) if sealed else None
    else:
        found = codecs.ranged(blocks.reshape(-1, shape.groups, shape.group)) if sealed else None
    old = nibbles(found.codes) + halves(found.minima, found.scales) if found else 0
    return old + plain(fresh, x[sealed:])


@pytest.mark.parametrize("shape", [Shape(4, 8, 32), Shape(2, 64, 32), Shape(1, 6, 6), Shape(3, 5, 5)])
def test_bytes_are_those_that_are_stored(shape):
    for side, known in (("keys", KEYS), ("values", VALUES)):
        for name, kind in known.items():
            for tokens in (1, 15, 16, 31, 32, 40, 48):
                found = kind.bytes(tokens, shape)
                assert found.exact == stored_bytes(name, side, tokens, shape), (name, side, tokens)
                assert found.allocated >= found.exact


def test_bytes_of_stories260k():
    """Of 512 tokens: 5 layers of 4 KV heads of 8. The figures of the anchors, everything counted."""
    per_token = {name: Arrangement.uniform(name, 5, Shape.of(4, 8)).bytes(512).exact / 512 for name in CODECS}
    assert per_token["float32"] == 1280
    assert per_token["float16"] == 640
    assert per_token["int8"] == 340
    assert per_token["int8-int4"] == 260
    assert per_token["sparse"] == 320
    # Of 31 sealed blocks each layer's has a power of two for its one group.
    assert per_token["int4"] == (496 * 220 + 16 * 340 + 31 * 5 * 2) / 512 <= 0.36 * 640
    assert per_token["int4-float16"] == (496 * 220 + 16 * 640) / 512 <= 0.37 * 640


def test_sinks_stay_fresh():
    shape = Shape(1, 4, 4)
    kind = KEYS["int4-sealed"]
    x = np.random.default_rng(2).normal(size=(50, 1, 4)).astype(np.float32)
    seen = kind.read(x, shape, sinks=3)
    assert (seen.old[:3] == seen.new[:3]).all()
    rest = kind.read(x[3:], shape)
    assert (seen.old[3:] == rest.old).all()
    assert (seen.old[35:] == seen.new[35:]).all()  # the third block is not full
    assert (seen.old[3:35] != seen.new[3:35]).any()
    row = kinds.INT8.row(shape).exact
    assert kind.bytes(50, shape, sinks=3).exact == kind.bytes(47, shape).exact + 3 * row
    assert kind.bytes(2, shape, sinks=3).exact == 2 * row


def test_sealing_starts_from_what_was_stored():
    """Codes of a sealed block come from the int8 read back, not from the numbers given."""
    shape = Shape(1, 4, 4)
    x = np.random.default_rng(3).normal(size=(BLOCK, 1, 4)).astype(np.float32)
    int8 = kinds.INT8.read(x, shape).new
    want = sealed_blocks.keys(codecs.symmetric(int8.reshape(1, BLOCK, 1, 4))).values().reshape(BLOCK, 1, 4)
    assert (KEYS["int4-sealed"].read(x, shape).old == want.astype(np.float32)).all()
    # Nearly what a float16 minimum and scale a channel would give.
    ideal = codecs.ranged(int8.reshape(1, BLOCK, 4), axis=1)
    assert np.abs(want - int8).max() <= ideal.scales.astype(float).max() / 2 * 1.01
    want = codecs.ranged(int8.reshape(BLOCK, 4)).values().reshape(BLOCK, 1, 4)
    assert (VALUES["int4-sealed"].read(x, shape).old == want.astype(np.float32)).all()
    assert (VALUES["int4-sealed-float16"].read(x, shape).new == x.astype(np.float16)).all()
