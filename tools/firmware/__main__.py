"""`python -m firmware`: builds the firmware and prints where it is, or sees to the tools it needs."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

import click

from firmware import FirmwareError, find_source, make, tools


@click.command(
    epilog="""Examples:

\b
  python -m firmware --heap 262144
  MICROPYTHON_SRC=~/micropython python -m firmware
  python -m firmware --install
"""
)
@click.option(
    "--heap", type=int, default=256 * 1024, show_default=True, metavar="BYTES", help="Of the collected heap."
)
@click.option("--mpy-cross", is_flag=True, help="Build mpy-cross of the same source instead.")
@click.option("--refresh", is_flag=True, help="Ask Debian whether there is a newer version.")
@click.option("--install", is_flag=True, help="Install missing tools instead (root on Debian).")
def command(heap: int, mpy_cross: bool, refresh: bool, install: bool) -> None:
    """Build MicroPython for the emulated Cortex-M3 (MPS2 AN385) and print the path of the firmware.

    The source is the checkout in MICROPYTHON_SRC, else Debian's package micropython, fetched from the
    mirror this machine uses. Results are kept in ~/.cache/kvlab. Exit status 2 when it cannot be had.
    """
    if install:
        added = tools.install()
        if added:
            click.echo(f"installed {' '.join(added)}")
        return
    if not make.LEAST_HEAP_BYTES <= heap <= make.MOST_HEAP_BYTES:
        raise click.UsageError(
            f"--heap {heap}: give {make.LEAST_HEAP_BYTES:,} to {make.MOST_HEAP_BYTES:,} bytes"
        )
    origin = find_source(refresh=refresh)
    click.echo(f"MicroPython {origin.version} from {origin.origin}", err=True)
    # As bytes: a path need not be text.
    click.echo(os.fsencode(make.mpy_cross() if mpy_cross else make.build(heap)))


def main() -> NoReturn:
    try:
        command(prog_name="python -m firmware", standalone_mode=False)
    except click.ClickException as error:
        click.echo(f"firmware: error: {error.format_message()}", err=True)
        sys.exit(2)
    except FirmwareError as error:
        click.echo(f"firmware: error: {error}", err=True)
        sys.exit(2)
    except OSError as error:  # no room for temporary files, a full disk behind stdout
        click.echo(f"firmware: error: {error.filename or 'output'}: {error.strerror or error}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(0)


if __name__ == "__main__":
    main()
