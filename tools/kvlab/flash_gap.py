"""The flash between a firmware and the storage of an RP2 board: where a model lies that is read in place.

Places are counted from the begin of the flash, but the `address` of a Place is as the chip sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commandline.errors import BadInput, FellShort
from kvlab import binary_info, uf2
from kvlab.boards import Board

# By chip: what its boot loader takes for data at any address, and what it takes for firmware too.
_FAMILY = {"RP2040": uf2.RP2040, "RP2350": uf2.ABSOLUTE}
_FIRMWARE = {
    "RP2040": (None, uf2.RP2040),
    "RP2350": (None, uf2.ABSOLUTE, uf2.DATA, uf2.RP2350_ARM, uf2.RP2350_RISCV, uf2.RP2350_ARM_NS),
}


@dataclass(frozen=True)
class Gap:
    """What is free of `board`'s flash, whole blocks. `firmware_end` may be within the block before `start`,
    and is None where no firmware is known: then all that is below the storage counts as free."""

    board: str
    block_bytes: int
    start: int
    end: int
    firmware_end: int | None
    family: int


@dataclass(frozen=True)
class Place:
    """Of an image. `free_bytes`: those that follow it, up to the storage."""

    address: int
    image_bytes: int
    free_bytes: int
    family: int

    def uf2(self, image: bytes) -> bytes:
        """The file that puts it there."""
        return uf2.made(image, self.address, self.family)


def known(board: Board) -> bool:
    """Whether the board has a boot loader that takes UF2 files, and a flash whose layout is known."""
    return board.chip in _FAMILY and "flash.storage_at_bytes" in board.facts


def behind(board: Board, firmware_end: int | None, storage_at: int | None = None) -> Gap:
    """From the first whole block behind what ends there; None: from the flash's begin. To the storage, the
    board's unless another begin is named."""
    block = _value(board, "erase_bytes")
    return Gap(
        board=board.title,
        block_bytes=block,
        start=-(-(firmware_end or 0) // block) * block,
        end=_value(board, "storage_at_bytes") if storage_at is None else storage_at,
        firmware_end=firmware_end,
        family=_FAMILY[board.chip],
    )


def of_firmware(board: Board, raw: bytes) -> Gap:
    """Behind the firmware in a UF2 file, up to the storage that it declares, or else the board's. ValueError:
    it is none, or none for this board."""
    images = [uf2.runs(found, _value(board, "chip_bytes")) for found in _of_families(board, raw)]
    if not images:
        raise ValueError("holds nothing for the flash")
    storage = min(_storage_at(board, runs) for runs in images)
    firmware_end = 0
    for begin, data in (run for runs in images for run in runs):
        end = begin + len(data)
        if begin >= storage:
            continue  # a file system that came along
        if end > storage:
            raise ValueError(
                f"ends {end - storage:,} bytes inside the file system of {board.title}; take the stock image"
                f" {board.firmware}"
            )
        firmware_end = max(firmware_end, end)
    if not firmware_end:
        raise ValueError(
            f"writes nothing before the file system of {board.title}, which begins at {storage:,}"
        )
    return behind(board, firmware_end, storage)


def _storage_at(board: Board, runs: uf2.Runs) -> int:
    """Where the storage of a firmware begins: that of another board with this chip may have another one."""
    chip, block = _value(board, "chip_bytes"), _value(board, "erase_bytes")
    memory = [(uf2.FLASH_AT + at, data) for at, data in runs]
    begins = [address - uf2.FLASH_AT for address, _ in binary_info.block_devices(memory)]
    declared = [begin // block * block for begin in begins if 0 < begin < chip]
    return min(declared, default=_value(board, "storage_at_bytes"))


def of_board(board: Board) -> Gap:
    """Where no firmware is named: behind the stock one, if it is known where that ends."""
    return behind(board, _value(board, "firmware_bytes") if "flash.firmware_bytes" in board.facts else None)


def read(board: Board, path: Path, option: str = "--firmware") -> Gap:
    """As of_firmware(). BadInput."""
    try:
        return of_firmware(board, uf2.read_bytes(path, option))
    except ValueError as error:
        raise BadInput(f"{option} {path}: {error}") from None


def place(gap: Gap, size: int, *, high: bool) -> Place:
    """Where in the gap an image of so many bytes lies: `high`, just below the storage, or at its begin.
    FellShort when it does not fit."""
    room = gap.end - gap.start
    if size > room:
        where = "below"
        if gap.firmware_end is not None:
            where = f"between the firmware, which ends at {gap.firmware_end:,}, and"
        raise FellShort(
            f"--uf2: the image has {size:,} bytes; {where} the file system of {gap.board} at"
            f" {gap.end:,} there are {max(room, 0):,} in whole blocks of {gap.block_bytes:,}: choose a"
            " smaller MODEL, or leave --uf2 out and copy the image as a file (kvlab deploy)"
        )
    at = gap.start
    if high:
        at = (gap.end - size) // gap.block_bytes * gap.block_bytes
    return Place(uf2.FLASH_AT + at, size, gap.end - at - size, gap.family)


def written(board: Board, raw: bytes) -> uf2.Runs:
    """Where the runs of bytes come that the board's boot loader writes from a UF2 file. ValueError."""
    chip = _value(board, "chip_bytes")
    return [run for found in _of_families(board, raw) for run in uf2.runs(found, chip)]


def _of_families(board: Board, raw: bytes) -> list[list[uf2.Block]]:
    """The blocks of a file that the board's boot loader writes, by family, each complete by its own numbers:
    a file may be for several chips and cores. ValueError."""
    by_family: dict[int | None, list[uf2.Block]] = {}
    for block in uf2.blocks(raw):
        by_family.setdefault(block.family, []).append(block)
    end = uf2.FLASH_AT + _value(board, "chip_bytes")
    found = []
    for family in _FIRMWARE[board.chip]:
        mine = by_family.get(family, [])
        if family == uf2.ABSOLUTE:
            # picotool puts one before an image, beyond the end of most chips; its numbers are made up.
            mine = [each for each in mine if each.end <= end]
        if mine:
            uf2.check_numbers(mine, f"but the file has {len(mine)} of {uf2.name_of(family)}")
            found.append(mine)
    if not any(family in by_family for family in _FIRMWARE[board.chip]):
        names = ", ".join(uf2.name_of(family) for family in by_family)
        raise ValueError(
            f"is for another chip, {names}; take the image of an {board.chip}, such as {board.firmware}"
        )
    return found


def _value(board: Board, key: str) -> int:
    value: int = board.facts[f"flash.{key}"].value
    return value
