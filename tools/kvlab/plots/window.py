"""Which tokens a cache shows as it goes on: the positions that the cache itself reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kvlab.plots.sheet import COLOURS, save, sheet


@dataclass(frozen=True)
class Seen:
    """What is visible after `tokens` tokens: `sinks` first ones, and the positions from `oldest` up to, not
    including, `end`.
    """

    tokens: int
    sinks: int
    oldest: int
    end: int
    visible: int

    @classmethod
    def of(cls, tokens: int, positions: list[int], sinks: int) -> Seen:
        """From the positions that a cache with so many sinks reports as visible, ascending."""
        ring = [position for position in positions if position >= sinks]
        oldest, end = (ring[0], ring[-1] + 1) if ring else (sinks, sinks)
        return cls(tokens, len(positions) - len(ring), oldest, end, len(positions))


def draw(seen: list[Seen], window: int, sinks: int, path: Path) -> None:
    """Save a picture of what is visible as the tokens come."""
    figure, axes = sheet(f"What stays visible: a window of {window:,} tokens and {sinks} sinks")
    tokens = [each.tokens for each in seen]
    axes.fill_between(
        tokens,
        [each.oldest for each in seen],
        [each.end for each in seen],
        color=COLOURS[1],
        label="window",
        linewidth=0,
    )
    axes.fill_between(
        tokens,
        0,
        [each.sinks for each in seen],
        color=COLOURS[3],
        label="sinks",
        linewidth=0,
    )
    axes.plot(tokens, [each.visible for each in seen], color="black", label="tokens visible")
    axes.set_xlim(tokens[0], tokens[-1])
    axes.set_ylim(0, tokens[-1])
    axes.set_xlabel("tokens so far")
    axes.set_ylabel("position (tokens)")
    axes.legend(loc="upper left", frameon=False)
    save(figure, path)
