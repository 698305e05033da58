"""Where the instructions of a token go on the emulated board: in each kernel's own code, and in all other.

A plugin of the emulator (cost/count.c) counts by the address of the code. Modules are compiled ones, of which
it is known how long each kernel's machine code is; the board tells where it lies. What is in no kernel, in
the firmware and in native code, is the interpreter's and the calls'.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import firmware
from commandline.errors import FellShort
from kvlab.bench import targets
from kvlab.bench.targets import Steps
from kvlab.cost import count
from qemu_port import machines
from unix_port import compiled
from unix_port.shorten.modules import machine_code

INTERPRETER = "interpreter and calls"

Range = tuple[int, int, str]  # first address, the one behind the last, kernel


def run(words: Sequence[object], done: Steps) -> dict[str, Any]:
    """Figures of tokens.py on the emulated board, with "shares": {set: {kernel: instructions}}. FellShort."""
    folder = compiled.tree(machines.ARM.arch)
    with tempfile.TemporaryDirectory(prefix="kvlab-") as place:
        out = Path(place) / "marks"
        options = count.options(firmware.build(targets.HEAP_BYTES), out, blocks=True)
        found = targets.run(targets.QEMU, "tokens.py", words, done, options=options, path=[folder])
        marks = count.read(out)
    codes = [code for file in _modules(folder) for code in machine_code(file.read_bytes())]
    found["shares"] = {
        name: shared(mark, ranges(kernels, codes))
        for (name, kernels), mark in zip(found.pop("code"), marks[1::2], strict=True)
    }
    return found


def ranges(kernels: Mapping[str, Sequence[Any]], codes: Iterable[bytes]) -> list[Range]:
    """kernels: {name: [address, begin of its code in hexadecimal]}. FellShort for code of no known module."""
    found = []
    known = list(codes)
    for name, (at, text) in kernels.items():
        begin = bytes.fromhex(text)
        lengths = {len(code) for code in known if code[: len(begin)] == begin[: len(code)]}
        if len(lengths) != 1:
            raise FellShort(f"kernel {name}: its code is that of {len(lengths)} functions in the modules")
        found.append((at, at + lengths.pop(), name))
    return sorted(found)


def shared(mark: Mapping[str, Any], where: Sequence[Range]) -> dict[str, int]:
    """Instructions up to a mark, by kernel and INTERPRETER; kernels that took none are left out."""
    begins = [begin for begin, *_ in where]
    found: dict[str, int] = {}
    for at, n in mark["blocks"]:
        i = bisect_right(begins, at) - 1
        if i >= 0 and at < where[i][1]:
            name = where[i][2]
            found[name] = found.get(name, 0) + n
    found = dict(sorted(found.items(), key=lambda item: -item[1]))
    return {**found, INTERPRETER: mark["instructions"] - sum(found.values())}


def rows(
    shares: Mapping[str, Mapping[str, Mapping[str, int]]], names: Sequence[str]
) -> list[tuple[str, ...]]:
    """For a table: position and kernel, then for each set its instructions and their part of all."""
    made: list[tuple[str, ...]] = []
    for at in sorted(shares, key=int):
        by = shares[at]
        kernels = list(
            dict.fromkeys(kernel for name in names for kernel in by[name] if kernel != INTERPRETER)
        )
        for kernel in (*kernels, INTERPRETER):
            cells = []
            for name in names:
                n, total = by[name].get(kernel), sum(by[name].values())
                cells.append("-" if n is None else f"{n:,} ({100 * n / total:.1f} %)")
            made.append((at, kernel, *cells))
    return made


def _modules(folder: Path) -> list[Path]:
    """Those that have kernels."""
    return sorted(path for path in folder.rglob("*.mpy") if path.stem in ("thumb", "viper"))
