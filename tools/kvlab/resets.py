"""A story with a flash log in its board's file system, and one that is cut off and goes on."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from commandline.errors import BadInput, FellShort
from kvlab import story
from kvlab.boards import Board
from kvlab.models.image import Image
from unix_port import launcher

BLOCK_BYTES = 4096
ROOT = "/flash"  # where the emulated board has its file system
FOLDER = ROOT + "/kv"
TAIL_BYTES = 40  # of the app with each block (boards/apps/stories/logged.py)
SALT = 1  # of the marks by which the log's blocks are found
_LOST = "\N{REPLACEMENT CHARACTER}"
_WITHOUT = "stories: told without a log: "
TORN = 1  # seed of what the cut leaves of the operation it is in
_LEAST_WINDOW = 16

# Makes an empty file system with the log's files in it.
_MAKE = """
import os, sys
try:
    from rp2 import Flash
    storage = Flash()
except ImportError:
    from esp32 import Partition
    storage = Partition.find(Partition.TYPE_DATA, label="vfs")[0]
from mpy_kv.flash_log.files import make_files
os.VfsLfs2.mkfs(storage, progsize=256)
os.mount(os.VfsLfs2(storage, progsize=256), sys.argv[1])
make_files(sys.argv[1] + "/kv", int(sys.argv[2]), int(sys.argv[3]))
"""


@dataclass(frozen=True)
class Region:
    """Of `--kv-flash`; telling: with the window that it has room for."""

    total_bytes: int
    telling: story.Telling
    notes: list[str]


def fitted(board: Board, image: Image, telling: story.Telling, total_bytes: int) -> Region:
    """The telling in a region of so many bytes; without a window asked for, with the largest that fits.

    BadInput names the smallest region that works.
    """
    if board.emulated:
        raise BadInput(f"--kv-flash: {board.title} has no flash that can be written; choose another --board")
    if total_bytes % BLOCK_BYTES:
        near = total_bytes // BLOCK_BYTES * BLOCK_BYTES
        raise BadInput(
            f"--kv-flash {total_bytes}: must be a multiple of {BLOCK_BYTES:,}, the blocks of the flash, such"
            f" as {near + BLOCK_BYTES}"
        )
    most = board.machine.flash_bytes
    if total_bytes > most // 4 * 3:
        raise BadInput(
            f"--kv-flash {total_bytes}: {board.title} has {most:,} bytes of storage, of which a log may take"
            " three quarters"
        )
    telling = story.with_sinks(telling, image.data)
    context = image.config.seq_len
    usual = min(story.usual_window(board), context)
    window = usual if telling.window is None else telling.window
    sinks = story.USUAL_SINKS if telling.sinks is None else telling.sinks
    if window + sinks > context and (telling.window is not None or telling.sinks is not None):
        raise BadInput(f"--window {window} and --sinks {sinks}: the model was trained for {context:,} tokens")
    need = found = smallest_bytes(image, telling, window)
    while found > total_bytes and telling.window is None and window > _LEAST_WINDOW:
        window = (window - 1) // _LEAST_WINDOW * _LEAST_WINDOW
        found = smallest_bytes(image, telling, window)
    if found > total_bytes:
        raise BadInput(
            f"--kv-flash {total_bytes}: the smallest that works with a window of {window:,} is {found:,}"
        )
    notes = []
    if window < usual and telling.window is None:
        notes.append(f"window: {window:,} instead of {usual:,}, for which the flash log takes {need:,} bytes")
    return Region(total_bytes, replace(telling, window=window), notes)


def with_heap(board: Board, image: Image, region: Region) -> Region:
    """The same with a window for which the board's heap has room beside a log, at the first start and when it
    goes on: tried from the region's down. FellShort where there is none."""
    window = int(region.telling.window or 0)
    while True:
        telling = replace(region.telling, window=window, tokens=2 * _LEAST_WINDOW)
        flash = formatted(board, region.total_bytes)
        try:
            start(board, image.data, telling, flash, cut_at=_LEAST_WINDOW + 8)
            start(board, image.data, telling, flash)
            break
        except FellShort as error:
            if "memory" not in str(error).lower():
                raise
        if window <= _LEAST_WINDOW:
            raise FellShort(
                f"does not fit: the heap of {board.title} has no room for a flash log beside this story;"
                " choose another --board or --codec"
            )
        window = max(_LEAST_WINDOW, window * 3 // 4 // _LEAST_WINDOW * _LEAST_WINDOW)
    if window == region.telling.window:
        return region
    note = f"window: {window:,}, as the heap has no room for {region.telling.window:,} beside a flash log"
    return Region(region.total_bytes, replace(region.telling, window=window), [note])


def smallest_bytes(image: Image, telling: story.Telling, window: int) -> int:
    """Of a region for such a story."""
    from mpy_kv import cache_for, geometry_for
    from mpy_kv.resume import sizes

    c = image.config
    sinks = story.USUAL_SINKS if telling.sinks is None else telling.sinks
    codec = telling.codec or (list(image.codecs) if image.codecs else story.USUAL_CODEC)
    shape = (c.layers, c.heads, c.kv_heads, c.head_dim)
    cache = cache_for(geometry_for(codec, *shape, window=window, sinks=sinks))
    return BLOCK_BYTES * int(sizes.smallest_sectors(cache, TAIL_BYTES))


@dataclass(frozen=True)
class Start:
    """One start of the board with its log: text, what the app has to say, the emulator's report."""

    text: str
    seen: dict[str, Any]
    report: launcher.Report

    @property
    def went_on_from(self) -> int:
        """The first token that was run; 1 is the first of a story."""
        return int(self.seen.get("reused_tokens", 0)) + 1


@dataclass
class Flash:
    """The storage of a board between its starts."""

    content: bytes
    state: dict[str, Any] | None = None


def formatted(board: Board, total_bytes: int) -> Flash:
    """A file system with the files of a log."""
    with TemporaryDirectory(prefix="kvlab-") as folder:
        script = Path(folder) / "make.py"
        script.write_text(_MAKE)
        words = [ROOT, total_bytes // BLOCK_BYTES, SALT]
        report = launcher.emulate(script, words, board.machine, keep_flash=True, compiled=True)
    if not report.ok or report.flash_after is None:
        raise FellShort(f"no file system with a log: {report.verdict}")
    return Flash(report.flash_after)


def start(
    board: Board,
    image: bytes,
    telling: story.Telling,
    flash: Flash,
    *,
    cut_at: int | None = None,
    stream: bool = False,
) -> Start:
    """Switch the board on; `flash` is then as it is left. cut_at: tokens told, behind which the power goes in
    the first operation on the flash. FellShort where the app fails, or cannot log."""
    how: dict[str, Any] = {"flash_state": flash.state, "keep_flash": True, "mount": ROOT}
    if cut_at is not None:
        how |= {"cut_at_sample": cut_at, "torn": TORN}
    with story.prepared(board, image, telling, in_storage=False) as (place, script, arguments, options):
        options["flash"] = [
            *options.get("flash", []),
            launcher.FlashFile(flash.content, 0, name="--kv-flash"),
        ]
        arguments = [*arguments, "--log", FOLDER]
        report = launcher.emulate(script, arguments, board.machine, stream=stream, **options, **how)
        told = place / story.FIGURES
        seen = json.loads(told.read_text()) if told.exists() and report.ok else {}
    if report.flash_after is not None:
        flash.content, flash.state = report.flash_after, report.flash_state
    if report.outcome != "power cut":
        story.judge(report, telling)
    for line in report.stderr.splitlines():
        if line.startswith(_WITHOUT):
            why = line[len(_WITHOUT) :]
            remedy = "; lower --window, or choose another --board" if "memory" in why else ""
            raise FellShort(f"does not fit: --kv-flash: no log can be had: {why}{remedy}")
    if seen.get("log", {}).get("failed"):
        raise FellShort(f"--kv-flash: the log ended: {seen['log']['failed']}")
    return Start(report.stdout, seen, report)


def figures_of(board: Board, begun: Start, flash_bytes: int) -> dict[str, Any]:
    """What logging took in one start. flash_us: of writing, at most, by the data sheet of the flash."""
    log = begun.seen["log"]
    report = begun.report
    page_us = board.facts["flash.page_program_us"].value
    erase_us = board.facts["flash.sector_erase_us"].value
    return {
        "kv_flash_bytes": flash_bytes,
        "blocks": log["blocks"],
        "payload_bytes": log["payload_bytes"],
        "misses": log["misses"],
        "log_ram_bytes": log["ram_bytes"],
        "flash_programs": report.flash_programs,
        "flash_erases": report.flash_erases,
        "flash_us": page_us * (report.flash_programs or 0) + erase_us * (report.flash_erases or 0),
    }


def through_a_cut(
    board: Board, image: bytes, region: Region, cut_at: int, whole: str, *, stream: bool = False
) -> tuple[Start, dict[str, Any]]:
    """Tell, cut the power, switch on again: the second start, with what both did to the flash, and what
    became of the text. whole: that of the same story undisturbed. With `stream` it appears as it is told.
    """
    flash = formatted(board, region.total_bytes)
    first = start(board, image, region.telling, flash, cut_at=cut_at, stream=stream)
    if first.report.outcome != "power cut":
        raise BadInput(
            f"--cut-at {cut_at}: nothing is written from there on; choose an earlier token, or more --tokens"
        )
    second = start(board, image, region.telling, flash)
    before = first.text
    after = second.text.rstrip("\n")
    whole = whole.rstrip("\n")
    # Where a letter of several bytes was cut, each side has a mark for its part.
    begins, ends = whole.startswith(before.rstrip(_LOST)), whole.endswith(after.lstrip(_LOST))
    equal = begins and ends and len(before) + len(after) >= len(whole)
    if stream:  # what is told twice is shown once
        sys.stdout.write(second.text[max(0, len(before) + len(after) - len(whole)) :])
    figures = {
        "tokens": region.telling.tokens,
        "cut_at": cut_at,
        "went_on_from": second.went_on_from,
        "reused_tokens": second.seen["reused_tokens"],
        "text_equal": equal,
        "text": whole,
    }
    for name in ("flash_programs", "flash_erases"):
        total = (getattr(first.report, name) or 0) + (getattr(second.report, name) or 0)
        setattr(second.report, name, total)
    return second, figures
