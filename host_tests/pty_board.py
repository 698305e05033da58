"""A stand-in for a board on a serial port: the unix port behind a pseudo-terminal, its files on a littlefs.

The file system lies in a flash image on the host, through a block device that writes each block at once:
kill the process at any moment and the image holds what a real flash would after a power cut.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import tempfile
import termios
import tty
from pathlib import Path
from types import TracebackType

from unix_port import port, processes

BLOCK_BYTES = 4096

_BOOT = """\
import os, sys, vfs

class Flash:
    def __init__(self, path, count):
        self.count = count
        self.file = open(path, "r+b")
    def readblocks(self, block, into, offset=0):
        self.file.seek(block * {block} + offset)
        self.file.readinto(into)
    def writeblocks(self, block, data, offset=0):
        self.file.seek(block * {block} + offset)
        self.file.write(data)
        self.file.flush()
    def ioctl(self, op, arg):
        return {{4: self.count, 5: {block}}}.get(op, 0)

flash = Flash({image!r}, {count})
{more}
if {new}:
    vfs.VfsLfs2.mkfs(flash, progsize=256)
vfs.mount(vfs.VfsLfs2(flash, progsize=256), "/flash")
os.chdir("/flash")
sys.path[:] = ["", ".frozen", "/flash/lib"]
"""


class PtyBoard:
    """`with PtyBoard(image, blocks) as board:` runs it; `board.port` is its serial port.

    A new `image` (a path) is erased flash; one that is there is used as it is. `more` runs before it is
    mounted.
    """

    def __init__(self, image: Path, blocks: int = 352, more: str = "") -> None:
        new = not image.exists()
        if new:
            image.write_bytes(b"\xff" * (blocks * BLOCK_BYTES))
        self.image = image
        self._boot = _BOOT.format(block=BLOCK_BYTES, image=str(image), count=blocks, more=more, new=new)

    def __enter__(self) -> PtyBoard:
        board, child = pty.openpty()
        tty.setraw(board)
        mode = termios.tcgetattr(child)
        mode[1] &= ~termios.ONLCR
        termios.tcsetattr(child, termios.TCSANOW, mode)
        self.port = os.ttyname(child)
        # The host opens the terminal as it would a board's port; the interpreter has the other end.
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as script:
            script.write(self._boot)
        self._script = Path(script.name)
        self._child = child
        self.process = processes.popen(
            [*port.interpreter(), "-i", script.name],
            stdin=board,
            stdout=board,
            stderr=board,
            start_new_session=True,
        )
        os.close(board)  # only the process has it now: when that dies, the line goes dead
        # What is sent before would be lost: the interpreter empties its input when its REPL starts.
        self._await(child, b">>> ")
        return self

    def _await(self, terminal: int, end: bytes) -> None:
        """Read until the board has said `end`."""
        seen = b""
        while not seen.replace(b"\r", b"").endswith(end):
            assert select.select([terminal], [], [], 30)[0], seen
            seen += os.read(terminal, 1024)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        os.close(self._child)
        self._script.unlink(missing_ok=True)

    def start(self, program: str) -> None:
        """Let it run `program` as if from its prompt, without an end to wait for."""
        os.write(self._child, b"\x05print('at ' + 'work')\n" + program.encode() + b"\x04")
        self._await(self._child, b"at work\n")

    def kill(self) -> None:
        """Cut the power."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
