"""What instructions work on: registers, fields of arrays, words on the stack."""

from __future__ import annotations

from field_tables.table import Table
from kernelgen.kernel import Place, Register

r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12 = (Register(n) for n in range(13))
sp, lr = Register(13), Register(14)


def at(base: Register, offset: int | Register = 0) -> Place:
    return Place(base, offset)


def index_of(name: str, *tables: Table) -> int:
    """The place that has this name in one of the tables."""
    for table in tables:
        for known, found, _ in table.indexes():
            if known == name:
                return found
    raise AttributeError(f"no field {name} in {', '.join(table.name for table in tables)}")


class Array:
    """An array of a table of tools/field_tables that a register points at: its fields are attributes.

    `first`: the place that the register points at instead of the array's start.
    """

    def __init__(self, register: Register, *tables: Table, first: Place | None = None) -> None:
        self._register = register
        self._tables = tables
        self._first = int(first.offset) if first else 0

    def __getattr__(self, name: str) -> Place:
        return Place(self._register, 4 * index_of(name, *self._tables) - self._first, name)

    def on(self, register: Register, first: Place | None = None) -> Array:
        """The same array, at which another register points."""
        return Array(register, *self._tables, first=first)


class Frame:
    """Words on the stack, by name."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Place:
        if name not in self._names:
            raise AttributeError(f"no word {name} in this frame")
        return Place(sp, 4 * self._names.index(name), name)
