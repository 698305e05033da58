"""What to do to a board so that it holds just our files: copy, leave, remove; and whether it has the room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from commandline.errors import FellShort
from kvlab.deploy.cost import FOLDER_BLOCKS, folders_of
from kvlab.deploy.files import LIB, MAIN, File
from kvlab.deploy.remote import PART, Files, Remote, Seen, Space

OLD_MAIN = "main.old.py"

SPARE_BLOCKS = 4  # littlefs needs some room to move the blocks of its folders


@dataclass(frozen=True)
class Plan:
    """Each step leaves the board usable, and the plan made after any of them leads to the same end.

    Leftovers go first, `main.py` comes last; in between the old modules stay whole until all new
    ones are there.
    """

    leftovers: tuple[str, ...]  # parts of copies that were cut short
    copy: tuple[File, ...]
    unchanged: tuple[File, ...]
    stale: tuple[str, ...]  # modules of ours that are no more, or would hide new ones
    keep_main: bool  # a main.py of somebody else: keep it as OLD_MAIN
    space: Space
    more_blocks: int  # that are taken before the copies, < 0: given back
    needed_blocks: int  # at the worst moment, these included

    @property
    def copy_bytes(self) -> int:
        return sum(len(file.data) for file in self.copy)

    @property
    def needed_bytes(self) -> int:
        return self.needed_blocks * self.space.block_bytes


def make(
    remote: Files,
    files: Sequence[File],
    owned: Sequence[str],
    unneeded: Sequence[str] = (),
    more_blocks: int = 0,
) -> Plan:
    """The plan for `files`. `owned`: folders with nothing but our modules; `unneeded`: files to remove;
    `more_blocks`: that are taken beside it.

    FellShort when a package of the same name lies where Python looks first, or when two main.py would
    have to be kept.
    """
    for folder in owned:
        name = folder.removeprefix(f"{LIB}/")
        if remote.exists(name):
            raise FellShort(
                f"{name}/ at the root of the board would be imported instead of {folder}/:"
                f" remove it (mpremote rm -r :{name})"
            )
    names = [file.path for file in files]
    seen = remote.survey(names)
    there = {path: size for folder in owned for path, size in remote.walk(folder).items()}
    outside = [path for path in names if not path.startswith(f"{LIB}/")]
    extra = remote.survey([*(path + PART for path in outside), *unneeded])
    sizes = there | {path: found.size for path, found in (seen | extra).items()}

    leftovers = [path for path in sizes if path.endswith(PART)]
    stale = [path for path in there if path.endswith((".py", ".mpy")) and path not in names]
    stale += [path for path in unneeded if path in extra]
    copy = [file for file in files if file.path not in seen or not seen[file.path].holds(file.data)]
    keep_main = _is_foreign_main(remote, copy, seen)
    space = remote.space()
    spared = {path: size for path, size in sizes.items() if path != MAIN or not keep_main}
    return Plan(
        leftovers=tuple(leftovers),
        copy=tuple(copy),
        unchanged=tuple(file for file in files if file not in copy),
        stale=tuple(stale),
        keep_main=keep_main,
        space=space,
        more_blocks=more_blocks,
        needed_blocks=_with(_needed(copy, spared, leftovers, stale, space), more_blocks),
    )


def check_room(plan: Plan) -> None:
    """FellShort when the copies do not fit, by how much."""
    if plan.needed_blocks <= plan.space.free_blocks:
        return
    kv = ", a smaller --kv-flash" if plan.more_blocks > 0 else ""
    raise FellShort(
        f"the board's file system has {plan.space.free_bytes:,} bytes free, {plan.needed_bytes:,} are needed:"
        f" {plan.space.free_blocks:,} and {plan.needed_blocks:,} blocks of {plan.space.block_bytes:,}"
        " (a file that is replaced stays until the new one is whole). Deploy with --mpy or fewer parts"
        f"{kv}, remove files from it (mpremote fs rm), or choose a smaller --model"
    )


def carry_out(plan: Plan, remote: Remote, done: Callable[[int], None]) -> None:
    """Do it, step by step; `done` is told of bytes as they are written. FellShort when the board fails."""
    for path in plan.leftovers:
        remote.remove(path)
    stale = list(plan.stale)
    for file in plan.copy:
        if file.path != MAIN:
            remote.put(file, done)
            if (other := _other_kind(file.path)) in stale:
                remote.remove(other)  # at once: a board has no room for every module twice
                stale.remove(other)
    for path in stale:
        remote.remove(path)
    for file in plan.copy:
        if file.path == MAIN:
            if plan.keep_main:
                remote.rename(MAIN, OLD_MAIN)
            remote.put(file, done)


def _is_foreign_main(remote: Files, copy: Sequence[File], seen: dict[str, Seen]) -> bool:
    """Whether the main.py that would be replaced is none of ours."""
    if MAIN not in seen or all(file.path != MAIN for file in copy):
        return False
    if b"import stories" in remote.read(MAIN):
        return False
    if remote.exists(OLD_MAIN):
        raise FellShort(
            f"the board's {MAIN} is not ours and {OLD_MAIN} is taken too: move one of them away (mpremote fs)"
        )
    return True


def _with(needed: int, more: int) -> int:
    """With blocks that are taken, or given back, before anything is copied."""
    if more > 0:
        return more + (needed or SPARE_BLOCKS)
    return max(0, needed + more)


def _other_kind(path: str) -> str:
    """Where the same module would lie as source, or compiled."""
    if path.endswith(".mpy"):
        return path.removesuffix(".mpy") + ".py"
    return path.removesuffix(".py") + ".mpy"


def _needed(
    copy: Sequence[File],
    sizes: dict[str, int],
    leftovers: Sequence[str],
    stale: Sequence[str],
    space: Space,
) -> int:
    """Blocks free before that the plan takes: the old of each file stays until the new one is whole."""
    if not copy:
        return 0
    used = -sum(space.blocks(sizes[path]) for path in leftovers)
    most = 0
    folders = folders_of(sizes)
    for file in copy:
        new = folders_of([file.path]) - folders
        folders |= new
        used += FOLDER_BLOCKS * len(new)
        used += space.blocks(len(file.data))
        most = max(most, used)
        for old in (file.path, _other_kind(file.path)):
            if old in sizes and (old == file.path or old in stale):
                used -= space.blocks(sizes[old])
    return most + SPARE_BLOCKS
