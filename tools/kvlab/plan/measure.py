"""Measures what the stories app takes of a heap beside the cache's buffer, and writes measured.json.

Each figure is the smallest heap that `kvlab stories --window W --tokens 40` runs in, with default sampling
and no prompt, less the buffer and what program.py counts by shape. The shipped models are measured, and two
that are made here, whose random weights no one hears: a `broad` one whose workspace is large and a `deep`
one with many layers, so that each of the two moments in which most is needed decides once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

# The board whose emulator stands for each MicroPython port, as measured.json has them.
BOARDS = {"rp2": "rp2040", "esp32": "esp32s3", "qemu": "qemu_arm"}
RESOLUTION_BYTES = 256
TOKENS = 2  # a token allocates nothing, so these need what 40 do
STEP_BYTES = 512  # how far from a guess the search begins
GUESS_BYTES = 115_000  # beside the buffer
FIRST = "shipped 1"
WINDOWS = (128, 256)  # of the first shipped model; of the others the first one
POLICIES = ("lru-peak", "lfu-decay")  # one that counts uses, one that sums
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
    while seen is None:
        good, step = good + step, 2 * step
        seen = tells(good)
    bad, step = good - step, STEP_BYTES
    while (lower := tells(bad)) is not None:
        good, seen, bad, step = bad, lower, bad - step, 2 * step
    while good - bad > RESOLUTION_BYTES:
        middle = (good + bad) // 2
        lower = tells(middle)
        if lower is None:
            bad = middle
        else:
            good, seen = middle, lower
    return good, seen


def measure(port: str, done: Callable[[int], None] = lambda _: None) -> dict[str, Any]:
    """What measured.json holds of a port."""
    board = boards.load(BOARDS[port])
    mapped = board.memory_mapped_flash
    target = targets.of_board(board)
    before = program.known(port)

    def beside(subject: Subject, **asked: Any) -> int:
        """The heap less the buffer. The search begins where it ended the last time."""
        model, codec = subject.model, asked.get("codec", "int8")
        window = asked["window"]
        sinks = 0 if asked.get("policy") else story.USUAL_SINKS
        buffer = _buffer_bytes(model, codec, window, sinks)
        start = GUESS_BYTES
        if before:
            parts = target.beside(model, sinks, codec, asked.get("policy"), window)
            start = sum(part.bytes for part in parts)
        heap, seen = needed(board, subject, buffer + start, **asked)
        assert seen["buffer_bytes"] == buffer, (buffer, seen["buffer_bytes"])
        done(1)
        return heap - buffer

    def arrays(subject: Subject) -> int:
        return program.array_bytes(subject.model, story.USUAL_SINKS, mapped)

    command = f"kvlab stories --board {board.name} --tokens 40"
    subjects = {f"shipped {i + 1}": subject for i, subject in enumerate(shipped())}
    at = {
        name: max(beside(subject, window=window) for window in WINDOWS[: 1 + (name == FIRST)])
        for name, subject in subjects.items()
    }
    deep = {c.layers: beside(made(c), window=WINDOWS[0]) - arrays(made(c)) for c in (DEEP, DEEPER)}
    layer = -(-(deep[DEEPER.layers] - deep[DEEP.layers]) // (DEEPER.layers - DEEP.layers))
    then = {"deep": deep[DEEP.layers] - layer * DEEP.layers}
    broad = beside(made(BROAD), window=WINDOWS[0])
    first = {"broad": broad - 2 * program.workspace_bytes(made(BROAD).model)}
    for name, subject in subjects.items():
        with_workspace = max(first.values()) + 2 * program.workspace_bytes(subject.model)
        with_arrays = max(then.values()) + layer * subject.model.layers + arrays(subject)
        more = at[name] - max(with_workspace, with_arrays)
        if with_workspace > with_arrays:
            first[name] = max(first.values()) + more
        else:
            then[name] = max(then.values()) + more
    base, subject, window = at[FIRST], subjects[FIRST], WINDOWS[0]
    codecs = {
        codec: beside(subject, window=window, codec=codec) - base
        for codec in NAMES
        if codec != "int8"
    }
    tables = program.table_bytes(window, 0)
    policies = {
        policy: beside(subject, window=window, policy=policy) - base - tables for policy in POLICIES
    }
    return {
        "workspace": _most(first, command, "beside the buffer, the app's workspace and its copy"),
        "arrays": _most(then, command, "beside the buffer, the app's arrays and the objects of each layer"),
        "layer": _most({"deep": layer}, command, "objects of a layer"),
        "codecs": {
            codec: _most({codec: more}, f"{command} --codec {codec}", "more than int8, beside the buffers")
            for codec, more in codecs.items()
        },
        "policy": _most(policies, f"{command} --policy POLICY", "more than a ring, beside its tables"),
    }


def _buffer_bytes(model: Model, codec: str, window: int, sinks: int) -> int:
    shape = (model.layers, model.heads, model.kv_heads, model.head_dim)
    return int(geometry_for(codec, *shape, window=window, sinks=sinks).bytes())


def _most(figures: Mapping[str, int], command: str, note: str) -> dict[str, Any]:
    """The largest of them as a fact; never below 0."""
    told = ", ".join(f"{name} {figure:,}" for name, figure in figures.items())
    value = max(0, *figures.values())
    return {"value": value, "kind": "measured", "source": command, "note": f"{note}: {told} bytes"}
