"""What a run takes of the tests marked `exhaustive`: all of their cases, or a sample.

`make test-long` runs all, and so does pytest without `--sample`. `make test` runs `--sample=commit`: one
case in EVERY of each function, which ones by the hash of the commit checked out (without git by the version
of the package). Of the cases of a function, in their order, the sample is every tenth, from a first that
the key and the function's name give: ten commits in a row see about two cases in three, and one commit is
always one sample. The key is printed at the start and at the end, `--sample=KEY` repeats it anywhere.

A test whose one case is a loop over many takes the fixture `sampled` and loops over `sampled(cases)`: it runs
always, whole or with one in EVERY.

The process that starts the workers finds the key once, and they are told it.
"""

from __future__ import annotations

import hashlib
import itertools
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).resolve().parent.parent
EVERY = 10
COMMIT = "commit"
Case = TypeVar("Case")


def commit(root: Path = ROOT) -> str:
    """The hash of the commit checked out in that very folder, else the version of the package."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--show-prefix", "HEAD"], capture_output=True, text=True
        )
    except OSError:
        done = None
    if done is not None and done.returncode == 0:
        prefix, found = done.stdout.split("\n")[:2]
        if not prefix:
            return found
    text = (root / "mpy_kv" / "__init__.py").read_text()
    return next(line.split('"')[1] for line in text.splitlines() if line.startswith("__version__"))


def first(key: str, function: str) -> int:
    """The first case of the sample, 0..EVERY - 1."""
    return int.from_bytes(hashlib.sha256(f"{key} {function}".encode()).digest()[:8], "big") % EVERY


def sample(key: str, functions: Iterable[str]) -> list[bool]:
    """Whether a case is in the sample of that key, by the function of each case in order."""
    seen: Counter[str] = Counter()
    chosen = []
    for function in functions:
        chosen.append(seen[function] % EVERY == first(key, function))
        seen[function] += 1
    return chosen


class Sampled:
    """`sampled(cases)`: those that this run takes of a loop. `whole`: all of them."""

    def __init__(self, key: str | None, test: str) -> None:
        self.whole = not key
        self.at = slice(0, None) if self.whole else slice(first(str(key), test), None, EVERY)

    def __call__(self, cases: Iterable[Case]) -> Iterator[Case]:
        return itertools.islice(cases, self.at.start, None, self.at.step)


@pytest.fixture
def sampled(request: pytest.FixtureRequest) -> Sampled:
    """Of a test marked exhaustive."""
    assert request.node.get_closest_marker("exhaustive"), "sampled belongs to tests marked exhaustive"
    return Sampled(request.config.option.sample, request.node.nodeid)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        metavar="KEY",
        help=f"of exhaustive tests run one case in {EVERY}, chosen by KEY; `{COMMIT}` stands for the hash "
        "of the commit checked out, without git for the version. Default: run all",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.sample == COMMIT:
        config.option.sample = commit()


def told(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    key = session.config.option.sample
    if reporter is not None and key:
        reporter.write_line(f"of exhaustive tests one case in {EVERY}; the same ones again: --sample={key}")


# Not pytest_report_header, which -q does not print.
@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    told(session)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Again where the failures are."""
    told(terminalreporter._session)


# Before -m and -k: what a key picks does not depend on them.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    key = config.option.sample
    if not key:
        return
    exhaustive = [
        item
        for item in items
        if item.get_closest_marker("exhaustive") and "sampled" not in getattr(item, "fixturenames", ())
    ]
    chosen = sample(key, (item.nodeid.partition("[")[0] for item in exhaustive))
    left_out = {item for item, taken in zip(exhaustive, chosen, strict=True) if not taken}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
