"""Why int4 keys need channels: their reach, and one step of int4 scaled by token or by channel."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kvlab.plots.sheet import COLOURS, save, sheet
from kvlab.quality.ranges import Ranges


def draw(found: Ranges, title: str, path: Path, option: str) -> None:
    """Above all channels of the layer that scales by token serve worst, below the median channel of each."""
    figure, whole = sheet(title, width=11, height=8.4)
    whole.remove()
    above, below = figure.subplots(2, 1)
    spread = np.maximum(found.spread, 1e-30)
    worst = int(np.argmax(np.median(found.token_step / spread, axis=1)))
    channels = np.arange(found.low.shape[1])
    above.vlines(
        channels,
        found.low[worst],
        found.high[worst],
        color=COLOURS[0],
        linewidth=max(1.0, min(7.0, 200 / len(channels))),
        label="reach of the channel: 5 % to 95 % of the tokens",
    )
    half = found.token_step[worst] / 2
    above.fill_between(
        np.repeat(np.append(channels, len(channels)) - 0.5, 2)[1:-1],
        np.repeat(-half, 2),
        np.repeat(half, 2),
        color=COLOURS[2],
        alpha=0.5,
        linewidth=0,
        label="reads back as 0 in int4 with one scale per token",
    )
    above.axhline(0, color="black", linewidth=0.6)
    above.margins(y=0.08)
    above.set_xlim(-0.5, len(channels) - 0.5)
    above.set_xlabel(f"channel of the keys of layer {worst}, all KV heads")
    above.set_ylabel("key")
    above.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(0, 1.14), ncols=2)
    layers = np.arange(found.low.shape[0])
    for shift, step, colour, label in (
        (-0.2, found.token_step, COLOURS[2], "one scale per token"),
        (0.2, found.channel_step, COLOURS[0], "one scale per channel, over 16 tokens"),
    ):
        ratio = np.median(step / spread, axis=1)
        bars = below.bar(layers + shift, ratio, 0.4, color=colour, label=f"int4 with {label}")
        below.bar_label(bars, [f"{x:.2g}" for x in ratio], padding=2, fontsize=9)
    below.axhline(1, color="black", linewidth=0.8, linestyle="--", label="a step as large as the deviation")
    below.set_ylim(0, 1.4 * below.dataLim.y1)
    below.set_xticks(layers, [f"layer {n}\nx {ratio:,.0f}" for n, ratio in zip(layers, found.ratio())])
    below.set_xlabel("x: what the most constant channel carries over what the median one does (its mean)")
    below.set_ylabel("step of int4 in standard deviations\nof the channel (median channel)")
    below.legend(frameon=False, fontsize=9, loc="upper center", ncols=3)
    save(figure, path, option)
