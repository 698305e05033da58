"""The accesses of a trace: which object is used, in order, and how large it is.

Of a trace of requests each block of each prompt is an access, in order of arrival; what answers would add is
in none of these traces. A list of keys has one access a line, in the order of the file: times are not looked
at.

    key              page-7          key,size
    key,size         page-7,4096     time,key,size     columns in any order where the first line names them

Columns are separated by what the first line has between them: commas, semicolons, tabs or bars; a key that
holds one stands in quotes. A line that begins with # is a comment. What may be read in two ways is refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from commandline import files
from commandline.errors import BadInput
from kvlab import traces
from kvlab.replay.keys import Numbering
from kvlab.traces.azure import HEADER
from kvlab.traces.lines import Line, Source

OPTION = "TRACE"
MOST_SIZE = 1 << 30
# Names of columns, the plainest first, as `_place` reads them.
_THINGS = ("obj", "object", "block", "page", "item", "content", "doc", "document", "file", "cache")
_KEYS = (
    "key",
    *(thing + what for what in ("key", "id", "hash") for thing in _THINGS),
    *("hash", "hashid", "keyid", *_THINGS[:5], "url", "lba", "id"),
)
_SIZES = ("size", "objsize", "objectsize", "blocksize", "itemsize", "sizebytes", "bytes", "length")
_SEPARATORS = (",", ";", "\t", "|")
_SEPARATOR_LINE = re.compile(r"sep=([,;|\t])")  # as spreadsheets write above the header
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?")
_DIGIT = re.compile(r"[+-]?\.?[0-9]")
_WHOLE = re.compile(r"[1-9][0-9]{0,9}")
_PART = 1 << 20
_MOST_ACCESSES = (1 << 31) - 1  # times are of 32 bits


@dataclass(frozen=True)
class Accesses:
    """name: of the trace; kind: its format; unit: of sizes, and so of capacities.

    ids: int32, a number from 0 to distinct - 1 for each access. sizes: int32, of each access; None: all
    alike.
    """

    name: str
    kind: str
    unit: str
    ids: Any
    sizes: Any
    distinct: int

    def __len__(self) -> int:
        return len(self.ids)


def read(path: str | Path, limit: int | None = None, count: bool = False) -> Accesses:
    """All accesses, or those of the first `limit` requests or lines. BadInput.

    count: sizes are not looked at, each object counts as one.
    """
    text = _keys_of(path)
    return _from_keys(text, limit, count) if text is not None else _from_requests(path, limit, count)


def _from_requests(path: str | Path, limit: int | None, count: bool) -> Accesses:
    trace = traces.open_trace(path, OPTION)
    if trace.kind == "azure":
        raise trace.source.fault(
            None, "says how long prompts are, not what is in them; name a Mooncake, WEKA or RAGPulse trace"
        )
    ids, sizes = _Parts(), _Parts()
    numbering = Numbering()
    waiting: list[Any] = []
    held = 0

    def flush() -> None:
        if waiting:
            ids.add(numbering.numbers(np.concatenate(waiting)))
            waiting.clear()

    tokens = 0
    for request in islice(traces.in_order(trace), limit):
        waiting += [np.arange(first, first + many, dtype=np.int64) for first, many in request.blocks.runs]
        held += len(request.blocks)
        if request.sizes and not count:
            sizes.add(np.array(request.sizes, np.int32))
        tokens = max(tokens, request.block_tokens)
        if held >= _PART:
            flush()
            held = 0
        _check_length(trace.source, len(ids) + held)
    flush()
    if not len(ids):
        raise trace.source.fault(None, "its prompts have no whole block; take more --requests")
    alike = not len(sizes)
    if not alike and sizes.whole().min() < 1:
        raise trace.source.fault(None, "has a component of no tokens, which takes no room; add --count")
    unit = f"blocks of {tokens} tokens" if tokens else "components" if alike else "tokens"
    return Accesses(
        trace.name, trace.kind, unit, ids.whole(), None if alike else sizes.whole(), numbering.distinct
    )


class _Parts:
    """int32 arrays that become one."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, part: Any) -> None:
        self._parts.append(part)
        self._length += len(part)

    def whole(self) -> Any:
        self._parts = [np.concatenate(self._parts)] if self._parts else [np.zeros(0, np.int32)]
        return self._parts[0]


def _check_length(source: Source, count: int) -> None:
    if count > _MOST_ACCESSES:
        raise source.fault(None, f"more than {_MOST_ACCESSES:,} accesses; take fewer --requests")


# --- lists of keys -------------------------------------------------------------------------------


def _keys_of(path: str | Path) -> Source | None:
    """The file as a list of keys, unless its first line is that of a trace of requests."""
    try:
        found = files.existing_file(path, OPTION)
    except BadInput:
        if Path(path).is_dir():
            return None
        raise
    source = Source(found, OPTION)
    first = next(_lines(source), None)
    if first is None:
        raise source.fault(None, "holds no accesses; name a trace that does")
    if first.text.startswith("{") or first.text.split(",")[0] == HEADER[0]:
        return None
    return source


def _lines(source: Source) -> Iterator[Line]:
    """Without comments: lines that begin with #."""
    return (line for line in source.lines() if not line.text.startswith("#"))


def _from_keys(source: Source, limit: int | None, count: bool) -> Accesses:
    lines = _lines(source)
    first = next(lines)
    given = _SEPARATOR_LINE.fullmatch(first.text)
    if given:
        first = next(lines, first)
    columns = _Columns.of(first, count, given[1] if given else None)
    numbers: dict[str, int] = {}
    ids: list[int] = []
    sizes: list[int] = []
    rows = lines if columns.header else chain([first], lines)
    for line in islice(rows, limit):
        key, size = columns.read(line)
        ids.append(numbers.setdefault(key, len(numbers)))
        if size is not None:
            sizes.append(size)
    if not ids:
        raise source.fault(None, "holds no accesses, only a header; name a trace that does")
    if not columns.header:
        _check_first(first, numbers, ids)
    _check_length(source, len(ids))
    alike = columns.size is None
    return Accesses(
        source.path.name,
        "keys",
        "objects" if alike else "units of size",
        np.array(ids, np.int32),
        None if alike else np.array(sizes, np.int32),
        len(numbers),
    )


def _check_first(first: Line, numbers: dict[str, int], ids: Sequence[int]) -> None:
    """BadInput for a first line that may be a header: its key comes once and is no number, all others are."""
    key, *others = numbers
    if others and not _is_number(key) and all(map(_is_number, others)) and ids.count(0) == 1:
        raise first.fault(
            f'is "{key[:40]}" where all others are numbers: a header, which must name its column "key", or a'
            ' key, which needs the header "key" above'
        )


@dataclass(frozen=True)
class _Columns:
    """Where key and size are in a line of `width` columns, size None where all are alike. separator: what is
    between them, None in a line of one column. header: the first line, if it names them."""

    separator: str | None
    width: int
    key: int
    size: int | None
    header: str | None

    @classmethod
    def of(cls, line: Line, count: bool, separator: str | None = None) -> _Columns:
        """By the first line, and the separator that a line above may have told."""
        separator = separator or _separator(line)
        cells = _cells(line, separator)
        key, size = (_place(cells, names) for names in (_KEYS, _SIZES))
        if key is not None and (size is not None or not _is_access(line, cells, key)):
            size = None if count else size
            for column in (key, size):
                _check_once(line, cells, column)
            return cls(separator, len(cells), key, size, line.text)
        if len(cells) > 2:
            raise line.fault(
                f"has {len(cells)} columns and {'no name of one' if key is None else 'a number for a name'};"
                ' expected a header with "key", and "size" where objects differ in it'
            )
        if len(cells) == 2 and count and not _is_number(cells[1].strip()):
            raise line.fault(
                f'size is "{cells[1].strip()[:40]}"; expected a number, or a header that names the column of'
                ' keys "key"'
            )
        return cls(separator, len(cells), 0, 1 if len(cells) == 2 and not count else None, None)

    def read(self, line: Line) -> tuple[str, int | None]:
        if line.text == self.header:
            raise line.fault("is the header again; leave it out")
        cells = _cells(line, self.separator)
        if len(cells) != self.width:
            raise line.fault(f"has {len(cells)} columns; expected {self.width} as in the first line")
        key = cells[self.key].strip()
        if not key:
            raise line.fault("has no key; expected one in each line")
        return key, None if self.size is None else _size(line, cells[self.size].strip())


def _is_access(line: Line, cells: Sequence[str], key: int) -> bool:
    """Whether a line with a name of keys but none of sizes is an access, whose key is such a word: columns
    are not called by numbers. BadInput where one begins as a number does, which may be either."""
    others = [cell.strip() for i, cell in enumerate(cells) if i != key]
    if any(map(_is_number, others)):
        return True
    for cell in filter(_DIGIT.match, others):
        raise line.fault(
            f'may be a header, or an access with "{cell[:40]}"; put the header "key,size" above, or in place'
            " of it"
        )
    return False


def _check_once(line: Line, cells: Sequence[str], column: int | None) -> None:
    """BadInput where a column that is to be read has the name of another."""
    plain = _plain(cells)
    if column is not None and plain.count(plain[column]) > 1:
        raise line.fault(f'has more than one column "{cells[column].strip()[:40]}"; rename all but one')


def _plain(cells: Sequence[str]) -> list[str]:
    """Names of columns without case and marks: "Obj ID" is obj_id."""
    return [re.sub(r"[\W_]", "", cell).lower() for cell in cells]


def _place(cells: Sequence[str], names: Sequence[str]) -> int | None:
    """The column with the first of `names` that there is."""
    plain = _plain(cells)
    return next((plain.index(name) for name in names if name in plain), None)


def _separator(line: Line) -> str | None:
    """What separates columns, by the first line."""
    bare = _QUOTED.sub("", line.text)
    found = [each for each in _SEPARATORS if each in bare]
    if len(found) > 1:
        names = [each for each in found if _place(line.text.split(each), _KEYS) is not None]
        if len(names) == 1:
            return names[0]
        shown = " and ".join("a tab" if each == "\t" else f'"{each}"' for each in found)
        raise line.fault(f"has {shown} in it, and each may separate columns; put a header above: key,size")
    return found[0] if found else None


def _cells(line: Line, separator: str | None) -> list[str]:
    text = line.text
    if separator is None:
        bare = _QUOTED.sub("", text) if '"' in text else text
        other = next((each for each in _SEPARATORS if each in bare), None)
        if other is not None:
            return _cells(line, other)
        words = bare.split()
        if len(words) > 1 and any(map(_is_number, words)):
            raise line.fault(
                f'is "{text[:40]}", more than a key; separate columns with commas, or put a key with spaces'
                " in quotes"
            )
    if '"' not in text:
        return [text] if separator is None else text.split(separator)
    try:
        return next(csv.reader([text], strict=True, delimiter=separator or ","))
    except csv.Error as error:
        raise line.fault(f"is no line of a CSV ({error})") from None


def _is_number(cell: str) -> bool:
    return _NUMBER.fullmatch(cell) is not None


def _size(line: Line, cell: str) -> int:
    if _WHOLE.fullmatch(cell) and int(cell) <= MOST_SIZE:
        return int(cell)
    raise line.fault(f'size is "{cell[:40]}"; expected a whole number from 1 to {MOST_SIZE}, or --count')
