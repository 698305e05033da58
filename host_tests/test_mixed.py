"""MixedCache: each layer to the bit a KVCache of its type; cut short anywhere; what it refuses, and costs."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import random
from array import array
from pathlib import Path

import numpy as np
import paged_cases
import pytest
from injected import Injected
from jobs import Job, together
from known_cases import DEVICE
from sampling import Sampled

import mpy_kv.attention
import mpy_kv.cache
import mpy_kv.sequence
from kvlab.element_types import NAMES
from mpy_kv import Geometry, KVCache, cache_for, geometry_for, kernels
from mpy_kv.errors import BadArgument, StepError
from mpy_kv.kernels import params
from mpy_kv.per_layer import MixedCache, MixedGeometry

TYPES = [name for name in NAMES if name not in ("int4", "float32")]
SHAPES = {
    "heads in a group": {"heads": 4, "kv_heads": 2, "head_dim": 8},
    "groups in a head": {"heads": 2, "kv_heads": 1, "head_dim": 64},
}
CONTEXTS = {"sinks": {"window": 11, "sinks": 3}, "capacity": {"capacity": 40}}
OPS = [
    *(
        [["step", t] for t in range(7)]
        + [["prefill", 7, 5], ["append-only", 12], ["step", 12], ["rollback", 3]]
    ),
    *([["step", t] for t in (10, 11)] + [["prefill-commit", 12, 3], ["prefill", 15, 9], ["step", 24]]),
]


def plain(types) -> dict:
    return {name: kernels.of(name).get("plain") for name in types}


def job(codec, shape: dict, context: dict, ops=None, **cache) -> Job:
    """Vectors that every layer, token and codec agree on."""
    rng = np.random.default_rng(3)
    layers = len(TYPES)
    ops = list(OPS if ops is None else ops)
    if "capacity" not in context and ops is OPS:
        ops += [["seek", 400], ["step", 25]]
    width, q_row = shape["kv_heads"] * shape["head_dim"], shape["heads"] * shape["head_dim"]
    x = [rng.normal(size=(26, layers, n)) * 3 for n in (width, width, q_row, q_row)]
    if cache:
        x = [np.round(each * 2.0 ** cache["kv_shift"]) for each in x]
    return Job({"layers": layers, **shape, **context, "codec": codec}, ops, *x, **cache)


def blocks(geometry: MixedGeometry, buffer: bytes) -> list[bytes]:
    """The bytes of each layer."""
    ends = [*geometry.at[1:], geometry.layers_bytes]
    return [bytes(buffer[at:end]) for at, end in zip(geometry.at, ends, strict=True)]


def of_a_layer(codec: str, shape: dict, context: dict, layer: int, buffer: bytes) -> bytes:
    size = Geometry(len(TYPES), **shape, **context, codec=codec).layer_bytes
    return bytes(buffer[layer * size : layer * size + size])


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("cache", [{}, {"kv_shift": 8}], ids=["float32", "int16"])
def test_a_layer_is_a_cache_of_its_type(cache: dict, shape: dict, context: dict) -> None:
    """Outputs and bytes through steps, prefills, an abort, a rollback."""
    alone = {codec: job(codec, shape, context, **cache).plain() for codec in TYPES}
    for turn in (0, 1):
        codecs = TYPES[turn:] + TYPES[:turn]
        it = job(codecs, shape, context, **cache)
        outputs, buffer = it.plain()
        for i, (_, layer) in enumerate(it.rows):
            assert outputs[i].tobytes() == alone[codecs[layer]][0][i].tobytes(), (i, codecs)
        g = MixedGeometry(len(TYPES), **shape, **context, codec=codecs)
        assert len(buffer) == g.bytes()
        for layer, found in enumerate(blocks(g, buffer)):
            want = of_a_layer(codecs[layer], shape, context, layer, alone[codecs[layer]][1])
            assert found == want, (layer, codecs)


@pytest.mark.parametrize("codec", TYPES)
def test_of_one_type_it_is_that_cache_to_the_last_byte(codec: str) -> None:
    for shape in SHAPES.values():
        want = job(codec, shape, CONTEXTS["sinks"]).plain()
        got = job([codec] * len(TYPES), shape, CONTEXTS["sinks"]).plain()
        assert got[0].tobytes() == want[0].tobytes()
        assert got[1] == want[1]  # scratch too


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_viper_gives_the_same_bits(shape: dict, upy) -> None:
    it = job(TYPES, shape, CONTEXTS["sinks"])
    want, got = it.plain(), it.unix(upy)
    assert got[0].tobytes() == want[0].tobytes()
    assert got[1] == want[1]


def test_a_board_gives_the_same_bits(qemu, tmp_path: Path) -> None:
    """With the kernels that each type has there, Thumb's or viper's."""
    jobs = [job(TYPES, shape, CONTEXTS["sinks"]) for shape in SHAPES.values()]

    def run(listed: Path) -> None:
        qemu.run(DEVICE / "cache_jobs.py", [listed], arch="armv6m", timeout=300)

    for it, got in zip(jobs, together(jobs, tmp_path, run, "best"), strict=True):
        want = it.plain()
        assert got[0].tobytes() == want[0].tobytes()
        assert got[1] == want[1]


# --- what it says of itself


def fed(tokens: int, codecs=("int8", "int8-int4", "int8"), **options) -> MixedCache:
    options = options or {"window": 4, "sinks": 2}
    g = MixedGeometry(len(codecs), 2, 1, 8, codec=codecs, **options)
    cache = MixedCache(g, kernels=plain(g.types))
    for _ in range(tokens):
        step(cache)
    return cache


@functools.cache
def vector(*seed: int) -> array:
    rng = random.Random(repr(seed))
    return array("f", [rng.uniform(-3, 3) for _ in range(8 * (2 if seed[-1] else 1))])


def step(cache: MixedCache, tag: int = 0) -> list[list[float]]:
    found = []
    p = cache.length + tag
    for layer in range(cache.geometry.layers):
        cache.append(layer, vector(p, layer, 1, 0), vector(p, layer, 2, 0))
        out = array("f", [0] * 16)
        cache.attend(layer, vector(p, layer, 3), out, vector(p, layer, 4))
        found.append(out.tolist())
    cache.commit()
    return found


def test_vectors_read_back_bytes_and_places() -> None:
    cache = fed(9)
    g = cache.geometry
    assert cache.visible() == [0, 1, 5, 6, 7, 8]
    alone = {name: KVCache(Geometry(3, 2, 1, 8, window=4, sinks=2, codec=name)) for name in g.types}
    for _ in range(9):
        for each in alone.values():
            step(each)
    for layer, name in enumerate(g.codec):
        assert g.of(layer).codec == name
        assert cache.layer_geometry(layer) is g.of(layer)
        assert alone[name].layer_geometry(layer) is alone[name].geometry
        for which in "kv":
            for p in cache.visible():
                assert cache.read(layer, which, p) == alone[name].read(layer, which, p)
                at, want = cache.place(layer, which, p), alone[name].place(layer, which, p)
                assert {place - g.at[layer] for place in at} == {
                    place - layer * alone[name].geometry.layer_bytes for place in want
                }
    sizes = {name: each.kv_bytes // 3 for name, each in alone.items()}
    assert cache.kv_bytes == 2 * sizes["int8"] + sizes["int8-int4"] == g.kv_bytes(6)
    assert cache.stats() == {
        "tokens": 9,
        "visible_tokens": 6,
        "evicted_tokens": 3,
        "kv_bytes": cache.kv_bytes,
        "buffer_bytes": g.bytes(),
        "pending_layers": 0,
        "kernels": "plain",
    }
    assert len(cache.buffer) == g.bytes() < alone["int8"].buffer_bytes + 64
    assert [g.slot(p) for p in (0, 1, 2, 6, 7)] == [0, 1, 2, 6, 2]
    assert "codec=['int8', 'int8-int4', 'int8']" in repr(g)
    assert "capacity=9" in repr(MixedGeometry(1, 2, 1, 8, codec=["int8"], capacity=9))


def test_check_knows_each_layer_s_codes() -> None:
    """Zero is no code of int8, and two nibbles of int4 that are none."""
    cache = fed(6)
    assert cache.check() == 0
    for layer, broken in ((0, 1), (1, 2)):
        at = cache.place(layer, "v", 5)[0]
        kept, cache.buffer[at] = cache.buffer[at], 0
        assert cache.check() == broken, layer
        cache.buffer[at] = kept
    assert cache.check() == 0


def test_parameters_are_those_of_the_layer_attended_last() -> None:
    cache = fed(3)
    for layer in range(2):
        cache.append(layer, vector(3, layer, 1, 0), vector(3, layer, 2, 0))
        cache.attend(layer, vector(3, layer, 3), array("f", [0] * 16))
        buffer, a = cache.kernel_arguments()
        assert buffer is cache.buffer
        assert a[params.V_ROW] == cache.geometry.of(layer).v_row_bytes
        assert a[params.N] == 4


@pytest.mark.parametrize(
    ("codec", "message"),
    [
        ("int8", "codec must be a list of 3 element types"),
        (["int8"] * 2, "codec must be a list of 3 element types"),
        (["int8", "int7", "int8"], "codec 'int7' is unknown"),
        (["int8", "int4", "int8"], "int4 seals tokens of all layers together"),
        (["int8", 7, "int8"], "codec 7 is unknown"),
        (["int8", ["int8"], "int8"], r"codec \['int8'\] is unknown"),
    ],
)
def test_what_a_geometry_refuses(codec, message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        MixedGeometry(3, 2, 1, 8, codec=codec)


@pytest.mark.parametrize(("layers", "codec"), [(0, []), (True, ["int8"]), (1.0, ["int8"])])
def test_layers_are_a_number_of_them(layers, codec: list[str]) -> None:
    with pytest.raises(BadArgument, match="layers must be"):
        MixedGeometry(layers, 2, 1, 8, codec=codec)


def test_what_a_cache_refuses() -> None:
    g = MixedGeometry(2, 2, 1, 8, codec=["int8", "int8-int4"], window=4, sinks=0)
    for make, message in (
        (lambda: MixedCache(Geometry(2, 2, 1, 8)), "must be a MixedGeometry, got Geometry"),
        (lambda: KVCache(g), "must be a Geometry, got MixedGeometry"),
        (lambda: MixedCache(g, kernels=kernels.get("plain")), "sets by element type"),
        (
            lambda: MixedCache(g, kernels={"int8-int4": kernels.get("plain")}),
            "for codec 'int8', not 'int8-int4'",
        ),
        (lambda: MixedCache(g, kernels={"int9": kernels.get("plain")}), "no element type 'int9'; known: "),
        (lambda: MixedCache(g, bytearray(g.bytes() - 1)), "needed"),
        (lambda: MixedCache(g, q_shift=3), "need kv_shift"),
    ):
        with pytest.raises(BadArgument, match=message):
            make()
    assert MixedCache(g, bytearray(g.bytes()), kernels={}).check() == 0
    assert g.types["int8"].group == 8
    assert MixedGeometry(1, 2, 1, 8, codec=["int8"], group=4).of(0).group == 4


def test_a_list_of_types_is_enough() -> None:
    g = geometry_for(["int8", "int8-int4"], 2, 2, 1, 8, window=5, sinks=0)
    assert type(g) is MixedGeometry
    assert type(cache_for(g, kernels=plain(g.types))) is MixedCache


def test_a_buffer_that_does_not_start_on_a_word() -> None:
    cache = fed(3)
    g = cache.geometry
    buffer = memoryview(bytearray(g.bytes() + 3))[3:]
    other = MixedCache(g, buffer, kernels=plain(g.types))
    for _ in range(3):
        step(other)
    assert bytes(buffer[: g.bytes()]) == bytes(cache.buffer[: g.bytes()])  # here addresses count as 0


# --- cut short


FILES = (mpy_kv.cache.__file__, mpy_kv.sequence.__file__, mpy_kv.attention.__file__)


def prefill(cache: MixedCache) -> None:
    p, n = cache.length, 3
    for layer in (0, 1):
        k, v, q = (array("f") for _ in range(3))
        for i in range(n):
            k.extend(vector(p + i, layer, 1, 0))
            v.extend(vector(p + i, layer, 2, 0))
            q.extend(vector(p + i, layer, 3))
        cache.prefill(layer, k, v, n)
        if layer == 0:
            cache.attend(layer, q, array("f", [0] * 16 * n), None, n)
    cache.commit()


def stored(cache: MixedCache, positions=None) -> list[bytes]:
    """Codes and scale of the visible tokens (or of `positions`) in each layer: one KV head, one group."""
    found = []
    for layer in (0, 1):
        g = cache.geometry.of(layer)
        for p in cache.visible() if positions is None else positions:
            for which, row in (("k", g.row_bytes), ("v", g.v_row_bytes)):
                codes, scale = cache.place(layer, which, p)
                found.append(bytes(cache.buffer[codes : codes + row] + cache.buffer[scale : scale + 2]))
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize(("act", "stride", "tokens"), [(step, 1, 1), (step, 1, 9), (prefill, 7, 9)])
def test_broken_off_at_any_line(act, stride: int, tokens: int, sampled: Sampled) -> None:
    before = fed(tokens, ("int8", "int8-int4"))
    kept = stored(before)
    undisturbed = copy.deepcopy(before)
    want = act(undisturbed)
    in_attention = 0
    for at in sampled(itertools.count(1, stride)):
        cache = copy.deepcopy(before)
        with Injected(KeyboardInterrupt, at, FILES) as injected:
            act(cache)
        where = injected.where
        if not where:
            break
        in_attention += where.startswith("attention.py")
        assert cache.length == tokens, where
        assert cache.check() == 0, where
        if act is step:
            assert stored(cache) == kept, where
            assert act(cache) == want, where
            assert stored(cache) == stored(undisturbed), where
            assert cache.stats() == undisturbed.stats(), where
        else:  # a long prefill may have overwritten the oldest: the same of all layers
            assert stored(cache) == stored(before, cache.visible()), where
            act(cache)
            assert stored(cache) == stored(undisturbed, cache.visible()), where
    assert in_attention > 5 or not sampled.whole


def test_a_layer_left_out_is_named() -> None:
    cache = fed(2)
    cache.append(0, vector(2, 0, 1, 0), vector(2, 0, 2, 0))
    with pytest.raises(StepError, match="1 of 3 layers stored; layer 1 is missing"):
        cache.commit()
    for layer in (3, -1, True, 1.0, None, "0", 10**20):
        for call, about in ((cache.place, ["k", 0]), (cache.read, ["k", 0]), (cache.layer_geometry, [])):
            with pytest.raises(BadArgument, match=r"layer must be 0\.\.2"):
                call(layer, *about)
    for position in (-1, 1.0, None):
        with pytest.raises(BadArgument, match="position must be a whole number"):
            cache.place(0, "v", position)


# --- what it costs


def test_a_layer_of_its_own_type_costs_little(qemu) -> None:
    """Instructions on the emulated board, float32, 8 heads of 8 over 64 tokens; nothing allocated."""
    found = json.loads(qemu.run(DEVICE / "mixed_cost.py", timeout=120))
    print(found)
    assert found["allocated"] == 0
    mean = (found["token"]["int8"] + found["token"]["int8-int4"]) / 2
    assert mean < found["token"]["alternating"] <= 1.06 * mean
    assert found["token"]["uniform"] <= 1.05 * found["token"]["int8"]


def test_no_layer_sees_what_a_rollback_lost() -> None:
    """The ring has overwritten what was visible once: each layer sees what a cache of its type does."""
    context = {"window": 4, "sinks": 1}
    types = ["int8", "float16"]
    sets = plain(types)
    mixed = MixedCache(MixedGeometry(**paged_cases.SHAPE, **context, codec=types), kernels=sets)
    alone = [
        KVCache(Geometry(**paged_cases.SHAPE, **context, codec=name), kernels=sets[name]) for name in types
    ]
    for token in range(16):
        if token == 12:
            for cache in (mixed, *alone):
                cache.rollback(3)
        got = paged_cases.step(mixed, token, ids=False)
        half = len(got) // 2
        want = [paged_cases.step(cache, token) for cache in alone]
        assert got == want[0][:half] + want[1][half:]
        assert mixed.visible() == alone[0].visible()


def test_a_group_for_each_layer() -> None:
    """A type may have another than the next, but the same wherever it is; a layer without scales has none."""
    shape = {"layers": 4, "heads": 4, "kv_heads": 2, "head_dim": 64}
    names = ["int8", "float16", "sparse", "int8"]
    g = MixedGeometry(**shape, codec=names, group=[64, None, 8, 64])
    assert [g.of(layer).group for layer in (0, 2, 3)] == [64, 8, 64]
    assert MixedCache(g).settings()["group"] == [64, None, 8, 64]
    one, each = (MixedGeometry(**shape, codec=names, group=group) for group in (8, (8, None, 8, 8)))
    assert [vars(one.of(layer)) for layer in range(4)] == [vars(each.of(layer)) for layer in range(4)]
    floats = MixedGeometry(**shape, codec=["float16", "float32"] * 2, group=[None] * 4)
    assert floats.bytes() == MixedGeometry(**shape, codec=["float16", "float32"] * 2).bytes()
    for group, said in (
        ([64, None, 8, 32], "group 32: int8 has 64 in another layer"),
        ([64, None, 8, None], "group None: int8 has 64 in another layer"),
        ([1, None, 8, True], "group True: int8 has 1 in another layer"),
        ([64, 8, 8, 64], "group 8: float16 has no scales"),
        ([64, None, 64, 64], "group 64: sparse takes at most 32"),
        ([64, None, 8], "group must be one number or 4 .one a layer., got .64, None, 8."),
    ):
        with pytest.raises(BadArgument, match=f"^{said}"):
            MixedGeometry(**shape, codec=names, group=group)
    with pytest.raises(BadArgument, match="^group 8: no layer has scales"):
        MixedGeometry(**shape, codec=["float16", "float32"] * 2, group=8)
