"""kvlab package: compiled parts that mip installs and programs run with; nobody else's folder is touched."""

from __future__ import annotations

import ast
import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kvlab.deploy import packaged
from kvlab.deploy.identity import ARCHS
from kvlab.parts import closure
from kvlab.parts.table import PARTS, SOURCES_ONLY
from kvlab.paths import ROOT
from unix_port import port

EXAMPLE = ROOT / "examples" / "own_cache.py"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address of a server of its files."""
    folder = tmp_path / "www"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_words: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_mip_installs_it_and_an_example_runs(kvlab, served, tmp_path: Path) -> None:
    folder, address = served
    assert kvlab("package", "--core", "x64", "--part", "int8", "-o", folder / "unix")[0] == 0
    lib = tmp_path / "lib"
    lib.mkdir()
    script = f"import mip; mip.install('{address}/unix/int8.json', target='{lib}')"
    assert port.run(["-c", script], timeout_s=30).status == 0
    modules = [name for name in closure.of_parts(["int8"]) if name not in SOURCES_ONLY]
    wanted = {closure.file_of(name).replace(".py", ".mpy") for name in modules}
    wanted = {path for path in wanted if not path.endswith("thumb.mpy")}
    assert {path.relative_to(lib).as_posix() for path in lib.rglob("*") if path.is_file()} == wanted
    start = f"import sys; sys.path[:] = ['', '.frozen', '{lib}']; exec(open('{EXAMPLE}').read())"
    done = port.run(["-c", start], timeout_s=30)
    told = (ast.get_docstring(ast.parse(EXAMPLE.read_text())) or "").partition("Prints\n")[2]
    assert done.stdout.splitlines() == [line.strip() for line in told.splitlines()]


@pytest.mark.parametrize("core", ["armv6m", "xtensawin"])
def test_modules_are_the_cores(kvlab, tmp_path: Path, core: str) -> None:
    folder = tmp_path / "made"
    report = tmp_path / "made.json"
    words = ["--core", core, "--part", "int4", "--part", "paged", "-o", folder, "--json", report]
    assert kvlab("package", *words)[0] == 0
    assert {path.name for path in folder.iterdir()} == {"package.json", "int4.json", "paged.json", "mpy_kv"}
    whole = json.loads((folder / "package.json").read_text())
    assert (whole["deps"], whole["core"]) == ([], core)
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*.mpy")}
    assert {target for target, _ in whole["urls"]} == there
    assert ("mpy_kv/kernels/thumb.mpy" in there) == core.startswith("arm")
    parts = [json.loads((folder / f"{name}.json").read_text())["urls"] for name in ("int4", "paged")]
    assert all(target == source for urls in parts for target, source in urls)
    assert {target for urls in parts for target, _ in urls} == there
    archs = {ARCHS[path.read_bytes()[2] >> 2 & 15] for path in folder.rglob("viper.mpy")}
    assert archs == {core}
    assert json.loads(report.read_text())["bytes"] == sum(len(p.read_bytes()) for p in folder.rglob("*.mpy"))


def test_a_folder_of_ours_is_made_anew(kvlab, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    assert kvlab("package", "--core", "armv6m", "--part", "paged", "-o", folder)[0] == 0
    assert kvlab("package", "--core", "x64", "-o", folder)[0] == 0
    assert {path.name for path in folder.iterdir()} == {"package.json", "core.json", "int8.json", "mpy_kv"}
    assert not list(folder.rglob("thumb.mpy"))
    assert not (folder / "mpy_kv" / "paged").exists()


@pytest.mark.parametrize("name", ["notes.txt", "other.json", "mpy_kv/mine.py", "mine/x.mpy"])
def test_a_folder_of_somebody_else_is_left(kvlab, tmp_path: Path, name: str) -> None:
    """One file beside ours is enough."""
    folder = tmp_path / "made"
    packaged.write({"package.json": packaged.listed("x64", []), "mpy_kv/a.mpy": b"M"}, folder, "-o")
    mine = folder / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("{}")
    status, _, err = kvlab("package", "--core", "x64", "-o", folder)
    assert (status, err.count("\n")) == (2, 1)
    assert "has files that this did not make" in err
    assert mine.read_text() == "{}"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--core", "armv6", "-o", "x"], '--core armv6: no such core; did you mean "armv6m"?'),
        (["--core", "x64", "--part", "int9", "-o", "x"], "--part int9: no such part"),
        (["--core", "x64"], "-o"),
    ],
)
def test_bad_input_is_one_line(kvlab, words: list[str], said: str) -> None:
    status, _, err = kvlab("package", *words)
    assert (status, err.count("\n")) == (2, 1)
    assert said in err


def test_every_part_can_be_packaged() -> None:
    made = packaged.make("x64", tuple(PARTS))
    assert {name for name in made if "/" not in name} == {"package.json", *(f"{part}.json" for part in PARTS)}
