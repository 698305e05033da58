"""Two sequences that are told the same, one of which is saved and loaded into a new one now and then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from snapshot_cases import SHAPE, Stream, load, plain, request, saved, step, vector

from mpy_kv import Geometry, snapshot
from mpy_kv.errors import CacheFull, NoRoom, OutOfRange
from mpy_kv.token_eviction import BudgetCache

POLICIES = ("window", "lru-peak", "window-lru", "heavy-hitters", "lfu", "lfu-decay")


def chosen(policy: str, window: int, sinks: int) -> Any:
    return lambda: BudgetCache(Geometry(**SHAPE, window=window, sinks=sinks), policy=policy)


class Twins(RuleBasedStateMachine):
    """kind: what make() is of."""

    kind = ""

    def made(self, draw: Any) -> Any:
        window, sinks = draw(st.integers(1, 40)), draw(st.integers(0, 3))
        if self.kind == "chosen":
            return chosen(draw(st.sampled_from(POLICIES)), window, sinks)
        shape = draw(st.sampled_from([{"window": window, "sinks": sinks}, {"capacity": 40 + window}]))
        if self.kind == "paged":
            return request(draw(st.integers(1, 9)), **shape)
        if self.kind == "sealed":
            return plain("int4", **shape)
        codec = draw(st.sampled_from(["int8", "int8-int4", "sparse", "float16", ["float16", "int8"]]))
        return plain(codec, **shape)

    @initialize(data=st.data())
    def begin(self, data: Any) -> None:
        self.make = self.made(data.draw)
        self.one, self.other = self.make(), self.make()
        self.told = 0

    def both(self, act: Any) -> None:
        found = []
        for cache in (self.one, self.other):
            try:
                found.append(act(cache))
            except (CacheFull, NoRoom) as error:
                found.append(str(error))
                cache.abort()
        assert found[0] == found[1]

    @rule(n=st.integers(1, 20))
    def steps(self, n: int) -> None:
        for _ in range(n):
            self.told += 1
            self.both(lambda cache: step(cache, self.told))

    @rule(n=st.integers(2, 45))
    def prefill(self, n: int) -> None:
        self.told += 1

        def act(cache: Any) -> None:
            rows = n * cache.geometry.width
            for layer in range(cache.geometry.layers):
                cache.prefill(layer, vector(rows, self.told), vector(rows, self.told + layer), n)
            if hasattr(cache, "ledger"):
                cache.commit(list(range(n)))
            else:
                cache.commit()

        self.both(act)

    @rule(part=st.integers(0, 100))
    def rollback(self, part: int) -> None:
        n = self.one.length * part // 100 if part < 50 else min(part - 50, self.one.length)
        self.both(lambda cache: cache.rollback(n))

    @rule(n=st.integers(1, 40))
    def break_off(self, n: int) -> None:
        """A prefill of which a value cannot be stored."""

        def act(cache: Any) -> None:
            rows = n * cache.geometry.width
            k = vector(rows, 5)
            k[-1] = float("nan")
            cache.prefill(0, k, k, n)
            cache.prefill(1, k, k, n)
            try:
                cache.commit()
            except OutOfRange:
                cache.abort()

        self.both(act)

    @precondition(lambda self: self.kind == "chosen")
    @rule(part=st.integers(1, 4))
    def compress(self, part: int) -> None:
        self.both(lambda cache: cache.compress((part, 4)))

    @rule(size=st.integers(16, 300))
    def move(self, size: int) -> None:
        """The other one is a new sequence from here on."""
        stream = Stream()
        snapshot.save(self.other, stream.write, buffer=bytearray(size))
        again = self.make()
        assert load(again, bytes(stream.data)) == len(self.other.visible())
        if self.kind != "paged":
            assert saved(again) == stream.data
        self.other = again

    @invariant()
    def same(self) -> None:
        if not hasattr(self, "one"):
            return
        one, other = self.one, self.other
        assert (one.length, one.evicted_tokens) == (other.length, other.evicted_tokens)
        assert one.visible() == other.visible()
        assert other.check() == 0


@pytest.mark.parametrize("kind", ["ring", "sealed", "chosen", "paged"])
def test_nobody_can_tell_which_was_moved(kind: str) -> None:
    machine = type(f"Twins of {kind}", (Twins,), {"kind": kind})
    case = machine.TestCase
    case.settings = settings(max_examples=12, stateful_step_count=14, deadline=None, derandomize=True)
    case("runTest").runTest()
