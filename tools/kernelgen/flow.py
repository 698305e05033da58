"""Loops and conditions as `with` statements, labels and jumps where they are neither."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kernelgen.kernel import CALLED, CONDITIONAL, Register, here
from kernelgen.thumb import cmp

OPPOSITE = {"eq": "ne", "cs": "cc", "mi": "pl", "hi": "ls", "ge": "lt", "gt": "le"}
OPPOSITE |= {condition: opposite for opposite, condition in OPPOSITE.items()}


@dataclass(frozen=True)
class Condition:
    """What the flags say; called with two numbers, what they say when these are compared."""

    name: str
    numbers: tuple[Register, int | Register] | None = None

    def __call__(self, x: Register, y: int | Register) -> Condition:
        return Condition(self.name, (x, y))

    def tested(self) -> str:
        """Its name, after its comparison was put down."""
        if self.numbers:
            cmp(*self.numbers)
        return self.name


# Of numbers with a sign: ge, gt, le, lt; of others cs (at least), hi, ls, cc (less).
eq, ne, cs, cc, mi, pl = (Condition(name) for name in ("eq", "ne", "cs", "cc", "mi", "pl"))
hi, ls, ge, lt, gt, le = (Condition(name) for name in ("hi", "ls", "ge", "lt", "gt", "le"))


def label(name: str) -> None:
    here().label(name)


def b(name: str) -> None:
    here().branch("b", name)


def call(name: str) -> None:
    """Runs what begins at a label and leaves with leave()."""
    made = here()
    made.branches.append((name, made.size, CALLED))
    made.op(f"bl({name})")
    made.size += 1


def leave() -> None:
    """Back to behind the call, whose address lr still has."""
    here().op("bx(r14)")


def branch(condition: Condition, name: str) -> None:
    """To a label on a condition."""
    here().branch(f"b{condition.tested()}", name)


@contextmanager
def when(condition: Condition) -> Iterator[None]:
    """What runs on a condition."""
    after = here().new_label()
    here().branch(f"b{OPPOSITE[condition.tested()]}", after)
    yield
    label(after)


@contextmanager
def otherwise() -> Iterator[None]:
    """Right behind a `when`: what runs when its condition does not hold."""
    made = here()
    begin, end = made.lines[-1].removeprefix("label(").removesuffix(")"), made.new_label()
    made.unload_all(begin)
    b(end)
    label(begin)
    yield
    label(end)


@contextmanager
def repeat(name: str, condition: Condition) -> Iterator[None]:
    """What runs once, and again while the condition holds at its end."""
    made = here()
    label(name)
    yield
    flags = Condition(condition.tested())
    if made.reaches(name, made.size) in CONDITIONAL:
        branch(flags, name)
    else:
        with when(flags):
            b(name)


@contextmanager
def endless(name: str, out: str) -> Iterator[None]:
    """What runs until it jumps `out`."""
    label(name)
    yield
    b(name)
    label(out)
