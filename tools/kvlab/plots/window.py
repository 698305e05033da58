"""Which tokens a cache shows as it goes on: the positions that the cache itself reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.ticker import FuncFormatter

from kvlab.plots.sheet import COLOURS, save, sheet

_LEAST = 0.012  # of the axis: what is thinner is drawn as thick as this


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
    """Save a picture of what is visible as the tokens come: above where it lies, below how much it is."""
    kept, recent = {"color": COLOURS[3], "linewidth": 0}, {"color": COLOURS[1], "linewidth": 0}
    of = f"a window of {_tokens(window)} and {sinks:,} {'sink' if sinks == 1 else 'sinks'}"
    figure, whole = sheet(f"What stays visible: {of}", width=9, height=6.4)
    whole.remove()
    where, many = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
    if seen[0].tokens == 1:
        seen = [Seen(0, 0, 0, 0, 0), *seen]
    tokens = [each.tokens for each in seen]
    last, most = tokens[-1], window + sinks
    thin = _LEAST * last
    where.fill_between(
        tokens,
        [max(0, min(each.oldest, each.end - thin)) if each.end > each.oldest else each.end for each in seen],
        [each.end for each in seen],
        label="window",
        **recent,
    )
    where.plot(tokens, tokens, color="black", linewidth=0.8, label="the newest token")
    many.fill_between(tokens, 0, [each.visible for each in seen], **recent)
    if sinks:
        first = [min(each.tokens, max(each.sinks, thin)) for each in seen]
        where.fill_between(tokens, 0, first, label=f"sinks: {_first(sinks)}", **kept)
        # The lower picture is less than half as high.
        first = [min(each.visible, max(each.sinks, 3 * _LEAST * most)) for each in seen]
        many.fill_between(tokens, 0, first, **kept)
    gone = [each for each in seen if each.oldest > sinks]
    if gone:
        where.annotate(
            "overwritten",
            (gone[-1].tokens, (gone[-1].oldest + sinks) / 2),
            ha="right",
            va="center",
            xytext=(-8, 0),
            textcoords="offset points",
            color="0.35",
        )
    many.axhline(most, color="black", linewidth=0.8, linestyle="--")
    many.annotate(
        f"at most {most:,}",
        (tokens[0], most),
        xytext=(4, 3),
        textcoords="offset points",
        fontsize=9,
    )
    where.set_xlim(tokens[0], last)
    where.set_ylim(0, last)
    many.set_ylim(0, 1.3 * most)
    where.set_ylabel("position of the token")
    many.set_ylabel("tokens visible")
    many.set_xlabel("tokens so far")
    for axis in (where.yaxis, many.yaxis, many.xaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axis.get_major_locator().set_params(integer=True)
    where.legend(loc="upper left", frameon=False, reverse=True)
    save(figure, path)


def _tokens(n: int) -> str:
    return f"{n:,} {'token' if n == 1 else 'tokens'}"


def _first(n: int) -> str:
    return "the first token" if n == 1 else f"the first {n:,} tokens"
