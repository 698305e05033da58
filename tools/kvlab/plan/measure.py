"""Measures what the stories app takes of a board's heap beside the cache's buffer, and writes measured/.

The question is `kvlab stories --board B --window W --tokens 40`, with default sampling and no prompt. For the
models that ship the largest window is found in the board's own heap, with each element type, with and without
a policy that weighs tokens: what the heap has beside that window's buffer is what the plan counts, so its
answer is the window that was found. A window that is a little smaller may be refused, where it leaves the
heap in other pieces: such are kept, too. For other shapes models are made here, whose random weights no one
hears: a broad one whose workspace is large and deep ones with many layers, so that each of the two moments in
which most is needed decides once. Of these the smallest heap is found for one window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from commandline.errors import FellShort
from kvlab import boards, shipped, story
from kvlab.boards import Board
from kvlab.element_types import HELD, SEALED, USUAL
from kvlab.models import image as images
from kvlab.models import llama2c
from kvlab.models.load import load_checkpoint
from kvlab.plan import llama, planner, program, targets
from kvlab.plan.shape import Model
from mpy_kv import geometry_for

RESOLUTION_BYTES = 512  # to which a smallest heap is found
TOKENS = 2  # a token allocates nothing, so these need what 40 do
STEP_BYTES = 2048  # how far from a guess the search for it begins
WINDOW = 96  # of the models that are made here, whose buffer is one object on every board
NEAR = 0.02  # part of a window by which the search for the largest begins, and within which pieces decide
RING, WEIGHED = "ring", "weighed"  # the newest tokens stay; a policy weighs them
POLICY = "lru-peak"  # all that weigh tokens have the same code and tables: host_tests/test_fits.py
BROAD = llama2c.Config(32, 1024, 1, 4, 2, 512, 512, True)
DEEP = llama2c.Config(32, 48, 16, 4, 2, 512, 512, True)
DEEPER = llama2c.Config(32, 48, 24, 4, 2, 512, 512, True)


@dataclass(frozen=True)
class Subject:
    """A model as a board has it, and as the planner sees it."""

    image: bytes
    model: Model


def subjects() -> dict[str, Subject]:
    """Every model that comes with the repository, by name."""
    found = {}
    for name in shipped.NAMES:
        image = images.Image.read(shipped.image(name))
        found[name] = Subject(image.data, _model(image.config))
    return found


@cache
def made(c: llama2c.Config) -> Subject:
    """A model of that shape with random weights and the shipped tokenizer."""
    random = np.random.RandomState(1)
    values = {name: random.standard_normal(shape).astype(np.float32) for name, shape in _shapes(c).items()}
    weights = llama2c.Weights(**{**values, "classifier": values["embed"]})
    checkpoint = llama2c.Checkpoint(Path("made"), "legacy", c, weights, 0)
    words = load_checkpoint(shipped.checkpoint(shipped.NAMES[0]))[1]
    shifts = np.full((c.layers, 3), 8, np.int8)
    return Subject(images.convert(checkpoint, words, shifts=shifts), _model(c))


def _shapes(c: llama2c.Config) -> dict[str, tuple[int, ...]]:
    return {name: shape for name, shape in llama2c.shapes(c).items() if name != "classifier"}


def _model(c: llama2c.Config) -> Model:
    return llama.of_llama(c, "measured", "measured", 0)


def needed(board: Board, subject: Subject, guess: int, **asked: Any) -> tuple[int, dict[str, Any]]:
    """The smallest heap of `board`, to RESOLUTION_BYTES, in which the story is told, and what it said."""
    telling = story.Telling(tokens=TOKENS, **asked)

    def tells(heap: int) -> dict[str, Any] | None:
        return story.in_heap(board, subject.image, telling, heap)

    good, seen, step = guess, tells(guess), STEP_BYTES
    bad = guess if seen is None else guess - step
    while seen is None:
        if step > board.machine.heap_bytes:
            raise FellShort(f"{board.title} has no room for window {asked['window']}, whatever the heap")
        good = bad + step
        seen, step = tells(good), 2 * step
        bad = bad if seen is not None else good
    while bad < guess and (lower := tells(bad)) is not None:
        good, seen, step = bad, lower, 2 * step
        bad = good - step
    while good - bad > RESOLUTION_BYTES:
        middle = (good + bad) // 2
        lower = tells(middle)
        if lower is None:
            bad = middle
        else:
            good, seen = middle, lower
    return good, seen


def beyond(window: int) -> int:
    """The window that is NEAR of it and one token larger."""
    return int(window * (1 + NEAR)) + 1


def largest(told: Callable[[int], bool], guess: int, most: int) -> int:
    """A window up to `most` that is told while the next one is not, 0 if none is told; `guess` is where the
    search begins, see `settled`."""
    low = high = min(max(guess, 1), most)
    if told(low):
        high = beyond(low)
        while high <= most and told(high):
            low, high = high, beyond(high)
        high = min(high, most + 1)
        if high == most + 1 and low < most and told(most):
            return most
    else:
        step = beyond(high) - high
        low = max(0, high - step)
        while low and not told(low):
            high, step = low, 2 * step
            low = max(0, low - step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if told(middle) else (low, middle)
    return low


def settled(told: Callable[[int], bool], window: int, most: int) -> tuple[int, list[int]]:
    """What a search ends with wherever it began: the largest window that is told, `window` or one that is
    less than NEAR above another told one, and those less than NEAR below it that are refused. Below `most`,
    where there is room to spare, none is looked for."""
    at = window
    while window and at < min(beyond(window), most):
        at += 1
        if told(at):
            window = at
    near = range(1, window) if window < most else ()
    return window, [at for at in near if beyond(at) >= window and not told(at)]


@dataclass(frozen=True)
class Found:
    """The largest window of a model on a board, the heap that it leaves beside its buffer and the tables of a
    policy, and the windows a little smaller that are refused."""

    window: int
    beside: int
    refused: list[int]


class Heap:
    """Measures one board."""

    def __init__(self, board: Board, done: Callable[[int], None]) -> None:
        self._board, self._done = board, done
        self._target = targets.of_board(board)
        self._off = 1.0  # what was found of what the plan has, the last time

    def window(self, subject: Subject, codec: str, policy: str | None) -> Found:
        """Of a model with that element type and policy."""
        model, heap = subject.model, self._board.machine.heap_bytes
        asked: dict[str, Any] = {"codec": codec, "policy": policy}
        sinks = 0 if policy else story.USUAL_SINKS
        question = planner.Question(1, codec, window=1, sinks=sinks, policy=policy)
        assert model.seq_len is not None
        most = model.seq_len - sinks
        buffers: dict[int, int] = {}

        @cache
        def told(window: int) -> bool:
            telling = story.Telling(tokens=TOKENS, window=window, **asked)
            seen = story.in_heap(self._board, subject.image, telling, heap)
            if seen is not None:
                buffers[window] = seen["buffer_bytes"]
            return seen is not None

        planned = planner.largest_window(model, self._target, question)
        window, refused = settled(told, largest(told, round(planned * self._off), most), most)
        self._off = window / planned if planned and 0 < window < most else 1.0
        shown = max(window, 1)
        buffer = _buffer_bytes(model, codec, shown, sinks)
        if 0 < window < most:
            assert buffer == buffers[window], (buffer, buffers[window])
        else:  # this heap has room for more, or too little
            parts = self._target.beside(model, sinks, codec, policy, shown)
            guess = buffer + sum(part.bytes for part in parts)
            smallest = needed(self._board, subject, guess, window=shown, **asked)[0]
            heap = min(heap, smallest) if window else smallest
        self._done(1)
        tables = program.table_bytes(shown, sinks) if policy else 0
        return Found(window, heap - buffer - tables, refused)

    def beside(self, subject: Subject) -> int:
        """What a model that was made needs beside the buffer of WINDOW tokens in int8."""
        buffer = _buffer_bytes(subject.model, USUAL, WINDOW, story.USUAL_SINKS)
        parts = self._target.beside(subject.model, story.USUAL_SINKS, USUAL, None, WINDOW)
        start = sum(part.bytes for part in parts)
        heap = needed(self._board, subject, buffer + start, window=WINDOW)[0]
        self._done(1)
        return heap - buffer


def measure(name: str, done: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
    """What measured/ holds of a board."""
    board = boards.load(name)
    heap = Heap(board, done)

    def arrays(subject: Subject) -> int:
        return program.array_bytes(subject.model, story.USUAL_SINKS, board.memory_mapped_flash)

    shapes: dict[str, dict[str, dict[str, int]]] = {}
    windows: dict[str, dict[str, dict[str, int]]] = {}
    refused: dict[str, dict[str, dict[str, list[int]]]] = {}
    for subject in sorted(subjects().values(), key=lambda each: program.shape_of(each.model)):
        found: dict[str, dict[str, Found]] = {RING: {}, WEIGHED: {}}
        for kind, policy in ((RING, None), (WEIGHED, POLICY)):
            for codec in HELD:
                if policy is None or codec != SEALED:  # its blocks cannot lose a single token
                    found[kind][codec] = heap.window(subject, codec, policy)
        shape = program.shape_of(subject.model)
        shapes[shape] = {kind: {c: one.beside for c, one in by.items()} for kind, by in found.items()}
        windows[shape] = {kind: {c: one.window for c, one in by.items()} for kind, by in found.items()}
        refused[shape] = {
            kind: {c: one.refused for c, one in by.items() if one.refused} for kind, by in found.items()
        }
    deep = {c.layers: heap.beside(made(c)) - arrays(made(c)) for c in (DEEP, DEEPER)}
    layer = -(-(deep[DEEPER.layers] - deep[DEEP.layers]) // (DEEPER.layers - DEEP.layers))
    broad = heap.beside(made(BROAD)) - 2 * program.workspace_bytes(made(BROAD).model)
    plain = {codec: [by[RING][codec] - by[RING][USUAL] for by in shapes.values()] for codec in HELD}
    watching = [more - by[RING][codec] for by in shapes.values() for codec, more in by[WEIGHED].items()]
    command = f"kvlab docs --write measured_{name}"
    return {
        "workspace": _fact(
            [broad + program.HOLES_BYTES], command, "beside the buffer, the app's workspace and its copy"
        ),
        "arrays": _fact(
            [deep[DEEP.layers] - layer * DEEP.layers + program.HOLES_BYTES],
            command,
            "beside the buffer, the app's arrays and the objects of each layer",
        ),
        "layer": _fact([layer], command, "objects of a layer"),
        "codecs": {
            codec: _fact(more, command, "more than int8, beside the buffers")
            for codec, more in plain.items()
            if codec != USUAL
        },
        "policy": _fact(watching, command, "more than a ring, beside its tables"),
        "shapes": shapes,
        "windows": windows,
        "refused": refused,
    }


def _buffer_bytes(model: Model, codec: str, window: int, sinks: int) -> int:
    shape = (model.layers, model.heads, model.kv_heads, model.head_dim)
    return int(geometry_for(codec, *shape, window=window, sinks=sinks).bytes())


def _fact(figures: Sequence[int], command: str, note: str) -> dict[str, Any]:
    """The largest of them as a fact; never below 0."""
    return {"value": max(0, *figures), "kind": "measured", "source": command, "note": note}
