"""The census: every test function and how many cases it has, in census.txt, so that none goes without a word.

`python host_tests/census.py` compares and says what has gone; `--write` takes what is there now. A change
that removes or merges cases writes it anew and shows in review what it removed. More cases need no new
census.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = Path(__file__).with_name("census.txt")
# What would make the collection another one.
FOREIGN = ("PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID")


def collect(root: Path = ROOT, env: Mapping[str, str] | None = None) -> list[str]:
    """The ids of all tests, whichever target runs them, in order, in a process of its own."""
    words = ["--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", "host_tests"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words],
        cwd=root,
        env={key: value for key, value in os.environ.items() if key not in FOREIGN} | dict(env or {}),
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stdout[-4000:] + done.stderr[-4000:])
    return [line for line in done.stdout.splitlines() if "::" in line]


def counted(ids: Sequence[str]) -> dict[str, int]:
    """Cases by function, in the order of names."""
    return dict(sorted(Counter(each.partition("[")[0].removeprefix("host_tests/") for each in ids).items()))


def written() -> dict[str, int]:
    """The census on file."""
    lines = (line.split() for line in FILE.read_text().splitlines())
    return {function: int(cases) for cases, function in lines}


def gone(now: Mapping[str, int], then: Mapping[str, int]) -> list[str]:
    """One line for every function that has fewer cases than it had."""
    return [
        f"{function}: {now.get(function, 0)} cases, there were {cases}"
        for function, cases in then.items()
        if now.get(function, 0) < cases
    ]


def main(words: Sequence[str]) -> int:
    now = counted(collect())
    if list(words) == ["--write"]:
        FILE.write_text("".join(f"{cases} {function}\n" for function, cases in now.items()))
        return 0
    missing = gone(now, written())
    print("\n".join(missing) or f"all there: {sum(now.values())} cases")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
