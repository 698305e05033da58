"""Encodes the ARMv6-M instructions that MicroPython's inline assembler has no name for.

From the Thumb formats of the ARMv6-M Architecture Reference Manual. In a kernel they stand as
`data(2, 0xC9C0)  # ldm r1!, {r6, r7}`.
"""

from __future__ import annotations

import re

NUMBERS = {"sp": 13, "lr": 14, "pc": 15}
BY_REGISTER = {"str": 0x5000, "strh": 0x5200, "strb": 0x5400, "ldrsb": 0x5600}
BY_REGISTER |= {"ldr": 0x5800, "ldrh": 0x5A00, "ldrb": 0x5C00, "ldrsh": 0x5E00}
EXTEND = {"sxth": 0xB200, "sxtb": 0xB240, "uxth": 0xB280, "uxtb": 0xB2C0}


def register(name: str) -> int:
    if name in NUMBERS:
        return NUMBERS[name]
    found = re.fullmatch(r"r(1[0-2]|\d)", name)
    if found is None:
        raise ValueError(f"{name} is no register")
    return int(found[1])


def low(name: str) -> int:
    number = register(name)
    if number > 7:
        raise ValueError(f"{name} is none of r0..r7")
    return number


def words(text: str, least: int, most: int) -> int:
    """A byte offset as a number of words."""
    number = int(text)
    if number % 4 or not least <= number <= most:
        raise ValueError(f"{number} is no multiple of 4 in {least}..{most}")
    return number // 4


def encode(text: str) -> int:
    """The halfword of one instruction; ValueError if it is not known here, or not ARMv6-M."""
    try:
        return _encode(text)
    except KeyError as error:  # no such instruction
        raise ValueError(text) from error


def _encode(text: str) -> int:
    op, _, operands = text.partition(" ")
    if op in ("ldm", "stm"):
        found = re.fullmatch(r"(r\d)!, \{(r\d(?:, r\d)*)\}", operands)
        if found is None:
            raise ValueError(text)
        base, names = low(found[1]), [low(name) for name in found[2].split(", ")]
        if base in names:
            raise ValueError(f"{text}: the base is in the list")
        return (0xC800 if op == "ldm" else 0xC000) | base << 8 | sum(1 << n for n in set(names))
    if found := re.fullmatch(r"(r\d), \[sp, (\d+)\]", operands):
        return {"str": 0x9000, "ldr": 0x9800}[op] | low(found[1]) << 8 | words(found[2], 0, 1020)
    if found := re.fullmatch(r"(r\d), \[(r\d), (r\d)\]", operands):
        return BY_REGISTER[op] | low(found[3]) << 6 | low(found[2]) << 3 | low(found[1])
    if found := re.fullmatch(r"sp, (\d+)", operands):
        return {"add": 0xB000, "sub": 0xB080}[op] | words(found[1], 0, 508)
    if op == "blx":
        return 0x4780 | low(operands) << 3
    first, _, second = operands.partition(", ")
    if op == "mov":
        if second != "pc":
            raise ValueError(f"{text}: the assembler has it")
        return 0x4678 | low(first)
    if op in EXTEND:
        return EXTEND[op] | low(second) << 3 | low(first)
    if op in ("add", "cmp"):
        d, m = register(first), register(second)
        if max(d, m) == NUMBERS["pc"]:
            raise ValueError(f"{text}: a jump")
        if max(d, m) < 8:
            raise ValueError(f"{text}: the assembler has it")
        return (0x4400 if op == "add" else 0x4500) | d >> 3 << 7 | m << 3 | d & 7
    raise ValueError(text)
