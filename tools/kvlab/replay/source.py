"""The accesses of a trace: which object is used, in order, and how large it is.

Of a trace of requests each block of each prompt is an access, in order of arrival; what answers would add is
in none of these traces. A list of keys has one access a line, in the order of the file: times are not looked
at.

    key              page-7          key,size
    key,size         page-7,4096     time,key,size     columns in any order where the first line names them
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kvlab import files, traces
from kvlab.errors import BadInput
from kvlab.replay.keys import Numbering
from kvlab.traces.azure import HEADER
from kvlab.traces.lines import Line, Source

OPTION = "TRACE"
MOST_SIZE = 1 << 30
_KEYS = ("key", "id", "obj_id", "object", "block", "hash")
_SIZES = ("size", "obj_size", "bytes")
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
    columns = _Columns.of(first, count)
    numbers: dict[str, int] = {}
    ids: list[int] = []
    sizes: list[int] = []
    rows = lines if columns.named else _and_then(first, lines)
    for line in islice(rows, limit):
        key, size = columns.read(line)
        ids.append(numbers.setdefault(key, len(numbers)))
        if size is not None:
            sizes.append(size)
    if not ids:
        raise source.fault(None, "holds no accesses, only a header; name a trace that does")
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


def _and_then(first: Line, rest: Iterator[Line]) -> Iterator[Line]:
    yield first
    yield from rest


@dataclass(frozen=True)
class _Columns:
    """Where key and size are in a line of `width` columns, size None where all are alike; named: by the first
    line."""

    width: int
    key: int
    size: int | None
    named: bool

    @classmethod
    def of(cls, line: Line, count: bool) -> _Columns:
        cells = [cell.strip().lower() for cell in _cells(line)]
        keys = [at for at, cell in enumerate(cells) if cell in _KEYS]
        sizes = [at for at, cell in enumerate(cells) if cell in _SIZES]
        if keys:
            return cls(len(cells), keys[0], sizes[0] if sizes and not count else None, True)
        if len(cells) > 2:
            raise line.fault(
                f'has {len(cells)} columns and no name of one; expected a header with "key", and "size" where'
                " objects differ in it"
            )
        return cls(len(cells), 0, 1 if len(cells) == 2 and not count else None, False)

    def read(self, line: Line) -> tuple[str, int | None]:
        cells = _cells(line)
        if len(cells) != self.width:
            raise line.fault(f"has {len(cells)} columns; expected {self.width} as in the first line")
        key = cells[self.key].strip()
        if not key:
            raise line.fault("has no key; expected one in each line")
        return key, None if self.size is None else _size(line, cells[self.size].strip())


def _cells(line: Line) -> list[str]:
    if '"' not in line.text:
        return line.text.split(",")
    try:
        return next(csv.reader([line.text], strict=True))
    except csv.Error as error:
        raise line.fault(f"is no line of a CSV ({error})") from None


def _size(line: Line, cell: str) -> int:
    if cell.isascii() and cell.isdigit() and len(cell) <= 10 and 1 <= int(cell) <= MOST_SIZE:
        return int(cell)
    raise line.fault(f'size is "{cell[:40]}"; expected a whole number from 1 to {MOST_SIZE}, or --count')


