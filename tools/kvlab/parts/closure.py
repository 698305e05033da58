"""The files that a program needs, found by reading them: no module is imported.

Followed are `import` and `from`, `load_module("...")` and `__import__("...")`, kernels that a family finds in
the folder of its package, and sources that are named by their file. An import that runs when its module is
loaded is always followed; one inside a function is not, where it leads to a root (table.py) of a part that
was not asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kvlab.element_types import USUAL
from kvlab.parts.table import BASE, HOST_ONLY, KERNEL_SETS, PARTS

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "mpy_kv"
# Folder of the packages that may be on a board, by name.
FOLDERS = {PACKAGE: ROOT, "stories": ROOT / "boards" / "apps"}
FAMILY = ("plain", "selfcheck", *KERNEL_SETS)  # modules of a package that has kernels


@dataclass(frozen=True)
class Edge:
    """A module that another one imports. `later`: inside a function, not when that other one is loaded;
    `kernels`: one of a family's files."""

    name: str
    later: bool
    kernels: bool = False


def find(name: str) -> Path | None:
    """The file of a device module; None for what is none of ours, or no module."""
    top, _, rest = name.partition(".")
    if top not in FOLDERS or name in HOST_ONLY:
        return None
    base = FOLDERS[top] / top / rest.replace(".", "/") if rest else FOLDERS[top] / top
    for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
        if path.is_file():
            return path
    return None


def all_of(package: str) -> list[str]:
    """Every module of a package that a board can have."""
    folder = FOLDERS[package]
    names = [
        ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((folder / package).rglob("*.py"))
    ]
    return [name for name in names if name not in HOST_ONLY]


def file_of(name: str) -> str:
    """Where a board has a module, relative to its folder of modules. KeyError if there is none."""
    path = find(name)
    if path is None:
        raise KeyError(name)
    return path.relative_to(FOLDERS[name.partition(".")[0]]).as_posix()


@cache
def edges(name: str) -> tuple[Edge, ...]:
    """What a module imports, of the packages that may be on a board."""
    path = find(name)
    assert path is not None
    seen = _Imports(name, path.name == "__init__.py")
    seen.visit(ast.parse(path.read_text(encoding="utf-8"), str(path)))
    return tuple(dict.fromkeys(seen.found))


def closure(roots: Iterable[str], asked: Iterable[str] = (), sets: Iterable[str] = KERNEL_SETS) -> list[str]:
    """The modules that `roots` need, themselves among them, sorted. asked: parts whose roots may be imported
    late; sets: of the kernels, beside the plain ones."""
    allowed = {root for part in (*BASE, *asked) for root in PARTS[part]}
    closed = {root for part in PARTS for root in PARTS[part]} - allowed
    unwanted = set(KERNEL_SETS) - set(sets)
    loaded: set[str] = set()  # at least as the package of another one
    named: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in named or find(name) is None:
            continue
        named.add(name)
        parents = [name[:at] for at, sign in enumerate(name) if sign == "."]
        for each in (*parents, name):
            for edge in edges(each):
                if edge.kernels and each != name:
                    continue  # nobody takes kernels of a package that is only on the way to another
                if edge.later and edge.name in closed:
                    continue
                if edge.kernels and edge.name.rpartition(".")[2] in unwanted:
                    continue
                todo.append(edge.name)
            loaded.add(each)
    return sorted(name for name in loaded if name.rpartition(".")[2] not in unwanted)


def of_parts(parts: Iterable[str], app: str | None = None, sets: Iterable[str] = KERNEL_SETS) -> list[str]:
    """The modules of the package that parts need, and of the app, if any."""
    parts = tuple(dict.fromkeys((*BASE, *parts)))
    packages = (PACKAGE,) if app is None else (PACKAGE, app)
    roots = [root for part in parts for root in PARTS[part] if root.partition(".")[0] in packages]
    return closure([*roots, *packages], parts, sets)


def owners(names: Iterable[str], parts: Iterable[str]) -> dict[str, str]:
    """Of each module what it is counted with: a kernel set, an app, or the part that it comes with; of those
    that it comes with the one whose root it lies below, else the first."""
    base = set(of_parts([]))
    comes = {part: set(of_parts([part])) for part in parts if part not in BASE}
    return {name: _owner(name, base, comes) for name in names}


def _owner(name: str, base: set[str], comes: dict[str, set[str]]) -> str:
    top, _, _ = name.partition(".")
    last = name.rpartition(".")[2]
    if top != PACKAGE:
        return top
    if last in KERNEL_SETS:
        return last
    if name in base:
        return USUAL if _below(name, USUAL) else "core"
    nearest = max(comes, key=lambda part: _below(name, part), default="core")
    if nearest != "core" and _below(name, nearest):
        return nearest
    return next((part for part, modules in comes.items() if name in modules), "core")


def _below(name: str, part: str) -> int:
    """Letters of the longest root of a part that a module lies below, or is; 0 for none."""
    return max([len(root) for root in PARTS[part] if f"{name}.".startswith(f"{root}.")], default=0)


class _Imports(ast.NodeVisitor):
    """Collects the edges of one module."""

    def __init__(self, name: str, is_package: bool) -> None:
        self.found: list[Edge] = []
        self._name = name
        self._package = name if is_package else name.rpartition(".")[0]
        self._depth = 0  # of functions

    def _add(self, name: str, *, later: bool = False, kernels: bool = False) -> None:
        if find(name) is not None:
            self.found.append(Edge(name, later or self._depth > 0, kernels))

    def _function(self, node: ast.AST) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._package.split(".")
        base = base[: len(base) + 1 - node.level] if node.level else []
        whole = ".".join([*base, *([node.module] if node.module else [])])
        self._add(whole)
        for alias in node.names:
            self._add(f"{whole}.{alias.name}")

    def visit_Call(self, node: ast.Call) -> None:
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        first = node.args[0] if node.args else None
        if called in ("load_module", "__import__") and isinstance(first, ast.Constant):
            self._add(str(first.value))
        if isinstance(first, ast.Name) and first.id == "__name__" and _says_file(node.args[1:]):
            for each in FAMILY:
                self._add(f"{self._name}.{each}", later=True, kernels=True)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        end = node.right.value if isinstance(node.right, ast.Constant) else None
        if isinstance(end, str) and end.endswith(".py") and _says_file([node.left]):
            self._add(f"{self._package}.{end.removesuffix('.py')}", kernels=True)
        self.generic_visit(node)


def _says_file(nodes: Iterable[ast.AST]) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == "__file__" for node in nodes for each in ast.walk(node)
    )
