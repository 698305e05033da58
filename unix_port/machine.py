"""What the emulator needs to know of a board. Comes from boards/<name>/board.json."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Partition:
    """The data partition that an ESP32 board's file system lives in."""

    label: str
    subtype: int
    address: int  # in the flash chip


@dataclass(frozen=True)
class Machine:
    """One board, as the emulator stands in for it. Sizes in bytes, clocks in Hz."""

    name: str
    port: str  # "rp2" or "esp32": which stand-in modules exist
    heap_bytes: int  # free for Python at the start of main.py
    largest_object_bytes: int  # then, in one piece
    clock_hz: int  # at boot
    clock_max_hz: int
    native_code_in_heap: (
        bool  # where the board's firmware puts the code of viper and native functions
    )
    split_heap: bool  # the heap is several areas on the board; here it is one
    flash_bytes: int  # the region that the stand-in of rp2.Flash or esp32.Partition covers
    flash_erase_bytes: int
    flash_program_bytes: int
    partition: Partition | None = None
    storage_at: int = 0  # bytes of the flash before that region, where the board's layout is known
    chip: str = ""  # of an rp2 board: which registers there are
