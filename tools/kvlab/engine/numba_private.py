"""What kvlab uses of numba that numba promises to nobody, and the versions in which it was seen to be there.

Here and in replay/prefetch.py alone. `check` comes before any use, in compiled.numba(): another version is
refused in one line, instead of failing anywhere or, worse, finding no stored code and compiling for minutes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

# The first version that is known to have these names, and the first that is not: as in pyproject.toml.
# To raise the second: install that version and run host_tests/test_engine.py and test_replay.py.
FIRST, NOT_YET = (0, 59), (0, 69)

Function = Callable[..., Any]


class Unknown(Exception):
    """A version in which nobody has looked for these names. One line, with the remedy."""


def check(version: str) -> None:
    """Unknown for a version that is not one of those from FIRST to NOT_YET."""
    parts = version.split(".")[:2]
    if not all(part.isdecimal() for part in parts) or not FIRST <= tuple(map(int, parts)) < NOT_YET:
        raise Unknown(
            f"numba {version}: kvlab uses names of its inside that are known in {_shown(FIRST)} to versions"
            f" below {_shown(NOT_YET)}: install one with"
            f" `.venv/bin/pip install 'numba>={_shown(FIRST)},<{_shown(NOT_YET)}'`"
        )


def _shown(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def keep_code_in(folder: Path) -> None:
    """Machine code is stored there, instead of beside each source."""
    config: Any = importlib.import_module("numba.core.config")
    config.CACHE_DIR = str(folder)


def adapter(numba: ModuleType, function: Function) -> Any:
    """As njit, of a function that does not count the users of its arrays."""
    return numba.njit(function, cache=True, _nrt=False)


def name(done: Any, name: str) -> None:
    """A compiled function's own name, by which numba finds stored closures that hold it; else it has a new
    one in each process."""
    done._set_uuid(name)


def name_of(value: Any) -> str | None:
    """That of a compiled function; None of what is none."""
    found: str | None = getattr(value, "_uuid", None)
    return found


def errors(numba: ModuleType) -> Any:
    """Module of the exceptions and warnings."""
    return numba.core.errors
