"""Faults chosen by a seed, each put into a copy of the tree, tests asked until one fails."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from mutation import plan
from mutation.faults import Fault, compiles, faults_of
from mutation.record import Record, imports
from unix_port import processes

# The first round: so many of the fastest tests, of so many seconds and files at most.
FIRST_TESTS, FIRST_S, FIRST_FILES = 40, 2.0, 3
# No fault is given more than this of recorded seconds of tests.
MOST_S = 12.0
TEST_LIMIT_S = 3.0  # of processor time, for a test that takes next to none
ROUND_LIMIT_S = 120  # of processor time, for what a test's own limit does not end
DEVICE_LIMIT_S = 60


@dataclass
class Verdict:
    fault: Fault
    how: str  # failed, timeout, killed; missed; explained
    by: str  # test or reason
    cpu_s: float


def all_faults(root: Path, only: str | None = None) -> list[Fault]:
    """Of every file, or of those whose path ends with, or contains as a folder, `only`."""
    found = []
    for file in plan.broken(root):
        name = file.relative_to(root).as_posix()
        if only is None or name.endswith(only) or f"{only.rstrip('/')}/" in name:
            found += faults_of(name, file.read_text(encoding="utf-8"))
    return found


def chosen(
    root: Path, faults: Sequence[Fault], seed: int, count: int, known: Sequence[dict[str, str]]
) -> tuple[list[Fault], int]:
    """`count` of the faults that compile and are not explained; how many explained ones were passed over.

    A change of the code changes the choice no more than the faults: each has its own place for a seed.
    """
    order = sorted(faults, key=lambda fault: hashlib.sha256(f"{seed} {fault.id}".encode()).digest())
    taken: list[Fault] = []
    passed_over = 0
    texts: dict[str, str] = {}
    for fault in order:
        if len(taken) == count:
            break
        text = texts.setdefault(fault.file, (root / fault.file).read_text(encoding="utf-8"))
        if reason(fault, known):
            passed_over += 1
        elif compiles(fault.applied(text)):
            taken.append(fault)
    return taken, passed_over


def explained(path: Path = plan.EQUIVALENT) -> list[dict[str, str]]:
    """The list of faults that change nothing that anybody could see, each with the reason."""
    found: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def reason(fault: Fault, known: Sequence[dict[str, str]]) -> str | None:
    """Why a fault is known to have no effect."""
    return next((each["why"] for each in known if matches(fault, each)), None)


def matches(fault: Fault, entry: dict[str, str]) -> bool:
    """Whether an entry of the list is of this fault; its file and function may hold a `*`."""
    return (
        (entry["was"], entry["now"]) == (fault.was, fault.now)
        and fnmatchcase(fault.file, entry["file"])
        and fnmatchcase(fault.function, entry["in"])
    )


class Copy:
    """A copy of the tree with a worker that runs tests on it."""

    def __init__(self, root: Path, folder: Path, preload: Path) -> None:
        self.root, self.folder, self.preload = root, folder, preload
        shutil.rmtree(folder, ignore_errors=True)
        listed = processes.run(
            ["git", "ls-files", "-coz", "--exclude-standard"], cwd=root, capture_output=True, check=False
        )
        names = listed.stdout.decode().split("\0")
        if listed.returncode:  # no repository
            found = [root / "pyproject.toml", *(f for top in plan.COPIED for f in (root / top).rglob("*"))]
            names = [f.relative_to(root).as_posix() for f in found if "__pycache__" not in f.parts]
        for name in names:
            if name and (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        self.reports = folder.with_suffix(".report")
        worker = Path(__file__).with_name("worker.py")
        environment = {k: v for k, v in os.environ.items() if k not in ("KVLAB_DATA", "PYTEST_ADDOPTS")}
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.process = processes.popen(
            [sys.executable, str(worker), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order | {"imports": imports(self.preload)}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the process that runs the tests is gone")
        answer: dict[str, Any] = json.loads(line)
        return answer

    @contextlib.contextmanager
    def broken(self, fault: Fault) -> Iterator[None]:
        source, target = self.root / fault.file, self.folder / fault.file
        target.write_text(fault.applied(source.read_text(encoding="utf-8")), encoding="utf-8")
        # Never the time of the file that compiled bytes are kept of.
        os.utime(target, (1, 1))
        try:
            yield
        finally:
            shutil.copy2(source, target)

    def round(
        self, paths: Sequence[str], tests: Sequence[str] | None, record: Record, limit_s: int
    ) -> tuple[str, str, float]:
        """(how, test, processor seconds): how is "" when no test failed. tests None: all of the paths."""
        order: dict[str, Any] = {"do": "judge", "paths": paths, "tests": tests, "report": str(self.reports)}
        order["least_s"] = TEST_LIMIT_S
        seconds = {t: record.seconds.get(t, 0.0) for t in tests or ()}
        done = self.ask(order | {"seconds": seconds, "limit_s": limit_s})
        if self.reports.exists():
            said = json.loads(self.reports.read_text(encoding="utf-8"))
            return said["how"], said["by"], done["cpu_s"]
        if done["status"] in (0, 5):  # passed; nothing to run
            return "", "", done["cpu_s"]
        return "killed", f"exit status {done['status']}", done["cpu_s"]

    def judge(self, fault: Fault, record: Record) -> Verdict:
        """Ask the tests that concern a fault, cheap ones first."""
        spent = 0.0
        with self.broken(fault):
            for tests in _rounds(record.tests_of(fault), record):
                paths = sorted({t.split("::")[0] for t in tests})
                how, by, cpu_s = self.round(paths, tests, record, ROUND_LIMIT_S)
                spent += cpu_s
                if how:
                    return Verdict(fault, how, by, spent)
            paths = [f"host_tests/{name}" for name in _device(fault.file)]
            how, by, cpu_s = self.round(paths, None, record, DEVICE_LIMIT_S)
            return Verdict(fault, how or "missed", by, spent + cpu_s)

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        for report in (self.reports, Path(f"{self.reports}.log")):
            report.unlink(missing_ok=True)


def _device(file: str) -> tuple[str, ...]:
    while file not in plan.DEVICE:
        file = file.rsplit("/", 1)[0]
    return plan.DEVICE[file]


def _rounds(tests: Sequence[str], record: Record) -> Iterator[list[str]]:
    first: list[str] = []
    files: set[str] = set()
    spent = 0.0
    for test in tests:
        file = test.split("::")[0]
        if len(first) < FIRST_TESTS and (file in files or len(files) < FIRST_FILES) and spent < FIRST_S:
            first.append(test)
            files.add(file)
            spent += record.seconds[test]
    if first:
        yield first
    rest = []
    for test in tests:
        if test not in first and spent + record.seconds[test] <= MOST_S:
            rest.append(test)
            spent += record.seconds[test]
    if rest:
        yield rest


def judge_all(
    copies: Sequence[Copy],
    faults: Sequence[Fault],
    record: Record,
    told: Callable[[Verdict], None],
    known: Sequence[dict[str, str]] = (),
) -> list[Verdict]:
    """Each fault judged, in the order given, unless it is known; `told` of each when it is."""
    verdicts: dict[str, Verdict] = {}
    left = iter(list(faults))
    lock = threading.Lock()

    def work(copy: Copy) -> None:
        while True:
            with lock:
                fault = next(left, None)
            if fault is None:
                return
            why = reason(fault, known)
            verdict = Verdict(fault, "explained", why, 0.0) if why else copy.judge(fault, record)
            with lock:
                verdicts[fault.id] = verdict
                told(verdict)

    with ThreadPoolExecutor(len(copies)) as pool:
        for done in [pool.submit(work, copy) for copy in copies]:
            done.result()
    return [verdicts[fault.id] for fault in faults if fault.id in verdicts]
