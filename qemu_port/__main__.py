"""`python -m qemu_port SCRIPT`: runs a MicroPython script on the emulated 32-bit board."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NoReturn

import click

from qemu_port import machines
from qemu_port.board import Qemu
from unix_port import compiled as modules
from unix_port.errors import PortError


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    epilog="""Example:

\b
  python -m qemu_port --heap 300000 host_tests/device/allocation.py int16
""",
)
@click.option("--heap", type=int, default=512 * 1024, show_default=True, help="Of the firmware, in bytes.")
@click.option("--fence", type=int, default=0, help="Bytes of it that are free when the script starts.")
@click.option("--compiled", is_flag=True, help="mpy_kv and the apps as .mpy files, as deployed.")
@click.option("--model", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="At 0x21000000.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Kill it then [default: 600].")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write what was measured there.")
@click.option(
    "--machine",
    type=click.Choice(sorted(machines.BY_NAME)),
    default="arm",
    show_default=True,
    help="A Cortex-M3, or a 32-bit RISC-V core.",
)
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    heap: int,
    fence: int,
    compiled: bool,
    model: Path | None,
    timeout: float | None,
    json_path: Path | None,
    machine: str,
    script: Path,
    arguments: tuple[str, ...],
) -> int:
    """Run SCRIPT with ARGUMENTS on the emulated board; it sees the files of this machine.

    Exit status: the script's; 1 when it did not end by itself, 2 for bad input.
    """
    with Qemu(heap, machine=machines.BY_NAME[machine], flash=model.read_bytes() if model else b"") as board:
        path = [modules.tree(board.machine.arch)] if compiled else None
        done = board.run(
            script, arguments, path=path, fence_bytes=fence, timeout_s=timeout, stream=sys.stdout
        )
        sys.stderr.write(done.stderr)
        if json_path is not None:
            json_path.write_text(json.dumps(board.report, indent=2) + "\n", encoding="utf-8")
        if done.status is None:
            click.echo("qemu_port: error: it did not end in time", err=True)
    return 1 if done.status is None or done.status < 0 else done.status


def main() -> NoReturn:
    try:
        sys.exit(command(prog_name="python -m qemu_port", standalone_mode=False))
    except click.ClickException as error:
        click.echo(f"qemu_port: error: {error.format_message()}", err=True)
    except PortError as error:
        click.echo(f"qemu_port: error: {error}", err=True)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    sys.exit(2)


if __name__ == "__main__":
    main()
