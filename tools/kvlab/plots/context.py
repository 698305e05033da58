"""KV bytes against context, from a Pico to a server, with the room that each has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kvlab.plots.sheet import COLOURS, save, sheet


@dataclass(frozen=True)
class Line:
    """A model's KV bytes (second of each point) at a context (first, in tokens)."""

    name: str
    points: list[tuple[int, int]]


@dataclass(frozen=True)
class Limit:
    """Room for the cache on a board or profile, in bytes."""

    name: str
    room_bytes: int


def draw(lines: list[Line], limits: list[Limit], path: Path) -> None:
    figure, axes = sheet("KV cache against context, and what has room for it", width=10, height=6.2)
    for i, line in enumerate(lines):
        axes.plot(*zip(*line.points), color=COLOURS[i % 5], linewidth=2, label=line.name)
    first = min(line.points[0][0] for line in lines)
    last = max(line.points[-1][0] for line in lines)
    labels: list[tuple[int, list[str]]] = []
    for limit in sorted(limits, key=lambda x: x.room_bytes):
        axes.axhline(limit.room_bytes, color="grey", linewidth=0.8, linestyle="--")
        if labels and limit.room_bytes < 1.3 * labels[-1][0]:  # too close for a label of its own
            labels[-1][1].append(limit.name)
        else:
            labels.append((limit.room_bytes, [limit.name]))
    for room, names in labels:
        axes.annotate(
            ", ".join(names),
            (1.01, room),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8,
            annotation_clip=False,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(first, last)
    axes.set_xlabel("context (tokens)")
    axes.set_ylabel("KV bytes of one request (scales included)")
    axes.legend(loc="lower right", frameon=False)
    save(figure, path)
