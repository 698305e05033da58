"""What fits: the plan's answer against that of the emulators, to `kvlab stories --window W --tokens 40`."""

import json
import math
import random
from dataclasses import replace

import pytest
import qemu_fixtures

from commandline.errors import BadInput
from kvlab import boards, cli, shipped, story
from kvlab.element_types import NAMES
from kvlab.models.llama2c import Config
from kvlab.plan import measure, planner, program, targets
from kvlab.plan.planner import Question
from mpy_kv.eviction.tokens import POLICIES
from mpy_kv.geometry import Geometry
from mpy_kv.token_eviction import setup

# float32 is for reference: its plain kernels allocate as they go, and take what room there is.
TYPES = [codec for codec in NAMES if codec != "float32"]
# Shapes that the constants were not measured with: the plan leaves room for holes in the heap.
MADE = {
    "multi-head": Config(96, 256, 3, 6, 6, 512, 512, True),
    "wide heads": Config(64, 172, 4, 4, 2, 512, 512, True),
    "deep": Config(32, 96, 9, 4, 1, 512, 512, True),
    "wide": Config(128, 344, 2, 8, 4, 512, 512, False),
}


def largest(board, subject, codec, policy):
    sinks = 0 if policy not in (None, program.RING) else story.USUAL_SINKS
    question = Question(1, codec, window=1, sinks=sinks, policy=policy)
    return planner.largest_window(subject.model, targets.of_board(board), question)


def tells(board, subject, codec, policy, window):
    """Whether the story is told in the board's heap."""
    asked = {"window": window, "codec": codec, "policy": policy}
    try:
        telling = story.Telling(tokens=40, **asked)
        return story.in_heap(board, subject.image, telling, board.machine.heap_bytes) is not None
    except BadInput as refused:
        if "trained for" in str(refused):
            return False
        raise


def agree(board, subject, codec, policy, part=0.02):
    """The plan's window runs; `part` of it and one token more do not."""
    if board.emulated:
        qemu_fixtures.built(qemu_fixtures.firmware_heap_bytes(board.machine.heap_bytes))
    window = largest(board, subject, codec, policy)
    if window:
        assert tells(board, subject, codec, policy, window), f"window {window} is refused"
    more = math.floor(window * (1 + part)) + 1
    if more == window:
        more += 1
    assert not tells(board, subject, codec, policy, more), f"the plan has {window}, and {more} is told"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", boards.names())
def test_the_story_of_every_board(name):
    agree(boards.load(name), measure.subjects()[shipped.NAMES[0]], "int8", None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", boards.names())
def test_the_command_tells_the_largest_window(name, capfd):
    """kvlab stories itself, as README has it."""
    qemu_fixtures.needed_by(name)
    window = largest(boards.load(name), measure.subjects()[shipped.NAMES[0]], "int8", None)
    for asked, status in ((window, 0), (math.floor(window * 1.02) + 1, 1)):
        if asked + story.USUAL_SINKS > 512:
            status = 0 if asked <= 512 else 2  # what the model was trained for
        words = ["--board", name, "--window", str(asked), "--tokens", "40"]
        assert cli.main(["stories", *words]) == status, (asked, capfd.readouterr().err)


def _small(name):
    return boards.load(name).machine.heap_bytes < 300_000


def questions(count=40):
    """(board, model, element type, policy) at random, always the same; small heaps oftener."""
    draw = random.Random(10)
    places = [name for name in boards.names() for _ in range(3 if _small(name) else 1)]
    found = []
    while len(found) < count:
        codec, policy = draw.choice(TYPES), draw.choice((None, None, *sorted(POLICIES)))
        one = (draw.choice(places), draw.choice(shipped.NAMES), codec, policy)
        if not (codec == "int4" and policy not in (None, program.RING)) and one not in found:
            found.append(one)
    return found


@pytest.mark.exhaustive
@pytest.mark.parametrize("asked", questions(), ids=lambda one: "-".join(map(str, one)))
def test_plan_and_emulator_agree(asked):
    name, model, codec, policy = asked
    agree(boards.load(name), measure.subjects()[model], codec, policy)


@pytest.mark.exhaustive
@pytest.mark.parametrize("codec", [codec for codec in TYPES if codec != "int4"])
def test_one_policy_that_weighs_stands_for_all(codec):
    """Of the largest window and the next one all tell the same."""
    board, subject = boards.load("rp2040"), measure.subjects()["stories"]
    window = largest(board, subject, codec, measure.POLICY)
    for asked in (window, window + 1):
        told = tells(board, subject, codec, measure.POLICY, asked)
        for policy in {*POLICIES} - {program.RING, measure.POLICY}:
            assert tells(board, subject, codec, policy, asked) is told, (policy, asked)


def refused(name):
    """[(subject, policy, element type, windows that are refused though a larger one is told)] of a board."""
    by_shape = json.loads((program.MEASURED / f"{name}.json").read_text())["refused"]
    assert set(by_shape) == {program.shape_of(subject.model) for subject in measure.subjects().values()}
    return [
        (subject, policy, codec, windows)
        for subject in measure.subjects().values()
        for kind, policy in ((measure.RING, None), (measure.WEIGHED, "heavy-hitters"))
        for codec, windows in by_shape[program.shape_of(subject.model)][kind].items()
    ]


def test_the_plan_refuses_what_was_refused(monkeypatch):
    """A board's tables may have such windows or none: here are three."""
    for name in program.BOARDS:
        for subject, policy, codec, windows in refused(name):
            most = largest(boards.load(name), subject, codec, policy)
            assert all(window < most < max(window * 1.03, window + 4) for window in windows)
    board, subject, codec, policy = boards.load("rp2040"), measure.subjects()["stories"], "sparse", "lfu"
    most = largest(board, subject, codec, policy)
    of_board, shape = program.of_board, program.shape_of(subject.model)
    by_kind = {measure.RING: {}, measure.WEIGHED: {codec: [most - 4, most - 3, most - 1]}}
    monkeypatch.setattr(program, "of_board", lambda *of: replace(of_board(*of), refused={shape: by_kind}))
    target = targets.of_board(board)
    assert largest(board, subject, codec, policy) == most
    for less, windows, more in ((5, (4, 3), 2), (2, (1,), 0)):
        for window in (most - n for n in windows):
            question = Question(1, codec, window=window, policy=policy)
            (why,) = planner.plan(subject.model, target, question).reasons
            assert f"a window of {window} leaves the heap of rp2040 in other pieces" in why
            assert f" than {most - less} and {most - more}, which fit" in why
            for other in ({"window": most - less}, {"window": most - more}, {"policy": None}):
                assert planner.fits(subject.model, target, replace(question, **other)), other
            for other in ({"batch": 2}, {"sinks": 1}):  # of which nothing is known
                reasons = planner.plan(subject.model, target, replace(question, **other)).reasons
                assert not any("pieces" in reason for reason in reasons), other


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", program.BOARDS)
def test_what_was_refused_is_refused(name):
    """If not: kvlab docs --write measured_NAME."""
    qemu_fixtures.needed_by(name)
    for subject, policy, codec, windows in refused(name):
        for window in windows:
            assert not tells(boards.load(name), subject, codec, policy, window), (codec, window)


@pytest.mark.exhaustive
@pytest.mark.parametrize("codec", ["int8", "int8-int4"])
@pytest.mark.parametrize("model", list(MADE))
@pytest.mark.parametrize("name", ["rp2040", "esp32s3"])
def test_another_shape_is_on_the_safe_side(name, model, codec):
    agree(boards.load(name), measure.made(MADE[model]), codec, None, part=0.2)


def test_the_plan_counts_a_policys_tables():
    for window, sinks, codec in ((1, 0, "int8"), (64, 4, "sparse"), (511, 0, "float16")):
        g = Geometry(2, 4, 2, 8, window=window, sinks=sinks, codec=codec)
        for policy in POLICIES:
            plan, at, worths = setup.table(g, *setup.check(g, policy, None))
            made = sum(len(x) * x.itemsize for x in (plan, at, *worths))
            copied = sum(len(x) * x.itemsize for x in (plan, at, worths[0]))
            assert program.table_bytes(window, sinks) == made + copied


@pytest.mark.parametrize("name", program.BOARDS)
def test_the_plan_has_the_windows_that_were_measured(name):
    """Of the models that ship, whatever the element type and policy."""
    board, subjects = boards.load(name), measure.subjects().values()
    windows = json.loads((program.MEASURED / f"{name}.json").read_text())["windows"]
    assert set(windows) == {program.shape_of(subject.model) for subject in subjects}
    for subject in subjects:
        for kind, policy in ((measure.RING, None), (measure.WEIGHED, "lfu")):
            found = windows[program.shape_of(subject.model)][kind]
            assert set(found) == {*TYPES} - ({"int4"} if policy else set())
            assert found == {codec: largest(board, subject, codec, policy) for codec in found}, kind


def test_the_constants_are_those_of_every_port_and_type():
    for name in boards.names():
        port = boards.load(name).machine.port
        of = name if name in program.BOARDS else program.STANDS_FOR_PORT[port]
        found = program.of_board(name, port)
        assert set(found.codecs) == {*TYPES} - {"int8"}
        for fact in (found.workspace, found.arrays, found.layer, found.policy, *found.codecs.values()):
            assert (fact.kind, fact.source) == ("measured", f"kvlab docs --write measured_{of}")
            assert fact.value >= 0


@pytest.mark.parametrize("most", [1, 16, 17, 120, 508])
def test_the_search_for_the_largest_window(most):
    """It asks for windows of 1..most, finds the largest whatever the guess, and from it in a few tries."""
    for true in sorted({0, 1, min(2, most), most // 3, most - 1, most}):
        for guess in sorted({0, 1, true - 3, true, true + 40, most, most + 9}):
            asked = []

            def told(window, true=true, asked=asked):
                assert 1 <= window <= most
                asked.append(window)
                return window <= true

            assert measure.largest(told, guess, most) == true
            assert guess != true or len(asked) <= 6


@pytest.mark.parametrize("refused", [{321, 322, 323, 324, 325}, {324}, {319, 322, 323, 326}, set()])
def test_the_search_ends_alike_wherever_it_begins(refused):
    """Where some windows below the largest are refused, too."""

    def told(window):
        assert 1 <= window <= 508
        return window <= 327 and window not in refused

    near = [at for at in sorted(refused) if at * 1.02 > 326]
    for guess in (1, 100, *range(310, 340), 508):
        assert measure.settled(told, measure.largest(told, guess, 508), 508) == (327, near), guess
    assert measure.settled(lambda _: False, 0, 508) == (0, [])
    assert measure.settled(lambda _: True, 508, 508) == (508, [])
