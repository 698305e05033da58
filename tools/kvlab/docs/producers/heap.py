"""What a story takes of a board's heap, told on an emulator."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kvlab.docs.registry import Cost, Producer, named, needs_firmware
from kvlab.docs.tolerance import HEAP
from kvlab.element_types import HELD

PREFIX = "Once upon a time, there was a little dragon who lived in a big forest. One day"
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
    asked: dict[str, dict[str, Any]] = {codec: {"codec": codec} for codec in HELD}
    asked[f"int8 and `--policy {POLICY}`"] = {"policy": POLICY}
    cells = []
    for more in asked.values():
        told = _told("qemu_arm", window=WINDOW, **more)
        cells.append(f"{told['heap_live_bytes'] - told['buffer_bytes']:,}")
    rows = [("", *asked), ("---", *["---:"] * len(cells)), ("bytes of heap beside the buffer", *cells)]
    return {"heap_beside": "\n".join(f"| {' | '.join(row)} |" for row in rows)}


def _requests(_wanted: Collection[str]) -> Mapping[str, str]:
    """Four stories at once on a Pico 2."""
    from kvlab import boards, many, paths
    from kvlab.models.load import load_image

    telling = many.Telling(tokens=200, requests=4, block_tokens=8, shared_prefix=PREFIX)
    told = many.tell(boards.load("rp2350"), load_image(paths.SHIPPED), telling).figures
    same = sum(one["equal_to_single"] for one in told["stories"])
    return {
        "requests_alike": f"{same} of {len(told['stories'])}, {told['alloc_bytes_per_token']}",
        "requests_arena": f"{told['buffer_bytes']:,}",
    }


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
    Producer(
        "requests",
        f'kvlab stories --board rp2350 --requests 4 --block-tokens 8 --tokens 200 --shared-prefix "{PREFIX}"',
        Cost.MINUTES,
        named("requests_alike", "requests_arena"),
        _requests,
    ),
)
