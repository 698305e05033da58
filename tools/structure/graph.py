"""The arrows between modules: of `import`, `load_module("...")`, `__import__(...)`, `import_module(...)`, a
family's files, and what stands in for an import where there is no compiler of native code.

Names that are put together are resolved: a part that is only known at run time stands for every member of the
registry that the place takes it from, or else for every module of that package.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mpy_kv.eviction import POLICIES
from mpy_kv.geometry import CODECS

ROOT = Path(__file__).resolve().parents[2]

# Where each package lies that takes part.
PLACES = {
    **dict.fromkeys(("mpy_kv", "unix_port", "qemu_port"), ROOT),
    **dict.fromkeys(("stories", "bench"), ROOT / "boards" / "apps"),
    **dict.fromkeys(("commandline", "firmware", "kvlab"), ROOT / "tools"),
}
FAMILY = ("plain", "selfcheck", "viper", "thumb")  # files of a package with kernels

# Packages of which a module is chosen by a name out of a registry, with what the registry makes of it.
_TYPES = [name.replace("-", "_") for name in CODECS]
MEMBERS = {
    "mpy_kv.codecs": _TYPES,
    "mpy_kv.kernels": [name for name in _TYPES if name != "int8"],  # whose kernels are the package's own
    "mpy_kv.eviction": [file for file, _ in POLICIES.values()],
}

# Imports of a name that is an argument: whoever gives it has the arrow.
GIVEN = {
    ("mpy_kv.transient", "name"): "what load_module() is called with",
    ("mpy_kv.transient", "_name"): "built-in modules",
    ("mpy_kv.port", "package + '.' + name"): "native code of the package that calls load_native()",
    ("mpy_kv.undecorated", "package + '.' + name"): "of the package that calls install_all()",
    ("mpy_kv.kernels.kernel_registry", "self.package + '.plain'"): "of the package that makes a Family",
    ("mpy_kv.kernels.trial", "_check_of(family)"): "of the package that makes a Family, or as told",
    ("mpy_kv.kernels.derived_kernels", "self.package + '.plain'"): "of the package that makes a Variant",
    ("unix_port.side.boot", "config['port']"): "a module of side/ports, which imports nothing of ours",
    ("kvlab.commands.doctor", "name"): "a library",
    ("kvlab.engine.compiled", "name"): "of whoever asks for transitions of a module",
}
_ANY = "*"
_CALLS = {"load_module", "__import__", "importlib.import_module", "install"}


@dataclass(frozen=True, order=True)
class Arrow:
    """`source` imports `target`, in that line; `late`: by load_module(), or chosen by a name at run time."""

    source: str
    target: str
    line: int
    late: bool = False


@dataclass(frozen=True, order=True)
class Unknown:
    """An import of a name that nobody can tell from the sources."""

    source: str
    line: int
    text: str


@cache
def modules() -> dict[str, Path]:
    """Every module, by its name."""
    found = {}
    for package, folder in PLACES.items():
        for path in sorted((folder / package).rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            found[name] = path
    return found


def children(package: str) -> list[str]:
    return [name for name in modules() if name.rpartition(".")[0] == package]


@cache
def arrows() -> tuple[list[Arrow], list[Unknown], set[tuple[str, str]]]:
    """All of them, what cannot be resolved, and the entries of GIVEN that were met."""
    found: list[Arrow] = []
    unknown: list[Unknown] = []
    given: set[tuple[str, str]] = set()
    for name, path in modules().items():
        seen = Module(name, path.name == "__init__.py", path.read_text(encoding="utf-8"), modules())
        found += seen.arrows
        for each in seen.unknown:
            if (name, each.text) in GIVEN:
                given.add((name, each.text))
            else:
                unknown.append(each)
    return found, unknown, given


class Module(ast.NodeVisitor):
    """Reads the arrows of one module: `known` are the names that there are."""

    def __init__(self, name: str, is_package: bool, text: str, known: Iterable[str]) -> None:
        self.arrows: list[Arrow] = []
        self.unknown: list[Unknown] = []
        self._name = name
        self._package = name if is_package else name.rpartition(".")[0]
        self._known = set(known)
        tree = ast.parse(text)
        # What a name stands for that is set only once, as _PACKAGE, or `full = "mpy_kv.eviction." + file`.
        self._set: dict[str, ast.expr | None] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target = node.targets[0]
                if isinstance(target, ast.Name):
                    self._set[target.id] = None if target.id in self._set else node.value
        self.visit(tree)

    def _add(self, node: ast.stmt | ast.expr, target: str, late: bool = False) -> bool:
        """Whether there is such a module."""
        if target in self._known and target != self._name:
            self.arrows.append(Arrow(self._name, target, node.lineno, late))
        return target in self._known

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        base = self._package.split(".")
        base = base[: len(base) + 1 - node.level] if node.level else []
        whole = ".".join([*base, *([node.module] if node.module else [])])
        for alias in node.names:
            if not self._add(node, f"{whole}.{alias.name}"):
                self._add(node, whole)

    def visit_Call(self, node: ast.Call) -> None:
        called = ast.unparse(node.func)
        first = node.args[0] if node.args else None
        if called in _CALLS and first is not None:
            self._chosen(node, first, called == "load_module")
        elif called.rpartition(".")[2] == "install_all":
            self._installed(node)
        elif isinstance(first, ast.Name) and first.id == "__name__" and _says_file(node.args[1:]):
            for each in FAMILY:
                self._add(node, f"{self._name}.{each}", late=True)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """A source that is named by its file, as `folder_of(__file__) + "viper.py"`."""
        end = node.right.value if isinstance(node.right, ast.Constant) else None
        if isinstance(end, str) and end.endswith(".py") and _says_file([node.left]):
            self._add(node, f"{self._package}.{end.removesuffix('.py')}", late=True)
        self.generic_visit(node)

    def _installed(self, node: ast.Call) -> None:
        """`install_all("package", folder, ("name", ...))`."""
        package = node.args[0]
        names = node.args[2] if len(node.args) > 2 else None
        if isinstance(names, ast.Tuple) and isinstance(package, ast.Constant) and type(package.value) is str:
            for each in names.elts:
                self._add(node, f"{package.value}.{ast.literal_eval(each)}")
        else:
            self.unknown.append(Unknown(self._name, node.lineno, ast.unparse(node)))

    def _chosen(self, node: ast.Call, said: ast.expr, transient: bool) -> None:
        parts = list(self._parts(said))
        *folder, last = "".join(parts).split(".")
        package = ".".join(folder)
        if _ANY not in parts:
            self._add(node, f"{package}.{last}" if package else last, transient)
        elif last == _ANY and _ANY not in package and package in self._known:
            members = MEMBERS.get(package)
            names = children(package) if members is None else [f"{package}.{each}" for each in members]
            for each in names:
                if not self._add(node, each, late=True):
                    self.unknown.append(Unknown(self._name, node.lineno, f"{each}: no such module"))
        else:
            self.unknown.append(Unknown(self._name, node.lineno, ast.unparse(said)))

    def _parts(self, said: ast.expr) -> Iterator[str]:
        """Pieces of a name; _ANY for what is known at run time."""
        if isinstance(said, ast.Constant) and isinstance(said.value, str):
            yield said.value
        elif isinstance(said, ast.BinOp) and isinstance(said.op, ast.Add):
            yield from self._parts(said.left)
            yield from self._parts(said.right)
        elif isinstance(said, ast.JoinedStr):
            for piece in said.values:
                yield from self._parts(piece.value if isinstance(piece, ast.FormattedValue) else piece)
        elif isinstance(said, ast.Name) and said.id == "__name__":
            yield self._name
        elif isinstance(said, ast.Name) and (value := self._set.get(said.id)) is not None:
            yield from self._parts(value)
        elif isinstance(said, ast.Attribute) and said.attr == "__name__":
            package = f"{self._package}.{ast.unparse(said.value)}"
            yield package if package in self._known else _ANY
        else:
            yield _ANY


def _says_file(nodes: Iterable[ast.AST]) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == "__file__" for node in nodes for each in ast.walk(node)
    )
