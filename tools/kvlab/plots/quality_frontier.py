"""Loss against bytes: what each element type of keys and values costs, and which no other beats in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from kvlab.plots.sheet import COLOURS, save, sheet

_LINEAR_PCT = 0.1  # around zero the axis of perplexity is linear: a change may be negative


def frontier(points: Mapping[str, tuple[float, float]]) -> list[str]:
    """Names of the points (bytes, loss) that no other beats in both, by bytes."""
    best: list[str] = []
    least = float("inf")
    for name, (_, loss) in sorted(points.items(), key=lambda item: item[1]):
        if loss < least:
            best.append(name)
            least = loss
    return best


def draw(
    codecs: Mapping[str, Mapping[str, Any]],
    warnings: Sequence[str],
    unbuilt: Sequence[str],
    title: str,
    path: Path,
    option: str,
) -> None:
    """codecs: figures by name; warnings: those that nobody should take; unbuilt: those that no device has."""
    figure, whole = sheet(title, width=12, height=5.4)
    whole.remove()
    left, right = figure.subplots(1, 2)
    _points(left, codecs, warnings, unbuilt, "perplexity_change_pct")
    left.set_yscale("symlog", linthresh=_LINEAR_PCT)
    left.axhline(0, color="black", linewidth=0.8)
    left.set_ylabel("change of perplexity against float32 (%), with its 95 % interval")
    _points(right, codecs, warnings, unbuilt, "kld")
    right.set_yscale("log")
    right.set_ylabel("KL divergence from float32 (nats a token)")
    for axes in (left, right):
        axes.set_xlabel("keys and values of all layers (bytes a token)")
        axes.margins(x=0.16, y=0.12)
        axes.grid(alpha=0.3)
    left.legend(loc="upper right", frameon=False)
    save(figure, path, option)


def _points(
    axes: Axes,
    codecs: Mapping[str, Mapping[str, Any]],
    warnings: Sequence[str],
    unbuilt: Sequence[str],
    key: str,
) -> None:
    points = {name: (each["bytes_per_token"], each[key]) for name, each in codecs.items()}
    best = frontier({name: point for name, point in points.items() if name not in warnings})
    axes.plot(*zip(*(points[name] for name in best)), color=COLOURS[1], linewidth=1.5, label="frontier")
    for name, (size, loss) in points.items():
        warned = name in warnings
        colour = COLOURS[3] if warned else COLOURS[0]
        interval = codecs[name].get(f"{key.removesuffix('_pct')}_interval_pct")
        if interval:
            axes.vlines(size, *interval, color=colour, linewidth=1.2)
        label = "warning: int4 keys, one scale per token" if warned else None
        if name in unbuilt:
            label = "no device has it"
        mark, width = ("X", 9) if warned else ("o", 6)
        inside = "white" if name in unbuilt else colour
        axes.plot(size, loss, mark, color=colour, markerfacecolor=inside, markersize=width, label=label)
        # The line of the frontier leads from the upper left to the lower right.
        top = interval[1] if interval and name not in best else loss
        if name not in best:
            shift, side = (0, 8), "center"
        elif name == best[-1]:
            shift, side = (0, -15), "center"
        else:
            shift, side = (-8, 4), "right"
        axes.annotate(name, (size, top), xytext=shift, textcoords="offset points", ha=side, fontsize=8)
