"""Attention against float64 over the same stored cache and quantised query; sums never overflow."""

from __future__ import annotations

from dataclasses import dataclass

import integer_reference
import numpy as np
import pytest
from jobs import Job
from kv_reference import Layout, attention, quantise_query

LIMIT = 0.01  # L2 error of an output, of the RMS norm of the V_j it mixes
QUERY_LIMIT = 0.016  # the same, that the query's own codes cost, times its PEAK
WINDOWS = (1, 16, 256, pytest.param(4096, marks=pytest.mark.exhaustive))
# Standard deviation of the queries of layers 0, 1, ...: from equal weights to one token that takes all.
PEAKS = (0, 0.25, 0.5, 1, 2, 4, 8)
# heads, kv_heads, head_dim, group: a group over four heads; two, three, sixteen slices; one scale a row.
SHAPES = {
    "8x8 group 32": (8, 4, 8, 32),
    "64 in two slices": (2, 1, 64, 32),
    "48 in three slices": (4, 2, 48, 16),
    "64 in sixteen slices": (4, 1, 64, 4),
    "64 in one slice": (2, 2, 64, 64),
}
K_SHIFT, V_SHIFT, Q_SHIFT, OUT_SHIFT = 11, 12, 9, 12


@dataclass
class Errors:
    """Largest L2 errors over heads and layers, of the RMS norm of V."""

    kernel: float
    output: float  # as kernel, but of the output's own norm where that is larger
    queries: list[float]  # of each layer: what 7-bit codes of the query cost, told apart


def errors(job: Job, layout: Layout, outputs: np.ndarray, buffer: bytes, length: int) -> Errors:
    """Compare the outputs of the last token with float64."""
    g = layout
    ring = list(range(max(g.sinks, length - g.window), length))
    slots = [g.slot(p) for p in [*range(min(g.sinks, length)), *ring]]
    data = np.frombuffer(job.data, job.kind).reshape(-1, g.layers, 2 * g.width + 2 * job.q_row)
    last = data[-1].astype(float)
    results = outputs[-g.layers :].astype(float)
    if job.kind == "<i2":
        last = last * 2.0**-Q_SHIFT
        results = results * 2.0**-OUT_SHIFT
    worst = Errors(0, 0, [0] * g.layers)
    for layer in range(g.layers):
        keys, vals = (g.read(buffer, layer, value)[slots] for value in (False, True))
        q_all, qs_all = np.split(last[layer, 2 * g.width :], 2)
        for h in range(g.heads):
            kv = h // (g.heads // g.kv_heads)
            mine = slice(h * g.head_dim, (h + 1) * g.head_dim)
            theirs = slice(kv * g.head_dim, (kv + 1) * g.head_dim)
            k, v = keys[:, theirs], vals[:, theirs]
            q, qs = q_all[mine], qs_all[mine] if g.sinks else None
            seen_q, seen_qs = quantise_query(q, qs)
            exact = attention(q, k, v, g.sinks, qs)
            want = attention(seen_q, k, v, g.sinks, seen_qs)
            rms = np.sqrt((v**2).sum(-1).mean())
            error = np.linalg.norm(results[layer, mine] - want)
            worst.kernel = max(worst.kernel, error / rms)
            worst.output = max(worst.output, error / max(rms, np.linalg.norm(want)))
            worst.queries[layer] = max(worst.queries[layer], np.linalg.norm(exact - want) / rms)
    return worst


def build(
    shape: str,
    window: int,
    int16: bool,
    sinks: int = 0,
    wrap: int = 7,
    spread: float = 0,
    codec: str = "int8",
) -> tuple[Job, Layout, int]:
    """A cache whose ring has wrapped, attended by its last token only; one layer for each of PEAKS.

    spread: standard deviation of the logarithm of the tokens' sizes."""
    heads, kv_heads, head_dim, group = SHAPES[shape]
    geometry = {
        "layers": len(PEAKS),
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "window": window,
        "sinks": sinks,
        "group": group,
        "codec": codec,
    }
    if codec.startswith("float"):
        del geometry["group"]
    rng = np.random.default_rng(window + head_dim + int16)
    tokens = sinks + window + wrap
    width = kv_heads * head_dim

    def sizes() -> np.ndarray:
        return np.exp(spread * rng.normal(size=(tokens, len(PEAKS), 1)))

    k = rng.normal(size=(tokens, len(PEAKS), width)) * sizes()
    v = (rng.normal(size=(tokens, len(PEAKS), width)) + 0.3) * sizes()
    q, qs = np.zeros((2, tokens, len(PEAKS), heads * head_dim))
    for x in (q, qs):
        x[-1] = rng.normal(size=(len(PEAKS), heads * head_dim)) * np.array(PEAKS)[:, None]
    options: dict = {}
    if int16:
        options = {"kv_shift": [[K_SHIFT, V_SHIFT]] * len(PEAKS), "q_shift": Q_SHIFT, "out_shift": OUT_SHIFT}
        k, v, q, qs = (
            np.clip(np.round(x * 2.0**s), -32767, 32767)
            for x, s in ((k, K_SHIFT), (v, V_SHIFT), (q, Q_SHIFT), (qs, Q_SHIFT))
        )
    ops = [["prefill-commit", 0, tokens - 1], ["step", tokens - 1]]
    return Job(geometry, ops, k, v, q, qs, **options), Layout(**geometry), tokens


@pytest.mark.parametrize("int16", [False, True], ids=["float32", "int16"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_error_against_float64(shape: str, window: int, int16: bool, upy, record_property) -> None:
    job, layout, length = build(shape, window, int16)
    found = errors(job, layout, *job.unix(upy), length)
    record_property("kernel_l2_pct", round(100 * float(found.kernel), 3))
    record_property("query_l2_pct", [round(100 * float(error), 3) for error in found.queries])
    queries = ", ".join(f"{error:.2%}" for error in found.queries)
    print(f"{shape}, window {window}: kernel {found.kernel:.3%}, query {queries} of RMS |V|")
    assert found.kernel <= LIMIT
    for peak, error in zip(PEAKS, found.queries, strict=True):
        assert error <= QUERY_LIMIT * peak, peak


@pytest.mark.parametrize("window", [16, 256])
@pytest.mark.parametrize("shape", ["8x8 group 32", "48 in three slices"])
def test_error_with_sparse_values(shape: str, window: int, upy) -> None:
    """Against float64 over what is kept of them, zeros elsewhere: int16 at one window."""
    job, layout, length = build(shape, window, window == 16, sinks=3, codec="sparse")
    assert errors(job, layout, *job.unix(upy), length).kernel <= LIMIT


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_error_with_values_in_four_bits(shape: str, window: int, upy) -> None:
    """Against float64 over the same stored nibbles: int16 at one window."""
    job, layout, length = build(shape, window, window == 16, sinks=3, codec="int8-int4")
    assert errors(job, layout, *job.unix(upy), length).kernel <= LIMIT


FLOATS = ["8x8 group 32", "48 in three slices", "64 in one slice"]  # of which groups are left out


@pytest.mark.parametrize("spread", [0, 0.5], ids=["alike", "of any size"])
@pytest.mark.parametrize("window", [1, 16, 256])
@pytest.mark.parametrize("shape", FLOATS)
def test_error_with_float16(shape: str, window: int, spread: float, upy) -> None:
    """Against float64 over the same stored numbers: int16 at one window. Tokens' sizes spread by 16."""
    job, layout, length = build(shape, window, window == 16, sinks=3, spread=spread, codec="float16")
    found = errors(job, layout, *job.unix(upy), length)
    assert (found.output if spread else found.kernel) <= LIMIT


@pytest.mark.parametrize("int16", [False, True], ids=["float32", "int16"])
@pytest.mark.parametrize("codec", ["float16", "float32"])
def test_error_of_floats_in_plain(codec: str, int16: bool) -> None:
    job, layout, length = build("8x8 group 32", 16, int16, sinks=2, codec=codec)
    assert errors(job, layout, *job.plain(), length).kernel <= LIMIT


@pytest.mark.parametrize("window", [1, 16, 256])
def test_error_with_sinks_and_their_own_query(window: int, upy) -> None:
    job, layout, length = build("8x8 group 32", window, False, sinks=4)
    assert errors(job, layout, *job.unix(upy), length).kernel <= LIMIT


@pytest.mark.parametrize("window", WINDOWS[1:])
@pytest.mark.parametrize(
    ("shape", "codec"),
    [("8x8 group 32", "int8"), ("48 in three slices", "int8"), ("8x8 group 32", "int8-int4")],
)
def test_error_when_tokens_differ_in_size(shape: str, codec: str, window: int, upy) -> None:
    """Keys and values whose sizes spread over a factor of 16: the small ones have the least exact
    scales, and an output may be far larger than most values."""
    job, layout, length = build(shape, window, False, spread=0.5, codec=codec)
    assert errors(job, layout, *job.unix(upy), length).output <= LIMIT


PATTERNS = {
    "constant": lambda t: t * 0 + 1,
    "alternating": lambda t: 1 - 2 * (t % 2),
    "in pairs": lambda t: 1 - 2 * (t // 2 % 2),
    "in fours": lambda t: 1 - 2 * (t // 4 % 2),
    "ramp": lambda t: t + 1,
}


@pytest.mark.parametrize("window", [2, 8, 16, 100])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_equal_weights_do_not_err_together(pattern: str, window: int, upy) -> None:
    """Equal keys and regular values: every token's weight is rounded the same way. Layers run through the
    mantissas of the values' scale, so that the weights come at every distance from a rounding border."""
    layers = 128
    sizes = 127 * (1 + np.arange(layers) / layers)
    v = PATTERNS[pattern](np.arange(window))[:, None, None] * sizes[None, :, None] * np.ones(8)
    geometry = {"layers": layers, "heads": 1, "kv_heads": 1, "head_dim": 8, "group": 8}
    geometry |= {"window": window, "sinks": 0}
    ops = [["prefill-commit", 0, window - 1], ["step", window - 1]]
    job, layout = Job(geometry, ops, np.ones_like(v), v, np.zeros_like(v)), Layout(**geometry)
    assert errors(job, layout, *job.unix(upy), window).kernel <= LIMIT


@pytest.mark.parametrize("shape", ["8x8 group 32", "48 in three slices"])
@pytest.mark.parametrize("window", [1, 16])
def test_plain_on_cpython(shape: str, window: int) -> None:
    job, layout, length = build(shape, window, False)
    assert errors(job, layout, *job.plain(), length).kernel <= LIMIT


# Signs of keys, values and query in layers 0, 1, ...
SIGNS = ((1, 1, 1), (1, 1, -1), (-1, 1, 1), (1, -1, 1), (-1, -1, -1))


def extreme(
    head_dim: int, group: int, tokens: int, query: np.ndarray, mixed: bool, codec: str = "int8"
) -> tuple[Job, Layout]:
    """`tokens` tokens of codes +-127 (7 in four bits) with the largest mantissa a scale has, one layer for
    each of SIGNS; mixed: every other token is the opposite of its neighbour, so that scores lie as far apart
    as they can."""
    signs = np.array(SIGNS)[None, :, :, None]
    shape = (tokens, len(SIGNS), head_dim)
    most = 127, 7 if codec == "int8-int4" else 127
    sizes = [65504.0] * 2 if codec == "float16" else [i * 2047 / 1024 for i in most]
    k, v = (np.full(shape, sizes[i]) * signs[:, :, i] for i in (0, 1))
    if mixed:
        k[::2] *= -1
        v[::2] *= -1
    queries = np.broadcast_to(query, shape) * signs[:, :, 2]
    geometry = {"layers": len(SIGNS), "heads": 1, "kv_heads": 1, "head_dim": head_dim}
    geometry |= {"window": tokens, "sinks": 0}
    geometry |= {"codec": codec} if codec == "float16" else {"group": group, "codec": codec}
    ops = [["prefill-commit", 0, tokens - 1], ["step", tokens - 1]]
    return Job(geometry, ops, k, v, queries), Layout(**geometry)


def in_the_reference(job: Job) -> np.ndarray:
    """Outputs of the integer reference, which fails when a value leaves 32 bits."""
    g = job.job["geometry"]
    data = np.frombuffer(job.data, job.kind).reshape(
        -1, g["layers"], 2 * g["kv_heads"] * g["head_dim"] + 2 * job.q_row
    )
    return np.array(integer_reference.Run(g, {}, data).run(job.job["ops"]).outputs)


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [0.0, 1e-4, 64.0, 1e30], ids=["flat", "nearly flat", "peaked", "huge"])
@pytest.mark.parametrize("mixed", [False, True], ids=["same", "opposite"])
@pytest.mark.parametrize("codec", ["int8", "int8-int4"])
def test_sums_do_not_overflow(codec: str, mixed: bool, size: float, upy) -> None:
    """4,096 tokens with the largest codes of one sign, and the largest query codes of one sign."""
    job, layout = extreme(64, 32, 4096, np.full(64, size), mixed, codec)
    outputs, buffer = job.unix(upy)
    assert errors(job, layout, outputs, buffer, 4096).kernel <= LIMIT
    assert np.array_equal(outputs, in_the_reference(job))


@pytest.mark.parametrize("mixed", [False, True], ids=["same", "opposite"])
def test_sums_of_sparse_values_do_not_overflow(mixed: bool, upy) -> None:
    """As above: of equal values the last quarter counts as zeros."""
    job, layout = extreme(32, 32, 1024, np.zeros(32), mixed, "sparse")
    outputs, buffer = job.unix(upy)
    assert errors(job, layout, outputs, buffer, 1024).kernel <= LIMIT
    assert np.array_equal(outputs, in_the_reference(job))


@pytest.mark.parametrize(
    ("mixed", "size"), [(False, 0.0), (True, 0.0), (False, 64.0), (True, 1e-4), (True, 1e30)]
)
def test_sums_of_float16_do_not_overflow(mixed: bool, size: float, upy) -> None:
    """The largest numbers of one sign, or of both, a thousand times."""
    job, layout = extreme(4, 4, 1024, np.full(4, size), mixed, "float16")
    outputs, buffer = job.unix(upy)
    assert errors(job, layout, outputs, buffer, 1024).kernel <= LIMIT
    assert np.array_equal(outputs, in_the_reference(job))


@pytest.mark.parametrize("mixed", [False, True], ids=["same", "opposite"])
def test_dots_of_the_widest_heads_do_not_overflow(mixed: bool, upy) -> None:
    """float16's of 1,024 largest numbers and largest codes of the query: 2^31 less a little."""
    job, layout = extreme(1024, 1024, 12, np.full(1024, 64.0), mixed, "float16")
    outputs, buffer = job.unix(upy)
    assert errors(job, layout, outputs, buffer, 12).kernel <= LIMIT
    assert np.array_equal(outputs, in_the_reference(job))
    assert np.array_equal(outputs, job.plain()[0])


def test_rounding_of_many_slices_does_not_overflow(upy) -> None:
    """128 slices whose dots are all rounded down, at the largest sum of query codes that is shifted by 3."""
    codes = np.array([64, 22] + [23] * 11 + [15] * 115, float)
    assert codes.sum() * 127 / 8 == pytest.approx(32766)
    job, layout = extreme(128, 1, 40, codes, True)
    outputs, buffer = job.unix(upy)
    assert errors(job, layout, outputs, buffer, 40).kernel <= LIMIT
    assert np.array_equal(outputs, in_the_reference(job))


@pytest.mark.parametrize("mixed", [False, True], ids=["same", "opposite"])
@pytest.mark.parametrize("head_dim", [8, 64])
def test_plain_extremes_equal_viper(head_dim: int, mixed: bool, upy) -> None:
    """Plain computes in exact integers: equal bits at the extremes mean that viper lost nothing."""
    tokens = 4096 if head_dim == 8 else 256
    job, _ = extreme(head_dim, min(head_dim, 32), tokens, np.full(head_dim, 64.0), mixed)
    plain, viper = job.plain(), job.unix(upy)
    assert np.array_equal(plain[0], viper[0])
    assert plain[1] == viper[1]
