"""Which board answers, by its own word, and whether it is the one that was named."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from commandline.errors import BadInput
from kvlab import boards
from kvlab.boards import Board
from kvlab.deploy.link import Link

LEAST_VERSION = (1, 24)

# Instruction sets by the number in sys.implementation._mpy, as mpy-cross names them.
ARCHS = (
    *("", "x86", "x64", "armv6", "armv6m", "armv7m", "armv7em", "armv7emsp", "armv7emdp"),
    *("xtensa", "xtensawin", "rv32imc", "rv64imc"),
)

# Of stock firmware, by the chip's plain name.
_ARCH_OF = {
    "RP2040": "armv6m",
    "RP2350": "armv7emsp",
    "ESP32": "xtensawin",
    "ESP32S3": "xtensawin",
    "ESP32C3": "rv32imc",
}
_MPY = 6 | 3 << 8  # of MicroPython from LEAST_VERSION on

_ASK = """\
import sys
i = sys.implementation
print((i.name, tuple(i.version)[:3], sys.platform, getattr(i, '_machine', ''), getattr(i, '_mpy', 0)))
"""


@dataclass(frozen=True)
class Identity:
    """`machine`: "Raspberry Pi Pico with RP2040"; `mpy`: sys.implementation._mpy."""

    name: str
    version: tuple[int, ...]
    platform: str
    machine: str
    mpy: int

    @property
    def arch(self) -> str:
        """Instruction set of its native code, as mpy-cross names it; empty if it runs none."""
        number = self.mpy >> 10 & 0xF
        return ARCHS[number] if number < len(ARCHS) else ""

    @property
    def mpy_version(self) -> tuple[int, int]:
        """Version and sub-version of the .mpy files it loads."""
        return self.mpy & 0xFF, self.mpy >> 8 & 3

    @property
    def chip(self) -> str:
        """Of the machine's name, without the hyphen and the RISC-V mark that spellings differ in."""
        return _plain(self.machine.rpartition(" with ")[2].removesuffix("-RISCV"))

    @property
    def release(self) -> str:
        return ".".join(map(str, self.version))


def ask(link: Link) -> Identity:
    """The board's identity. BadInput when it runs something else, or too old a MicroPython."""
    found = Identity(*ast.literal_eval(link.run(_ASK)))
    if found.name != "micropython":
        raise BadInput(f"{link.option} {link.port}: runs {found.name}, not MicroPython")
    if found.version[:2] < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise BadInput(
            f"{link.option} {link.port}: its MicroPython is {found.release}; update the firmware to {least}"
            " or newer"
        )
    return found


def expected(board: Board) -> Identity:
    """What stock firmware of the least version says of itself on such a board."""
    arch = ARCHS.index(_ARCH_OF[_plain(board.chip)])
    machine = f"{board.title} with {board.chip}"
    return Identity("micropython", (*LEAST_VERSION, 0), board.port, machine, _MPY | arch << 10)


def mismatch(board: Board, found: Identity) -> str:
    """How `found` differs from the board that was named; empty if it does not."""
    if found.platform == board.port and found.chip == _plain(board.chip):
        return ""
    alike = [
        name
        for name in boards.names()
        for other in [boards.load(name)]
        if (other.port, _plain(other.chip)) == (found.platform, found.chip)
    ]
    hint = f"; for that one: --board {' or '.join(alike)}" if alike else ""
    return f'wants {board.chip} on the {board.port} port, this is "{found.machine}" on {found.platform}{hint}'


def _plain(chip: str) -> str:
    return chip.replace("-", "").upper()
