"""Numbered lines of a text file or a gzip, and the faults found in them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from commandline.errors import BadInput

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_PIECE = 1 << 14  # bytes read at a time
_LINE_MAX = 64 << 20  # bytes; what is longer is no line of a trace, and would fill the memory
_SHOWN = 60  # characters of a wrong value in an error
MOST_TOKENS = 1 << 28
MOST_S = 1e10  # of seconds: three centuries


class Source:
    """A file and the option that named it."""

    def __init__(self, path: Path, option: str) -> None:
        self.path = path
        self.option = option

    def fault(self, number: int | None, what: str) -> BadInput:
        """The error that `what` is wrong there."""
        where = f"{self.option} {self.path}".strip()
        return BadInput(f"{where}: {what}" if number is None else f"{where}: line {number}: {what}")

    def lines(self) -> Iterator[Line]:
        """Each line that is not blank, without its end: LF, CRLF or CR. BadInput: no text, a damaged gzip."""
        number = 0
        try:
            with self._open() as file:
                for data in _split(file):
                    number += 1
                    if number == 1:
                        data = data.removeprefix(_BOM)
                    if not data.strip():
                        continue
                    if len(data) >= _LINE_MAX:
                        raise self.fault(number, f"is longer than {_LINE_MAX >> 20} MiB: not a text trace")
                    yield Line(self, number, self._text(data, number))
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise self.fault(
                number + 1, f"the gzip is cut off or damaged here ({error}); fetch the file again"
            ) from None
        except OSError as error:
            raise self.fault(None, f"cannot be read: {error.strerror or error}") from None

    def _open(self) -> IO[bytes]:
        file = open(self.path, "rb")  # noqa: SIM115  (closed by the caller, as what it is wrapped in)
        packed = file.read(2) == _GZIP
        file.seek(0)
        if not packed:
            return file
        file.close()
        return cast("IO[bytes]", gzip.open(self.path, "rb"))

    def _text(self, data: bytes, number: int) -> str:
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            utf16 = number == 1 and data.startswith(_UTF16)
            what = "is text in UTF-16; save it in UTF-8" if utf16 else "is not text in UTF-8"
            raise self.fault(number, f"{what}; expected a CSV or JSON lines")
        return text.strip()


def _split(file: IO[bytes]) -> Iterator[bytes]:
    """Lines by any kind of end, without it; of one too long its beginning."""
    rest: list[bytes] = []  # the line so far
    held = 0
    cr = False  # whether the last piece ended in a CR, whose LF may be still to come
    while piece := file.read(_PIECE):
        if cr and piece.startswith(b"\n"):
            piece = piece[1:]
        cr = piece.endswith(b"\r")
        first, *others = (piece + b".").splitlines()  # of bytes: at LF, CRLF and CR alone
        rest.append(first)
        held += len(first)
        if others:
            rest[-1] = b"".join(rest)
            yield rest[-1]
            yield from others[:-1]
            rest, held = [others[-1]], len(others[-1])
        rest[-1] = rest[-1][:-1]  # the dot, which keeps what follows the last end apart
        held -= 1
        if held >= _LINE_MAX:
            yield b"".join(rest)
            return
    if held:
        yield b"".join(rest)


@dataclass(frozen=True, slots=True)
class Line:
    """One line, which knows where it stands."""

    source: Source
    number: int
    text: str

    def fault(self, what: str) -> BadInput:
        return self.source.fault(self.number, what)

    def record(self) -> Record:
        """The JSON object of this line."""
        try:
            found = json.loads(self.text)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else "out of range"
            raise self.fault(
                f"is not JSON ({reason}): {_shown(self.text)}; expected one whole object"
            ) from None
        return Record(self, found)


class Record:
    """A JSON object of a line, asked for its fields. `inside`: the path to it where it lies in another."""

    __slots__ = ("fields", "inside", "line")

    def __init__(self, line: Line, found: Any, inside: str = "") -> None:
        self.line, self.inside = line, inside
        if not isinstance(found, dict):
            raise line.fault(f"{inside or 'the line'} is {_shown(found)}; expected a JSON object")
        self.fields: dict[str, Any] = found

    def fault(self, key: str, expected: str) -> BadInput:
        if key not in self.fields:
            return self.line.fault(f"{self._path(key)} is missing; expected {expected}")
        return self.line.fault(f"{self._path(key)} is {_shown(self.fields[key])}; expected {expected}")

    def _path(self, key: str) -> str:
        return f'"{self.inside}.{key}"' if self.inside else f'"{key}"'

    def count(self, key: str, least: int = 0) -> int:
        """A whole number of at least `least`."""
        value = self.fields.get(key)
        if type(value) is not int or not least <= value <= MOST_TOKENS:
            raise self.fault(key, f"a whole number from {least} to {MOST_TOKENS}")
        return value

    def seconds(self, key: str, scale: float = 1.0) -> float:
        """A time of at least 0 (a number, or one written as text), times `scale`."""
        value = self.fields.get(key)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                value = None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.fault(key, "a time, a number of at least 0")
        if not 0 <= value <= MOST_S / scale:  # nor NaN
            raise self.fault(key, f"a number from 0 to {MOST_S / scale:.0f}")
        return value * scale

    def text(self, key: str) -> str:
        value = self.fields.get(key)
        if not isinstance(value, str):
            raise self.fault(key, "text")
        return value

    def ids(self, key: str) -> list[int]:
        """A list of whole numbers of at least 0."""
        value = self.fields.get(key)
        if not isinstance(value, list):
            raise self.fault(key, "a list of block ids")
        if not all(type(each) is int and each >= 0 for each in value):
            raise self.fault(key, "a list of whole numbers of at least 0")
        return value

    def inner(self, key: str) -> Record:
        if not isinstance(self.fields.get(key), dict):
            raise self.fault(key, "an object")
        return Record(self.line, self.fields[key], f"{self.inside}.{key}" if self.inside else key)

    def inners(self, key: str) -> list[Record]:
        """A list of objects."""
        value = self.fields.get(key)
        if not isinstance(value, list):
            raise self.fault(key, "a list of objects")
        path = f"{self.inside}.{key}" if self.inside else key
        return [Record(self.line, each, f"{path}[{i}]") for i, each in enumerate(value)]


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = " ".join(text.split())
    text = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
    return f'"{text}"' if isinstance(value, str) else text
