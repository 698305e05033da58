"""Parts of mpy_kv: each alone does what it does in the whole package, and none has what it does not need."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
from fetched import extra
from pty_board import BLOCK_BYTES, PtyBoard
from stories_fixtures import tiny, typed
from test_deploy import ATTEND, mpremote
from test_package import package_json
from tiny_model import write_tiny

from commandline.errors import FellShort
from kvlab import boards
from kvlab.deploy import cost, files, identity, link, plan
from kvlab.deploy.deployment import Deployment, Wish
from kvlab.deploy.files import File
from kvlab.deploy.remote import Blank, Remote, Space
from kvlab.element_types import NAMES
from kvlab.engine import catalogue
from kvlab.parts import ask, closure
from kvlab.parts.table import BASE, HOST_ONLY, PARTS, REGISTRIES, SOURCES_ONLY
from kvlab.paths import BOARDS, ROOT
from mpy_kv.eviction import POLICIES
from unix_port import compiled, port

STEPS = Path(__file__).parent / "device" / "part_steps.py"
NATIVE = ("viper",)  # of the unix port; it assembles no Thumb

# .mpy files of the int8 story on a Pico, with all kernel sets: 112,255 when they were counted.
STORY_BYTES = 119_000


def modules(names: Iterable[str]) -> set[str]:
    """Those of the package alone."""
    return {name for name in names if name.startswith("mpy_kv")}


def copied(folder: Path, names: Iterable[str]) -> Path:
    """The folder with these modules in it."""
    for name in names:
        target = folder / closure.file_of(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(closure.find(name), target)
    return folder


def run(folder: Path | str, *words: object) -> str:
    """What a script prints that finds modules there alone; how it ended, where that was no good end."""
    env = {"MICROPYPATH": f"{folder}:.frozen"}
    done = port.run([str(word) for word in words], env=env, cwd=Path(folder), timeout_s=120)
    return done.stdout if done.status == 0 else f"{done.stdout}{done.stderr}status {done.status}"


# The table


def test_every_module_is_in_a_part() -> None:
    found = {name for part in PARTS for name in closure.of_parts([part])}
    assert found == set(closure.all_of("mpy_kv"))
    assert not found & set(HOST_ONLY)
    assert {file.path for file in files.modules("stories", unix_like(), False)} == {
        f"lib/{closure.file_of(name)}"
        for name in (*closure.all_of("mpy_kv"), *closure.all_of("stories"))
        if not name.endswith(".thumb")
    }


def test_every_root_is_a_module() -> None:
    for part, roots in PARTS.items():
        assert all(closure.find(root) for root in roots), part
        assert any(root.startswith("mpy_kv") for root in roots)


def test_the_names_are_those_that_programs_use() -> None:
    assert set(NAMES) <= set(PARTS)
    assert {f"evict-{name}" for name in POLICIES} == {part for part in PARTS if part.startswith("evict-")}
    pools = {part.removeprefix("pool-").replace("-", "+") for part in PARTS if part.startswith("pool-")}
    assert pools == set(catalogue.POOLS)


def test_every_registry_is_known() -> None:
    """What imports by a name that is put together at run time: no reader of sources can follow that."""
    found = set()
    for name in (*closure.all_of("mpy_kv"), *closure.all_of("stories")):
        for node in ast.walk(ast.parse(closure.find(name).read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("load_module", "__import__") and not isinstance(node.args[0], ast.Constant):
                found.add(name)
    # These load what they are told to: what a family does is followed, the others are called by name.
    general = {
        "mpy_kv.transient",
        "mpy_kv.port",
        "mpy_kv.kernels.kernel_registry",
        "mpy_kv.kernels.derived_kernels",
        "mpy_kv.kernels.trial",
    }
    assert found == general | set(REGISTRIES)


# What follows from it


def test_a_ring_of_int8_needs_none_of_the_rest() -> None:
    names = closure.of_parts([], "stories")
    assert {name.split(".")[1] for name in names if name.count(".") and name.startswith("mpy_kv")} == {
        *("arena", "attention", "inspect", "cache", "factory", "codecs", "errors", "geometry", "heads"),
        *("kernels", "transient", "pools", "port", "raise_errors", "selfcheck", "sequence", "setup"),
        *("sources", "undecorated"),
    }
    assert modules(names) == set(closure.of_parts([])) == set(closure.of_parts(BASE))
    assert "stories.command" in names
    assert not {"stories.budgets", "stories.many", "stories.shared"} & set(names)


def test_an_import_in_a_function_is_followed_where_it_leads_to_no_part() -> None:
    """load_module() of what refuses and audits, in a method; kernels that a family finds in its folder."""
    names = set(closure.of_parts([]))
    assert {
        "mpy_kv.raise_errors",
        "mpy_kv.inspect",
        "mpy_kv.pools.raise_errors",
        "mpy_kv.codecs.int8",
    } <= names
    own = {f"mpy_kv.kernels.{name}" for name in closure.FAMILY if name != "selfcheck"}
    assert own | {"mpy_kv.selfcheck"} <= names
    assert "mpy_kv.pools.batch" not in names
    assert {"mpy_kv.pools.viper", "mpy_kv.eviction.linked_list"} <= set(closure.of_parts(["paged"]))


def test_of_a_package_that_is_on_the_way_no_kernels_come() -> None:
    """float32 takes float16's plain sums, and none of its native code."""
    names = set(closure.of_parts(["float32"]))
    assert {"mpy_kv.kernels.float16", "mpy_kv.kernels.float16.plain"} <= names
    assert not {"mpy_kv.kernels.float16.viper", "mpy_kv.kernels.float16.thumb"} & names


def test_kernel_sets_are_left_out_by_name() -> None:
    every = closure.of_parts(["token-eviction"], "stories")
    assert [name for name in every if name.endswith(".thumb")] == [
        *("mpy_kv.eviction.tokens.thumb", "mpy_kv.kernels.thumb", "stories.kernels.thumb")
    ]
    assert closure.of_parts(["token-eviction"], "stories", NATIVE) == [
        name for name in every if not name.endswith(".thumb")
    ]


@pytest.mark.parametrize(
    ("parts", "more"),
    [
        (["token-eviction"], {"stories.budgets"}),
        (["paged"], {"stories.many", "stories.shared"}),
        (["int4", "per-layer"], set()),
    ],
    ids=lambda x: "-".join(x) if isinstance(x, list) else None,
)
def test_what_the_app_has_for_a_part(parts: list[str], more: set[str]) -> None:
    names = set(closure.of_parts(parts, "stories")) - set(closure.of_parts([], "stories"))
    assert names - modules(names) == more
    assert modules(names) == set(closure.of_parts(parts)) - set(closure.of_parts([]))


def test_each_module_is_counted_once() -> None:
    names = closure.of_parts(["paged", "token-eviction"], "stories")
    owner = closure.owners(names, ["paged", "token-eviction"])
    assert list(owner) == names
    assert {owner[name] for name in names} == {*BASE, "paged", "token-eviction", "viper", "thumb", "stories"}
    assert owner["mpy_kv.kernels.plain"] == owner["mpy_kv.codecs.int8"] == "int8"
    assert owner["mpy_kv.pools.fixed"] == owner["mpy_kv.sequence"] == "core"
    assert owner["mpy_kv.eviction.tokens.plain"] == "token-eviction"
    assert owner["mpy_kv.eviction.tokens.viper"] == "viper"
    assert owner["mpy_kv.eviction.linked_list"] == owner["mpy_kv.pools.moving"] == "paged"


# Each part alone


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone(part: str, tmp_path: Path) -> None:
    """To the bit what it does in the whole package, refusals and audits included; nothing else is there."""
    copied(tmp_path, closure.of_parts([part], sets=NATIVE))
    said = run(tmp_path, STEPS, part)
    assert said == run(ROOT, STEPS, part)
    assert said.count("\n") >= 2
    assert "status" not in said
    assert "ImportError" not in said


@pytest.mark.parametrize("part", [part for part in PARTS if part not in BASE])
def test_a_part_is_not_there_without_being_asked_for(part: str, tmp_path: Path) -> None:
    copied(tmp_path, closure.of_parts([], sets=NATIVE))
    assert "ImportError: no module named 'mpy_kv." in run(tmp_path, STEPS, part)


# Modules without which the steps say the same: a folder is a package without its __init__.py as well;
# some policies have no native code beside their own, and this port has an emitter, whose native kernels are
# right, so that nobody asks for plain ones.
_IDLE = {
    *("mpy_kv.pools", "mpy_kv.undecorated", "mpy_kv.kernels.plain"),
    # Of kernels in Thumb assembler.
    *("mpy_kv.kernels.calls", "mpy_kv.kernels.addresses"),
}
IDLE = {
    "core": _IDLE,
    "int8": _IDLE,
    "float32": {"mpy_kv.kernels.float16"},
    "token-eviction": {"mpy_kv.eviction", "mpy_kv.eviction.tokens.plain"},
    "paged": {"mpy_kv.eviction"},
    "admission": {"mpy_kv.admission", "mpy_kv.eviction"},
    "bus": {
        *("mpy_kv.bus", "mpy_kv.bus.tracking", "mpy_kv.bus.tracking.plain"),
        *("mpy_kv.bus.staggering", "mpy_kv.bus.staggering.plain"),
    },
    # Of caches that other parts bring.
    "snapshot": {f"mpy_kv.snapshot.{name}" for name in ("blocks", "chosen", "pages")},
    "flash-log": {f"mpy_kv.flash_log.{name}" for name in ("plain", "files", "littlefs")},
    "bus-stream": {"mpy_kv.bus", "mpy_kv.bus.stream"},
    # It needs of snapshots where the tokens of a ring lie.
    "resume": {
        *(f"mpy_kv.flash_log.{name}" for name in ("plain", "files", "littlefs")),
        "mpy_kv.flash_log",
        *(f"mpy_kv.snapshot.{name}" for name in ("blocks", "chosen", "files", "loading", "pages", "saving")),
        "mpy_kv.snapshot.stream",
    },
    # As resume; this port has an emitter.
    "bus-dma": {
        *("mpy_kv.bus", "mpy_kv.bus.plain", "mpy_kv.snapshot", "mpy_kv.snapshot.forms"),
        *("mpy_kv.snapshot.header", "mpy_kv.snapshot.positions"),
        *(f"mpy_kv.snapshot.{name}" for name in ("blocks", "chosen", "files", "loading", "pages", "saving")),
        "mpy_kv.snapshot.stream",
    },
    **{part: {"mpy_kv.eviction.viper"} for part in ("evict-fifo", "evict-sieve", "evict-s3fifo")},
    **{
        part: {f"mpy_kv.kernels.{part.replace('-', '_')}.plain"}
        for part in ("float16", "int8-int4", "int4", "sparse")
    },
}


def without(part: str, name: str, folder: Path) -> str:
    """What the steps say where one of the modules of a part is missing."""
    copied(folder, set(closure.of_parts([part], sets=NATIVE)) - {name})
    return run(folder, STEPS, part)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_without_its_root_fails(part: str, tmp_path: Path) -> None:
    root = [name for name in PARTS[part] if name.startswith("mpy_kv")][-1]
    assert without(part, root, tmp_path) != run(ROOT, STEPS, part)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", PARTS)
def test_a_part_needs_each_of_its_modules(part: str, tmp_path: Path) -> None:
    names = set(closure.of_parts([part], sets=NATIVE))
    if part not in BASE:
        names -= set(closure.of_parts([]))
    want = run(ROOT, STEPS, part)
    idle = {name for name in names if without(part, name, tmp_path / name) == want}
    assert idle == IDLE.get(part, set())


TELL = """
import sys, stories
stories.main(sys.argv[2:], model=memoryview(open(sys.argv[1], "rb").read()), report=False)
"""

# Words of the app, and the parts that they take.
TOLD = {
    "ring": ([], []),
    "int4": (["--codec", "int4", "--window", 40], ["int4"]),
    "policy": (["--policy", "lru-peak", "--budget", 20, "--codec", "float16"], ["token-eviction", "float16"]),
    "requests": (["--requests", 2, "--prompt", "the lion", "--codec", "int8-int4"], ["paged", "int8-int4"]),
    "saved": (["--save", "saved.mkvs"], ["snapshot"]),
}


@pytest.mark.parametrize(("words", "parts"), TOLD.values(), ids=TOLD)
def test_a_story_of_its_parts(words: list[object], parts: list[str], tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(tiny()[2])
    words = ["-c", TELL, tmp_path / "model", "--seed", 9, "--tokens", 30, *words]
    copied(tmp_path, closure.of_parts(parts, "stories", NATIVE))
    said = run(tmp_path, *words)
    assert "status" not in said
    whole = port.run([str(word) for word in words], cwd=tmp_path / "mpy_kv")
    assert (said, whole.status) == (whole.stdout, 0)
    if parts:
        ring = copied(tmp_path / "ring", closure.of_parts([], "stories", NATIVE))
        assert "ImportError" in run(ring, *words)


def test_a_story_of_layers_that_differ(tmp_path: Path) -> None:
    image = typed("float16", "sparse")
    (tmp_path / "model").write_bytes(image)
    copied(tmp_path, closure.of_parts(ask.of_layers(["float16", "sparse", "float16"]), "stories", NATIVE))
    said = run(tmp_path, "-c", TELL, tmp_path / "model", "--tokens", "20")
    assert "status" not in said
    assert len(said) > 15


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The int8 story as it is deployed to a Pico, compiled."""
    folder = tmp_path_factory.mktemp("story")
    tree = compiled.tree("armv6m")
    for name in closure.of_parts([], "stories"):
        if name in SOURCES_ONLY:
            continue
        target = (folder / closure.file_of(name)).with_suffix(".mpy")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / target.relative_to(folder), target)
    return folder


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("thumb", 40),
        pytest.param("viper", 40, marks=pytest.mark.exhaustive),
        pytest.param("plain", 6, marks=pytest.mark.exhaustive),
    ],
)
def test_the_compiled_story(name: str, tokens: int, story: Path, qemu, upy, tmp_path: Path) -> None:
    """With every kernel set it tells the story of the unix port."""
    (tmp_path / "model").write_bytes(tiny()[2])
    words = [tmp_path / "model", "--seed", "9", "--sinks", "2", "--window", "20", "--tokens", tokens]
    words = [str(word) for word in words]
    done = qemu.board.run(TELL, [*words, "--kernels", name], path=[story], timeout_s=120)
    assert (done.status, done.stderr) == (0, "")
    assert done.stdout == upy.run(TELL, words)


def test_the_compiled_story_has_no_other_modules(story: Path, qemu, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(tiny()[2])
    words = [str(tmp_path / "model"), "--codec", "int4"]
    done = qemu.board.run(TELL, words, path=[story], timeout_s=120)
    assert done.status == 1
    assert "ImportError: no module named 'mpy_kv.int4_blocks'" in done.stdout + done.stderr


def test_bytes_of_the_compiled_story(story: Path) -> None:
    size = sum(path.stat().st_size for path in story.rglob("*.mpy"))
    sets = sum(path.stat().st_size for name in ("viper", "thumb") for path in story.rglob(f"{name}.mpy"))
    print(f"int8 story, .mpy for armv6m: {size:,} bytes, {sets:,} of them viper and Thumb kernels")
    assert size <= STORY_BYTES
    wanted = files.modules("stories", identity.expected(boards.load("rp2040")), True, ())
    assert sum(len(file.data) for file in wanted) == size


# What is asked for


def test_what_main_py_asks_for() -> None:
    def of(call: str) -> list[str] | None:
        return ask.of_main(f"import stories\nN = 4\nstories.main({call})\n")

    assert of("sys.argv[1:], tokens=N") == []
    assert of("codec='int4', window=N") == ["int4"]
    assert of("codec=['int8', 'sparse', 'int8']") == ["int8", "sparse", "per-layer"]
    assert of("codec=None, policy=None") == []
    assert of("budget=N, policy='lfu'") == ["token-eviction", "token-eviction"]
    assert of("requests=N, shared_prefix=''") == ["paged"]
    assert of("save='/a.mkvs', resume=None") == ["snapshot"]
    assert of("codec=N") is None
    assert of("**options") is None
    assert ask.of_main("print(5)\n") == []
    for name in boards.names():
        assert ask.of_main((BOARDS / name / "main.py").read_text()) == []


def test_what_options_ask_for() -> None:
    assert ask.of_options([], [], False) == []
    assert ask.of_options(["int4"], ["lfu", "window"], True) == ["int4", "token-eviction", "paged"]
    assert ask.of_layers([]) == []
    assert ask.of_layers(["int4"] * 5) == ["int4"]


# kvlab deploy


@pytest.fixture
def dry(kvlab, monkeypatch, tmp_path):
    """`dry(*options)`: figures of a dry run without a board, a tiny model for a Pico's."""
    monkeypatch.setattr(link.list_ports, "comports", list)
    model = write_tiny(tmp_path)[0]

    def run_dry(*options):
        report = tmp_path / "deploy.json"
        words = ["deploy", "--board", "rp2040", "--dry-run", "--json", report, *options]
        if "--app" not in options and "--model" not in options:
            words += ["--model", model]
        status, out, err = kvlab(*words)
        assert (status, err) == (0, "")
        return json.loads(report.read_text()), out

    return run_dry


def copied_modules(figures) -> list[str]:
    paths = [entry["path"] for entry in figures["copied"]]
    names = [path[4:].rpartition(".")[0].replace("/", ".") for path in paths if path.startswith("lib/")]
    return [name.removesuffix(".__init__") for name in names]


def test_deploy_copies_what_the_app_uses(dry) -> None:
    figures, out = dry()
    assert copied_modules(figures) == closure.of_parts([], "stories")
    assert figures["parts"] == ["core", "int8"]
    assert list(figures["by_part"]) == ["core", "int8", "viper", "thumb", "stories", "model", "main.py"]
    assert figures["files"] == len(figures["copied"])
    assert figures["bytes"] == sum(entry["bytes"] for entry in figures["copied"])
    for key in ("files", "bytes"):
        assert figures[key] == sum(one[key] for one in figures["by_part"].values())
    space = Space(4096, 350)
    blocks = sum(space.blocks(entry["bytes"]) for entry in figures["copied"])
    # lib, lib/mpy_kv, its codecs, kernels and pools, lib/stories, its encoding and kernels
    assert (figures["folders"], figures["folder_blocks"]) == (8, 16)
    assert figures["blocks"] == blocks + 16
    assert figures["blocks"] == 16 + sum(one["blocks"] for one in figures["by_part"].values())
    assert figures["needed_blocks"] == figures["blocks"] + plan.SPARE_BLOCKS
    assert figures["free_blocks"] == 350
    assert f"{figures['blocks']} blocks of 4,096 bytes, 16 of them of folders" in " ".join(out.split())
    assert re.search(r"  part    thumb: 1 files, [\d,]+ B \(.*\), \d+ blocks\n", out)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--codec", "int4", "--codec", "float16"], ["int4", "float16"]),
        (["--policy", "lru-peak", "--policy", "lfu"], ["token-eviction"]),
        (["--requests", "--part", "admission"], ["admission", "paged"]),
        (
            ["--part", "evict-lfu", "--part", "per-layer", "--codec", "sparse"],
            ["evict-lfu", "per-layer", "sparse"],
        ),
    ],
    ids=["codecs", "policies", "requests", "parts"],
)
def test_deploy_adds_what_is_asked_for(dry, options: list[str], parts: list[str]) -> None:
    figures, _ = dry("--mpy", *options)
    assert set(figures["parts"]) == {"core", "int8", *parts}
    modules = closure.of_parts(parts, "stories")
    assert copied_modules(figures) == [name for name in modules if name not in SOURCES_ONLY]
    figures, _ = dry("--app", "none", *options)
    assert copied_modules(figures) == closure.of_parts(parts)


MOST_BYTES = 118_500  # of the int8 story's modules, compiled for a Pico, viper and plain kernels among them


def test_the_compiled_story_is_small(dry) -> None:
    figures, _ = dry("--mpy", "--codec", "int8")
    modules = [entry for entry in figures["copied"] if entry["path"].startswith("lib/")]
    assert sum(entry["bytes"] for entry in modules) <= MOST_BYTES
    kernels = [entry["path"] for entry in modules if "/kernels/" in entry["path"]]
    for app in ("mpy_kv", "stories"):
        assert {f"lib/{app}/kernels/{name}.mpy" for name in ("plain", "viper", "thumb")} <= set(kernels)


def test_deploy_copies_all(dry) -> None:
    figures, _ = dry("--part", "all", "--mpy")
    assert figures["parts"] == "all"
    assert set(copied_modules(figures)) == {*closure.all_of("mpy_kv"), *closure.all_of("stories")}
    assert {*PARTS, "viper", "thumb", "stories", "model", "main.py"} == set(figures["by_part"])
    figures, _ = dry("--app", "none", "--mpy")
    assert figures["parts"] == "all"
    assert set(copied_modules(figures)) == set(closure.all_of("mpy_kv"))


def test_deploy_copies_the_element_types_of_the_model(dry, tmp_path: Path) -> None:
    (tmp_path / "typed.mkvm").write_bytes(typed("float16", "int8-int4"))
    figures, _ = dry("--model", tmp_path / "typed.mkvm")
    assert set(figures["parts"]) == {"core", "int8", "float16", "int8-int4", "per-layer"}
    (tmp_path / "alike.mkvm").write_bytes(typed("int4"))
    figures, _ = dry("--model", tmp_path / "alike.mkvm", "--codec", "sparse")
    assert set(figures["parts"]) == {"core", "int8", "int4", "sparse"}


def test_deploy_names_what_is_no_part(kvlab) -> None:
    words = ("deploy", "--board", "rp2040", "--dry-run")
    assert kvlab(*words, "--part", "pagd")[::2] == (
        *(2, 'kvlab: error: --part pagd: no such part; did you mean "paged"?\n'),
    )
    status, _, err = kvlab(*words, "--part", "all", "--codec", "int4")
    assert (status, err) == (
        *(2, "kvlab: error: --codec: has no effect with --part all; leave one of them out\n"),
    )


def unix_like(**more) -> identity.Identity:
    """A unix port without native code."""
    known = {"name": "micropython", "version": (1, 28, 0), "platform": "linux", "machine": ""}
    return identity.Identity(**{**known, "mpy": 6 | 3 << 8, **more})


def test_without_native_code_all_is_copied() -> None:
    """There mpy_kv/__init__.py loads the files of many parts by name."""
    assert files.modules("none", unix_like(), False, ()) == files.modules("none", unix_like(), False)
    wish = Wish(boards.load("rp2040"), "none", b"", parts=())
    assert Deployment(None, unix_like(), wish).figures()["parts"] == "all"


# Room


@extra("littlefs")
def test_blocks_are_those_that_littlefs_gives() -> None:
    """Two a folder; files of half a KB lie in theirs."""
    import littlefs

    sizes = (600, 4000, 4096, 9000, 40000, 291328)
    wanted = [File(f"lib/a/b{n}.py", os.urandom(size)) for n, size in enumerate(sizes)]
    wanted.append(File("lib/c/d.py", b"x = 1\n"))
    system = littlefs.LittleFS(block_size=BLOCK_BYTES, block_count=200, prog_size=256)
    before = system.used_block_count
    for file in wanted:
        system.makedirs(file.path.rpartition("/")[0], exist_ok=True)
        with system.open(file.path, "wb") as f:
            f.write(file.data)
    taken = system.used_block_count - before
    found = cost.cost(wanted, (), Space(BLOCK_BYTES, 200))
    assert (found["folders"], found["folder_blocks"]) == (3, 6)
    assert taken == 6 + 1 + 1 + 1 + 3 + 10 + 72
    assert found["blocks"] == taken + 2  # d.py, and one for pointers that a single block does not have


def test_what_does_not_fit_is_refused_in_blocks(tmp_path: Path, kvlab) -> None:
    """Before anything is copied, by what the board's own file system has left."""
    model = write_tiny(tmp_path)[0]
    with PtyBoard(tmp_path / "flash.img", 96) as board:
        words = ("deploy", "--board", "rp2040", "--port", board.port, "--force", "--model", model)
        status, _, err = kvlab(*words, "--part", "all")
        with link.connected(board.port) as known:
            remote = Remote(known)
            assert remote.walk("lib") == {}
            free = remote.space().free_blocks
    found = re.search(r"are needed: (\d+) and (\d+) blocks of 4,096 \(", err)
    assert status == 1
    assert int(found[1]) == free < int(found[2])
    assert "Deploy with --mpy or fewer parts" in err


@pytest.mark.parametrize("less", [0, 1])
def test_the_last_block_decides(less: int) -> None:
    board = boards.load("rp2040")
    wanted = files.modules("none", identity.expected(board), False, ())
    blank = Blank(board)
    needed = plan.make(blank, wanted, []).needed_blocks
    blank.space = lambda: Space(4096, needed - less)
    made = plan.make(blank, wanted, [])
    if less:
        with pytest.raises(FellShort, match=f": {needed - 1} and {needed} blocks of 4,096"):
            plan.check_room(made)
    else:
        plan.check_room(made)


# mip


@pytest.mark.parametrize("part", PARTS)
def test_mip_is_told_the_files_of_a_part(part: str) -> None:
    found = json.loads((ROOT / "packages" / f"{part}.json").read_text())
    assert found["version"] == package_json.version()
    assert found["deps"] == []
    wanted = [closure.file_of(name) for name in closure.of_parts([part])]
    assert [target for target, _ in found["urls"]] == wanted
    for target, source in found["urls"]:
        assert (ROOT / "packages" / source).resolve() == ROOT / target


def test_mip_installs_a_part(tmp_path: Path) -> None:
    with PtyBoard(tmp_path / "flash.img") as board:
        mpremote(board, "mip", "install", "./packages/int8-int4.json")
        with link.connected(board.port) as known:
            there = set(Remote(known).walk("lib"))
        assert there == {f"lib/{closure.file_of(name)}" for name in closure.of_parts(["int8-int4"])}
        assert mpremote(board, "exec", ATTEND.replace("sinks=0", "sinks=0, codec='int8-int4'")) == "True 0"


def test_every_package_file_is_checked(tmp_path: Path, monkeypatch, capsys) -> None:
    assert sorted(path.stem for path in (ROOT / "packages").iterdir()) == sorted(PARTS)
    monkeypatch.setattr(package_json, "PLACE", tmp_path)
    assert package_json.main([]) == 0
    assert package_json.main(["--check"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["package.json", "packages"]
    (tmp_path / "packages" / "core.json").write_text("{}")
    assert package_json.main(["--check"]) == 1
    assert "packages/core.json is out of date" in capsys.readouterr().err
    assert package_json.main([]) == 0
    (tmp_path / "packages" / "gone.json").write_text("{}")
    assert package_json.main(["--check"]) == 1
    assert "packages/gone.json is of no part" in capsys.readouterr().err
    assert package_json.main([]) == 0
    assert package_json.main(["--check"]) == 0
