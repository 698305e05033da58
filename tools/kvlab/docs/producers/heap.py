"""What a story takes of a board's heap, told on an emulator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kvlab.docs.registry import Cost, Producer, named, needs_firmware
from kvlab.docs.tolerance import HEAP

BESIDE = ("int8", "int8-int4", "sparse", "float16", "int4")
POLICY = "lru-peak"
WINDOW = 128


def _told(board: str, **asked: Any) -> dict[str, Any]:
    from kvlab import boards, paths, story
    from kvlab.models.load import load_image

    telling = story.Telling(tokens=40, **asked)
    return story.tell(boards.load(board), load_image(paths.SHIPPED).data, telling).figures


def _free(_wanted: Collection[str]) -> Mapping[str, str]:
    told = _told("qemu_arm")
    return {"heap_free": f"{told['heap_limit_bytes'] - told['heap_live_bytes']:,}"}


def _beside(_wanted: Collection[str]) -> Mapping[str, str]:
    """Live heap less the buffer, by element type and with a policy."""
    asked: dict[str, dict[str, Any]] = {codec: {"codec": codec} for codec in BESIDE}
    asked[f"int8 and `--policy {POLICY}`"] = {"policy": POLICY}
    cells = []
    for more in asked.values():
        told = _told("qemu_arm", window=WINDOW, **more)
        cells.append(f"{told['heap_live_bytes'] - told['buffer_bytes']:,}")
    rows = [("", *asked), ("---", *["---:"] * len(cells)), ("bytes of heap beside the buffer", *cells)]
    return {"heap_beside": "\n".join(f"| {' | '.join(row)} |" for row in rows)}


PRODUCERS = (
    Producer(
        "heap_free",
        "kvlab stories --board qemu_arm --tokens 40 --json FILE",
        Cost.MINUTES,
        named("heap_free", tolerance=HEAP),
        _free,
        needs_firmware,
    ),
    Producer(
        "heap_beside",
        f"kvlab stories --board qemu_arm --tokens 40 --window {WINDOW} --codec CODEC --json FILE",
        Cost.MINUTES,
        named("heap_beside", tolerance=HEAP),
        _beside,
        needs_firmware,
    ),
)
