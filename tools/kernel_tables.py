#!/usr/bin/env python3
"""The tables of functions that kernels read: what they are, and their values for a board to load.

They are made here, of integers alone, and not on a board: numbers of 60 bits are objects there, and took more
instructions than the rest of the program's loading.
"""

from __future__ import annotations

import base64
import re
import struct
import sys
from collections.abc import Sequence
from math import isqrt
from pathlib import Path

import click

from commandline import blocks
from kvlab.paths import ROOT

COMMAND = "python tools/kernel_tables.py --write"
BLOCK = blocks.pattern("values", COMMAND)

BITS = 60  # of fractions, so that each entry is the correctly rounded one
ONE = 1 << BITS
PI = 3622009729038561421  # floor(pi * 2^60)

STEPS = 256  # of sine, a quarter turn; of sigmoid, 0..16 in sixteenths
EXP2_STEPS = 64  # 0..1


def _series(x: int, sign: int) -> tuple[int, int]:
    """(even, odd) parts of e^x for sign 1, or (cos x, sin x) for sign -1; 0 <= x < 2^60."""
    sums = [ONE, x]
    term, n = x, 2
    while term:
        term = (term * x >> BITS) // n
        sums[n & 1] += term if sign > 0 or not n & 2 else -term
        n += 1
    return sums[0], sums[1]


def sine() -> list[int]:
    """sin(i / 256 * pi/2) * 2^15 for i = 0..256, and the last one again for interpolation."""
    cos1, sin1 = _series(PI // 2 // STEPS, -1)
    table = []
    cos, sin = ONE, 0
    for _ in range(STEPS + 1):
        table.append((sin >> (BITS - 16)) + 1 >> 1)
        cos, sin = cos * cos1 - sin * sin1 >> BITS, sin * cos1 + cos * sin1 >> BITS
    return table + table[-1:]


def sigmoid() -> list[int]:
    """2^15 / (1 + e^-(i/16)) for i = 0..256, and the last one again."""
    even, odd = _series(ONE // 16, 1)
    step = even - odd  # e^(-1/16)
    table = []
    e = ONE
    for _ in range(STEPS + 1):
        table.append((ONE << 16) // (ONE + e) + 1 >> 1)
        e = e * step >> BITS
    return table + table[-1:]


def exp2() -> list[int]:
    """2^-(i/64) * 2^15 for i = 0..64, and the last one again."""
    step = ONE // 2
    for _ in range(6):
        step = isqrt(step << BITS)
    table = []
    e = ONE
    for _ in range(EXP2_STEPS + 1):
        table.append((e >> (BITS - 16)) + 1 >> 1)
        e = e * step >> BITS
    return table + table[-1:]


def _numbers(name: str) -> dict[str, int]:
    """What a file calls numbers; it cannot be imported before its values are there."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return {key: int(value) for key, value in re.findall(r"^([A-Z_]+) = (\d+)\b", text, re.MULTILINE)}


def shares() -> list[int]:
    """2^-(i / 256) in units of 2^-12, i = 0..255, then 2^21 / sum."""
    sizes = _numbers("mpy_kv/kernels/tables.py")
    step = 1070838486  # round(2^30 * 2^(-1/256)); the recurrence drifts by < 2^-20 over 256 steps
    table = []
    x = 1 << 30
    for _ in range(sizes["FRACTION"]):
        table.append((x + (1 << 17)) >> 18)
        x = (x * step + (1 << 29)) >> 30
    return table + [((1 << 22) // s + 1) >> 1 for s in range(sizes["LEAST_SUM"], sizes["MOST_SUM"] + 1)]


FILES = {
    "mpy_kv/kernels/table_values.py": {"TABLES": shares},
    "boards/apps/stories/kernels/table_values.py": {"SINE": sine, "SIGMOID": sigmoid, "EXP2": exp2},
}


def _lines(name: str, table: Sequence[int]) -> list[str]:
    text = base64.b64encode(struct.pack(f"<{len(table)}H", *table)).decode()
    pieces = [text[at : at + 96] for at in range(0, len(text), 96)]
    return [f"{name} = (", *(f'    b"{piece}"' for piece in pieces), ")"]


def renewed(name: str, text: str) -> str:
    """`text` of that file with the values of its tables."""
    lines: list[str] = []
    for table, made in FILES[name].items():
        lines += _lines(table, made())
    return blocks.replaced(name, text, "values", COMMAND, lines)


@click.command(epilog=f"Example: {COMMAND}. Exit status: 0 as made, 1 not, 2 bad input.")
@click.option("--write", is_flag=True, help="Make the values anew; without it they are only compared.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), default=ROOT, hidden=True)
def main(write: bool, root: Path) -> None:
    """Compare the tables that kernels read with what they are defined as, or renew them."""
    sys.exit(blocks.renew(root, FILES, renewed, f"not what tools/kernel_tables.py makes: {COMMAND}", write))


if __name__ == "__main__":
    main()
