"""The pictures of the documentation: those of `kvlab demo` that no clock has a part in but for an axis."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from commandline.errors import FellShort
from kvlab.docs.picture import with_figures
from kvlab.docs.registry import PICTURES, Cost, Producer, named, needs_firmware
from kvlab.docs.tolerance import EXACT, HEAP, INSTRUCTIONS
from unix_port import processes

HEAP_PICTURE = f"{PICTURES}heap.png"
CHOOSE_PICTURE = f"{PICTURES}choose.png"
CONTEXT_PICTURE = f"{PICTURES}context.png"
MEMORY_PICTURE = f"{PICTURES}memory.png"
TIME_PICTURE = f"{PICTURES}time.png"
TOKENS = 500  # of the story, as `make demo` tells it


def _heap(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab import boards, paths, story
    from kvlab.models.load import load_image
    from kvlab.plots import heap

    board, image = boards.load("rp2040"), load_image(paths.SHIPPED)
    telling = story.Telling(tokens=TOKENS)
    told = story.with_peak(board, image.data, telling, story.tell(board, image.data, telling))
    figures = {
        "limit": told.report.heap_limit_bytes,
        "smallest": told.report.heap_peak_bytes,
        "marks": [[mark.label, mark.live_bytes] for mark in told.report.marks],
    }
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "heap.png"
        heap.draw(told.report, TOKENS, f"Heap of the {board.title} while it tells {TOKENS:,} tokens", path)
        return {HEAP_PICTURE: with_figures(path.read_bytes(), figures, heap)}


def _context(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab import pictures
    from kvlab.plots import context

    lines, limits = pictures.context_figures()
    figures = {
        "lines": {line.name: line.points for line in lines},
        "limits": {limit.name: [limit.tokens, limit.kv_bytes] for limit in limits},
    }
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "context.png"
        context.draw(lines, limits, path)
        return {CONTEXT_PICTURE: with_figures(path.read_bytes(), figures, context)}


def _memory(_wanted: Collection[str]) -> Mapping[str, bytes]:
    """Of the shipped model's shape, with a window of 256 tokens."""
    from kvlab import paths, pictures
    from kvlab.models.load import load_image
    from kvlab.plots import memory
    from mpy_kv import Geometry

    c = load_image(paths.SHIPPED).config
    rows = pictures.memory_map(Geometry(c.layers, c.heads, c.kv_heads, c.head_dim, window=256))
    figures = [[row.title, [[piece.name, piece.bytes, piece.count] for piece in row.pieces]] for row in rows]
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "memory.png"
        memory.draw(rows, "The buffer of the KV cache: a window of 256 tokens and 4 sinks, int8", path)
        return {MEMORY_PICTURE: with_figures(path.read_bytes(), figures, memory)}


def _time(_wanted: Collection[str]) -> Mapping[str, bytes]:
    """Of what is counted in plots/token.json, which another producer writes."""
    from kvlab import pictures
    from kvlab.plots import time

    counted = json.loads(pictures.COUNTED.read_text(encoding="utf-8"))
    figures = counted["shares"]
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "time.png"
        time.draw(counted, "Where the instructions of a token go, counted on an emulated Cortex-M3", path)
        return {TIME_PICTURE: with_figures(path.read_bytes(), figures, time)}


def _choose(_wanted: Collection[str]) -> Mapping[str, bytes]:
    """Of every model that ships, as docs/CHOOSING.md judges them, and of what `kvlab bench choices`
    counts."""
    from kvlab.docs.producers import quality
    from kvlab.plots import choose

    with tempfile.TemporaryDirectory(prefix="kvlab-") as name:
        folder = Path(name)
        models = quality.measured(False)
        costs = _run("bench", "choices", "--json", folder / "choices.json")
        choose.draw(models, costs, folder / "choose.png", "--out")
        costs.pop("settings", None)
        figures = {"costs": costs, "models": models}
        return {CHOOSE_PICTURE: with_figures((folder / "choose.png").read_bytes(), figures, choose)}


def _run(*words: str | Path) -> Any:
    """What a command of ours writes to its --json, the last of the words."""
    done = processes.run([sys.executable, "-m", "kvlab", *words], capture_output=True, text=True)
    if done.returncode:
        raise FellShort(done.stderr.strip() or f"kvlab {words[0]} failed")
    return json.loads(Path(words[-1]).read_text(encoding="utf-8"))


PRODUCERS = (
    Producer("heap_picture", "kvlab demo", Cost.MINUTES, named(HEAP_PICTURE, tolerance=HEAP), _heap),
    Producer("memory_picture", "kvlab demo", Cost.CHEAP, named(MEMORY_PICTURE, tolerance=EXACT), _memory),
    Producer(
        "choose_picture",
        "kvlab choose",
        Cost.LONG,
        named(CHOOSE_PICTURE, tolerance=INSTRUCTIONS),
        _choose,
        needs_firmware,
    ),
    Producer("time_picture", "kvlab demo", Cost.CHEAP, named(TIME_PICTURE, tolerance=EXACT), _time),
    Producer("context_picture", "kvlab demo", Cost.CHEAP, named(CONTEXT_PICTURE, tolerance=EXACT), _context),
)
