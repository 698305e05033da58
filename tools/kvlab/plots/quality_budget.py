"""Loss against budget: what each policy costs that keeps only so many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvlab.plots.sheet import COLOURS, save, sheet

_LINEAR_PCT = 0.1
_SIZES = [step * 10**power for power in range(-1, 5) for step in (1, 2, 5)]
_STEPS = [*(-step for step in reversed(_SIZES)), 0, *_SIZES]
_MOST_LABELS = 16  # of budgets below the axis
_MARKS = "osD^vPX*<"


def draw(
    policies: Mapping[str, Mapping[str, Mapping[str, Any]]],
    titles: Mapping[str, str],
    title: str,
    path: Path,
    option: str,
) -> None:
    """policies: figures by policy and budget."""
    figure, axes = sheet(title, width=10.5, height=6)
    ends: list[float] = []
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
        ends += losses
        for x, budget in zip(at, own, strict=True):
            interval = by_budget[str(budget)]["perplexity_change_interval_pct"]
            if interval:
                axes.vlines(x, *interval, color=colour, linewidth=1)
                ends += interval
    low, high = min(ends), max(ends)
    if low > _LINEAR_PCT:
        axes.set_yscale("log")
        axes.set_ylim(low / 1.2, high * 1.2)
    else:  # a change may be nothing, or for the better
        axes.set_yscale("symlog", linthresh=_LINEAR_PCT)
        axes.set_ylim(min(1.3 * low, -_LINEAR_PCT / 4), max(1.3 * high, _LINEAR_PCT))
        axes.axhline(0, color="black", linewidth=0.8)
    ticks = [n for n in _STEPS if axes.get_ylim()[0] <= n <= axes.get_ylim()[1]]
    axes.set_yticks(ticks, [f"{n:+,g} %" if n else "0" for n in ticks])
    axes.set_xscale("log", base=2)
    axes.set_xlim(budgets[0] / 1.25, budgets[-1] * 1.25)
    axes.set_xticks(budgets, _labels(budgets))
    axes.minorticks_off()
    axes.set_xlabel("budget (tokens kept, the current one included)")
    axes.set_ylabel("perplexity against all tokens kept, with 95 % intervals")
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    save(figure, path, option)


def _labels(budgets: Sequence[int]) -> list[str]:
    """One for each tick: empty where it would run into the one before."""
    labels, last = [], 0.0
    least = (budgets[-1] / budgets[0]) ** (1 / _MOST_LABELS)
    for budget in budgets:
        fits = not last or budget >= last * least
        labels.append(f"{budget:,}" if fits else "")
        last = budget if fits else last
    return labels
