"""The heap of an emulated board against its limit: what fills it, and that a story adds nothing."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from commandline.errors import BadInput
from kvlab.plots.sheet import COLOURS, KIB, save, sheet
from unix_port.launcher import Report

NAME_WIDTH = 20  # letters of a line of a stage's name


def draw(report: Report, tokens: int, title: str, path: Path) -> None:
    """Save a picture of `report`, of a run that told `tokens` tokens, as `path`. BadInput if the run
    recorded nothing to draw.

    A band is what came to be live between a mark and the one before; the line is the heap in use as
    sampled token by token, garbage included. Machine code is not in this heap and not drawn.
    """
    if not report.marks or not report.samples:
        raise BadInput(f"nothing to draw in {path.name}: the run left no marks or samples of its heap")
    figure, whole = sheet(title, width=10, height=5.8)
    whole.remove()
    stages, telling = figure.subplots(1, 2, sharey=True, width_ratios=(1, 2.2))
    bands = _bands(report, tokens, stages, telling)
    line, most = _use(report, tokens, telling)
    for height, colour, style, text in _limits(report):
        for axes in (stages, telling):
            axes.axhline(height, color=colour, linewidth=1.2, linestyle=style)
        telling.annotate(
            text, (0, height), textcoords="offset points", xytext=(4, 4), color=colour, fontsize=9
        )
        most = max(most, height)
    stages.set_ylim(0, 1.12 * most)
    _name_axes(report, tokens, stages, telling)
    telling.legend(
        handles=[line, *reversed(bands)],
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        fontsize=9,
    )
    save(figure, path)


def _bands(report: Report, tokens: int, stages: Axes, telling: Axes) -> list[Artist]:
    """What came to be live by each mark, in both parts of the picture; of the right one, from below."""
    count = len(report.marks)
    below = 0.0
    bands: list[Artist] = []
    for i, mark in enumerate(report.marks):
        grown = mark.live_bytes / KIB - below
        if grown <= 0:
            continue
        look: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "linewidth": 0}
        stages.fill_between([i, count], below + grown, below, **look)
        label = f"{mark.label}: {grown:,.1f} KiB"
        bands.append(telling.fill_between([0, tokens], below + grown, below, label=label, **look))
        below += grown
    return bands


def _use(report: Report, tokens: int, telling: Axes) -> tuple[Artist, float]:
    """The heap in use while it told, in KiB: its line, and the most of it."""
    # Of every so many tokens, evenly spread, the last one included.
    each = tokens / len(report.samples)
    used = [used / KIB for _, used in report.samples]
    (line,) = telling.plot(
        [each * (i + 1) for i in range(len(used))],
        used,
        color="black",
        linewidth=1.2,
        label="heap in use, garbage included",
    )
    return line, max(used)


def _limits(report: Report) -> list[tuple[float, str, str, str]]:
    """Height in KiB, colour, style and text of each line that is no measurement."""
    limit = report.heap_limit_bytes / KIB
    lines = [(limit, "crimson", "-", f"the board's heap: {limit:,.1f} KiB")]
    if report.heap_peak_bytes is not None:
        peak = report.heap_peak_bytes / KIB
        lines.append((peak, "black", "--", f"smallest heap it runs in: {peak:,.1f} KiB"))
    return lines


def _name_axes(report: Report, tokens: int, stages: Axes, telling: Axes) -> None:
    count = len(report.marks)
    stages.set_xlim(0, count)
    names = [textwrap.fill(mark.label.partition(":")[0], NAME_WIDTH) for mark in report.marks]
    stages.set_xticks([i + 0.5 for i in range(count)], names, rotation=90, fontsize=9)
    stages.set_xlabel("stage of start-up")
    stages.set_ylabel("heap (KiB, 64-bit objects)")
    telling.set_xlim(0, tokens)
    telling.set_xlabel("tokens told")
