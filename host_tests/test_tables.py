"""Tables fit the terminal, or 80 columns, whatever is in them, and lose nothing."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from kvlab import output

TOOLS = Path(output.__file__).parent


def shown(monkeypatch: pytest.MonkeyPatch, width: int | None, *what: object) -> list[str]:
    """The lines of a table on a terminal of that width; None: where there is no terminal."""
    with monkeypatch.context() as patch:
        plain, into = output._console, io.StringIO()
        how = {} if width is None else {"force_terminal": True, "color_system": None, "width": width}
        patch.setattr(output, "_console", lambda **more: plain(**{**how, "file": into, **more}))
        patch.delenv("COLUMNS", raising=False)
        output.table(*what)  # type: ignore[arg-type]
        return into.getvalue().splitlines()


WORDS = st.text("abcdefghij0123456789,.-_/", min_size=1, max_size=100)
CELLS = st.lists(WORDS, max_size=6).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> tuple[str, list[list[str]], list[str]]:
    columns = draw(st.integers(1, 14))
    rows = draw(st.lists(st.lists(CELLS, min_size=columns, max_size=columns), min_size=1, max_size=4))
    header = draw(st.one_of(st.just([]), st.lists(CELLS, min_size=columns, max_size=columns)))
    return draw(CELLS), rows, header


def letters(cells: Sequence[str]) -> list[str]:
    return sorted("".join("".join(cells).split()))


@settings(max_examples=60, deadline=None)
@given(made=tables(), width=st.sampled_from([None, 80, 40, 120]))
def test_a_table_fits_and_loses_nothing(
    made: tuple[str, list[list[str]], list[str]], width: int | None
) -> None:
    title, rows, header = made
    lines = shown(pytest.MonkeyPatch(), width, title, rows, header)
    assert max(map(cell_len, lines)) <= (width or 80)
    told = [line.replace("\u2500", "") for line in lines]
    parts = len(output._parts(list(zip(*rows, header or [""] * len(rows[0]), strict=True)), width or 80))
    first = [row[0] for row in [*rows, *([header] if header else [])]]
    rest = [cell for row in [*rows, header] for cell in row[1:]]
    assert letters(told) == letters([title, *rest, *first * parts])


def test_columns_that_do_not_fit_go_on_below(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(name, *(f"{1_000_000 * n:,}" for n in range(1, 10))) for name in ("lru", "optimal")]
    lines = shown(monkeypatch, None, "misses", rows, ("capacity", *map(str, range(9))))
    assert max(map(len, lines)) <= 80
    assert len([line for line in lines if line.split()[:1] == ["lru"]]) == 2  # the name in both parts
    assert len([line for line in lines if line.split()[:1] == ["capacity"]]) == 2
    numbers = re.findall(r"[0-9]{1,3},000,000", "\n".join(lines))
    assert sorted(numbers) == sorted(cell for row in rows for cell in row[1:])


def test_no_word_is_cut_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    row = ("stories260k", "two words of text and more", "671,025,397,760")
    for width in (80, 40, 34, 31):
        text = "\n".join(shown(monkeypatch, width, "", [row], ("name", "", "of\nall")))
        for word in (*row[0].split(), *row[1].split(), *row[2].split()):
            assert word in text, width
    text = shown(monkeypatch, 20, "", [row])
    assert max(map(len, text)) <= 20


def test_a_path_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/".join(["", *["folder"] * 40, "model.mkvm"])
    lines = shown(monkeypatch, None, "", [("model", path), ("tokens", "40")])
    assert max(map(len, lines)) <= 80
    assert "".join("".join(line.split()) for line in lines) == "model" + path + "tokens40"


def test_every_table_of_the_tools_is_made_here() -> None:
    makers = [path.name for path in TOOLS.rglob("*.py") if "rich.table" in path.read_text(encoding="utf-8")]
    assert makers == ["output.py"]
