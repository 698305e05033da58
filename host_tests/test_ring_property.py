"""The ring against a model of a dozen lines, under random sequences of everything a cache can be told."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mpy_kv import Geometry, KVCache, kernels
from mpy_kv.errors import BadArgument, CacheFull, StepError

LAYERS, DIM = 2, 32
# Bytes of a token's key and value, of DIM values in one group each.
TOKEN_BYTES = {
    "int8": 2 * (DIM + 2),
    "int8-int4": DIM + 2 + DIM // 2 + 2,
    "sparse": DIM + 2 + DIM // 8 + 3 * DIM // 4 + 2,
    "float16": 4 * DIM,
}


class Ring:
    """What must be visible: positions in a list."""

    def __init__(self, window: int, sinks: int, capacity: int | None) -> None:
        self.window, self.sinks, self.capacity = window, sinks, capacity
        self.length, self.ring, self.evicted = 0, [], 0

    def attends(self, p: int) -> list[int]:
        new = [r for r in range(self.length, p + 1) if r >= self.sinks]
        return [*range(min(self.sinks, p + 1)), *[r for r in self.ring + new if r > p - self.window]]

    def keep(self, ring: list[int]) -> None:
        self.evicted += len(self.ring) - len(ring)
        self.ring = ring

    def store(self, n: int) -> None:
        self.length, seen = self.length + n, self.attends(self.length + n - 1)
        self.ring += [p for p in range(self.length - n, self.length) if p >= self.sinks]
        self.keep([p for p in seen if p >= self.sinks])

    def overwrite(self, n: int) -> None:
        """n uncommitted tokens were stored, then dropped: the ring has one slot to spare."""
        if self.capacity is None:
            self.keep([p for p in self.ring if p > self.length + n - 2 - self.window])

    def rollback(self, n: int) -> None:
        self.length -= n
        self.ring = [p for p in self.ring if p < self.length]

    def seek(self, position: int) -> None:
        self.length = position
        self.keep([])

    def visible(self) -> list[int]:
        return [*range(min(self.sinks, self.length)), *self.ring]


class CacheAgainstModel(RuleBasedStateMachine):
    @initialize(
        window=st.integers(1, 9),
        sinks=st.integers(0, 5),
        capacity=st.none() | st.none() | st.integers(1, 30),
        codec=st.sampled_from(list(TOKEN_BYTES)),
    )
    def make(self, window: int, sinks: int, capacity: int | None, codec: str) -> None:
        sizes = {"window": window, "sinks": sinks}
        if capacity is not None:
            sizes, window, sinks = {"capacity": capacity}, capacity, 0
        shape = Geometry(LAYERS, 1, 1, DIM, codec=codec, **sizes)
        self.cache = KVCache(shape, kernels=kernels.of(codec).get("plain"))
        self.token_bytes = LAYERS * TOKEN_BYTES[codec]
        self.model = Ring(window, sinks, capacity)
        self.pending = 0

    def rows(self, n: int) -> array:
        """V of the next n tokens: one-hot at position % DIM."""
        v = array("f", [0] * (n * DIM))
        for i in range(n):
            v[i * DIM + (self.model.length + i) % DIM] = 1
        return v

    def check_output(self, out: array, n: int) -> None:
        """Equal keys: channel c holds the share of visible tokens with position % DIM = c."""
        for i in range(n):
            seen = self.model.attends(self.model.length + i)
            want = [0.0] * DIM
            for p in seen:
                want[p % DIM] += 1 / len(seen)
            assert list(out[i * DIM : (i + 1) * DIM]) == pytest.approx(want, abs=0.02 / len(seen))

    def fits(self, n: int) -> bool:
        return self.model.capacity is None or self.model.length + n <= self.model.capacity

    def layers(self, n: int, count: int, attended: bool) -> None:
        """Bring n tokens into the first `count` layers of the step."""
        same, v = array("f", [0] * (n * DIM)), self.rows(n)
        for layer in range(count):
            out = array("f", [0] * (n * DIM))
            if n == 1:
                self.cache.append(layer, same, v)
            else:
                self.cache.prefill(layer, same, v, n)
            if attended:
                self.cache.attend(layer, same, out, None, n)
                self.check_output(out, n)

    @rule(n=st.integers(1, 1) | st.integers(2, 25), attended=st.booleans())
    def store(self, n: int, attended: bool) -> None:
        if not self.fits(n):
            with pytest.raises(CacheFull):
                self.layers(n, LAYERS, attended)
            return
        self.layers(n, LAYERS, attended)
        self.cache.commit()
        self.model.store(n)

    @rule(n=st.integers(1, 1) | st.integers(2, 25), then=st.sampled_from(["abort", "restart", "refused"]))
    def leave_unfinished(self, n: int, then: str) -> None:
        """One layer of a step, then something else."""
        if not self.fits(n):
            return
        self.layers(n, 1, True)
        if then == "refused":
            with pytest.raises(StepError):
                self.cache.commit()
        if then == "restart":
            # The same layer again begins the step anew; what a long prefill has overwritten is gone.
            self.model.overwrite(n)
            self.store(1, True)
            return
        self.cache.abort()
        self.model.overwrite(n)

    @rule(n=st.integers(1, 1) | st.integers(2, 9), m=st.integers(1, 9))
    def mix(self, n: int, m: int) -> None:
        """n tokens in layer 0, m in layer 1: the second begins a step of its own, and layer 0 is missing."""
        if n == m or not self.fits(max(n, m)):
            return
        self.layers(n, 1, True)
        self.model.overwrite(n)
        same = array("f", [0] * (m * DIM))
        self.cache.prefill(1, same, same, m)
        with pytest.raises(StepError, match="1 of 2 layers stored; layer 0 is missing"):
            self.cache.commit()
        self.cache.abort()

    @rule(n=st.just(1) | st.integers(0, 40))
    def rollback(self, n: int) -> None:
        if n > self.model.length:
            with pytest.raises(BadArgument):
                self.cache.rollback(n)
            return
        self.cache.rollback(n)
        self.model.rollback(n)

    @precondition(lambda self: self.model.capacity is None and self.model.length >= self.model.sinks)
    @rule(ahead=st.just(0) | st.integers(0, 100000))
    def seek(self, ahead: int) -> None:
        self.cache.seek(self.model.length + ahead)
        self.model.seek(self.model.length + ahead)

    @invariant()
    def same_as_the_model(self) -> None:
        if not hasattr(self, "cache"):
            return
        assert self.cache.length == self.model.length
        assert self.cache.visible() == self.model.visible()
        assert self.cache.check() == 0
        stats = self.cache.stats()
        assert stats["evicted_tokens"] == self.model.evicted
        assert stats["pending_layers"] == 0
        assert self.cache.kv_bytes == len(self.model.visible()) * self.token_bytes
        most = self.model.sinks + self.model.window - 1
        assert self.cache.sink_query_position(2) == min(self.model.length + 2, most)


CacheAgainstModel.TestCase.settings = settings(
    max_examples=120, stateful_step_count=25, deadline=None, derandomize=True
)
TestCacheAgainstModel = CacheAgainstModel.TestCase


def test_the_same_position_with_another_window() -> None:
    """Attend at 10, roll back to 10, drop the window, attend at 10: only itself is there to be seen."""
    cache = KVCache(Geometry(1, 1, 1, DIM, window=16, sinks=0), kernels=kernels.get("plain"))
    same, out = array("f", [0] * DIM), array("f", [0] * DIM)
    for t in range(11):
        v = array("f", [0] * DIM)
        v[t] = 1
        cache.append(0, same, v)
        cache.attend(0, same, out)
        cache.commit()
    cache.rollback(1)
    cache.seek(10)
    cache.append(0, same, v)
    cache.attend(0, same, out)
    assert list(out) == pytest.approx([float(c == 10) for c in range(DIM)], abs=1e-3)
