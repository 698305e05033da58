#!/usr/bin/env python3
"""Command line of kernelgen: the kernels in Thumb assembler."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kernelgen import files

ROOT = Path(__file__).resolve().parents[1]


@click.command(epilog=f"Example: {files.COMMAND}. Exit status: 0 as made, 1 not, 2 bad input.")
@click.option("--write", is_flag=True, help="Make the files anew; without it they are only compared.")
@click.option("--root", type=click.Path(path_type=Path, file_okay=False), default=ROOT, help="Of the files.")
def main(write: bool, root: Path) -> None:
    """Compare the thumb.py files with what their sources make, or renew them."""
    stale = False
    for source, name in files.FILES.items():
        path, wanted = root / name, files.text(source)
        if path.exists() and path.read_text(encoding="utf-8") == wanted:
            continue
        if write:
            path.write_text(wanted, encoding="utf-8")
        else:
            click.echo(f"{name}: not what tools/kernelgen/sources/{source}.py makes: {files.COMMAND}")
            stale = True
    sys.exit(stale)


if __name__ == "__main__":
    main()
