"""Compiles device functions with numba, once: the machine code is kept in the user's cache.

numba is imported when the first function is wanted: it takes a second, and `--help` needs none of it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, cast

from commandline.errors import BadInput
from kvlab import paths
from kvlab.engine import numba_private

PLACE_ENV = "XDG_CACHE_HOME"

# What a compiled function may be made of. Its code calls other compiled functions, which numba does not look
# at when it decides whether a stored one is still good: so all of them name the folder it lies in.
_SOURCES = (
    *(paths.ROOT / "mpy_kv" / name for name in ("pools", "paged", "eviction")),
    *(Path(__file__).parents[1] / name for name in ("engine", "replay")),
)

# Of that many states of the sources, beside the present one, machine code is kept.
_KEPT = 3

Function = Callable[..., Any]


class EngineError(BadInput):
    """Nothing can be compiled here. One line, with the remedy."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/kvlab/numba`, else `~/.cache/kvlab/numba`. EngineError without a home."""
    base = os.environ.get(PLACE_ENV)
    try:
        return (Path(base) if base else Path.home() / ".cache") / "kvlab" / "numba"
    except RuntimeError as error:
        raise EngineError(f"no home folder for the cache: name one in {PLACE_ENV}") from error


@cache
def numba() -> ModuleType:
    """The compiler, with its cache in place. EngineError where it cannot be used."""
    try:
        found = importlib.import_module("numba")
    except Exception as error:  # a broken installation of a big library fails in many ways
        raise EngineError(
            f"numba, which compiles pools for the host, cannot be imported ({type(error).__name__}: {error}):"
            " install it with `.venv/bin/pip install --force-reinstall numba`"
        ) from error
    try:
        numba_private.check(found.__version__)
    except numba_private.Unknown as error:
        raise EngineError(str(error)) from None
    folder = cache_folder()
    place = folder / _digest(found.__version__)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EngineError(
            f"the cache {folder}: {error.strerror or error}; {PLACE_ENV} names another place"
        ) from error
    if not os.access(place, os.W_OK | os.X_OK):
        raise EngineError(f"the cache {folder}: not writable; {PLACE_ENV} names another place")
    os.utime(place)
    _drop_old(folder, place)
    numba_private.keep_code_in(place)
    return found


def compiled(function: Function) -> Function:
    """`function` compiled at its first call, or found in the cache. EngineError from `numba()`."""
    return _named(numba().njit(function, cache=True), function)


def adapter(function: Function) -> Function:
    """A compiled function that only hands arrays on to another. It does not count their users, as numba else
    does at each call: that takes longer than alloc and free."""
    return _named(numba_private.adapter(numba(), function), function)


def _named(done: Any, function: Function) -> Function:
    """`done` with a name for life. numba finds a stored closure by the names of the compiled functions in it,
    and else gives each a new one in each process, so that none would ever be found."""
    inside = [cell.cell_contents for cell in function.__closure__ or ()]
    names = [numba_private.name_of(each) or repr(each) for each in inside]
    line = function.__code__.co_firstlineno
    numba_private.name(done, f"{function.__module__}.{function.__qualname__}:{line}({', '.join(names)})")
    return cast("Function", done)


def native_functions(name: str) -> dict[str, Function]:
    """The transitions of module `name`: `@micropython.native` functions that call and raise nothing."""
    module = importlib.import_module(name)
    tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
    return {
        node.name: getattr(module, node.name)
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and _is_transition(node)
    }


@cache
def transitions(name: str) -> dict[str, Function]:
    """The native functions of module `name`, compiled."""
    return {key: compiled(function) for key, function in native_functions(name).items()}


@contextmanager
def swapped(names: Iterable[str]) -> Iterator[None]:
    """Inside, the compiled transitions of the modules `names` stand wherever the plain ones do.

    A pool that runs on them has been `widened`, see state.py.
    """
    by_plain: dict[Function, Function] = {}
    for name in names:
        by_plain.update((plain, transitions(name)[key]) for key, plain in native_functions(name).items())
    changed: list[tuple[ModuleType, str, Function]] = []
    for module in [m for key, m in sys.modules.items() if key.startswith("mpy_kv.")]:
        for key, value in list(vars(module).items()):
            if isinstance(value, FunctionType) and value in by_plain:
                changed.append((module, key, value))
    try:
        for module, key, plain in changed:
            setattr(module, key, by_plain[plain])
        yield
    finally:
        for module, key, plain in changed:
            setattr(module, key, plain)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Around the first call of compiled code: what numba refuses is an EngineError that names `what`."""
    errors = numba_private.errors(numba())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", errors.NumbaWarning)
            yield
    except OSError as error:
        raise EngineError(
            f"the cache {cache_folder()}: {error.strerror or error}; {PLACE_ENV} names another place"
        ) from error
    except errors.NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = " ".join(lines[:3])
        raise EngineError(f"numba {numba().__version__} does not compile {what}: {why}") from error


def _is_transition(function: ast.FunctionDef) -> bool:
    if "micropython.native" not in map(ast.unparse, function.decorator_list):
        return False
    nodes = list(ast.walk(function))
    called = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    return called <= {"range", "len"} and not any(isinstance(node, (ast.Try, ast.Raise)) for node in nodes)


def _digest(version: str) -> str:
    """Names the sources as they are now, and the compiler."""
    total = hashlib.sha256(f"{version} {sys.version}".encode())
    for folder in _SOURCES:
        for path in sorted(folder.rglob("*.py")):
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def _drop_old(folder: Path, present: Path) -> None:
    """Each state of the sources leaves a folder behind: the oldest go."""
    with suppress(OSError):
        others = [path for path in folder.iterdir() if path != present]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[_KEPT:]:
            shutil.rmtree(path, ignore_errors=True)
