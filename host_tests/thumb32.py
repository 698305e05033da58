"""Runs kernels in inline Thumb assembler in CPython, instruction by instruction as an ARMv6-M core does.

Stricter than a core: a load or store outside the arguments, above or below the function's own stack or off
its alignment, a register of the caller's not restored and a stack not given back are errors. Flags follow
the ARMv6-M Architecture Reference Manual. `steps` of a kernel counts the instructions it ran, `cycles` what
they take on a Cortex-M0+.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import viper32

from kernelgen import encode
from kvlab.cost.cycles import CYCLES

MASK = 0xFFFFFFFF
SP, LR = 13, 14
CODE = 0x10000001  # address of the first instruction
RETURN = 0x0FFFFFF1  # where the caller goes on
STACK_BYTES = 128
MOST_STEPS = 20_000_000

LOGIC: dict[str, Callable[[int, int], int]] = {
    "and_": lambda x, y: x & y,
    "orr": lambda x, y: x | y,
    "eor": lambda x, y: x ^ y,
    "bic": lambda x, y: x & ~y,
    "mvn": lambda _, y: ~y & MASK,
    "mul": lambda x, y: x * y & MASK,
}
ACCESS = {"ldr": 4, "ldrh": 2, "ldrb": 1, "ldrsh": 2, "ldrsb": 1, "str": 4, "strh": 2, "strb": 1}


class Register(int):
    """The number of a register, to tell it from an immediate."""


def operand(node: ast.expr) -> Any:
    """A Register, an int, the name of a label, [base, offset], or a list of registers."""
    match node:
        case ast.Name(id=name) if name[0] == "r" and name[1:].isdigit():
            return Register(name[1:])
        case ast.Name(id=name):
            return name
        case ast.Constant(value=int(value)):
            return value
        case ast.List(elts=parts):
            return [operand(part) for part in parts]
        case ast.Set(elts=parts):
            return sorted(operand(part) for part in parts)
    raise AssertionError(ast.unparse(node))


def decode(half: int) -> tuple[str, list]:
    """An instruction given as a number: those that kernelgen's encoder knows."""
    low = [Register(half >> at & 7) for at in (0, 3, 6, 8)]
    if half >> 12 == 0xC:
        names = [Register(n) for n in range(8) if half >> n & 1]
        return ("ldm" if half & 0x800 else "stm"), [low[3], names]
    if half >> 12 == 9:
        return ("ldr" if half & 0x800 else "str"), [low[3], [Register(SP), (half & 255) * 4]]
    if half >> 8 == 0xB0:
        return ("sub" if half & 0x80 else "add") + " sp", [(half & 127) * 4]
    if half >> 8 == 0xB2:
        return next(op for op, base in encode.EXTEND.items() if base == half & 0xFFC0), low[:2]
    if half >> 8 in (0x44, 0x45):
        operands = [Register(half >> 4 & 8 | half & 7), Register(half >> 3 & 15)]
        return ("add high" if half >> 8 == 0x44 else "cmp"), operands
    if half & 0xFF87 == 0x4780:
        return "blx", [Register(half >> 3 & 15)]
    if half & 0xFFF8 == 0x4678:
        return "mov pc", [low[0]]
    for op, base in encode.BY_REGISTER.items():
        if base == half & 0xFE00:
            return op, [low[0], [low[1], low[2]]]
    raise AssertionError(f"{half:#06x}")


def instructions(function: ast.FunctionDef) -> tuple[list[tuple[str, list]], dict[str, int]]:
    """(instructions, where each label points) of an @asm_thumb function."""
    code: list[tuple[str, list]] = []
    labels: dict[str, int] = {}
    for statement in function.body:
        assert isinstance(statement, ast.Expr)
        assert isinstance(statement.value, ast.Call)
        call = statement.value
        op, operands = ast.unparse(call.func), [operand(node) for node in call.args]
        if op == "label":
            labels[operands[0]] = len(code)
        elif op == "data":
            code += [decode(half) for half in operands[1:]]
        else:
            code.append((op, operands))
    return code, labels


def cycles(op: str, operands: list) -> int:
    """Of an instruction that is no branch."""
    if op in ACCESS:
        return CYCLES["store" if op[0] == "s" else "load"]
    if op in ("push", "pop", "ldm", "stm"):
        names = operands[0] if op in ("push", "pop") else operands[1]
        return CYCLES["multiple"] + CYCLES["words"] * len(names)
    return CYCLES["other"]


class Core:
    def __init__(self, memory: viper32.Memory) -> None:
        self.memory = memory
        self.r = [0xDEAD0000 + 16 * n for n in range(16)]
        self.n = self.z = self.v = 0
        self._c: int | None = 0

    @property
    def c(self) -> int:
        assert self._c is not None, "the carry is read after a shift by 0"
        return self._c

    @c.setter
    def c(self, bit: int) -> None:
        self._c = bit

    def value(self, x: Any) -> int:
        return self.r[x] if isinstance(x, Register) else x

    def load(self, address: int, size: int, signed: bool = False) -> int:
        at = self.memory.check(address, size)
        return int.from_bytes(self.memory.bytes[at : at + size], "little", signed=signed) & MASK

    def store(self, address: int, size: int, x: int) -> None:
        at = self.memory.check(address, size)
        self.memory.bytes[at : at + size] = (x & (1 << 8 * size) - 1).to_bytes(size, "little")

    def nz(self, x: int) -> int:
        self.n, self.z = x >> 31, int(x == 0)
        return x

    def add(self, x: int, y: int, carry: int) -> int:
        total = x + y + carry
        self.c, result = total >> 32, total & MASK
        self.v = (x ^ result) >> 31 & (y ^ result) >> 31
        return self.nz(result)

    def shift(self, op: str, x: int, count: int) -> int:
        """By a register's lowest byte or an immediate, which is never 0 here. By 0 a core leaves the carry as
        it is, but not every emulator of one does: nobody may count on it."""
        count &= 255
        if not count:
            self._c = None
        if count:
            if op == "lsl":
                wide = x << min(count, 33)
                self.c, x = wide >> 32 & 1, wide & MASK
            else:
                number = viper32.word(x) if op == "asr" else x
                self.c, x = number >> min(count - 1, 32) & 1, number >> min(count, 32) & MASK
        return self.nz(x)

    def holds(self, condition: str) -> bool:
        n, z, v = self.n, self.z, self.v
        c = self.c if condition in ("cs", "cc", "hi", "ls") else 0
        base = {"eq": z, "cs": c, "mi": n, "vs": v, "hi": c and not z, "ge": n == v, "gt": n == v and not z}
        opposite = {"ne": "eq", "cc": "cs", "pl": "mi", "vc": "vs", "ls": "hi", "lt": "ge", "le": "gt"}
        return bool(base[condition]) if condition in base else not base[opposite[condition]]

    def execute(self, op: str, operands: list) -> None:
        """Anything but a branch."""
        r, first = self.r, operands[0]
        if op in ACCESS:
            address = sum(self.value(part) for part in operands[1]) & MASK
            if op[0] == "s":
                self.store(address, ACCESS[op], r[first])
            else:
                r[first] = self.load(address, ACCESS[op], op[3:4] == "s")
        elif op in ("push", "pop", "ldm", "stm"):
            self.several(op, first if op in ("push", "pop") else operands[1], first)
        elif op in ("add sp", "sub sp"):
            r[SP] += first if op == "add sp" else -first
        elif op == "add high":
            r[first] = r[first] + r[operands[1]] & MASK
        elif op in encode.EXTEND:
            bits = 16 if op[3] == "h" else 8
            x = r[operands[1]] & (1 << bits) - 1
            r[first] = (x - (x >> bits - 1 << bits) if op[0] == "s" else x) & MASK
        elif op == "mov":
            x = self.value(operands[1])
            r[first] = x if isinstance(operands[1], Register) else self.nz(x)
        elif op in ("lsl", "lsr", "asr"):
            x, count = (r[first], operands[1]) if len(operands) == 2 else (r[operands[1]], operands[2])
            r[first] = self.shift(op, x, self.value(count))
        elif op in LOGIC:
            r[first] = self.nz(LOGIC[op](r[first], r[operands[1]]))
        elif op == "tst":
            self.nz(r[first] & r[operands[1]])
        elif op == "neg":
            r[first] = self.add(0, r[operands[1]] ^ MASK, 1)
        else:
            x, y = (self.value(part) for part in ([first] + operands)[-2:])
            inverted = op in ("sub", "sbc", "cmp")
            carry = self.c if op in ("adc", "sbc") else int(inverted)
            assert op in ("add", "sub", "cmp", "adc", "sbc", "cmn"), op
            result = self.add(x, y ^ MASK if inverted else y, carry)
            if op not in ("cmp", "cmn"):
                r[first] = result

    def several(self, op: str, names: Sequence[Register], base: Any) -> None:
        r = self.r
        if op == "push":
            r[SP] -= 4 * len(names)
        at = r[SP] if op in ("push", "pop") else r[base]
        for name in names:
            if op in ("push", "stm"):
                self.store(at, 4, r[name])
            else:
                r[name] = self.load(at, 4)
            at += 4
        if op == "pop":
            r[SP] = at
        elif op != "push":
            r[base] = at


def kernel(function: ast.FunctionDef) -> Callable[..., int]:
    code, labels = instructions(function)
    # What the assembler puts around the body: it saves r4..r7 and lr.
    saved = range(8, 12)

    def call(*arguments: Any) -> int:
        buffers = [x for x in arguments if not isinstance(x, int)]
        stack = bytearray(STACK_BYTES)
        core = Core(viper32.Memory([*buffers, stack]))
        r, address = core.r, core.memory.address
        for i, x in enumerate(arguments):
            r[i] = x & MASK if isinstance(x, int) else address[id(x)]
        r[SP], r[LR] = address[id(stack)] + STACK_BYTES, RETURN
        before = [r[SP], *(r[n] for n in saved)]
        at = steps = taken = 0
        while at < len(code):
            op, operands = code[at]
            at += 1
            steps += 1
            assert steps < MOST_STEPS, "no end"
            if op == "bl":
                r[LR] = CODE + 2 * at
                at = labels[operands[0]]
                taken += CYCLES["call"]
            elif op == "bx":
                at = (r[operands[0]] - CODE) // 2
                taken += CYCLES["return"]
                assert 0 < at <= len(code), f"a jump to {r[operands[0]]:#x}"
            elif op == "blx":
                raise AssertionError("a call of another kernel: this runs one")
            elif op == "mov pc":
                r[operands[0]] = CODE - 1 + 2 * (at - 1) + 4  # what is in front has an instruction each
            elif op == "b" or (op[0] == "b" and op != "bic"):
                if op == "b" or core.holds(op[1:3]):
                    at = labels[operands[0]]
                    taken += CYCLES["branch"]
                else:
                    taken += CYCLES["not_taken"]
            else:
                core.execute(op, operands)
                taken += cycles(op, operands)
        assert [r[SP], *(r[n] for n in saved)] == before, "the caller's registers are not restored"
        core.memory.write_back()
        call.steps, call.cycles = steps, taken  # type: ignore[attr-defined]
        return viper32.word(r[0])

    return call


def load(path: Path) -> dict[str, Callable[..., int]]:
    """The kernels of a file of inline assembler."""
    return dict(_kernels(ast.parse(path.read_text())))


def _kernels(tree: ast.Module) -> Iterator[tuple[str, Callable[..., int]]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, kernel(node)
