"""Locals of native and viper functions that are read before anything is assigned to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def check_binding(node: ast.FunctionDef) -> Iterator[tuple[str, ast.AST, str]]:
    """A read is refused when no assignment comes before it in the order of the text: then even the first
    pass through it finds nothing. Branches are taken to be taken."""
    events = [event for statement in node.body for event in _events(statement)]
    outer = {
        name for part in ast.walk(node) if isinstance(part, ast.Global | ast.Nonlocal) for name in part.names
    }
    local = {name for name, _, stored in events if stored} - outer
    arguments = node.args
    bound = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    bound |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a}
    for name, part, stored in events:
        if stored:
            bound.add(name)
        elif name in local and name not in bound:
            yield "unbound", part, name


def _events(node: ast.AST) -> Iterator[tuple[str, ast.AST, bool]]:
    """(name, node, whether it is assigned) in the order in which they happen."""
    match node:
        case ast.Name(id=name, ctx=ctx):
            yield name, node, isinstance(ctx, ast.Store)
            return
        case ast.AugAssign(target=ast.Name(id=name) as target, value=value):
            yield name, target, False
            yield from _events(value)
            yield name, target, True
            return
        case ast.ExceptHandler(name=str(name)):
            yield name, node, True
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            for alias in aliases:
                yield (alias.asname or alias.name).split(".")[0], node, True
    if isinstance(node, _SCOPES):
        if not isinstance(node, ast.Lambda):
            yield node.name, node, True
        return
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For):  # their targets come last
        first = node.iter if isinstance(node, ast.For) else node.value
        if first is not None:
            parts = [first, *[part for part in parts if part is not first]]
    elif isinstance(node, _COMPREHENSIONS):  # their variables live in a function of their own
        inner = {name for part in node.generators for name, _, stored in _events(part.target) if stored}
        for event in [event for part in parts for event in _events(part)]:
            if event[0] not in inner:
                yield event
        return
    for part in parts:
        yield from _events(part)
