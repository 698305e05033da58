"""What all pictures have in common: one style, one way to name sizes, one way to save."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

from commandline import files  # noqa: E402

# Told apart without red and green; bands from the bottom up.
COLOURS = ("#33658a", "#86bbd8", "#f6ae2d", "#f26419", "#7b6d8d", "#a3b18a", "#c9ada7", "#5f5f5f")
KIB = 1024
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def sheet(title: str, width: float = 9.0, height: float = 5.0) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(width, height), constrained_layout=True)
    figure.suptitle(title)
    return figure, axes


def sized(n: float) -> str:
    """Bytes with three digits at most and their unit: 16 KiB, 1.25 MiB."""
    unit = 0
    while n >= KIB and unit < len(_UNITS) - 1:
        n /= KIB
        unit += 1
    digits = 0 if n >= 100 or n == int(n) else 1 if n >= 10 else 2
    return f"{n:,.{digits}f} {_UNITS[unit]}"


def apart(places: Sequence[float], gap: float, low: float = 0.0, high: float = 1.0) -> list[float]:
    """`places`, ascending, moved as little as may be so that neighbours are `gap` apart within low..high.

    Where there is no room for that they are spread evenly.
    """
    if not places:
        return []
    if gap * (len(places) - 1) >= high - low:
        gap = (high - low) / max(1, len(places) - 1)
    moved: list[float] = []
    for place in places:
        moved.append(max(place, low, moved[-1] + gap if moved else low))
    top = high
    for i in range(len(moved) - 1, -1, -1):
        moved[i] = min(moved[i], top)
        top = moved[i] - gap
    return moved


def save(figure: Figure, path: Path, option: str = "--out") -> None:
    """Write the figure as PNG, whole or not at all, and forget it. BadInput when it cannot be written.

    option: what named the path. The bytes are those of the picture: no version, no date.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=120, metadata={"Software": None})
    plt.close(figure)
    files.write(path, drawn.getvalue(), option)
