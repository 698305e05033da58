"""Numbers that are written more than once agree: indexes as constants, counters, defaults."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest
from paged_cases import requests_of

import mpy_kv
from mpy_kv import Geometry, KVCache, eviction
from mpy_kv.admission import admission
from mpy_kv.arena import Arena
from mpy_kv.budget import refusals
from mpy_kv.eviction.tokens import params as tokens
from mpy_kv.kernels import params
from mpy_kv.kernels.int4 import params as sealed
from mpy_kv.paged import prefix, request, requests
from mpy_kv.pools import batch, fixed, slab, slab_region, units

ROOT = Path(mpy_kv.__file__).parent
COPIES = ("cache.py", "sequence.py", "mixed.py", "budget/cache.py", "paged/request.py", "sealed/cache.py")


def constants(file: str) -> dict[str, int]:
    """Private constants of a file of the package."""
    found = {}
    for node in ast.parse((ROOT / file).read_text()).body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="const"), args=[value])
            ):
                found[name] = int(eval(compile(ast.Expression(value), file, "eval"), {}))
    return found


TURN = ("_NEXT", "_LAST", "_RUNS_OF", "_RUNS_FLOOR", "_HIGH", "_STEP", "_GONE_THEN", "_THEN")
MARKS = ("_NOTHING", "_STORED", "_STAGED", "_CUT")
OWN = (
    "_KNOWN",
    "_CHAIN",
    "_CHAIN_SERIAL",
    "_CHAIN_HASH",
    "_TOUCHED",
    "_AIMED",
    "_SINCE",
    "_IDS_AT",
    "_ID_BITS",
)
OTHERS = {
    "sequence.py": {"_MASK": 0x00FF00FF, "_TOO_LARGE": -1},
    "budget/cache.py": {"_END": 1 << 29},
    "sealed/cache.py": {"_BLOCK": 16, "_SHIFT": 4, "_MASK": 0x00FF00FF},
}


@pytest.mark.parametrize("file", COPIES)
def test_every_constant_is_what_it_is_a_copy_of(file: str) -> None:
    found = constants(file)
    right: dict[str, int] = {name: at for at, name in enumerate(TURN)} | {
        name: at for at, name in enumerate(MARKS)
    }
    if file == "paged/request.py":
        own = {name: at for at, name in enumerate(OWN)}
        assert {name: found[name] for name in own} == own
        assert len(request.Request(requests_of(2), 0, 0, 0)._own) == len(OWN)
        right |= own
    right |= OTHERS.get(file, {})
    assert found
    for name, value in found.items():
        if name in right:
            assert value == right[name], name
            continue
        tables = [tokens, params] if file == "budget/cache.py" else [params, sealed]
        held = [getattr(table, name[1:]) for table in tables if hasattr(table, name[1:])]
        assert held, name
        assert value == held[0], name


def test_the_step_s_numbers_have_room() -> None:
    assert len(KVCache(Geometry(1, 1, 1, 4, window=1))._turn) == len(TURN)


def test_indexes_that_native_code_names_by_number() -> None:
    """The layouts that the transitions of pools and blocks are written for."""
    assert (*range(8),) == (
        fixed.TOP,
        fixed.MASK,
        fixed.STEP,
        fixed.BLOCKS,
        fixed.WASTE,
        fixed.LOCKS,
        fixed.WRAPS,
        fixed.FIRST,
    )
    names = [
        "N",
        "MASK",
        "STEP",
        "WRAP",
        "ALLOCS",
        "FREES",
        "USED",
        "HIGH",
        "HIGH_UNITS",
        "FREE",
        "WASTE",
        "LOCKS",
        "LOCKED",
        "UNITS",
        "SHIFT",
        "OWN",
    ]
    assert [getattr(units, name) for name in names] == list(range(16))
    assert (units.LOCK, units.FULL, units.BAD, units.MOVES, units.NO_ENTRY) == (1 << 29, -1, -2, -3, -4)
    names = ["PER", "KINDS", "STOCK", "SPARE", "UNFILLED", "SLAB", "RECORDS", "RECORD"]
    assert [getattr(slab, name) for name in names] == list(range(15, 23))
    assert (slab.LEAST, slab.NONE, slab.EMPTY, slab.REFUSED, slab.MOVES) == (8, 65535, -1, -2, -3)
    names = ["HELD", "GUARANTEED", "ALLOWED", "MARK", "HOLDERS", "OWNER"]
    assert [getattr(slab_region, name) for name in names] == list(range(1, 7))
    assert (slab_region.LOCKED_INSIDE, slab_region.NO_REGION, slab_region.MAX_REGIONS) == (-3, 65535, 1023)
    names = ["N", "TOP", "FREE", "REUSABLE", "USED", "PEAK", "SERIAL", "ENTRIES", "BLOCK_TOKENS", "ORPHANS"]
    assert [getattr(prefix, name) for name in names] == list(range(10))
    names = ["BUSY", "BOUND", "COMMON", "PINNED", "OPENED", "REUSED"]
    assert [getattr(requests, name) for name in names] == list(range(6))
    assert (requests._FREE, requests._OPEN, requests._PIN) == (0, 1, 2)


def test_counters_of_a_queue() -> None:
    names = [
        "RESERVED",
        "HIGH",
        "N_WAITING",
        "N_RUNNING",
        "ARRIVAL",
        "SUBMITTED",
        "REFUSED",
        "ADMITTED",
        "PREEMPTED",
        "FINISHED",
        "CANCELLED",
    ]
    assert [getattr(admission, name) for name in names] == list(range(11))
    found = constants("admission/admission.py")
    assert found.pop("_WRAP") == (1 << 30) - 1
    assert found.pop("_WAITING") == admission.N_WAITING
    assert found.pop("_RUNNING") == admission.N_RUNNING
    assert found == {f"_{name}": getattr(admission, name) for name in names if not name.startswith("N_")}
    assert (admission.WAITING, admission.RUNNING) == (0, 1)


def test_what_a_refusal_of_a_budget_counts() -> None:
    assert refusals.T_LIVE == tokens.LIVE


DEFAULTS = {
    "admission.admission.Admission": {"tickets": 16, "levels": 4, "limit_blocks": None, "reserve": "maximum"},
    "admission.admission.Admission.submit": {"priority": 0},
    "admission.admission.Admission.step": {"available_blocks": None},
    "admission.admission.Admission.growth": {"available_blocks": None},
    "admission.admission.Admission.finish": {"tokens": None},
    "admission.predictor.LengthPredictor": {"tasks": 16, "per_mille": 900, "least": 16, "memory": 1024},
    "admission.predictor.LengthPredictor.predict": {"done": 0},
    "admission.waiting.Gate": {"preempted": None},
    "admission.waiting.Gate.finish": {"tokens": None, "available_blocks": None},
    "pools.fixed.FixedPool": {"tag": None, "align": 4},
    "pools.buddy.BuddyPool": {"min_block": 64, "max_align": None, "tag": None},
    "pools.region.RegionPool": {"tag": None},
    "pools.region.RegionPool.compact": {"limit_bytes": None},
    "pools.slab.SlabPool": {"classes": (64, 256), "max_align": None, "tag": None},
    "pools.slab_region.SlabRegionPool": {
        "classes": (64, 256), "max_regions": 16, "max_align": None, "tag": None,
    },
    "pools.slab_region.SlabRegionPool.open_region": {"guaranteed_slabs": 0, "owner": 0},
    "pools.slab_region.SlabRegionPool.alloc": {"align": 4, "region": None},
    "pools.slab_region.SlabRegionPool.alloc_many": {"align": 4, "region": None},
    "pools.slab_region.SlabRegionPool.largest_free_bytes": {"region": None},
    **{
        f"pools.{name}.{method}": given
        for name in ("fixed.FixedPool", "buddy.BuddyPool", "region.RegionPool", "slab.SlabPool")
        for method, given in (
            ("alloc", {"align": 4}), ("alloc_many", {"align": 4}), ("set_owner", {"batch": 0}),
        )
    },
    "pools.slab.SlabPool._refuse_room": {"n": 1},
    "pools.refusals.full": {"n": 1},
    "eviction.lfu.LFU": {"most_count": 255},
    "eviction.hybrid.Hybrid": {"window": None, "most_count": 255},
    "eviction.s3fifo.S3FIFO": {"small": None, "ghosts": None},
    "eviction.policy.Policy": {"own": (), "beside": 0},
    "eviction.policy.Policy.indexes": {"zeros": 0},
    "eviction.fifo.Queue": {"queues": 1, "own": (), "beside": 0},
    "sequence.Sequence.attend": {"q_sinks": None, "n": 1},
    "sequence.Sequence.sink_query_position": {"i": 0},
    "cache.KVCache": {"buffer": None, "kv_shift": None, "q_shift": None, "out_shift": None, "kernels": None},
    "budget.BudgetCache": {
        "buffer": None, "kv_shift": None, "q_shift": None, "out_shift": None, "kernels": None,
        "policy": "window-lru", "recent": None,
    },
    "budget.BudgetCache.compress": {"recent": 0},
    "budget.shrinking.keep_count": {"whole": 1},
    "mixed.MixedGeometry": {
        "window": None, "sinks": None, "capacity": None, "group": None, "group_limit": 32,
    },
    "sealed.SealedGeometry": {
        "window": None, "sinks": None, "capacity": None, "codec": "int4", "group": None, "group_limit": 32,
    },
    "paged.PagedGeometry": {
        "window": None, "sinks": None, "capacity": None, "codec": "int8", "group": None, "group_limit": 32,
        "block_tokens": 16,
    },
    "paged.PagedGeometry.bytes": {"blocks": 1},
    "paged.Requests": {
        "max_requests": 4, "buffer": None, "arena": None, "pool": None, "kv_shift": None, "q_shift": None,
        "out_shift": None, "kernels": None, "identity": b"", "max_pins": 2, "pin_blocks": None,
        "wide_ids": False,
    },
    "paged.Requests.lookup": {"salt": b""},
    "paged.Requests.open": {
        "task": 0, "reserve_tokens": 0, "tokens": None, "limit_tokens": None, "priority": 0,
        "pin_tokens": None, "salt": b"",
    },
    "paged.Requests.pin": {"tokens": None},
    "paged.request.Request.commit": {"ids": None},
    "paged.request.Request.fork": {
        "task": None, "reserve_tokens": 0, "limit_tokens": None, "priority": None,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name: str) -> None:
    """What the documents say that an argument is where it is left out."""
    parts = name.split(".")
    at = next(i for i in range(len(parts) - 1, 0, -1) if _is_module(parts[:i]))
    found = importlib.import_module(".".join(["mpy_kv", *parts[:at]]))
    for part in parts[at:]:
        found = getattr(found, part)
    given = inspect.signature(found).parameters
    assert {n: p.default for n, p in given.items() if p.default is not p.empty} == DEFAULTS[name]


def _is_module(parts: list[str]) -> bool:
    file = ROOT.joinpath(*parts)
    return file.with_suffix(".py").exists() or (file / "__init__.py").exists()


@pytest.mark.parametrize("policy", ["fifo", "lru", "lfu", "hybrid", "sieve", "s3fifo"])
def test_a_policy_is_given_no_key_by_itself(policy: str) -> None:
    """-1: of nothing that may come again."""
    insert = type(eviction.make(policy, 4)).insert
    assert inspect.signature(insert).parameters["key"].default == -1


def test_refusals_of_transitions_are_below_zero() -> None:
    """0 is done."""
    pool = fixed.FixedPool(Arena(64), 2, 32, tag=1)
    handle = pool.alloc(32)
    meta, word = pool._meta, pool._word
    assert fixed.lock_block(meta, word, handle, 1) == 0
    assert fixed.lock_block(meta, word, handle, 1) == 0
    assert fixed.lock_block(meta, word, handle + 1, 1) == -2
    assert fixed.lock_block(meta, word, handle + 2 * meta[fixed.STEP], 0) == -2
    assert fixed.give_block(meta, word, handle) == -2
    assert fixed.lock_block(meta, word, handle, 0) == 0
    assert fixed.give_block(meta, word, handle) == 0
    assert fixed.give_block(meta, word, handle) == -2
    out = [0, 0]
    assert batch.take_blocks(meta, word, 3, out) == -1
    assert batch.take_blocks(meta, word, 2, out) == 0
    assert batch.give_blocks(meta, word, [out[0], handle], 2) == -3
    assert batch.give_blocks(meta, word, out, 2) == 0
