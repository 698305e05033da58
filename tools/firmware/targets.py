"""The machines that MicroPython's qemu port is built for here, and how Debian's compilers build it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from firmware.tools import GCC, RISCV_GCC, Tool


@dataclass(frozen=True)
class Target:
    """A board of the port. `settings` are of its makefile, beside the heap's size; `variant` tells apart what
    is built for one board with other settings."""

    board: str
    compiler: Tool
    most_heap_bytes: int  # what its linker script has room for, rounded down
    settings: tuple[str, ...] = ()
    variant: str = ""


ARM = Target("MPS2_AN385", GCC, 3 * 1024 * 1024)  # a Cortex-M3
# The same with littlefs, which the port leaves out: it has no clock for times of files, and its linker script
# no place for the table of what a division of 64 bits may raise, which is then at the end of the RAM.
ARM_LITTLEFS = replace(
    ARM,
    settings=(
        "MICROPY_VFS_LFS2=1",
        r"CFLAGS_EXTRA=-Dmp_hal_time_ns\(\)=0",
        "LIBS=-Wl,--section-start=.ARM.exidx=0x3e0000 $(shell $(CC) $(CFLAGS) -print-libgcc-file-name)",
    ),
    variant="-littlefs",
)

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
