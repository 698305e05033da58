"""KV bytes against context, from a Pico to a server, and where the memory of each ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from kvlab.plots.sheet import COLOURS, apart, save, sheet, sized

NAME_ROOM = 0.22  # of the width, to the left of all lines
_STEP = 16  # between two ticks of sizes and of tokens


@dataclass(frozen=True)
class Line:
    """A model's KV bytes (second of each point) at a context (first, in tokens)."""

    name: str
    points: list[tuple[int, int]]


@dataclass(frozen=True)
class Limit:
    """What a board or profile has room for beside the weights of a model and all else: KV bytes of so many
    tokens, on `line` of the lines that are drawn."""

    name: str
    tokens: int
    kv_bytes: int
    line: int


def draw(lines: list[Line], limits: list[Limit], path: Path) -> None:
    """Every limit that is within the picture is a point on its line; its label stands at the right, the name
    of a line where it begins."""
    title = "KV cache of one request against context, and the longest that memory has room for"
    figure, axes = sheet(title, width=10.5, height=6.4)
    for i, line in enumerate(lines):
        axes.plot(*zip(*line.points), color=COLOURS[i % len(COLOURS)], linewidth=2)
    tokens = [n for line in lines for n, _ in line.points] + [limit.tokens for limit in limits]
    sizes = [n for line in lines for _, n in line.points] + [limit.kv_bytes for limit in limits]
    (left, right), (low, high) = _span(tokens), _span(sizes)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xlim(left / (right / left) ** NAME_ROOM, right)
    axes.set_ylim(low, high)
    axes.set_xticks(_ticks(left, right), [f"{n:,}" for n in _ticks(left, right)])
    axes.set_yticks(_ticks(low, high), [sized(n) for n in _ticks(low, high)])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    ordered = sorted(limits, key=lambda limit: limit.kv_bytes)

    def height(n: int) -> float:
        return math.log2(n / low) / math.log2(high / low)

    begins = sorted((line.points[0][1], line.points[0][0], line.name) for line in lines)
    places = apart([height(n) for n, *_ in begins], 0.034)
    for (_, at, name), place in zip(begins, places, strict=True):
        axes.annotate(
            name,
            (at, place),
            xycoords=("data", "axes fraction"),
            xytext=(-6, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            fontsize=8.5,
        )
    places = apart([height(limit.kv_bytes) for limit in ordered], 0.034)
    for limit, place in zip(ordered, places, strict=True):
        colour = COLOURS[limit.line % len(COLOURS)]
        axes.plot(limit.tokens, limit.kv_bytes, "o", color=colour, markeredgecolor="black", markersize=6)
        axes.annotate(
            f"{limit.name}: {limit.tokens:,} tokens, {sized(limit.kv_bytes)}",
            (limit.tokens, limit.kv_bytes),
            xytext=(1.02, place),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.7, "shrinkB": 3},
        )
    axes.set_xlabel("context (tokens)")
    axes.set_ylabel("KV of one request, scales included")
    save(figure, path)


def _span(values: list[int]) -> tuple[float, float]:
    """A little more than all values, so that no point lies on the frame."""
    return min(values) / 1.5, max(values) * 1.8


def _ticks(low: float, high: float) -> list[int]:
    """Powers of two within, _STEP apart where that gives three, else closer."""
    found: list[int] = []
    for step in range(round(math.log2(_STEP)), 0, -1):
        first = -(-math.ceil(math.log2(low)) // step) * step
        found = [1 << n for n in range(first, math.floor(math.log2(high)) + 1, step)]
        if len(found) > 2:
            break
    return found
