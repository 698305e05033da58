"""A short pass of `make fuzz`: bytes that nobody should have written are refused, or make what is sound."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fuzz
import pytest


@pytest.mark.parametrize("name", fuzz.READERS)
def test_changed_bytes_are_refused_or_sound(name: str) -> None:
    taken = [fuzz.one(name, seed) for seed in range(50 if name == "story" else 120)]
    assert 0 < sum(taken) < len(taken)
    fuzz.bounded(name, 0)


def test_what_a_reader_does_wrong_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def wrong(data: bytes) -> bool:
        raise IndexError

    samples, _, mend = fuzz.READERS["snapshot: ring"]
    monkeypatch.setitem(fuzz.READERS, "snapshot: ring", (samples, wrong, mend))
    monkeypatch.setattr(sys, "argv", ["fuzz.py", "--only", "ring", "--seed", "7", "--count", "1"])
    with pytest.raises(IndexError):
        fuzz.main()
    assert capsys.readouterr().err == "--only 'snapshot: ring' --seed 7 --count 1\n"


def test_the_command() -> None:
    words = [sys.executable, str(Path(fuzz.__file__)), "--only", "ring", "--count", "20", "--seconds", "60"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("20 samples of 1 readers, ")
