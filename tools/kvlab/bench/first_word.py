"""What the start of the stories app takes on the emulated board, as a Pico has it: instructions to the first
word, of the first start on a board and of those that find its kernels checked."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from commandline.errors import FellShort
from kvlab import boards, emulators, paths
from unix_port.launcher import FlashFile, Report

BOARD = "qemu_arm"
STARTS = ("first_word", "first_word_remembered")


def measure(model: Path) -> dict[str, int]:
    """Instructions by the names of STARTS, with a board image in memory-mapped flash. FellShort."""
    image = model.read_bytes()
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        return {name: _start(image, Path(folder)) for name in STARTS}


def _start(image: bytes, folder: Path) -> int:
    """Of one start of a board whose files lie in `folder`."""
    board = boards.load(BOARD)
    report: Report = emulators.emulate(board)(
        paths.APPS / "bench" / "first_word.py",
        [],
        board.machine,
        compiled=True,
        cwd=folder,
        flash=[FlashFile(image, 0, name="--model")],
    )
    if not report.fits:
        raise FellShort(f"a start on {board.name} failed: {report.error or report.verdict}")
    return int(json.loads(report.stdout.strip().rsplit("\n", 1)[-1])["instructions"])
