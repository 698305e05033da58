"""The files on a board whose blocks a flash log lies in: mpy_kv/flash_log/files.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commandline.errors import BadInput, FellShort
from kvlab.deploy.files import File
from kvlab.deploy.remote import Files, Remote
from mpy_kv.flash_log import files as device
from mpy_kv.flash_log import log

BLOCK: int = device.BLOCK
MOST_FILES: int = device.MOST_FILES

FOLDER = "kv"
NAME = "kv files"  # what they are counted with
OPTION, ANEW = "--kv-flash", "--kv-anew"
_A_FOLDER_BLOCK = 32  # such files a pair of blocks of their folder surely has room for

_AGENT = Path(__file__).with_name("agent_kv.py")
_LEAST_RECORD = 8
_MAGIC = b"MKVS"


def least_files() -> int:
    """The fewest that a log of one sequence takes, of the smallest records."""
    return int(log.SUPERBLOCKS + log.ahead_for(_LEAST_RECORD) + log.reserve_for(_LEAST_RECORD, 1))


def check_size(size: int) -> int:
    """How many files make `size` bytes. BadInput."""
    least = least_files()
    if size % BLOCK:
        below = max(least, size // BLOCK) * BLOCK
        raise BadInput(
            f"{OPTION} {size}: no multiple of {BLOCK:,} bytes, a block of the flash; {below} or"
            f" {below + BLOCK} are"
        )
    if size < least * BLOCK:
        raise BadInput(f"{OPTION} {size}: too small for a log: the smallest takes {least * BLOCK} bytes")
    if size > MOST_FILES * BLOCK:
        raise BadInput(f"{OPTION} {size}: too large: {MOST_FILES} files make {MOST_FILES * BLOCK} bytes")
    return size // BLOCK


def path(i: int) -> str:
    return f"{FOLDER}/{i:03d}"


@dataclass(frozen=True)
class KvFiles:
    """What there is of them on a board, and what is to be done. version: of the log that the first ones
    hold, None: none; `missing` are made, `surplus` removed, all others kept."""

    count: int
    salt: int
    version: int | None
    there: tuple[str, ...]  # that are right as they are
    missing: tuple[int, ...]
    surplus: tuple[str, ...]
    has_folder: bool

    @property
    def more_blocks(self) -> int:
        """Of the file system that are taken beyond those that are given back."""
        folder = 0 if self.has_folder else 2
        return folder + more_folder_blocks(self.count) + len(self.missing) - len(self.surplus)

    @property
    def bytes_to_write(self) -> int:
        return len(self.missing) * BLOCK

    def made(self) -> list[File]:
        return [File(path(i), device.content(i, self.salt)) for i in self.missing]

    def wanted(self) -> list[File]:
        """All of them, to count what they take."""
        return [File(path(i), device.content(i, self.salt)) for i in range(self.count)]

    def carry_out(self, remote: Remote, done: Callable[[int], None]) -> None:
        """The first file comes last: where it is missing, so is the log."""
        for name in self.surplus:
            remote.remove(name)
        for file in reversed(self.made()):
            remote.put(file, done)

    def figures(self) -> dict[str, Any]:
        return {
            "bytes": self.count * BLOCK,
            "files": self.count,
            "made": len(self.missing),
            "kept": len(self.there),
            "removed": len(self.surplus),
            "log_version": self.version,
            "log_read": self.version in (None, log.VERSION),
        }


def look(remote: Files, count: int, anew: bool, salt: int) -> KvFiles:
    """What is there, where `count` files shall be; anew: keep none. FellShort where the board's file system
    gives no file a block of its own, or a log there is of another size."""
    space = remote.space()
    if isinstance(remote, Remote):
        kind = _kind(remote)
        if kind not in ("VfsLfs2", ""):
            raise FellShort(
                f"{OPTION}: the board's file system is a {kind}, whose files have no block of their own:"
                " use a partition of its own, or plain files (mpy_kv.file_store)"
            )
    if space.block_bytes != BLOCK:
        raise FellShort(
            f"{OPTION}: the board's file system has blocks of {space.block_bytes:,} bytes, the log takes"
            f" {BLOCK:,}: use a partition of its own, or plain files (mpy_kv.file_store)"
        )
    sizes = remote.walk(FOLDER)
    ours = {name: size for name, size in sizes.items() if is_one(name)}
    leftovers = [name for name in sizes if name.endswith(".part")]
    version = None if anew else _version(remote, ours)
    whole = 0
    while ours.get(path(whole)) == BLOCK:
        whole += 1
    if version is not None and whole != count:
        raise FellShort(
            f"{OPTION} {count * BLOCK}: the board has a log in {whole} files, {whole * BLOCK} bytes: name"
            f" that size, or {ANEW} and lose what it has kept"
        )
    right = () if anew else tuple(path(i) for i in range(count) if ours.get(path(i)) == BLOCK)
    return KvFiles(
        count,
        salt,
        version,
        there=right,
        missing=tuple(i for i in range(count) if path(i) not in right),
        surplus=(*sorted(name for name in ours if name not in right), *leftovers),
        has_folder=bool(sizes),
    )


def _number(name: str) -> int | None:
    folder, _, number = name.partition("/")
    right = folder == FOLDER and len(number) == 3 and number.isascii() and number.isdigit()
    return int(number) if right else None


def is_one(name: str) -> bool:
    return _number(name) is not None


def more_folder_blocks(count: int) -> int:
    """Blocks that a folder of so many takes beyond its first pair."""
    return 2 * (max(0, count - 1) // _A_FOLDER_BLOCK)


def _kind(remote: Remote) -> str:
    """Class of the board's file system; empty where its firmware cannot tell."""
    remote.link.run(_AGENT.read_text(encoding="utf-8"))
    return remote.link.run("file_system()").strip()


def _version(remote: Files, ours: dict[str, int]) -> int | None:
    """Of the log whose superblocks the first two files hold."""
    if not isinstance(remote, Remote):
        return None
    for name in (path(0), path(1)):
        if ours.get(name) == BLOCK:
            head = bytes.fromhex(remote.link.run(f"start({name!r})"))
            if head[:4] == _MAGIC:
                return int.from_bytes(head[4:6], "little")
    return None
