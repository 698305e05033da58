"""Which element type and which policy: bytes, loss and instructions of each beside one another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from kvlab.plots.sheet import COLOURS, save, sheet

_LINEAR_PCT = 0.1  # around zero the axis of a loss is linear: a change may be negative
_MARKS = "osD^vP"
_RING = "ring"
# Policies of quality that a device runs as its ring, without a table of tokens.
_OF_RING = ("window", "sinks", "sinks-near")


def draw(models: Sequence[Mapping[str, Any]], costs: Mapping[str, Any], path: Path, option: str) -> None:
    """models: figures of quality, each of a model; costs: those of bench.choices.measure.

    A row for every element type, and for every policy, that both know; a mark for every model.
    """
    codecs = [name for name in costs["codecs"]["thumb"] if any(name in of for of in models)]
    codecs.sort(key=lambda name: -max(of[name]["of_float16"] for of in models if name in of))
    counted = costs["policies"]["thumb"]
    policies = [
        name
        for name in dict.fromkeys(name for of in models for name in of.get("policies", {}))
        if name in counted or name in _OF_RING
    ]
    budgets = _common_budgets(models, policies)
    lines = len(codecs) + (len(policies) if budgets else 0)
    title = "Which to choose: bytes, loss and instructions"
    figure, whole = sheet(title, width=13, height=2.6 + 0.42 * lines)
    whole.remove()
    grid = figure.subplots(
        2 if budgets else 1, 3, squeeze=False, height_ratios=[len(codecs), len(policies)][: 1 + bool(budgets)]
    )
    size, loss, cost = grid[0]
    _marks(size, models, codecs, lambda of, name: (100 * of[name]["of_float16"], None))
    size.set_xlim(left=0)
    size.set_xlabel("bytes stored, % of float16")
    _marks(loss, models, codecs, _loss)
    _losses(loss, "perplexity against float32, % more")
    in_view = costs["in_view"]
    _bars(cost, {name: {s: by[name]["token"] for s, by in costs["codecs"].items()} for name in codecs})
    cost.set_xlabel(f"millions of instructions of the cache\nfor a token with {in_view:,} in view")
    if budgets:
        for axes, budget in zip(grid[1], (budgets[-1], budgets[0])):
            _marks(axes, models, policies, lambda of, name, key=str(budget): _under(of, name, key))
            _losses(axes, f"perplexity with {budget:,} tokens kept, % more")
        by_policy = {
            name: {s: by[_RING if name in _OF_RING else name]["token"] for s, by in costs["policies"].items()}
            for name in policies
        }
        _bars(grid[1][2], by_policy)
        grid[1][2].set_xlabel(
            f"millions of instructions of the cache, int8,\nfor a token with {in_view:,} in view"
        )
    for row, names in zip(grid, (codecs, policies)):
        for axes in row:
            axes.set_yticks(range(len(names)), names if axes is row[0] else [""] * len(names))
            axes.set_ylim(len(names) - 0.4, -0.6)
            axes.grid(alpha=0.25)
    handles, labels = loss.get_legend_handles_labels()
    columns = min(2, len(models))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9)
    save(figure, path, option)


def _common_budgets(models: Sequence[Mapping[str, Any]], policies: Sequence[str]) -> list[int]:
    """Budgets at which every model has every one of these policies, the smallest first."""
    common: set[int] | None = None
    for of in models:
        for name in policies:
            found = {int(budget) for budget in of.get("policies", {}).get(name, {})}
            common = found if common is None else common & found
    return sorted(common or ())


def _loss(of: Mapping[str, Any], name: str) -> tuple[float, Sequence[float] | None]:
    each = of[name]
    return each["perplexity_change_pct"], each["perplexity_change_interval_pct"]


def _under(of: Mapping[str, Any], name: str, budget: str) -> tuple[float, Sequence[float] | None]:
    return _loss(of["policies"][name], budget)


def _marks(axes: Axes, models: Sequence[Mapping[str, Any]], names: Sequence[str], value: Any) -> None:
    """A mark for each model that knows a name, one below the other, with its interval."""
    for i, of in enumerate(models):
        colour = COLOURS[(0, 3, 2, 4, 5, 7)[i % 6]]
        label = f"{of['model']}, on {of['text']}"
        shift = 0.5 * ((i + 0.5) / len(models) - 0.5)
        for row, name in enumerate(names):
            if name not in of and name not in of.get("policies", {}):
                continue
            at, interval = value(of, name)
            if interval:
                axes.hlines(row + shift, *interval, color=colour, linewidth=1.2)
            axes.plot(at, row + shift, _MARKS[i % len(_MARKS)], color=colour, markersize=6, label=label)
            label = "_"


def _losses(axes: Axes, label: str) -> None:
    axes.set_xscale("symlog", linthresh=_LINEAR_PCT)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:+,g}" if value else "0"))
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_xlabel(label)


def _bars(axes: Axes, costs: Mapping[str, Mapping[str, int]]) -> None:
    """Of every name a bar for each kernel set, the cheapest first."""
    for row, by_set in enumerate(costs.values()):
        thick = 0.7 / len(by_set)
        for i, (kernels, value) in enumerate(by_set.items()):
            place = row + thick * (i - (len(by_set) - 1) / 2)
            axes.barh(place, value / 1e6, 0.9 * thick, color=COLOURS[i % 2], linewidth=0)
            axes.annotate(
                f"{value / 1e6:.2f} {kernels}",
                (value / 1e6, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7.5,
            )
    axes.set_xlim(0, 1.3 * max(max(by_set.values()) for by_set in costs.values()) / 1e6)
