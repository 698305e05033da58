"""tools/mutation: which faults there are, which tests are asked, and what is said of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import mutants
from kvlab.paths import ROOT
from mutation import plan, record, run
from mutation.faults import Fault, compiles, faults_of

TOY = '''"""Toys: not a word of this is broken."""


def most(a, b):
    """The larger one."""
    if a > b:
        return a
    return b


def halved(n):
    count = 0
    while n > 1:
        n = n // 2
        count += 1
    return count


def forgotten(x):
    return x * 2
'''
TESTS = """import toy

import pytest


def test_most():
    assert [toy.most(1, 2), toy.most(2, 1), toy.most(3, 3)] == [2, 2, 3]


def test_halved():
    assert [toy.halved(n) for n in (1, 2, 9)] == [0, 1, 3]


@pytest.mark.exhaustive
def test_forgotten():
    assert toy.forgotten(2) == 4
"""
PYPROJECT = '[tool.pytest.ini_options]\nmarkers = ["exhaustive: x", "train: x"]\n'


def test_faults_of_a_line() -> None:
    found = [f.now for f in faults_of("toy.py", TOY) if f.was.startswith(("if a", "n = n"))]
    assert found == [
        "if not (a > b):",
        "if a >= b:",
        "pass",
        "n = n * 2",
        "n = n // 1",
        "n = n // 3",
    ]


@pytest.mark.parametrize(
    ("line", "faulty"),
    [
        (
            "if k == 0 and ref[u] == 0: pass",
            {
                "if True and ref[u] == 0: pass",
                "if k == 0 or ref[u] == 0: pass",
                "if k != 0 and ref[u] == 0: pass",
            },
        ),
        ("mask = len(b) - 1", {"mask = len(b)", "mask = len(b) + 1", "mask = len(b) - 2"}),
        ("if not x in y: pass", {"if x in y: pass", "if not x not in y: pass"}),
        ("m = max(a, -b)", {"m = min(a, -b)", "m = max(a, b)"}),
        ("k |= 1 << f(True)", {"k &= 1 << f(True)", "k |= 1 >> f(True)", "k |= 1 << f(False)"}),
    ],
    ids=["and", "minus", "not", "max", "bits"],
)  # fmt: skip
def test_faults_made(line: str, faulty: set[str]) -> None:
    assert faulty <= {f.now for f in faults_of("x.py", f"{line}\n")}


@pytest.mark.parametrize(
    "text",
    ["if a > b: a = b", "if b <= a: a = b", "if a < b.c[1]: b.c[1] = a", "x = a if a < b else b"],
)
def test_what_is_said_of_equal_numbers_is_no_fault_where_one_takes_the_place_of_the_other(text: str) -> None:
    """Another number, another place or one step more: then it is."""
    signs = {"<", "<=", ">", ">="}

    def signs_of(text: str) -> set[str]:
        return signs & set(text.split())

    assert all(signs_of(f.now) <= signs_of(text) for f in faults_of("x.py", f"{text}\n"))
    for other in (text.replace("= a", "= d").replace("= b", "= d"), text.replace("if a", "if d")):
        if other != text and other.split("if")[1] != text.split("if")[1]:
            assert any(not signs_of(f.now) <= signs_of(other) for f in faults_of("x.py", f"{other}\n")), other


def test_a_line_that_nobody_was_seen_to_run_concerns_all_tests_of_its_file() -> None:
    fault = next(f for f in faults_of("x.py", "def f(a):\n    return a + 1\n") if f.kind == "arithmetic")
    lines = {"t::cuts": {"x.py": [1]}, "t::other": {}}
    made = record.Record([{"seconds": dict.fromkeys(lines, 0.1), "lines": lines}])
    assert made.tests_of(fault) == ["t::cuts"]


def test_a_test_with_a_tracer_of_its_own_concerns_every_line_of_the_files_it_runs() -> None:
    """One that cuts calls short, say: what it runs under that is not recorded."""
    fault = next(f for f in faults_of("x.py", "def f(a):\n    return a + 1\n") if f.kind == "arithmetic")
    lines = {"t::cuts": {"x.py": [1]}, "t::other": {"x.py": [2]}, "t::more": {}}
    made = record.Record([{"seconds": dict.fromkeys(lines, 0.1), "lines": lines, "traced": ["t::cuts"]}])
    assert made.tests_of(fault) == ["t::cuts", "t::other"]


def test_what_runs_at_import_concerns_tests_that_look_at_it() -> None:
    """A number that is compared, a default that is read: no line of the file is run for that."""
    number, *_ = faults_of("x.py", "N = 1\n")
    lines = {"": {"x.py": [1]}, "t::calls": {"x.py": [2]}}
    made = record.Record([{"seconds": {"t::calls": 0.2, "t::looks": 0.1}, "lines": lines}])
    assert made.tests_of(number) == ["t::looks", "t::calls"]


def test_a_fault_keeps_its_name_when_lines_move() -> None:
    before = faults_of("toy.py", TOY)
    after = faults_of("toy.py", "# a line\n\n" + TOY)
    assert [f.id for f in before] == [f.id for f in after]
    assert [f.line + 2 for f in before] == [f.line for f in after]
    assert len({f.id for f in before}) == len(before)


def test_faults_of_the_package_compile() -> None:
    """Nearly all: those of one file, which has a bit of everything."""
    text = (ROOT / "mpy_kv" / "paged" / "prefix.py").read_text(encoding="utf-8")
    found = faults_of("prefix.py", text)
    assert len(found) > 200
    assert all(compiles(f.applied(text)) for f in found)


def test_the_same_seed_chooses_the_same_faults() -> None:
    faults = run.all_faults(ROOT, "paged/prefix.py")
    one, two, other = (run.chosen(ROOT, faults, seed, 10, [])[0] for seed in (1, 1, 2))
    assert one == two != other


def test_a_fault_more_or_less_leaves_the_other_choices() -> None:
    faults = run.all_faults(ROOT, "paged/prefix.py")
    before = run.chosen(ROOT, faults, 1, 10, [])[0]
    after = run.chosen(ROOT, [f for f in faults if f != before[3]], 1, 10, [])[0]
    assert after[:9] == before[:3] + before[4:]


def test_explained_faults_are_passed_over() -> None:
    """As many as asked for are chosen in their place, and they are counted apart."""
    faults = run.all_faults(ROOT, "paged/prefix.py")
    (first, second, *others), none = run.chosen(ROOT, faults, 1, 12, [])
    known = [
        {"file": f.file, "in": f.function, "was": f.was, "now": f.now, "why": "x"} for f in (first, second)
    ]
    assert run.chosen(ROOT, faults, 1, 10, known) == (others, 2)
    assert none == 0
    assert run.chosen(ROOT, [first, second], 1, 10, known) == ([], 2)


def test_every_fault_that_is_explained_can_be_made() -> None:
    """The list has no entry that the tree has left behind, and none without a reason."""
    known = run.explained()
    faults = run.all_faults(ROOT)
    by_line: dict[tuple[str, str], list[Fault]] = {(f.was, f.now): [] for f in faults}
    for fault in faults:
        by_line[fault.was, fault.now].append(fault)
    gone = [e for e in known if not any(run.matches(f, e) for f in by_line.get((e["was"], e["now"]), []))]
    assert gone == []
    assert [e for e in known if len(e["why"]) < 15] == []


def test_a_default_concerns_all_tests_of_its_file() -> None:
    """Not only the one that imported the file."""
    default, *_ = faults_of("x.py", "def f(a, n=1):\n    return a + n\n")
    assert (default.kind, default.now) == ("default", "def f(a, n=0):")
    lines = {"t::imports": {"x.py": [1]}, "t::calls": {"x.py": [2]}, "t::other": {}}
    made = record.Record([{"seconds": dict.fromkeys(lines, 0.1), "lines": lines}])
    assert made.tests_of(default) == ["t::calls", "t::imports"]


def test_files_that_are_broken_and_asked() -> None:
    names = [f.relative_to(ROOT).as_posix() for f in plan.broken(ROOT)]
    for part in ("pools/fixed", "paged/prefix", "eviction/linked_list", "admission/admission",
                 "int4_blocks/cache", "token_eviction/cache", "sequence", "cache", "per_layer"):  # fmt: skip
        assert f"mpy_kv/{part}.py" in names
    assert len(plan.tests(ROOT)) > 20


@pytest.mark.parametrize(("missed", "status"), [(0, 0), (1, 0), (2, 1)], ids=["0", "1", "2"])
def test_of_20_faults_19_must_be_found(
    missed: int, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that no test found are listed in any case."""

    def judge(*given: Any) -> None:
        for at, fault in enumerate(given[1]):
            given[3](run.Verdict(fault, "missed" if at < missed else "failed", "", 1.0))

    monkeypatch.setattr(plan, "OUT", tmp_path)
    monkeypatch.setattr(run, "Copy", lambda *_: SimpleNamespace(ask=None, close=lambda: None))
    monkeypatch.setattr(record, "make", lambda *_: None)
    monkeypatch.setattr(run, "judge_all", judge)
    done = CliRunner().invoke(mutants.main, ["--seed", "1", "--count", "20", "--only", "paged/prefix.py"])
    assert done.exit_code == status, done.output
    assert done.output.count("missed: ") == missed
    assert f"{20 - missed} of 20 found ({(20 - missed) / 20:.1%}), {missed} missed" in done.output


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[run.Copy, record.Record, Path]]:
    """A tree of one file, a copy of it and the record of its tests."""
    root = tmp_path / "toy tree"
    files = {"mpy_kv/toy.py": TOY, "host_tests/test_toy.py": TESTS, "pyproject.toml": PYPROJECT}
    files["host_tests/conftest.py"] = "import sys\nsys.path.insert(0, 'mpy_kv')\n"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(plan, "BROKEN", ("mpy_kv/*.py",))
    monkeypatch.setattr(plan, "TESTS", ("test_toy.py",))
    monkeypatch.setattr(plan, "DEVICE", {"mpy_kv": ()})
    monkeypatch.setattr(run, "TEST_LIMIT_S", 0.3)
    copy = run.Copy(root, tmp_path / "copy", tmp_path / "record")
    try:
        yield copy, record.make(root, tmp_path / "record", copy.ask, lambda _: None), root
    finally:
        copy.close()


def test_what_is_said_of_a_fault(toy: tuple[run.Copy, record.Record, Path]) -> None:
    """Found by the test that runs its line, by a loop without end; missed; explained."""
    copy, made, root = toy
    by_now = {f.now: f for f in run.all_faults(root)}
    asked = ["if not (a > b):", "n = n // 1", "return x // 2", "if a >= b:"]
    same = by_now[asked[-1]]
    known = [{"file": same.file, "in": "most", "was": same.was, "now": same.now, "why": "they are equal"}]
    told: list[run.Verdict] = []
    found = run.judge_all([copy], [by_now[now] for now in asked], made, told.append, known)
    assert [(v.how, v.by.split("::")[-1]) for v in found] == [
        ("failed", "test_most"),
        ("timeout", "test_halved"),
        ("missed", ""),
        ("explained", "they are equal"),
    ]
    assert told == found
    assert (copy.folder / "mpy_kv/toy.py").read_text(encoding="utf-8") == TOY
    assert (root / "mpy_kv/toy.py").read_text(encoding="utf-8") == TOY


def test_tests_that_fail_without_a_fault_are_named(toy: tuple[run.Copy, record.Record, Path]) -> None:
    copy, _, root = toy
    (copy.folder / "mpy_kv/toy.py").write_text(TOY.replace("n // 2", "n // 3 + 0"), encoding="utf-8")
    with pytest.raises(record.Broken, match=r"test_toy\.py fails without any fault"):
        record.make(root, root.parent / "another", copy.ask, lambda _: None)
