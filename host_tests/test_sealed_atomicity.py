"""An exception at any line of a SealedCache, or in any kernel, leaves the state before it or the state after.

As test_atomicity.py; besides, no token changes its form or its bytes unless the length has changed, or the
next step has begun to re-open what a rollback left sealed.
"""

from __future__ import annotations

import copy
import functools
import itertools
from array import array
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from injected import Injected
from sampling import Sampled

import mpy_kv.attention
import mpy_kv.cache
import mpy_kv.int4_blocks.blocks
import mpy_kv.int4_blocks.cache
import mpy_kv.sequence
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.int4_blocks import SealedCache, SealedGeometry

FILES = (
    mpy_kv.int4_blocks.cache.__file__,
    mpy_kv.int4_blocks.blocks.__file__,
    mpy_kv.sequence.__file__,
    mpy_kv.attention.__file__,
    mpy_kv.cache.__file__,
)
LAYERS, DIM, SINKS = 2, 4, 1
WINDOW = 32  # a whole number of blocks: the sealed block that is overwritten ends right before the window
PLAIN = kernels.of("int4").get("plain")


@functools.cache
def rows(first: int, n: int, layer: int) -> array:
    """n tokens' numbers, each always the same."""
    x = array("f")
    for token in range(first, first + n):
        x.extend(np.random.default_rng([token, layer]).normal(size=DIM).tolist())
    return x


def step(cache: SealedCache, n: int = 1, attended: bool = True) -> list[list[float]]:
    """n tokens in one step; the outputs."""
    p, outs = cache.length, []
    for layer in range(LAYERS):
        k, v, out = rows(p, n, layer), rows(p + 500, n, layer), array("f", [0] * (n * DIM))
        if n == 1:
            cache.append(layer, k, v)
        else:
            cache.prefill(layer, k, v, n)
        if attended:
            cache.attend(layer, rows(p + 900, n, layer), out, rows(p + 1300, n, layer), n)
        outs.append(out.tolist())
    cache.commit()
    return outs


@functools.cache
def _fed(tokens: int) -> SealedCache:
    cache = SealedCache(SealedGeometry(LAYERS, 1, 1, DIM, WINDOW, SINKS, group=DIM), kernels=PLAIN)
    for _ in range(tokens):
        step(cache, 1, False)  # a prefill would note what it seals on its way
    return cache


def fed(tokens: int) -> SealedCache:
    return copy.deepcopy(_fed(tokens))


def stored(cache: SealedCache, positions: list[int] | None = None) -> list[tuple]:
    """Form and numbers of the visible tokens, or of these, in every layer."""
    found = []
    for layer in range(LAYERS):
        for p in cache.visible() if positions is None else positions:
            found.append(
                (layer, p, cache.sealed(layer, p), cache.read(layer, "k", p), cache.read(layer, "v", p))
            )
    return found


class Failing:
    """Raises before or after call number `at` of any kernel."""

    name, codec = "failing", "int4"

    def __init__(self, at: int, after: bool) -> None:
        self.at, self.after, self.seen = at, after, 0
        for name in kernels.of("int4").names:
            setattr(self, name, self._wrap(getattr(PLAIN, name)))

    def _wrap(self, real: Callable[..., int]) -> Callable[..., int]:
        def kernel(*arguments: object) -> int:
            self.seen += 1
            if self.seen == self.at and not self.after:
                raise KeyboardInterrupt("injected")
            done = real(*arguments)
            if self.seen == self.at:
                raise KeyboardInterrupt("injected")
            return done

        return kernel


def broken(
    start: SealedCache, act: Callable[[SealedCache], object], sampled: Sampled, stride: int = 1
) -> Iterator:
    """(cache, where) for each place at which `act` can be cut: before lines, before and after kernels."""
    for at in sampled(itertools.count(1, stride)):
        cache = copy.deepcopy(start)
        with Injected(KeyboardInterrupt, at, FILES) as injected:
            act(cache)
        if not injected.where:
            break
        yield cache, injected.where
    assert at > 5 * stride, "nothing was injected"
    for after in (False, True):
        for at in sampled(itertools.count(1, stride)):
            cache = copy.deepcopy(start)
            cache.attention[0].kernels = Failing(at, after)
            try:
                act(cache)
                break
            except KeyboardInterrupt:
                pass
            cache.attention[0].kernels = PLAIN
            yield cache, f"kernel call {at}"


# Tokens before the step: it completes the second block, which seals the first; one whose sealing overwrites;
# one that fills no block; the first of a block.
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("tokens", "attended"),
    [(SINKS + 31, False), (SINKS + 79, False), (SINKS + 79, True), (SINKS + 64, False)],
)
def test_a_step_cut_anywhere(tokens: int, attended: bool, sampled: Sampled) -> None:
    before = fed(tokens)
    old, visible = stored(before), before.visible()
    done = copy.deepcopy(before)

    def act(cache: SealedCache) -> list[list[float]]:
        return step(cache, 1, attended)

    outs = act(done)
    new = stored(done)
    assert (any(sealed for _, _, sealed, *_ in new)) is (tokens > SINKS + 20)
    for cache, where in broken(before, act, sampled, 5 if attended else 1):
        assert cache.length == tokens, where
        assert cache.visible() == visible, where
        assert stored(cache) == old, where
        assert cache.check() == 0, where
        if tokens == SINKS + 79:
            # What was cut is not seen by another way on either.
            other = copy.deepcopy(cache)
            other.rollback(1)
            assert stored(other) == [x for x in old if x[1] != tokens - 1], where
        assert act(cache) == outs, where
        assert stored(cache) == new, where
        assert cache.check() == 0, where


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [1, 17, 70])
def test_a_rollback_cut_anywhere(n: int, sampled: Sampled) -> None:
    before = fed(SINKS + 75)
    old = stored(before)
    done = copy.deepcopy(before)
    done.rollback(n)
    after = stored(done)
    assert after == [x for x in old if x[1] < done.length]  # nothing is re-opened yet
    for cache, where in broken(before, lambda c: c.rollback(n), sampled):
        assert cache.length in (before.length, done.length), where
        assert stored(cache) == (old if cache.length == before.length else after), where
        assert cache.check() == 0, where
        if cache.length == before.length:
            cache.rollback(n)
        again, undisturbed = copy.deepcopy(cache), copy.deepcopy(done)
        assert step(again) == step(undisturbed), where
        assert stored(again) == stored(undisturbed), where
        assert again.check() == 0, where


@pytest.mark.exhaustive
@pytest.mark.parametrize("n", [13, 70])
def test_the_step_after_a_rollback_cut_anywhere(n: int, sampled: Sampled) -> None:
    """While it re-opens blocks, each layer has each token in its old or its new form, and the step done again
    gives the same."""
    before = fed(SINKS + 75)
    before.rollback(n)
    length, visible = before.length, before.visible()
    old = {x[:2]: x[2:] for x in stored(before)}
    done = copy.deepcopy(before)
    step(done, 1, False)
    new = stored(done)
    opened = {x[:2]: x[2:] for x in new}
    for cache, where in broken(before, lambda c: step(c, 1, False), sampled):
        assert (cache.length, cache.visible()) == (length, visible), where
        for layer, p, *form in stored(cache):
            assert tuple(form) in (old[layer, p], opened.get((layer, p))) or not form[0], where
        assert cache.check() == 0, where
        step(cache, 1, False)
        assert stored(cache) == new, where


@pytest.mark.exhaustive
@pytest.mark.parametrize("attended", [True, False])
@pytest.mark.parametrize(("n", "stride"), [(8, 211), (17, 211), (40, 1499)])
def test_a_prefill_cut_anywhere_keeps_the_same_tokens_in_all_layers(
    n: int, stride: int, attended: bool, sampled: Sampled
) -> None:
    before = fed(SINKS + 60)
    visible, old = before.visible(), stored(before)
    done = copy.deepcopy(before)
    step(done, n, attended)
    kept = set()
    for cache, where in broken(
        before, lambda c: step(c, n, attended), sampled, stride if attended else 23
    ):
        if cache.length != before.length:
            assert stored(cache) == stored(done), where
            continue
        assert cache.visible() == [p for p in visible if p in cache.visible()], where
        kept.add(len(cache.visible()))
        if n == 8 and not cache.placement.uneven:
            assert stored(cache) == [x for x in old if x[1] in cache.visible()], where
        assert cache.check() == 0, where
        step(cache)
        assert cache.check() == 0, where
        assert cache.visible()[-1] == cache.length - 1, where
        full = (cache.length - SINKS) // 16
        for p in cache.visible():
            for layer in range(LAYERS):
                assert cache.sealed(layer, p) == (p >= SINKS and (p - SINKS) // 16 < full - 1), where
    # Of a prefill that fills no block beyond the open one all is kept; else what was overwritten is gone.
    assert not sampled.whole or max(kept) == len(visible)


def test_a_short_prefill_aborted_costs_nothing() -> None:
    """Up to the end of the block that is open, and one token of the next: as single steps would be."""
    cache = fed(SINKS + 51)
    old = stored(cache)
    for layer in range(LAYERS):
        k = rows(70, 13, layer)
        cache.prefill(layer, k, k, 13)
        cache.attend(layer, k, array("f", [0] * (13 * DIM)), None, 13)
    cache.abort()
    assert stored(cache) == old


@pytest.mark.parametrize("make", [KVCache, SealedCache])
def test_a_query_of_the_sinks_own_cut_off_leaves_none_behind(make: type[KVCache]) -> None:
    """Whichever of the two parameters that tell of it was written."""
    shape = LAYERS, 1, 1, DIM, 8, SINKS
    g = SealedGeometry(*shape) if make is SealedCache else Geometry(*shape)
    start = make(g, kernels=kernels.of(g.codec).get("plain"))
    q, other = rows(1, 1, 0), rows(2, 1, 0)

    def attend(cache: KVCache, qs: array | None) -> list[float]:
        out = array("f", [0] * DIM)
        cache.attend(0, q, out, qs)
        return out.tolist()

    for token in range(5):
        for layer in range(LAYERS):
            start.append(layer, rows(token, 1, layer), rows(token + 9, 1, layer))
        start.commit()
    start.append(0, rows(7, 1, 0), rows(8, 1, 0))
    for first, then in ((None, other), (other, None)):
        begun = copy.deepcopy(start)
        want = {qs is None: attend(copy.deepcopy(begun), qs) for qs in (first, then)}
        assert want[True] != want[False]
        attend(begun, first)
        at = 1
        while True:
            cache = copy.deepcopy(begun)
            with Injected(KeyboardInterrupt, at, FILES) as injected:
                attend(cache, then)
            if not injected.where:
                break
            for qs in (first, then):
                assert attend(copy.deepcopy(cache), qs) == want[qs is None], injected.where
            at += 1
