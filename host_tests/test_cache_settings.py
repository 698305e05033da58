"""A cache tells how it was made, so that another one like it can be made of what it says."""

from __future__ import annotations

from typing import Any

import pytest

from mpy_kv import cache_for, geometry_for, kernels
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.token_eviction import BudgetCache

SHAPE = {"layers": 2, "heads": 4, "kv_heads": 2, "head_dim": 8}
FLOATS = {"kv_shift": None, "q_shift": None, "out_shift": None}
SHIFTED = {"kv_shift": [(8, 9), (7, 7)], "q_shift": [6, 6], "out_shift": [9, 7]}


def of(codec: Any, shifts: dict[str, Any], **sizes: Any) -> Any:
    return cache_for(geometry_for(codec, **SHAPE, **sizes), **shifts)


@pytest.mark.parametrize(
    ("cache", "want"),
    [
        (lambda: of("int8", {}), {"window": 256, "sinks": 4, "codec": "int8", "group": 16, **FLOATS}),
        (
            lambda: of("int8-int4", {"kv_shift": [(8, 9), 7], "q_shift": 6}, window=9, sinks=0, group=4),
            {"window": 9, "codec": "int8-int4", "group": 4, **SHIFTED},
        ),
        (lambda: of("float16", {}, capacity=30), {"capacity": 30, "codec": "float16", **FLOATS}),
        (
            lambda: of("int4", {"kv_shift": 5}, window=40, sinks=1),
            {"window": 40, "sinks": 1, "codec": "int4", "group": 16}
            | {"kv_shift": [(5, 5)] * 2, "q_shift": [5, 5], "out_shift": [5, 5]},
        ),
        (
            lambda: of(["float16", "int8"], {"kv_shift": [(8, 9), 7], "q_shift": 6}, window=9),
            {"window": 9, "sinks": 4, "codec": ["float16", "int8"], "group": [None, 16], **SHIFTED},
        ),
        (
            lambda: BudgetCache(geometry_for("sparse", **SHAPE, window=9, sinks=0), policy="lru-peak"),
            {"window": 9, "codec": "sparse", "group": 16, "policy": "lru-peak", "recent": 1, **FLOATS},
        ),
        (
            lambda: Requests(PagedGeometry(**SHAPE, window=9, block_tokens=4), 9, kv_shift=3).open(1),
            {"window": 9, "sinks": 4, "codec": "int8", "group": 16, "block_tokens": 4}
            | {"kv_shift": [(3, 3)] * 2, "q_shift": [3, 3], "out_shift": [3, 3]},
        ),
    ],
    ids=["defaults", "int16", "capacity", "int4", "mixed", "budget", "request"],
)
def test_a_cache_tells_how_it_was_made(cache: Any, want: dict[str, Any]) -> None:
    names = ("window", "capacity", "group", "block_tokens", "policy")
    told = cache().settings()
    best = told.pop("kernels")
    assert all(name in ("plain", *kernels.FAMILY.names, "viper", "thumb") for name in best.split(", "))
    assert told == {**SHAPE, **dict.fromkeys(names), "sinks": 0, **want}


def test_another_like_it_can_be_made() -> None:
    told = of("int8-int4", {"kv_shift": [(8, 9), 7], "q_shift": 6}, window=9, group=4).settings()
    shifts = {name: told[name] for name in SHIFTED}
    sizes = {name: told[name] for name in (*SHAPE, "window", "sinks", "capacity", "group")}
    again = cache_for(geometry_for(told["codec"], **sizes), **shifts)
    assert again.settings() == told


def inside(g: Any) -> dict[str, Any]:
    """Every size of a geometry, those of its element types too."""
    return {k: {n: inside(o) for n, o in v.items()} if k == "types" else v for k, v in vars(g).items()}


OF_GEOMETRY = (*SHAPE, "window", "sinks", "capacity", "codec", "group")
CODECS = ("int8", "int8-int4", "float16", "float32", "sparse", "int4")
MIXES = (
    ["float16", "int8", "sparse", "int8"],
    ["int8-int4", "int8-int4", "float32", "sparse"],
    ["float32", "float16", "float16", "float32"],
)
WIDE = {"layers": 4, "heads": 4, "kv_heads": 2, "head_dim": 64}
SIZES: list[dict[str, Any]] = [
    {},
    {"window": 40, "sinks": 0},
    {"window": 40, "sinks": 3},
    {"capacity": 40},
    {"window": 20, "group": 8},
    {"capacity": 40, "group_limit": 16},
    {"window": 20, "group_limit": 64},  # sparse takes 32 at most, other types this
]


@pytest.mark.parametrize("codec", [*CODECS, *MIXES], ids=lambda c: c if isinstance(c, str) else "+".join(c))
def test_the_same_geometry_can_be_made(codec: Any) -> None:
    types = {codec} if isinstance(codec, str) else set(codec)
    for sizes in SIZES:
        if "group" in sizes and types <= {"float16", "float32"}:
            continue  # these have none
        if "int4" in types and sizes.get("group_limit") == 64:
            continue  # 32 at most
        geometry = geometry_for(codec, **WIDE, **sizes)
        cache = cache_for(geometry)
        told = cache.settings()
        again = geometry_for(**{name: told[name] for name in OF_GEOMETRY})
        assert inside(again) == inside(geometry)
        assert cache_for(again).settings() == told


@pytest.mark.parametrize("codec", CODECS[:-1])
def test_the_same_paged_geometry_can_be_made(codec: str) -> None:
    for sizes in SIZES:
        if "group" in sizes and codec in ("float16", "float32"):
            continue
        geometry = PagedGeometry(**WIDE, codec=codec, block_tokens=4, **sizes)
        told = Requests(geometry, geometry.pages).open(1).settings()
        again = PagedGeometry(**{name: told[name] for name in (*OF_GEOMETRY, "block_tokens")})
        assert inside(again) == inside(geometry)
