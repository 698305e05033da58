"""The processor time of a run, of all its processes, printed before pytest's summary.

`make test` and `make test-long` have limits of it, in the Makefile; time on the wall would be that of
whatever else the machine does. Counted is what has ended and was waited for: workers, emulators, commands.
Session fixtures have closed their emulators, and the workers have ended, when pytest prints its summary.
"""

from __future__ import annotations

import resource

import pytest


def seconds() -> float:
    """Of this process and its children that have ended, theirs included."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def minutes(seconds: float) -> str:
    """`4 min 07 s`."""
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60:02d} s"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not terminalreporter.config.option.collectonly:
        terminalreporter.write_line(f"processor time: {minutes(seconds())}")
