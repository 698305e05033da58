"""A request cut short at any line, in any file of the package, loses no block and no token (ISO-9)."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from injected import Injected
from paged_cases import alone, requests_of, run, step, stored
from sampling import Sampled

import mpy_kv
from mpy_kv.paged import Requests
from mpy_kv.paged.request import Request

PACKAGE = str(Path(mpy_kv.__file__).parent)
# Kernels are one call each on a board; test_atomicity.py breaks them off too.
LEFT_OUT = tuple(str(Path(PACKAGE) / name) for name in ("kernels", "inspect.py", "paged/inspect.py"))


World = tuple[Requests, list[Request]]


def cut_everywhere(
    start: World,
    act: Callable[[World], Any],
    error: type[BaseException] = KeyboardInterrupt,
    sampled: Callable[[Iterator[int]], Iterator[int]] = iter,
) -> Iterator[World]:
    """Copies of `start` in which `act` was cut short at line 1, 2, 3, ..., or at some of them."""
    for at in sampled(itertools.count(1)):
        world = copy.deepcopy(start)
        with Injected(error, at, [PACKAGE], LEFT_OUT) as cut:
            act(world)
        if not cut.where:
            break
        try:
            yield world
        except BaseException as found:
            found.add_note(f"cut at {cut.where} (line number {at})")
            raise
    assert at > 15, "nothing was cut short"


def counts(requests: Requests) -> dict:
    """What must be as before; how often requests were opened or blocks in use at once may differ."""
    return {k: v for k, v in requests.stats().items() if k not in ("peak_blocks", "opened", "reused_tokens")}


def everything(world: World) -> list:
    return [(r.length, r.visible(), stored(r)) for r in world[1]]


def tail_shared() -> World:
    requests = requests_of(8)
    one = requests.open()
    run(one, list(range(6)))
    return requests, [one, one.fork()]


def page_begins_and_a_chain_must_go() -> World:
    requests = requests_of(4, max_requests=2)
    old = requests.open()
    run(old, list(range(30, 38)))
    old.close()
    one = requests.open()
    run(one, list(range(8)))
    return requests, [one]


def page_ends() -> World:
    requests = requests_of(6)
    one = requests.open()
    run(one, list(range(7)))
    return requests, [one]


def page_ends_and_has_its_like() -> World:
    requests = requests_of(6)
    one, two = requests.open(), requests.open()
    run(one, list(range(8)))
    run(two, list(range(7)))
    return requests, [two, one]


def window_slides() -> World:
    requests = requests_of(9, None, window=6, sinks=2)
    one = requests.open()
    run(one, list(range(24)))
    return requests, [one, one.fork()]


STARTS = (tail_shared, page_begins_and_a_chain_must_go, page_ends, page_ends_and_has_its_like, window_slides)
CASES = [(start, KeyboardInterrupt) for start in STARTS] + [(tail_shared, MemoryError)]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("start", "error"), CASES)
def test_a_step_cut_short_changes_nothing(
    start: Callable[[], World], error: type[BaseException], sampled: Sampled
) -> None:
    world = start()
    before, counted = everything(world), counts(world[0])
    undisturbed = copy.deepcopy(world)
    token = undisturbed[1][0].length
    expected = step(undisturbed[1][0], token)
    after = everything(undisturbed)
    done = 0
    for cut in cut_everywhere(world, lambda w: step(w[1][0], token), error, sampled):
        requests, (one, *_) = cut
        assert requests.check() == 0
        if one.length > token:  # cut after the commit: the step is whole
            done += 1
            assert everything(cut) == after
        else:
            one.abort()
            assert everything(cut) == before
            lost = {"cached_blocks", "protected_blocks", "evictable_blocks", "private_blocks", "free_blocks"}
            now = counts(requests)
            assert all(now[key] == counted[key] for key in set(counted) - lost)
            assert now["free_blocks"] + now["evictable_blocks"] == (
                counted["free_blocks"] + counted["evictable_blocks"]
            )
            assert step(one, token) == expected
            assert everything(cut) == after
        assert requests.check() == 0
        for request in cut[1]:
            request.close()
        assert requests.stats()["referenced_blocks"] == 0
        assert requests.check() == 0
    assert done or not sampled.whole


@pytest.mark.parametrize("back", [1, 5])
@pytest.mark.parametrize("start", [tail_shared, page_ends, window_slides])
def test_a_rollback_cut_short(start: Callable[[], World], back: int) -> None:
    world = start()
    length = world[1][0].length
    for cut in cut_everywhere(world, lambda w: w[1][0].rollback(back)):
        requests, (one, *_) = cut
        assert requests.check() == 0
        assert one.length in (length, length - back)
        one.rollback(one.length - length + back)
        assert one.length == length - back
        step(one, 3)
        assert requests.check() == one.check() == 0
        one.close()
        assert requests.check() == 0


@pytest.mark.parametrize("start", [tail_shared, page_ends_and_has_its_like, window_slides])
def test_a_close_cut_short(start: Callable[[], World]) -> None:
    for cut in cut_everywhere(start(), lambda w: w[1][0].close()):
        requests, (one, *others) = cut
        assert requests.check() == 0
        before = everything((requests, others))
        if not one.closed():
            one.close()
        assert requests.check() == 0
        assert requests.stats()["requests"] == len(others)
        assert everything((requests, others)) == before


@pytest.mark.parametrize("options", [{}, {"reserve_tokens": 8}])
def test_an_open_or_fork_cut_short_leaves_no_trace(options: dict) -> None:
    requests = requests_of(8)
    one = requests.open()
    tokens = list(range(10))
    run(one, tokens)
    world = requests, [one]
    before, counted = everything(world), counts(requests)
    acts = (
        lambda w: w[0].open(tokens=tokens, **options),
        lambda w: w[0].open(salt=b"new", **options),
        lambda w: w[1][0].fork(**options),
    )
    for act in acts:
        for cut in cut_everywhere(world, act):
            assert cut[0].check() == 0
            assert counts(cut[0]) == counted
            assert everything(cut) == before
        two = cut[0].open(tokens=tokens)
        assert run(two, tokens) == alone(tokens, requests)[8:]


@pytest.mark.parametrize(("before", "after"), [(0, 12), (12, 0), (4, 16)])
def test_a_change_of_share_cut_short(before: int, after: int) -> None:
    world = tail_shared()
    world[1][0].reserve(before)
    for cut in cut_everywhere(world, lambda w: w[1][0].reserve(after)):
        assert cut[0].check() == 0
        assert cut[0].header(cut[1][0])["share"] in (-(-before // 4), -(-after // 4))


def test_a_pin_or_unpin_cut_short() -> None:
    requests = requests_of(8)
    one = requests.open(pin_tokens=8)
    run(one, list(range(9)))
    world = requests, [one]
    counted = counts(requests)
    for cut in cut_everywhere(world, lambda w: w[0].pin(w[1][0])):
        assert cut[0].check() == 0
        assert counts(cut[0]) == counted
    pin = requests.pin(one)
    pinned = counts(requests)
    for cut in cut_everywhere(world, lambda w: w[0].unpin(pin)):
        assert cut[0].check() == 0
        assert counts(cut[0]) in (counted, pinned)
        if counts(cut[0]) == pinned:
            cut[0].unpin(pin)
        assert counts(cut[0]) == counted


def test_mending_may_be_cut_short_too() -> None:
    world = tail_shared()
    before = everything(world)
    world[0]._ledger.state[0] = 1
    for cut in cut_everywhere(world, lambda w: w[0]._ledger.mend()):
        assert cut[0].check() == 0
        assert everything(cut) == before
