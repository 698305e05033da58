"""Functions of host code that are longer than one can take in at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from structure.graph import ROOT

MOST_LINES = 60  # of a body, its docstring included; the options of a command stand above it
PLACES = ("tools", "unix_port", "qemu_port")
# A function there is one kernel, and its lines are instructions.
KERNELS = "tools/kernelgen/sources/"


def findings(root: Path = ROOT) -> list[str]:
    said = []
    for place in PLACES:
        for path in sorted((root / place).rglob("*.py")):
            file = path.relative_to(root).as_posix()
            if not file.startswith(KERNELS):
                said += [
                    f"{file}:{line}: {name}() has {lines} lines, more than {MOST_LINES}: split it into steps"
                    for line, name, lines in long(path.read_text(encoding="utf-8"))
                ]
    return said


def long(text: str) -> Iterator[tuple[int, str, int]]:
    """Line, name and length of each function that is too long."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or 0) - node.body[0].lineno + 1
            if lines > MOST_LINES:
                yield node.lineno, node.name, lines
