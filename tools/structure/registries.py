"""Element types that are listed anywhere but in mpy_kv.geometry.CODECS: what is listed twice drifts apart."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from mpy_kv.geometry import CODECS
from structure.graph import ROOT

REGISTRY = "mpy_kv/geometry.py"
FOLDERS = ("mpy_kv", "boards", "tools", "unix_port", "qemu_port")

# Other things of the same names, by file and what the list is called.
OTHERS: Mapping[tuple[str, str], str] = {
    ("tools/kvlab/plan/sizes.py", "WEIGHTS"): "how weights are stored, not what a cache holds",
    ("tools/kernelgen/files.py", "FILES"): "files that kernels are generated from",
    ("mpy_kv/selfcheck.py", "_ANSWERS"): "made of the list by tools/answers.py",
}


def findings(root: Path = ROOT, others: Collection[tuple[str, str]] = OTHERS) -> list[str]:
    """A line for each list, tuple, set or dict that spells two element types, and for needless OTHERS."""
    said, met = [], set()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            file = path.relative_to(root).as_posix()
            if file == REGISTRY:
                continue
            for line, called, names in lists(path.read_text(encoding="utf-8")):
                met.add((file, called))
                if (file, called) not in others:
                    said.append(f"{file}:{line}: lists {', '.join(names)}: take them from {REGISTRY}")
    said += [
        f"structure/registries.py: OTHERS has {called} of {file}, which is gone: take it out"
        for file, called in others
        if (file, called) not in met
    ]
    return said


def lists(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Line, the name it is given if any, and the element types of each literal that spells two of them or
    more as its own items or keys."""
    tree = ast.parse(text)
    called = {
        id(node.value): ast.unparse(target)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            names = _named(node.keys)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            names = _named(node.elts)
        else:
            continue
        if len(names) > 1:
            yield node.lineno, called.get(id(node), ""), names


def _named(items: Iterable[ast.expr | None]) -> list[str]:
    values = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    return [value for value in dict.fromkeys(values) if value in CODECS]
