"""The heap of an emulated board against its limit: what fills it, and that a story adds nothing."""

from __future__ import annotations

import textwrap
from pathlib import Path

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
    count = len(report.marks)
    below = 0.0
    bands = []
    for i, mark in enumerate(report.marks):
        grown = mark.live_bytes / KIB - below
        if grown <= 0:
            continue
        look = {"color": COLOURS[i % len(COLOURS)], "linewidth": 0}
        stages.fill_between([i, count], below + grown, below, **look)
        label = f"{mark.label}: {grown:,.1f} KiB"
        bands.append(telling.fill_between([0, tokens], below + grown, below, label=label, **look))
        below += grown
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
    limit = report.heap_limit_bytes / KIB
    lines = [(limit, "crimson", "-", f"the board's heap: {limit:,.1f} KiB")]
    if report.heap_peak_bytes is not None:
        peak = report.heap_peak_bytes / KIB
        lines.append((peak, "black", "--", f"smallest heap it runs in: {peak:,.1f} KiB"))
    for height, colour, style, text in lines:
        for axes in (stages, telling):
            axes.axhline(height, color=colour, linewidth=1.2, linestyle=style)
        telling.annotate(
            text, (0, height), textcoords="offset points", xytext=(4, 4), color=colour, fontsize=9
        )
    stages.set_ylim(0, 1.12 * max(limit, *used, *(height for height, *_ in lines)))
    stages.set_xlim(0, count)
    names = [textwrap.fill(mark.label.partition(":")[0], NAME_WIDTH) for mark in report.marks]
    stages.set_xticks([i + 0.5 for i in range(count)], names, rotation=90, fontsize=9)
    stages.set_xlabel("stage of start-up")
    stages.set_ylabel("heap (KiB, 64-bit objects)")
    telling.set_xlim(0, tokens)
    telling.set_xlabel("tokens told")
    telling.legend(
        handles=[line, *reversed(bands)],
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        fontsize=9,
    )
    save(figure, path)
