"""Where the instructions of a token go, by part, as `kvlab bench tokens` counts them on a board."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvlab.plots.sheet import COLOURS, save, sheet

# What is shown together -> kernels, of the cache and of the app.
_OF_CACHE = {
    "store K, V": ("encode",),
    "query and scales": ("query", "scales"),
    "QK": ("qk",),
    "softmax": ("score", "weights"),
    "AV": ("av", "emit"),
}
_OF_APP = {
    "matrices": ("matvec",),
    "norms, quantising": ("norm", "quant", "widen"),
    "RoPE, SwiGLU, add": ("rope_table", "rotate", "narrow", "swiglu", "add", "embed"),
    "sampling": ("softmax", "pick", "argmax"),
}
_PART_OF = {name: part for of in (_OF_CACHE, _OF_APP) for part, names in of.items() for name in names}


def parts(by_kernel: Mapping[str, int]) -> dict[str, int]:
    """By part of a token; what is no kernel's stays as it is named."""
    found: dict[str, int] = {}
    for name, n in by_kernel.items():
        part = _PART_OF.get(name, name)
        found[part] = found.get(part, 0) + n
    return found


def draw(figures: Mapping[str, Any], title: str, path: Path) -> None:
    """`figures` of bench.tokens.measure: the shares of the token at its last position."""
    at, shares = max(figures["shares"].items(), key=lambda item: int(item[0]))
    sets = list(shares)
    by_set = {name: parts(shares[name]) for name in sets}
    totals = {name: sum(by_set[name].values()) for name in sets}
    # The dearest part of the slowest kernels on top.
    slowest = max(sets, key=lambda name: totals[name])
    names = sorted(
        {part for by in by_set.values() for part in by}, key=lambda part: by_set[slowest].get(part, 0)
    )
    figure, axes = sheet(title, width=9.5, height=1.6 + 0.26 * len(names) * len(sets))
    thick = 0.8 / len(sets)
    for i, kernels in enumerate(sets):
        places = [place + thick * ((len(sets) - 1) / 2 - i) for place in range(len(names))]
        values = [by_set[kernels].get(part, 0) for part in names]
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
    axes.set_xlim(0, 1.28 * max(max(by.values()) for by in by_set.values()))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}")
    axes.set_xlabel(
        f"millions of instructions of one token, {min(int(at) + 1, figures['window']):,} tokens in view\n"
        "blue: the KV cache; yellow: the rest of the model"
    )
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)
    save(figure, path)
