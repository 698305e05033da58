#!/usr/bin/env python3
"""What the plain kernels make of the vectors of the self-checks, as checksums in the files that compare with
them: a board then need not run plain kernels to find that its own are right.

Run by the sources of the checkout: their caches lay out the buffers that are summed.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

from commandline import blocks
from kvlab.element_types import HELD
from kvlab.paths import APPS, ROOT
from mpy_kv import kernels

sys.path.append(str(APPS))

MOST_COLUMNS = 100
COMMAND = "python tools/answers.py --write"

KV_CACHES = "mpy_kv/selfcheck.py"  # of every element type that has more kernels than plain ones
# File -> module of the family that it checks.
OTHERS = {
    "mpy_kv/eviction/tokens/selfcheck.py": "mpy_kv.eviction.tokens",
    "boards/apps/stories/kernels/selfcheck.py": "stories.kernels",
}
FILES = (KV_CACHES, *OTHERS)

BLOCK = blocks.pattern("answers", COMMAND)


def answers(family: Any) -> list[int]:
    """Checksums of what the plain kernels of that family make of its vectors."""
    plain = family.plain()
    check: Any = importlib.import_module((family.base or family).check)
    return list(check.checksums(plain))


def renewed(name: str, text: str) -> str:
    """`text` of that file with the answers as they are."""
    lines: list[str] = []
    if name == KV_CACHES:
        lines.append("_ANSWERS = {")
        for codec in HELD:
            numbers = ", ".join(f"0x{number:08X}" for number in answers(kernels.of(codec)))
            wrapped = textwrap.wrap(f'"{codec}": ({numbers}),', MOST_COLUMNS)
            lines += textwrap.indent("\n".join(wrapped), "    ").split("\n")
        lines.append("}")
    else:
        (number,) = answers(importlib.import_module(OTHERS[name]).FAMILY)
        lines.append(f"_ANSWER = 0x{number:08X}")
    return blocks.replaced(name, text, "answers", COMMAND, lines)


@click.command(epilog=f"Example: {COMMAND}. Exit status: 0 as made, 1 not, 2 bad input.")
@click.option("--write", is_flag=True, help="Make the answers anew; without it they are only compared.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), default=ROOT, hidden=True)
def main(write: bool, root: Path) -> None:
    """Compare the answers of the self-checks with what the plain kernels make, or renew them."""
    sys.exit(blocks.renew(root, FILES, renewed, f"not what the plain kernels make: {COMMAND}", write))


if __name__ == "__main__":
    main()
