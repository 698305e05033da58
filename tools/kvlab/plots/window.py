"""Which tokens a cache shows as it goes on: the positions that the cache itself reports."""

from __future__ import annotations

from pathlib import Path

from kvlab.plots.sheet import COLOURS, save, sheet


def draw(seen: list[list[int]], window: int, sinks: int, path: Path) -> None:
    """`seen[n]`: positions visible after n + 1 tokens."""
    figure, axes = sheet(f"What stays visible: a window of {window:,} tokens and {sinks} sinks")
    tokens = range(1, len(seen) + 1)
    ring = [[p for p in positions if p >= sinks] for positions in seen]
    axes.fill_between(
        tokens,
        [r[0] if r else sinks for r in ring],
        [r[-1] + 1 if r else sinks for r in ring],
        color=COLOURS[1],
        label="window",
        linewidth=0,
    )
    axes.fill_between(
        tokens,
        0,
        [len([p for p in positions if p < sinks]) for positions in seen],
        color=COLOURS[3],
        label="sinks",
        linewidth=0,
    )
    axes.plot(tokens, [len(positions) for positions in seen], color="black", label="tokens visible")
    axes.set_xlim(1, len(seen))
    axes.set_ylim(0, len(seen))
    axes.set_xlabel("tokens so far")
    axes.set_ylabel("position (tokens)")
    axes.legend(loc="upper left", frameon=False)
    save(figure, path)
