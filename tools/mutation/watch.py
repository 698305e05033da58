"""What runs inside pytest: tests chosen and ordered, each with a limit of processor time; lines recorded."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

TIMES = 10  # of what a test took when it was recorded
WAITS_S = 60  # what a test may wait, for others and for the processor
# Fixtures that start other processes, whose lines nobody sees here.
UNIX = {"upy", "measured"}
BOARDS = {"qemu", "qemu_riscv", "kvlab", "webassembly"}


def _fixtures(item: pytest.Item) -> set[str]:
    """Names of a test's fixtures, those that it asks for by a parameter too."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    return {*getattr(item, "fixturenames", ()), *(p for p in params.values() if isinstance(p, str))}


class Chosen:
    """Runs these tests alone, in this order, and writes into `report` which one failed first. tests None:
    those that drive a process of their own, all of them. A test may take TIMES its recorded `seconds` of
    processor time, and `least_s` in any case."""

    def __init__(
        self, tests: Sequence[str] | None, seconds: Mapping[str, float], least_s: float, report: Path
    ) -> None:
        self.rank = None if tests is None else {test: at for at, test in enumerate(tests)}
        self.seconds = seconds
        self.least_s = least_s
        self.report = report

    def say(self, how: str, by: str) -> None:
        self.report.write_text(json.dumps({"how": how, "by": by}), encoding="utf-8")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        rank = self.rank
        if rank is None:
            items[:] = [i for i in items if _fixtures(i) & UNIX and not _fixtures(i) & BOARDS]
        else:
            items[:] = sorted((i for i in items if i.nodeid in rank), key=lambda i: rank[i.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.say("failed", report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        def over(*_: Any) -> None:
            self.say("timeout", item.nodeid)
            os._exit(1)

        signal.signal(signal.SIGPROF, over)
        signal.signal(signal.SIGALRM, over)  # one that waits for what never comes takes no processor time
        limit = max(self.least_s, TIMES * self.seconds.get(item.nodeid, self.least_s))
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, WAITS_S + limit)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.say("failed", report.nodeid)


class Recorder:
    """Records of each test what it cost and which lines of `files` it ran; `report`: see record.py."""

    def __init__(self, files: Sequence[Path], root: Path, report: Path) -> None:
        import coverage

        self.files, self.root, self.report = files, root, report
        self.cover = coverage.Coverage(data_file=None, config_file=False, include=[str(f) for f in files])
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.test = ""  # that runs now
        self.traced: set[str] = set()  # tests with a tracer of their own, under which no line is recorded

    def pytest_sessionstart(self) -> None:
        self.cover.start()
        real = sys.settrace

        def noted(tracer: Any) -> None:
            self.traced |= {self.test} - {""}
            real(tracer)

        sys.settrace = noted

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [i for i in items if not _fixtures(i) & (UNIX | BOARDS)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        # What a fixture runs may be shared by all tests of the file.
        self.cover.switch_context(item.nodeid.split("::")[0])
        try:
            return (yield)
        finally:
            self.cover.switch_context(item.nodeid)
            self.test = item.nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        begun = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - begun, 3)
            self.cover.switch_context("")
            self.test = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self.cover.stop()
        data = self.cover.get_data()
        lines: dict[str, dict[str, list[int]]] = {}
        for file in self.files:
            name = file.relative_to(self.root).as_posix()
            for line, contexts in data.contexts_by_lineno(str(file)).items():
                for context in contexts:
                    lines.setdefault(context, {}).setdefault(name, []).append(line)
        found = {"seconds": self.seconds, "lines": lines, "failed": self.failed}
        found["traced"] = sorted(self.traced)
        self.report.write_text(json.dumps(found), encoding="utf-8")
