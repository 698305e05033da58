"""Miss ratio against capacity, a curve for each policy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.ticker import FuncFormatter

from kvlab.plots.sheet import COLOURS, save, sheet

_MARKS = "osD^vPX*"


def draw(
    policies: Mapping[str, Mapping[str, Mapping[str, Any]]], unit: str, title: str, path: Path, option: str
) -> None:
    """`policies`: {name: {capacity: {"miss_ratio"}}}; the one named optimal is the limit below all others."""
    figure, axes = sheet(title)
    for at, (name, by_capacity) in enumerate(policies.items()):
        limit = name == "optimal"
        axes.plot(
            [int(capacity) for capacity in by_capacity],
            [100 * figures["miss_ratio"] for figures in by_capacity.values()],
            color="black" if limit else COLOURS[at % len(COLOURS)],
            linestyle="--" if limit else "-",
            marker=_MARKS[at % len(_MARKS)],
            markersize=4.5,
            linewidth=1.4,
            label=name,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"capacity ({unit})")
    axes.set_ylabel("misses (% of accesses)")
    axes.grid(True, which="major", color="0.9")
    axes.legend(frameon=False)
    save(figure, path, option)
