"""Reads and writes UF2 files: blocks of 512 bytes, each with its place in the flash."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from commandline.errors import BadInput

BLOCK_BYTES = 512
PAGE_BYTES = 256  # of data in a block: the boot loaders take no other number
MOST_PAYLOAD_BYTES = 476
FLASH_AT = 0x10000000

RP2040 = 0xE48BFF56
ABSOLUTE = 0xE48BFF57
DATA = 0xE48BFF58
RP2350_ARM = 0xE48BFF59
RP2350_RISCV = 0xE48BFF5A
RP2350_ARM_NS = 0xE48BFF5B
FAMILIES = {
    RP2040: "RP2040",
    ABSOLUTE: "RP2 family, absolute",
    DATA: "RP2 family, data",
    RP2350_ARM: "RP2350 (Arm)",
    RP2350_RISCV: "RP2350 (RISC-V)",
    RP2350_ARM_NS: "RP2350 (Arm, non-secure)",
}

_START = (0x0A324655, 0x9E5D5157)
_END = 0x0AB16F30
_NOT_FLASH = 0x00000001
_HAS_FAMILY = 0x00002000


Runs = Sequence[tuple[int, bytes]]  # bytes, and where they begin in the flash


@dataclass(frozen=True)
class Firmware:
    """What is to lie in the flash: `data` from FLASH_AT on, gaps erased; `blocks` in the file."""

    family: int
    data: bytes
    blocks: int


@dataclass(frozen=True)
class Block:
    """The `number`-th of a file. It calls itself the `index`-th of `count`; `family` is None where it names
    none. `data` belongs to `address`, or nowhere in the flash."""

    number: int
    family: int | None
    index: int
    count: int
    address: int
    data: bytes
    in_flash: bool

    @property
    def end(self) -> int:
        return self.address + len(self.data)


def read(path: Path, chip_bytes: int, option: str = "--firmware") -> Firmware:
    """The image in a file, for an RP2040 with so much flash. BadInput says what is wrong, and where."""
    try:
        return parse(read_bytes(path, option), chip_bytes)
    except ValueError as error:
        raise BadInput(f"{option} {path}: {error}") from None


def read_bytes(path: Path, option: str) -> bytes:
    """BadInput."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"{option} {path}: cannot be read: {error.strerror}") from None


def parse(raw: bytes, chip_bytes: int) -> Firmware:
    """See read(). ValueError."""
    found = blocks(raw)
    for block in found:
        if block.family not in (None, RP2040):
            raise ValueError(
                f"is for another chip, {name_of(block.family)}; take the image of an RP2040, such as RPI_PICO"
            )
    check_numbers(found, f"in a file of {len(found)}")
    pieces = spans(found, chip_bytes)
    image = bytearray(b"\xff" * max(pieces.values()))
    for block in found:
        if block.in_flash:
            image[block.address - FLASH_AT : block.end - FLASH_AT] = block.data
    return Firmware(RP2040, bytes(image), len(found))


def blocks(raw: bytes) -> list[Block]:
    """All blocks of a file. ValueError where it is none."""
    if not raw or len(raw) % BLOCK_BYTES:
        raise ValueError(f"{len(raw):,} bytes are no whole number of blocks of {BLOCK_BYTES}: cut short?")
    found = []
    for number in range(len(raw) // BLOCK_BYTES):
        block = raw[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES]
        *magic, flags, address, size, index, count, family = struct.unpack_from("<8I", block)
        if tuple(magic) != _START or struct.unpack_from("<I", block, BLOCK_BYTES - 4)[0] != _END:
            raise ValueError(f"block {number} is none of a UF2 file")
        in_flash = not flags & _NOT_FLASH
        if in_flash and not 0 < size <= MOST_PAYLOAD_BYTES:
            raise ValueError(f"block {number} has {size:,} bytes, 1..{MOST_PAYLOAD_BYTES} are possible")
        found.append(
            Block(
                number,
                family if flags & _HAS_FAMILY else None,
                index,
                count,
                address,
                block[32 : 32 + size],
                in_flash,
            )
        )
    return found


def name_of(family: int | None) -> str:
    """Of a chip, for people."""
    if family is None:
        return "none named"
    return FAMILIES.get(family, f"family {family:#010x}")


def check_numbers(found: Iterable[Block], where: str) -> None:
    """ValueError unless these blocks are, by their own numbers, all of one image, and each once."""
    found = list(found)
    seen: set[int] = set()
    for block in found:
        if block.count != len(found) or block.index >= block.count or block.index in seen:
            raise ValueError(
                f"block {block.number} says it is {block.index} of {block.count}, {where}: damaged?"
            )
        seen.add(block.index)


def spans(found: Iterable[Block], chip_bytes: int) -> dict[int, int]:
    """Begin and end of each block in a flash of that size, counted from its begin, in that order. ValueError
    where one lies outside or two overlap, and if there is none."""
    pieces: dict[int, int] = {}
    end = 0
    for block in sorted((each for each in found if each.in_flash), key=lambda each: each.address):
        if block.address < FLASH_AT or block.end > FLASH_AT + chip_bytes:
            raise ValueError(f"block {block.number} lies at {block.address:#010x}, outside of the flash")
        begin = block.address - FLASH_AT
        if begin < end:
            raise ValueError(f"two blocks overlap at {block.address:#010x}")
        pieces[begin] = end = block.end - FLASH_AT
    if not pieces:
        raise ValueError("holds nothing for the flash")
    return pieces


def runs(found: Iterable[Block], chip_bytes: int) -> Runs:
    """What blocks write to a flash of that size, without a gap each. ValueError as spans()."""
    found = [each for each in found if each.in_flash]
    spans(found, chip_bytes)
    joined: list[tuple[int, bytearray]] = []
    for block in sorted(found, key=lambda each: each.address):
        at = block.address - FLASH_AT
        if joined and joined[-1][0] + len(joined[-1][1]) == at:
            joined[-1][1].extend(block.data)
        else:
            joined.append((at, bytearray(block.data)))
    return [(at, bytes(data)) for at, data in joined]


def made(data: bytes, address: int, family: int) -> bytes:
    """A file that puts `data` at `address`, one page a block, the last one filled up with erased bytes.

    The address must begin an erasable block of the flash, as an RP2040 erases one for every 16 blocks of a
    file, by their numbers.
    """
    count = -(-len(data) // PAGE_BYTES)
    written = bytearray()
    for index in range(count):
        page = data[index * PAGE_BYTES : (index + 1) * PAGE_BYTES].ljust(PAGE_BYTES, b"\xff")
        at = address + index * PAGE_BYTES
        written += struct.pack("<8I", *_START, _HAS_FAMILY, at, PAGE_BYTES, index, count, family)
        written += page.ljust(MOST_PAYLOAD_BYTES, b"\0") + struct.pack("<I", _END)
    return bytes(written)
