"""Every number that is asked for: its least and most are taken, what lies beyond is refused with both."""

from __future__ import annotations

import contextlib
import gc
import weakref
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from paged_cases import HEAD_DIM, HEADS, SHAPE, WIDTH, requests_of, ring_like, run, step

from field_tables import tables
from mpy_kv import Geometry, KVCache, kernels, sequence
from mpy_kv.admission import admission
from mpy_kv.admission.admission import MOST_TICKETS, Admission
from mpy_kv.admission.inspect import refuse_request
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.arena import Arena
from mpy_kv.cache import Ring
from mpy_kv.errors import BadArgument, BadHandle, CacheFull, NoRoom, PoolFull, StepError
from mpy_kv.int4_blocks import SealedCache, SealedGeometry
from mpy_kv.kernels import params
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.per_layer import MixedCache
from mpy_kv.pools import fixed
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool
from mpy_kv.pools.slab_region import SlabRegionPool
from mpy_kv.token_eviction import BudgetCache

META, RECORD = tables.of("slab_pool"), tables.of("record")
BLOCKS, STATE = tables.of("blocks"), tables.of("requests")

PAST = 1 << 29


def requests_like(**options: Any) -> Requests:
    return Requests(PagedGeometry(**SHAPE, capacity=16), options.pop("blocks", 8), **options)


def opened(**options: Any) -> Any:
    return requests_of(8, None, window=8, max_requests=1).open(**options)


def waiting() -> tuple[Admission, int]:
    queue = Admission(16, 4, 4)
    ticket = queue.submit(0, 3, 5)
    queue.step()
    return queue, ticket


def predicting(call: str) -> Callable[[int], Any]:
    def act(value: int) -> Any:
        one = LengthPredictor(tasks=2)
        return {
            "observe task": lambda: one.observe(value, 1), "observe tokens": lambda: one.observe(0, value),
            "predict task": lambda: one.predict(value, 5), "predict limit": lambda: one.predict(0, value),
            "predict done": lambda: one.predict(0, 5, value),
        }[call]()  # fmt: skip

    return act


# name of a case -> name in the message, least, most, call
LIMITS: dict[str, tuple[str, int, int, Callable[[int], Any]]] = {
    "tasks": ("tasks", 1, 1024, lambda v: LengthPredictor(tasks=v)),
    "per_mille": ("per_mille", 1, 1000, lambda v: LengthPredictor(per_mille=v)),
    "memory": ("memory", 2, 65535, lambda v: LengthPredictor(memory=v, least=1)),
    "least": ("least", 1, 5, lambda v: LengthPredictor(memory=10, least=v)),
    "observe task": ("task", 0, PAST - 1, predicting("observe task")),
    "observe tokens": ("tokens", 0, PAST, predicting("observe tokens")),
    "predict task": ("task", 0, PAST - 1, predicting("predict task")),
    "predict limit": ("limit", 1, PAST, predicting("predict limit")),
    "predict done": ("done", 0, 4, predicting("predict done")),
    "total_blocks": ("total_blocks", 1, 1 << 28, lambda v: Admission(v, 4)),
    "queue's block_tokens": ("block_tokens", 1, 1 << 16, lambda v: Admission(4, v)),
    "tickets": ("tickets", 1, MOST_TICKETS, lambda v: Admission(4, 4, v)),
    "levels": ("levels", 1, 8, lambda v: Admission(4, 4, levels=v)),
    "limit_blocks": ("limit_blocks", 1, 4, lambda v: Admission(4, 4, limit_blocks=v)),
    "available_blocks": ("available_blocks", 0, 1 << 28, lambda v: waiting()[0].step(v)),
    "wanted": ("tokens", 0, 5, lambda v: (lambda q, t: q.wanted(t, v))(*waiting())),
    "finish": ("tokens", 0, 5, lambda v: (lambda q, t: q.finish(t, v))(*waiting())),
    "block_tokens": (
        "block_tokens", 1, 4096, lambda v: PagedGeometry(**SHAPE, capacity=16, block_tokens=v)
    ),
    "geometry's blocks": ("blocks", 1, 1 << 20, lambda v: PagedGeometry(**SHAPE, capacity=16).bytes(v)),
    "max_requests": ("max_requests", 1, 1000, lambda v: requests_like(max_requests=v)),
    "max_pins": ("max_pins", 0, 1019, lambda v: requests_like(max_pins=v)),
    "pin_blocks": ("pin_blocks", 0, 8, lambda v: requests_like(pin_blocks=v)),
    "open task": ("task", 0, PAST - 1, lambda v: opened(task=v)),
    "priority": ("priority", 0, 255, lambda v: opened(priority=v)),
    "reserve_tokens": ("reserve_tokens", 0, PAST, lambda v: opened(reserve_tokens=v)),
    "limit_tokens": ("limit_tokens", 1, PAST, lambda v: opened(limit_tokens=v)),
    "pin_tokens": ("pin_tokens", 0, PAST, lambda v: opened(pin_tokens=v)),
    "reserve": ("tokens", 0, PAST, lambda v: opened().reserve(v)),
}  # fmt: skip


@pytest.mark.parametrize("case", LIMITS)
def test_a_number_has_its_limits(case: str) -> None:
    name, least, most, call = LIMITS[case]
    for value in (least - 1, most + 1):
        with pytest.raises(BadArgument) as refused:
            call(value)
        assert str(refused.value) == f"{name} must be {least}..{most}, got {value}"
    call(least)
    call(most)


def test_the_blocks_of_requests_have_their_limits() -> None:
    """The most would be 20 MB."""
    for value in (0, (1 << 20) + 1):
        with pytest.raises(BadArgument, match=rf"^blocks must be 1\.\.1048576, got {value}$"):
            requests_like(blocks=value)
    assert requests_like(blocks=1, pin_blocks=1)._ledger.n == 1


POOLS: dict[str, Callable[..., Any]] = {
    "fixed": lambda **o: FixedPool(Arena(1024), 4, 64, **o),
    "slab": lambda **o: SlabPool(Arena(1024), 128, 4, (32, 64), **o),
    "buddy": lambda **o: BuddyPool(Arena(1024), 512, **o),
    "region": lambda **o: RegionPool(Arena(1024), 512, 16, **o),
    "slab+region": lambda **o: SlabRegionPool(Arena(1024), 128, 4, (32, 64), **o),
}


@pytest.mark.parametrize("name", POOLS)
def test_the_tag_of_a_pool_has_its_limits(name: str) -> None:
    for tag in (0, 7):
        assert POOLS[name](tag=tag).check() == 0
    for tag in (-1, 8):
        with pytest.raises(BadArgument, match=rf"^tag must be 0\.\.7, got {tag}$"):
            POOLS[name](tag=tag)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_the_smallest_requests_are_mended(blocks: int) -> None:
    """The first entry may be in the last block, whose index is what a root's number would be."""
    requests = requests_of(blocks)
    one = requests.open()
    run(one, list(range(4 * blocks)))
    before = requests.stats()
    requests._ledger.state[0] = 1
    assert requests.check() == 0
    assert requests.stats() == before
    one.close()
    assert requests.check() == 0


def test_what_a_pool_refuses_is_counted() -> None:
    """needed: all blocks that the step must have, new ones and copies: here a copy of the shared tail."""
    g = PagedGeometry(**SHAPE, capacity=64, block_tokens=4)
    arena = Arena(g.scratch_bytes + 3 * g.block_bytes)
    pool = FixedPool(arena, 3, g.block_bytes)
    requests = Requests(g, 6, arena=arena, pool=pool)
    one = requests.open()
    run(one, list(range(6)))
    two = one.fork()
    pool.alloc(g.block_bytes)
    with pytest.raises(NoRoom, match="the pool has no room") as refused:
        run(two, [*range(6), 9])
    assert (refused.value.needed, refused.value.free) == (1, 0)


def test_a_step_says_what_is_wrong_with_attend_and_commit() -> None:
    cache = ring_like(requests_of(4))
    k, q = array("f", [1.0] * 2 * WIDTH), array("f", [1.0] * 2 * HEADS * HEAD_DIM)
    one_k, one_q = k[:WIDTH], q[: HEADS * HEAD_DIM]
    early = "before append or prefill of that layer"
    with pytest.raises(StepError, match=rf"attend\(0\) {early}"):
        cache.attend(0, one_q, array("f", one_q))
    cache.append(0, one_k, one_k)
    with pytest.raises(StepError, match=rf"attend\(1\) {early}"):
        cache.attend(1, one_q, array("f", one_q))
    with pytest.raises(StepError, match="attend with n = 2, but the step has n = 1 tokens"):
        cache.attend(0, q, array("f", q), None, 2)
    with pytest.raises(StepError, match="commit with 1 of 2 layers stored; layer 1 is missing"):
        cache.commit()
    cache.abort()
    cache.prefill(0, k, k, 2)
    with pytest.raises(StepError, match="attend with n = 1, but the step has n = 2 tokens"):
        cache.attend(0, one_q, array("f", one_q))
    cache.attend(0, q, array("f", q), None, 2)
    with pytest.raises(StepError, match=r"attend\(0\) a second time"):
        cache.attend(0, q, array("f", q), None, 2)
    cache.prefill(1, k, k, 2)
    cache.commit()
    assert cache.length == 2
    with pytest.raises(StepError, match=rf"attend\(0\) {early}"):
        cache.attend(0, one_q, array("f", one_q))


@pytest.mark.parametrize("name", ["fixed", "slab"])
def test_the_last_handle_of_all_is_one(name: str) -> None:
    """Of the last block in its last generation: every bit is set."""
    pool = POOLS[name]()
    last = pool._meta[3] if name == "slab" else 0x1FFFFFFF
    objects = 16 if name == "slab" else 4
    pool._word[objects - 1] = -1 - last
    handles = [pool.alloc(32) for _ in range(objects)]
    assert last in handles
    pool.lock(last)
    pool.unlock(last)
    pool.grow(last, 20)
    pool.free(last)
    with pytest.raises(BadHandle):
        pool.free(last)


def test_seek_needs_a_window_and_all_sinks() -> None:
    whole = ring_like(requests_of(4))
    short = ring_like(requests_of(4, None, window=6, sinks=2))
    step(whole, 1)
    step(short, 1)
    for cache in (whole, short):
        with pytest.raises(StepError, match="seek needs a window and all . sinks stored, length is 1"):
            cache.seek(20)
    step(short, 2)
    short.seek(20)
    assert (short.length, short.visible()) == (20, [0, 1])
    assert short.check() == 0


def test_a_region_has_room_in_slabs_that_nobody_is_promised() -> None:
    """It holds more slabs than its guarantee; the only free one is another's: one object more, no two."""
    pool = SlabRegionPool(Arena(1024), 128, 4, (32, 64))
    mine, other = pool.open_region(4, 1), pool.open_region(1, 1)
    handles = [pool.alloc(64, region=mine) for _ in range(6)]
    pool.free(handles[0])
    two = array("i", [0, 0])
    with pytest.raises(PoolFull):
        pool.alloc_many(2, 64, two, region=mine)
    assert pool.check() == 0
    pool.alloc_many(1, 64, two, region=mine)
    pool.alloc_many(2, 64, two, region=other)
    assert pool.check() == 0


def test_many_objects_are_taken_or_none() -> None:
    """Four slabs of two."""
    pool = SlabPool(Arena(1024), 128, 4, (32, 64))
    out = array("i", [0] * 9)
    with pytest.raises(PoolFull):
        pool.alloc_many(9, 64, out)
    assert pool.stats()["used_blocks"] == 0
    pool.alloc_many(8, 64, out)
    assert pool.stats()["used_blocks"] == 8
    assert pool.check() == 0


@pytest.mark.parametrize("field", [1, 2, 3], ids=["previous", "owner", "used"])
def test_check_sees_a_slab_of_the_stock_that_is_somebody_s(field: int) -> None:
    pool = SlabPool(Arena(1024), 128, 4, (32, 64))
    assert pool.check() == 0
    pool._slab[6 * 3 + field] = 0 if field < 3 else 1
    assert pool.check() > 0


@pytest.mark.parametrize("guaranteed", [-1, 5], ids=["below 0", "more than allowed"])
def test_check_sees_a_guarantee_that_is_none(guaranteed: int) -> None:
    pool = SlabPool(Arena(1024), 128, 4, (32, 64))
    pool._table[pool._meta[META.RECORDS] + pool._meta[META.KINDS] + 1 + RECORD.GUARANTEED] = guaranteed
    assert pool.check() > 0


def test_a_sequence_is_sought_to_positions_below_2_to_the_29() -> None:
    cache = ring_like(requests_of(4, None, window=6, sinks=0))
    for position in (1 << 29, (1 << 29) + 1, 1 << 30):
        with pytest.raises(BadArgument, match=f"^position {position} must be a whole number from length 0 "):
            cache.seek(position)
    cache.seek((1 << 29) - 1)
    assert cache.length == (1 << 29) - 1
    with pytest.raises(BadArgument, match="must be a whole number from length 536870911 "):
        cache.seek((1 << 29) - 2)


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("kind", ["d", "f", "h", "I"])
def test_handles_are_written_to_what_gives_them_back_alone(name: str, kind: str) -> None:
    """A float that equals a handle is none; nor may there be no room for -1, "none yet"."""
    pool = POOLS[name]()
    out = array(kind, [0] * 2)
    if kind == "I" and name == "fixed":  # which writes nothing else
        pool.alloc_many(2, 32, out)
        pool.free_many(out, 2)
        return
    with pytest.raises(BadArgument, match="as many handles a list or array"):
        pool.alloc_many(2, 32, out)
    assert list(out) == [0, 0]
    assert pool.stats()["used_blocks"] == 0


def test_a_rollback_gives_back_the_blocks_of_sinks_too() -> None:
    """However far behind the window they lie."""
    for tokens in (6, 13, 18, 19, 25, 28, 40):
        for left in range(min(tokens, 9)):
            requests = requests_of(12, None, window=9, sinks=5)
            one = requests.open()
            run(one, list(range(100, 100 + tokens)))
            one.rollback(tokens - left)
            assert requests._ledger.held[one.row] == (left + 3) // 4
            assert one.visible()[: min(left, 5)] == list(range(min(left, 5)))
            assert requests.check() == 0
            if left == 0:
                assert requests.stats()["referenced_blocks"] == 0
                run(one, list(range(200, 215)))
                assert requests.check() == one.check() == 0


@pytest.mark.parametrize("head_dim", [4, 12, 20])
def test_padding_of_sealed_rows_is_zero_whatever_the_buffer_was(head_dim: int) -> None:
    g = SealedGeometry(1, 1, 1, head_dim, window=32, group=4)
    assert g.slice_width % 8
    caches = [SealedCache(g, buffer=bytearray([fill]) * g.bytes(), kernels=kernels.of("int4").get("plain"))
              for fill in (0, 255)]  # fmt: skip
    for cache in caches:
        base = cache.attention[0].codes[0]
        size = g.head4_stride
        for at in (base + g.at_codes4, base + g.at_v_codes4):
            assert cache.buffer[at : at + size] == bytes(size)


def test_a_refused_step_reopens_nothing() -> None:
    """The capacity is known before anything is mended."""
    g = SealedGeometry(1, 1, 1, 8, capacity=48)
    cache = SealedCache(g, kernels=kernels.of("int4").get("plain"))
    for token in range(48):
        row = array("f", [token + i / 8 for i in range(8)])
        cache.append(0, row, row)
        cache.commit()
    cache.rollback(20)
    blocks = cache.placement
    before = bytes(cache.buffer), list(blocks.over), blocks.uneven, cache.read(0, "k", 5)
    many = array("f", [1.0] * 8 * 21)
    with pytest.raises(CacheFull):
        cache.prefill(0, many, many, 21)
    assert (bytes(cache.buffer), list(blocks.over), blocks.uneven, cache.read(0, "k", 5)) == before
    cache.prefill(0, many, many, 20)
    cache.commit()
    assert (cache.length, cache.check()) == (48, 0)


def test_a_token_evicted_by_the_last_commit_has_no_place() -> None:
    """Asked first of all after the commit."""
    for policy in ("window", "lru-attention"):
        g = Geometry(**SHAPE, window=3, sinks=0)
        cache = BudgetCache(g, policy=policy, kernels=kernels.get("plain"))
        for token in range(3):
            step(cache, token, ids=False)
        there = cache.visible()
        step(cache, 3, ids=False)
        refused = []
        for position in there:
            with contextlib.suppress(BadArgument):
                cache.place(0, "k", position)
                continue
            refused.append(position)
        assert refused == [p for p in there if p not in cache.visible()]
        assert len(refused) == 1


def test_a_growth_takes_from_lower_priorities_what_is_missing_and_no_more() -> None:
    """Two blocks are free, three are asked for: one victim of one block is enough, the other one stays."""
    queue = Admission(8, 1, 6, 2, reserve="nothing")
    high = queue.submit(0, 2, 6, 1)
    low = [queue.submit(0, 1, 1, 0), queue.submit(0, 1, 1, 0)]
    queue.step()
    assert [queue.blocks(t) for t in (high, *low)] == [3, 2, 2]
    assert queue.growth(high, 3, 1)
    assert queue.n_preempted == 1
    assert [queue.state(t) for t in low] == [1, 0]
    assert queue.n_admitted == 0


@pytest.mark.parametrize("name", POOLS)
def test_the_word_of_a_locked_block_is_no_handle(name: str) -> None:
    """Nor is one that has more bits than a handle, or is below 0."""
    pool = POOLS[name]()
    handle = pool.alloc(32)
    pool.lock(handle)
    for wrong in (handle | 1 << 29, handle | 1 << 30, -1 - handle, handle - (1 << 29), -1, -(1 << 29)):
        for call in (pool.free, pool.lock, pool.unlock, pool.is_locked, pool.offset, pool.size, pool.owner):
            with pytest.raises(BadHandle):
                call(wrong)
        with pytest.raises(BadHandle):
            pool.grow(wrong, 32)
        with pytest.raises(BadHandle):
            pool.set_owner(wrong, 1)
        with pytest.raises(BadHandle):
            pool.free_many([wrong], 1)
        for optional in ("retain", "holders", "header", "region_of"):
            if hasattr(pool, optional):
                with pytest.raises(BadHandle):
                    getattr(pool, optional)(wrong)
    assert pool.check() == 0
    assert pool.is_locked(handle)


def test_serial_numbers_of_entries_begin_anew_at_2_to_the_30() -> None:
    """A small int of a board; 0 is of no entry."""
    requests = requests_of(8)
    blocks = requests._ledger.blocks
    blocks.meta[BLOCKS.SERIAL] = (1 << 30) - 2
    one = requests.open()
    run(one, list(range(13)))
    assert [blocks.serial[requests._ledger.table[page]] for page in range(3)] == [(1 << 30) - 1, 1, 2]
    assert requests.check() == 0
    one.close()
    assert requests.lookup(list(range(13))) == 12


@pytest.mark.parametrize("shift", [None, 12], ids=["float32", "int16"])
@pytest.mark.parametrize("n", [1, 3])
def test_rows_not_yet_read_are_known_by_their_addresses(
    shift: int | None, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a port that has addresses, to the byte: k and v overlap `out` anywhere, q is read row by row."""
    g = Geometry(1, 3, 1, 4, window=4, sinks=0)
    cache = KVCache(g, kv_shift=shift, kernels=kernels.get("plain"))
    kind, size = ("f", 4) if shift is None else ("h", 2)
    places: dict[int, int] = {}
    monkeypatch.setattr(sequence, "MICROPYTHON", True)
    monkeypatch.setattr(sequence, "addressof", lambda view: places[id(view)])
    rows = array(kind, [0] * 4 * n)
    cache.prefill(0, rows, rows, n)
    out, x = (memoryview(array(kind, [0])) for _ in range(2))
    written, keys = n * 12 * size, n * 4 * size
    places[id(x)] = 1000
    for d in range(-written - 2, written + 3):
        places[id(out)] = 1000 + d
        assert cache._spoils(out, x, True) == (-written < d < keys), d
        assert cache._spoils(out, x, False) == (0 < d < written), d
    plain = array(kind, [0])
    assert not cache._spoils(plain, plain[:], True)
    assert cache._spoils(plain, plain, True)
    assert not cache._spoils(plain, plain, False)


def test_every_call_mends_first_what_another_left_undone() -> None:
    calls: dict[str, Callable[[Requests, Any], Any]] = {
        "open": lambda of, one: of.open(), "lookup": lambda of, one: of.lookup([1, 2, 3]),
        "available_blocks": lambda of, one: of.available_blocks(), "stats": lambda of, one: of.stats(),
        "check": lambda of, one: of.check(), "pin": lambda of, one: of.pin(one, 4),
        "unpin": lambda of, one: of.unpin(of.pin(one, 4)), "fork": lambda of, one: one.fork(),
        "rollback": lambda of, one: one.rollback(1), "reserve": lambda of, one: one.reserve(8),
        "append": lambda of, one: step(one, 1), "close": lambda of, one: one.close(),
        "abort": lambda of, one: one.abort(), "lock": lambda of, one: one.lock(),
        "place": lambda of, one: one.place(0, "k", 1),
    }  # fmt: skip
    for name, call in calls.items():
        of = requests_of(12, max_requests=3)
        one = of.open(pin_tokens=8)
        run(one, list(range(9)))
        for i in range(of._ledger.n):
            of._ledger.blocks.ref[i] += 1
        of._ledger.state[STATE.BUSY] = 1
        call(of, one)
        assert of._ledger.state[STATE.BUSY] == 0, name
        assert of.check() == 0, name


def test_a_region_that_all_free_bytes_would_just_hold_needs_compaction() -> None:
    pool = RegionPool(Arena(64), 64, 4)
    a, b, c, _ = (pool.alloc(16) for _ in range(4))
    pool.free(a)
    pool.free(c)
    for size, said in ((32, "no gap is large enough, compact"), (36, "no free block is large enough")):
        with pytest.raises(PoolFull, match=said):
            pool.alloc(size)
    pool.compact()
    pool.free(b)
    assert pool.free_bytes() == 48


def test_what_a_cut_rollback_has_left_overwritten_is_seen_by_no_step() -> None:
    """The length has moved and the mark of what was written has not: the next step aborts first."""
    cache = ring_like(requests_of(4, None, window=4, sinks=0))
    for token in range(10):
        step(cache, token)
    cache.length = 6  # tokens 3 and 4 have been overwritten by 8 and 9
    step(cache, 6)
    assert cache.visible() == [5, 6]
    assert cache.kernel_arguments()[1][params.N] == 2
    assert cache.check() == 0


def test_runs_that_were_not_made_to_their_end_are_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the next token is the first of all, which position 0 would stand for."""
    cache = ring_like(requests_of(4, None, window=4, sinks=0))
    for token in range(3):
        step(cache, token)
    look = Ring.look

    def cut(self: Ring, p: int, a: Any) -> None:
        look(self, p, a)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ring, "look", cut)
        with pytest.raises(KeyboardInterrupt):
            step(cache, 3)
    cache.rollback(3)
    other = ring_like(requests_of(4, None, window=4, sinks=0))
    assert step(cache, 7) == step(other, 7)


@pytest.mark.parametrize("kind", [KVCache, BudgetCache, SealedCache, MixedCache])
def test_hot_methods_are_found_in_the_class_itself(kind: type) -> None:
    """What only a base has is looked up twice."""
    assert {"append", "attend", "_drop", "commit", "_begin"} <= vars(kind).keys()


@pytest.mark.parametrize("name", POOLS)
def test_an_index_that_no_block_has_is_of_no_handle(name: str) -> None:
    """Every small number, of an empty pool."""
    pool = POOLS[name](tag=0)
    for wrong in range(64):
        for call in (pool.free, pool.lock, pool.unlock, pool.offset, pool.size, pool.is_locked):
            with pytest.raises(BadHandle):
                call(wrong)
        with pytest.raises(BadHandle):
            pool.grow(wrong, 4)


def test_a_number_below_0_was_never_a_ticket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_serial", 7)  # all bits of the queue's mark, as of -1
    queue = Admission(4, 4, 2)
    with pytest.raises(BadHandle, match="^ticket -1 is not of this queue of 2 tickets$"):
        queue.state(-1)


def test_the_owner_of_a_region_has_its_limits() -> None:
    for owner in (-1, 1 << 16):
        with pytest.raises(BadArgument, match=rf"^owner must be 0\.\.65535, got {owner}$"):
            POOLS["slab+region"]().open_region(1, owner=owner)
    for owner in (0, 1 << 15, (1 << 16) - 1):
        pool = POOLS["slab+region"]()
        pool.open_region(1, owner=owner)
        with pytest.raises(BadArgument, match="^limit_slabs must be"):
            pool.open_region(0, owner=owner)


def test_a_region_of_another_generation_is_stale_one_of_another_pool_is_not() -> None:
    """The first region of a pool with tag 0 is number 0."""
    pool = POOLS["slab+region"](tag=0)
    assert pool.open_region(1) == 0
    for region, why in ((128, "is stale"), (16, "is not of this pool"), (-1, "is not of this pool")):
        with pytest.raises(BadHandle, match=f"^region {region} {why}"):
            pool.alloc(32, region=region)


@pytest.mark.parametrize("tickets", [3, 4, 5])
def test_a_ticket_whose_index_no_ticket_has_is_not_of_this_queue(tickets: int) -> None:
    queue = Admission(16, 4, tickets)
    ticket = queue.submit(0, 1, 1)
    first = ticket & ~((1 << queue._bits) - 1)
    for index in range(1 << queue._bits):
        other = first | index
        if other == ticket:
            continue
        with pytest.raises(BadHandle, match="is stale" if index < tickets else "is not of this queue"):
            queue.wanted(other, 1)


@pytest.mark.parametrize("tickets", [1, 1000, 1024, 1025, MOST_TICKETS])
def test_tickets_stay_small_numbers_in_their_last_generation(tickets: int) -> None:
    queue = Admission(4, 4, tickets)
    bits = queue._bits + 3
    assert (queue._generations + 1) << bits == min(1 << 16 + bits, PAST)


def test_what_a_block_loses_is_less_than_the_block() -> None:
    pool = POOLS["fixed"]()
    meta, first = pool._meta, 7
    i = pool.alloc(64) & meta[1]
    for lost, bad in ((63, 0), (64, 1), (-1, 1)):
        meta[first + i] = meta[4] = lost
        assert pool.check() == bad
    meta[first + i] = meta[4] = 0
    assert pool.check() == 0


def test_many_blocks_are_taken_and_given_back_whatever_ran_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for call in ("take", "give", "refuse"):
        pool = POOLS["fixed"]()
        out = [0] * 4
        if call == "give":
            pool.alloc_many(2, 64, out)
        monkeypatch.setattr(fixed, "_batch", None)
        if call == "take":
            pool.alloc_many(4, 64, out)
            assert pool.stats()["used_blocks"] == 4
        elif call == "give":
            pool.free_many(out, 2)
            assert pool.stats()["used_blocks"] == 0
        else:
            with pytest.raises(BadArgument):
                pool.alloc_many(5, 64, out)


def test_an_array_is_let_go_after_its_step() -> None:
    """But for the last two of each argument, by which they are known again."""
    g = Geometry(1, 1, 1, 4, capacity=8)
    for end in ("commit", "abort"):
        cache = KVCache(g)
        k = array("f", [1.0] * 8)
        gone = weakref.ref(k)
        cache.prefill(0, k, k, 2)
        del k
        getattr(cache, end)()
        for _ in range(2):
            one = array("f", [1.0] * 4)
            cache.append(0, one, one)
            cache.commit()
        gc.collect()
        assert gone() is None, end


def test_what_refuses_never_returns() -> None:
    """A call that finds nothing wrong must not go on as if nothing had been asked."""
    with pytest.raises(BadArgument):
        refuse_request(0, 1, 1, 0, 4)


@pytest.mark.parametrize("name", [name for name in POOLS if name != "fixed"])
def test_a_size_beyond_the_largest_block_is_no_bad_argument(name: str) -> None:
    pool = POOLS[name]()
    most = pool.max_block_bytes
    for size, error in ((0, BadArgument), (most + 1, PoolFull)):
        with pytest.raises(error, match="^size "):
            pool.overhead_bytes(size)
        with pytest.raises(error, match="^size "):
            pool.grow(pool.alloc(1), size)
        with pytest.raises(error, match="^size "):
            pool.alloc(size)


def test_compacting_fills_the_lowest_gap_first() -> None:
    pool = RegionPool(Arena(1024), 512, 16)
    first, low, second, high, last = [pool.alloc(size) for size in (32, 16, 32, 16, 32)]
    for each in (low, high):
        pool.lock(each)
    pool.free(first)
    pool.free(second)
    pool.compact()
    assert pool.offset(last) == pool.base
    assert pool.check() == 0


def test_objects_and_regions_of_slabs_have_their_limits() -> None:
    for per in (65534, 65535):
        arena = Arena(1 << 19)
        if per == 65534:
            assert SlabPool(arena, 4 * per, 1, (4,)).check() == 0
            continue
        with pytest.raises(BadArgument, match="^65535 objects of the smallest class in a slab: at most 6553"):
            SlabPool(arena, 4 * per, 1, (4,))
    # A region's record has a word a class and six more; the table's places are 16 bits.
    classes = tuple(range(4, 4 * 33, 4))
    for kinds, most in ((32, 1023), (1, 1023)):
        assert SlabRegionPool(Arena(1024), 132, 2, classes[:kinds], max_regions=most).check() == 0


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_layer_after_the_last_is_refused_whatever_was_appended_before(layers: int) -> None:
    """The layer that is expected next needs no check: none beyond the last ever is."""
    shape = {"layers": layers, "heads": 1, "kv_heads": 1, "head_dim": 4}
    for cache in (
        KVCache(Geometry(**shape, capacity=8)),
        SealedCache(SealedGeometry(**shape, capacity=8)),
        BudgetCache(Geometry(**shape, window=8, sinks=0), policy="lru-attention"),
        Requests(PagedGeometry(**shape, capacity=8), 4).open(),
    ):
        one, out = array("f", [1.0] * 4), array("f", [0.0] * 4)
        for _ in range(2):
            for layer in range(layers):
                cache.append(layer, one, one)
                cache.attend(layer, one, out)
            for beyond in (layers, -1, True):
                with pytest.raises(BadArgument, match="^layer must be"):
                    cache.append(beyond, one, one)
                with pytest.raises(BadArgument, match="^layer must be"):
                    cache.attend(beyond, one, out)
            cache.commit()
        assert cache.check() == 0


def test_the_tail_of_a_closed_request_is_forgotten_first() -> None:
    """Its ring begins behind the page of the sinks."""
    requests = requests_of(5, None, window=9, sinks=4, max_requests=2)
    ids = list(range(16))
    one = requests.open()
    run(one, ids)
    one.close()
    run(requests.open(), [99] * 8)  # of five blocks one was free
    found = requests.open(tokens=ids)
    assert found.length == 12
    assert requests.check() == 0


def test_who_changes_what_requests_share_has_said_so_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else an exception would leave half of it, and nobody would mend it."""
    requests = requests_of(8, None, window=8, sinks=4, max_requests=3)
    ledger = requests._ledger
    blocks, state = ledger.blocks, ledger.state
    changes = []
    for owner, name in ((ledger, "hold"), (ledger, "drop"), (blocks, "enter"), (blocks, "drop")):
        real = getattr(owner, name)

        def watched(*args: Any, real: Any = real, name: str = name) -> Any:
            changes.append(name)
            assert state[STATE.BUSY], name
            return real(*args)

        monkeypatch.setattr(owner, name, watched)
    ids = list(range(24))
    one = requests.open()
    run(one, ids)
    two = one.fork()
    run(two, [*ids, 1, 2, 3])
    one.rollback(3)
    two.close()
    one.close()
    like, same = requests.open(), requests.open()
    run(like, ids[:9])
    run(same, ids[:9])
    assert {"hold", "drop", "enter"} <= set(changes)
    assert requests.check() == 0


@pytest.mark.parametrize("first", [0, 4])
def test_check_sees_a_free_block_that_another_one_stands_before(first: int) -> None:
    pool = POOLS["buddy"]()
    n = pool._meta[0]
    handles = [pool.alloc(1) for _ in range(n)]
    by_index = {handle & pool._meta[1]: handle for handle in handles}
    for index in (2, first):
        pool.free(by_index[index])
    assert pool._link[first] == 2
    assert pool._link[n + 2] == first
    assert pool.check() == 0
    pool._link[n + 2] = 5
    assert pool.check() == 1


def test_what_saw_less_than_it_would_alone_is_no_prefix() -> None:
    """After a rollback beyond the window the first token there has lost one that it would see."""
    requests = requests_of(8, None, window=4, sinks=0)
    one = requests.open()
    run(one, list(range(5)))
    one.rollback(3)
    other = [0, 1, 90, 91, 92, 93, 94, 95]
    run(one, other)
    one.close()
    assert requests.open(tokens=other).length == 0
    assert requests.check() == 0
