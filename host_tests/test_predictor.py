"""The predictor of answer lengths: bins, quantiles against sorted lists, memory, other interpreters."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvlab.engine import compiled
from mpy_kv.admission import predictor as p
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.errors import BadArgument

DEVICE = Path(__file__).parent / "device"
sys.path.insert(0, str(DEVICE))
import admission as device  # noqa: E402

relaxed = settings(deadline=None, derandomize=True)
LENGTHS = st.lists(st.integers(0, 3000), min_size=1, max_size=60)


def taught(lengths: list[int], task: int = 3, **options: int) -> LengthPredictor:
    predictor = LengthPredictor(**{"least": 1, "memory": 60_000, **options})
    for length in lengths:
        predictor.observe(task, length)
    assert predictor.check() == 0
    return predictor


def edge(tokens: int) -> int:
    return p.edge_of(p.bin_of(tokens))


def test_bins_hold_every_length_within_an_eighth() -> None:
    """In order, without a gap, the last one where the longest answer is."""
    assert (p.bin_of(0), p.edge_of(0)) == (0, 0)
    for i in range(p.BINS):
        top = p.edge_of(i)
        assert p.bin_of(top) == i
        bottom = p.edge_of(i - 1) + 1 if i else 0
        assert p.bin_of(bottom) == i
        assert top <= bottom + bottom // 8
    assert p.edge_of(p.BINS - 1) == p.MOST_TOKENS


@relaxed
@given(LENGTHS, st.integers(1, 1000))
def test_a_quantile_is_that_of_the_sorted_list(lengths: list[int], per_mille: int) -> None:
    predictor = taught(lengths, per_mille=per_mille)
    rank = max(1, -(-len(lengths) * per_mille // 1000))
    assert predictor.predict(3, 1 << 20) == max(1, edge(sorted(lengths)[rank - 1]))


@relaxed
@given(LENGTHS, st.integers(0, 3500), st.integers(1, 1000))
def test_of_a_running_answer_only_longer_ones_count(lengths: list[int], done: int, per_mille: int) -> None:
    """Of those in the bin of done + 1 too: a bin is not taken apart."""
    predictor = taught(lengths, per_mille=per_mille)
    longer = sorted(n for n in lengths if not done or p.bin_of(n) >= p.bin_of(done + 1))
    said = predictor.predict(3, 1 << 20, done)
    if longer:
        rank = max(1, -(-len(longer) * per_mille // 1000))
        assert said == max(done + 1, edge(longer[rank - 1]))
    else:
        assert said == max(done + 1, 2 * done) if done else said == 1 << 20


@relaxed
@given(LENGTHS, st.integers(1, 5000), st.data())
def test_a_prediction_lies_beyond_what_is_done_and_within_the_limit(lengths, limit, data) -> None:
    done = data.draw(st.integers(0, limit - 1))
    assert done < taught(lengths).predict(3, limit, done) <= limit


def test_until_enough_is_known_all_tasks_are_asked_then_the_limit() -> None:
    predictor = LengthPredictor(least=4, per_mille=1000)
    for _ in range(3):
        predictor.observe(1, 10)
    assert predictor.predict(1, 500) == 500  # three answers are too few, of all tasks too
    predictor.observe(2, 100)
    assert predictor.predict(1, 500) == edge(100)  # four of all tasks
    assert predictor.predict(9, 500) == edge(100)  # never seen
    predictor.observe(1, 10)
    assert predictor.predict(1, 500) == 10  # four of its own
    assert predictor.predict(1, 500, 10) == 20  # one longer answer: too few
    assert predictor.predict(1, 15, 10) == 15
    assert (predictor.seen(1), predictor.seen(2), predictor.seen(9), predictor.seen(None)) == (4, 1, 0, 5)


def test_old_answers_fade() -> None:
    predictor = taught([1000] * 400, memory=64, per_mille=500)
    for _ in range(64):
        predictor.observe(3, 10)
    assert predictor.predict(3, 5000) == 10
    assert predictor.check() == 0
    assert predictor.seen(3) < 64


@pytest.mark.parametrize(("memory", "answers"), [(2, 1_000), (65_535, 70_000)])
def test_counts_never_overflow(memory: int, answers: int) -> None:
    predictor = taught([5] * answers, memory=memory)
    assert 0 < predictor.seen(3) < memory
    assert predictor.predict(3, 100) == 5


def test_tasks_are_kept_apart_and_exactly() -> None:
    """Ids that fall on the same row; then one more than there are rows, which shares the row of all."""
    predictor = LengthPredictor(tasks=4, least=1, per_mille=1000, memory=50)
    tasks = [1, 5, 1 + (1 << 28), p.MOST_TASK - 2]
    assert {task % 4 for task in tasks} == {1}
    for i, task in enumerate(tasks):
        predictor.observe(task, i + 1)
    assert [predictor.predict(task, 100) for task in tasks] == [1, 2, 3, 4]
    predictor.observe(9, 7)
    assert predictor.predict(9, 100) == 7  # the longest of all
    assert predictor.seen(9) == 0
    assert [predictor.predict(task, 100) for task in tasks] == [1, 2, 3, 4]
    assert predictor.check() == 0
    predictor.reset()
    assert (predictor.check(), predictor.seen(None), predictor.predict(1, 100)) == (0, 0, 100)
    predictor.observe(9, 7)
    assert predictor.seen(9) == 1


def test_longer_than_the_last_bin_counts_as_that_long() -> None:
    assert taught([1 << 29]).predict(3, 1 << 29) == p.MOST_TOKENS
    assert taught([5]).predict(3, 1 << 29, 1 << 28) == 1 << 29


def test_memory_is_what_it_says() -> None:
    predictor = LengthPredictor(tasks=16)
    arrays = (predictor._ids, predictor._totals, predictor._counts)
    assert predictor.memory_bytes() == sum(len(a) * a.itemsize for a in arrays)
    assert predictor.memory_bytes() < 4200


def test_check_sees_damage() -> None:
    for damage in (
        lambda q: q._counts.__setitem__(7, 3),
        lambda q: q._totals.__setitem__(3, 9),
        lambda q: q._ids.__setitem__(4, 3),
    ):
        predictor = taught([3, 4, 5])
        damage(predictor)
        assert predictor.check() > 0


ODD = (-1, 1 << 30, 1 << 31, 1.5, "4", None, True)


@pytest.mark.parametrize("value", ODD)
def test_wrong_arguments_change_nothing(value: object) -> None:
    predictor = taught([3, 400])
    before = bytes(predictor._counts), bytes(predictor._ids), bytes(predictor._totals)
    for name, call in (
        ("task", lambda: predictor.observe(value, 5)),
        ("tokens", lambda: predictor.observe(1, value)),
        ("task", lambda: predictor.predict(value, 5)),
        ("limit", lambda: predictor.predict(1, value)),
        ("done", lambda: predictor.predict(1, 5, value)),
        ("tasks", lambda: LengthPredictor(tasks=value)),
        ("per_mille", lambda: LengthPredictor(per_mille=value)),
        ("least", lambda: LengthPredictor(least=value)),
        ("memory", lambda: LengthPredictor(memory=value)),
    ):
        with pytest.raises(BadArgument, match=f"^{name} must be .*, got "):
            call()
    assert (bytes(predictor._counts), bytes(predictor._ids), bytes(predictor._totals)) == before


def test_limits_of_arguments() -> None:
    predictor = taught([3])
    for call in (lambda: predictor.predict(3, 0), lambda: predictor.predict(3, 5, 5)):
        with pytest.raises(BadArgument, match="got"):
            call()
    for options in ({"tasks": 0}, {"per_mille": 0}, {"per_mille": 1001}, {"memory": 1}, {"memory": 65536}):
        with pytest.raises(BadArgument, match=next(iter(options))):
            LengthPredictor(**options)
    with pytest.raises(BadArgument, match=r"least must be 1\.\.5"):
        LengthPredictor(least=6, memory=10)


@pytest.mark.parametrize("interpreter", ["upy", "qemu"])
def test_other_interpreters_give_the_same_answers(request, interpreter: str) -> None:
    """64 bits wide, and 32: numbers stay small on both."""
    operations = 2000 if interpreter == "upy" else 200
    run = request.getfixturevalue(interpreter).run
    said = json.loads(run(DEVICE / "admission.py", ["trace", 5, operations]))
    assert said == json.loads(json.dumps(device.trace(5, operations)))
    assert [part[1] for part in said] == [0, 0]  # broken invariants


def test_compiled_transitions_give_the_same_answers() -> None:
    plain = device.trace(6, 1500)
    with compiled.swapped(["mpy_kv.admission.predictor", "mpy_kv.admission.admission"]):
        assert p.quantile_bin.__class__.__name__ == "CPUDispatcher"
        assert device.trace(6, 1500) == plain
