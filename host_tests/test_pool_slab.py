"""Slab pool and slab + region pool: small cases worked by hand, the contract of all pools, regions against a
model."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable
from functools import partial
from typing import Any

import pool_cases
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pool_cases import refused

from field_tables import tables
from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, Locked, NoRoom, PoolFull
from mpy_kv.pools import slab, slab_region
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool

META, DOORS, RECORD = tables.of("units", "slab_least", "slab_pool"), tables.of("doors"), tables.of("record")

CLASSES = (16, 64, 256)
SLAB = pool_cases.add(
    pool_cases.Maker(
        "slab",
        make=lambda arena: SlabPool(arena, 1024, 8, CLASSES),
        four=lambda arena: SlabPool(arena, 256, 1, (64,)),
        max_align=64,
    )
)
SLAB_REGION = pool_cases.add(
    pool_cases.Maker(
        "slab+region",
        make=lambda arena: SlabRegionPool(arena, 1024, 8, CLASSES, 4),
        four=lambda arena: SlabRegionPool(arena, 256, 1, (64,), 2),
        max_align=64,
    )
)
TestSlab = pool_cases.machine(SLAB, examples=12)
TestSlabRegion = pool_cases.machine(SLAB_REGION, examples=12)


@pytest.mark.parametrize("maker", [SLAB, SLAB_REGION], ids=lambda maker: maker.name)
@pytest.mark.parametrize("case", pool_cases.CASES.values(), ids=pool_cases.CASES)
def test_contract(case: Callable[[pool_cases.Maker], None], maker: pool_cases.Maker) -> None:
    case(maker)


def pool_of(slabs: int, slab_bytes: int = 256, classes: tuple[int, ...] = (16, 64), **options: Any) -> Any:
    return SlabPool(Arena(slabs * slab_bytes), slab_bytes, slabs, classes, **options)


# --- slabs ---------------------------------------------------------------------------------------


def test_a_slab_serves_one_class_and_returns_to_all() -> None:
    pool = pool_of(2)
    small = [pool.alloc(16) for _ in range(17)]  # the 17th needs the second slab
    assert (pool.stats()["free_slabs"], pool.free_bytes()) == (0, 15 * 16)
    assert pool.largest_free_bytes() == 16
    assert pool.stats()["fragmentation"] == 1.0  # no free byte serves every class
    refused(PoolFull, pool, lambda: pool.alloc(17), "no slab is free")
    pool.free(small.pop())
    assert (pool.stats()["free_slabs"], pool.largest_free_bytes()) == (1, 64)
    big = pool.alloc(64)
    assert pool.offset(big) % 64 == 0
    assert pool.stats()["fragmentation"] == 1.0
    for handle in small:
        pool.free(handle)
    # 256 bytes in a free slab, 192 bound to the class of 64
    assert pool.stats()["fragmentation"] == 1 - 256 / 448
    pool.free(big)
    assert (pool.stats()["free_slabs"], pool.stats()["fragmentation"]) == (2, 0.0)


def test_a_larger_class_helps_out() -> None:
    pool = pool_of(2)
    held = [pool.alloc(64), *(pool.alloc(16) for _ in range(16))]
    for size in (9, 16, 64):
        held.append(pool.alloc(size))
        assert pool.size(held[-1]) == 64
    assert pool.stats()["internal_waste_bytes"] == 55 + 48
    refused(PoolFull, pool, lambda: pool.alloc(1))
    assert pool.overhead_bytes(9) == 7


def test_high_water_marks() -> None:
    """Of objects and of bytes, which need not be reached together; tails of slabs are taken bytes."""
    pool = pool_of(3, 272, (16, 64))
    small = [pool.alloc(16) for _ in range(5)]
    pool.free_many(small, 5)
    big = [pool.alloc(64) for _ in range(3)]
    stats = pool.stats()
    assert (stats["high_water_blocks"], stats["high_water_bytes"]) == (5, 3 * 64 + 16)
    pool.free_many(big, 3)
    assert pool.stats()["high_water_bytes"] == 208


def test_objects_of_a_full_slab_come_back_one_by_one() -> None:
    """The latest freed first; a slab that is no longer full is used before a new one is cut."""
    pool = pool_of(4)
    handles = [pool.alloc(64) for _ in range(12)]  # three full slabs
    assert pool.stats()["free_slabs"] == 1
    places = [pool.offset(handle) for handle in handles]
    for k in (5, 1, 9, 4):
        pool.free(handles[k])
    assert [pool.offset(pool.alloc(64)) for _ in range(4)] == [places[k] for k in (9, 1, 4, 5)]
    assert pool.stats()["free_slabs"] == 1
    assert pool.check() == 0


def test_a_class_of_one_object_a_slab() -> None:
    pool = pool_of(3, 192, (64, 192))
    handles = [pool.alloc(192) for _ in range(3)]
    assert [pool.offset(h) for h in handles] == [0, 192, 384]
    refused(PoolFull, pool, lambda: pool.alloc(1))
    pool.free(handles[1])
    assert pool.check() == 0
    assert pool.offset(pool.alloc(5)) == 192


def test_tails_of_slabs_are_counted_as_taken() -> None:
    pool = pool_of(2, 256, (80,))
    handle = pool.alloc(80)
    stats = pool.stats()
    assert (stats["tail_bytes"], stats["used_bytes"], pool.free_bytes()) == (16, 96, 160 + 256)
    pool.free(handle)
    assert pool.stats()["used_bytes"] == 0


def test_alignment_is_what_class_slab_and_start_share() -> None:
    pool = SlabPool(Arena(4096), 960, 4, (48, 64, 320), max_align=64)
    assert pool.max_align == 64
    assert [pool.offset(pool.alloc(40, align)) % align for align in (4, 8, 16, 32, 64)] == [0] * 5
    assert [pool.size(pool.alloc(40, align)) for align in (16, 32)] == [48, 64]
    assert pool.size(pool.alloc(65, 64)) == 320
    refused(BadArgument, pool, lambda: pool.alloc(8, 128), "align must be a power of two 1..64")
    uneven = SlabPool(Arena(4096), 1000, 4, (48, 200))
    refused(BadArgument, uneven, lambda: uneven.alloc(49, 16), "align")
    assert uneven.max_align == 8


def test_growth_keeps_an_alignment_that_larger_classes_lack() -> None:
    pool = SlabPool(Arena(4096), 960, 4, (64, 96, 320), max_align=64)
    free, bound = pool.alloc(60), pool.alloc(60, 64)
    assert pool.size(pool.grow(free, 90)) == 96
    bound = pool.grow(bound, 90)
    assert (pool.size(bound), pool.offset(bound) % 64) == (320, 0)
    only = SlabPool(Arena(4096), 960, 4, (64, 96), max_align=64)
    bound = only.alloc(60, 64)
    refused(BadArgument, only, lambda: only.grow(bound, 90), "no class holds 90 bytes at align 64")


def test_a_moved_object_keeps_bytes_and_owner_and_old_handle_is_stale() -> None:
    arena = Arena(1024)
    pool = SlabPool(arena, 256, 4, (16, 64))
    handle = pool.alloc(13)
    at = pool.offset(handle)
    arena.buffer[at : at + 13] = bytes(range(13))
    pool.set_owner(handle, 5, 6)
    assert pool.grow(handle, 16) == handle
    new = pool.grow(handle, 17)
    assert bytes(arena.buffer[pool.offset(new) : pool.offset(new) + 13]) == bytes(range(13))
    assert pool.owner(new) == (5, 6)
    refused(BadHandle, pool, lambda: pool.free(handle), "stale")
    pool.lock(new)
    refused(PoolFull, pool, lambda: pool.alloc(65))
    big = pool_of(2, 256, (16, 64))
    held = big.alloc(16)
    big.lock(held)
    refused(Locked, big, lambda: big.grow(held, 17), "unlock it before freeing or moving")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"slab_bytes": 10}, "slab_bytes"),
        ({"slab_bytes": 258}, "slab_bytes"),
        ({"slab_bytes": True}, "slab_bytes"),
        ({"n_slabs": 0}, "n_slabs must be 1..65534"),
        ({"n_slabs": 65535}, "n_slabs must be 1..65534"),
        ({"n_slabs": 1.0}, "n_slabs"),
        ({"classes": ()}, "classes"),
        ({"classes": 64}, "classes"),
        ({"classes": (64, 16)}, "rising"),
        ({"classes": (16, 16)}, "rising"),
        ({"classes": (16, 30)}, "multiples of 4"),
        ({"classes": (16, "64")}, "multiples of 4"),
        ({"classes": (128,)}, "three of the smallest"),
        ({"classes": (16, 512)}, "one of the largest"),
        ({"max_align": 3}, "max_align"),
        ({"max_align": 2}, "max_align"),
        ({"tag": 8}, "tag"),
        ({"slab_bytes": 1 << 27, "classes": (1 << 25,), "n_slabs": 8}, "below 2^30"),
        ({"slab_bytes": 1 << 16, "n_slabs": 1 << 10, "classes": (4,)}, "raise it"),
        ({"arena": 5}, "arena"),
    ],
    ids=str,
)
def test_pools_that_cannot_be(options: dict[str, Any], said: str) -> None:
    arguments = {"arena": Arena(2048), "slab_bytes": 256, "n_slabs": 2, "classes": (16, 64)} | options
    for kind in (SlabPool, SlabRegionPool):
        with pytest.raises(BadArgument, match=said.replace("^", r"\^")):
            kind(**arguments)
    if isinstance(arguments["arena"], Arena):
        assert arguments["arena"].free_bytes() == 2048


def test_a_pool_beyond_the_arena() -> None:
    with pytest.raises(NoRoom, match="needed 4096 bytes"):
        SlabPool(Arena(1024), 1024, 4)
    with pytest.raises(BadArgument, match="max_regions"):
        SlabRegionPool(Arena(4096), 1024, 4, max_regions=0)


@pytest.mark.parametrize("per_slab", [3, 4, 7, 64, 1000])
def test_bookkeeping_of_a_slab(per_slab: int) -> None:
    """12 bytes an object and 12 a slab: at most 16 an object of the smallest class."""
    pool = pool_of(10, 16 * per_slab, (16,))
    arrays = 4 * (len(pool._word) + len(pool._lost)) + 2 * (len(pool._slab) + 2 * len(pool._layer))
    assert arrays <= pool.metadata_bytes() * 10 * per_slab <= 16 * 10 * per_slab


def test_a_slab_is_cut_without_touching_its_objects() -> None:
    """O(1) also for the first object of a slab: nothing is written for the others."""
    pool = pool_of(2, 16 * 1000, (16,))
    before = list(pool._word), list(pool._lost)
    pool.alloc(8)
    after = pool._word, pool._lost
    assert [sum(a != b for a, b in zip(x, y)) for x, y in zip(before, after)] == [1, 1]


def _corruptions() -> dict[str, Callable[[Any], None]]:
    def put(name: str, where: int, value: int) -> Callable[[Any], None]:
        return lambda pool: getattr(pool, name).__setitem__(where, value)

    # Slab 0 is partly used by the class of 16 (objects 0 and 2 in use, 1 freed), 1 full of 64, 2 and 3 free.
    return {
        "objects in use": put("_meta", META.USED, 3),
        "free bytes": put("_meta", META.FREE, 3),
        "waste": put("_meta", META.WASTE, 1),
        "locks": put("_meta", META.LOCKS, 1),
        "most bytes": lambda pool: pool._meta.__setitem__(META.LEAST, pool._meta[META.FREE] + 4),
        "high water": put("_meta", META.HIGH, 1),
        "free slabs": put("_meta", META.SPARE, 3),
        "guarantees": put("_meta", META.UNFILLED, 1),
        "stock begins in use": put("_meta", META.STOCK, 0),
        "a stock in a ring": put("_slab", 6 * 3, 2),
        "a slab lost": put("_slab", 6 * 2, slab.NONE),
        "a free slab of a class": put("_slab", 6 * 2 + 2, 0),
        "use of a slab": put("_slab", 3, 3),
        "a chain out of a slab": put("_slab", 4, 15),
        "a chain in a ring": put("_lost", 1, 1),
        "a chain of an object in use": put("_slab", 4, 2),
        "objects ever used": put("_slab", 5, 2),
        "a slab of another class": put("_slab", 2, 1),
        "a slab of another region": put("_slab", 2, 1 << 5),
        "a list's head": put("_table", 6, slab.NONE),
        "slabs held": put("_table", 9, 3),
        "limit": put("_table", 11, 1),
        "an object lost": lambda pool: pool._word.__setitem__(0, -1 - pool._word[0]),
        "an object found": lambda pool: pool._word.__setitem__(5, -1 - pool._word[5]),
        "another's handle": lambda pool: pool._word.__setitem__(0, pool._word[2]),
        "more waste than there is": put("_lost", 0, 16),
    }


@pytest.mark.parametrize("corrupt", _corruptions().values(), ids=_corruptions())
@pytest.mark.parametrize("kind", [SlabPool, SlabRegionPool])
def test_the_checker_sees(kind: Any, corrupt: Callable[[Any], None]) -> None:
    pool = kind(Arena(1024), 256, 4, (16, 64))
    small = [pool.alloc(16) for _ in range(3)]
    for _ in range(4):
        pool.alloc(64)
    pool.free(small[1])
    assert pool.check() == 0
    corrupt(pool)
    assert pool.check() > 0


# --- regions -------------------------------------------------------------------------------------


def regions_of(slabs: int, max_regions: int = 4) -> SlabRegionPool:
    return SlabRegionPool(Arena(slabs * 256), 256, slabs, (16, 64), max_regions)


def fill(pool: SlabRegionPool, region: int | None) -> int:
    """Objects of 64 bytes that the region got until it was refused."""
    n = 0
    while True:
        try:
            pool.alloc(64, region=region)
        except PoolFull:
            return n
        n += 1


def test_nobody_takes_what_another_is_guaranteed() -> None:
    pool = regions_of(8)
    a = pool.open_region(8, 3)
    b = pool.open_region(6, 2, owner=7)
    assert fill(pool, None) == 4 * 3  # 8 - 3 - 2 slabs of 4
    refused(PoolFull, pool, lambda: pool.alloc(16), "5 free slabs are guaranteed to other regions")
    assert fill(pool, a) == 4 * 3
    assert fill(pool, b) == 4 * 2
    assert pool.stats()["free_slabs"] == 0
    assert pool.region_header(b) == {
        "size": 512,
        "used": 512,
        "references": 1,
        "locked": 0,
        "objects": 8,
        "held_slabs": 2,
        "limit_slabs": 6,
        "guaranteed_slabs": 2,
        "owner": 7,
    }
    assert pool.close_region(a) == 0
    # Three slabs came back, and no guarantee is open: b may go on to its limit of 6, were there as many.
    assert fill(pool, b) == 4 * 3
    assert pool.check() == 0


def test_a_guarantee_is_open_again_when_its_slabs_are_given_back() -> None:
    pool = regions_of(4)
    a = pool.open_region(4, 2)
    handles = [pool.alloc(64, region=a) for _ in range(12)]  # three slabs, one beyond the guarantee
    assert pool.stats()["guaranteed_slabs"] == 0
    pool.free_many(handles, 8)
    assert pool.stats()["guaranteed_slabs"] == 1
    assert fill(pool, None) == 4 * 2
    pool.free_many(handles[8:], 4)
    assert pool.stats()["guaranteed_slabs"] == 2
    refused(PoolFull, pool, lambda: pool.alloc(1), "guaranteed")
    assert pool.check() == 0


def test_a_limit_holds_though_the_pool_is_empty() -> None:
    pool = regions_of(8)
    a = pool.open_region(2)
    assert fill(pool, a) == 8
    full = refused(PoolFull, pool, lambda: pool.alloc(16, region=a), "holds the 2 slabs it may")
    assert full.largest == pool.largest_free_bytes(a) == 0
    assert pool.largest_free_bytes() == 64
    out = array("i", [0] * 30)
    refused(PoolFull, pool, lambda: pool.alloc_many(1, 16, out, 4, a))
    pool.alloc_many(24, 64, out)
    assert {pool.region_of(h) for h in out[:24]} == {None}


def test_guarantees_that_cannot_be_kept_are_refused_in_numbers() -> None:
    pool = regions_of(8)
    a = pool.open_region(8, 5)
    pool.alloc(16)
    full = refused(
        PoolFull, pool, lambda: pool.open_region(4, 3), "guaranteed_slabs 3: 7 slabs are free, 5 of them"
    )
    assert (full.needed, full.free, full.unit) == (3, 2, "slabs")
    pool.open_region(4, 2)
    refused(PoolFull, pool, lambda: pool.open_region(1, 1))
    pool.open_region(1)  # guaranteed nothing: always possible
    pool.close_region(a)
    for wrong in ((0,), (9,), (2, 3), (2, -1), (None,), (2.0,), (True,), ("2",), (2, None), (2, 1.0)):
        refused(BadArgument, pool, lambda wrong=wrong: pool.open_region(*wrong), "limit_slabs")
    for owner in (-1, 65536, None, 1.0, "1"):
        refused(BadArgument, pool, lambda owner=owner: pool.open_region(1, 0, owner), "owner")
    pool.open_region(8)
    pool.open_region(8)
    refused(PoolFull, pool, lambda: pool.open_region(1), "all max_regions 4 are open")


def test_regions_share_no_slab() -> None:
    pool = regions_of(8)
    a, b = pool.open_region(8), pool.open_region(8)
    handles = {region: [pool.alloc(16, region=region) for _ in range(5)] for region in (None, a, b)}
    slabs = [{pool.offset(h) // 256 for h in found} for found in handles.values()]
    assert slabs[0] | slabs[1] | slabs[2] == {0, 1, 2}
    assert [pool.region_of(found[0]) for found in handles.values()] == [None, a, b]
    grown = pool.grow(handles[a][0], 60)
    assert pool.region_of(grown) == a


def test_closing_makes_every_handle_stale() -> None:
    pool = regions_of(4)
    a = pool.open_region(4)
    mine = [pool.alloc(size, region=a) for size in (16, 60, 3)]
    kept = pool.alloc(16)
    pool.lock(mine[1])
    refused(Locked, pool, lambda: pool.close_region(a), "1 locked objects")
    pool.unlock(mine[1])
    pool.retain_region(a)
    assert pool.close_region(a) == 1
    assert pool.offset(mine[0]) >= 0
    assert pool.close_region(a) == 0
    stats = pool.stats()
    assert (stats["used_blocks"], stats["free_slabs"], stats["regions"]) == (1, 3, 0)
    assert (stats["alloc_count"], stats["free_count"], stats["internal_waste_bytes"]) == (4, 3, 0)
    for handle in mine:
        refused(BadHandle, pool, lambda handle=handle: pool.free(handle), "stale")
    for wrong in (a, None, kept, -1, True, 1.5, "x", 1 << 70):
        refused(BadHandle, pool, lambda wrong=wrong: pool.close_region(wrong))
        refused(BadHandle, pool, lambda wrong=wrong: pool.retain_region(wrong))
        if wrong is not None:
            refused(BadHandle, pool, lambda wrong=wrong: pool.alloc(8, 4, wrong))
            refused(BadHandle, pool, lambda wrong=wrong: pool.region_header(wrong))
            refused(BadHandle, pool, lambda wrong=wrong: pool.alloc_many(2, 8, [0, 0], 4, wrong))
    again = pool.open_region(4)
    assert again != a
    refused(BadHandle, pool, lambda: pool.alloc(8, region=a), "stale: it was closed")
    other = regions_of(4)
    refused(BadHandle, pool, lambda: pool.alloc(8, region=other.open_region(2)), "not of this pool")


def test_a_close_that_is_cut_short_is_done_when_called_again() -> None:
    """KeyboardInterrupt at each turn of each loop of the transition: elsewhere CPython lets none in."""
    for lines in range(200):
        pool = regions_of(4)
        a, b = pool.open_region(3, 2), pool.open_region(2, 1)
        kept = pool.alloc(16, region=b)
        for size in (16, 64, 60, 64, 64, 64, 13):
            pool.alloc(size, region=a)
        close = partial(pool.close_region, a)
        cut = pool_cases.cut_short(slab_region.close_quota, lines, close, heads=True)
        if cut:
            pool.close_region(a)
        assert pool.check() == 0
        stats = pool.stats()
        assert (stats["used_blocks"], stats["free_slabs"], stats["guaranteed_slabs"]) == (1, 3, 0)
        assert pool.region_of(kept) == b
        if not cut:
            break
    else:
        raise AssertionError("never ran to its end")
    assert lines > 25


def test_nothing_is_fragmented_after_any_history_of_regions() -> None:
    rng = random.Random(5)
    pool = SlabRegionPool(Arena(40 * 256), 256, 40, (16, 64), 12)
    open_now: list[int] = []
    for _ in range(400):
        if len(open_now) < 12 and rng.random() < 0.6:
            region = pool.open_region(rng.randint(1, 10))
            open_now.append(region)
            for _ in range(rng.randrange(60)):
                try:
                    pool.alloc(rng.randint(1, 64), region=region)
                except PoolFull:
                    break
        elif open_now:
            pool.close_region(open_now.pop(rng.randrange(len(open_now))))
        stats = pool.stats()
        assert stats["fragmentation"] == 0.0
        held = sum(pool.region_header(region)["held_slabs"] for region in open_now)
        assert stats["free_slabs"] == 40 - held
        assert pool.check() == 0
    while open_now:
        pool.close_region(open_now.pop())
    assert (pool.stats()["free_slabs"], pool.stats()["used_bytes"]) == (40, 0)
    pool.close_region(pool.open_region(40, 40))
    assert pool.check() == 0


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda pool: pool._gate.__setitem__(0, -1 - pool._gate[0]),
        lambda pool: pool._gate.__setitem__(3, -1 - pool._gate[3]),
        lambda pool: pool._table.__setitem__(pool._place(0) + RECORD.HOLDERS, 0),
        lambda pool: pool._table.__setitem__(pool._place(2) + RECORD.ALLOWED, 4),
        lambda pool: pool._table.__setitem__(pool._place(2) + RECORD.OWNER, 2),
        lambda pool: pool._table.__setitem__(pool._place(0) + RECORD.GUARANTEED, 2),
        lambda pool: pool._table.__setitem__(pool._place(0) + RECORD.HELD, 0),
        lambda pool: pool._meta.__setitem__(META.UNFILLED, 0),
    ],
    ids=["first gate", "last gate", "HOLDERS", "ALLOWED", "OWNER", "GUARANTEED", "HELD", "UNFILLED"],
)
def test_the_checker_sees_regions(corrupt: Callable[[Any], None]) -> None:
    pool = regions_of(4)
    a = pool.open_region(3, 1)
    pool.open_region(3, 2)
    pool.alloc(16, region=a)
    assert pool.check() == 0
    corrupt(pool)
    assert pool.check() > 0


@pytest.mark.parametrize("make", [lambda: SlabPool(Arena(6 * 256), 256, 6, (16, 64)), lambda: regions_of(6)],
                         ids=["slab", "region"])  # fmt: skip
def test_check_sees_whether_each_object_is_in_use(make: Callable[[], Any]) -> None:
    """Of a slab with objects, of a full one, of one that nobody has."""
    pool = make()
    handles = [pool.alloc(size) for size in (64, 64, 64, 64, 64, 16, 16)]
    pool.free(handles[5])
    assert pool.check() == 0
    for i, word in enumerate(pool._word):
        pool._word[i] = -1 - word
        assert pool.check() > 0
        pool._word[i] = word
    assert pool.check() == 0


def test_the_chain_of_closed_regions_leads_to_each_once() -> None:
    """Any other region, or none that there is, in place of one that it leads to is counted, not followed."""
    pool = regions_of(4)
    for _ in range(2):
        pool.open_region(3, 1)
    owners = [(pool._table, pool._place(k) + RECORD.OWNER) for k in (2, 3)]
    for words, at in [(pool._doors, DOORS.CLOSED), *owners]:
        right = words[at]
        for link in (0, 1, 2, 3, 4, 5, 1000):
            words[at] = link
            assert (pool.check() > 0) == (link != right)
        words[at] = right
    assert pool.check() == 0


class Regions(RuleBasedStateMachine):
    """Regions against a model that counts slabs by where objects lie."""

    @initialize(slabs=st.integers(3, 12))
    def start(self, slabs: int) -> None:
        self.slabs = slabs
        self.pool = regions_of(slabs)
        self.open: dict[int | None, dict[str, Any]] = {None: {"limit": slabs, "sure": 0, "live": []}}
        self.dead: list[int] = []

    def held(self, region: int | None) -> int:
        return len({self.pool.offset(h) // 256 for h in self.open[region]["live"]})

    def free_slabs(self) -> int:
        return self.slabs - sum(self.held(region) for region in self.open)

    def unfilled(self) -> int:
        return sum(max(0, r["sure"] - self.held(region)) for region, r in self.open.items())

    def pick(self, data: Any, default: bool = True) -> int | None:
        regions = [region for region in self.open if default or region is not None]
        return data.draw(st.sampled_from(regions))

    @rule(limit=st.integers(1, 12), sure=st.integers(0, 6))
    def open_one(self, limit: int, sure: int) -> None:
        limit = min(limit, self.slabs)
        sure = min(sure, limit)
        if len(self.open) == 5 or sure > self.free_slabs() - self.unfilled():
            refused(PoolFull, self.pool, lambda: self.pool.open_region(limit, sure))
        else:
            self.open[self.pool.open_region(limit, sure)] = {"limit": limit, "sure": sure, "live": []}

    @rule(data=st.data(), size=st.integers(1, 64), n=st.integers(1, 12))
    def alloc(self, data: Any, size: int, n: int) -> None:
        region = self.pick(data)
        r = self.open[region]
        held = self.held(region)
        for _ in range(n):
            may = held < r["limit"] and (held < r["sure"] or self.free_slabs() > self.unfilled())
            try:
                r["live"].append(self.pool.alloc(size, region=region))
            except PoolFull:
                assert not may, "refused though there was a slab for it"
                return
            assert self.held(region) == held or may, "a slab that it must not have"
            held = self.held(region)

    @rule(data=st.data())
    def claim(self, data: Any) -> None:
        """What is guaranteed can always be had."""
        region = self.pick(data)
        r = self.open[region]
        while self.held(region) < r["sure"]:
            r["live"].append(self.pool.alloc(64, region=region))

    @rule(data=st.data(), n=st.integers(1, 12))
    def free(self, data: Any, n: int) -> None:
        live = self.open[self.pick(data)]["live"]
        for _ in range(min(n, len(live))):
            handle = live.pop(data.draw(st.integers(0, len(live) - 1)))
            self.pool.free(handle)
            self.dead.append(handle)

    @precondition(lambda self: len(self.open) > 1)
    @rule(data=st.data(), locked=st.booleans())
    def close(self, data: Any, locked: bool) -> None:
        region = self.pick(data, default=False)
        live = self.open[region]["live"]
        if locked and live:
            self.pool.lock(live[0])
            refused(Locked, self.pool, lambda: self.pool.close_region(region))
            self.pool.unlock(live[0])
        self.pool.close_region(region)
        self.dead += self.open.pop(region)["live"]
        refused(BadHandle, self.pool, lambda: self.pool.close_region(region))

    @invariant()
    def sound(self) -> None:
        if not hasattr(self, "pool"):
            return
        pool = self.pool
        assert pool.check() == 0
        for handle in self.dead[-3:]:
            refused(BadHandle, pool, lambda handle=handle: pool.free(handle))
        stats = pool.stats()
        assert (stats["free_slabs"], stats["guaranteed_slabs"]) == (self.free_slabs(), self.unfilled())
        assert stats["fragmentation"] == 0.0
        seen: set[int] = set()
        for region, r in self.open.items():
            mine = {pool.offset(h) // 256 for h in r["live"]}
            assert not mine & seen, "two regions in one slab"
            seen |= mine
            header = pool.region_header(region)
            assert (header["held_slabs"], header["objects"]) == (len(mine), len(r["live"]))
            assert header["held_slabs"] <= header["limit_slabs"] == r["limit"]


Regions.TestCase.settings = settings(
    max_examples=20, stateful_step_count=30, deadline=None, derandomize=True
)
TestRegions = Regions.TestCase
