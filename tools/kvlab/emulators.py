"""Which emulator stands for a board: the unix port behind a fence, or the 32-bit firmware."""

from __future__ import annotations

from collections.abc import Callable

from kvlab.boards import Board
from unix_port import launcher


def emulate(board: Board) -> Callable[..., launcher.Report]:
    """The function that runs a script on `board`, called like unix_port.launcher.emulate."""
    if board.emulated:
        from qemu_port import launcher as of_firmware

        return of_firmware.emulate
    return launcher.emulate
