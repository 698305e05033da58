"""A kernel that is being built: its lines, labels and branches."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from kernelgen.encode import encode

# Bytes that a branch reaches, from four behind itself.
CONDITIONAL = range(-256, 255)
ALWAYS = range(-2048, 2047)
CALLED = range(-(1 << 22), 1 << 22)


class BadKernel(ValueError):
    """A source that is no kernel: an operand, a label or a jump that does not exist."""


class Register(int):
    """One of r0 to r12, sp and lr."""

    @property
    def name(self) -> str:
        return {13: "sp", 14: "lr"}.get(self, f"r{int(self)}")


class Offset(int):
    """A number of bytes that has a name."""

    name: str

    def __new__(cls, bytes_: int, name: str) -> Offset:
        self = super().__new__(cls, bytes_)
        self.name = name
        return self


@dataclass(frozen=True)
class Place:
    """What is in memory at a register and a number of bytes, or the sum of two registers."""

    base: Register
    at: int | Register
    name: str = ""

    @property
    def offset(self) -> Offset:
        return Offset(self.at, self.name)


@dataclass
class Kernel:
    name: str
    lines: list[str] = field(default_factory=list)
    # In halfwords from the first instruction: every instruction here has one.
    size: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    branches: list[tuple[str, int, range]] = field(default_factory=list)
    numbered: int = 0

    def op(self, text: str, note: str = "") -> None:
        self.lines.append(text + (f"  # {note}" if note else ""))
        self.size += 1

    def data(self, text: str, note: str = "") -> None:
        self.op(f"data(2, 0x{encode(text):04X})", text + (f"  {note}" if note else ""))

    def branch(self, op: str, name: str) -> None:
        self.branches.append((name, self.size, ALWAYS if op == "b" else CONDITIONAL))
        self.op(f"{op}({name})")

    def label(self, name: str) -> None:
        if name in self.labels:
            raise BadKernel(f"{self.name}: two labels {name}")
        self.labels[name] = self.size
        self.lines.append(f"label({name})")

    def unload_all(self, name: str) -> None:
        """The label that was just put down is to stand somewhere else."""
        if self.lines.pop() != f"label({name})":
            raise BadKernel(f"{self.name}: {name} is not the last label")
        del self.labels[name]

    def new_label(self) -> str:
        self.numbered += 1
        return f"L{self.numbered}"

    def reaches(self, name: str, at: int) -> int:
        """Bytes that a branch at that halfword jumps, from four behind it."""
        return 2 * (self.labels[name] - at) - 4

    def loops(self) -> Iterator[tuple[str, int]]:
        """Name and number of instructions of those that have no other in them."""
        spans: dict[str, range] = {}
        for name, at, _ in self.branches:
            if self.labels[name] <= at:
                spans[name] = range(self.labels[name], at + 1)
        for name in list(spans):
            # What jumps from behind a loop into it is none.
            begin, end = spans[name].start, spans[name].stop
            if any(loop.start < begin < loop.stop < end for loop in spans.values()):
                del spans[name]
        for name, span in spans.items():
            others = [loop for other, loop in spans.items() if other != name]
            if not any(span.start <= loop.start and loop.stop <= span.stop for loop in others):
                yield name, len(span)

    def check(self) -> None:
        for name, at, reach in self.branches:
            if name not in self.labels:
                raise BadKernel(f"{self.name}: no label {name}")
            if self.reaches(name, at) not in reach:
                raise BadKernel(f"{self.name}: {name} is too far away")


_building: list[Kernel] = []


def here() -> Kernel:
    """The kernel that instructions are put into."""
    return _building[-1]


@dataclass(frozen=True)
class Source:
    """A function that puts a kernel down; called with the registers that its arguments come in. One that has
    the name of an instruction ends in `_`, which the kernel does not."""

    body: Callable[..., None]
    called: bool = False

    def text(self) -> str:
        """The function for MicroPython's assembler; its docstring is comments."""
        made = Kernel(self.body.__name__.rstrip("_"))
        registers = [Register(n) for n in range(len(inspect.signature(self.body).parameters))]
        _building.append(made)
        try:
            with _asked(made, registers[-1]) if self.called else nullcontext():
                self.body(*registers)
        finally:
            _building.pop()
        made.check()
        return "\n".join(self._lines(made, registers)) + "\n"

    def _lines(self, made: Kernel, registers: list[Register]) -> Iterator[str]:
        yield "@micropython.asm_thumb"
        yield f"def {made.name}({', '.join(register.name for register in registers)}):"
        roles = zip(registers, inspect.signature(self.body).parameters)
        said = [", ".join(f"{register.name} {role}" for register, role in roles)]
        said += (inspect.getdoc(self.body) or "").split("\n\n")
        loops = ", ".join(f"{name} {size}" for name, size in made.loops())
        if loops:
            said.append(f"Instructions of inner loops: {loops}")
        for paragraph in said:
            for line in textwrap.wrap(paragraph, 100):
                yield f"    # {line}"
        for line in made.lines:
            yield f"    {line}"


# From the first instruction behind the one that the assembler puts before a function to what pc is where it
# is read, and the bit that says Thumb.
_ENTRY = 2
_READ = 4
_THUMB = 1


@contextmanager
def _asked(made: Kernel, last: Register) -> Iterator[None]:
    """Before a kernel: whose last argument is 0 gets its address, by which other kernels call it."""
    made.op(f"cmp({last.name}, 0)")
    made.branch("bne", "KERNEL")
    at = _ENTRY + 2 * made.size
    made.data("mov r0, pc", "the address, for kernels that call this one")
    made.op(f"sub(r0, {at + _READ - _THUMB})")
    made.branch("b", "ASKED")
    made.label("KERNEL")
    yield
    made.label("ASKED")


def kernel(body: Callable[..., None]) -> Source:
    """Decorator of a kernel's source."""
    return Source(body)


def called(body: Callable[..., None]) -> Source:
    """Decorator of a kernel that others call: where its last argument is 0, it gives its own address."""
    return Source(body, called=True)
