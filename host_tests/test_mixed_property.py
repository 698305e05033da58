"""A mixed cache beside a cache of each element type, under random sequences of everything a cache is told."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kvlab.element_types import NAMES
from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import CacheFull, KVError, OutOfRange, StepError
from mpy_kv.per_layer import MixedCache, MixedGeometry

TYPES = [name for name in NAMES if name not in ("int4", "float32")]
LAYERS = 3
SHAPE = (LAYERS, 2, 2, 4)
WIDTH = 8


class MixedAgainstUniform(RuleBasedStateMachine):
    @initialize(
        codecs=st.lists(st.sampled_from(TYPES), min_size=LAYERS, max_size=LAYERS),
        window=st.integers(1, 9),
        sinks=st.integers(0, 5),
        capacity=st.none() | st.none() | st.integers(1, 30),
        seed=st.integers(0, 99),
        tokens=st.integers(0, 14),
    )
    def make(
        self, codecs: list[str], window: int, sinks: int, capacity: int | None, seed: int, tokens: int
    ) -> None:
        sizes = {"capacity": capacity} if capacity is not None else {"window": window, "sinks": sinks}
        self.capacity = capacity
        g = MixedGeometry(*SHAPE, codec=codecs, **sizes)
        sets = {name: kernels.of(name).get("plain") for name in g.types}
        self.mixed = MixedCache(g, kernels=sets)
        self.alone = {
            name: KVCache(Geometry(*SHAPE, codec=name, **sizes), kernels=sets[name]) for name in g.types
        }
        self.codecs = codecs
        self.random = random.Random(seed)
        for _ in range(min(tokens, capacity or tokens)):
            self.store(1, True)

    def every(self) -> list[KVCache]:
        return [self.mixed, *self.alone.values()]

    def vector(self, n: int) -> array:
        return array("f", [self.random.uniform(-9, 9) for _ in range(n * WIDTH)])

    def told(self, act: Callable[[KVCache], object]) -> None:
        """Of every cache; they all take it, or refuse it alike."""
        found = set()
        for cache in self.every():
            try:
                act(cache)
                found.add("")
            except KVError as error:
                found.add(f"{type(error).__name__} {error}")
        assert len(found) == 1, found

    def layers(self, n: int, count: int, attended: bool) -> None:
        """n tokens in the first `count` layers; a mixed layer's output is that of its type."""
        for layer in range(count):
            k, v, q, qs = (self.vector(n) for _ in range(4))
            outputs = {}
            for cache in self.every():
                if n == 1:
                    cache.append(layer, k, v)
                else:
                    cache.prefill(layer, k, v, n)
                if attended:
                    out = array("f", [0] * (n * WIDTH))
                    cache.attend(layer, q, out, qs, n)
                    outputs[cache] = out.tolist()
            if attended:
                assert outputs[self.mixed] == outputs[self.alone[self.codecs[layer]]]

    @rule(n=st.integers(1, 1) | st.integers(2, 20), attended=st.booleans())
    def store(self, n: int, attended: bool) -> None:
        if self.capacity is not None and self.mixed.length + n > self.capacity:
            with pytest.raises(CacheFull):
                self.mixed.prefill(0, self.vector(n), self.vector(n), n)
            return
        self.layers(n, LAYERS, attended)
        self.told(lambda cache: cache.commit())

    @rule(n=st.integers(1, 1) | st.integers(2, 20), count=st.integers(1, LAYERS - 1), abort=st.booleans())
    def leave_unfinished(self, n: int, count: int, abort: bool) -> None:
        if self.capacity is not None and self.mixed.length + n > self.capacity:
            return
        self.layers(n, count, True)
        for cache in self.every():
            with pytest.raises(StepError, match=f"{count} of {LAYERS} layers stored"):
                cache.commit()
        if abort:
            self.told(lambda cache: cache.abort())

    @precondition(lambda self: self.capacity is None or self.mixed.length < self.capacity)
    @rule(layer=st.integers(0, LAYERS - 1), which=st.sampled_from("kvq"))
    def refused(self, layer: int, which: str) -> None:
        """No number, in what is stored or in a query."""
        vectors = {name: self.vector(1) for name in "kvq"}
        vectors[which][3] = float("nan")

        def use(cache: KVCache) -> None:
            cache.append(layer, vectors["k"], vectors["v"])
            cache.attend(layer, vectors["q"], array("f", [0] * WIDTH))

        def act(cache: KVCache) -> None:
            said = f"{which} of layer {layer}, token {cache.length}: not finite"
            with pytest.raises(OutOfRange, match=said):
                use(cache)
            cache.abort()

        self.told(act)

    @rule(n=st.just(1) | st.integers(0, 40))
    def rollback(self, n: int) -> None:
        self.told(lambda cache: cache.rollback(n))

    @rule(ahead=st.just(0) | st.integers(0, 100000))
    def seek(self, ahead: int) -> None:
        position = self.mixed.length + ahead
        self.told(lambda cache: cache.seek(position))

    @invariant()
    def the_same_tokens(self) -> None:
        if not hasattr(self, "mixed"):
            return
        assert self.mixed.check() == 0
        stats = {name: cache.stats() for name, cache in self.alone.items()}
        mine = self.mixed.stats()
        visible = self.mixed.visible()
        for name, theirs in stats.items():
            assert visible == self.alone[name].visible()
            for key in ("tokens", "visible_tokens", "evicted_tokens", "pending_layers"):
                assert mine[key] == theirs[key], key
        assert mine["kv_bytes"] * LAYERS == sum(stats[name]["kv_bytes"] for name in self.codecs)
        for layer, name in enumerate(self.codecs):
            for p in visible[-2:] + visible[:1]:
                for which in "kv":
                    assert self.mixed.read(layer, which, p) == self.alone[name].read(layer, which, p)


MixedAgainstUniform.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None, derandomize=True
)
TestMixedAgainstUniform = MixedAgainstUniform.TestCase
