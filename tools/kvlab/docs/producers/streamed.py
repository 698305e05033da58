"""The table of what streamed weights take the core, and the figures that are made of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvlab import boards, shipped
from kvlab.docs.registry import Cost, Producer, named, needs_firmware
from kvlab.docs.tolerance import INSTRUCTIONS

TABLE = "tools/kvlab/bus/streamed.json"
BOARD = "rp2040"


def _table(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab.bus import stream_counts

    return {TABLE: stream_counts.measured().encode()}


def _pace(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab.bus import stream_counts, streaming
    from kvlab.cost import model
    from kvlab.models.image import Image

    board = boards.load(BOARD)
    head = ("model", "in place", *(f"through {ring // 1024} KiB" for ring, _ in stream_counts.RINGS))
    rows: list[tuple[str, ...]] = [head, ("---",) + ("---:",) * (len(head) - 1)]
    for name in shipped.NAMES:
        shape = Image.read(shipped.image(name)).config
        plain = model.pace(board, shape, "int8").tokens_per_s
        found = [streaming.pace(board, shape, ring_bytes=ring) for ring, _ in stream_counts.RINGS]
        rows.append((f"`{name}`", f"{plain:.1f}", *(f"{each.tokens_per_s:.1f}" for each in found)))
        if name == shipped.NAMES[0]:
            usual = found[[ring for ring, _ in stream_counts.RINGS].index(stream_counts.USUAL_RING)]
            ram = ("bytes of RAM", "0", *(f"{each.ram_bytes:,}" for each in found))
            waits = ("the core waits", "", *(f"{100 * (each.core_waits or 0):.0f} %" for each in found))
            busy = ("the stream moves", "", *(f"{100 * (each.flash_busy or 0):.0f} %" for each in found))
            more = [ram, waits, busy]
    rows += more
    return {
        "streamed_pace": "\n".join(f"| {' | '.join(row)} |" for row in rows),
        "streamed_usual": f"{usual.tokens_per_s:.1f}",
        "streamed_ram": f"{usual.ram_bytes:,}",
    }


PRODUCERS = (
    Producer(
        "streamed",
        "kvlab docs --write streamed",
        Cost.LONG,
        named(TABLE, tolerance=INSTRUCTIONS),
        _table,
        needs_firmware,
    ),
    Producer(
        "streamed_pace",
        "kvlab docs --write streamed_pace",
        Cost.CHEAP,
        named("streamed_pace", "streamed_usual", "streamed_ram"),
        _pace,
    ),
)
