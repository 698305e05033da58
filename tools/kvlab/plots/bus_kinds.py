"""Of what kinds the bytes on a bus are, beside the split of the document with the requirements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kvlab.bus.kinds import KINDS
from kvlab.plots.sheet import COLOURS, save, sheet

DOCUMENT = dict(zip(KINDS, (0.40, 0.25, 0.30, 0.05)))
_NAMES = {"I/O": "vectors, I/O"}  # what goes into kernels and out of them counts with input and output
_SMALL = 0.06  # of the width: what is narrower has its figure beside the bar


def draw(shares: Mapping[str, Mapping[str, float]], title: str, path: Path, option: str = "--plot") -> None:
    """`shares`: of each model and board the part of each kind of wire.KINDS, which sum to 1."""
    rows = {"the document": DOCUMENT, **shares}
    figure, axes = sheet(title, width=9.5, height=1.6 + 0.62 * len(rows))
    for row, parts in enumerate(rows.values()):
        left, beside = 0.0, []
        for i, kind in enumerate(KINDS):
            part = 100 * parts.get(kind, 0.0)
            ink = "white" if i in (0, 3) else "black"
            name = _NAMES.get(kind, kind)
            axes.barh(row, part, 0.7, left=left, color=COLOURS[i], label=name if row == 0 else None)
            said = f"{part:.0f} %" if part >= 9.5 else f"{part:.2g} %" if part >= 0.01 else "< 0.01 %"
            if part >= 100 * _SMALL:
                axes.text(left + part / 2, row, said, ha="center", va="center", color=ink, fontsize=9)
            else:
                beside.append(f"{name} {said}")
            left += part
        axes.text(101, row, ", ".join(beside), va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), list(rows))
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("bytes of a token (%)")
    axes.legend(frameon=False, ncols=len(KINDS), loc="lower left", bbox_to_anchor=(0, 1.0))
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)
    save(figure, path, option)
