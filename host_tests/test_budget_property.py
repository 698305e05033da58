"""Any history of a BudgetCache against a model of a few lines: which positions are there, and how many left.

Which token is the victim the model reads from the cache; that it is the right one, test_token_policies.py
proves. Here: everything a cache can be told, in any order, refused calls and broken steps among it.
"""

from __future__ import annotations

import copy

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from injected import Injected
from test_budget import Fed
from test_budget_atomicity import FILES, Small
from token_reference import POLICIES

from mpy_kv.errors import BadArgument, CacheFull, StepError


class History(RuleBasedStateMachine):
    @initialize(
        policy=st.sampled_from(sorted(POLICIES)),
        window=st.integers(1, 7),
        sinks=st.integers(0, 3),
        recent=st.none() | st.integers(0, 1),
    )
    def begin(self, policy: str, window: int, sinks: int, recent: int | None) -> None:
        self.fed: Fed = Small(policy, window, sinks, recent=recent)
        self.window, self.sinks = window, sinks
        self.kept: list[int] = []  # of the ring
        self.length = self.evicted = 0

    def stored(self, n: int) -> None:
        """n tokens came."""
        new = [p for p in range(self.length, self.length + n) if p >= self.sinks]
        found = [p for p in self.fed.cache.visible() if p >= self.sinks]
        gone = [p for p in self.kept if p not in found]
        assert found == sorted([p for p in self.kept if p not in gone] + new)
        assert len(gone) == max(0, len(self.kept) + len(new) - self.window)
        self.kept, self.length, self.evicted = found, self.length + n, self.evicted + len(gone)

    @rule(attended=st.booleans())
    def step(self, attended: bool) -> None:
        self.fed.step(attended)
        self.stored(1)

    @rule(n=st.integers(1, 8))
    def prefill(self, n: int) -> None:
        free = self.window - len(self.kept) + max(0, self.sinks - self.length)
        if n > 1 and n > free:
            with pytest.raises(CacheFull):
                self.fed.prefill(n)
            return
        self.fed.prefill(n)
        self.stored(n)

    @rule(n=st.integers(0, 9))
    def rollback(self, n: int) -> None:
        if n > self.length:
            with pytest.raises(BadArgument):
                self.fed.cache.rollback(n)
            return
        self.fed.rollback(n)
        self.length -= n
        self.kept = [p for p in self.kept if p < self.length]

    @rule(ratio=st.sampled_from([0.02, 0.3, 0.5, 0.99, 1]), recent=st.integers(0, 3))
    def compress(self, ratio: float, recent: int) -> None:
        stay = max(1, int(len(self.kept) * ratio + 0.5)) if self.kept else 0
        safe = [p for p in self.kept if p >= self.length - recent]
        left = self.fed.cache.compress(ratio, recent)
        found = [p for p in self.fed.cache.visible() if p >= self.sinks]
        assert set(safe) <= set(found) <= set(self.kept)
        assert len(found) == len(self.kept) - left == max(stay, len(safe))
        self.kept, self.evicted = found, self.evicted + left

    @rule(refused=st.booleans())
    def leave_unfinished(self, refused: bool) -> None:
        """One layer of a step, then something else."""
        cache, fed = self.fed.cache, self.fed
        vector = fed.vectors(0)
        cache.append(0, vector, vector)
        if refused:
            with pytest.raises(StepError, match="1 of 2 layers stored"):
                cache.commit()
        else:
            cache.abort()

    @rule(at=st.integers(1, 900), error=st.sampled_from([MemoryError, KeyboardInterrupt]))
    def break_off(self, at: int, error: type[BaseException]) -> None:
        before = copy.deepcopy(self.fed.tags), self.fed.next
        with Injected(error, at, FILES) as injected:
            self.fed.step()
        if not injected.where:
            self.stored(1)
            return
        self.fed.tags, self.fed.next = before
        if self.fed.cache.length > self.length:  # the last lines of commit follow its last store
            self.fed.tags.append(self.fed.next)
            self.fed.next += 1
            self.stored(1)

    @invariant()
    def what_is_there(self) -> None:
        if not hasattr(self, "fed"):
            return
        cache = self.fed.cache
        assert cache.length == self.length == len(self.fed.tags)
        assert cache.visible() == [*range(min(self.sinks, self.length)), *self.kept]
        assert cache.evicted_tokens == self.evicted
        assert cache.check() == 0
        # Each is who it is said to be.
        for p in self.kept:
            assert cache.read(1, "k", p) == pytest.approx(self.fed.key(p), abs=0.03)


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=40, stateful_step_count=30, deadline=None, derandomize=True)
