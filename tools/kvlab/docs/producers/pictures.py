"""The pictures of the documentation: those of `kvlab demo` that no clock has a part in but for an axis."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from kvlab.docs.picture import with_figures
from kvlab.docs.registry import PICTURES, Cost, Producer, named
from kvlab.docs.tolerance import EXACT, HEAP

HEAP_PICTURE = f"{PICTURES}heap.png"
CONTEXT_PICTURE = f"{PICTURES}context.png"
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
        "marks": [[mark.label, mark.live_bytes] for mark in told.report.marks],
    }
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "heap.png"
        heap.draw(told.report, f"Heap of the {board.title} while it tells {TOKENS:,} tokens", path)
        return {HEAP_PICTURE: with_figures(path.read_bytes(), figures)}


def _context(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab import pictures
    from kvlab.plots import context

    lines, limits = pictures.context_figures()
    figures = {
        "lines": {line.name: line.points for line in lines},
        "limits": {limit.name: limit.room_bytes for limit in limits},
    }
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "context.png"
        context.draw(lines, limits, path)
        return {CONTEXT_PICTURE: with_figures(path.read_bytes(), figures)}


PRODUCERS = (
    Producer("heap_picture", "kvlab demo", Cost.MINUTES, named(HEAP_PICTURE, tolerance=HEAP), _heap),
    Producer("context_picture", "kvlab demo", Cost.CHEAP, named(CONTEXT_PICTURE, tolerance=EXACT), _context),
)
