"""SealedCache against a model in numpy, under random sequences of everything it can be told."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sealed_model import Model

from mpy_kv import cache_for, geometry_for, kernels
from mpy_kv.errors import BadArgument, CacheFull, StepError

LAYERS, DIM, GROUP = 2, 4, 2


class CacheAgainstModel(RuleBasedStateMachine):
    @initialize(
        window=st.integers(1, 70),
        sinks=st.integers(0, 3),
        capacity=st.none() | st.none() | st.integers(1, 100),
    )
    def make(self, window: int, sinks: int, capacity: int | None) -> None:
        sizes = {"window": window, "sinks": sinks}
        if capacity is not None:
            sizes, window, sinks = {"capacity": capacity}, capacity, 0
        g = geometry_for("int4", LAYERS, 1, 1, DIM, group=GROUP, **sizes)
        self.cache = cache_for(g, kernels=kernels.of("int4").get("plain"))
        self.model = Model(LAYERS, DIM // GROUP, window, sinks, capacity)
        self.told = 0  # tokens given so far, one that was dropped included: none is like another

    def rows(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.told)
        self.told += n
        return rng.normal(size=(2, n, DIM)).astype(np.float32) * np.float32([8, 1, 1, 0.1])

    def fits(self, n: int) -> bool:
        return self.model.capacity is None or self.model.length + n <= self.model.capacity

    def layer(self, layer: int, n: int, attended: bool) -> None:
        k, v = self.rows(n)
        flat = array("f", k.ravel().tolist()), array("f", v.ravel().tolist())
        if n == 1:
            self.cache.append(layer, *flat)
        else:
            self.cache.prefill(layer, *flat, n)
        if n == 1 or attended:
            for i in range(n):
                self.model.store(layer, i, k[i], v[i])
        else:
            self.staged.append((layer, k, v))
        if attended:
            out = array("f", [0] * (n * DIM))
            self.cache.attend(layer, array("f", [0] * (n * DIM)), out, None, n)
            self.check_last(layer, n, out)

    def check_last(self, layer: int, n: int, out: array) -> None:
        """A query of zeros sees all alike: the mean of what its token sees, whose forms the last row has."""
        seen = self.model.attends(self.model.length + n - 1)
        values = np.array([self.model.read(layer, "v", p) for p in seen])
        near = 0.02 * np.abs(values).max() + 1e-6
        assert np.array(out[-DIM:]) == pytest.approx(values.mean(0), abs=near)

    def begin(self) -> None:
        self.staged: list = []
        self.model.begin()

    @rule(n=st.integers(1, 1) | st.integers(2, 60), attended=st.booleans())
    def store(self, n: int, attended: bool) -> None:
        if not self.fits(n):
            with pytest.raises(CacheFull):
                self.cache.prefill(0, *[array("f", [0] * (n * DIM))] * 2, n)
            return
        self.begin()
        for layer in range(LAYERS):
            self.layer(layer, n, attended)
        self.cache.commit()
        for layer, k, v in self.staged:
            for i in range(n):
                self.model.store(layer, i, k[i], v[i])
        self.model.commit(n)

    @rule(
        n=st.integers(1, 1) | st.integers(2, 60),
        attended=st.booleans(),
        then=st.sampled_from(["abort", "restart", "refused", "rollback"]),
    )
    def leave_unfinished(self, n: int, attended: bool, then: str) -> None:
        """One layer of a step, then something else."""
        if not self.fits(n):
            return
        self.begin()
        self.layer(0, n, attended)
        stored = n if n == 1 or attended else 1
        if then == "refused":
            with pytest.raises(StepError):
                self.cache.commit()
        if then == "restart":
            self.model.dropped(stored)
            self.store(1, True)
        elif then == "rollback":
            self.model.dropped(stored)
            self.rollback(min(3, self.model.length))
        else:
            self.cache.abort()
            self.model.dropped(stored)

    @rule(n=st.just(1) | st.integers(0, 90))
    def rollback(self, n: int) -> None:
        if n > self.model.length:
            with pytest.raises(BadArgument):
                self.cache.rollback(n)
            return
        self.cache.rollback(n)
        self.model.rollback(n)

    @invariant()
    def same_tokens_and_bytes(self) -> None:
        if not hasattr(self, "model"):
            return
        cache, model = self.cache, self.model
        assert cache.length == model.length
        assert cache.visible() == model.visible()
        assert cache.check() == 0
        for layer in range(LAYERS):
            for p in model.visible():
                assert cache.sealed(layer, p) == model.is_sealed(layer, p), (layer, p)
                for which in ("k", "v"):
                    assert cache.read(layer, which, p) == model.read(layer, which, p).tolist(), (
                        layer,
                        which,
                        p,
                    )


CacheAgainstModel.TestCase.settings = settings(max_examples=25, stateful_step_count=10, deadline=None)
TestSealedCache = CacheAgainstModel.TestCase
