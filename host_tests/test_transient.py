"""Modules that are transient are loaded, let go of and loaded again, and a cache works on without them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from kvlab.parts import closure
from kvlab.paths import BOARDS, ROOT

FOLDERS = {"mpy_kv": ROOT / "mpy_kv", "stories": BOARDS / "apps" / "stories"}


def module(file: Path) -> str:
    """The full name of a device module."""
    folder = next(folder for folder in FOLDERS.values() if file.is_relative_to(folder))
    return ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")


FILES = {module(file): file for folder in FOLDERS.values() for file in sorted(folder.rglob("*.py"))}
NAMED = re.compile(r'\bload_module\("([\w.]+)"\)')
TRANSIENT = {name for file in FILES.values() for name in NAMED.findall(file.read_text())}
# The kernels' twin and the check, whose names Family puts together or is told.
FAMILIES = ["mpy_kv.kernels", "mpy_kv.kernels.int8_int4", "mpy_kv.kernels.sparse", "stories.kernels"]
FAMILIES += ["mpy_kv.kernels.int4"]
FAMILIES += ["mpy_kv.kernels.float16", "mpy_kv.kernels.float32", "mpy_kv.eviction.tokens"]
TRANSIENT |= {f"{package}.plain" for package in FAMILIES}
TRANSIENT |= {f"{package}.selfcheck" for package in ("mpy_kv", "mpy_kv.eviction.tokens", "stories.kernels")}


def imported(name: str) -> set[str]:
    """Full names that the module `name` imports at its own import; of a module, or of something in one."""
    found = set()
    package = name.split(".") if FILES[name].stem == "__init__" else name.split(".")[:-1]
    for node in ast.parse(FILES[name].read_text()).body:
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            whole = ".".join([*base, *([node.module] if node.module else [])])
            found |= {whole, *(f"{whole}.{alias.name}" for alias in node.names)}
    return found


def test_the_imports_are_found() -> None:
    assert {"mpy_kv.setup", "mpy_kv.raise_errors", "stories.checks"} <= TRANSIENT <= set(FILES)
    assert {"mpy_kv.kernels.params", "mpy_kv.kernels.tables"} <= imported("mpy_kv.kernels.plain")
    assert {"mpy_kv.port", "mpy_kv.cache"} <= imported("mpy_kv")


def classes(name: str) -> set[str]:
    nodes = ast.walk(ast.parse(FILES[name].read_text()))
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)}


# Where classes are transient as well: their objects are used and never asked of which class they are.
PASSING = {name for name in TRANSIENT if name.startswith("mpy_kv.snapshot.")} | {
    *("stories.saved", "mpy_kv.flash_log.opening", "mpy_kv.resume.restoring")
}


@pytest.mark.parametrize("name", sorted(TRANSIENT))
def test_only_modules_of_functions_are_transient(name: str) -> None:
    """Loaded anew, a class would be another class, and a variable forget its value."""
    of = (ast.Global,) if name in PASSING else (ast.ClassDef, ast.Global)
    assert not [node for node in ast.walk(ast.parse(FILES[name].read_text())) if isinstance(node, of)]


def test_nobody_asks_for_a_class_that_is_transient() -> None:
    passing = {each for name in PASSING for each in classes(name)}
    assert {"Writer", "Header", "Positions", "Ids"} <= passing
    for file in FILES.values():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
                words = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                words |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
                assert not words & passing, (file, node.lineno)


@pytest.mark.parametrize("name", sorted(set(FILES) - TRANSIENT))
def test_what_stays_holds_nothing_that_is_transient(name: str) -> None:
    inside = any(name.startswith(each + ".") for each in TRANSIENT)  # goes with its package
    assert inside or not imported(name) & TRANSIENT


FREED = """
import gc, sys
from mpy_kv import transient
def live():
    gc.collect()
    return gc.mem_alloc()
taken = 0
def load(name):
    global taken
    before = live()
    module = transient.load_module(name)
    if hasattr(module, "named"):
        module.named("int8")  # a module below it
    taken = live() - before
    print(module is transient.load_module(name) is sys.modules[name], end=" ")
    module = None
    transient.unload_all()
    return live() - before
for name in ("mpy_kv.raise_errors", "mpy_kv.codecs"):
    load(name)  # interned names and grown tables stay for ever
    left = load(name)
    print(taken > 500, left, [known for known in sys.modules if name in known])
print(hasattr(sys.modules["mpy_kv"], "raise_errors"))
"""


def test_what_is_taken_back_is_garbage(upy) -> None:
    line = "True True True 0 []\n"
    assert upy.run(FREED) == line + line + "False\n"


LITTERING = """
import gc
from mpy_kv.selfcheck import littering
def check(wrong):
    return gc.threshold() // wrong
for usual in (2048, 65536, -1):
    gc.threshold(usual)
    found = [littering(check, 1), gc.threshold()]
    try:
        littering(check, 0)
    except ZeroDivisionError:
        print(found, gc.threshold())
"""


def test_a_check_that_litters_leaves_the_threshold_as_it_was(upy) -> None:
    lines = upy.run(LITTERING).splitlines()
    assert lines == ["[32768, 2048] 2048", "[65536, 65536] 65536", "[-1, -1] -1"]


WORKS_ON = """
from array import array
from mpy_kv import Geometry, KVCache, errors, kernels
from mpy_kv.transient import unload_all
def make(window=4):
    return KVCache(Geometry(1, 1, 1, 4, window=window, sinks=0), kv_shift=9)
def told(cache):
    for token in range(6):
        cache.append(0, k, q)
        cache.attend(0, q, out)
        cache.commit()
        kernels.release()
    for wrong in (lambda: cache.append(1, k, q), cache.commit, lambda: cache.rollback(7), lambda: make("4")):
        try:
            wrong()
        except (errors.BadArgument, errors.StepError) as error:
            yield str(error)
        unload_all()
    yield cache.check(), [round(512 * x) for x in cache.read(0, "k", 5)], cache.stats()["evicted_tokens"]
    unload_all()
k, q, out = array("h", [1, 2, 3, 4]), array("h", [5, 6, 7, 8]), array("h", [0] * 4)
first, second = make(), make()
lines = list(told(first))
print(lines == list(told(second)))
for line in lines:
    print(line)
"""


def test_a_cache_works_on_without_them(upy) -> None:
    assert upy.run(WORKS_ON).splitlines() == [
        "True",
        "layer must be 0..0, got 1",
        "commit with 0 of 1 layers stored; layer 0 is missing",
        "rollback of 7 tokens: must be 0..6, the length",
        "window must be a whole number, got '4'",
        "(0, [1, 2, 3, 4], 2)",
    ]


def test_the_app_has_no_circles() -> None:
    """Imports in functions and what is transient count: each module can be read after those that it uses."""
    names = [name for name in FILES if name.startswith("stories.")]
    uses = {name: {edge.name for edge in closure.edges(name)} for name in names}
    uses = {name: {other for other in others if other in uses} for name, others in uses.items()}
    while leaves := {name for name, others in uses.items() if not others}:
        uses = {name: others - leaves for name, others in uses.items() if name not in leaves}
    assert not uses
