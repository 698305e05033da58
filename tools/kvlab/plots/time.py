"""Where the time of a token goes, by part, as measured by bench.token."""

from __future__ import annotations

from pathlib import Path

from kvlab.plots.sheet import COLOURS, save, sheet

ATTENTION = ("QK", "softmax", "AV", "query and scales", "store K, V")


def draw(figures: dict, title: str, path: Path) -> None:
    """`figures` of bench.token: {"total_us", "parts_us": {part: us}, "window", "sinks"}."""
    total = figures["total_us"]
    parts = dict(figures["parts_us"])
    parts["calls, sampling, rest"] = max(0, total - sum(parts.values()))
    figure, axes = sheet(title, height=4.2)
    names = sorted(parts, key=lambda name: parts[name])
    colours = [COLOURS[0] if name in ATTENTION else COLOURS[2] for name in names]
    bars = axes.barh(names, [100 * parts[name] / total for name in names], color=colours)
    axes.bar_label(bars, [f"{parts[name]:,.0f} us" for name in names], padding=3)
    axes.set_xlim(0, 115 * max(parts.values()) / total)
    axes.set_xlabel(
        f"share of a token (%), window {figures['window']} and {figures['sinks']} sinks full;"
        " blue: the KV cache, yellow: the rest of the model"
    )
    save(figure, path)
