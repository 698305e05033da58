"""Pictures that carry the figures they were drawn from, so that they can be checked as numbers are."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

from kvlab.docs.tolerance import Tolerance

KEY = "kvlab"  # of the PNG file's text chunk


def with_figures(png: bytes, figures: Any, plot: ModuleType) -> bytes:
    """The PNG file with `figures`, as JSON takes them, and a name for the source of `plot`, which drew it."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    chunk = PngInfo()
    told = {"figures": figures, "drawn by": source_of(plot)}
    chunk.add_text(KEY, json.dumps(told, sort_keys=True))
    made = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.save(made, format="PNG", optimize=True, pnginfo=chunk)
    return made.getvalue()


def source_of(plot: ModuleType) -> str:
    """A short name for the source that draws, in letters: another source draws another picture."""
    from kvlab.plots import sheet

    data = b"".join(Path(str(module.__file__)).read_bytes() for module in (sheet, plot))
    return hashlib.sha256(data).hexdigest()[:16].translate(str.maketrans("0123456789", "ghijklmnop"))


def figures_of(png: bytes) -> str:
    """The figures that a PNG file carries, as JSON text; empty where it has none."""
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return str(image.info.get(KEY, ""))


def difference(told: bytes, found: bytes, tolerance: Tolerance) -> str | None:
    """How the picture at hand differs from the one that was drawn now; None if it does not.

    What counts is the figures behind it and the source that drew it: another version of matplotlib moves
    pixels.
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
