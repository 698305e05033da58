"""Types of viper's locals and expressions, as the compiler infers them: the first assignment decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from viper_lint.source import fold

POINTERS = {"ptr": 0, "ptr8": 1, "ptr16": 2, "ptr32": 4}  # bytes an item; ptr has none
CASTS = {"int", "uint", "bool", *POINTERS}
OBJECT = "object"


class Types:
    """Of one viper function. Types are the names of CASTS, or OBJECT."""

    def __init__(self, node: ast.FunctionDef, constants: dict[str, int]) -> None:
        self._constants = constants
        self.locals: dict[str, str] = {}
        for argument in parameters(node):
            annotation = argument.annotation
            known = isinstance(annotation, ast.Name) and annotation.id in CASTS
            self.locals[argument.arg] = annotation.id if known else OBJECT  # type: ignore[union-attr]
        for name, value in assignments(node):
            self.locals.setdefault(name, "int" if value is None else self.of(value))

    def of(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=bool()) | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return "bool"
            case _ if isinstance(fold(node, self._constants), int):
                return "int"
            case ast.Name(id=name):
                return self.locals.get(name, OBJECT)
            case ast.Call(func=ast.Name(id=name)) if name in CASTS:
                return name
            case ast.Subscript(value=value) if self.of(value) in POINTERS:
                return "int"
            case ast.BinOp(left=left):
                return self.of(left)
            case ast.UnaryOp(operand=operand):
                return self.of(operand)
            case ast.IfExp(body=body):
                return self.of(body)
            case ast.BoolOp(values=[first, *_]):
                return self.of(first)
            case ast.NamedExpr(value=value):
                return self.of(value)
        return OBJECT


def parameters(node: ast.FunctionDef) -> list[ast.arg]:
    """Those that can be given by position."""
    return [*node.args.posonlyargs, *node.args.args]


def assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """Name and value of every assignment below `node`, in the order of the text; None: a loop counter."""
    found: list[tuple[tuple[int, int], str, ast.expr | None]] = []
    for part in ast.walk(node):
        pairs: list[tuple[ast.expr, ast.expr | None]] = []
        match part:
            case ast.Assign(targets=targets, value=value):
                pairs = [pair for target in targets for pair in _pairs(target, value)]
            case ast.AnnAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
                pairs = [(target, value)]
            case ast.AugAssign(target=target) | ast.For(target=target):
                pairs = [(target, None)]
        for target, value in pairs:
            if isinstance(target, ast.Name):
                found.append(((target.lineno, target.col_offset), target.id, value))
    for _, name, value in sorted(found, key=lambda one: one[0]):
        yield name, value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(a, b) = (x, y) one by one."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        yield from zip(target.elts, value.elts)
    else:
        yield target, value


def uncast(node: ast.expr) -> ast.expr:
    """What is left when casts around it, which move no data, are taken off."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CASTS:
        if len(node.args) != 1:
            break
        node = node.args[0]
    return node
