"""Native kernels are compiled one by one, and a set of some Thumb kernels is filled up with viper's."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mpy_kv import sources
from mpy_kv.kernels import kernel_registry as family

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


HEAD = SOURCE[SOURCE.index("import micropython") : SOURCE.index("@")]


@pytest.fixture(autouse=True)
def narrow(monkeypatch) -> None:
    """As on a board."""
    monkeypatch.setattr(sources, "WIDE", False)


def texts_of(source: str) -> list[tuple[str, str]]:
    return [(name, bytes(text).decode()) for name, text in sources.functions(io.BytesIO(source.encode()))]


def test_each_function_comes_with_what_precedes_the_first() -> None:
    parts = texts_of(SOURCE)
    assert [name for name, _ in parts] == ["triple", "broken", "wide"]
    assert all(text[len(HEAD) :].startswith("@micropython.viper\ndef ") for _, text in parts)
    assert "".join(text[len(HEAD) :] for _, text in parts) == SOURCE[SOURCE.index("@") :]


def test_constants_that_a_function_has_no_use_for_are_comments() -> None:
    """None of what it needs, ever; of the others one may stay that a longer function before has needed."""
    heads = [text[: len(HEAD)] for _, text in texts_of(SOURCE)]
    assert heads == [
        HEAD.replace("_WIDE", "#WIDE"),
        HEAD.replace("_WIDE", "#WIDE").replace("_THREE", "#THREE"),
        HEAD.replace("_THREE", "#THREE"),
    ]


def test_a_text_ends_where_its_function_does_though_the_one_before_was_longer() -> None:
    short = "@micropython.viper\ndef f():\n    pass\n"
    long = "@micropython.viper\ndef g():\n    return _THREE\n" + "    # and more\n" * 9
    parts = texts_of(HEAD + long + short)
    assert [text[len(HEAD) :] for _, text in parts] == [long, short]


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("_A = const(1)\n_B = const(2)\n", [0, b"_A", 14, b"_B"]),
        ("x = 1\n_A = const(1)", [6, b"_A"]),
        ("A = const(1)\n", []),  # what a module is asked for
        ("_A = 1\n# _A = const(1)\n", []),
        ("", []),
    ],
)
def test_constants_are_found_in_a_head(head: str, found: list[object]) -> None:
    assert sources.constants_of(head.encode()) == found


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
