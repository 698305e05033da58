"""A .mpy file with its machine code for ARMv6-M shortened; the format is that of py/persistentcode.c."""

from __future__ import annotations

from collections.abc import Callable

from unix_port.shorten.code import NotUnderstoodError, decode, encode
from unix_port.shorten.passes import shorten

_VERSION = 6
_ARMV6M = 4
_NATIVE, _VIPER, _ASSEMBLER = 1, 2, 3
_OWN_DATA = 0xE0  # of a viper function's flags: relocations, constants or variables of its own
_PUSH = 0xB5  # what a function begins with, in its upper byte
_TUPLE = 10
_HAVE_NO_TEXT = range(5)  # kinds of constants
_TEXTS = (5, 6)


def shortened(data: bytes) -> bytes:
    """The same module; `data` itself where it is not one for ARMv6-M."""
    if len(data) < 4 or data[0] != ord("M") or data[1] != _VERSION or data[2] >> 2 & 15 != _ARMV6M:
        return data
    return _Module(data, _shorter).copied()


def machine_code(data: bytes) -> list[bytes]:
    """That of each viper and assembler function of a .mpy file, as it lies in memory once it is loaded."""
    module = _Module(data, lambda code, _start: code)
    module.copied()
    return module.codes


class _Module:
    """Reads a module once and writes it on the way, with what `change` makes of a function's code, which
    begins behind so many bytes. `codes`: of viper and assembler functions, what was read."""

    def __init__(self, data: bytes, change: Callable[[bytes, int], bytes]) -> None:
        self.codes: list[bytes] = []
        self._change = change
        self._data = data
        self._at = 0
        self._made = bytearray()

    def copied(self) -> bytes:
        self._copy(4)
        if self._data[2] & 0x40:
            self._number()  # flags of the instruction set
        names, constants = self._number(), self._number()
        for _ in range(names):
            name = self._number()
            if not name & 1:
                self._copy((name >> 1) + 1)
        for _ in range(constants):
            self._constant()
        self._function()
        assert self._at == len(self._data)
        return bytes(self._made)

    def _taken(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        self._at += count
        return found

    def _copy(self, count: int) -> None:
        self._made += self._taken(count)

    def _read(self) -> int:
        value = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value = value << 7 | byte & 0x7F
            if not byte & 0x80:
                return value

    def _write(self, value: int) -> None:
        pieces = [value & 0x7F]
        while value := value >> 7:
            pieces.append(value & 0x7F | 0x80)
        self._made += bytes(reversed(pieces))

    def _number(self) -> int:
        value = self._read()
        self._write(value)
        return value

    def _constant(self) -> None:
        kind = self._data[self._at]
        self._copy(1)
        if kind in _HAVE_NO_TEXT:
            return
        size = self._number()
        if kind == _TUPLE:
            for _ in range(size):
                self._constant()
        else:
            self._copy(size + (kind in _TEXTS))

    def _function(self) -> None:
        """A function with those inside it."""
        head = self._read()
        kind, has_more, size = head & 3, head >> 2 & 1, head >> 3
        code = self._taken(size)
        if kind in (_VIPER, _ASSEMBLER):
            self.codes.append(code)
        if kind == _NATIVE:
            prelude = self._read()
            new = self._change(code[:prelude], 4)
            self._write(len(new) + size - prelude << 3 | head & 7)
            self._made += new + code[prelude:]
            self._write(len(new))
        elif kind == _VIPER:
            flags = self._read()
            new = code if flags & _OWN_DATA else self._change(code, 0)
            self._write(len(new) << 3 | head & 7)
            self._made += new
            self._write(flags)
            assert not flags & _OWN_DATA
        else:
            self._write(head)
            self._made += code
            for _ in range(3 if kind == _ASSEMBLER else 0):
                self._number()
        if has_more:
            for _ in range(self._number()):
                self._function()


def _shorter(code: bytes, start: int) -> bytes:
    """Machine code that begins behind `start` bytes, shortened; as it was if that cannot be done."""
    if len(code) < start + 2 or code[start + 1] != _PUSH:
        return code
    try:
        new = code[:start] + encode(shorten(decode(code, start)), start)
    except NotUnderstoodError:
        return code
    return min(code, new, key=len)
