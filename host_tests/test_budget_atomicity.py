"""An exception before any line of a BudgetCache leaves the tokens, their worth and all counts as they were,
or as the call was to make them. Whatever comes next is what would have come without it.

Lines are those of mpy_kv/token_eviction, sequence.py and the plain kernels of the policies; each is cut where
it runs first and where it runs last.
"""

from __future__ import annotations

import contextlib
import copy
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from injected import Injected
from sampling import Sampled
from test_budget import Fed

import mpy_kv.attention
import mpy_kv.eviction.tokens
import mpy_kv.sequence
import mpy_kv.token_eviction
from mpy_kv.errors import StepError
from mpy_kv.eviction.tokens import params as T

FILES = (
    str(Path(mpy_kv.token_eviction.__file__).parent),
    mpy_kv.sequence.__file__,
    mpy_kv.attention.__file__,
    str(Path(mpy_kv.eviction.tokens.__file__).with_name("plain.py")),
)


class Small(Fed):
    shape = {"layers": 2, "heads": 1, "kv_heads": 1, "head_dim": 4}


def state(fed: Fed) -> dict[str, Any]:
    """All that a caller can see, and what decides later victims."""
    cache = fed.cache
    visible = cache.visible()
    bank = cache.worth[cache.plan[T.BANK]]
    found = {"visible": visible, "evicted": cache.evicted_tokens, "length": cache.length}
    found["worth"] = {x - 1: w for x, w in zip(cache.at, bank) if 0 < x <= cache.length}
    found["halved"] = list(bank[cache.plan[T.RING] :])
    for layer in (0, 1):
        for which in "kv":
            places = [cache.place(layer, which, p) for p in visible]
            found[which, layer] = [bytes(cache.buffer[codes : codes + 4]) for codes, _ in places]
            found["scales", which, layer] = [bytes(cache.buffer[at : at + 2]) for _, at in places]
    return found


class Recorded(Injected):
    """Which lines run, in their order; raises nothing."""

    def __init__(self) -> None:
        super().__init__(KeyboardInterrupt, 0, FILES)
        self.lines: list[tuple[str, int]] = []

    def _local(self, frame: FrameType, event: str, about: Any) -> Any:
        if event == "line":
            self.lines.append((frame.f_code.co_filename, frame.f_lineno))
        return super()._local(frame, event, about)


def broken_off(
    before: Fed, act: Callable[[Fed], Any], error: type[BaseException], sampled: Sampled
) -> Iterator[tuple[Fed, str]]:
    """Copies of `before`, the act broken off at each line's first run, and at its last."""
    with Recorded() as recorded:
        act(copy.deepcopy(before))
    lines = recorded.lines
    ends = {line: at for at, line in enumerate(lines, 1)}
    starts = {line: len(lines) - at for at, line in enumerate(reversed(lines))}
    moments = sorted({*ends.values(), *starts.values()})
    assert moments, "nothing was injected"
    for at in sampled(moments):
        fed = copy.deepcopy(before)
        with Injected(error, at, FILES) as injected:
            act(fed)
        yield fed, f"{injected.where} (number {at})"


def filled(policy: str, steps: int = 13, window: int = 5, sinks: int = 1) -> Fed:
    fed = Small(policy, window, sinks)
    for _ in range(steps):
        fed.step()
    return fed


def with_gaps(policy: str) -> Fed:
    """Tokens rolled back, and some compressed away: the next step moves what lies behind the gaps."""
    fed = filled(policy, 16, 6)
    fed.rollback(2)
    fed.cache.compress(0.6)
    fed.step()
    fed.rollback(1)
    return fed


STARTS: dict[str, Callable[[str], Fed]] = {
    "empty": lambda policy: filled(policy, 0),
    "a place free": lambda policy: filled(policy, 4),
    "full": filled,
    "gaps": with_gaps,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("start", "policy", "error"),
    [
        ("empty", "lru-attention", MemoryError),
        ("a place free", "lru-attention", KeyboardInterrupt),
        ("full", "lfu", KeyboardInterrupt),
        ("full", "window", MemoryError),
        ("gaps", "lfu", MemoryError),
    ],
)
def test_a_step_broken_off_anywhere(
    start: str, policy: str, error: type[BaseException], sampled: Sampled
) -> None:
    before = STARTS[start](policy)
    was = state(copy.deepcopy(before))
    undisturbed = copy.deepcopy(before)
    outs = undisturbed.step()
    then = state(undisturbed)
    for fed, where in broken_off(before, lambda fed: fed.step(), error, sampled):
        assert state(fed) == was, where
        assert fed.cache.check() == 0, where
        assert fed.step() == outs, where
        assert state(fed) == then, where


@pytest.mark.exhaustive
def test_a_step_broken_off_between_two_bytecodes(sampled: Sampled) -> None:
    before = filled("lfu")
    was = state(copy.deepcopy(before))
    undisturbed = copy.deepcopy(before)
    undisturbed.step()
    then = state(undisturbed)
    for at in sampled(range(1, 1 << 30, 101)):
        fed = copy.deepcopy(before)
        with Injected(KeyboardInterrupt, at, FILES, opcodes=True) as injected:
            fed.step()
        if not injected.where:
            break
        now = state(fed)
        assert now in (was, then), injected.where
        if now == was:
            fed.step()
        assert state(fed) == then, injected.where
    assert at > 2000


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", ["empty", "gaps"])
def test_a_prefill_broken_off_anywhere(start: str, sampled: Sampled) -> None:
    before = STARTS[start]("lru-attention")
    was = state(copy.deepcopy(before))
    n = 2
    assert n <= before.room()
    undisturbed = copy.deepcopy(before)
    undisturbed.prefill(n)
    then = state(undisturbed)
    for fed, where in broken_off(before, lambda fed: fed.prefill(n), MemoryError, sampled):
        assert state(fed) == was, where
        with contextlib.suppress(StepError):  # unless it was the commit that was cut
            copy.deepcopy(fed).cache.commit()
        fed.prefill(n)
        assert state(fed) == then, where


def pending(fed: Fed) -> None:
    """A step begun, its victim chosen."""
    fed.cache.append(0, *[x[:] for x in (VECTOR, VECTOR)])


VECTOR = array("f", [0.5] * 4)

MOVES: dict[str, Callable[[Fed], Any]] = {
    "rollback": lambda fed: fed.cache.rollback(2),
    "rollback of evicted tokens": lambda fed: fed.cache.rollback(9),
    "rollback of all": lambda fed: fed.cache.rollback(fed.cache.length),
    "compress": lambda fed: fed.cache.compress(0.5),
    "compress to one": lambda fed: fed.cache.compress(0.01),
    "compress but the newest": lambda fed: fed.cache.compress(0.2, 2),
    "abort": lambda fed: fed.cache.abort(),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("begun", [False, True], ids=["nothing pending", "step pending"])
@pytest.mark.parametrize("move", MOVES)
def test_other_calls_broken_off_anywhere(move: str, begun: bool, sampled: Sampled) -> None:
    """All of it has happened, or nothing; and the next step, which settles it, may be broken off too."""
    act = MOVES[move]
    before = filled("lru-attention")
    if begun:
        pending(before)
    was = state(copy.deepcopy(before))
    done = copy.deepcopy(before)
    act(done)
    then = state(copy.deepcopy(done))
    done.tags = done.tags[: done.cache.length]
    outs = done.step()
    end = state(done)
    for fed, where in broken_off(before, act, KeyboardInterrupt, sampled):
        again = copy.deepcopy(fed)
        for cut in (1, 7, 19, 31, 47):
            with Injected(MemoryError, cut, FILES):
                again.step()
        for one in (fed, again):
            now = state(one)
            assert now in (was, then) or move == "abort", (where, now)
            if now != then:
                act(one)
            assert one.step() == outs, where
            assert state(one) == end, where


@pytest.mark.exhaustive
def test_a_committed_step_not_yet_settled_survives_anything(sampled: Sampled) -> None:
    """What a commit decided is in force from its store of the length on, whoever looks first."""
    before = filled("lfu")
    assert before.cache.plan[T.SINCE] == before.cache.length
    for act in (
        lambda fed: fed.cache.visible(),
        lambda fed: fed.cache.rollback(1),
        lambda fed: fed.cache.abort(),
        lambda fed: fed.cache.compress(1),
        lambda fed: fed.cache.evicted_tokens,
        lambda fed: fed.cache.place(0, "k", 12),
    ):
        want = copy.deepcopy(before)
        act(want)
        then = state(want)
        for fed, where in broken_off(before, act, KeyboardInterrupt, sampled):
            if fed.cache.length == before.cache.length:
                act(fed)
            assert state(fed) == then, where
