"""Loss against budget: what each policy costs that keeps only so many tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.ticker import ScalarFormatter

from kvlab.plots.sheet import COLOURS, save, sheet

_LINEAR_PCT = 0.1
_MARKS = "osD^vPX*<"


def draw(
    policies: Mapping[str, Mapping[str, Mapping[str, Any]]],
    titles: Mapping[str, str],
    title: str,
    path: Path,
    option: str,
) -> None:
    """policies: figures by policy and budget."""
    figure, axes = sheet(title, width=10, height=6)
    least = float("inf")
    budgets = sorted({int(budget) for by_budget in policies.values() for budget in by_budget})
    for i, (name, by_budget) in enumerate(policies.items()):
        own = sorted(map(int, by_budget))
        # A little apart, so that the intervals of equal budgets can be told from each other.
        shift = 1 + 0.012 * (i - len(policies) / 2)
        at = [budget * shift for budget in own]
        colour = COLOURS[i % len(COLOURS)]
        losses = [by_budget[str(budget)]["perplexity_change_pct"] for budget in own]
        line = "-" if i < len(COLOURS) else "--"
        mark = _MARKS[i % len(_MARKS)]
        axes.plot(at, losses, line, marker=mark, color=colour, label=titles.get(name, name))
        least = min(least, *losses)
        for x, budget in zip(at, own, strict=True):
            interval = by_budget[str(budget)]["perplexity_change_interval_pct"]
            if interval:
                axes.vlines(x, *interval, color=colour, linewidth=1)
    axes.set_xscale("log", base=2)
    if least > _LINEAR_PCT:
        axes.set_yscale("log")
    else:  # a change may be nothing, or for the better
        axes.set_yscale("symlog", linthresh=_LINEAR_PCT)
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
    axes.minorticks_off()
    axes.set_xlabel("budget (tokens kept, the current one included)")
    axes.set_ylabel("change of perplexity against all tokens kept (%), with its 95 % interval")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    save(figure, path, option)
