"""The machines that MicroPython's qemu port is built for here, and how Debian's compilers build it."""

from __future__ import annotations

from dataclasses import dataclass

from firmware.tools import GCC, RISCV_GCC, Tool


@dataclass(frozen=True)
class Target:
    """A board of the port. `settings` are of its makefile, beside the heap's size."""

    board: str
    compiler: Tool
    most_heap_bytes: int  # what its linker script has room for, rounded down
    settings: tuple[str, ...] = ()


ARM = Target("MPS2_AN385", GCC, 3 * 1024 * 1024)  # a Cortex-M3

# Debian's compiler has libraries for rv32imac and not for rv32imac_zicsr, the port's name for the same; the
# older edition of the instruction set's manual has the CSR instructions in the base.
RV32 = Target(
    "VIRT_RV32",
    RISCV_GCC,
    1024 * 1024,
    (
        "RV32_ARCH=rv32imac",
        "CFLAGS_EXTRA=-misa-spec=2.2",
        "AS=riscv64-unknown-elf-as -misa-spec=2.2",
    ),
)
