"""What goes over the bus while a token is made, a panel a run: who had it, and who waited for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Patch

from kvlab.bus.contention import Outcome
from kvlab.bus.kinds import IO, KINDS, KV_READ, KV_WRITE, WEIGHTS
from kvlab.bus.wire import PS_PER_US, Span
from kvlab.plots.sheet import COLOURS, save, sheet

ROWS = (KV_WRITE, KV_READ, WEIGHTS, IO)  # from the top down
COLOUR = {kind: COLOURS[i] for i, kind in enumerate((KV_READ, KV_WRITE, WEIGHTS, IO))}
_WAITS = "0.8"


def draw(
    runs: Mapping[str, Outcome], title: str, path: Path, option: str = "--plot", layers: int = 3
) -> None:
    """The first layers of the last token of each run, all on one scale of time."""
    figure, whole = sheet(title, width=10, height=1.0 + 1.9 * len(runs))
    whole.remove()
    panels = figure.subplots(len(runs), 1, sharex=True, squeeze=False)
    shown = {name: part(outcome.spans, layers) for name, outcome in runs.items()}
    longest = max((end - begin for begin, end, _ in shown.values()), default=0)
    unit, scale = _unit(longest / PS_PER_US)
    for axes, (name, (begin, end, spans)) in zip(panels.flat, shown.items()):
        _panel(axes, spans, begin, scale)
        axes.set_title(_said(name, runs[name]), loc="left", fontsize=10)
        axes.axvline((end - begin) / PS_PER_US / scale, color="0.4", linewidth=0.8, linestyle=":")
    for axes in panels.flat:
        axes.set_xlim(-0.01 * longest / PS_PER_US / scale, 1.01 * longest / PS_PER_US / scale)
    panels[-1][0].set_xlabel(f"time ({unit}); dotted: these layers are done")
    figure.legend(
        handles=[
            *(Patch(color=COLOUR[kind], label=KINDS[kind]) for kind in ROWS),
            Patch(color=_WAITS, label="waits for the bus"),
        ],
        loc="outside lower center",
        ncols=len(ROWS) + 1,
        frameon=False,
    )
    save(figure, path, option)


def part(spans: Sequence[Span], layers: int) -> tuple[int, int, list[Span]]:
    """(begin, end, what lies between) of so many layers of the last token there is; all where none begins."""
    writes = [span for span in spans if span.kind == KV_WRITE]
    before = [-1, *(span.layer for span in writes)]
    begins = [span.asked_ps for span, layer in zip(writes, before) if span.layer == 0 != layer]
    begin = max(begins, default=0)
    later = [span.asked_ps for span in writes if span.layer == layers and span.asked_ps > begin]
    end = min(later, default=max((span.end_ps for span in spans), default=0))
    return begin, end, [span for span in spans if span.end_ps > begin and span.asked_ps < end]


def _said(name: str, outcome: Outcome) -> str:
    waits = f"other tasks waited up to {shown(outcome.worst_us)}, proven bound {shown(outcome.bound_us)}"
    return f"{name}: {shown(outcome.token_us)} a token, {waits}"


def _unit(us: float) -> tuple[str, int]:
    """What a time is told in, and how many microseconds one is."""
    return ("s", 10**6) if us >= 10**7 else ("ms", 1000) if us >= 10**4 else ("µs", 1)


def shown(us: float) -> str:
    """A time for people: 659 µs, 35.7 ms, 412 s."""
    unit, scale = _unit(us)
    value = us / scale
    return f"{value:,.{0 if scale == 1 or value >= 100 else 1}f} {unit}"


def _panel(axes: Axes, spans: Sequence[Span], begin: int, scale: int) -> None:
    for row, kind in enumerate(ROWS):
        for colour, bars in (
            (_WAITS, [(s.asked_ps, s.begin_ps) for s in spans if s.kind == kind]),
            (COLOUR[kind], [(s.begin_ps, s.end_ps) for s in spans if s.kind == kind]),
        ):
            places = [
                ((a - begin) / PS_PER_US / scale, (b - a) / PS_PER_US / scale) for a, b in bars if b > a
            ]
            # An edge, as most transfers of a board are thinner than a line.
            height = 0.8 if colour != _WAITS else 0.3
            at = row - height / 2
            axes.broken_barh(places, (at, height), facecolor=colour, edgecolor=colour, linewidth=0.6)
    axes.set_yticks(range(len(ROWS)), [KINDS[kind] for kind in ROWS])
    axes.set_ylim(len(ROWS) - 0.4, -0.6)
    for edge in ("top", "right"):
        axes.spines[edge].set_visible(False)
