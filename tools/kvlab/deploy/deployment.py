"""One deployment: looks at the board, says what it would do, and does it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from commandline.errors import FellShort
from kvlab.boards import Board
from kvlab.deploy import NO_APP, files, in_flash, kv_files, plan, romfs
from kvlab.deploy.cost import cost
from kvlab.deploy.files import MODEL, File
from kvlab.deploy.identity import Identity
from kvlab.deploy.link import Link
from kvlab.deploy.remote import Blank, Remote
from kvlab.parts import ask
from kvlab.parts.table import BASE


@dataclass(frozen=True)
class Wish:
    """What shall be on the board. `model`: a board image; `place`: one of kvlab.deploy.PLACES. With the app
    NO_APP there is neither, and main.py and a model on the board stay as they are. `parts`: of mpy_kv; None:
    all of it. `kv_count`: files of a flash log, 0: none are made; `kv_anew`: keep none of those there."""

    board: Board
    app: str
    model: bytes
    mpy: bool = False
    place: str = "auto"
    parts: tuple[str, ...] | None = None
    kv_count: int = 0
    kv_anew: bool = False


class Deployment:
    """Looks at construction, writes in run(). `found` is the board that answers on `link`.

    Without a link it is one as the wish names it, its file system empty, its firmware without a ROMFS;
    run() has nothing to write to.
    """

    def __init__(self, link: Link | None, found: Identity, wish: Wish) -> None:
        self.link = link
        self.found = found
        self.wish = wish
        self._remote = None if link is None else Remote(link)
        self.in_flash = () if self._remote is None or wish.app == NO_APP else in_flash.find(self._remote)
        self.rom_image = self._rom_image()
        self.rom_unchanged = False
        if self._remote is not None and self.rom_image is not None:
            self.rom_unchanged = romfs.holds(self._remote, self.rom_image)
        self.parts = self._parts()
        wanted = files.modules(wish.app, found, wish.mpy, self.parts)
        if wish.app != NO_APP:
            if self.model_in == "file":
                wanted.append(File(MODEL, wish.model))
            wanted.append(files.main(wish.board))
        remote = self._remote or Blank(wish.board)
        self.kv = None
        if wish.kv_count:
            self.kv = kv_files.look(remote, wish.kv_count, wish.kv_anew, secrets.randbits(32))
        self.wanted = (*wanted, *(() if self.kv is None else self.kv.wanted()))
        self.plan = plan.make(
            remote,
            wanted,
            files.owned(wish.app),
            unneeded=() if self.rom_image is None else (MODEL,),
            more_blocks=0 if self.kv is None else self.kv.more_blocks,
        )

    @property
    def taken_in_flash(self) -> in_flash.InFlash | None:
        """What the app takes of the flash, if no ROMFS has a model: the first that it can read."""
        return next((each for each in self.in_flash if each.readable), None)

    @property
    def model_in(self) -> str | None:
        """Where the wished model is in the end: romfs, flash, where it is already, or file."""
        if self.wish.app == NO_APP:
            return None
        if self.rom_image is not None:
            return "romfs"
        taken = self.taken_in_flash
        if self.wish.place == "auto" and taken is not None and taken.is_of(self.wish.model):
            return "flash"
        return "file"

    @property
    def model_taken(self) -> str | None:
        """Where the app takes its model from."""
        if self.model_in != "file":
            return self.model_in
        return "file" if self.taken_in_flash is None else "flash"

    @property
    def bytes_to_write(self) -> int:
        rom = 0 if self.rom_image is None or self.rom_unchanged else len(self.rom_image)
        return self.plan.copy_bytes + rom + (0 if self.kv is None else self.kv.bytes_to_write)

    def run(self, done: Callable[[int], None]) -> None:
        """Do it; `done` is told of bytes as they are written. FellShort: no room, or the board failed."""
        assert self._remote is not None
        plan.check_room(self.plan)
        if self.rom_image is not None and not self.rom_unchanged:
            romfs.write(self._remote, self.rom_image, done)
        if self.kv is not None:
            self.kv.carry_out(self._remote, done)
        plan.carry_out(self.plan, self._remote, done)

    def figures(self) -> dict[str, Any]:
        """For people and --json: what run() does, or has done."""
        p = self.plan
        return {
            "board": self.wish.board.name,
            "port": None if self.link is None else self.link.port,
            "machine": None if self.link is None else self.found.machine,
            "micropython": None if self.link is None else self.found.release,
            "arch": self.found.arch,
            "app": self.wish.app,
            "parts": "all" if self.parts is None else list(dict.fromkeys((*BASE, *self.parts))),
            **cost(self.wanted, self.parts, p.space),
            "mpy": self.wish.mpy,
            "model_in": self.model_in,
            "model_taken": self.model_taken,
            "in_flash": [each.figures(self.wish.model) for each in self.in_flash],
            "model_bytes": len(self.wish.model),
            "romfs_written": self.rom_image is not None and not self.rom_unchanged,
            "copied": [{"path": file.path, "bytes": len(file.data)} for file in p.copy],
            "copied_bytes": self.bytes_to_write - (0 if self.kv is None else self.kv.bytes_to_write),
            "unchanged": [file.path for file in p.unchanged],
            "removed": [*p.leftovers, *p.stale],
            "kv_flash": None if self.kv is None else self.kv.figures(),
            "kept_main": plan.OLD_MAIN if p.keep_main else None,
            "free_bytes": p.space.free_bytes,
            "needed_bytes": p.needed_bytes,
            "free_blocks": p.space.free_blocks,
            "needed_blocks": p.needed_blocks,
        }

    def _parts(self) -> tuple[str, ...] | None:
        """Those that are wished for; with an app also what its main.py takes where a flash log is there."""
        parts = self.wish.parts if self.found.arch else None
        if parts is None or self._remote is None or self.wish.app == NO_APP:
            return parts
        log = ask.OF_LOG if self._remote.exists(kv_files.path(0)) else ()
        return tuple(dict.fromkeys((*parts, *log)))

    def _rom_image(self) -> bytes | None:
        """The ROMFS to write, or None when the model shall be a file. FellShort when neither will do."""
        if self.wish.app == NO_APP:
            return None
        partition = romfs.Partition(0, ()) if self._remote is None else romfs.find(self._remote)
        if self.wish.place != "file":
            image = romfs.build(self.wish.model)
            why_not = partition.refuses(image)
            if not why_not:
                return image
            if self.wish.place == "romfs":
                raise FellShort(f"--model-in romfs: {why_not}; use --model-in file")
        if MODEL in partition.files:
            raise FellShort(
                f"--model-in {self.wish.place}: the board's ROMFS holds a {MODEL}, which would be taken"
                " instead of the file: use --model-in romfs, or remove it (mpremote romfs)"
            )
        return None
