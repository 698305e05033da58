"""An exception at any line of a cache, or at any kernel call, leaves the committed tokens as they were.

Exceptions come from a trace function (before each line that cache.py, sequence.py,
attention.py and inspect.py execute) and from a
kernel set that raises before or after each of its calls. Afterwards the old length and the old tokens must be
there, and the step repeated must give the bytes and outputs of an undisturbed run.
"""

from __future__ import annotations

import copy
import functools
import itertools
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from injected import Injected
from kv_reference import Layout
from sampling import Sampled

import mpy_kv.attention
import mpy_kv.cache
import mpy_kv.inspect
import mpy_kv.sequence
from mpy_kv import Geometry, KVCache, kernels

FILES = (*(m.__file__ for m in (mpy_kv.cache, mpy_kv.sequence, mpy_kv.attention, mpy_kv.inspect)),)
SHAPE: dict[str, Any] = {"layers": 3, "heads": 1, "kv_heads": 1, "head_dim": 4, "group": 4}
WINDOW, SINKS = 4, 2


@functools.cache
def vectors(token: int, layer: int, count: int) -> array:
    """What a model would give for a token: `count` numbers, always the same."""
    rng = np.random.default_rng([token, layer, count])
    return array("f", rng.normal(size=count).tolist())


@functools.cache
def rows(first: int, n: int, layer: int, count: int) -> array:
    x = array("f")
    for token in range(first, first + n):
        x.extend(vectors(token, layer, count))
    return x


@dataclass
class Model:
    """Drives a cache as a model would. `tag` tells a token apart from another at the same position."""

    cache: KVCache
    outputs: dict = field(default_factory=dict)  # (position, layer) -> output

    def step(self, tag: int = 0) -> None:
        self.outputs.clear()
        p = self.cache.length
        for layer in range(3):
            q = vectors(p + tag, layer, 4)
            out = array("f", [0] * 4)
            self.cache.append(layer, vectors(p + tag, layer, 4), vectors(p + tag + 500, layer, 4))
            self.cache.attend(layer, q, out, vectors(p + tag + 900, layer, 4))
            self.outputs[p, layer] = out.tolist()
        self.cache.commit()

    def prefill(self, n: int, attended: bool = True) -> None:
        self.outputs.clear()
        p = self.cache.length
        for layer in range(3):
            self.cache.prefill(layer, rows(p, n, layer, 4), rows(p + 500, n, layer, 4), n)
            if attended:
                out = array("f", [0] * (4 * n))
                self.cache.attend(layer, rows(p, n, layer, 4), out, rows(p + 900, n, layer, 4), n)
                for i in range(n):
                    self.outputs[p + i, layer] = out[4 * i : 4 * i + 4].tolist()
        self.cache.commit()


def stored(cache: KVCache, positions: list[int] | None = None) -> list[bytes]:
    """Codes and scales of the visible tokens (or of `positions`) in every layer."""
    g = cache.geometry
    layout = Layout(**SHAPE, window=g.window, sinks=g.sinks, capacity=g.capacity)
    slots = [layout.slot(p) for p in (cache.visible() if positions is None else positions)]
    found = []
    for layer in range(3):
        for value in (False, True):
            codes, scales = layout.planes(bytes(cache.buffer), layer, value)
            found += [codes[:, slots].tobytes(), scales[:, slots].tobytes()]
    return found


def fed(tokens: int, **options: Any) -> KVCache:
    """A cache that has seen some single steps."""
    options = options or {"window": WINDOW, "sinks": SINKS}
    cache = KVCache(Geometry(**SHAPE, **options), kernels=kernels.get("plain"))
    model = Model(cache)
    for _ in range(tokens):
        model.step()
    return cache


class Failing:
    """Raises before or after call number `at` of any kernel."""

    name = "failing"

    def __init__(self, error: type[BaseException], at: int, after: bool) -> None:
        self.error, self.at, self.after = error, at, after
        self.seen = 0
        for name in kernels.NAMES:
            setattr(self, name, self._wrap(getattr(kernels.get("plain"), name)))

    def _wrap(self, real: Callable[..., int]) -> Callable[..., int]:
        def kernel(*arguments: Any) -> int:
            self.seen += 1
            if self.seen == self.at and not self.after:
                raise self.error("injected")
            done = real(*arguments)
            if self.seen == self.at:
                raise self.error("injected")
            return done

        return kernel


ERRORS = pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])


def broken_at_every_line(
    start: KVCache,
    act: Callable[[Model], None],
    error: type[BaseException],
    sampled: Sampled,
    stride: int = 1,
    opcodes: bool = False,
) -> Iterator[tuple[Model, str]]:
    """Copies of `start`, `act` broken off at line 1, 2, 3, ... of both files, then at each kernel."""
    for at in sampled(itertools.count(1, stride)):
        model = Model(copy.deepcopy(start))
        with Injected(error, at, FILES, opcodes=opcodes) as injected:
            act(model)
        if not injected.where:
            break
        yield model, f"{injected.where} (number {at})"
    assert at > 20 * stride, "nothing was injected"
    if opcodes:
        return
    for after in (False, True):
        for at in sampled(itertools.count(1)):
            model = Model(copy.deepcopy(start))
            failing = Failing(error, at, after)
            model.cache.attention[0].kernels = failing
            try:
                act(model)
            except error as found:
                if found.args != ("injected",):
                    raise
            else:
                break
            model.cache.attention[0].kernels = kernels.get("plain")
            yield model, f"kernel call {at}"


STARTS = {
    "empty": lambda: fed(0),
    "among the sinks": lambda: fed(1),
    "ring not full": lambda: fed(4),
    "ring full": lambda: fed(SINKS + WINDOW),
    "ring wrapped": lambda: fed(13),
    "no window": lambda: fed(5, capacity=9),
}


@pytest.mark.exhaustive
@ERRORS
@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_step_broken_off_anywhere(
    start: Callable[[], KVCache], error: type[BaseException], sampled: Sampled
) -> None:
    before = start()
    kept, visible = stored(before), before.visible()
    undisturbed = Model(copy.deepcopy(before))
    undisturbed.step()
    for model, where in broken_at_every_line(before, Model.step, error, sampled):
        cache = model.cache
        assert (cache.length, cache.visible()) == (before.length, visible), where
        assert stored(cache) == kept, where
        assert cache.check() == 0, where
        assert cache.stats()["evicted_tokens"] == before.evicted_tokens, where
        model.step()
        assert model.outputs == undisturbed.outputs, where
        assert stored(cache) == stored(undisturbed.cache), where
        assert cache.visible() == undisturbed.cache.visible(), where
        assert cache.stats() == undisturbed.cache.stats(), where
        assert cache.check() == 0, where


@pytest.mark.exhaustive
def test_a_step_broken_off_between_any_two_bytecodes(sampled: Sampled) -> None:
    before = fed(13)
    undisturbed = Model(copy.deepcopy(before))
    undisturbed.step()
    for model, where in broken_at_every_line(before, Model.step, KeyboardInterrupt, sampled, 11, True):
        assert model.cache.check() == 0, where
        if model.cache.length == before.length:  # the last bytecodes of commit follow its last store
            assert model.cache.visible() == before.visible(), where
            model.step()
        assert stored(model.cache) == stored(undisturbed.cache), where
        assert model.cache.stats() == undisturbed.cache.stats(), where


@pytest.mark.exhaustive
def test_a_query_of_the_sinks_comes_and_goes_whatever_is_broken_off(sampled: Sampled) -> None:
    """Whether the sinks have one is noted from step to step: after an exception it must not be half noted."""

    def alike(model: Model) -> None:
        """A step whose sinks are scored with the query itself."""
        p = model.cache.length
        for layer in range(3):
            out = array("f", [0] * 4)
            model.cache.append(layer, vectors(p, layer, 4), vectors(p + 500, layer, 4))
            model.cache.attend(layer, vectors(p, layer, 4), out)
            model.outputs[p, layer] = out.tolist()
        model.cache.commit()

    before = fed(9)
    undisturbed = Model(copy.deepcopy(before))
    alike(undisturbed)
    for model, where in broken_at_every_line(before, alike, MemoryError, sampled):
        alike(model)
        assert model.outputs == undisturbed.outputs, where


def roll_back_and_go_on(model: Model) -> None:
    if model.cache.length:
        model.cache.rollback(1)
    model.step(tag=70)


def prefill_two(model: Model) -> None:
    model.prefill(2)


def two_other_steps(model: Model) -> None:
    model.step(tag=40)
    model.step(tag=40)


CONTINUATIONS = [roll_back_and_go_on, prefill_two, two_other_steps]


@pytest.mark.exhaustive
@pytest.mark.parametrize("go_on", CONTINUATIONS)
@pytest.mark.parametrize("tokens", [4, 13])
def test_going_on_otherwise_after_a_broken_step(
    tokens: int, go_on: Callable[[Model], None], sampled: Sampled
) -> None:
    """What the broken step has left behind is not seen by whatever comes next."""
    before = fed(tokens)
    undisturbed = Model(copy.deepcopy(before))
    go_on(undisturbed)
    for model, where in broken_at_every_line(before, Model.step, KeyboardInterrupt, sampled):
        go_on(model)
        assert model.outputs == undisturbed.outputs, where
        assert stored(model.cache) == stored(undisturbed.cache), where
        assert model.cache.check() == 0, where


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("attended", "error"), [(True, MemoryError), (False, MemoryError), (False, KeyboardInterrupt)]
)
def test_a_prefill_that_overwrites_nothing_visible(
    attended: bool, error: type[BaseException], sampled: Sampled
) -> None:
    before = fed(3)
    undisturbed = Model(copy.deepcopy(before))
    undisturbed.prefill(3, attended)
    kept = stored(before)
    for model, where in broken_at_every_line(before, lambda m: m.prefill(3, attended), error, sampled):
        assert model.cache.length == 3, where
        assert stored(model.cache) == kept, where
        assert model.cache.check() == 0, where
        model.prefill(3, attended)
        assert model.outputs == undisturbed.outputs, where
        assert stored(model.cache) == stored(undisturbed.cache), where


@pytest.mark.exhaustive
@pytest.mark.parametrize("attended", [True, False], ids=["attended", "commit only"])
@pytest.mark.parametrize(("n", "stride"), [(2, 1), (4, 5), (7, 17)])
def test_a_long_prefill_cut_short_keeps_the_same_survivors_in_all_layers(
    n: int, stride: int, attended: bool, sampled: Sampled
) -> None:
    """Cut at every line, or at every 5th or 17th of those that its loops run through again and again."""
    before = fed(11)
    visible = before.visible()
    survived = set()
    without: dict[int, dict] = {}

    def again(model: Model) -> None:
        model.prefill(n, attended)

    stride = stride if attended else 1
    for model, where in broken_at_every_line(before, again, MemoryError, sampled, stride):
        cache = model.cache
        assert cache.length == 11, where
        kept = cache.visible()
        assert kept == [p for p in visible if p in kept], where
        assert kept[:SINKS] == [0, 1], where
        survived.add(len(kept))
        # Every survivor is what it was, in all layers.
        assert stored(cache) == stored(before, kept), where
        assert cache.check() == 0, where
        other = Model(copy.deepcopy(cache))
        for go_on, now in ((again, model), (Model.step, other)):
            go_on(now)
            assert now.cache.check() == 0, where
            # As in a run that never had the lost tokens.
            want = without[len(kept)] = without.get(len(kept)) or {}
            if go_on not in want:
                want[go_on] = Model(copy.deepcopy(before))
                want[go_on].cache.placement.floor = 11 - (len(kept) - SINKS)
                assert want[go_on].cache.visible() == kept
                go_on(want[go_on])
            assert now.outputs == want[go_on].outputs, where
            assert stored(now.cache) == stored(want[go_on].cache), where
            assert now.cache.visible() == want[go_on].cache.visible(), where
    if not sampled.whole:
        return
    assert len(survived) > 1, "no prefill was cut between two tokens"
    assert min(survived) == max(SINKS, SINKS + WINDOW + 1 - n)


def test_a_layer_cut_short_is_not_attended_again() -> None:
    """Its window may be overwritten: the prefill must be given again, which drops what was overwritten."""
    cache = fed(11)
    n = 6
    k, v = rows(11, n, 0, 4), rows(511, n, 0, 4)
    q, out = rows(11, n, 0, 4), array("f", [0] * (4 * n))
    cache.prefill(0, k, v, n)
    cache.attention[0].kernels = Failing(MemoryError, 40, False)
    with pytest.raises(MemoryError):
        cache.attend(0, q, out, q, n)
    cache.attention[0].kernels = kernels.get("plain")
    with pytest.raises(mpy_kv.errors.StepError, match=r"attend\(0\) was cut short"):
        cache.attend(0, q, out, q, n)
    with pytest.raises(mpy_kv.errors.StepError, match="0 of 3 layers stored; layer 0 is cut short"):
        cache.commit()
    assert cache.check() == 0


MOVES = {
    "rollback within the window": lambda m: m.cache.rollback(2),
    "rollback past the window": lambda m: m.cache.rollback(9),
    "rollback to nothing": lambda m: m.cache.rollback(13),
    "seek": lambda m: m.cache.seek(500),
    "abort": lambda m: m.cache.abort(),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("pending", [False, True], ids=["nothing pending", "step pending"])
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_rollback_and_seek_broken_off_anywhere(
    move: Callable[[Model], None], pending: bool, sampled: Sampled
) -> None:
    """The length is the old or the new one; no token is visible that was not, none that was never stored."""
    before = fed(13)
    if pending:
        before.append(0, vectors(13, 0, 4), vectors(513, 0, 4))
    done = Model(copy.deepcopy(before))
    move(done)
    after = done.cache.length
    done.step()
    for at in sampled(itertools.count(1)):
        model = Model(copy.deepcopy(before))
        with Injected(KeyboardInterrupt, at, FILES) as injected:
            move(model)
        if not injected.where:
            break
        cache, where = model.cache, injected.where
        assert cache.length in (13, after), where
        assert set(cache.visible()) <= set(before.visible()), where
        assert stored(cache) == stored(before, cache.visible()), where
        assert cache.check() == 0, where
        again = copy.deepcopy(cache)
        # Going on as if nothing had happened: attends itself and nothing that was dropped.
        Model(again).step()
        assert again.check() == 0, where
        assert again.visible()[-1] == again.length - 1, where
        if cache.length == 13:
            move(model)
        model.step()
        assert model.outputs == done.outputs, where
        assert stored(cache) == stored(done.cache), where
        assert cache.evicted_tokens == done.cache.evicted_tokens, where
    assert at > 5
