"""Native kernels are compiled one by one, and a set of some Thumb kernels is filled up with viper's."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mpy_kv import port
from mpy_kv.kernels import family

SOURCE = '''"""A file of kernels."""

import micropython
from micropython import const

_WIDE = const(0)
_THREE = const(3)


@micropython.viper
def triple(x: int) -> int:
    return x * _THREE


@micropython.viper
def broken(x: int) -> int:
    return x ** "two"


@micropython.viper
def wide() -> int:
    if _WIDE:
        return 64
    return 32
'''


def test_each_function_comes_with_what_precedes_the_first() -> None:
    parts = list(port._functions(io.StringIO(SOURCE)))
    head = SOURCE[SOURCE.index("import micropython") : SOURCE.index("@")]
    assert [name for name, _ in parts] == ["triple", "broken", "wide"]
    assert all(text.startswith(head + "@micropython.viper\ndef ") for _, text in parts)
    assert "".join(text[len(head) :] for _, text in parts) == SOURCE[SOURCE.index("@") :]


LOAD = """
import sys
from mpy_kv.port import load_native
names = load_native(sys.argv[1], skip=("broken",))
print(names["triple"](14), names["wide"](), "broken" in names)
try:
    load_native(sys.argv[1])
except Exception as error:
    print(type(error).__name__)
"""


def test_what_is_skipped_is_not_compiled(upy, tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(SOURCE)
    assert upy.run(LOAD, [tmp_path / "kernels.py"]) == "42 64 False\nViperTypeError\n"


@pytest.mark.parametrize("complete", [False, True])
def test_what_thumb_lacks_is_taken_from_viper(complete: bool, monkeypatch) -> None:
    asked = []

    def load(path: str, package: str, skip=()) -> dict:
        asked.append((path, package, sorted(skip)))
        names = ["qk", "av"] if path.endswith("viper.py") or complete else ["qk"]
        return {name: path for name in names if name not in skip}

    monkeypatch.setattr(family, "load_native", load)
    monkeypatch.setattr(family, "THUMB", True)
    found = family.Family("some.kernels", "some/kernels/", ("qk", "av"))._thumb()
    thumb, viper = "some/kernels/thumb.py", "some/kernels/viper.py"
    assert found == {"qk": thumb, "av": thumb if complete else viper}
    assert asked[0] == (thumb, "some.kernels", [])
    assert asked[1:] == ([] if complete else [(viper, "some.kernels", ["qk"])])
