"""Arrows between modules, the order of packages, the one list of element types, the length of functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from kvlab import element_types
from kvlab.bench import choices
from kvlab.parts import closure
from kvlab.parts.table import PARTS
from kvlab.quality import defaults, kinds
from lint_structure import main
from mpy_kv import codecs, kernels
from mpy_kv.errors import BadArgument
from mpy_kv.eviction import POLICIES as BLOCK_POLICIES
from mpy_kv.eviction.tokens import POLICIES as TOKEN_POLICIES
from mpy_kv.geometry import CODECS, Geometry
from mpy_kv.int4_blocks.geometry import MOST_GROUP
from structure import check, graph, layers, lengths, registries
from structure.graph import Arrow, Module

# --- arrows


def arrows(text: str, name: str = "mpy_kv.one", package: bool = False) -> set[str]:
    """What a module of that text imports; an unknown import as its text in brackets."""
    seen = Module(name, package, text, [*graph.modules(), name])
    return {each.target for each in seen.arrows} | {f"<{each.text}>" for each in seen.unknown}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("import mpy_kv.cache, sys", {"mpy_kv.cache"}),
        ("from .cache import KVCache", {"mpy_kv.cache"}),
        ("from . import cache, errors", {"mpy_kv.cache", "mpy_kv.errors"}),
        ("from .kernels import tables", {"mpy_kv.kernels.tables"}),
        ("def f():\n from .per_layer import MixedCache", {"mpy_kv.per_layer"}),
        ("x = load_module('mpy_kv.inspect').check", {"mpy_kv.inspect"}),
        ("__import__('mpy_kv.pools.batch', None, None, ('x',))", {"mpy_kv.pools.batch"}),
        ("file = f()\nfull = 'mpy_kv.eviction.' + file\n__import__(full)", {"mpy_kv.eviction.*"}),
        ("_P = 'mpy_kv.codecs'\nimportlib.import_module(f'{_P}.{x}')", {"mpy_kv.codecs.*"}),
        ("port.install_all('mpy_kv', here, ('cache', 'per_layer'))", {"mpy_kv.cache", "mpy_kv.per_layer"}),
        ("load_module(name)", {"<name>"}),
        ("load_module(self.package + '.plain')", {"<self.package + '.plain'>"}),
        ("load_module('mpy_kv.' + kind + '.cache')", {"<'mpy_kv.' + kind + '.cache'>"}),
    ],
)
def test_arrows_of_a_module(text: str, want: set[str]) -> None:
    chosen = {
        "mpy_kv.codecs.*": {f"mpy_kv.codecs.{name.replace('-', '_')}" for name in CODECS},
        "mpy_kv.eviction.*": {
            f"mpy_kv.eviction.{name}" for name in ("fifo", "lru", "lfu", "hybrid", "sieve", "s3fifo")
        },
    }
    assert arrows(text) == {each for one in want for each in chosen.get(one, {one})}


def test_a_family_has_its_files_and_its_members() -> None:
    found = {each.target for each in graph.arrows()[0] if each.source == "mpy_kv.kernels"}
    of_types = {_kernels(name) for name in CODECS if name != "int8"}
    own = {f"mpy_kv.kernels.{name}" for name in graph.FAMILY if name != "selfcheck"}  # above the caches
    assert found == {*of_types, *own, "mpy_kv.kernels.kernel_registry"}
    assert arrows("F = Family(__name__, __file__[:3], ())", "mpy_kv.kernels.float32", True) == {
        "mpy_kv.kernels.float32.plain"
    }


def test_a_member_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(graph.MEMBERS, "mpy_kv.codecs", ["int8", "int2"])
    found = arrows("__import__(__name__ + '.' + name)", "mpy_kv.codecs", True)
    assert found == {"mpy_kv.codecs.int8", "<mpy_kv.codecs.int2: no such module>"}


def test_the_graph_has_what_a_board_is_given() -> None:
    """Every import that tools/kvlab/parts follows is an arrow."""
    found = {(each.source, each.target) for each in graph.arrows()[0]}
    for package in ("mpy_kv", "stories"):
        for name in closure.all_of(package):
            for edge in closure.edges(name):
                inside = name.startswith(f"{edge.name}.") or f"{edge.name}." in name or edge.name == name
                if not inside and (name, edge.name) not in found:
                    # `from ..codecs import int8` is to the module alone.
                    below = [to for source, to in found if source == name and to.startswith(f"{edge.name}.")]
                    assert below, (name, edge)


# --- order


@pytest.mark.parametrize("rule", [check, registries, lengths], ids=["check", "registries", "lengths"])
def test_nothing_is_wrong(rule: ModuleType) -> None:
    assert rule.findings() == []


def test_an_arrow_up_is_refused_until_it_is_listed() -> None:
    up = Arrow("mpy_kv.kernels.plain", "mpy_kv.sequence", 7)
    down = Arrow("mpy_kv.sequence", "mpy_kv.kernels.plain", 8)
    pair = (up.source, up.target)
    assert check.upward([up, down], {}) == [
        "mpy_kv.kernels.plain:7: reaches up from kernels to mpy_kv.sequence, of sequence"
    ]
    assert check.upward([up, down], {pair: "why"}) == []
    (said,) = check.upward([down], {pair: "why"})
    assert said.endswith("NOT_YET has mpy_kv.kernels.plain -> mpy_kv.sequence, which is gone: take it out")


def test_emulators_and_devices_know_nothing_of_kvlab() -> None:
    below = ("mpy_kv", "stories", "bench", "commandline", "unix_port", "firmware", "qemu_port")
    for arrow in graph.arrows()[0]:
        if arrow.source.partition(".")[0] in below:
            assert arrow.target.partition(".")[0] != "kvlab", arrow
    assert check.upward([Arrow("qemu_port.board", "kvlab.paths", 3)], {}) == [
        "qemu_port.board:3: reaches up from emulated boards to kvlab.paths, of kvlab"
    ]


def test_a_circle_is_refused_but_for_what_is_transient() -> None:
    one, two = "mpy_kv.paged.request", "mpy_kv.paged.admit_request"
    to, fro = Arrow(one, two, 1), Arrow(two, one, 2)
    assert check.circles([to, fro]) == [[two, one]]
    assert check.circles([Arrow(one, two, 1, late=True), fro]) == []
    foreign = "mpy_kv.token_eviction.cache"  # of another package of that layer
    assert check.circles([Arrow(one, foreign, 1, late=True), Arrow(foreign, one, 2)]) == [[one, foreign]]
    (said,) = check.circular([], [("a.b", "a.c")])
    assert said.endswith("CIRCLES_YET has a.b, a.c, which is gone: take it out")
    assert check.circular([["a.b", "a.c"]], [("a.b", "a.c")]) == []


def test_a_module_of_no_layer_is_told() -> None:
    new = [f"{package}.new" for package in ("mpy_kv", "mpy_kv.paged", "kvlab", "unix_port")]
    assert check.homeless(new) == [
        "mpy_kv.new: is of no layer: structure/layers.py",
        "kvlab.new: is of no layer: structure/layers.py",
    ]
    named = [each for _, members in layers.LAYERS for each in members]
    assert len(named) == len(set(named))
    assert set(named) <= set(graph.modules()) | {"bench"}


def test_the_command_line() -> None:
    run = CliRunner().invoke
    assert run(main, ["--of", "mpy_kv.factory"]).output == (
        "mpy_kv.cache (cache)\nmpy_kv.geometry (geometry)\n"
        "mpy_kv.int4_blocks (other caches)\nmpy_kv.per_layer (other caches)\n"
    )
    assert run(main, ["--layers"]).output.startswith("base: mpy_kv.errors, ")
    assert "no such module" in run(main, ["--of", "mpy_kv.gone"]).output


# --- element types


def _kernels(name: str) -> str:
    return "mpy_kv.kernels" if name == "int8" else f"mpy_kv.kernels.{name.replace('-', '_')}"


@pytest.mark.parametrize("name", CODECS)
def test_a_row_is_all_that_a_type_needs_beside_its_files(name: str) -> None:
    """What is found by its name: kernels, the codec, its part; tables of tools have it."""
    assert kernels.of(name).package == _kernels(name)
    assert codecs.named(name).__name__ == f"mpy_kv.codecs.{name.replace('-', '_')}"
    assert {_kernels(name), codecs.named(name).__name__} <= set(PARTS[name])
    assert name in kinds.CODECS
    assert (name in choices.CODECS) == (name != "float32") == (name in element_types.IN_IMAGES)


def test_quality_has_every_type_and_what_it_is_like() -> None:
    assert tuple(kinds.CODECS) == (element_types.EXACT, *defaults.CODECS)
    assert set(CODECS) == {*kinds.CODECS} - {"int4-float16", "int4-naive"}


def test_bytes_of_images_are_what_they_were() -> None:
    assert element_types.IN_IMAGES == ("int8", "int8-int4", "float16", "sparse", "int4")
    assert [CODECS[name][3] for name in element_types.IN_IMAGES] == list(range(5))
    assert CODECS[element_types.SEALED][2] == MOST_GROUP


def test_groups_that_a_type_cannot_have() -> None:
    with pytest.raises(BadArgument, match="^group 64: sparse takes at most 32, a bitmap of one word$"):
        Geometry(1, 4, 4, 64, codec="sparse", group=64)
    with pytest.raises(BadArgument, match="^group 8: float16 has no scales$"):
        Geometry(1, 4, 4, 64, codec="float16", group=8)
    with pytest.raises(BadArgument, match="known: float16, float32, int4, int8, int8-int4, sparse$"):
        Geometry(1, 4, 4, 64, codec="int7")
    assert Geometry(1, 4, 4, 64, group=256).group == 256


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("A = ('int8', 'sparse')", [("A", ["int8", "sparse"])]),
        ("A: tuple = ['int4', 'int4', 'other', 'float16']", [("A", ["int4", "float16"])]),
        ("f({'int8': 1, 'float32': 2, **x})", [("", ["int8", "float32"])]),
        ("if x in {'int4', 'float32'}: pass", [("", ["int4", "float32"])]),
        ("A = (('int8', 1), ('int4', 2))\nB = ['int8']\nC = {1: 'int8', 2: 'int4'}", []),
    ],
)
def test_second_lists_are_found(text: str, want: list[tuple[str, list[str]]]) -> None:
    assert [(called, names) for _, called, names in registries.lists(text)] == want


def test_where_a_second_list_stands(tmp_path: Path) -> None:
    for folder in registries.FOLDERS:
        (tmp_path / folder).mkdir()
    (tmp_path / "tools" / "a.py").write_text("\nA = ['int8', 'int4']\n")
    said = "tools/a.py:2: lists int8, int4: take them from mpy_kv/geometry.py"
    assert registries.findings(tmp_path, []) == [said]
    assert registries.findings(tmp_path, [("tools/a.py", "A")]) == []
    (found, gone) = registries.findings(tmp_path, [("tools/a.py", "B")])
    assert (found, gone.endswith("OTHERS has B of tools/a.py, which is gone: take it out")) == (said, True)


# --- lengths


def test_long_functions_are_found() -> None:
    body = "\n".join(["    x = 1"] * lengths.MOST_LINES)
    fits = f"@option\ndef f(\n    a,\n    b,\n):\n{body}\n"
    assert list(lengths.long(fits)) == []
    ast.parse(fits)
    assert list(lengths.long(f"{fits}    return x\n")) == [(2, "f", 61)]


# --- the walk through the house


def walk() -> str:
    text = (graph.ROOT / "docs" / "DESIGN.md").read_text(encoding="utf-8")
    found = re.search(r"^## A walk through the house\n(.*?)^## ", text, re.S | re.M)
    assert found is not None
    return found[1]


def test_every_file_of_the_walk_is_there_and_every_module_is_on_it() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", walk()))
    assert [name for name in named if not (graph.ROOT / name).is_file()] == []
    there = {path.relative_to(graph.ROOT).as_posix() for path in (graph.ROOT / "mpy_kv").rglob("*.py")}
    assert sorted(there - named) == []


def test_every_capability_is_on_the_walk_by_its_name() -> None:
    rows = [line.strip("| ").split(" | ") for line in walk().splitlines() if line.startswith("| ")]
    told = {word for what, _ in rows for word in re.findall(r"[\w-]+", what)}
    assert {*CODECS, *BLOCK_POLICIES, *TOKEN_POLICIES} - told == set()
    pools = {part.removeprefix("pool-") for part in PARTS if part.startswith("pool-")}
    assert pools - {"slab-region"} <= told
    for thing in ("a key vector", "a query", "a block", "an option"):
        assert f"\n**{thing.capitalize()}.** " in walk()
