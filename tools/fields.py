#!/usr/bin/env python3
"""Command line of field_tables: names for the fields of mpy_kv's arrays."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from field_tables import blocks, indexes, tables

ROOT = Path(__file__).resolve().parents[1]


@click.command(epilog="Example: python tools/fields.py --write. Exit status: 0 all well, 1 not, 2 bad input.")
@click.option("--write", is_flag=True, help="Make the lines of constants anew where they are others.")
@click.option("--list", "listed", is_flag=True, help="Print the tables.")
@click.option("--root", type=click.Path(path_type=Path), default=ROOT, hidden=True, help="For tests.")
def main(write: bool, listed: bool, root: Path) -> None:
    """Compare the lines of constants with the tables of fields, and find numbers that index their arrays."""
    if listed:
        _list()
        return
    told = 0
    for path in blocks.files(root):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        try:
            new = blocks.renewed(text, tables.ALL)
        except blocks.BadMark as error:
            raise click.UsageError(f"{name}: {error}") from None
        if new != text and write:
            path.write_text(new, encoding="utf-8")
        elif new != text:
            line = blocks.first_difference(text, new)
            click.echo(f"{name}:{line}: not what the tables make: python tools/fields.py --write")
            told += 1
        for fault in indexes.faults(name, new, tables.ALL):
            click.echo(f"{name}:{fault.line}: {fault.says}")
            told += 1
    sys.exit(told > 0)


def _list() -> None:
    for table in tables.ALL.values():
        click.echo(f"\n{table.name}: {table.means}")
        for name, index, field in table.indexes():
            about = f"{field.unit:10}  {field.by:12}  {field.means}" if field else "how many there are"
            click.echo(f"  {index:3}  {name:14}  {about}")


if __name__ == "__main__":
    main()
