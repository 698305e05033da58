"""Registers, places and instructions. What MicroPython's assembler has no name for becomes a number.

Operands are those of MicroPython's assembler. Beyond it: `add` and `cmp` of r8 and above, loads and stores
of the frame and of the sum of two registers, `ldm`, `stm` and extensions. What is more than one instruction
has a `by`, the low register that it uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from field_tables.table import Table
from kernelgen.kernel import BadKernel, Offset, Place, Register, here

r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12 = (Register(n) for n in range(13))
sp, lr = Register(13), Register(14)

_SAVED = (r8, r9, r10, r11)
_LOW = (r4, r5, r6, r7)


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


@contextmanager
def frame(words: str = "", saved: bool = True) -> Iterator[Frame]:
    """Words on the stack, from the stack pointer on, and r8 to r11 saved: they are the caller's."""
    names = tuple(words.split())
    if saved:
        for low, high in zip(_LOW, _SAVED):
            mov(low, high)
        here().op("push({r4, r5, r6, r7})")
    if names:
        here().data(f"sub sp, {4 * len(names)}")
    yield Frame(names)
    if names:
        here().data(f"add sp, {4 * len(names)}")
    if saved:
        here().op("pop({r4, r5, r6, r7})")
        for low, high in zip(_LOW, _SAVED):
            mov(high, low)


def at(base: Register, offset: int | Register = 0) -> Place:
    return Place(base, offset)


def _note(*operands: object) -> str:
    return next((x.name for x in operands if isinstance(x, (Offset, Place)) and x.name), "")


def _shown(operand: int | Register) -> str:
    return f"r{int(operand)}" if isinstance(operand, Register) else str(int(operand))


def _plain(op: str, *operands: int | Register) -> None:
    """An instruction of the assembler's own, on r0 to r7 but for mov."""
    for operand in operands:
        if isinstance(operand, Register):
            if operand > r7 and op != "mov":
                raise BadKernel(f"{op} of {operand.name}")
        elif not 0 <= operand < (32 if op in ("lsl", "lsr", "asr") else 256):
            raise BadKernel(f"{op} with {int(operand)}")
    here().op(f"{op}({', '.join(_shown(x) for x in operands)})", _note(*operands))


def _memory(op: str, register: Register, place: Place, size: int) -> None:
    if isinstance(place.at, Register) or place.base == sp:
        to = place.at.name if isinstance(place.at, Register) else str(place.at)
        here().data(f"{op} {register.name}, [{place.base.name}, {to}]", place.name)
        return
    if max(register, place.base) > r7 or place.at % size or not 0 <= place.at < 32 * size:
        raise BadKernel(f"{op} {register.name} at {place.base.name} + {place.at} {place.name}")
    here().op(f"{op}({register.name}, [{place.base.name}, {place.at}])", place.name)


def ldr(register: Register, place: Place) -> None:
    _memory("ldr", register, place, 4)


def ldrh(register: Register, place: Place) -> None:
    _memory("ldrh", register, place, 2)


def ldrb(register: Register, place: Place) -> None:
    _memory("ldrb", register, place, 1)


def str_(register: Register, place: Place) -> None:
    _memory("str", register, place, 4)


def strh(register: Register, place: Place) -> None:
    _memory("strh", register, place, 2)


def strb(register: Register, place: Place) -> None:
    _memory("strb", register, place, 1)


def _several(op: str, base: Register, registers: tuple[Register, ...]) -> None:
    here().data(f"{op} {base.name}!, {{{', '.join(register.name for register in registers)}}}")


def ldm(base: Register, *registers: Register) -> None:
    _several("ldm", base, registers)


def stm(base: Register, *registers: Register) -> None:
    _several("stm", base, registers)


def uxtb(to: Register, x: Register) -> None:
    here().data(f"uxtb {to.name}, {x.name}")


def uxth(to: Register, x: Register) -> None:
    here().data(f"uxth {to.name}, {x.name}")


def sxth(to: Register, x: Register) -> None:
    here().data(f"sxth {to.name}, {x.name}")


def mov(to: Register, x: int | Register) -> None:
    _plain("mov", to, x)


def add(to: Register, x: int | Register, y: int | Register | None = None) -> None:
    if y is not None:
        _plain("add", to, x, y)
    elif not isinstance(x, Register):
        _plain("add", to, x)
    elif max(to, x) > r7:
        here().data(f"add {to.name}, {x.name}")
    else:
        _plain("add", to, to, x)


def sub(to: Register, x: int | Register, y: int | Register | None = None) -> None:
    if y is not None:
        _plain("sub", to, x, y)
    elif isinstance(x, Register):
        _plain("sub", to, to, x)
    else:
        _plain("sub", to, x)


def cmp(x: Register, y: int | Register) -> None:
    if isinstance(y, Register) and max(x, y) > r7:
        here().data(f"cmp {x.name}, {y.name}")
    else:
        _plain("cmp", x, y)


def _shift(op: str, to: Register, x: int | Register, count: int | None) -> None:
    if count is not None:
        _plain(op, to, x, count)
    elif isinstance(x, Register):
        _plain(op, to, x)
    else:
        _plain(op, to, to, x)


def lsl(to: Register, x: int | Register, count: int | None = None) -> None:
    _shift("lsl", to, x, count)


def lsr(to: Register, x: int | Register, count: int | None = None) -> None:
    _shift("lsr", to, x, count)


def asr(to: Register, x: int | Register, count: int | None = None) -> None:
    _shift("asr", to, x, count)


def adc(to: Register, x: Register) -> None:
    _plain("adc", to, x)


def and_(to: Register, x: Register) -> None:
    _plain("and_", to, x)


def orr(to: Register, x: Register) -> None:
    _plain("orr", to, x)


def eor(to: Register, x: Register) -> None:
    _plain("eor", to, x)


def mul(to: Register, x: Register) -> None:
    _plain("mul", to, x)


def mvn(to: Register, x: Register) -> None:
    _plain("mvn", to, x)


def neg(to: Register, x: Register) -> None:
    _plain("neg", to, x)


def constant(to: Register, number: int) -> None:
    """A number of up to four instructions: 8 bits, shifted; one of them added or taken; negated."""
    if number < 0:
        constant(to, -number)
        neg(to, to)
    elif number < 256:
        mov(to, number)
    else:
        above = number + 1
        zeros = (above & -above).bit_length() - 1
        if number & 1 and above >> zeros < 256:
            constant(to, above)
            sub(to, 1)
            return
        shift = max((number & -number).bit_length() - 1, number.bit_length() - 8)
        mov(to, number >> shift)
        lsl(to, to, shift)
        rest = number - (number >> shift << shift)
        if rest:
            add(to, rest)


def put(to: Place | Register, source: Place | int | Register, by: Register) -> None:
    """A number, a word or a register to a word of memory or a register from r8 on; `by` has it too."""
    if isinstance(source, Place):
        ldr(by, source)
    elif isinstance(source, Register):
        mov(by, source)
    else:
        constant(by, source)
    if isinstance(to, Place):
        str_(by, to)
    else:
        mov(to, by)


def plus(to: Register, source: Place, by: Register) -> None:
    """Adds a word of memory."""
    ldr(by, source)
    add(to, by)


def minus(to: Register, source: Place, by: Register) -> None:
    """Takes a word of memory away."""
    ldr(by, source)
    sub(to, by)


def times(to: Register, source: Place, by: Register) -> None:
    """Multiplies with a word of memory."""
    ldr(by, source)
    mul(to, by)


def bump(word: Place | Register, number: int | Register, by: Register) -> None:
    """Adds to a word of memory or a register from r8 on; `by` has the sum, the flags too if it is a
    number's."""
    if isinstance(word, Place):
        ldr(by, word)
    else:
        mov(by, word)
    if isinstance(number, Register) or number >= 0:
        add(by, number)
    else:
        sub(by, -number)
    if isinstance(word, Place):
        str_(by, word)
    else:
        mov(word, by)


def locate(to: Register, offset: Place, buffer: Register) -> None:
    """The address of what a field gives the offset of."""
    ldr(to, offset)
    add(to, buffer)


def index(x: Register, shift: int, base: Register) -> None:
    """x becomes the address of element x of 1 << shift bytes."""
    lsl(x, shift)
    add(x, base)


def point(to: Register, place: Place) -> None:
    """The address of a field."""
    mov(to, place.base)
    add(to, place.offset)
