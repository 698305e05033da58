"""Numbers that are written more than once agree: constants, codes, defaults."""

from __future__ import annotations

import ast
import importlib
import inspect
import random
import zlib
from array import array
from pathlib import Path
from typing import Any

import pytest
from paged_cases import requests_of, run

import mpy_kv
from field_tables import tables
from mpy_kv import eviction
from mpy_kv.admission import admission, predictor
from mpy_kv.arena import Arena
from mpy_kv.eviction import lfu, policy, s3fifo, sieve
from mpy_kv.eviction import linked_list as lru
from mpy_kv.eviction.tokens import FAMILY, selfcheck
from mpy_kv.eviction.tokens import params as tokens
from mpy_kv.int4_blocks import geometry as sealed_geometry
from mpy_kv.kernels.kernel_registry import KernelSet
from mpy_kv.paged import admit_request, ledger, prefix
from mpy_kv.pools import batch, fixed, region, slab, slab_make, slab_region, units, units_make

ROOT = Path(mpy_kv.__file__).parent
META = tables.of("fixed")


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


OTHERS = {
    "admission/admission.py": {"_WRAP": (1 << 30) - 1},
    "heads.py": {"_MASK": 0x00FF00FF},
    "token_eviction/cache.py": {"_END": 1 << 29},
    "int4_blocks/cache.py": {"_BLOCK": 16, "_SHIFT": 4},
    "int4_blocks/blocks.py": {"_BLOCK": 16, "_SHIFT": 4},
}


@pytest.mark.parametrize("file", OTHERS)
def test_every_constant_is_what_it_is_a_copy_of(file: str) -> None:
    """Those that are no index: tools/fields.py makes these."""
    found = constants(file)
    assert {name: found[name] for name in OTHERS[file]} == OTHERS[file]


def test_codes_that_native_code_gives_by_number() -> None:
    assert (units.LOCK, units.FULL, units.BAD, units.MOVES, units.NO_ENTRY) == (1 << 29, -1, -2, -3, -4)
    assert (slab.NONE, slab.EMPTY, slab.REFUSED, slab.MOVES) == (65535, -1, -2, -3)
    assert (slab_region.LOCKED_INSIDE, slab_region.NO_REGION, slab_region.MAX_REGIONS) == (-3, 65535, 1023)
    assert (ledger.CLOSED, ledger.OPEN, ledger.PIN) == (0, 1, 2)
    assert (admission.WAITING, admission.RUNNING) == (0, 1)


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
    "pools.raise_errors.full": {"n": 1},
    "eviction.lfu.LFU": {"most_count": 255},
    "eviction.hybrid.Hybrid": {"window": None, "most_count": 255},
    "eviction.s3fifo.S3FIFO": {"small": None, "ghosts": None},
    "eviction.policy.Policy": {"own": (), "beside": 0},
    "eviction.policy.Policy.indexes": {"zeros": 0},
    "eviction.fifo.Queue": {"queues": 1, "own": (), "beside": 0},
    "sequence.Sequence.attend": {"q_sinks": None, "n": 1},
    "sequence.Sequence.sink_query_position": {"i": 0},
    "cache.KVCache": {"buffer": None, "kv_shift": None, "q_shift": None, "out_shift": None, "kernels": None},
    "token_eviction.BudgetCache": {
        "buffer": None, "kv_shift": None, "q_shift": None, "out_shift": None, "kernels": None,
        "policy": "window-lru", "recent": None,
    },
    "token_eviction.BudgetCache.compress": {"recent": 0},
    "token_eviction.compression.keep_count": {"whole": 1},
    "per_layer.MixedGeometry": {
        "window": None, "sinks": None, "capacity": None, "group": None, "group_limit": 32,
    },
    "int4_blocks.SealedGeometry": {
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


@pytest.mark.parametrize("name", ["fifo", "lru", "lfu", "hybrid", "sieve", "s3fifo"])
def test_a_policy_is_given_no_key_by_itself(name: str) -> None:
    """-1: of nothing that may come again."""
    insert = type(eviction.make(name, 4)).insert
    assert inspect.signature(insert).parameters["key"].default == -1


def test_refusals_of_transitions_are_below_zero() -> None:
    """0 is done."""
    pool = fixed.FixedPool(Arena(64), 2, 32, tag=1)
    handle = pool.alloc(32)
    meta, word = pool._meta, pool._word
    assert fixed.lock_block(meta, word, handle, 1) == 0
    assert fixed.lock_block(meta, word, handle, 1) == 0
    assert fixed.lock_block(meta, word, handle + 1, 1) == -2
    assert fixed.lock_block(meta, word, handle + 2 * meta[META.STEP], 0) == -2
    assert fixed.give_block(meta, word, handle) == -2
    assert fixed.lock_block(meta, word, handle, 0) == 0
    assert fixed.give_block(meta, word, handle) == 0
    assert fixed.give_block(meta, word, handle) == -2
    out = [0, 0]
    assert batch.take_blocks(meta, word, 3, out) == -1
    assert batch.take_blocks(meta, word, 2, out) == 0
    assert batch.give_blocks(meta, word, [out[0], handle], 2) == -3
    assert batch.give_blocks(meta, word, out, 2) == 0


LIMITS = {
    (admission, "MOST_TICKETS"): 65000,
    (admission, "MOST_TOKENS"): 1 << 28,
    (admission, "MOST_TASK"): (1 << 29) - 1,
    (predictor, "BINS"): 120,
    (predictor, "MOST_TOKENS"): (1 << 17) - 1,
    (predictor, "MOST_TASK"): (1 << 29) - 1,
    (fixed, "MAX_BLOCKS"): 1 << 20,
    (slab_make, "MAX_OBJECTS"): 1 << 20,
    (slab_make, "MAX_CLASSES"): 32,
    (slab_make, "MAX_CLASS"): 1 << 25,
    (slab_make, "MAX_ALIGN"): 1 << 16,
    (slab_make, "MAX_SLABS"): 65534,
    (units_make, "MAX_UNITS"): 1 << 20,
    (units_make, "MAX_REGIONS"): 4095,
    (units_make, "MAX_ALIGN"): 1 << 16,
    (region.RegionPool, "max_align"): 1 << 16,
    (slab_region, "MAX_REGIONS"): 1023,
    (policy, "MAX_ENTRIES"): 1 << 24,
    (lfu, "MOST_COUNT"): 255,
    (admit_request, "PAST"): 1 << 29,
    (sealed_geometry, "BLOCK"): 16,
    (sealed_geometry, "FRESH"): 32,
    (sealed_geometry, "MOST_GROUP"): 32,
    (tokens, "MOST_BITS"): 20,
    (tokens, "MOST_VISIBLE"): 1 << 14,
    (tokens, "NOW"): 1 << 29,
    (tokens, "GONE"): (1 << 30) - 1,
}


@pytest.mark.parametrize("where", LIMITS, ids=lambda where: f"{where[0].__name__}.{where[1]}")
def test_the_limits_that_layouts_are_made_for(where: tuple[Any, str]) -> None:
    """Some are too large to be tried."""
    assert getattr(*where) == LIMITS[where]


ABSTRACT = [
    *((units.UnitPool, name, given) for name, given in (
        ("alloc", (4,)), ("free", (1,)), ("_room", (1, 4, 4)), ("_largest", ()),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("base", "method", "given"), ABSTRACT, ids=lambda x: x if type(x) is str else None)
def test_what_a_base_leaves_to_its_kinds(base: Any, method: str, given: tuple[Any, ...]) -> None:
    with pytest.raises(NotImplementedError):
        getattr(base, method)(None, *given)


def test_a_base_has_no_name() -> None:
    assert (units.UnitPool.name, policy.Policy.name) == ("", "")
    assert (units.UnitPool.max_align, units.UnitPool._meta, units.UnitPool._word) == (4, [], [])


def test_transitions_return_a_small_int() -> None:
    """A native function that returned None or more would allocate, or be taken for a refusal."""
    nxt, prv = list(range(6)), list(range(6))
    assert lru.clear(nxt, prv, 5) == 0
    assert lru.add_newest(nxt, prv, 5, 1) == 0
    assert lru.add_newest(nxt, prv, 5, 2) == 0
    assert lru.touch(nxt, prv, 5, 1) == 0
    assert (nxt[5], nxt[2], nxt[1]) == (2, 1, 5)
    for name, module in (("sieve", sieve), ("s3fifo", s3fifo)):
        one = eviction.make(name, 4)
        one.insert(0)
        about = (one._meta, one._nxt, one._state) if name == "sieve" else (one._meta, one._state)
        assert [module.leave(*about, 4, i) for i in (-1, 0, 1, 4, 5)] == [0] * 5
    of = requests_of(4)
    one = of.open()
    run(one, range(9))
    blocks = of._ledger.blocks
    block = of._ledger.table[0]
    assert blocks.hash_of(0, [1, 2, 3, 4], 0) == prefix.chain_hash(0, [1, 2, 3, 4], 0, 4)
    assert blocks.serial[block] == 1
    assert blocks.hold(block) == 1
    assert blocks.drop(block) == 1
    assert blocks.forget(block) == 0
    plan = array("i", [0] * 60)
    plan[tokens.RING] = 2
    kernels = FAMILY.plain()
    assert kernels.survey(array("i", [0, 0]), array("i", [0] * 4), plan, 0) == 0
    assert kernels.watch(plan, array("i", [0] * 4), array("i", [0] * 4), tokens.USED) == 0
    assert kernels.move(bytearray(4), 0, 2, 2) == 0


def hashed(h: int, ids: Any) -> int:
    """Two polynomials, added up from the end: of ids, modulo 32749, and of ids + 1, modulo 32719."""
    n = len(ids)
    a = (h >> 15) * pow(16381, n, 32749) + sum(t * pow(16381, n - 1 - k, 32749) for k, t in enumerate(ids))
    b = (h & 0x7FFF) * pow(12289, n, 32719) + sum(
        (t + 1) * pow(12289, n - 1 - k, 32719) for k, t in enumerate(ids)
    )
    return a % 32749 << 15 | b % 32719


def test_the_hash_of_a_chain_is_that_of_all_its_ids() -> None:
    rng = random.Random(2)
    for _ in range(300):
        ids = [
            rng.choice((0, 1, 65535, (1 << 29) - 1, rng.randrange(1 << 29)))
            for _ in range(rng.randint(0, 20))
        ]
        start = rng.choice((0, rng.randrange(1 << 30)))
        whole = prefix.chain_hash(start, ids, 0, len(ids))
        if ids:
            assert whole == hashed(start, ids)
        assert 0 <= whole < 1 << 30
        cut = rng.randint(0, len(ids))
        first = prefix.chain_hash(start, ids, 0, cut)
        assert prefix.chain_hash(first, ids, cut, len(ids) - cut) == whole


def test_the_start_up_check_gives_kernels_what_it_was_chosen_to_give() -> None:
    """A check whose numbers have changed may see less; these saw every fault that was tried."""
    given: list[str] = []
    plain = FAMILY.plain()

    def told(name: str) -> Any:
        def call(*arguments: Any) -> int:
            given.append(f"{name} {[list(x) if hasattr(x, '__len__') else x for x in arguments]}")
            return int(getattr(plain, name)(*arguments))

        return call

    assert selfcheck.compare(plain, KernelSet("told", {n: told(n) for n in FAMILY.names}, FAMILY.names)) == ""
    assert len(given) == 4 * 4 + 3 + 9 + 1
    assert zlib.crc32("\n".join(given).encode()) == 3185858505
