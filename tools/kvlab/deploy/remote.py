"""The board's file system over a link: whole files only, each verified before it takes its name."""

from __future__ import annotations

import binascii
import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from commandline.errors import FellShort
from kvlab.boards import Board
from kvlab.deploy.files import File
from kvlab.deploy.link import BoardError, Link

PART = ".part"
PIECE_BYTES = 2048  # sent at a time: the board has to hold it twice, as text and as bytes
WINDOW_BITS = 10  # agent.py
ROOT_BLOCKS = 2  # littlefs's root folder, which is there before any file

_AGENT = Path(__file__).with_name("agent.py")


@dataclass(frozen=True)
class Seen:
    """A file that is there: its size and hash (sha256 in hex, or crc32 where the board has none)."""

    size: int
    digest: str

    def holds(self, data: bytes) -> bool:
        """Whether it is these bytes."""
        return self.size == len(data) and self.digest == digest_like(self.digest, data)


@dataclass(frozen=True)
class Space:
    """Of the file system: bytes of a block, blocks free."""

    block_bytes: int
    free_blocks: int

    @property
    def free_bytes(self) -> int:
        return self.block_bytes * self.free_blocks

    def blocks(self, size: int) -> int:
        """Blocks a file of `size` bytes takes; littlefs keeps pointers in each, 8 bytes at most mostly."""
        return size // (self.block_bytes - 8) + 1


def packed(data: bytes, deflates: bool) -> str:
    """A piece as an expression that the agent's unpacked() takes: deflated when that makes it smaller."""
    if deflates:
        squeeze = zlib.compressobj(9, wbits=-WINDOW_BITS)
        small = squeeze.compress(data) + squeeze.flush()
        if len(small) < len(data):
            return repr(binascii.b2a_base64(small, newline=False))
    return repr(binascii.b2a_base64(data, newline=False).decode())


def digest_like(shown: str, data: bytes) -> str:
    """Hash of `data` of the kind that `shown` is."""
    if len(shown) == 8:
        return f"{binascii.crc32(data):08x}"
    return hashlib.sha256(data).hexdigest()


class Files(Protocol):
    """What a plan asks of a file system."""

    def survey(self, names: Sequence[str]) -> dict[str, Seen]: ...
    def walk(self, folder: str) -> dict[str, int]: ...
    def space(self) -> Space: ...
    def exists(self, path: str) -> bool: ...
    def read(self, path: str) -> bytes: ...


class Blank:
    """Files of a board on which nothing was ever put: none."""

    def __init__(self, board: Board) -> None:
        unit = board.machine.flash_erase_bytes
        self._space = Space(unit, board.machine.flash_bytes // unit - ROOT_BLOCKS)

    def survey(self, names: Sequence[str]) -> dict[str, Seen]:
        return {}

    def walk(self, folder: str) -> dict[str, int]:
        return {}

    def space(self) -> Space:
        return self._space

    def exists(self, path: str) -> bool:
        return False

    def read(self, path: str) -> bytes:
        raise FileNotFoundError(path)


class Remote:
    """File operations. Loads the agent; paths are relative to where the board's interpreter stands."""

    def __init__(self, link: Link) -> None:
        self.link = link
        link.run(_AGENT.read_text(encoding="utf-8"))
        self.deflates = self._lines("print(DeflateIO is not None)") == ["True"]

    def survey(self, names: Sequence[str]) -> dict[str, Seen]:
        """Those of the files that are there."""
        if not names:
            return {}
        found = {}
        for name, line in zip(names, self._lines(f"survey({tuple(names)!r})"), strict=True):
            if line != "-":
                size, digest = line.split()
                found[name] = Seen(int(size), digest)
        return found

    def walk(self, folder: str) -> dict[str, int]:
        """Sizes of all files below a folder, by their paths."""
        lines = self._lines(f"walk({folder!r})")
        return {path: int(size) for size, path in (line.split(" ", 1) for line in lines)}

    def space(self) -> Space:
        _, unit, _, _, free, *_ = self._lines("for n in os.statvfs('.'): print(n)")
        return Space(int(unit), int(free))

    def exists(self, path: str) -> bool:
        """A file or a folder of that name."""
        return self._lines(f"try:\n os.stat({path!r})\n print('yes')\nexcept OSError:\n print('no')") == [
            "yes"
        ]

    def read(self, path: str) -> bytes:
        """A small text file, whole."""
        shown = self.link.run(f"print(binascii.hexlify(open({path!r}, 'rb').read()).decode())")
        return bytes.fromhex(shown.strip())

    def put(self, file: File, done: Callable[[int], None]) -> None:
        """Write under another name, verify by hash, rename: what bears the name is always whole.

        `done` is told of bytes as they are written. FellShort when the file system is full or garbles.
        """
        part = file.path + PART
        try:
            self.link.run(f"begin({part!r})")
            for at in range(0, len(file.data), PIECE_BYTES):
                piece = file.data[at : at + PIECE_BYTES]
                self.link.run(f"more({packed(piece, self.deflates)})")
                done(len(piece))
            [line] = self._lines(f"end({part!r})")
            size, digest = line.split()
            if not Seen(int(size), digest).holds(file.data):
                raise BoardError("what was written reads back otherwise")
            self.rename(part, file.path)
        except BoardError as error:
            self.link.run(f"drop({part!r})")
            if error.full:
                raise FellShort(
                    f"the board's file system is full at {file.path}: remove files from it"
                    " (mpremote fs rm), or deploy a smaller --model"
                ) from error
            raise FellShort(f"{file.path}: {error}") from error

    def rename(self, old: str, new: str) -> None:
        self.link.run(f"os.rename({old!r}, {new!r})")

    def remove(self, path: str) -> None:
        self.link.run(f"os.remove({path!r})")

    def _lines(self, code: str) -> list[str]:
        return self.link.run(code).splitlines()
