"""A passed self-check is remembered for the very firmware and files that passed it, and in doubt it runs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import stories_cases  # noqa: F401 (tells where the app is)
from known_cases import DEVICE
from stories import kernels as stories_kernels
from stories import verdicts
from stories_fixtures import tiny

from kvlab.paths import ROOT
from mpy_kv import kernels
from mpy_kv.eviction import tokens
from mpy_kv.kernels import plain, trial

BOTH = ["mpy_kv.kernels", "stories.kernels"]


@pytest.fixture(scope="module")
def starts(upy: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What ran at each start of host_tests/device/verdicts.py."""
    path = tmp_path_factory.mktemp("starts") / "kernels.checked"
    found: dict[str, Any] = json.loads(upy.run((DEVICE / "verdicts.py").read_text(), [str(path)]))
    return found


def test_a_check_that_passed_is_not_repeated(starts: dict[str, Any]) -> None:
    assert starts["first"] == BOTH
    assert starts["second"] == []


def test_a_damaged_file_is_none(starts: dict[str, Any]) -> None:
    """Cut at every byte, every bit flipped: the check of each set runs each time, and makes the file anew."""
    assert starts["cut"] == starts["flipped"] == starts["longer"] == [BOTH]
    assert starts["whole again"] == [[]]


def test_a_verdict_is_good_for_its_key_alone(starts: dict[str, Any]) -> None:
    assert starts["one of another version"] == [["stories.kernels"], [], True]
    assert starts["of another set"] == [BOTH, []]
    assert starts["of another type beside it"] == [["stories.kernels"], True, []]


def test_check_runs_all(starts: dict[str, Any]) -> None:
    assert starts["--check"] == [BOTH, []]
    assert starts["--check of what is loaded"] == [BOTH, []]


def test_what_cannot_be_written_is_not_remembered(starts: dict[str, Any]) -> None:
    for where in ("no file", "no folder", "a folder"):
        assert starts[where] == [BOTH, BOTH]


def test_a_check_that_failed_is_not_remembered(starts: dict[str, Any]) -> None:
    """Each set is tried, the kernels are plain ones, and so it is at the next start."""
    assert starts["fails"] == [BOTH, BOTH]
    assert starts["passes"] == [BOTH, []]


def test_a_write_that_fails_half_way_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"

    class Full:
        """A file of a full disk."""

        def __init__(self, name: str, mode: str) -> None:
            Path(name).write_bytes(b"half")

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *why: object) -> None:
            pass

        def write(self, data: bytes) -> int:
            raise OSError(28)

    monkeypatch.setattr(verdicts, "open", Full, raising=False)
    verdicts.write(str(path), ["a\tb\tc"])
    assert not path.exists()


def test_a_host_keeps_no_file() -> None:
    assert verdicts.usual() == ""


@pytest.mark.parametrize("keys", [[], ["a\tb"], ["a\tb\tc", "d\te\tf \u00e9"]])
def test_what_is_written_is_read(keys: list[str], tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    verdicts.write(path, keys)
    assert verdicts.read(path) == tuple(keys)


@pytest.mark.parametrize(
    "data",
    [b"", b"0000000\n", b"\xff\xfe", bytes(5000)],
    ids=["empty", "too short", "no text", "too long"],
)
def test_what_is_no_file_of_verdicts_is_read_as_none(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert verdicts.read(str(path)) == ()
    assert verdicts.read(str(tmp_path / "none")) == ()


# --- Keys ----------------------------------------------------------------------------------------

FAMILIES = {
    "int8": kernels.FAMILY,
    "sparse": kernels.of("sparse"),
    "int4": kernels.of("int4"),
    "tokens": tokens.FAMILY,
}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of mpy_kv that keys are made of."""
    folder = tmp_path / "mpy_kv"
    shutil.copytree(ROOT / "mpy_kv", folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sys.modules["mpy_kv"], "__file__", str(folder / "__init__.py"))
    return folder


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_key_names_what_it_is_of(family: Any) -> None:
    key = trial.key(family, "viper")
    assert key == trial.key(family, "viper")
    assert "\n" not in key
    package, name, *_, checksum = key.split("\t")
    assert (package, name) == (family.package, "viper")
    int(checksum, 16)


def test_keys_differ_by_set_type_and_firmware(monkeypatch: pytest.MonkeyPatch) -> None:
    families = [*FAMILIES.values(), stories_kernels.FAMILY, kernels.of("float16"), kernels.of("int8-int4")]
    keys = {trial.key(family, name) for family in families for name in ("viper", "thumb")}
    monkeypatch.setattr(sys, "version", sys.version + "+")
    keys |= {trial.key(family, name) for family in families for name in ("viper", "thumb")}
    assert None not in keys
    assert len(keys) == 4 * len(families)


FILES = {
    "int8": ("kernels/plain", "kernels/viper", "kernels/thumb", "kernels/tables", "selfcheck"),
    "sparse": ("kernels/sparse/plain", "kernels/sparse/viper", "kernels/viper", "kernels/thumb", "selfcheck"),
    "int4": ("kernels/int4/viper", "kernels/int4/thumb", "kernels/viper", "int4_blocks/selfcheck", "sources"),
    "tokens": ("eviction/tokens/viper", "eviction/tokens/thumb", "eviction/tokens/selfcheck"),
}


@pytest.mark.parametrize("kind", FAMILIES)
def test_a_file_that_is_changed_by_a_bit_makes_another_key(kind: str, copy: Path) -> None:
    family = FAMILIES[kind]
    keys = {trial.key(family, "viper")}
    for name in FILES[kind]:
        path = copy / f"{name}.py"
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        keys.add(trial.key(family, "viper"))
    assert len(keys) == 1 + len(FILES[kind])


def test_compiled_files_count_where_there_is_no_source(copy: Path) -> None:
    key = trial.key(kernels.FAMILY, "viper")
    path = copy / "kernels" / "viper.py"
    path.with_suffix(".mpy").write_bytes(b"M")
    assert trial.key(kernels.FAMILY, "viper") == key, "import takes the source"
    path.unlink()
    assert trial.key(kernels.FAMILY, "viper") not in (key, None)


@pytest.mark.parametrize("name", ["selfcheck", "kernels/viper", "kernels/plain"])
def test_no_key_without_the_files(name: str, copy: Path) -> None:
    """As where they are frozen into the firmware: two that differ may say that they are the same."""
    (copy / f"{name}.py").unlink()
    assert trial.key(kernels.FAMILY, "viper") is None


def test_no_key_of_a_set_that_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.FAMILY, "_extra", [])
    monkeypatch.setattr(kernels.FAMILY, "_found", {})
    monkeypatch.setattr(kernels.FAMILY, "checked", ())
    kernels.register("viper", lambda: plain)
    assert kernels.get("viper").name == "viper"
    assert kernels.FAMILY.checked == ("viper",)
    assert trial.key(kernels.FAMILY, "viper") is None
    assert trial.verdicts(kernels.FAMILY) == []


# --- The program ---------------------------------------------------------------------------------

TOLD = """
import json, sys
import mpy_kv.transient as transient
load, loaded = transient.load_module, []
def load_module(name):
    if name.endswith("selfcheck"):
        loaded.append(name)
    return load(name)
transient.load_module = load_module
import stories
stories.main(sys.argv[1:] + ["--tokens", "2", "--window", "8"], report=False)
print(json.dumps(sorted(set(loaded))))
"""


def test_the_program_remembers(upy: Any, tmp_path: Path) -> None:
    model, path = tmp_path / "model", tmp_path / "kernels.checked"
    model.write_bytes(tiny()[2])

    def checked(*words: str) -> list[str]:
        said = upy.run(TOLD, ["--model", str(model), *words])
        found: list[str] = json.loads(said.strip().rsplit("\n", 1)[-1])
        return found

    named = ["--verdicts", str(path)]
    cache, app = "mpy_kv.selfcheck", "stories.kernels.selfcheck"
    assert checked() == checked() == [cache, app], "without a file"
    assert checked(*named) == [cache, app]
    assert checked(*named) == []
    assert checked(*named, "--check") == [cache, app]
    assert checked(*named, "--codec", "float16") == [cache]
    assert checked(*named, "--policy", "lru-peak") == ["mpy_kv.eviction.tokens.selfcheck"]
    assert checked(*named, "--policy", "lru-peak") == checked(*named, "--codec", "float16") == []
    assert checked(*named, "--kernels", "plain") == checked(*named) == []
    path.write_bytes(path.read_bytes()[:-1])
    assert checked(*named) == [cache, app]
