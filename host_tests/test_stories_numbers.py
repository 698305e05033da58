"""What each stories kernel means: the plain twin against float64, with an error bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
import stories_cases as sc
from stories import kernels
from stories.kernels.tables import EXP2, SIGMOID, SINE
from stories_reference import unpack

ONE = 1 << 16  # point 16

PLAIN = kernels.get("plain")


def ints(values):
    return sc.stories_kernels.array("i", [int(x) for x in values])


def halves(values):
    return sc.stories_kernels.array("h", [int(x) for x in values])


def decode(v, at: int, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """An activation vector as floats, and what a four of each group can add up to."""
    act = np.array(v[at : at + 2 + 25 * groups], np.int64)
    mantissa, exponent, codes, scales = unpack(act)
    unit = mantissa * 2.0**exponent
    return (codes * scales[:, None, None]).ravel() * unit, 256 * scales * unit


@pytest.mark.parametrize("exponent", [-25, -18, -10])
def test_embed_rounds_to_the_nearest(exponent: int) -> None:
    row = sc.Maker(2).rows(1, 3, largest=False)
    v = ints(np.zeros(90))
    PLAIN.embed(row.ravel().tolist(), v, ints([90, 96, 0, 0, exponent + 16]))
    scales = row[0, 96:102].view("<u2").astype(float)
    exact = ((row[0, :96].astype(float) - 128).reshape(3, 32) * scales[:, None]).ravel()[:90] * 2.0**exponent
    assert np.abs(np.array(v) / ONE - exact).max() <= 0.5 / ONE


@pytest.mark.parametrize("size", [0.001, 0.3, 20, 3000])
@pytest.mark.parametrize("n", [64, 172, 1000])
def test_norm_and_quant_follow_rmsnorm(n: int, size: float) -> None:
    rng = np.random.RandomState(n)
    width, eps = sc.padded(n), 1e-5
    groups = width // 32
    x = np.rint(rng.standard_normal(n) * np.exp(rng.standard_normal(n)) * size * ONE)
    x = x.clip(-sc.LIMIT, sc.LIMIT)
    gain = np.rint(rng.uniform(-1, 1, n) * 32767)
    v = ints(np.concatenate([x, np.zeros(width + 2 + 25 * groups)]))
    a = ints([n, width, n, n + width, 0, 0, 0, 0, -12, round(eps * 2**32)])
    PLAIN.norm(gain.astype("<i2").tobytes(), v, a)
    PLAIN.quant(v, a)
    got, most = decode(v, n + width, groups)
    x /= ONE
    exact = np.zeros(width)
    exact[:n] = x / np.sqrt((x * x).mean() + eps) * gain * 2.0**-12
    tops = np.abs(exact).reshape(groups, 8, 4).sum(2).max(1)
    # Half a step of 1/256 of the group's heaviest four; scales to 2^-15 of their sum; the rest is the
    # scalar's 2^-14 and, for tiny x, the resolution of point 16.
    bound = tops / 512 + tops.sum() / 2**14 + tops * (2**-13 + 1 / (size * ONE))
    assert np.all(np.abs(got - exact).reshape(groups, 32).max(1) <= bound)
    assert np.all(np.abs(most - tops) <= tops.sum() / 2**14 + tops * 2**-8)


def test_quant_keeps_eight_bits_in_small_groups() -> None:
    x = np.concatenate([np.linspace(-1, 1, 32) * (1 << 29), np.linspace(-1, 1, 32) * 500])
    v = ints(np.concatenate([x, np.zeros(52)]))
    PLAIN.quant(v, ints([64, 64, 0, 64, sc.ROOT_ONE, 14]))
    _, _, codes, _ = unpack(np.array(v[64:], np.int64))
    assert len(set(codes[1].ravel())) == 32
    assert 254 <= np.abs(codes[1]).sum(1).max() <= 258


def test_quant_gives_a_lone_number_nine_bits() -> None:
    """The four shares what it has: 256 for one number, 64 for each of four alike."""
    x = np.zeros(64)
    x[5], x[32:36] = -70000, (9, -9, 9, -9)
    v = ints(np.concatenate([x, np.zeros(52)]))
    PLAIN.quant(v, ints([64, 64, 0, 64, sc.ROOT_ONE, 14]))
    _, _, codes, _ = unpack(np.array(v[64:], np.int64))
    assert codes[0, 1].tolist() == [0, -256, 0, 0]
    assert np.abs(codes[1, 0]).max() <= 64


@pytest.mark.parametrize("groups", [1, 2, 6, 43, 256])
def test_matvec_is_the_product(groups: int) -> None:
    maker = sc.Maker(groups)
    rows, exponent, point = 20, -18, 16
    w = maker.rows(rows, groups, largest=False)
    act = maker.activation(groups)
    act[1] = -30
    v = ints(np.concatenate([act, np.zeros(rows)]))
    skip = w.shape[1] - 32 * groups
    PLAIN.matvec(w.ravel().tolist(), v, sc.MASK, ints([0, rows, groups, skip, 0, len(act), exponent + point]))
    x, _ = decode(act, 0, groups)
    scales = np.ascontiguousarray(w[:, 32 * groups : 34 * groups]).view("<u2").astype(float)
    weights = (w[:, : 32 * groups].astype(float) - 128).reshape(rows, groups, 32) * scales[..., None]
    exact = weights.reshape(rows, -1) @ x * 2.0**exponent
    # A group's sum is exact and rounded to 2^14 before its scale; the result is rounded to point 16.
    unit = act[0] * 2.0 ** act[1] * 2.0**exponent
    group_scales = act[2:].reshape(-1, 25)[:, 24]
    bound = 2**13 * group_scales.sum() * unit * 1.001 + 2.0**-16
    got = np.array(v[len(act) :]) / ONE
    assert np.all(np.abs(got - exact) <= bound)
    assert np.abs(exact).max() > 20 * bound.max()


@pytest.mark.parametrize("position", [0, 1, 511, 4000, 70000])
def test_rope_table_far_out(position: int) -> None:
    freqs = 10000.0 ** (-2.0 * np.arange(32) / 64)
    inc = ints(
        [int(x) - (1 << 32) if x >= 1 << 31 else int(x) for x in np.rint(freqs / (2 * math.pi) * 2**32)]
    )
    cs = halves(np.zeros(64))
    PLAIN.rope_table(inc, cs, SINE, ints([32, position]))
    angle = position * freqs
    got = np.array(cs) / 32768
    assert np.abs(got[0::2] - np.cos(angle)).max() < 1e-4
    assert np.abs(got[1::2] - np.sin(angle)).max() < 1e-4


@pytest.mark.parametrize("half_split", [False, True])
def test_rotate_at_position_70000(half_split: bool) -> None:
    """Both pairings, against complex float64 rotation: within 1e-4 of the vector's size."""
    rng = np.random.RandomState(5)
    heads, pairs = 3, 4
    freqs = 10000.0 ** (-np.arange(pairs) / pairs)
    inc = ints(np.rint(freqs / (2 * math.pi) * 2**32))
    x = np.rint(rng.uniform(-23000, 23000, (heads, 2 * pairs)))
    cs, dst = halves(np.zeros(2 * pairs)), halves(np.zeros(x.size))
    PLAIN.rope_table(inc, cs, SINE, ints([pairs, 70000]))
    step, gap = (1, pairs) if half_split else (2, 1)
    PLAIN.rotate(ints(x.ravel()), dst, cs, ints([0, heads, pairs, step, gap]))
    got = np.array(dst).reshape(heads, 2 * pairs)
    cut = (slice(0, pairs), slice(pairs, None)) if half_split else (slice(0, None, 2), slice(1, None, 2))
    turned = (x[:, cut[0]] + 1j * x[:, cut[1]]) * np.exp(1j * 70000 * freqs)
    assert np.abs(got[:, cut[0]] - turned.real).max() < 1e-4 * 32768
    assert np.abs(got[:, cut[1]] - turned.imag).max() < 1e-4 * 32768


@pytest.mark.parametrize("size", [0.05, 1, 8, 500])
def test_swiglu(size: float) -> None:
    rng = np.random.RandomState(3)
    n = 172
    g, u = np.rint(rng.standard_normal((2, n)) * size * ONE)
    v = ints(np.concatenate([g, u, np.full(192, 7)]))
    a = ints([n, 192, 2 * n, 0, sc.ROOT_ONE, 0, 0, n])
    PLAIN.swiglu(v, SIGMOID, a)
    got = np.array(v[2 * n :]) * 2.0 ** a[5] / sc.ROOT_ONE
    g, u = g / ONE, u / ONE
    silu = g * (np.tanh(g / 2) + 1) / 2
    assert not np.any(got[n:])
    # Both factors have 15 bits of the vector's largest; the table is right to 8e-5.
    bound = np.abs(silu).max() * np.abs(u).max() * 2**-14 + np.abs(g * u) * 8e-5 + np.abs(u) * 2**-16
    assert np.all(np.abs(got[:n] - silu * u) <= bound)


@pytest.mark.parametrize("temperature", [0.1, 0.7, 1, 30])
def test_softmax(temperature: float) -> None:
    rng = np.random.RandomState(4)
    n, bits = 512, 21
    x = rng.standard_normal(n) * 5
    fraction, exponent = math.frexp(math.log2(math.e) / temperature)
    v = ints(np.rint(x * ONE))
    a = ints([n, 0, int(fraction * 32768), exponent, bits, 0])
    PLAIN.softmax(v, EXP2, a)
    got = np.array(v) / a[5]
    exact = np.exp((x - x.max()) / temperature)
    exact /= exact.sum()
    assert sum(v) == a[5] <= 1 << 30
    assert v[int(x.argmax())] == 1 << bits
    assert np.abs(got - exact).max() < 2e-4
    assert np.all(np.abs(got / exact - 1)[exact > 1e-3] < 3e-3)


def draws(weights, part: int, count: int, seed: int = 12345) -> np.ndarray:
    v = ints(weights)
    a = ints([len(weights), 0, 0, 0, 24, sum(weights), part, seed])
    return np.array([PLAIN.pick(v, a) for _ in range(count)])


def test_pick_draws_by_weight() -> None:
    weights = [1 << 24, 1 << 23, 0, 1 << 22, 1 << 20]
    count = 20000
    seen = np.bincount(draws(weights, 32768, count), minlength=5)
    expected = np.array(weights) / sum(weights) * count
    assert seen[2] == 0
    keep = expected > 0
    # Chi-square with 3 degrees of freedom: 16.3 is the 0.1 % point; the generator is fixed.
    assert ((seen - expected)[keep] ** 2 / expected[keep]).sum() < 16.3


@pytest.mark.parametrize(
    ("part", "allowed"),
    [(0, {1}), (0.49, {1}), (0.51, {0, 1}), (0.8, {0, 1, 3}), (0.9, {0, 1, 3, 4}), (1, {0, 1, 3, 4})],
)
def test_pick_keeps_the_smallest_set(part: float, allowed: set) -> None:
    """Shares 0.25, 0.5, 0, 0.125, 0.125: of the two equal ones the first comes first."""
    weights = [1 << 23, 1 << 24, 0, 1 << 22, 1 << 22]
    assert set(draws(weights, int(part * 32768), 400)) == allowed


def test_saturation_never_wraps() -> None:
    v = ints([sc.LIMIT, -sc.LIMIT, 5, sc.LIMIT, -sc.LIMIT, -7])
    PLAIN.add(v, ints([3, 0, 3]))
    assert list(v[:3]) == [sc.LIMIT, -sc.LIMIT, -2]
    out = halves([0, 0, 0])
    PLAIN.narrow(v, out, ints([0, 3]))
    assert list(out) == [32767, -32767, -2]
