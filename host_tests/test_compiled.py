"""Device modules as .mpy: they compile for every board, and the emulator runs them so."""

import pytest

from kvlab import boards
from unix_port import compiled, launcher
from unix_port.port import PortError

PICO = boards.load("rp2040").machine

# The Pico, the Pico 2, both ESP32 kinds, the unix port.
ARCHES = ("armv6m", "armv7emsp", "xtensawin", "rv32imc", "x64")

KERNEL = """
import micropython
from micropython import const
_WIDE = const(0)

@micropython.viper
def words() -> int:
    if _WIDE:
        return 64
    return 32
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of compiled trees."""
    monkeypatch.setattr(compiled, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def package(tmp_path):
    """A package with one kernel file."""
    folder = tmp_path / "source" / "tiny"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from .viper import words\n")
    (folder / "viper.py").write_text(KERNEL)
    return folder


@pytest.mark.parametrize("arch", ARCHES)
def test_every_device_module_compiles_for_every_board(arch):
    made = compiled.tree(arch)
    assert (made / "mpy_kv" / "cache.mpy").is_file()
    assert (made / "stories" / "kernels" / "viper.mpy").is_file()
    assert not list(made.rglob("*.py"))


def test_kernels_are_made_for_the_word_size(cache, package, tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text("import tiny; print(tiny.words(), tiny.__file__[-4:])\n")
    monkeypatch.setattr(compiled, "tree", lambda: compiled.compile_tree({package: "tiny"}, "x64"))
    report = launcher.emulate(script, (), PICO, compiled=True)
    assert report.stdout == "64 .mpy\n", report.stderr


def test_the_tree_is_made_once_for_each_content(cache, package):
    first = compiled.compile_tree({package: "tiny"}, "x64")
    stamp = (first / "tiny" / "viper.mpy").stat().st_mtime_ns
    assert compiled.compile_tree({package: "tiny"}, "x64") == first
    assert (first / "tiny" / "viper.mpy").stat().st_mtime_ns == stamp
    (package / "more.py").write_text("x = 1\n")
    second = compiled.compile_tree({package: "tiny"}, "x64")
    assert second != first
    assert sorted(path.name for path in (second / "tiny").iterdir()) == [
        "__init__.mpy",
        "more.mpy",
        "viper.mpy",
    ]
    assert compiled.compile_tree({package: "tiny"}, "armv6m") not in (first, second)


def test_what_does_not_compile_is_named(cache, package):
    (package / "viper.py").write_text(KERNEL + "\n\ndef broken(:\n")
    with pytest.raises(
        PortError, match=r'tiny/viper\.py", line 13: mpy-cross -march=armv6m: SyntaxError'
    ):
        compiled.compile_tree({package: "tiny"}, "armv6m")
    assert not [path for path in cache.iterdir() if path.is_dir()]


def test_no_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv(compiled.COMPILER_ENV, str(tmp_path / "gone"))
    with pytest.raises(PortError, match="KVLAB_MPY_CROSS"):
        compiled.compiler()


@pytest.mark.parametrize("name", ["mpy_kv", "stories"])
def test_sources_beside_the_script_are_not_taken_for_the_compiled_ones(tmp_path, name):
    """As those of a checkout, in whose root, or beside whose apps, the script lies; what else is there is
    found."""
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise ValueError('sources')\n")
    (tmp_path / "helper.py").write_text("NAME = 'beside'\n")
    script = tmp_path / "script.py"
    script.write_text(f"import {name}, helper\nprint({name}.__file__.rpartition('.')[2], helper.NAME)\n")
    report = launcher.emulate(script, [], PICO, compiled=True)
    assert (report.outcome, report.stdout) == ("ok", "mpy beside\n")
    assert "sources" in launcher.emulate(script, [], PICO).error
