"""A file as the checks want it: its native functions, its constants, its allowances."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

EMITTERS = ("viper", "native", "asm_thumb")

_ALLOWANCE = re.compile(r"#\s*viper:\s*allow\b(?P<rest>.*)$")
_NAMES_AND_REASON = re.compile(r"\s*(?P<names>[\w-]+(?:\s*,\s*[\w-]+)*)\s+because\s+(?P<reason>\S.*)$")


@dataclass
class Allowance:
    """`names` is empty when the comment is malformed. `used`: the rules that it did allow."""

    line: int
    names: tuple[str, ...]
    used: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Function:
    node: ast.FunctionDef
    emitter: str

    @property
    def first_line(self) -> int:
        return min([self.node.lineno, *(d.lineno for d in self.node.decorator_list)])

    @property
    def head(self) -> range:
        """Lines from the decorator to the one before the body."""
        return range(self.first_line, max(self.node.lineno + 1, self.node.body[0].lineno))


class Source:
    """Parsed text. SyntaxError when it is no Python."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        self.functions = list(_functions(self.tree))
        self.constants = _constants(self.tree)
        self.allowances = list(_allowances(text))

    def alone(self, function: Function) -> str:
        """Text with nothing but the module's constants and this function, every line where it was.

        The function is a child of the module even when it is a method.
        """
        kept = [""] * len(self.lines)
        for statement in self.tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom) or _const_call(statement) is not None:
                _keep(kept, self.lines, statement.lineno, statement.end_lineno)
        _keep(kept, self.lines, function.first_line, function.node.end_lineno)
        if function.node.col_offset:
            kept[function.first_line - 2] = "if True:"
        return "\n".join(kept) + "\n"


def _keep(kept: list[str], lines: list[str], first: int, last: int | None) -> None:
    kept[first - 1 : last] = lines[first - 1 : last]


def _functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                name = _last_name(decorator)
                if name in EMITTERS:
                    yield Function(node, name)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _const_call(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Name and value of `NAME = const(value)`."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="const"), args=[value])):
            return name, value
    return None


def _constants(tree: ast.Module) -> dict[str, int]:
    """Names that the compiler replaces by a number, in this module."""
    found: dict[str, int] = {}
    for statement in tree.body:
        pair = _const_call(statement)
        if pair is not None:
            value = fold(pair[1], found)
            if isinstance(value, int):
                found[pair[0]] = value
    return found


def fold(node: ast.expr, constants: dict[str, int]) -> int | float | None:
    """The number that the compiler makes of a constant expression; None for any other expression."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name):
            return constants.get(name)
        case ast.UnaryOp(op=op, operand=operand):
            a = fold(operand, constants)
            if isinstance(a, int):
                return {ast.USub: -a, ast.Invert: ~a, ast.UAdd: a}.get(type(op))
            return -a if isinstance(op, ast.USub) and a is not None else None
        case ast.BinOp(left=left, op=op, right=right):
            a, b = fold(left, constants), fold(right, constants)
            if isinstance(a, int) and isinstance(b, int):
                return _binary(op, a, b)
    return None


def _binary(op: ast.operator, a: int, b: int) -> int | None:
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.BitAnd():
            return a & b
        case ast.BitOr():
            return a | b
        case ast.BitXor():
            return a ^ b
        case ast.LShift() if 0 <= b < 256:
            return a << b
        case ast.RShift() if b >= 0:
            return a >> b
        case ast.FloorDiv() if b:
            return a // b
        case ast.Mod() if b:
            return a % b
    return None


def _allowances(text: str) -> Iterator[Allowance]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (found := _ALLOWANCE.match(token.string)):
            parts = _NAMES_AND_REASON.match(found["rest"])
            names = re.split(r"\s*,\s*", parts["names"]) if parts else []
            yield Allowance(token.start[0], tuple(names))
