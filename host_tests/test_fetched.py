"""What is not to be had ends a test by its name: skipped here, failed on CI. Half an install is none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import fetched
import pytest
import webassembly


def unavailable(*packages: str) -> Path:
    raise fetched.Missing(f"{packages[0]}: no network")


def test_skipped_by_name(monkeypatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="stubs==1: no network"):
        fetched.need(unavailable, "stubs==1")


def test_failed_on_ci(monkeypatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="stubs==1: no network"):
        fetched.need(unavailable, "stubs==1")


def test_no_program(monkeypatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(fetched.Missing, match="^thing@1: no npm"):
        fetched.npm("thing@1")
    with pytest.raises(fetched.Missing, match="micropython-webassembly-pyscript: no node"):
        webassembly.fetch()


def test_a_failed_install_leaves_nothing(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(fetched.Missing, match="^no name at all==1: .*[Ii]nvalid requirement"):
        fetched.pip("no name at all==1")
    assert list(fetched.cache().iterdir()) == []


def test_installed_once(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    installs = []

    def install(line: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        installs.append(line[-1])
        Path(line[line.index("--target") + 1]).mkdir()
        return subprocess.CompletedProcess(line, 0, "", "")

    monkeypatch.setattr(subprocess, "run", install)
    first = fetched.pip("thing==1")
    assert fetched.pip("thing==1") == first
    assert first.parent == tmp_path / "kvlab" / "tests"
    assert fetched.pip("thing==2") != first
    assert installs == ["thing==1", "thing==2"]
