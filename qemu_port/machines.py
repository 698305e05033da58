"""The emulated machines: which qemu, and how a board asks it for the files of the host (semihosting)."""

from __future__ import annotations

from dataclasses import dataclass

from firmware import targets


@dataclass(frozen=True)
class Emulated:
    """A machine of qemu. `trap`: source of the function trap(operation, arguments) on the board."""

    program: str
    package: str  # Debian's, with the program
    arguments: tuple[str, ...]
    target: targets.Target
    trap: str
    arch: str  # of the .mpy files it is given unless one asks for others
    flash_at: int | None  # where memory-mapped flash is played, if it is


ARM = Emulated(
    program="qemu-system-arm",
    package="qemu-system-arm",
    arguments=("-machine", "mps2-an385"),
    target=targets.ARM,
    trap="""
@micropython.asm_thumb
def trap(r0, r1):
    data(2, 0xBEAB)
""",
    arch="armv6m",  # a Pico's; a Cortex-M3 runs that too
    flash_at=0x21000000,  # its PSRAM, 16 MiB
)

# The three instructions mean semihosting to whoever watches: they must lie in one page.
RV32 = Emulated(
    program="qemu-system-riscv32",
    package="qemu-system-misc",
    arguments=("-machine", "virt", "-bios", "none"),
    target=targets.RV32,
    trap="""
@micropython.asm_rv32
def trap(a0, a1):
    align(16)
    data(4, 0x01F01013, 0x00100073, 0x40705013)
""",
    arch="rv32imc",  # an ESP32-C3's
    flash_at=None,
)

BY_NAME = {"arm": ARM, "rv32": RV32}
