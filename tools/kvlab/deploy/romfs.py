"""The model in a board's ROMFS partition, where it is read where it lies.

The partition holds our model and nothing else, or it is left alone. While it is written its first
piece, which makes it a file system, is missing: a copy that is cut short is no file system at all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mpremote.romfs import VfsRomWriter

from commandline.errors import FellShort
from kvlab.deploy.files import MODEL
from kvlab.deploy.link import BoardError
from kvlab.deploy.remote import PIECE_BYTES, Remote, digest_like, packed

ALIGN_BYTES = 16

_AGENT = Path(__file__).with_name("agent_romfs.py")
_GARBLED = "what was written reads back otherwise"


@dataclass(frozen=True)
class Partition:
    """`size_bytes`: 0 where there is none. `files`: what the file system in it holds."""

    size_bytes: int
    files: tuple[str, ...]

    def refuses(self, image: bytes) -> str:
        """Why `image` cannot be written there: only a partition that is empty or ours is taken. Or empty."""
        if not self.size_bytes:
            return "this firmware has no ROMFS partition"
        if set(self.files) - {MODEL}:
            return f"its ROMFS holds other files ({', '.join(self.files)})"
        if len(image) > self.size_bytes:
            return f"its ROMFS has {self.size_bytes:,} bytes, the model needs {len(image):,}"
        return ""


def find(remote: Remote) -> Partition:
    """The board's first ROMFS partition."""
    link = remote.link
    link.run(_AGENT.read_text(encoding="utf-8"))
    size, *names = link.run("rom_find()").splitlines()
    return Partition(int(size), tuple(names))


def build(model: bytes) -> bytes:
    """A ROMFS with the model in it, its bytes on an address the kernels can read words from."""
    for padding in range(ALIGN_BYTES):
        writer = VfsRomWriter()
        writer.mkdata(bytes(padding))  # belongs to no file
        writer.mkfile(MODEL, model)
        image: bytes = writer.finalise()
        if (len(image) - len(model)) % ALIGN_BYTES == 0:
            return image
    raise AssertionError("no padding aligns the model")


def holds(remote: Remote, image: bytes) -> bool:
    """Whether the partition that find() found begins with `image`."""
    return _same(remote, image, 0)


def write(remote: Remote, image: bytes, done: Callable[[int], None]) -> None:
    """Erase and write it, verify, and only then write what makes it a file system. FellShort."""
    try:
        unit = int(remote.link.run(f"rom_erase({len(image)})"))
        piece = max(PIECE_BYTES // unit, 1) * unit
        for at in range(piece, len(image), piece):
            _write(remote, image, at, piece, done)
        if not _same(remote, image, piece):
            raise BoardError(_GARBLED)
        _write(remote, image, 0, piece, done)
        remote.link.run("rom_close()")
        if not _same(remote, image, 0):
            raise BoardError(_GARBLED)
    except BoardError as error:
        raise FellShort(f"the ROMFS partition: {error}") from error


def _write(remote: Remote, image: bytes, at: int, piece: int, done: Callable[[int], None]) -> None:
    data = image[at : at + piece]
    padded = data + bytes(piece - len(data))
    remote.link.run(f"rom_more({at}, {packed(padded, remote.deflates)})")
    done(len(data))


def _same(remote: Remote, image: bytes, start: int) -> bool:
    """Whether the partition agrees with the image from `start` on."""
    if start >= len(image):
        return True
    digest = remote.link.run(f"rom_digest({start}, {len(image)})").strip()
    return digest == digest_like(digest, image[start:])
