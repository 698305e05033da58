"""What all pictures have in common: one style, one way to save."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from kvlab import files  # noqa: E402

# Told apart without red and green; bands from the bottom up.
COLOURS = ("#33658a", "#86bbd8", "#f6ae2d", "#f26419", "#7b6d8d", "#a3b18a", "#c9ada7", "#5f5f5f")
KIB = 1024


def sheet(title: str, width: float = 9.0, height: float = 5.0) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(width, height), constrained_layout=True)
    figure.suptitle(title)
    return figure, axes


def save(figure: Figure, path: Path, option: str = "--out") -> None:
    """Write the figure as PNG, whole or not at all, and forget it. BadInput when it cannot be written.

    option: what named the path.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=120)
    plt.close(figure)
    files.write(path, drawn.getvalue(), option)
