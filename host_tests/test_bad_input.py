"""Every wrong argument gets one clear error that names it, and changes nothing; see device/bad_input.py."""

from __future__ import annotations

import json
import sys
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpy_kv import Geometry, KVCache, geometry_for, kernels
from mpy_kv.errors import BadArgument, OutOfRange
from mpy_kv.int4_blocks import SealedGeometry
from mpy_kv.paged import PagedGeometry
from mpy_kv.per_layer import MixedGeometry

DEVICE = Path(__file__).parent / "device"
sys.path.insert(0, str(DEVICE))
import bad_input  # noqa: E402

CASES = bad_input.cases()


@pytest.fixture(scope="module")
def bench() -> bad_input.Bench:
    return bad_input.Bench(kernels.get("plain"))


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_refused_on_cpython(case: tuple, bench: bad_input.Bench) -> None:
    assert bad_input.complaint(case, bench) is None


@pytest.mark.parametrize("name", ["plain", "viper"])
def test_refused_on_the_port(name: str, upy) -> None:
    said = upy.run(DEVICE / "bad_input.py", [name], heap_bytes=16 << 20)
    complaints, count = json.loads(said)
    assert complaints == []
    assert count == len(CASES)


# Nothing that is no whole number is a count, however true or false it is.
NO_COUNT = ("", "4", b"4", False, True, 0.0, 4.0, [], [4], {}, float("nan"), 4j, object(), -1, 1 << 70)
LIKE: dict[type, dict[str, Any]] = {
    Geometry: {},
    SealedGeometry: {},
    PagedGeometry: {"block_tokens": 4},
    MixedGeometry: {"codec": ["int8", "float16"]},
}
COUNTS = ("layers", "heads", "kv_heads", "head_dim", "window", "sinks", "group", "group_limit")
TAKEN = [(made, name) for made in LIKE for name in (*COUNTS, "capacity")] + [(PagedGeometry, "block_tokens")]


@pytest.mark.parametrize(("made", "name"), TAKEN, ids=[f"{made.__name__}-{name}" for made, name in TAKEN])
def test_what_is_no_count_is_refused_by_name(made: type, name: str) -> None:
    sizes = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 4, **LIKE[made]}
    needed = name in ("layers", "heads", "kv_heads", "head_dim", "group_limit", "block_tokens")
    for beside in ({"window": 6}, {"capacity": 6}):
        if name == "capacity" and "window" in beside:
            continue
        made(**sizes, **beside)
        for value in NO_COUNT + (None,) * needed:
            with pytest.raises(BadArgument, match=name):
                made(**{**sizes, **beside, name: value})


def test_what_is_no_option_of_a_cache_is_refused_by_name() -> None:
    g = Geometry(2, 4, 2, 4, window=6)
    for name in ("geometry", "buffer", "kv_shift", "q_shift", "out_shift", "kernels"):
        for value in NO_COUNT:
            if value == -1 and name.endswith("shift"):
                continue
            with pytest.raises(BadArgument, match=name):
                KVCache(**{"geometry": g, "kv_shift": 8, name: value})


def test_a_buffer_of_two_dimensions_is_refused() -> None:
    g = Geometry(2, 4, 2, 4, window=6)
    view = memoryview(bytearray(g.bytes() // 8 * 8 + 8)).cast("B", [g.bytes() // 8 + 1, 8])
    with pytest.raises(BadArgument, match="buffer must be a writable bytearray or memoryview of bytes"):
        KVCache(g, view)


@pytest.mark.parametrize("shape", [[4, 2], [2, 4], [8, 1], [1, 8]])
def test_views_of_two_dimensions_are_refused(shape: list[int], bench: bad_input.Bench) -> None:
    view = memoryview(bytes(32)).cast("f", shape)
    before = bench.state()
    for call in (
        lambda: bench.f.append(1, view, bench.k),
        lambda: bench.f.append(1, bench.k, view),
        lambda: bench.f.prefill(1, view, view, 1),
    ):
        with pytest.raises(BadArgument, match="must be a non-empty array of float32"):
            call()
    assert bench.state() == before


def test_results_are_not_written_to_a_read_only_view(bench: bad_input.Bench) -> None:
    before = bench.state()
    with pytest.raises(BadArgument, match="out must be writable, got a read-only memoryview"):
        bench.f.attend(0, bench.q, memoryview(array("f", [0] * 16)).toreadonly())
    assert bench.state() == before
    bench.f.attend(0, memoryview(bench.q).toreadonly(), bench.out)  # what is only read may be


def of_numpy(kind: str) -> Any:
    return lambda values: np.array(values, kind)


@pytest.mark.parametrize(("kind", "shift"), [("f", None), ("h", 8)], ids=["float32", "int16"])
def test_contiguous_arrays_of_numpy_are_taken(kind: str, shift: int | None) -> None:
    """Under CPython: the bits of the same numbers in an array, at the ends of int16 too."""
    found = []
    for made in (lambda values: array(kind, values), of_numpy(kind), lambda x: memoryview(of_numpy(kind)(x))):
        cache = KVCache(Geometry(1, 2, 1, 8, window=4), kv_shift=shift, kernels=kernels.get("plain"))
        seen = b""
        for t in range(8):
            x = [(i * 37 + t * 11) % 51 - 25 for i in range(14)] + [-32768, 32767]
            out = made([0] * 16)
            cache.append(0, made(x[:8]), made(x[8:]))
            cache.attend(0, made(x), out, made(x[::-1]))
            cache.commit()
            seen += bytes(out)
        found.append(seen + bytes(cache.buffer))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros(8), "ndarray of 8-byte items .format 'd', shape .8,.."),
        (np.zeros(8, ">f4"), "ndarray of 4-byte items .format '>f'"),
        (np.zeros((1, 8), "f"), "ndarray of 32-byte items .format 'f', shape .1, 8.."),
        (np.zeros(16, "f")[::2], "not contiguous"),
        (np.zeros(8, "h"), "ndarray of 2-byte items .format 'h'"),
        (np.float32(1), "got float32$"),
    ],
    ids=["float64", "other byte order", "two dimensions", "every second", "int16", "no array"],
)
def test_other_arrays_of_numpy_are_refused_by_name(given: Any, said: str, bench: bad_input.Bench) -> None:
    before = bench.state()
    with pytest.raises(BadArgument, match="^k must be a non-empty array of float32.*" + said):
        bench.f.append(1, given, bench.k)
    frozen = np.zeros(16, "f")
    frozen.setflags(write=False)
    with pytest.raises(BadArgument, match="^out must be writable, got a read-only ndarray"):
        bench.f.attend(0, bench.q, frozen)
    assert bench.state() == before


BOUNDARY = """
import sys
from array import array
from mpy_kv import Geometry, KVCache, geometry_for, kernels
from mpy_kv.errors import OutOfRange
largest = 127 * 65504.0
for name in ("plain", "viper"):
    cache = KVCache(Geometry(1, 1, 1, 4, window=2, sinks=0), kernels=kernels.get(name))
    for x in (largest, -largest):
        cache.append(0, array("f", [1, x, 3, 4]), array("f", [x] * 4))
        cache.commit()
    for x in (largest * (1 + 2e-7), -largest * (1 + 2e-7)):
        try:
            cache.append(0, array("f", [1, x, 3, 4]), array("f", [1] * 4))
            print("taken", name, x)
        except OutOfRange:
            pass
    print(name, cache.read(0, "v", 1)[0] == -largest, cache.length, cache.check())
"""


def test_the_largest_value_that_can_be_stored(upy) -> None:
    """127 times the largest float16 is taken, the next float32 is not."""
    assert upy.run(BOUNDARY).split("\n")[:2] == ["plain True 2 0", "viper True 2 0"]


def test_the_most_negative_int16_is_taken() -> None:
    cache = KVCache(Geometry(1, 1, 1, 4, window=4, sinks=0), kv_shift=8, kernels=kernels.get("plain"))
    x = array("h", [-32768, 32767, 0, 1])
    out = array("h", [0] * 4)
    cache.append(0, x, x)
    cache.attend(0, x, out)
    cache.commit()
    assert cache.read(0, "k", 0)[0] == pytest.approx(-128, rel=1e-3)
    assert out.tolist() == pytest.approx([-32767, 32767, 0, 0], abs=40)


# By what they are.
NO_CODECS: dict[str, Any] = {
    "array of numbers": np.array([1, 2]),
    "array of names": np.array(["int8", "int4"]),
    "array of no dimension": np.array("int4"),
    "empty array": np.array([]),
    "array": array("f", [1.0]),
    "number": 8,
    "bytes": b"int8",
}


@pytest.mark.parametrize("codec", NO_CODECS.values(), ids=NO_CODECS)
def test_what_is_no_name_of_an_element_type_is_refused(codec: Any) -> None:
    """A numpy array too, whose == gives an array."""
    for made, why in (
        (lambda: Geometry(2, 2, 1, 8, codec=codec), "codec .* is unknown; known: float16, "),
        (lambda: PagedGeometry(2, 2, 1, 8, codec=codec), "codec .* is unknown; known: float16, "),
        (lambda: geometry_for(codec, 2, 2, 1, 8), "codec .* is unknown; known: float16, "),
        (lambda: geometry_for(["int8", codec], 2, 2, 1, 8), "codec .* is unknown; known: float16, "),
        (lambda: SealedGeometry(2, 2, 1, 8, codec=codec), "codec .* is not sealed"),
        (lambda: MixedGeometry(2, 2, 1, 8, codec=codec), "codec must be a list of 2 element types"),
    ):
        with pytest.raises(BadArgument, match=f"^{why}"):
            made()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("codec", ["int8", "int8-int4", "sparse", "float16"])
def test_the_most_negative_int16_of_numpy_is_that_of_an_array(codec: str) -> None:
    stored = []
    for x in (array("h", [-32768, 32767, 0, 1] * 2), np.array([-32768, 32767, 0, 1] * 2, dtype=np.int16)):
        geometry = Geometry(1, 1, 1, 8, window=4, sinks=0, codec=codec)
        cache = KVCache(geometry, kv_shift=8, kernels=kernels.of(codec).get("plain"))
        cache.append(0, x, x)
        cache.commit()
        stored.append((cache.read(0, "k", 0), cache.read(0, "v", 0)))
    assert stored[0] == stored[1]
    assert stored[0][1][0] == pytest.approx(-128, rel=0.05)


def test_after_a_refused_value_the_step_goes_on() -> None:
    """A NaN in layer 1 leaves layer 0 in the step; the sound value then completes it."""
    cache = KVCache(Geometry(2, 1, 1, 4, window=4, sinks=0), kernels=kernels.get("plain"))
    x, nan = array("f", [1, 2, 3, 4]), array("f", [1, float("nan"), 3, 4])
    cache.append(0, x, x)
    with pytest.raises(OutOfRange):
        cache.append(1, x, nan)
    cache.append(1, x, x)
    cache.commit()
    assert cache.length == 1
    assert cache.check() == 0


ODD = [
    {"heads": 1, "kv_heads": 1, "head_dim": 1, "window": 1, "sinks": 0},
    {"heads": 1, "kv_heads": 1, "head_dim": 1, "capacity": 1},
    {"heads": 7, "kv_heads": 1, "head_dim": 1, "window": 2, "sinks": 9},
    {"heads": 3, "kv_heads": 3, "head_dim": 1, "window": 1, "sinks": 1, "group": 1},
    {"heads": 2, "kv_heads": 2, "head_dim": 5, "window": 3, "sinks": 0, "group": 1},
    {"heads": 2, "kv_heads": 1, "head_dim": 1024, "window": 1, "sinks": 3},
]


@pytest.mark.parametrize("shape", ODD, ids=[",".join(f"{key}={o[key]}" for key in o) for o in ODD])
def test_odd_shapes_work(shape: dict) -> None:
    """Constant values come out again, whatever the shape."""
    g = Geometry(1, **shape)
    cache = KVCache(g, kernels=kernels.get("plain"))
    k, v = array("f", [0.5] * g.width), array("f", [-3] * g.width)
    q = array("f", [0.25] * (g.heads * g.head_dim))
    out = array("f", [0] * len(q))
    for t in range(12):
        if g.capacity and t == g.capacity:
            break
        cache.append(0, k, v)
        cache.attend(0, q, out, q)
        cache.commit()
        assert list(out) == pytest.approx([-3] * len(out), rel=2e-3)
        assert cache.check() == 0
    assert len(cache.visible()) == min(cache.length, g.max_visible)
