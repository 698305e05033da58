"""Any history of requests: results of a cache that runs alone, nobody's bytes changed, counts that add up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from paged_cases import CODECS, alone, prefill, requests_of, run, step, stored

from mpy_kv.errors import BadArgument, BadHandle, CacheFull, Locked, NoRoom
from mpy_kv.paged.request import Request

MANY = 4
IDS = st.integers(0, 1)  # few, so that prefixes meet


class History(RuleBasedStateMachine):
    """`known` is the model: of each open request its tokens, as a list."""

    @initialize(
        block_tokens=st.sampled_from([1, 2, 3, 4]),
        blocks=st.integers(1, 14),
        window=st.sampled_from([None, None, 5, 8]),
        sinks=st.sampled_from([0, 2]),
        codec=st.sampled_from(CODECS),
    )
    def begin(self, block_tokens: int, blocks: int, window: int | None, sinks: int, codec: str) -> None:
        shape = {"capacity": 24} if window is None else {"capacity": None, "window": window, "sinks": sinks}
        shape["codec"] = codec
        options = {"max_requests": MANY, "max_pins": 2, "pin_blocks": blocks, "block_tokens": block_tokens}
        self.requests = requests_of(blocks, **shape, **options)
        self.known: list[tuple[Request, list[int]]] = []
        self.pins: list[int] = []
        self.whole = window is None

    def pick(self, which: int) -> tuple[Request, list[int]]:
        return self.known[which % len(self.known)]

    @rule(
        tokens=st.lists(IDS, max_size=12),
        reserve=st.sampled_from([0, 0, 3, 8]),
        limit=st.sampled_from([None, 9, 24]),
        salt=st.sampled_from([b"", b"", b"a"]),
    )
    def open(self, tokens: list[int], reserve: int, limit: int | None, salt: bytes) -> None:
        before = self.requests.stats()
        try:
            one = self.requests.open(
                tokens=tokens, reserve_tokens=reserve, limit_tokens=limit, salt=salt, pin_tokens=8
            )
        except NoRoom:
            assert self.requests.stats() == before
            return
        assert one.length % self.requests.geometry.block_tokens == 0
        assert one.length < max(len(tokens), 1)
        self.known.append((one, tokens[: one.length]))

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, MANY), tokens=st.lists(IDS, min_size=1, max_size=6), at_once=st.booleans())
    def go_on(self, which: int, tokens: list[int], at_once: bool) -> None:
        one, told = self.pick(which)
        others = [(o, stored(o)) for o, _ in self.known if o is not one]
        before = stored(one)
        try:
            if at_once:
                prefill(one, tokens)
                told += tokens
            else:
                for token in tokens:
                    step(one, token)
                    told.append(token)
        except (NoRoom, CacheFull):
            one.abort()
            assert not at_once or stored(one) == before
        assert one.length == len(told)
        assert all(stored(o) == kept for o, kept in others)

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, MANY), token=IDS)
    def compare(self, which: int, token: int) -> None:
        """What a request holds and sees is what a cache of its own would."""
        one, told = self.pick(which)
        if self.whole and one.length < 24:
            try:
                assert step(one, token) == alone([*told, token], self.requests)[-1]
            except NoRoom:
                one.abort()
            else:
                told.append(token)

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, MANY), reserve=st.sampled_from([0, 0, 5]))
    def fork(self, which: int, reserve: int) -> None:
        one, told = self.pick(which)
        try:
            two = one.fork(reserve_tokens=reserve)
        except NoRoom:
            return
        assert stored(two) == stored(one)
        self.known.append((two, list(told)))

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, MANY), tokens=st.integers(0, 24))
    def reserve(self, which: int, tokens: int) -> None:
        one, _ = self.pick(which)
        before = self.requests.stats()
        try:
            one.reserve(tokens)
        except (NoRoom, BadArgument):
            assert self.requests.stats() == before

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, MANY), back=st.integers(0, 9))
    def rollback(self, which: int, back: int) -> None:
        one, told = self.pick(which)
        back = min(back, len(told))
        kept = [p for p in one.visible() if p < len(told) - back]
        one.rollback(back)
        del told[len(told) - back :]
        assert one.visible() == kept

    @precondition(lambda self: self.known)
    @rule(which=st.integers(0, MANY), lock=st.booleans())
    def close(self, which: int, lock: bool) -> None:
        pair = self.pick(which)
        if lock:
            pair[0].lock()
            with pytest.raises(Locked):
                pair[0].close()
            pair[0].unlock()
        pair[0].close()
        with pytest.raises(BadHandle):
            pair[0].close()
        self.known.remove(pair)

    @precondition(lambda self: self.known and self.whole)
    @rule(which=st.integers(0, MANY))
    def pin(self, which: int) -> None:
        one, told = self.pick(which)
        full = len(told) // self.requests.geometry.block_tokens
        if full:
            try:
                self.pins.append(self.requests.pin(one))
            except NoRoom:
                return
            found = self.requests.stats()["pinned_blocks"]
            assert found >= full

    @precondition(lambda self: self.pins)
    @rule()
    def unpin(self) -> None:
        pin = self.pins.pop()
        self.requests.unpin(pin)
        with pytest.raises(BadHandle):
            self.requests.unpin(pin)

    @invariant()
    def sound(self) -> None:
        if not hasattr(self, "requests"):
            return
        assert self.requests.check() == 0
        stats: dict[str, Any] = self.requests.stats()
        total = stats["free_blocks"] + stats["evictable_blocks"] + stats["referenced_blocks"]
        assert total == stats["total_blocks"]
        assert stats["protected_blocks"] + stats["private_blocks"] == stats["referenced_blocks"]
        assert min(stats.values()) >= 0
        assert all(one.check() == 0 and one.length == len(told) for one, told in self.known)

    def teardown(self) -> None:
        if not hasattr(self, "requests"):
            return
        for one, _ in self.known:
            one.close()
        for pin in self.pins:
            self.requests.unpin(pin)
        assert self.requests.stats()["referenced_blocks"] == 0
        assert self.requests.stats()["available_blocks"] == self.requests._ledger.n
        assert self.requests.check() == 0


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=80, stateful_step_count=30, deadline=None, derandomize=True)


def test_the_model_sees_what_is_shared() -> None:
    """Two equal prompts share blocks, or the machine above tests nothing of it."""
    requests = requests_of(12)
    one = requests.open()
    run(one, [0, 1] * 6)
    two = requests.open(tokens=[0, 1] * 6)
    assert two.length == 8
    assert stored(two) == stored(one)[: len(stored(two))]
