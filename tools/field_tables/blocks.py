"""The lines of `_NAME = const(n)` between marks in a file."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

from field_tables.table import Field, Table

# Where code of boards lies.
FOLDERS = ("mpy_kv", "boards", "host_tests/device")
_MARK = re.compile(r"^# (?:all )?fields: ", re.MULTILINE)
_BLOCK = re.compile(
    r"^# (all )?fields: (.+)\n(?:(?!# end of fields$|# (?:all )?fields: ).*\n)*# end of fields$",
    re.MULTILINE,
)
_NAME = re.compile(r"(?<![\w.])_[A-Z][A-Z0-9_]*\b")
_WIDTH = 107


class BadMark(ValueError):
    """A mark that names no table, lacks its end, or gives a name that the file has already."""


def files(root: Path) -> list[Path]:
    """Those in which arrays of tables may be indexed."""
    return sorted(path for folder in FOLDERS for path in (root / folder).rglob("*.py"))


def renewed(text: str, tables: Mapping[str, Table]) -> str:
    """`text` with its lines made anew. BadMark.

    After `# fields: TABLES` come the names that the rest of the file uses, as constants of its own; after
    `# all fields: TABLES` all of the tables', public, for who imports them.
    """
    if not _MARK.search(text):
        return text
    if len(_MARK.findall(text)) != len(_BLOCK.findall(text)):
        raise BadMark("a mark of fields without its end, `# end of fields`")
    rest = _BLOCK.sub("", text)
    used = set(_NAME.findall(rest))
    given: dict[str, int] = {}

    def made(match: re.Match[str]) -> str:
        try:
            named = [tables[name] for name in match[2].split(", ")]
        except KeyError as error:
            raise BadMark(f"no table {error.args[0]!r}: one of {', '.join(sorted(tables))}") from None
        lines = [line for table in named for line in (_public(table) if match[1] else _private(table, used))]
        for table in named:
            for field, index, _ in table.indexes():
                name = field if match[1] else f"_{field}"
                if (match[1] or name in used) and given.setdefault(name, index) != index:
                    raise BadMark(f"{name} is {given[name]} in one table, {index} in {table.name}")
        return "\n".join([match[0].split("\n", 1)[0], *lines, "# end of fields"])

    new = _BLOCK.sub(made, text)
    for name in sorted(set(bound(rest)) & set(given)):
        raise BadMark(f"{name} is a field of a table of the file, and made again by hand")
    return new


def first_difference(text: str, other: str) -> int:
    """Number of the first line in which they differ."""
    pairs = zip_longest(text.splitlines(), other.splitlines())
    return next((i for i, (one, two) in enumerate(pairs, 1) if one != two), 0)


def bound(text: str) -> Iterator[str]:
    """Names that assignments and imports outside of functions make."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))


def _public(table: Table) -> Iterator[str]:
    yield from (f"# {line}" for line in textwrap.wrap(table.means, _WIDTH))
    for name, index, field in table.indexes():
        yield f"{name} = {index}" + (f"  # {_said(field)}" if field else "")


def _private(table: Table, used: set[str]) -> Iterator[str]:
    for name, index, _ in table.indexes():
        if f"_{name}" in used:
            yield f"_{name} = const({index})"


def _said(field: Field) -> str:
    return f"{field.unit}, by {field.by}: {field.means}"
