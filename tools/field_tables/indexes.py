"""Numbers, and names that are none of its fields, where an array of a table is indexed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from field_tables import blocks
from field_tables.table import Table

_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
_POINTERS = ("ptr8", "ptr16", "ptr32")
_WORD = 4
_WORD_BITS = 2


@dataclass(frozen=True)
class Fault:
    """What stands in a line and may not."""

    line: int
    says: str


@dataclass(frozen=True)
class _Fields:
    """What may index an array: the names of these tables' fields."""

    tables: tuple[Table, ...]

    def __or__(self, other: _Fields) -> _Fields:
        return _Fields((*self.tables, *other.tables))

    def has(self, name: str) -> bool:
        bare = name.removeprefix("_")
        return any(bare == field for table in self.tables for field, _, _ in table.indexes())

    def __str__(self) -> str:
        return " or ".join(table.name for table in self.tables)


def faults(name: str, text: str, tables: Mapping[str, Table]) -> list[Fault]:
    """Of the file `name`, from the root of the project, that has this text.

    An array is what a table calls so in that file (`arrays`), and a local name for one: `m = blocks.meta`,
    `a = ptr32(self._a)`. What computes an index elsewhere is not looked at.
    """
    known = _arrays(name.removeprefix("mpy_kv/"), tables)
    if not known:
        return []
    tree = ast.parse(text)
    names = frozenset(blocks.bound(text))
    found = []
    scopes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for scope in (tree, *scopes):
        here = _Scope(known, names, scope)
        found += [fault for node in _own(scope) for fault in here.faults(node)]
    return sorted(set(found), key=lambda fault: (fault.line, fault.says))


def _arrays(name: str, tables: Mapping[str, Table]) -> dict[str, _Fields]:
    found: dict[str, _Fields] = {}
    for table in tables.values():
        for glob, arrays in table.arrays.items():
            if _pattern(glob).fullmatch(name):
                for array in arrays:
                    found[array] = found.get(array, _Fields(())) | _Fields((table,))
    return found


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    """`**/` is any number of folders, `*` anything within one name."""
    parts = {"**/": "(?:.*/)?", "*": "[^/]*"}
    return re.compile("".join(parts.get(part, re.escape(part)) for part in re.split(r"(\*\*/|\*)", glob)))


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a scope without those of the functions in it."""
    for node in ast.iter_child_nodes(scope):
        yield node
        if not isinstance(node, ast.FunctionDef):
            yield from _own(node)


class _Scope:
    """A function, or what is outside of all, and the arrays that it knows."""

    def __init__(self, known: Mapping[str, _Fields], names: frozenset[str], scope: ast.AST) -> None:
        self.known = dict(known)
        self.names = names
        pairs = [pair for node in _own(scope) for pair in _assigned(node)]
        changed = True
        while changed:
            changed = False
            for target, value in pairs:
                fields = self.fields(value)
                if fields and target not in self.known:
                    self.known[target] = fields
                    changed = True

    def fields(self, node: ast.AST) -> _Fields | None:
        """Of the array that an expression is; None where it is none."""
        if isinstance(node, ast.Call) and len(node.args) == 1 and _called(node) in _POINTERS:
            return self.fields(node.args[0])
        if isinstance(node, ast.Attribute):
            return self.known.get(ast.unparse(node)) or self.known.get(f"*.{node.attr}")
        return self.known.get(node.id) if isinstance(node, ast.Name) else None

    def faults(self, node: ast.AST) -> Iterator[Fault]:
        if isinstance(node, ast.Subscript):
            fields = self.fields(node.value)
            if fields:
                yield from self._index(node.slice, fields, ast.unparse(node.value))
        elif isinstance(node, ast.BinOp):
            for term in _terms(node):
                if isinstance(term, ast.Call) and _called(term) == "int" and len(term.args) == 1:
                    fields = self.fields(term.args[0])
                    if fields:
                        yield from self._pointer(node, fields, ast.unparse(term.args[0]))

    def _index(self, index: ast.AST, fields: _Fields, array: str) -> Iterator[Fault]:
        for node in _without_subscripts(index):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                says = f"{array} is indexed by a number, {node.value}: take a field of {fields}"
                yield Fault(node.lineno, says)
            else:
                yield from self._name(node, fields, array)

    def _pointer(self, sum_: ast.BinOp, fields: _Fields, array: str) -> Iterator[Fault]:
        sizes = set()
        for node in _without_subscripts(sum_):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                sizes |= {id(x) for x in (node.left, node.right) if _is(x, _WORD)}
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.LShift):
                sizes |= {id(x) for x in (node.right,) if _is(x, _WORD_BITS)}
        for node in _without_subscripts(sum_):
            if isinstance(node, ast.Constant) and type(node.value) is int:
                if id(node) not in sizes:
                    says = f"a number, {node.value}, leads into {array}: take 4 * a field of {fields}"
                    yield Fault(node.lineno, says)
            else:
                yield from self._name(node, fields, array)

    def _name(self, node: ast.AST, fields: _Fields, array: str) -> Iterator[Fault]:
        if not isinstance(node, ast.Name | ast.Attribute):
            return
        name = node.id if isinstance(node, ast.Name) else node.attr
        if not _CONSTANT.fullmatch(name):
            return
        if not fields.has(name):
            yield Fault(node.lineno, f"{name} is no field of {fields}, by which {array} is indexed")
        elif isinstance(node, ast.Name) and name not in self.names:
            yield Fault(node.lineno, f"{name} is not made here: name its table in the mark of fields")


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """(name, value) of each that an assignment gives a name to."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts))
            else:
                pairs = [(target, node.value)]
            for one, value in pairs:
                if isinstance(one, ast.Name):
                    yield one.id, value


def _without_subscripts(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, but not within what is indexed for itself."""
    yield node
    if isinstance(node, ast.Subscript):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.Attribute) and isinstance(child, ast.Name):
            continue  # of `P.RUN` the module
        yield from _without_subscripts(child)


def _terms(node: ast.AST) -> Iterator[ast.AST]:
    """What a sum is made of."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield from _terms(node.left)
        yield from _terms(node.right)
    else:
        yield node


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is(node: ast.AST, number: int) -> bool:
    return isinstance(node, ast.Constant) and node.value == number
