#!/usr/bin/env python3
"""Command line of viper_lint: `python tools/lint_viper.py mpy_kv boards`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import click

from viper_lint import RULES, lint_paths


@click.command(
    epilog="Example: python tools/lint_viper.py mpy_kv boards. "
    "Exit status: 0 nothing found, 1 findings, 2 bad input."
)
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--ignore", multiple=True, metavar="RULE", help="Leave a rule out; may be repeated.")
@click.option("--no-jumps", is_flag=True, help="Do not compile with mpy-cross to measure jumps.")
@click.option("--explain", metavar="RULE", help="Tell why a rule is one, or of all of them: --explain all.")
def main(paths: tuple[Path, ...], ignore: tuple[str, ...], no_jumps: bool, explain: str | None) -> None:
    """Refuse native code in PATHS that released MicroPython firmware gets wrong."""
    for name in [*ignore, *([explain] if explain and explain != "all" else [])]:
        if name not in RULES:
            raise click.UsageError(f"no rule {name!r}; known: {', '.join(RULES)}")
    if explain:
        for rule in RULES.values() if explain == "all" else [RULES[explain]]:
            click.echo(f"{rule.name}: {rule.message}\n{textwrap.indent(textwrap.fill(rule.why, 98), '    ')}")
        return
    if not paths:
        raise click.UsageError("name files or folders to read, such as mpy_kv boards")
    try:
        found = [f for f in lint_paths(paths, jumps=not no_jumps) if f.rule not in ignore]
    except SyntaxError as error:
        raise click.UsageError(f"{error.filename}:{error.lineno}: no Python: {error.msg}") from error
    except ValueError as error:  # no mpy-cross
        raise click.UsageError(f"{error}; or give --no-jumps") from error
    for finding in found:
        click.echo(finding)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
