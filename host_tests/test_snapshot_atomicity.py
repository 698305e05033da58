"""A load or a save that an exception cuts short: the sequence is empty and of use, or it is all there."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from injected import Injected
from sampling import Sampled
from snapshot_cases import SHAPE, budget, grown, load, plain, saved, step

import mpy_kv
from mpy_kv import snapshot
from mpy_kv.paged import PagedGeometry, Requests
from mpy_kv.transient import load_module

INSIDE = [str(Path(mpy_kv.__file__).parent)]
# Kernels and codecs are called with what is checked, and change nothing but the slots they are given.
OUTSIDE = [f"{INSIDE[0]}/{name}" for name in ("kernels", "codecs", "eviction/tokens/plain")]


def paged() -> Any:
    g = PagedGeometry(**SHAPE, window=5, sinks=1, block_tokens=2)
    return Requests(g, g.pages + 2, max_requests=2).open()


MADE = {
    "ring": plain("int8", window=4, sinks=1),
    "mixed": plain(["int8", "float16"], capacity=24),
    "sealed": plain("int4", window=16, sinks=1),
    "lru-peak": budget("lru-peak"),
    "heavy-hitters": budget("heavy-hitters"),
    "paged": paged,
}


def grown_to(name: str) -> Any:
    tokens = {"sealed": 36, "mixed": 9}.get(name, 13)
    cache = grown(MADE[name], tokens)
    cache.rollback(2)
    return cache


def sound(cache: Any, where: str) -> None:
    assert cache.check() == 0, where
    if hasattr(cache, "ledger"):
        assert cache.ledger.state[0] in (0, 1), where
        requests = cache.ledger
        requests.mend()


@pytest.mark.exhaustive
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("name", MADE)
def test_a_load_cut_short_anywhere(name: str, error: type[BaseException], sampled: Sampled) -> None:
    source = grown_to(name)
    data = saved(source)
    whole = MADE[name]()
    load(whole, data)
    want = saved(whole)
    after = [step(source, t) for t in range(70, 74)]
    for at in sampled(range(1, 1 << 30, 13)):
        cache = MADE[name]()
        with Injected(error, at, INSIDE, OUTSIDE) as injected:
            load(cache, data)
        if not injected.where:
            break
        sound(cache, injected.where)
        if cache.length == 0:
            assert (cache.visible(), cache.evicted_tokens) == ([], 0), injected.where
            load(cache, data)
        assert saved(cache) == want, injected.where
        assert [step(cache, t) for t in range(70, 74)] == after, injected.where
        sound(cache, injected.where)
        if hasattr(cache, "ledger"):
            cache.close()
            assert cache.ledger.available_blocks() == cache.ledger.n, injected.where
    assert at > 500


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MADE)
def test_an_empty_sequence_after_a_load_cut_short_is_a_new_one(name: str, sampled: Sampled) -> None:
    data = saved(grown_to(name))
    new = MADE[name]()
    undisturbed = [step(new, t) for t in range(4)]
    for at in sampled(range(1, 1 << 30, 11)):
        cache = MADE[name]()
        with Injected(KeyboardInterrupt, at, INSIDE, OUTSIDE) as injected:
            load(cache, data)
        if cache.length:
            break
        assert [step(cache, t) for t in range(4)] == undisturbed, injected.where
        assert cache.evicted_tokens == new.evicted_tokens, injected.where
        sound(cache, injected.where)
    assert at > 500


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MADE)
def test_a_save_cut_short_changes_nothing(name: str, sampled: Sampled) -> None:
    cache = grown_to(name)
    data = saved(cache)
    for at in sampled(range(1, 1 << 30, 29)):
        with Injected(KeyboardInterrupt, at, INSIDE, OUTSIDE) as injected:
            snapshot.save(cache, lambda part: None)
        if not injected.where:
            break
        assert saved(cache) == data, injected.where
        sound(cache, injected.where)
    assert at > 300


@pytest.mark.parametrize(
    ("name", "part"), [*[(name, "publish") for name in MADE], ("paged, with ids", "know")]
)
def test_any_instruction_of_what_makes_a_load_seen(
    name: str, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of a load: cut there the sequence is empty or has all of it, whatever instruction it was."""
    if part == "know":

        def make() -> Any:
            return Requests(PagedGeometry(**SHAPE, capacity=20, block_tokens=2), 10, max_requests=2).open()

        source, ids = grown(make, 9), range(9)
    else:
        make, ids = MADE[name], None
        source = grown_to(name)
    data = saved(source, ids=ids)
    form = type(load_module("mpy_kv.snapshot.forms").of(source))
    real = getattr(form, part)
    whole = make()
    load(whole, data)
    want, known = saved(whole), saved(whole, ids=ids)
    after = [step(source, t) for t in range(70, 73)]
    found = set()
    for at in range(1, 10000, 9 if part == "know" else 1):
        cache = make()
        injected = Injected(KeyboardInterrupt, at, INSIDE, OUTSIDE, opcodes=True)

        def cut(*words: Any, injected: Injected = injected) -> None:
            with injected:
                real(*words)
            if injected.where:
                raise KeyboardInterrupt

        monkeypatch.setattr(form, part, cut)
        with suppress(KeyboardInterrupt):
            load(cache, data)
        monkeypatch.setattr(form, part, real)
        if not injected.where:
            break
        sound(cache, injected.where)
        found.add(cache.length)
        if cache.length == 0:
            assert (cache.visible(), cache.evicted_tokens) == ([], 0), injected.where
            load(cache, data)
        # A request may be left without the ids of some tokens, and is found by fewer.
        assert saved(cache, ids=ids) == known if ids else saved(cache) == want, injected.where
        assert [step(cache, t) for t in range(70, 73)] == after, injected.where
        sound(cache, injected.where)
    assert found == ({whole.length} if part == "know" else {0, whole.length})
    assert at > 80


def test_blocks_that_a_rollback_left_to_be_opened_are_opened_once() -> None:
    """A save cut short there, and one that is not, leave what the next step would have found."""
    for lines in range(1, 400, 37):
        cache, other = (grown(MADE["sealed"], 40) for _ in range(2))
        cache.rollback(19)
        other.rollback(19)
        with Injected(KeyboardInterrupt, lines, [f"{INSIDE[0]}/int4_blocks"]) as injected:
            saved(cache)
        again = MADE["sealed"]()
        load(again, saved(cache))
        for t in range(50, 75):
            found = step(other, t)
            assert step(cache, t) == found == step(again, t), injected.where
        if not injected.where:
            break
    assert lines > 100
