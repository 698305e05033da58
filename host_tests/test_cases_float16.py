"""float16 and float32 hold what they are given, to the bit; what they cannot hold is refused."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from float_cases import numbers
from jobs import Job
from known_cases import RUNTIMES, result
from kv_reference import Layout, attention, quantise_query

from kvlab.quality import codecs
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import OutOfRange

# Where a float16 changes: its numbers, what lies half-way, the float32 next to these; denormals of both.
_BITS = [0, 1, 2, 3, 0x3FE, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x67FF, 0x6800, 0x7BFE, 0x7BFF]
_HALVES = np.array(_BITS, np.uint16).view(np.float16).astype(np.float32)
_TIES = (_HALVES[:-1] + np.array(np.array(_BITS[:-1]) + 1, np.uint16).view(np.float16).astype(np.float32)) / 2
_ENDS = np.concatenate([_HALVES, _TIES, [2.0**-25, 2.0**-26, 2.0**-126, 2.0**-149]]).astype(np.float32)
_NEAR = [np.nextafter(_ENDS, np.float32(to)) for to in (0, 65504)]
FLOATS = np.concatenate([_ENDS, *_NEAR, -_ENDS, *(-x for x in _NEAR)])


def stored(job: Job, layout: Layout, buffer: bytes, value: bool, bits: str) -> np.ndarray:
    """Bit patterns [slots][width] of a plane."""
    size = layout.bits[value] // 8
    at = layout.plane_at(0, value)
    found = np.frombuffer(buffer, bits, layout.codes[value] // size, at)
    found = found.reshape(layout.kv_heads, layout.slots, -1)
    assert not found[..., layout.head_dim :].any()  # padding
    return found[..., : layout.head_dim].transpose(1, 0, 2).reshape(layout.slots, layout.width)


def check(rows: np.ndarray, want: np.ndarray, codec: str, upy, **options) -> None:
    """Keys are the rows, values the same backwards; by plain here, and on the unix port by the fastest."""
    tokens = len(rows)
    g = {"layers": 1, "heads": 3, "kv_heads": 3, "head_dim": rows.shape[1] // 3, "capacity": tokens}
    g["codec"] = codec
    q = np.zeros((tokens, 1, rows.shape[1]))
    job = Job(g, [["prefill-commit", 0, tokens]], rows[:, None], rows[::-1, None], q, **options)
    layout = Layout(window=0, **g)
    native = "viper" if codec == "float16" else "plain"
    for _, buffer in (job.plain(), job.unix(upy, native)):
        bits = want.view(f"u{want.itemsize}")
        assert np.array_equal(stored(job, layout, buffer, False, bits.dtype.str), bits)
        assert np.array_equal(stored(job, layout, buffer, True, bits.dtype.str), bits[::-1])


def table(x: np.ndarray, width: int) -> np.ndarray:
    return np.resize(x, (-(-len(x) // width), width))


@pytest.mark.parametrize("width", [15, 24])
def test_float32_numbers_are_those_of_numpy(width: int, upy) -> None:
    rng = np.random.default_rng(16)
    noise = np.ldexp(rng.uniform(-1, 1, 600), rng.integers(-28, 16, 600)).astype(np.float32)
    rows = table(np.concatenate([FLOATS, noise]), width)
    check(rows, codecs.half(rows), "float16", upy)


@pytest.mark.parametrize("shift", [-31, -16, -5, -1, 0, 1, 9, 10, 13, 14, 15, 20, 23, 24, 25, 30, 31])
def test_int16_numbers_are_those_of_numpy(shift: int, upy) -> None:
    rng = np.random.default_rng(shift + 40)
    most = min(32767, int(65504 / 2.0**-shift))
    powers = 1 << np.arange(16)
    near = np.concatenate([powers - 1, powers, powers + 1, 3 * powers // 2, rng.integers(0, 32768, 150)])
    whole = np.clip(np.concatenate([near, -near]), -most - (most == 32767), most)
    rows = table(whole, 15)
    check(rows, codecs.half(np.ldexp(rows, -shift).astype(np.float32)), "float16", upy, kv_shift=shift)


def test_every_float16_is_kept(upy) -> None:
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(np.float16)
    rows = table(every[np.isfinite(every)], 192)[::5]
    check(rows.astype(np.float32), rows, "float16", upy)


def test_float32_keeps_what_it_is_given(upy) -> None:
    exact = np.concatenate([FLOATS, [np.nextafter(np.float32(2.0**127), np.float32(0)), 1e-45, -1e38]])
    rows = table(exact.astype(np.float32), 15)
    check(rows, rows, "float32", upy)
    whole = table(np.array([-32768, 32767, 1, 0, -1, 12345, -3]), 15)
    for shift in (-31, 0, 31):
        check(whole, np.ldexp(whole, -shift).astype(np.float32), "float32", upy, kv_shift=shift)


TAKES = """
import sys
from array import array
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import OutOfRange
def takes(codec, name, kind, shift, values):
    g = Geometry(2, 1, 1, 3, window=2, sinks=0, codec=codec)
    cache = KVCache(g, kv_shift=shift, kernels=kernels.of(codec).get(name))
    good, found = array(kind, [0, 0, 0]), []
    for value in values:
        bad = array(kind, [0, 0, value])
        for k, v in ((bad, good), (good, bad)):
            try:
                cache.append(1, k, v)
                found.append(1)
            except OutOfRange as error:
                found.append(0)
                about = "k" if k is bad else "v", codec
                want = "%s of layer 1, token 0: not finite, or beyond what %s can hold" % about
                assert str(error) == want, error
    return found
"""
# Whether they are taken, as key and as value.
NUMBERS = {
    "float16": [("65504", 1), ("-65504", 1), ("65505", 0), ("65519", 0), ("-65520", 0), ("1e30", 0)],
    "float32": [("1.7e38", 1), ("-1.7e38", 1), ("1.8e38", 0), ("-3e38", 0)],
}
NOT_FINITE = [("float('inf')", 0), ("float('-inf')", 0), ("float('nan')", 0)]


SETS = [("float16", "plain"), ("float16", "viper"), ("float32", "plain")]


@pytest.mark.parametrize(("codec", "name"), SETS)
def test_what_it_cannot_hold_is_refused(codec: str, name: str, upy) -> None:
    cases = NUMBERS[codec] + NOT_FINITE
    words = f"{codec!r}, {name!r}, 'f', None, [{', '.join(x for x, _ in cases)}]"
    assert eval(upy.run(f"{TAKES}\nprint(takes({words}))")) == [taken for _, taken in cases for _ in "kv"]
    if codec == "float16":
        words = f"{codec!r}, {name!r}, 'h', %d, %r"
        for shift, values, want in (
            (-1, [32751, 32752, 32753, -32752, -32753, -32768], [1, 1, 0, 1, 0, 0]),
            (-16, [0, 1, -1], [1, 0, 0]),
            (0, [32767, -32768], [1, 1]),
        ):
            said = upy.run(f"{TAKES}\nprint(takes({words % (shift, values)}))")
            assert eval(said) == [x for x in want for _ in "kv"], shift


def test_read_gives_numbers_back_and_check_finds_others() -> None:
    """An infinity and padding that is not zero are of no encoder."""
    for codec, size in (("float16", 2), ("float32", 4)):
        cache = KVCache(
            Geometry(1, 2, 2, 3, window=4, sinks=0, codec=codec), kernels=kernels.of(codec).get("plain")
        )
        row = array("f", [1.5, -2.0**-20, 0, 1000, -3, 2.0**-24])
        cache.append(0, row, row)
        cache.commit()
        for which in "kv":
            assert cache.read(0, which, 0) == list(row)
        assert cache.check() == 0
        at = cache.place(0, "v", 0)[0] + size - 1
        kept, cache.buffer[at] = cache.buffer[at], 0xFF
        assert cache.check() == 1
        cache.buffer[at] = kept
        if size == 2:
            cache.buffer[cache.place(0, "k", 0)[0] + 6] = 1  # a row of three is padded to four
            assert cache.check() == 1
        with pytest.raises(OutOfRange, match=f"^v of layer 0, token 1: .* beyond what {codec} can hold"):
            cache.append(0, row, array("f", [0] * 5 + [float("inf")]))


def test_sizes() -> None:
    """Two and four bytes a number, whole words a row; nothing else but the tables of float16."""
    for codec, size in (("float16", 2), ("float32", 4)):
        g = Geometry(3, 4, 2, 5, window=7, sinks=0, codec=codec)
        assert g.token_bytes() == 3 * 2 * 2 * 5 * size
        assert g.row_bytes == -(-5 * size // 4) * 4
        assert g.layer_bytes == 2 * 2 * 8 * g.row_bytes


@pytest.mark.parametrize("size", ["ordinary size", "the largest", "denormals"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_float16_of_any_size(size: str, runtime: str, upy) -> None:
    check_story(f"float16 of {size}", runtime, upy)


@pytest.mark.parametrize("size", ["ordinary", "tiny", "huge"])
@pytest.mark.parametrize("runtime", RUNTIMES[:2])
def test_float32_of_any_size(size: str, runtime: str, upy) -> None:
    check_story(f"float32 of {size} size", runtime, upy)


def check_story(case: str, runtime: str, upy) -> None:
    """The same bits everywhere, and within the limit of float64 over the numbers as they are stored."""
    got = result(case, runtime, upy)
    assert got == result(case, RUNTIMES[0], upy)
    assert got["broken"] == 0
    codec = np.float16 if case.startswith("float16") else np.float32
    size = {"ordinary size": 4.0, "the largest": 65504.0, "denormals": 2.0**-14}.get(case[11:])
    size = size or {"tiny size": 2.0**-100, "huge size": 2.0**120}[case[11:]]
    for t in range(9):
        seen = sorted({0, *range(max(1, t - 4), t + 1)})

        def row(i: int, count: int, plus: int, size: float) -> np.ndarray:
            return np.array(numbers(count, 10 * i + 1 + plus, size))

        keys, values = (np.array([row(i, 10, x, size) for i in seen]).astype(codec) for x in (0, 2))
        q, qs = (row(t, 20, x, 2 / size) for x in (4, 6))
        for head in range(4):
            mine, theirs = slice(5 * head, 5 * head + 5), slice(head // 2 * 5, head // 2 * 5 + 5)
            k, v = (x[:, theirs].astype(float) for x in (keys, values))
            seen_q, seen_qs = quantise_query(q[mine], qs[mine])
            want = attention(seen_q, k, v, 1, seen_qs)
            # A head alone may have small numbers only, where those of the other set the unit.
            unit = np.sqrt((values.astype(float) ** 2).sum(-1).mean())
            assert np.linalg.norm(np.array(got["out"][t])[mine] - want) <= 0.015 * unit
