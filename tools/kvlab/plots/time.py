"""Where the instructions of a token go, by part, as `kvlab bench tokens` counts them on a board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvlab.plots.sheet import COLOURS, save, sheet

REST = "calls, app, interpreter"
_OF_CACHE = ("QK", "softmax", "AV", "query and scales", "store K, V")


def draw(figures: Mapping[str, Any], title: str, path: Path) -> None:
    """`figures` of bench.tokens.measure with "parts": those of the token at its last position."""
    at, totals = max(figures["instructions_per_token"].items(), key=lambda item: int(item[0]))
    sets = [name for name in totals if name in figures["parts"]]
    parts = {
        name: {**figures["parts"][name], REST: totals[name] - sum(figures["parts"][name].values())}
        for name in sets
    }
    # The dearest part of the slowest kernels on top.
    slowest = max(sets, key=lambda name: totals[name])
    names = sorted(parts[slowest], key=lambda part: parts[slowest][part])
    figure, axes = sheet(title, width=9.5, height=1.6 + 0.26 * len(names) * len(sets))
    thick = 0.8 / len(sets)
    for i, kernels in enumerate(sets):
        places = [place + thick * ((len(sets) - 1) / 2 - i) for place in range(len(names))]
        values = [parts[kernels][part] for part in names]
        colours = [COLOURS[0] if part in _OF_CACHE else COLOURS[2] for part in names]
        faint = kernels != slowest
        bars = axes.barh(places, values, 0.92 * thick, color=colours, alpha=0.55 if faint else 1)
        axes.bar_label(
            bars,
            [f"{value:,} ({100 * value / totals[kernels]:.1f} %), {kernels}" for value in values],
            padding=3,
            fontsize=8,
        )
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, 1.28 * max(max(by.values()) for by in parts.values()))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}")
    axes.set_xlabel(
        f"millions of instructions of one token, {min(int(at) + 1, figures['window']):,} tokens in view\n"
        "blue: the KV cache; yellow: the rest of the model"
    )
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)
    save(figure, path)
