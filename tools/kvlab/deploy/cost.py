"""What files take of a board's file system, by part of mpy_kv: bytes, and blocks as littlefs gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kvlab.deploy import kv_files
from kvlab.deploy.files import LIB, MAIN, MODEL, PACKAGE, File
from kvlab.deploy.remote import Space
from kvlab.parts import closure
from kvlab.parts.table import KERNEL_SETS, PARTS

FOLDER_BLOCKS = 2  # littlefs keeps each folder in a pair of blocks; MicroPython's statvfs counts that twice


def folders_of(paths: Iterable[str]) -> set[str]:
    """Every folder that leads to one of these files."""
    found = set()
    for path in paths:
        at = path.rpartition("/")[0]
        while at:
            found.add(at)
            at = at.rpartition("/")[0]
    return found


def cost(files: Sequence[File], parts: Sequence[str] | None, space: Space) -> dict[str, Any]:
    """Files, bytes and blocks of all, with the blocks of folders; `by_part` without folders. parts: those
    that the files are of; None: the whole package."""
    folders = folders_of(file.path for file in files)
    folder_blocks = FOLDER_BLOCKS * len(folders) + kv_files.more_folder_blocks(
        sum(kv_files.is_one(file.path) for file in files)
    )
    names = _parts_of(files, parts)
    by_part: dict[str, dict[str, int]] = {}
    for file in files:
        one = by_part.setdefault(names[file.path], {"files": 0, "bytes": 0, "blocks": 0})
        one["files"] += 1
        one["bytes"] += len(file.data)
        one["blocks"] += 1 if kv_files.is_one(file.path) else space.blocks(len(file.data))
    order = {name: at for at, name in enumerate((*PARTS, *KERNEL_SETS))}
    by_part = dict(sorted(by_part.items(), key=lambda item: order.get(item[0], len(order))))
    total = {key: sum(one[key] for one in by_part.values()) for key in ("files", "bytes", "blocks")}
    return {
        **total,
        "blocks": total["blocks"] + folder_blocks,
        "folders": len(folders),
        "folder_blocks": folder_blocks,
        "block_bytes": space.block_bytes,
        "by_part": by_part,
    }


def _parts_of(files: Sequence[File], parts: Sequence[str] | None) -> Mapping[str, str]:
    """Of each path what it is counted with: a part, a kernel set, the app, the model, or main.py."""
    modules = {}
    for file in files:
        name, _, kind = file.path.removeprefix(f"{LIB}/").rpartition(".")
        if file.path.startswith(f"{LIB}/") and kind in ("py", "mpy"):
            modules[file.path] = name.replace("/", ".").removesuffix(".__init__")
    owner = closure.owners(modules.values(), PARTS if parts is None else parts)
    others = {MODEL: "model", MAIN: MAIN}
    others |= {file.path: kv_files.NAME for file in files if kv_files.is_one(file.path)}
    return {
        file.path: owner[modules[file.path]] if file.path in modules else others.get(file.path, PACKAGE)
        for file in files
    }
