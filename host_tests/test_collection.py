"""Which tests there are, and which of them a run takes: the same in every process, and none lost."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import case_ids
import census
import processor_time
import pytest
import sampling

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """The ids as two processes collect them that share neither second, hash seed, folder nor time zone."""
    other = tmp_path_factory.mktemp("elsewhere") / "copy"
    left = shutil.ignore_patterns(".*", "__pycache__", "out", "build", "*.egg-info")
    shutil.copytree(census.ROOT, other, ignore=left)
    path = os.pathsep.join([str(other), str(other / "tools")])
    second = int(time.time())
    first = census.collect(env={"PYTHONHASHSEED": "1", "TZ": "UTC"})
    while int(time.time()) == second:
        time.sleep(0.1)
    return first, census.collect(other, {"PYTHONHASHSEED": "22", "TZ": "Asia/Tokyo", "PYTHONPATH": path})


def test_two_collections_are_one(two: tuple[list[str], list[str]]) -> None:
    first, second = two
    assert first == second


def test_ids_name_no_address_path_or_place_in_a_list(two: tuple[list[str], list[str]]) -> None:
    ids, _ = two
    assert len(set(ids)) == len(ids)
    folders = "|".join(re.escape(f"{folder}/") for folder in (census.ROOT, Path.home()))
    odd = re.compile(rf"<[^>]* at 0x[0-9a-f]|<lambda>|{folders}")
    assert [each for each in ids if odd.search(each)] == []


def test_no_case_is_gone(two: tuple[list[str], list[str]]) -> None:
    """What is removed knowingly is removed from the census too: python host_tests/census.py --write"""
    assert census.gone(census.counted(two[0]), census.written()) == []


def test_the_census_sees_what_is_gone() -> None:
    then = census.counted(["host_tests/a.py::f[1]", "host_tests/a.py::f[2]", "host_tests/b.py::g"])
    assert then == {"a.py::f": 2, "b.py::g": 1}
    assert census.gone({"a.py::f": 1, "c.py::h": 5}, then) == [
        "a.py::f: 1 cases, there were 2",
        "b.py::g: 0 cases, there were 1",
    ]
    assert census.gone({**then, "a.py::f": 3}, then) == []


class Nameless:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("value", "is_"),
    [
        (1.5, "1.5"),
        (None, "None"),
        ("a\n\x00", "a\\n\\x00"),
        (b"key\n", "bytes key\\n"),
        pytest.param(b"\x1f\x8b", "bytes", id="packed"),
        pytest.param({"b", "a", "c"}, "a b c", id="set"),
        pytest.param({"window": 3, "sinks": (1, 2)}, "window=3,sinks=1 2", id="dict"),
        pytest.param([], "nothing", id="empty"),
        pytest.param(lambda: 0, "function", id="lambda"),
        pytest.param(Nameless(), "Nameless", id="object"),
        pytest.param(time.time, "time", id="named"),
        pytest.param(HERE / "test_collection.py", "host_tests/test_collection.py", id="file"),
        pytest.param(Path("/tmp/x.bin"), "x.bin", id="path"),
        pytest.param(f"emulate {HERE}/x.py", "emulate host_tests/x.py", id="words with a path"),
        pytest.param(ValueError("bad"), "ValueError bad", id="error"),
        pytest.param("x" * 99, "x" * 51 + "~d0621fdd", id="long"),
    ],
)
def test_an_id_is_what_the_value_says(value: object, is_: str) -> None:
    assert case_ids.case_id(value) == is_


# --- the sample


def test_one_key_is_one_sample_and_ten_firsts_are_all() -> None:
    functions = ["a"] * 25 + ["b"] + ["c"] * 3 + ["a"] * 5
    keys = [f"commit {i}" for i in range(200)]
    samples = [sampling.sample(key, functions) for key in keys]
    assert samples == [sampling.sample(key, functions) for key in keys]
    # Three of thirty, whichever; any case comes, and none much oftener than another.
    assert {sum(x for x, f in zip(chosen, functions) if f == "a") for chosen in samples} == {3}
    assert all(5 < sum(each) < 40 for each in zip(*samples))
    # The functions do not move together: that would be ten samples at most.
    assert len({tuple(chosen) for chosen in samples}) > 30


def test_loops_are_sampled_too() -> None:
    whole = sampling.Sampled(None, "a.py::f")
    assert whole.whole
    assert list(whole(range(25))) == list(range(25))
    parts = {tuple(sampling.Sampled(f"commit {i}", "a.py::f")(range(25))) for i in range(200)}
    assert parts == {tuple(range(first, 25, 10)) for first in range(10)}
    assert not sampling.Sampled("commit", "a.py::f").whole


def test_without_git_the_sample_follows_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mpy_kv").mkdir()
    (tmp_path / "mpy_kv" / "__init__.py").write_text('"""The package."""\n\n__version__ = "7.8.9"\n')

    def git(returncode: int, stdout: str = "") -> None:
        done = subprocess.CompletedProcess([], returncode, stdout)
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)

    git(0, "\n0123abcd\n")
    assert sampling.commit(tmp_path) == "0123abcd"
    git(0, "vendor/mpy-kv/\n0123abcd\n")  # unpacked inside of another repository
    assert sampling.commit(tmp_path) == "7.8.9"
    git(128)
    assert sampling.commit(tmp_path) == "7.8.9"

    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", absent)
    assert sampling.commit(tmp_path) == "7.8.9"


# Every case notes that it ran. The last burns time in a process of its own.
SUITE = """
import os, subprocess, sys
import pytest

BURN = "import time\\nwhile time.process_time() < 1: pass"

@pytest.mark.exhaustive
@pytest.mark.parametrize("n", range(40))
def test_many(n): open(f"ran.{n}", "x").close()

def test_always(): open("ran.always", "x").close()

@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["a", "b"])
def test_loops(name, sampled):
    for n in sampled(range(20)): open(f"ran.{name}{n}", "x").close()

def test_burns(): assert subprocess.run([sys.executable, "-c", BURN]).returncode == 0
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_prints_its_sample_and_its_processor_time(workers: int, tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = exhaustive\n")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--sample", "some key"]
        + ["-p", "sampling", "-p", "processor_time", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HERE), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr

    first = sampling.first("some key", "test_suite.py::test_many")
    ran = {path.name.partition(".")[2] for path in tmp_path.glob("ran.*")}
    loops = {name: sampling.first("some key", f"test_suite.py::test_loops[{name}]") for name in "ab"}
    assert ran == {
        "always",
        *(str(n) for n in range(first, 40, 10)),
        *(f"{name}{n}" for name, at in loops.items() for n in range(at, 20, 10)),
    }

    lines = done.stdout.splitlines()
    assert [n for n, line in enumerate(lines) if line.endswith("--sample=some key")] in ([0, len(lines) - 3],)
    printed = re.fullmatch(r"processor time: (\d+) min (\d\d) s", lines[-2])
    assert printed
    assert re.match("8 passed", lines[-1])

    counted = int(printed[1]) * 60 + int(printed[2])
    used = sum(getattr(after, part) - getattr(before, part) for part in ("ru_utime", "ru_stime"))
    # What is burnt in a worker's child, and not much else than what the kernel charges for it all.
    assert 1 <= counted <= used + 0.5
    assert counted > used - 1.5


def test_minutes_are_printed_as_such() -> None:
    told = [processor_time.minutes(seconds) for seconds in (0.4, 59.6, 754)]
    assert told == ["0 min 00 s", "1 min 00 s", "12 min 34 s"]
