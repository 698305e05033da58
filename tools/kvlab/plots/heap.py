"""The heap of an emulated board over time against its limit, with what fills it."""

from __future__ import annotations

from pathlib import Path

from kvlab.errors import BadInput
from kvlab.plots.sheet import COLOURS, KIB, save, sheet
from unix_port.launcher import Report


def draw(report: Report, title: str, path: Path) -> None:
    """Save a picture of `report` as `path`. BadInput if the run recorded nothing to draw.

    A band is what came to be live between a mark and the one before, drawn from the mark on; the line
    is the heap in use as sampled, garbage included. Machine code is not in this heap and not drawn.
    """
    if not report.marks or not report.samples:
        raise BadInput(f"nothing to draw in {path.name}: the run left no marks or samples of its heap")
    end = max(report.samples[-1][0], report.marks[-1].us) / 1e6
    times = [mark.us / 1e6 for mark in report.marks]
    figure, axes = sheet(title)
    below = 0.0
    for i, mark in enumerate(report.marks):
        grown = mark.live_bytes / KIB - below
        if grown > 0:
            axes.fill_between(
                [times[i], end],
                below + grown,
                below,
                color=COLOURS[i % len(COLOURS)],
                label=f"{mark.label}: {grown:,.1f} KiB",
                linewidth=0,
            )
            below += grown
    axes.plot(
        [us / 1e6 for us, _ in report.samples],
        [used / KIB for _, used in report.samples],
        color="black",
        linewidth=1.2,
        label="heap in use, garbage included",
    )
    axes.axvline(report.samples[0][0] / 1e6, color="black", linewidth=0.8, linestyle=":")
    axes.annotate(
        "the story starts",
        (report.samples[0][0] / 1e6, 0.7),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        xytext=(-4, 0),
        ha="right",
    )
    limit = report.heap_limit_bytes / KIB
    axes.axhline(limit, color="crimson", linewidth=1.5)
    axes.annotate(
        f"the board's heap: {limit:,.1f} KiB",
        (0, limit),
        textcoords="offset points",
        xytext=(4, 4),
        color="crimson",
    )
    axes.set_xlim(0, end)
    axes.set_ylim(0, limit * 1.1)
    axes.set_xlabel("time on this machine (s)")
    axes.set_ylabel("heap (KiB, 64-bit objects)")
    if report.heap_peak_bytes is not None:
        peak = report.heap_peak_bytes / KIB
        axes.axhline(peak, color="black", linewidth=0.8, linestyle="--")
        axes.annotate(
            f"smallest heap it runs in: {peak:,.1f} KiB",
            (0, peak),
            textcoords="offset points",
            xytext=(4, 4),
        )
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    save(figure, path)
