"""The rules for the bodies and heads of @micropython.viper functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from viper_lint.guards import divisor, guarded_divisions
from viper_lint.inference import CASTS, POINTERS, Types, assignments, parameters, uncast
from viper_lint.rules import MOST_ARGUMENTS, NEAR_INDEXES, REGISTERS, WORD_LIMIT
from viper_lint.source import fold

# A rule's name, the node it is about, and what to add to its message.
Hit = tuple[str, ast.AST, str]

# Code under `if _WIDE:` is compiled for 64-bit words only (mpy_kv/port.py).
_WIDE = "_WIDE"
_WIDTHS = {16, 24}


def check_viper(node: ast.FunctionDef, constants: dict[str, int]) -> Iterator[Hit]:
    yield from _head(node)
    body = _Body(node, constants)
    for statement in node.body:
        body.visit(statement)
    yield from body.hits


def _head(node: ast.FunctionDef) -> Iterator[Hit]:
    args = node.args
    if args.defaults or args.vararg or args.kwonlyargs or args.kwarg:
        yield "signature", node, ""
    names = [_annotation(argument.annotation) for argument in parameters(node)]
    if len(names) > MOST_ARGUMENTS:
        yield "arguments", node, f"{len(names)} of them"
    for at, name in enumerate(names[:REGISTERS]):
        if name not in POINTERS and any(later in POINTERS for later in names[at:]):
            yield "order", node, parameters(node)[at].arg
    if _annotation(node.returns) == "uint":
        yield "uint-result", node, ""


def _annotation(node: ast.expr | None) -> str:
    return node.id if isinstance(node, ast.Name) else ""


class _Body(ast.NodeVisitor):
    """Collects the hits of one body; `_wide`: inside `if _WIDE:`."""

    def __init__(self, node: ast.FunctionDef, constants: dict[str, int]) -> None:
        self.hits: list[Hit] = []
        self._constants = constants
        self._types = Types(node, constants)
        self._guarded = guarded_divisions(node)
        self._signless = _signless(node, self._types)
        self._wide = False

    def _hit(self, rule: str, node: ast.AST, detail: str = "") -> None:
        self.hits.append((rule, node, detail))

    def _fold(self, node: ast.expr) -> int | float | None:
        return fold(node, self._constants)

    def visit(self, node: ast.AST) -> None:
        """Constant expressions are one literal to the compiler, so they are checked as one."""
        if isinstance(node, ast.expr) and (value := self._fold(node)) is not None:
            if isinstance(value, float) or not -WORD_LIMIT <= value < WORD_LIMIT:
                self._hit("literal", node, ast.unparse(node))
            return
        super().visit(node)

    # Names

    def visit_Name(self, node: ast.Name) -> None:
        known = node.id in self._types.locals or node.id in CASTS or node.id == "const"
        if isinstance(node.ctx, ast.Load) and not known:
            self._hit("global", node, node.id)

    def visit_Global(self, node: ast.Global) -> None:
        self._hit("global", node, ", ".join(node.names))

    def visit_For(self, node: ast.For) -> None:
        match node.iter:
            case ast.Call(func=ast.Name(id="range"), args=bounds):  # a counting loop, no call
                for bound in bounds:
                    self.visit(bound)
            case _:
                self.visit(node.iter)
        for statement in [*node.body, *node.orelse]:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    # Blocks

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == _WIDE:
            self._wide = True
            for statement in node.body:
                self.visit(statement)
            self._wide = False
            for statement in node.orelse:
                self.visit(statement)
        else:
            self.generic_visit(node)

    def visit_Try(self, node: ast.Try) -> None:
        self._hit("try", node)
        self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        self._hit("try", node)
        self.generic_visit(node)

    # Pointers

    def visit_Subscript(self, node: ast.Subscript) -> None:
        pointer = self._types.of(node.value)
        if pointer in POINTERS:
            index = self._fold(node.slice)
            if index is None and POINTERS[pointer] > 1:
                self._hit("indexed", node, ast.unparse(node))
            elif index is not None and index < 0:
                self._hit("negative-index", node, ast.unparse(node))
            elif index is not None and isinstance(node.ctx, ast.Store) and index >= NEAR_INDEXES:
                self._hit("far-store", node, ast.unparse(node))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        match node:
            case ast.Call(
                func=ast.Name(id="ptr16" | "ptr32" as to),
                args=[ast.BinOp(left=start, op=ast.Add() | ast.Sub(), right=by)],
            ):
                size = POINTERS[to]
                step = self._fold(by)
                aligned = POINTERS.get(self._types.of(uncast(start)), 0) >= size
                if aligned and isinstance(step, int) and step % size:
                    self._hit("unaligned", node, ast.unparse(node))
        self.generic_visit(node)

    # Operations

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        in_place = (ast.Name, ast.NamedExpr, ast.IfExp, ast.BoolOp)
        if isinstance(node.op, ast.USub | ast.Invert) and isinstance(uncast(node.operand), in_place):
            self._hit("unary", node, ast.unparse(node))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._division(node)
        self._mixing(node, node.left, node.right)
        if isinstance(node.op, ast.LShift | ast.RShift):
            self._shifting(node, node.right)
        match node:
            case ast.BinOp(left=ast.BinOp(op=ast.LShift(), right=up), op=ast.RShift(), right=down):
                bits = self._fold(up)
                if not self._wide and bits == self._fold(down) and bits in _WIDTHS:
                    self._hit("extend", node, ast.unparse(node))
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._division(node)
        self._mixing(node, node.target, node.value)
        if isinstance(node.op, ast.LShift | ast.RShift):
            self._shifting(node, node.value)
        self.generic_visit(node)

    def _division(self, node: ast.BinOp | ast.AugAssign) -> None:
        by = divisor(node)
        if by is None:
            return
        if "uint" in (self._types.of(by), self._types.of(_left(node))):
            self._hit("mixed", node, ast.unparse(node))
        if not self._fold(by) and node not in self._guarded:
            self._hit("divide", node, ast.unparse(by))

    def _mixing(self, node: ast.AST, left: ast.expr, right: ast.expr) -> None:
        if {self._types.of(left), self._types.of(right)} == {"int", "uint"} and not divisor(node):
            self._hit("mixed", node, ast.unparse(node))

    def _shifting(self, node: ast.AST, by: ast.expr) -> None:
        count = self._fold(by)
        if count is not None and not self._wide and not 0 <= count < 32:
            self._hit("shift", node, ast.unparse(node))

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, sides, sides[1:]):
            if isinstance(op, ast.Is | ast.IsNot):
                self._hit("is-none", node, ast.unparse(node))
                continue
            self._mixing(node, left, right)
            if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) and (
                (self._is_signless(left) and self._is_sign_bound(op, right, ast.Lt | ast.GtE))
                or (self._is_signless(right) and self._is_sign_bound(op, left, ast.Gt | ast.LtE))
            ):
                self._hit("sign", node, ast.unparse(node))
        self.generic_visit(node)

    def _is_signless(self, node: ast.expr) -> bool:
        return _is_word(node, self._types) or (isinstance(node, ast.Name) and node.id in self._signless)

    def _is_sign_bound(self, op: ast.cmpop, bound: ast.expr, with_zero: object) -> bool:
        """Whether comparing with `bound` asks for the sign: a negative one does, 0 in `< 0` and `>= 0`."""
        value = self._fold(bound)
        if value is None:
            match bound:  # 0 - lim
                case ast.BinOp(left=ast.Constant(value=0), op=ast.Sub()):
                    return True
            return False
        return value < 0 or (value == 0 and isinstance(op, with_zero))  # type: ignore[arg-type]


def _left(node: ast.BinOp | ast.AugAssign) -> ast.expr:
    return node.left if isinstance(node, ast.BinOp) else node.target


def _is_word(node: ast.expr, types: Types) -> bool:
    """A plain load through a ptr32."""
    node = uncast(node)
    return isinstance(node, ast.Subscript) and types.of(node.value) == "ptr32"


def _signless(function: ast.FunctionDef, types: Types) -> set[str]:
    """Locals that take a plain ptr32 load and are never sign-extended under `if _WIDE:`."""
    loaded = {name for name, value in assignments(function) if value and _is_word(value, types)}
    extended = {
        name
        for node in ast.walk(function)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == _WIDE
        for statement in node.body
        for name, _ in assignments(statement)
    }
    return loaded - extended
