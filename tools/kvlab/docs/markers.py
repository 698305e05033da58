"""Figures on a page of Markdown: `<!-- NAME -->figure<!-- end -->`, invisible once rendered.

In a sentence or a cell of a table it is one line; a block, such as a table, begins and ends with a line
break. All else on the page is written by hand. What stands in code (fenced, indented by four, or between
backticks) is shown as it is, so markers there are none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kvlab import paths
from kvlab.errors import BadInput

_MARKER = re.compile(r"<!-- ([a-z0-9_]+) -->")
_CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|^ {4,}[^\n]*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_LINE_START = re.compile(r"[\s>*+-]*(\d+[.)]\s+)?")
_END = "end"


@dataclass(frozen=True)
class Figure:
    """`text` between the markers of `name`, at `start` .. `end` of its page, on that line of it."""

    name: str
    text: str
    page: Path
    line: int
    start: int
    end: int

    @property
    def where(self) -> str:
        return f"{paths.shown(self.page)}:{self.line}"

    @property
    def block(self) -> bool:
        return self.text.startswith("\n")


def pages() -> list[Path]:
    """Every page that may hold figures."""
    root = paths.ROOT
    return [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("boards/*/README.md"))]


def figures(page: Path) -> list[Figure]:
    """The figures of a page in their order. BadInput names the line of a marker that is out of place."""
    return parse(text_of(page), page)


def text_of(page: Path) -> str:
    try:
        return page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadInput(f"{paths.shown(page)}: not a page of text: {error}") from error


def parse(text: str, page: Path) -> list[Figure]:
    shown = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    found: list[Figure] = []
    opened: re.Match[str] | None = None
    for marker in _MARKER.finditer(shown):
        line = shown.count("\n", 0, marker.start()) + 1
        where = f"{paths.shown(page)}:{line}"
        if (marker[1] == _END) is (opened is None):
            raise BadInput(
                f"{where}: <!-- {marker[1]} --> "
                + ("closes no figure" if opened is None else f"within the figure {opened[1]}")
            )
        if opened is None:
            opened = marker
            continue
        line = shown.count("\n", 0, opened.start()) + 1
        inner = text[opened.end() : marker.start()]
        figure = Figure(opened[1], inner, page, line, opened.end(), marker.start())
        _refuse_misplaced(shown, opened, figure)
        found.append(figure)
        opened = None
    if opened is not None:
        line = shown.count("\n", 0, opened.start()) + 1
        raise BadInput(f"{paths.shown(page)}:{line}: <!-- {opened[1]} --> without <!-- end -->")
    return found


def _refuse_misplaced(shown: str, opened: re.Match[str], figure: Figure) -> None:
    """BadInput where Markdown would not show the figure as what it is."""
    if figure.block:
        if not figure.text.endswith("\n") or len(figure.text) < 2:
            raise BadInput(f"{figure.where}: the figure {figure.name} must end with its line")
        return
    if "\n" in figure.text:
        raise BadInput(f"{figure.where}: the figure {figure.name} runs over two lines")
    before = shown[shown.rfind("\n", 0, opened.start()) + 1 : opened.start()]
    if _LINE_START.fullmatch(before):
        raise BadInput(
            f"{figure.where}: the figure {figure.name} begins a line, which Markdown then takes for HTML: put"
            " a word before it"
        )


def rewritten(text: str, page: Path, new: Mapping[str, str]) -> str:
    """The text of a page with `new`, figures by name, in place of what it has of them."""
    for figure in reversed(parse(text, page)):
        if figure.name in new:
            value = new[figure.name]
            value = f"\n{value}\n" if figure.block else value
            text = text[: figure.start] + value + text[figure.end :]
    return text
