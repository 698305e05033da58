"""What each rule of admission reserves beside the need, and how long requests wait under it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvlab.plots.sheet import COLOURS, save, sheet


def draw(rules: Mapping[str, Mapping[str, Any]], title: str, path: Path, option: str) -> None:
    """`rules`: the figures of predict.simulate.Outcome by name."""
    figure, whole = sheet(title, width=11, height=4.6)
    whole.remove()
    beside, waiting = figure.subplots(1, 2)
    at = range(len(rules))
    found = list(rules.values())
    for key, sign, colour, label in (
        ("over_reserved", 1, COLOURS[0], "reserved, never used"),
        ("under_reserved", -1, COLOURS[2], "used, not reserved"),
    ):
        shares = [100 * each[key] / max(1, each["used"]) for each in found]
        bars = beside.bar(at, [sign * share for share in shares], 0.6, color=colour, label=label)
        beside.bar_label(bars, [f"{share:.1f} %" if share else "" for share in shares], padding=2)
    beside.axhline(0, color="black", linewidth=0.8)
    beside.margins(y=0.15)
    beside.set_ylabel("blocks, in % of those used")
    beside.legend(frameon=False)
    for shift, key, colour, label in (
        (-0.2, "waiting_mean_s", COLOURS[1], "mean"),
        (0.2, "waiting_p95_s", COLOURS[3], "95 % wait no longer"),
    ):
        bars = waiting.bar(
            [x + shift for x in at], [each[key] for each in found], 0.4, color=colour, label=label
        )
        waiting.bar_label(bars, [f"{each[key]:,.1f}" for each in found], padding=2)
    waiting.margins(y=0.15)
    waiting.set_ylim(bottom=0)
    waiting.set_ylabel("waiting (s)")
    waiting.legend(frameon=False)
    for axes in (beside, waiting):
        axes.set_xticks(at, [f"{name}\n{each['preempted']:,} preempted" for name, each in rules.items()])
    save(figure, path, option)
