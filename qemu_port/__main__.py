"""`python -m qemu_port SCRIPT`: runs a MicroPython script on the emulated 32-bit board."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click

import firmware
from commandline import figures, files
from commandline.errors import BadInput, CommandError
from commandline.numbers import FiniteRange
from qemu_port import machines
from qemu_port.board import FLASH_BYTES, NoRoom, Qemu
from qemu_port.launcher import BLOCK_BYTES
from unix_port import compiled as modules
from unix_port.errors import PortError


def _complain(problem: str) -> None:
    click.echo(f"qemu_port: error: {problem}", err=True)


def _model(given: str | None) -> bytes:
    """The file's content, b"" when none is named. BadInput."""
    if given is None:
        return b""
    path = files.existing_file(given, "--model")
    size = path.stat().st_size
    if size > FLASH_BYTES:
        raise BadInput(f"--model {given}: {size:,} bytes; the machine has room for {FLASH_BYTES:,}")
    return path.read_bytes()


def _fence(_context: click.Context, _option: click.Parameter, given: int) -> int:
    """Whole blocks of the collector, or 0 for no fence. BadInput."""
    if given != 0 and given < BLOCK_BYTES:
        raise BadInput(f"--fence {given}: give {BLOCK_BYTES} (a collector's block) or more, or 0 for none")
    return given - given % BLOCK_BYTES


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="""Example:

\b
  python -m qemu_port --heap 300000 host_tests/device/allocation.py int16
""",
)
@click.option("--heap", type=int, default=512 * 1024, show_default=True, help="Of the firmware, in bytes.")
@click.option(
    "--fence",
    type=int,
    default=0,
    callback=_fence,
    help="Bytes of it that are free when the script starts, in whole blocks of 16.",
)
@click.option("--compiled", is_flag=True, help="mpy_kv and the apps as .mpy files, as deployed.")
@click.option("--model", metavar="FILE", help="At 0x21000000.")
@click.option(
    "--timeout",
    type=FiniteRange(min=0.1),
    metavar="SECONDS",
    help="Kill it then [default: 600].",
)
@figures.json_option
@click.option(
    "--machine",
    type=click.Choice(sorted(machines.BY_NAME)),
    default="arm",
    show_default=True,
    help="A Cortex-M3, or a 32-bit RISC-V core.",
)
@click.argument("script", callback=lambda _context, _option, name: files.existing_file(name, "SCRIPT"))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    heap: int,
    fence: int,
    compiled: bool,
    model: str | None,
    timeout: float | None,
    json_path: Path | None,
    machine: str,
    script: Path,
    arguments: tuple[str, ...],
) -> int:
    """Run SCRIPT with ARGUMENTS on the emulated board; it sees the files of this machine.

    Exit status: the script's; 1 when it did not end by itself or does not fit, 2 for bad input.
    """
    flash = _model(model)
    emulated = machines.BY_NAME[machine]
    least, most = firmware.LEAST_HEAP_BYTES, emulated.target.most_heap_bytes
    if not least <= heap <= most:
        raise BadInput(f"--heap {heap:,}: --machine {machine} takes {least:,} to {most:,} bytes")
    if fence > heap:
        raise BadInput(f"--fence {fence:,}: more than the --heap of {heap:,} bytes")
    if flash and emulated.flash_at is None:
        raise BadInput(f"--model: --machine {machine} has no memory-mapped flash")
    with Qemu(heap, machine=emulated, flash=flash) as board:
        path = [modules.tree(board.machine.arch)] if compiled else None
        try:
            done = board.run(
                script, arguments, path=path, fence_bytes=fence, timeout_s=timeout, stream=sys.stdout
            )
        except NoRoom as full:
            if full.missing_bytes is not None:
                raise BadInput(f"--fence {fence:,}: {full}; raise --heap or lower it") from full
            _complain(f"does not fit: {full}; raise --heap")
            return 1
        sys.stderr.write(done.stderr)
        if json_path is not None:
            figures.write_json(json_path, board.report)
        if done.status is None:
            _complain("it did not end in time")
        elif board.ended and done.status == 1:
            _complain("the board ended before the script")
    return 1 if done.status is None or done.status < 0 else done.status


def main() -> NoReturn:
    try:
        with files.session():
            sys.exit(command(prog_name="python -m qemu_port", standalone_mode=False))
    except click.ClickException as error:
        _complain(error.format_message())
    except (CommandError, PortError) as error:
        _complain(str(error))
    except OSError as error:  # a full disk, no room for temporary files
        _complain(f"{error.filename or 'output'}: {error.strerror or error}")
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(2)


if __name__ == "__main__":
    main()
