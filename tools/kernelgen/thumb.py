"""Instructions. What MicroPython's assembler has no name for becomes a number.

Operands are those of that assembler. Beyond it: `add` and `cmp` of r8 and above, loads and stores of the
frame and of the sum of two registers, `ldm`, `stm` and extensions.
"""

from __future__ import annotations

from kernelgen.kernel import BadKernel, Offset, Place, Register, here
from kernelgen.operands import r7, sp


def _note(*operands: object) -> str:
    return next((x.name for x in operands if isinstance(x, (Offset, Place)) and x.name), "")


def _shown(operand: int | Register) -> str:
    return f"r{int(operand)}" if isinstance(operand, Register) else str(int(operand))


def _plain(op: str, *operands: int | Register) -> None:
    """An instruction of the assembler's own, on r0 to r7 but for mov."""
    if op in ("lsl", "lsr", "asr"):
        bits = 5
    else:
        bits = 3 if len(operands) == 3 else 8
    for operand in operands:
        if isinstance(operand, Register):
            if operand > r7 and op != "mov":
                raise BadKernel(f"{op} of {operand.name}")
        elif not 0 <= operand < 1 << bits:
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


def _pushed(op: str, registers: tuple[Register, ...]) -> None:
    here().op(f"{op}({{{', '.join(register.name for register in registers)}}})")


def push(*registers: Register) -> None:
    """The first one comes to lie lowest."""
    _pushed("push", registers)


def pop(*registers: Register) -> None:
    _pushed("pop", registers)


def drop(words: int) -> None:
    """So many words of the stack are not needed any more."""
    here().data(f"add sp, {4 * words}")


def blx(address: Register) -> None:
    """Calls what lies there, a function of up to four arguments in r0 to r3, which leaves r4 to r11."""
    here().data(f"blx {address.name}")


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


def bic(to: Register, x: Register) -> None:
    _plain("bic", to, x)


def mul(to: Register, x: Register) -> None:
    _plain("mul", to, x)


def mvn(to: Register, x: Register) -> None:
    _plain("mvn", to, x)


def neg(to: Register, x: Register) -> None:
    _plain("neg", to, x)
