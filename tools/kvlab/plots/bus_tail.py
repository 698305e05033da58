"""How long other tasks wait for the bus, by how much of it a model takes, and the bound that is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kvlab.bus.contention import Tail
from kvlab.plots.sheet import COLOURS, save, sheet

_LINES = (
    ("max_us", "longest", "o", COLOURS[3]),
    ("p99_us", "99 % wait no longer", "s", COLOURS[2]),
    ("p50_us", "half wait no longer", "^", COLOURS[0]),
)


def draw(by: Mapping[str, Sequence[Tail]], title: str, path: Path, option: str = "--plot") -> None:
    """`by`: what is waited for, a panel each."""
    figure, whole = sheet(title, width=5.2 * len(by), height=4.8)
    whole.remove()
    panels = figure.subplots(1, len(by), sharey=True, squeeze=False)
    for axes, (name, tails) in zip(panels.flat, by.items()):
        loads = [100 * tail.load for tail in tails]
        axes.plot(loads, [tail.bound_us for tail in tails], color="black", linewidth=2, label="proven bound")
        for key, label, mark, colour in _LINES:
            values = [getattr(tail, key) for tail in tails]
            axes.plot(loads, values, color=colour, marker=mark, markersize=4.5, label=label)
        axes.set_title(name, fontsize=10)
        axes.set_xlim(0, 100)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("time in which the bus is the model's (%)")
        axes.grid(True, which="major", color="0.9")
        for edge in ("top", "right"):
            axes.spines[edge].set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("from another task's request to its last byte (µs)")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    save(figure, path, option)
