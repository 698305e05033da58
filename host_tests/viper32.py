"""Runs viper kernels as a 32-bit board would, in CPython: the same source, every operation cut to 32 bits.

Stricter than a board: a load or store outside the arguments or off its alignment, a shift by 32 or more of
a value that is not zero, a division by zero or of negatives, a unary minus on a variable and a literal
beyond 30 bits are errors. Slow: for small jobs.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BASE = 0x3FFFE000  # so that addresses run across 2^30
GUARD = 64
OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}


def word(x: int) -> int:
    """The signed word that a register holds."""
    x &= 0xFFFFFFFF
    return x - (1 << 32) if x >> 31 else x


def operate(op: str, x: int, y: int) -> int:
    assert type(x) is int, (op, x)
    assert type(y) is int, (op, y)
    if op == "+":
        return word(x + y)
    if op == "-":
        return word(x - y)
    if op == "*":
        return word(x * y)
    if op == "&":
        return x & y
    if op == "|":
        return x | y
    if op == "^":
        return x ^ y
    if op in ("//", "%"):
        assert y > 0, f"division by {y}"
        assert x >= 0, f"division of {x}"
        return x // y if op == "//" else x % y
    assert y >= 0, f"shift by {y}"
    assert y < 32 or x == 0, f"shift of {x} by {y}"
    return word(x << y) if op == "<<" else x >> y


class Memory:
    """The arguments of one call, each at an address of its own, with guards between."""

    def __init__(self, buffers: Sequence[Any]) -> None:
        self.bytes = bytearray(GUARD)
        self.ranges: list[tuple[int, int]] = []
        self.address: dict[int, int] = {}
        self.buffers = buffers
        for buffer in buffers:
            if id(buffer) in self.address:
                continue
            raw = memoryview(buffer).cast("B")
            at = -(-len(self.bytes) // 16) * 16
            self.bytes.extend(bytes(at - len(self.bytes)))
            self.bytes.extend(raw)
            self.address[id(buffer)] = BASE + at
            self.ranges.append((at, at + len(raw)))
            self.bytes.extend(bytes(GUARD))

    def write_back(self) -> None:
        for buffer in self.buffers:
            at = self.address[id(buffer)] - BASE
            raw = memoryview(buffer).cast("B")
            new = self.bytes[at : at + len(raw)]
            if raw != new:
                raw[:] = new

    def check(self, at: int, size: int) -> int:
        assert at % size == 0, f"access of {size} bytes at {at:#x}"
        at -= BASE
        for start, end in self.ranges:
            if start <= at and at + size <= end:
                return at
        raise AssertionError(f"access at {at} is in none of {self.ranges!r}")


class Pointer:
    def __init__(self, memory: Memory, size: int, address: int) -> None:
        self.memory, self.size, self.address = memory, size, address

    def __getitem__(self, i: int) -> int:
        at = self.memory.check(self.address + i * self.size, self.size)
        return word(int.from_bytes(self.memory.bytes[at : at + self.size], "little"))

    def __setitem__(self, i: int, x: int) -> None:
        at = self.memory.check(self.address + i * self.size, self.size)
        raw = (x & (1 << 8 * self.size) - 1).to_bytes(self.size, "little")
        self.memory.bytes[at : at + self.size] = raw


class To32Bits(ast.NodeTransformer):
    """Python whose every operation goes through `operate`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return self._call(node.op, node.left, node.right)

    def _call(self, op: ast.operator, left: ast.expr, right: ast.expr) -> ast.Call:
        sign = ast.Constant(OPERATORS[type(op)])
        return ast.Call(ast.Name("operate", ast.Load()), [sign, left, right], [])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], self._call(node.op, read, node.value))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        assert isinstance(node.op, ast.Not) or isinstance(node.operand, ast.Constant), ast.unparse(node)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        assert not isinstance(node.value, int) or node.value < 1 << 30, node.value
        return node


def kernel(
    function: ast.FunctionDef, constants: dict[str, int] | None = None, file: str = "viper.py on 32 bits"
) -> Callable[..., int]:
    kinds = [ast.unparse(a.annotation) if a.annotation else "int" for a in function.args.args]
    memory: Memory

    def pointer(size: int) -> Callable[[Any], Pointer]:
        return lambda x: Pointer(memory, size, x.address if isinstance(x, Pointer) else word(x))

    def as_int(x: Any) -> int:
        return x.address if isinstance(x, Pointer) else x

    names: dict[str, Any] = {
        "operate": operate,
        "int": as_int,
        "ptr8": pointer(1),
        "ptr16": pointer(2),
        "ptr32": pointer(4),
        "_WIDE": 0,
        "_HI": 16,
        **(constants or {}),
    }
    function.decorator_list = []
    for argument in function.args.args:
        argument.annotation = None
    function.returns = None
    tree = ast.fix_missing_locations(ast.Module([To32Bits().visit(function)], []))
    exec(compile(tree, file, "exec"), names)
    body = names[function.name]

    def call(*arguments: Any) -> int:
        nonlocal memory
        # A number for a pointer is an address.
        memory = Memory([x for x in arguments if not isinstance(x, int)])
        given = [
            names[kind](x if isinstance(x, int) else memory.address[id(x)]) if kind.startswith("ptr") else x
            for x, kind in zip(arguments, kinds)
        ]
        done = body(*given)
        memory.write_back()
        assert done is None or -(1 << 30) <= done < 1 << 30, f"a returned {done} allocates"
        return done

    return call


def load(path: Path) -> dict[str, Callable[..., int]]:
    """The kernels of a viper source file."""
    tree = ast.parse(path.read_text())
    constants = {}
    for node in tree.body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="const"), args=[ast.Constant(value=int(value))]),
            ):
                constants[name] = value
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: kernel(node, constants, str(path)) for node in functions}
