"""Measures what the stories app takes of a heap beside the cache's buffer, and writes measured.json.

Each figure is the smallest heap that `kvlab stories --window W --tokens 40` runs in, with default sampling
and no prompt, less the buffer and what program.py counts by shape. The shipped models are measured with each
element type, and others that are made here, whose random weights no one hears: a broad one whose workspace is
large and deep ones with many layers, so that each of the two moments in which most is needed decides once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kvlab import boards, paths, story
from kvlab.boards import Board
from kvlab.models import image as images
from kvlab.models import llama2c
from kvlab.models.load import load_checkpoint
from kvlab.plan import llama, program, targets
from kvlab.plan.shape import Model
from mpy_kv import geometry_for
from mpy_kv.codecs import NAMES

# Boards whose heap does not hold all that the model was trained for.
BOARDS = ("rp2040", "esp32", "esp32c3", "esp32s3", "qemu_arm")
RESOLUTION_BYTES = 512
TOKENS = 2  # a token allocates nothing, so these need what 40 do
STEP_BYTES = 512  # how far from a guess the search begins
WINDOWS = (128, 256)  # of int8; of the others the first one
HOLES_BYTES = 2048  # by which another shape may find its holes smaller
# float32 is for reference: plain kernels, which allocate as they go.
TYPES = [codec for codec in NAMES if codec != "float32"]
POLICY = "lru-peak"  # all that weigh tokens have the same code and tables
BROAD = llama2c.Config(32, 1024, 1, 4, 2, 512, 512, True)
DEEP = llama2c.Config(32, 48, 16, 4, 2, 512, 512, True)
DEEPER = llama2c.Config(32, 48, 24, 4, 2, 512, 512, True)


@dataclass(frozen=True)
class Subject:
    """A model as a board has it, and as the planner sees it."""

    image: bytes
    model: Model


def shipped() -> list[Subject]:
    """Every model that comes with the repository."""
    found = []
    for path in sorted(paths.SHIPPED.parent.glob("*.mkvm")):
        image = images.Image.read(path)
        found.append(Subject(image.data, _model(image.config)))
    return found


@cache
def made(c: llama2c.Config) -> Subject:
    """A model of that shape with random weights and the shipped tokenizer."""
    random = np.random.RandomState(1)
    values = {name: random.standard_normal(shape).astype(np.float32) for name, shape in _shapes(c).items()}
    weights = llama2c.Weights(**{**values, "classifier": values["embed"]})
    checkpoint = llama2c.Checkpoint(Path("made"), "legacy", c, weights, 0)
    words = load_checkpoint(paths.SHIPPED.with_suffix(".bin"))[1]
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


def measure(name: str, done: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
    """What measured.json holds of a board."""
    board = boards.load(name)
    mapped = board.memory_mapped_flash
    target = targets.of_board(board)

    def beside(subject: Subject, **asked: Any) -> int:
        """The heap less the buffer. The search begins where it ended the last time."""
        model, codec = subject.model, asked.get("codec", "int8")
        window = asked["window"]
        sinks = 0 if asked.get("policy") else story.USUAL_SINKS
        buffer = _buffer_bytes(model, codec, window, sinks)
        parts = target.beside(model, sinks, codec, asked.get("policy"), window)
        start = sum(part.bytes for part in parts)
        heap, seen = needed(board, subject, buffer + start, **asked)
        assert seen["buffer_bytes"] == buffer, (buffer, seen["buffer_bytes"])
        done(1)
        return heap - buffer

    def arrays(subject: Subject) -> int:
        return program.array_bytes(subject.model, story.USUAL_SINKS, mapped)

    command = f"kvlab stories --board {board.name} --tokens 40"
    shapes: dict[str, dict[str, dict[str, int]]] = {}
    for subject in shipped():
        ring, weighed = {}, {}
        for codec in TYPES:
            windows = WINDOWS if codec == "int8" else WINDOWS[:1]
            ring[codec] = max(beside(subject, window=window, codec=codec) for window in windows)
            if codec != "int4":  # its blocks cannot lose a single token
                tables = program.table_bytes(WINDOWS[0], 0)
                weighed[codec] = beside(subject, window=WINDOWS[0], codec=codec, policy=POLICY) - tables
        shapes[program.shape_of(subject.model)] = {"ring": ring, "weighed": weighed}
    deep = {c.layers: beside(made(c), window=WINDOWS[0]) - arrays(made(c)) for c in (DEEP, DEEPER)}
    layer = -(-(deep[DEEPER.layers] - deep[DEEP.layers]) // (DEEPER.layers - DEEP.layers))
    broad = beside(made(BROAD), window=WINDOWS[0]) - 2 * program.workspace_bytes(made(BROAD).model)
    plain = {codec: [by["ring"][codec] - by["ring"]["int8"] for by in shapes.values()] for codec in TYPES}
    watching = [
        more - by["ring"][codec] for by in shapes.values() for codec, more in by["weighed"].items()
    ]
    return {
        "workspace": _fact(
            [broad + HOLES_BYTES], command, "beside the buffer, the app's workspace and its copy"
        ),
        "arrays": _fact(
            [deep[DEEP.layers] - layer * DEEP.layers + HOLES_BYTES],
            command,
            "beside the buffer, the app's arrays and the objects of each layer",
        ),
        "layer": _fact([layer], command, "objects of a layer"),
        "codecs": {
            codec: _fact(more, f"{command} --codec {codec}", "more than int8, beside the buffers")
            for codec, more in plain.items()
            if codec != "int8"
        },
        "policy": _fact(watching, f"{command} --policy {POLICY}", "more than a ring, beside its tables"),
        "shapes": shapes,
    }


def _buffer_bytes(model: Model, codec: str, window: int, sinks: int) -> int:
    shape = (model.layers, model.heads, model.kv_heads, model.head_dim)
    return int(geometry_for(codec, *shape, window=window, sinks=sinks).bytes())


def _fact(figures: Sequence[int], command: str, note: str) -> dict[str, Any]:
    """The largest of them as a fact; never below 0."""
    return {"value": max(0, *figures), "kind": "measured", "source": command, "note": note}
