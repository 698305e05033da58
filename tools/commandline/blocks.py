"""Files with a block of lines that a command makes, between `# WORD: COMMAND` and `# end of WORD`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click


def pattern(word: str, command: str) -> re.Pattern[str]:
    """Of the block, its first and last line included."""
    return re.compile(rf"# {word}: {re.escape(command)}\n.*?# end of {word}\n", re.DOTALL)


def replaced(name: str, text: str, word: str, command: str, lines: Sequence[str]) -> str:
    """`text` of that file with these lines in its one block; UsageError where it has none, or several."""
    block = "\n".join([f"# {word}: {command}", *lines, f"# end of {word}", ""])
    found = pattern(word, command)
    if len(found.findall(text)) != 1:
        raise click.UsageError(f"{name}: one block between `# {word}: {command}` and `# end of {word}`")
    return found.sub(lambda _: block, text)


def renew(
    root: Path, names: Iterable[str], renewed: Callable[[str, str], str], stale: str, write: bool
) -> bool:
    """Compare files with what renewed(name, text) makes of them, or write that. Whether one is left that is
    another: it is told with `stale`."""
    left = False
    for name in names:
        path = root / name
        text = path.read_text(encoding="utf-8")
        new = renewed(name, text)
        if new == text:
            continue
        if write:
            path.write_text(new, encoding="utf-8")
        else:
            click.echo(f"{name}: {stale}")
            left = True
    return left
