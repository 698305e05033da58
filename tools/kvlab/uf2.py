"""Reads UF2 firmware images: blocks of 512 bytes, each with its place in the flash."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from commandline.errors import BadInput

BLOCK_BYTES = 512
MOST_PAYLOAD_BYTES = 476
FLASH_AT = 0x10000000

RP2040 = 0xE48BFF56
FAMILIES = {
    RP2040: "RP2040",
    0xE48BFF57: "RP2 family, absolute",
    0xE48BFF58: "RP2 family, data",
    0xE48BFF59: "RP2350 (Arm)",
    0xE48BFF5A: "RP2350 (RISC-V)",
    0xE48BFF5B: "RP2350 (Arm, non-secure)",
}

_START = (0x0A324655, 0x9E5D5157)
_END = 0x0AB16F30
_NOT_FLASH = 0x00000001
_HAS_FAMILY = 0x00002000


@dataclass(frozen=True)
class Firmware:
    """What is to lie in the flash: `data` from FLASH_AT on, gaps erased; `blocks` in the file."""

    family: int
    data: bytes
    blocks: int


def read(path: Path, chip_bytes: int, option: str = "--firmware") -> Firmware:
    """The image in a file, for an RP2040 with so much flash. BadInput says what is wrong, and where."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadInput(f"{option} {path}: cannot be read: {error.strerror}") from None
    try:
        return parse(raw, chip_bytes)
    except ValueError as error:
        raise BadInput(f"{option} {path}: {error}") from None


def parse(raw: bytes, chip_bytes: int) -> Firmware:
    """See read(). ValueError."""
    if not raw or len(raw) % BLOCK_BYTES:
        raise ValueError(f"{len(raw):,} bytes are no whole number of blocks of {BLOCK_BYTES}: cut short?")
    pieces: dict[int, bytes] = {}
    seen: set[int] = set()
    total = len(raw) // BLOCK_BYTES
    for number in range(total):
        block = raw[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES]
        *magic, flags, address, size, index, count, family = struct.unpack_from("<8I", block)
        if tuple(magic) != _START or struct.unpack_from("<I", block, BLOCK_BYTES - 4)[0] != _END:
            raise ValueError(f"block {number} is none of a UF2 file")
        if flags & _HAS_FAMILY and family != RP2040:
            name = FAMILIES.get(family, f"family {family:#010x}")
            raise ValueError(f"is for another chip, {name}; take the image of an RP2040, such as RPI_PICO")
        if count != total or index >= total or index in seen:
            raise ValueError(f"block {number} says it is {index} of {count}, in a file of {total}: damaged?")
        seen.add(index)
        if flags & _NOT_FLASH:
            continue
        if not 0 < size <= MOST_PAYLOAD_BYTES:
            raise ValueError(f"block {number} has {size:,} bytes, 1..{MOST_PAYLOAD_BYTES} are possible")
        if not FLASH_AT <= address <= FLASH_AT + chip_bytes - size:
            raise ValueError(f"block {number} lies at {address:#010x}, outside of the flash")
        pieces[address - FLASH_AT] = block[32 : 32 + size]
    if not pieces:
        raise ValueError("holds nothing for the flash")
    image = bytearray(b"\xff" * max(at + len(piece) for at, piece in pieces.items()))
    end = 0
    for at in sorted(pieces):
        if at < end:
            raise ValueError(f"two blocks overlap at {FLASH_AT + at:#010x}")
        end = at + len(pieces[at])
        image[at:end] = pieces[at]
    return Firmware(RP2040, bytes(image), total)
