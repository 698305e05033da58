"""What tests need and the tree does not hold: pinned packages of pip and npm, kept in the user's cache.

Absent and not to be had, a test that needs one is skipped by the package's name; with CI=true it fails.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from unix_port import processes


class Missing(Exception):
    """It cannot be had here; the message names it and says why."""


def cache() -> Path:
    """`$XDG_CACHE_HOME/kvlab/tests`, else `~/.cache/kvlab/tests`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kvlab" / "tests"


def pip(*requirements: str) -> Path:
    """A folder with these packages alone: each is `name==version`, and what they need must be named too."""
    line = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    return _kept(requirements, lambda place: [*line, "--target", str(place), *requirements])


def npm(*packages: str) -> Path:
    """A folder whose node_modules has these packages. Each is `name@version`."""
    program = shutil.which("npm")
    if program is None:
        raise Missing(f"{packages[0]}: no npm on PATH")
    line = [program, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    return _kept(packages, lambda place: [*line, "--prefix", str(place), *packages])


def extra(module: str) -> pytest.MarkDecorator:
    """Marks a test that needs a module of the extra rp2040: without it the test is skipped by the module's
    name; with CI=true it runs, and fails."""
    absent = importlib.util.find_spec(module) is None and os.environ.get("CI") != "true"
    return pytest.mark.skipif(absent, reason=f"no {module}: pip install -e '.[rp2040]'")


def need(fetch: Callable[..., Path], *packages: str) -> Path:
    """fetch(*packages), or the end of the test that asked."""
    try:
        return fetch(*packages)
    except Missing as why:
        if os.environ.get("CI") == "true":
            pytest.fail(str(why), pytrace=False)
        pytest.skip(str(why))


def _kept(packages: tuple[str, ...], command: Callable[[Path], list[str]]) -> Path:
    """The folder that the command makes, made once."""
    key = hashlib.sha256(repr(sorted(packages)).encode()).hexdigest()[:8]
    readable = packages[0].lstrip("@").replace("/", "-").replace("@", "-").replace("==", "-")
    target = cache() / f"{readable}-{key}"
    if target.is_dir():
        return target
    cache().mkdir(parents=True, exist_ok=True)
    # Made aside and moved into place: whoever else is at it sees all of it or nothing.
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        place = Path(folder) / "made"
        try:
            done = processes.run(command(place), capture_output=True, text=True, timeout=300, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Missing(f"{packages[0]}: {error}") from error
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Missing(f"{packages[0]}: {said[-1] if said else 'cannot be installed'}")
        try:
            place.rename(target)
        except OSError:
            if not target.is_dir():
                raise
    return target
