"""How far attention is from float64: by the share of one heavy token, and by the number of tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from kvlab.plots.sheet import COLOURS, save, sheet

_MARKS = "osD^vP"


def draw(figures: Mapping[str, Any], path: Path, option: str) -> None:
    """`figures`: those of bench.accuracy.curves.measure."""
    title = f"Error of attention beside one heavy token, head_dim {figures['head_dim']}"
    figure, whole = sheet(title, width=12, height=5.2)
    whole.remove()
    by_share, by_tokens = figure.subplots(1, 2)
    for i, codec in enumerate(figures["by_share"]):
        look = {"color": COLOURS[(0, 3, 2, 4, 5, 7)[i % 6]], "marker": _MARKS[i % 6], "markersize": 4}
        by_share.plot([100 * x for x in figures["shares"]], figures["by_share"][codec], label=codec, **look)
        errors = figures["by_tokens"][codec]
        by_tokens.plot(figures["tokens"][: len(errors)], errors, **look)
    by_share.set_title("by the heavy token's share, the worst of 3 to 64 tokens", fontsize=10)
    by_share.set_xlabel("share of the heavy token (%)")
    by_tokens.set_title("by the number of tokens, the worst of shares from 20 to 99 %", fontsize=10)
    by_tokens.set_xlabel("tokens in view")
    by_tokens.set_xscale("log", base=2)
    by_tokens.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    for axes in (by_share, by_tokens):
        axes.set_ylabel("worst L2 error (% of the values' RMS norm)")
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.grid(alpha=0.25)
    handles, labels = by_share.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    save(figure, path, option)
