"""Which divisions stand behind a test of their divisor."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

_LEAVES = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def guarded_divisions(function: ast.FunctionDef) -> set[ast.AST]:
    """The divisions and remainders by a local that cannot be 0 where they stand.

    Two forms count: inside `if n:` (while, ternary, n > 0, n != 0), and after `if not n:` with a body
    that leaves. In both nothing between may assign n: inside the guard, or after it, nothing at all does.
    """
    return set(_walk(function.body, function))


def divisor(node: ast.AST) -> ast.expr | None:
    match node:
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod(), right=right):
            return right
        case ast.AugAssign(op=ast.FloorDiv() | ast.Mod(), value=value):
            return value
    return None


def _walk(block: Sequence[ast.stmt], function: ast.FunctionDef) -> Iterator[ast.AST]:
    for at, statement in enumerate(block):
        for node in ast.walk(statement):
            match node:
                case ast.If(test=test, body=body, orelse=orelse):
                    yield from _behind(_true_when_set(test), body)
                    yield from _behind(_true_when_zero(test), orelse)
                case ast.While(test=test, body=body):
                    yield from _behind(_true_when_set(test), body)
                case ast.IfExp(test=test, body=value):
                    yield from _behind(_true_when_set(test), [value])
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], _LEAVES):
            after = block[at + 1 :]
            for name in _true_when_zero(statement.test):
                if not _assigned(name, [node for node in ast.walk(function) if _below(node, statement)]):
                    yield from _behind({name}, after)
        for inner in _blocks(statement):
            yield from _walk(inner, function)


def _behind(names: set[str], nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    inside = [part for node in nodes for part in ast.walk(node)]
    for part in inside:
        by = divisor(part)
        if isinstance(by, ast.Name) and by.id in names and not _assigned(by.id, inside):
            yield part


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if isinstance(block, list):
            yield block


def _assigned(name: str, nodes: Sequence[ast.AST]) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in nodes)


def _below(node: ast.AST, statement: ast.stmt) -> bool:
    return getattr(node, "lineno", 0) > statement.lineno


def _true_when_set(test: ast.expr) -> set[str]:
    """Names that are not 0 when the test holds."""
    match test:
        case ast.Name(id=name):
            return {name}
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.NotEq() | ast.Gt()], comparators=[ast.Constant(value=0)]
        ):
            return {name}
        case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=int(least))]):
            more = (isinstance(op, ast.GtE) and least > 0) or (isinstance(op, ast.Gt) and least > 0)
            return {name} if more else set()
        case ast.BoolOp(op=ast.And(), values=values):
            return set().union(*map(_true_when_set, values))
    return set()


def _true_when_zero(test: ast.expr) -> set[str]:
    """Names that are not 0 when the test does not hold."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            return {name}
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Eq() | ast.LtE()], comparators=[ast.Constant(value=0)]
        ):
            return {name}
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Lt()], comparators=[ast.Constant(value=1)]):
            return {name}
        case ast.BoolOp(op=ast.Or(), values=values):
            return set().union(*map(_true_when_zero, values))
    return set()
