"""Pictures that carry the figures they were drawn from, so that they can be checked as numbers are."""

from __future__ import annotations

import io
import json
from typing import Any

from kvlab.docs.tolerance import Tolerance

KEY = "kvlab"  # of the PNG file's text chunk


def with_figures(png: bytes, figures: Any) -> bytes:
    """The PNG file with `figures`, as JSON takes them, in a text chunk."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    chunk = PngInfo()
    chunk.add_text(KEY, json.dumps(figures, sort_keys=True))
    made = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.save(made, format="PNG", optimize=True, pnginfo=chunk)
    return made.getvalue()


def figures_of(png: bytes) -> str:
    """The figures that a PNG file carries, as JSON text; empty where it has none."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return str(image.info.get(KEY, ""))


def difference(told: bytes, found: bytes, tolerance: Tolerance) -> str | None:
    """How the picture at hand differs from the one that was drawn now; None if it does not.

    What counts is the figures behind it and its size: another version of the library that draws moves
    pixels, the machine's clock moves what has time on an axis.
    """
    have, want = figures_of(told), figures_of(found)
    if not have:
        return "carries no figures"
    if not tolerance.allows(have, want):
        at = next((i for i, (a, b) in enumerate(zip(have, want)) if a != b), min(len(have), len(want)))
        return f"drawn from ...{_near(have, at)}..., now ...{_near(want, at)}..."
    return None


def _near(text: str, at: int) -> str:
    return text[max(0, at - 24) : at + 24]
