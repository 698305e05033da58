"""Instructions that go together. `by` is the low register that they use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernelgen.kernel import Place, Register, here
from kernelgen.operands import Frame, r4, r5, r6, r7, r8, r9, r10, r11
from kernelgen.thumb import add, ldr, lsl, mov, mul, neg, str_, sub

_SAVED = (r8, r9, r10, r11)
_LOW = (r4, r5, r6, r7)


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
