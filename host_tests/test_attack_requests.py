"""Requests and the gate against callers that mean harm: what one does never shows in what another sees."""

from __future__ import annotations

import asyncio
import contextlib
from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from paged_cases import HEADS, LAYERS, SHAPE, prefill, requests_of, ring_like, run, vector

from mpy_kv import KVCache, kernels
from mpy_kv.admission.admission import RUNNING, Admission
from mpy_kv.admission.waiting import Gate
from mpy_kv.arena import Arena
from mpy_kv.errors import BadArgument, BadHandle, NoRoom
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.pools.buddy import BuddyPool
from mpy_kv.pools.fixed import FixedPool
from mpy_kv.pools.region import RegionPool
from mpy_kv.pools.slab import SlabPool

TOKENS = list(range(40))


def hidden(sequence: Any, tokens: Sequence[int]) -> list[list[float]]:
    """As run(), of a model whose second layer stores what the first one saw: what a token stores depends on
    all that was visible to it."""
    steps = []
    for token in tokens[sequence.length :]:
        x, seen = vector(token, sequence.length, 0, 0), []
        for layer in range(LAYERS):
            out = array("f", bytes(4 * HEADS * len(x)))
            sequence.append(layer, x, x)
            sequence.attend(layer, array("f", list(x) * HEADS), out)
            x = array("f", [a + b for a, b in zip(x, out, strict=False)])
            seen += out
        if isinstance(sequence, KVCache):
            sequence.commit()
        else:
            sequence.commit(token)
        steps.append(seen)
    return steps


@pytest.mark.parametrize("block_tokens", [1, 3, 4])
@pytest.mark.parametrize("shape", [{"window": 8, "sinks": 0}, {"window": 6, "sinks": 3}])
@pytest.mark.parametrize("afterwards", [True, False])
def test_what_a_rollback_made_invisible_changes_no_other_request(
    shape: dict, block_tokens: int, afterwards: bool
) -> None:
    """After a rollback beyond a window the next tokens see less than in a run of their own: what they store
    is no prefix for others, whether they open later or compute the same tokens themselves meanwhile."""
    requests = requests_of(60, None, block_tokens=block_tokens, **shape)
    alone = hidden(ring_like(requests), TOKENS)
    one = requests.open()
    hidden(one, TOKENS[:16] + [99] * 4)
    one.rollback(4)
    hidden(one, TOKENS[:20])
    if afterwards:
        one.close()
        other = requests.open(tokens=TOKENS[:21])
    else:
        other = requests.open()
    found = other.length
    assert hidden(other, TOKENS) == alone[found:]


def test_what_an_abort_made_invisible_changes_no_other_request() -> None:
    """The same for a long prefill that was given up."""
    requests = requests_of(60, None, window=8, sinks=0)
    alone = hidden(ring_like(requests), TOKENS)
    one = requests.open()
    hidden(one, TOKENS[:16])
    rows = array("f", [0.5] * (8 * 12))
    one.prefill(0, rows, rows, 12)
    one.attend(0, array("f", bytes(4 * 16 * 12)), array("f", bytes(4 * 16 * 12)), None, 12)
    one.abort()
    hidden(one, TOKENS[:20])
    other = requests.open(tokens=TOKENS[:21])
    found = other.length
    assert hidden(other, TOKENS) == alone[found:]


def test_a_pool_of_another_arena_is_refused() -> None:
    """Its offsets would be places of somebody else in this one."""
    g = PagedGeometry(**SHAPE, capacity=64, block_tokens=4)
    mine, other = Arena(4000), Arena(8 * g.block_bytes)
    with pytest.raises(BadArgument, match="arena"):
        Requests(g, 8, arena=mine, pool=FixedPool(other, 8, g.block_bytes), kernels=kernels.get("plain"))


def _use(requests: Requests, salt: bytes, pinned: bool = False) -> None:
    request = requests.open(tokens=TOKENS[:9], salt=salt, pin_tokens=8)
    run(request, TOKENS[:9])
    if pinned:
        requests.pin(request, 8)
    request.close()


def test_a_pinned_prefix_is_found_however_many_salts_come() -> None:
    requests = requests_of(60)
    for salt in b"abcde":
        _use(requests, bytes([salt]))
    _use(requests, b"f", pinned=True)
    for salt in b"ghijklm":
        _use(requests, bytes([salt]))
        assert requests.lookup(TOKENS[:9], b"f") == 8


def test_the_salt_used_longest_ago_goes_first() -> None:
    """Not the newest: two salts in turn would never find theirs while forgotten ones stay."""
    requests = requests_of(60)
    for salt in b"abcdefg":
        _use(requests, bytes([salt]))
    assert requests.lookup(TOKENS[:9], b"a") == 0
    assert requests.lookup(TOKENS[:9], b"f") == requests.lookup(TOKENS[:9], b"g") == 8
    # The entries of a salt that went are found no more: they are free.
    assert requests.stats()["cached_blocks"] == 2 * 6


def test_a_refused_open_forgets_nothing() -> None:
    requests = requests_of(20, max_pins=0, max_requests=2)
    for salt in (b"a", b"b"):
        _use(requests, salt)
    requests.open(salt=b"a", reserve_tokens=64)
    with pytest.raises(NoRoom, match="share"):
        requests.open(salt=b"c", reserve_tokens=40)
    assert requests.lookup(TOKENS[:9], b"b") == 8


def test_a_share_is_kept_for_a_prefill_too() -> None:
    """As for single steps: what others hold of it is given up, then taken anew."""
    pages = requests_of(1, None, window=8, sinks=0).geometry.pages
    requests = requests_of(2 * pages, None, window=8, sinks=0)
    one = requests.open(reserve_tokens=1000)
    run(one, TOKENS[:20])
    one.fork()
    prefill(one, TOKENS[20:28])
    assert one.length == 28
    assert requests.check() == 0


def test_a_lookup_finds_what_an_open_would() -> None:
    requests = requests_of(8)
    run(first := requests.open(), TOKENS[:17])
    first.close()
    requests.open(reserve_tokens=32)
    assert requests.lookup(TOKENS[:17]) == requests.open(tokens=TOKENS[:17]).length


def test_a_header_is_of_these_requests_only() -> None:
    one, other = requests_of(8), requests_of(8)
    one.open(task=1)
    for stranger in (other.open(task=7), None, 0):
        with pytest.raises(BadArgument, match="request"):
            one.header(stranger)


@pytest.mark.parametrize("tokens", [5, "abcdefghi", {1, 2}, [1.0] * 9, [-1] * 9])
def test_a_lookup_refuses_what_an_open_refuses(tokens: object) -> None:
    requests = requests_of(8)
    with pytest.raises(BadArgument, match="tokens|ids"):
        requests.lookup(tokens)


def test_a_closed_request_refuses_attend_and_commit_as_all_else() -> None:
    request = requests_of(8).open()
    request.close()
    q = vector(0, 0, 0, 0, 16)
    for call in (lambda: request.attend(0, q, q), lambda: request.commit(1)):
        with pytest.raises(BadHandle, match="closed"):
            call()


# The gate


def _woken(preempted: Any) -> bool:
    """Whether a waiting task comes in that a step admits, preempting two."""

    async def main() -> bool:
        gate = Gate(Admission(4, 4, tickets=8), lambda ticket: preempted(gate, ticket))
        for _ in range(2):
            gate.admission.submit(0, 4, 4, 0)
        gate.step()
        high = gate.admission.submit(0, 8, 4, 1)
        gate.admission.submit(0, 2, 2, 0)
        waits = asyncio.create_task(gate.wait(high))
        await asyncio.sleep(0)
        with contextlib.suppress(ZeroDivisionError):
            gate.step()
        for _ in range(5):
            await asyncio.sleep(0)
        assert gate.admission.state(high) == RUNNING
        done = waits.done()
        waits.cancel()
        return done

    return asyncio.run(main())


def test_who_is_admitted_is_woken_though_a_preempted_one_gives_up() -> None:
    assert _woken(lambda gate, ticket: gate.cancel(ticket))


def test_who_is_admitted_is_woken_though_the_callback_fails() -> None:
    assert _woken(lambda gate, ticket: 1 // 0)


def test_a_wait_that_is_cancelled_promises_no_block_that_cannot_be_had() -> None:
    async def main() -> None:
        gate = Gate(Admission(4, 4))
        first, second = gate.admission.submit(0, 8, 8), gate.admission.submit(0, 2, 2)
        gate.step(0)  # none can be had now
        waits = asyncio.create_task(gate.wait(first))
        await asyncio.sleep(0)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)
        assert gate.admission.state(second) != RUNNING

    asyncio.run(main())


# Pools


@pytest.mark.parametrize("kind", [FixedPool, BuddyPool, RegionPool, SlabPool])
@pytest.mark.parametrize("handles", [None, 5, "ab", {1}, {0: 1}, (1,)], ids=repr)
def test_many_are_freed_from_a_list_or_array_only(kind: Any, handles: object) -> None:
    arena = Arena(4096)
    pool = {
        FixedPool: lambda: FixedPool(arena, 4, 64),
        BuddyPool: lambda: BuddyPool(arena, 256),
        RegionPool: lambda: RegionPool(arena, 256, 4),
        SlabPool: lambda: SlabPool(arena, 512, 2, (64,)),
    }[kind]()
    with pytest.raises(BadArgument, match="n"):
        pool.free_many(handles, 1)


def test_a_pool_of_smaller_blocks_is_refused() -> None:
    g = PagedGeometry(**SHAPE, capacity=64, block_tokens=4)
    arena = Arena(8000)
    with pytest.raises(BadArgument, match="pool gives at most 32 bytes"):
        Requests(g, 8, arena=arena, pool=FixedPool(arena, 8, 32), kernels=kernels.get("plain"))


def test_a_geometry_says_what_it_is() -> None:
    assert repr(PagedGeometry(**SHAPE, capacity=64, block_tokens=4)).endswith(", block_tokens=4)")
