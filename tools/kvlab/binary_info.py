"""What a firmware for RP2 boards says of itself: where its storage begins.

The format is the Pico SDK's, raspberrypi/pico-sdk@02bf3ac08c959218f2d2376e78f708691f0313a2:
src/common/pico_binary_info/include/pico/binary_info/structure.h; MicroPython declares its storage there,
micropython/micropython@0376f713c83ad1f748f08730fb0eb6ee129e474f:ports/rp2/rp2_flash.c.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

_START, _END = 0x7188EBF2, 0xE71AA390
_SEARCHED_BYTES = 4096  # of an image: behind the second-stage loader and the vectors
_MOST_ENTRIES = 4096
_BLOCK_DEVICE = 7
_DEVICE = struct.Struct("<HHIIIIH")  # type, tag, name, address, size, more, flags

Runs = Sequence[tuple[int, bytes]]  # address and bytes of what is written


def block_devices(runs: Runs) -> list[tuple[int, int]]:
    """Address and size of each block device that an image declares; none where it declares nothing that
    can be followed."""
    header = _header(runs)
    if header is None:
        return []
    start, end, table = header
    mapping = list(_mapping(runs, table))
    devices = []
    for at in range(start, min(end, start + 4 * _MOST_ENTRIES), 4):
        pointer = _read(runs, at, 4)
        if pointer is None:
            break
        entry = _stored(mapping, int.from_bytes(pointer, "little"))
        core = _read(runs, entry, 2)
        if core is not None and int.from_bytes(core, "little") == _BLOCK_DEVICE:
            device = _read(runs, entry, _DEVICE.size)
            if device is not None:
                devices.append(_DEVICE.unpack(device)[3:5])
    return devices


def _header(runs: Runs) -> tuple[int, int, int] | None:
    """The words between the two marks: begin and end of the list of entries, the table of what is copied."""
    if not runs:
        return None
    begin = min(runs)[1][:_SEARCHED_BYTES]
    for at in range(0, len(begin) - 19, 4):
        first, entries, end, table, last = struct.unpack_from("<5I", begin, at)
        if (first, last) == (_START, _END):
            return entries, end, table
    return None


def _mapping(runs: Runs, table: int) -> Iterator[tuple[int, int, int]]:
    """Of what is copied to RAM: where it is stored, begin and end of where it runs."""
    for at in range(table, table + 12 * 16, 12):
        row = _read(runs, at, 12)
        if row is None or not any(row[:4]):
            return
        yield struct.unpack("<3I", row)


def _stored(mapping: Sequence[tuple[int, int, int]], address: int) -> int:
    for stored, begin, end in mapping:
        if begin <= address < end:
            return stored + address - begin
    return address


def _read(runs: Runs, address: int, size: int) -> bytes | None:
    for begin, data in runs:
        if begin <= address and address + size <= begin + len(data):
            return data[address - begin : address - begin + size]
    return None
