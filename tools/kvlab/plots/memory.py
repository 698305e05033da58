"""A map of a cache's buffer: every byte of it, from the whole down to the rows of one head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kvlab.plots.sheet import COLOURS, KIB, save, sheet, sized

_COLOURS = (*COLOURS, "#e8d9a0")  # a layer in sealed blocks has nine parts
_HIGH = 0.5  # of a row; the rest is the way to the next
_MOST_CUTS = 64  # lines between parts that are alike: more would be a grey area


@dataclass(frozen=True)
class Piece:
    """A part of a row, or `count` of them side by side that are alike; bytes of all of them."""

    name: str
    bytes: int
    count: int = 1


@dataclass(frozen=True)
class Row:
    """Pieces from the first byte to the last; `of`: the piece of the row before, by place, that this row
    shows larger, one of it where it is many."""

    title: str
    pieces: tuple[Piece, ...]
    of: int | None = None

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.pieces)


def draw(rows: Sequence[Row], title: str, path: Path) -> None:
    """Rows from the top down; a row without `of` shows the last piece of the first row larger."""
    height = sum(max(1.15, 0.42 + 0.2 * len(row.pieces)) for row in rows) + 0.7
    figure, axes = sheet(title, width=10.5, height=height)
    top, before = 0.0, None
    for row in rows:
        space = max(1.0, (0.42 + 0.2 * len(row.pieces)) / 1.15)
        left = 0.0
        spans = []
        for i, piece in enumerate(row.pieces):
            wide = piece.bytes / row.bytes
            colour = _COLOURS[i % len(_COLOURS)]
            axes.broken_barh([(left, wide)], (top - _HIGH, _HIGH), color=colour, linewidth=0)
            for n in range(1, piece.count if piece.count <= _MOST_CUTS else 1):
                x = left + wide * n / piece.count
                axes.plot([x, x], [top - _HIGH, top], color="white", linewidth=0.8)
            spans.append((left, left + wide / piece.count))
            left += wide
            many = f"{piece.count:,} x {piece.bytes // piece.count:,} B" if piece.count > 1 else ""
            axes.annotate(
                f"{piece.name}: {many or f'{piece.bytes:,} B'}",
                (1.035, top - 0.06 - 0.2 * i),
                va="center",
                fontsize=8.5,
                annotation_clip=False,
            )
            axes.plot(1.02, top - 0.06 - 0.2 * i, "s", color=colour, markersize=6, clip_on=False)
        axes.annotate(
            f"{row.title}: {row.bytes:,} B" + (f" ({sized(row.bytes)})" if row.bytes >= KIB else ""),
            (0, top + 0.04),
            va="bottom",
            fontsize=9.5,
        )
        if before is not None and row.of is not None:
            (a, b), bottom = before[0][row.of], before[1]
            for x, to in ((a, 0.0), (b, 1.0)):
                axes.plot([x, to], [bottom, top], color="0.6", linewidth=0.7, linestyle=":")
        before = (spans, top - _HIGH)
        top -= space + 0.25
    axes.set_xlim(0, 1.34)
    axes.set_ylim(top + 0.3, 0.3)
    axes.axis("off")
    save(figure, path)
