"""Every one-line fault of a Python file that the operators here can make, each with a name that lasts.

A fault is a replacement of some characters of the text, so that comments and lines stay as they are. Its
identity is made of the file, the function, the line as it was and as it is: it stays valid when lines move.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass

_COMPARE: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_OPPOSITE = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"),
    ast.Div: ("/", "*"), ast.Mod: ("%", "//"), ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"),
}  # fmt: skip
_SWAPPED = {"min": "max", "max": "min"}
_DELETED = (ast.Assign, ast.AugAssign, ast.Raise, ast.Break, ast.Continue, ast.Delete)


@dataclass(frozen=True)
class Fault:
    """`new` in place of text[start:end] (characters) of `file`, within `function` ("": of the module)."""

    file: str
    function: str
    kind: str
    lines: tuple[int, int]  # first and last of the statement as far as the fault goes
    start: int
    end: int
    new: str
    was: str  # the line, or lines, without indentation
    now: str
    nth: int = 0  # of the equal ones of this function

    @property
    def line(self) -> int:
        """Where it is seen."""
        return self.lines[1]

    @property
    def id(self) -> str:
        text = "\0".join((self.file, self.function, self.was, self.now, str(self.nth)))
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def applied(self, text: str) -> str:
        """The faulty text."""
        return text[: self.start] + self.new + text[self.end :]


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.begins = [0]
        for line in self.lines:
            self.begins.append(self.begins[-1] + len(line))
        self.within: list[str] = []
        self.statement = 1
        # Comparisons of which it does not matter what they say of equal numbers.
        self.equal: set[ast.expr] = set()
        self.default = False  # within an argument's default, which is run where the function is made
        # Function, kind, line of the statement, start, end, new.
        self.found: list[tuple[str, str, int, int, int, str]] = []

    def at(self, line: int, column: int) -> int:
        """Place in the text of a line and a column in bytes of UTF-8, as ast counts."""
        return self.begins[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def add(self, kind: str, start: int, end: int, new: str) -> None:
        kind = "default" if self.default else kind
        self.found.append((".".join(self.within), kind, self.statement, start, end, new))

    def operator(self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Replace the operator between two operands; only brackets and blanks stand beside it."""
        start, end = self.span(left)[1], self.span(right)[0]
        between = self.text[start:end]
        at = between.find(old)
        if at >= 0 and "#" not in between:
            self.add(kind, start + at, start + at + len(old), new)

    # Where there is nothing to break

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.within.append(node.name)
        self.default = True
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self.default = False
        self.body(node.body)
        self.within.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.within.append(node.name)
        self.body(node.body)
        self.within.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    # Statements

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self.visit(statement)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            self.statement = node.lineno
        super().visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        if self.within and (call or isinstance(node, _DELETED)):
            assert isinstance(node, ast.stmt)
            self.add("delete", *self.span(node), "pass")
        super().generic_visit(node)

    def _condition(self, test: ast.expr) -> None:
        if isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
            return  # its operator is replaced by the opposite one
        start, end = self.span(test)
        self.add("negate", start, end, f"not ({self.text[start:end]})")

    def visit_If(self, node: ast.If) -> None:
        if _bounds(node):
            self.equal.add(node.test)
        self._condition(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._condition(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        if isinstance(node.test, ast.Compare) and _same(_sides(node.test), (node.body, node.orelse)):
            self.equal.add(node.test)
        self._condition(node.test)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not isinstance(node.value, ast.Constant):
            self.add("return", *self.span(node.value), "None")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        old, new = _ARITHMETIC[type(node.op)]
        self.operator("arithmetic", node.target, node.value, old + "=", new + "=")
        self.generic_visit(node)

    # Expressions

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for op, right in zip(node.ops, node.comparators):
            if node not in self.equal:
                self.operator("compare", left, right, *_COMPARE[type(op)])
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:]):
            self.operator("boolean", left, right, old, new)
        # A half left out: its place stays, its meaning does not count.
        for value in node.values:
            start, end = self.span(value)
            self.add("half", start, end, str(isinstance(node.op, ast.And)))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.left, (ast.Constant, ast.JoinedStr)) and not _number(node.left):
            self.visit(node.right)  # the words of an error
            return
        if type(node.op) in _ARITHMETIC:
            self.operator("arithmetic", node.left, node.right, *_ARITHMETIC[type(node.op)])
        if isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self.span(node.left), self.span(node)
            self.add("half", left[1], right[1], _closed(self.text[left[1] : self.span(node.right)[0]]))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, (ast.Not, ast.USub)):
            self.add("unary", self.span(node)[0], self.span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add("constant", *self.span(node), str(not node.value))
        elif isinstance(node.value, int):
            for new in (node.value + 1, node.value - 1):
                self.add("constant", *self.span(node), str(new) if new >= 0 else f"({new})")

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in _SWAPPED:
            self.add("call", *self.span(node.func), _SWAPPED[node.func.id])
        self.generic_visit(node)


def _sides(test: ast.Compare) -> tuple[ast.expr, ...]:
    """Both, where one is to be less or more than the other."""
    if len(test.ops) == 1 and isinstance(test.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
        return test.left, test.comparators[0]
    return ()


def _same(some: tuple[ast.expr, ...], others: tuple[ast.expr, ...]) -> bool:
    return sorted(map(ast.unparse, some)) == sorted(map(ast.unparse, others))


def _bounds(node: ast.If) -> bool:
    """`if a > b: a = b`, in any order: of equal numbers one takes the place of the other."""
    if node.orelse or len(node.body) != 1 or not isinstance(node.test, ast.Compare):
        return False
    one = node.body[0]
    if not isinstance(one, ast.Assign) or len(one.targets) != 1:
        return False
    return bool(_sides(node.test)) and _same(_sides(node.test), (one.targets[0], one.value))


def _number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def _closed(between: str) -> str:
    """Brackets closed before an operator stay."""
    return ")" * (between.count(")"))




def _shown(finder: _Finder, start: int, end: int, new: str) -> tuple[int, str, str]:
    """Number of the last line, the text of the lines and the faulty one, blanks joined."""
    first = finder.text.count("\n", 0, start)
    last = finder.text.count("\n", 0, end)
    begin, stop = finder.begins[first], finder.begins[last + 1]
    was = finder.text[begin:stop]
    now = finder.text[begin:start] + new + finder.text[end:stop]
    return last + 1, " ".join(was.split()), " ".join(now.split())


def faults_of(file: str, text: str) -> list[Fault]:
    """All faults of a file whose name is to be `file`. A few do not compile, see `compiles`."""
    finder = _Finder(text)
    finder.body(ast.parse(text).body)
    found: dict[tuple[int, int, str], Fault] = {}
    equal: Counter[tuple[str, str, str]] = Counter()
    for function, kind, first, start, end, new in sorted(finder.found, key=lambda f: f[3:]):
        if (start, end, new) not in found:
            last, was, now = _shown(finder, start, end, new)
            nth, lines = equal[function, was, now], (first, last)
            found[start, end, new] = Fault(file, function, kind, lines, start, end, new, was, now, nth)
            equal[function, was, now] += 1
    return list(found.values())


def compiles(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
