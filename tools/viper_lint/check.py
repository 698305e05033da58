"""Runs the rules over files and applies the allowances."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from viper_lint.binding import check_binding
from viper_lint.jumps import Refused, far_jumps
from viper_lint.rules import RULES
from viper_lint.source import Function, Source
from viper_lint.thumb import check_thumb
from viper_lint.viper import Hit, check_viper


@dataclass(frozen=True, order=True)
class Finding:
    """Prints as one line: file:line: rule: message (detail)."""

    path: str
    line: int
    rule: str
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.path}:{self.line}: {self.rule}: {RULES[self.rule].message}{detail}"


def lint_paths(paths: Iterable[Path], *, jumps: bool = True) -> list[Finding]:
    """Findings of the files and of all .py below the folders. OSError, SyntaxError: not to be read."""
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    # Not in the threads: CPython 3.11 may fail where two of them parse at once.
    sources = [_read(file) for file in files]
    # Threads wait for mpy-cross; the rest is quick.
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda file, source: _lint(source, file.as_posix(), jumps), files, sources)
        return list(chain.from_iterable(found))


def lint_text(text: str, path: str, *, jumps: bool = True) -> list[Finding]:
    """Findings in one file's text, in the order of its lines. jumps: measure them with mpy-cross."""
    return _lint(Source(text), path, jumps)


def _read(path: Path) -> Source:
    try:
        return Source(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        error.filename = path.as_posix()
        raise


def _lint(source: Source, path: str, jumps: bool) -> list[Finding]:
    found: list[Finding] = []
    for function in source.functions:
        mine = _refused(source, function, _hits(source, function), path)
        if jumps and not mine:
            mine = _refused(source, function, _measured(source, function), path)
        found += mine
    for allowance in source.allowances:
        idle = [name for name in allowance.names if name not in allowance.used]
        if not jumps:
            idle = [name for name in idle if name not in ("far-jump", "refused")]
        if idle or not allowance.names:
            found.append(Finding(path, allowance.line, "allowance", ", ".join(idle)))
    return sorted(set(found))


def _refused(source: Source, function: Function, hits: Iterable[Hit], path: str) -> list[Finding]:
    """Those hits that nothing allows."""
    return [
        Finding(path, getattr(node, "lineno", function.node.lineno), rule, detail)
        for rule, node, detail in hits
        if not _allowed(source, function, rule, node)
    ]


def _hits(source: Source, function: Function) -> Iterator[Hit]:
    if function.emitter == "asm_thumb":
        yield from check_thumb(function.node)
        return
    if function.emitter == "viper":
        yield from check_viper(function.node, source.constants)
    yield from check_binding(function.node)


def _measured(source: Source, function: Function) -> Iterator[Hit]:
    try:
        for detail in far_jumps(source.alone(function)):
            yield "far-jump", function.node, detail
    except Refused as refused:
        yield "refused", function.node, str(refused)


def _allowed(source: Source, function: Function, rule: str, node: ast.AST) -> bool:
    if node is function.node:
        lines = function.head
    else:
        first = getattr(node, "lineno", 0)
        lines = range(first, (getattr(node, "end_lineno", None) or first) + 1)
    allowed = False
    for allowance in source.allowances:
        if allowance.line in lines and rule in allowance.names:
            allowance.used.add(rule)
            allowed = True
    return allowed
