"""Jumps of a native function that older firmware cannot encode, found in mpy-cross's own code.

Newer compilers write each forward jump on ARMv6-M as wide as the widest needs it; those before 1.26 wrote
one halfword and gave up when it did not reach. So the code is laid out again as they would have it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from unix_port import processes
from unix_port.compiled import compiler

UNCONDITIONAL = 2048  # bytes that a 16-bit B reaches, all there was before 1.26 on ARMv6-M
CONDITIONAL = 4096  # bytes within which a 32-bit B<cond> was right before 1.27 on ARMv7-M
RESERVE = 128  # what the other code of an older compiler may take: 1.24 was seen to need 96 more

_NOP, _LOAD_R1, _ADD_PC = 0xBF00, 0x4900, 0x448F
_NATIVE_KINDS = (1, 2)  # @native, @viper; 0 is bytecode, 3 an inline assembler


class Refused(ValueError):
    """mpy-cross does not compile the function; the message is its own."""


def far_jumps(text: str) -> Iterator[str]:
    """What is too far in the one function of `text` (Source.alone), as text. Raises Refused."""
    for arch, jumps, reach in (
        ("armv6m", armv6m_jumps, UNCONDITIONAL),
        ("armv7m", armv7m_branches, CONDITIONAL),
    ):
        farthest = max(map(abs, jumps(code(text, arch))), default=0)
        if farthest > reach - RESERVE:
            yield f"{farthest} bytes on {arch}: {reach} reach, {RESERVE} of them are kept back"


def code(text: str, arch: str) -> bytes:
    """Machine code of the module's one function; b"" when it is an inline assembler's."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "f.py", Path(folder) / "f.mpy"
        source.write_text(text, encoding="utf-8")
        done = processes.run(
            [compiler(), f"-march={arch}", "-o", str(output), str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise Refused(f"{arch}: {said[-1] if said else 'failed'}")
        return first_child(output.read_bytes())


def first_child(mpy: bytes) -> bytes:
    """Code of the first function of a module in .mpy format 6, whose own code is bytecode."""
    reader = _Reader(mpy)
    magic, version, *_ = reader.take(4)
    if magic != ord("M") or version != 6:
        raise ValueError(f".mpy of version {version}: the format that this reads is 6")
    names, objects = reader.number(), reader.number()
    for _ in range(names):
        reader.name()
    for _ in range(objects):
        reader.object()
    head = reader.number()
    reader.take(head >> 3)
    if not head & 4 or reader.number() < 1:
        raise ValueError("the module has no function")
    head = reader.number()
    return reader.take(head >> 3) if head & 3 in _NATIVE_KINDS else b""


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        self._at += count
        return self._data[self._at - count : self._at]

    def number(self) -> int:
        """Seven bits a byte, the high ones first; the last byte has its top bit clear."""
        value = 0
        while True:
            byte = self.take(1)[0]
            value = value << 7 | byte & 0x7F
            if not byte & 0x80:
                return value

    def name(self) -> None:
        length = self.number()
        if not length & 1:  # else one of the interpreter's own names
            self.take((length >> 1) + 1)

    def object(self) -> None:
        kind = self.take(1)[0]
        if kind == 10:  # tuple
            for _ in range(self.number()):
                self.object()
        elif kind >= 5:  # str and bytes end with a zero; int, float and complex are digits
            self.take(self.number() + (kind in (5, 6)))


def armv6m_jumps(machine_code: bytes) -> Iterator[int]:
    """Displacements of the unconditional jumps, as a compiler before 1.26 would lay them out."""
    ops = _halfwords(machine_code)
    jumps: list[tuple[int, int]] = []  # (halfword, halfword it jumps to)
    dropped = set()  # halfwords that are not there in the old layout
    at = 0
    while at < len(ops):
        if ops[at : at + 2] == [_LOAD_R1, _ADD_PC]:  # ldr r1, [pc]; add pc, r1; the distance
            by = _signed(ops[at + 2] | ops[at + 3] << 16, 32) if at + 3 < len(ops) else 0
            jumps.append((at, at + 3 + by // 2))
            dropped |= {at + 1, at + 2, at + 3}
            if at and ops[at - 1] == _NOP:
                dropped.add(at - 1)
            at += 4
            continue
        if ops[at] & 0xF800 == 0xE000:
            jumps.append((at, at + 2 + _signed(ops[at] & 0x7FF, 11)))
            padding = at + 1
            while padding < len(ops) and ops[padding] == _NOP:
                dropped.add(padding)
                padding += 1
            at = padding
            continue
        at += 1
    place = [0]
    for at in range(len(ops)):
        place.append(place[-1] + (at not in dropped))
    for start, end in jumps:
        if 0 <= end < len(place):
            yield (place[end] - place[start]) * 2 - 4


def armv7m_branches(machine_code: bytes) -> Iterator[int]:
    """Displacements of the 32-bit conditional branches."""
    ops = _halfwords(machine_code)
    at = 0
    while at < len(ops) - 1:
        high, low = ops[at], ops[at + 1]
        if high & 0xF800 == 0xF000 and low & 0xD000 == 0x8000 and high & 0x0380 != 0x0380:
            value = (high & 0x400) << 10 | (low & 0x800) << 8 | (low & 0x2000) << 5
            yield _signed(value | (high & 0x3F) << 12 | (low & 0x7FF) << 1, 21)
        at += 2 if high >= 0xE800 else 1


def _halfwords(machine_code: bytes) -> list[int]:
    return [int.from_bytes(machine_code[at : at + 2], "little") for at in range(0, len(machine_code) - 1, 2)]


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
