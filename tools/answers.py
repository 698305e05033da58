#!/usr/bin/env python3
"""What the plain kernels make of the vectors of the self-checks, as checksums in the files that compare with
them: a board then need not run plain kernels to find that its own are right.

Run by the sources of the checkout: their caches lay out the buffers that are summed.
"""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

import click

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

BLOCK = re.compile(rf"# answers: {re.escape(COMMAND)}\n.*?# end of answers\n", re.DOTALL)


def answers(family: Any) -> list[int]:
    """Checksums of what the plain kernels of that family make of its vectors."""
    plain = family.plain()
    check: Any = importlib.import_module((family.base or family).check)
    return list(check.checksums(plain))


def renewed(name: str, text: str) -> str:
    """`text` of that file with the answers as they are."""
    lines = [f"# answers: {COMMAND}"]
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
    block = "\n".join([*lines, "# end of answers", ""])
    if len(BLOCK.findall(text)) != 1:
        raise click.UsageError(f"{name}: one block between `# answers: {COMMAND}` and `# end of answers`")
    return BLOCK.sub(lambda _: block, text)


@click.command(epilog=f"Example: {COMMAND}. Exit status: 0 as made, 1 not, 2 bad input.")
@click.option("--write", is_flag=True, help="Make the answers anew; without it they are only compared.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), default=ROOT, hidden=True)
def main(write: bool, root: Path) -> None:
    """Compare the answers of the self-checks with what the plain kernels make, or renew them."""
    stale = False
    for name in FILES:
        path = root / name
        text = path.read_text(encoding="utf-8")
        new = renewed(name, text)
        if new == text:
            continue
        if write:
            path.write_text(new, encoding="utf-8")
        else:
            click.echo(f"{name}: not what the plain kernels make: {COMMAND}")
            stale = True
    sys.exit(stale)


if __name__ == "__main__":
    main()
