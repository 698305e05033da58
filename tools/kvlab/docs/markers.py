"""Figures on a page of Markdown: `<!-- NAME -->figure<!-- end -->`, invisible once rendered.

In a sentence or a cell of a table it is one line; a block, such as a table, begins and ends with a line
break. All else on the page is written by hand. What stands in code (fenced, indented by four, or between
backticks) is shown as it is, so markers there are none. Lines end as they did: LF, CRLF or CR.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from commandline import files
from commandline.errors import BadInput
from kvlab import paths

_MARKER = re.compile(r"<!-- ([a-z0-9_]+) -->")
_NEARLY = re.compile(r"<!-{2,}\s*([A-Za-z0-9_-]+?)\s*-{2,}>")
_CODE = re.compile(r"^(```|~~~).*?^\1[^\n]*$|^ {4,}[^\n]*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_LINE_START = re.compile(r"[\s>*+-]*(\d+[.)]\s+)?")
_LINE_END = re.compile(r"\r\n?|\n")
_END = "end"


@dataclass(frozen=True)
class Figure:
    """`text` between the markers of `name`, at `start` .. `end` of its page, on that line of it. Lines of
    `text` end in LF, those of the page in what they do."""

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


def figures(page: Path, known: Collection[str] = ()) -> list[Figure]:
    """The figures of a page in their order. BadInput names the line of a marker that is out of place, or of
    what is nearly one of a `known` figure."""
    return parse(text_of(page), page, known)


def text_of(page: Path) -> str:
    """A page with its own ends of lines, noted as an input."""
    files.reads(page, "the documentation")
    try:
        with page.open(encoding="utf-8", newline="") as file:
            return file.read()
    except OSError as error:
        raise BadInput(f"{paths.shown(page)}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{paths.shown(page)}: not a page of text: {error}") from error


def parse(page_text: str, page: Path, known: Collection[str] = ()) -> list[Figure]:
    # Where each character of `text` begins on the page: CRLF is one of them.
    at = [i for i, each in enumerate(page_text) if page_text[i - 1 : i + 1] != "\r\n"]
    text = page_text.replace("\r\n", "\n").replace("\r", "\n")
    shown = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
    _refuse_nearly(shown, page, known)
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
        figure = Figure(opened[1], inner, page, line, at[opened.end()], at[marker.start()])
        _refuse_misplaced(shown, opened, figure)
        found.append(figure)
        opened = None
    if opened is not None:
        line = shown.count("\n", 0, opened.start()) + 1
        raise BadInput(f"{paths.shown(page)}:{line}: <!-- {opened[1]} --> without <!-- end -->")
    return found


def _refuse_nearly(shown: str, page: Path, known: Collection[str]) -> None:
    """BadInput for a comment that only lacks the spaces or the case of a marker."""
    for comment in _NEARLY.finditer(shown):
        name = comment[1].lower().replace("-", "_")
        if (name == _END or name in known) and not _MARKER.fullmatch(comment[0]):
            line = shown.count("\n", 0, comment.start()) + 1
            told = " ".join(comment[0].split())
            raise BadInput(f"{paths.shown(page)}:{line}: {told} is no marker: write <!-- {name} -->")


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
            if figure.block:
                first = _LINE_END.match(text, figure.start)
                assert first is not None
                value = f"\n{value}\n".replace("\n", first[0])
            text = text[: figure.start] + value + text[figure.end :]
    return text
