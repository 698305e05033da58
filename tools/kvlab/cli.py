"""The `kvlab` command line: loads `kvlab/commands/NAME.py` when NAME is asked for, and turns
errors into one line.

Exit status: 0 done, 1 does not fit or fell short, 2 bad input, 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from kvlab import __version__, commands
from kvlab.errors import BadInput, KvlabError, did_you_mean

INTERRUPTED = 130


class Commands(click.Group):
    """One module of `kvlab.commands` a command, imported only when named or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = (module.name for module in pkgutil.iter_modules(commands.__path__))
        return sorted(name.replace("_", "-") for name in names if not name.startswith("_"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        known = self.list_commands(ctx)
        if cmd_name not in known:
            hint = did_you_mean(cmd_name, known) or f"; commands: {', '.join(known)}"
            raise BadInput(f'no command "{cmd_name}"{hint}')
        module = importlib.import_module(f"kvlab.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        command.name = cmd_name
        return command


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="kvlab", message="%(prog)s %(version)s")
def kvlab() -> None:
    """KV caches in MicroPython: emulate a board, tell a story, measure, convert a model.

    `kvlab COMMAND --help` shows an example of each. `kvlab doctor` checks this machine.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status. Prints errors as one line on stderr."""
    try:
        status = kvlab.main(
            args=None if arguments is None else list(arguments),
            prog_name="kvlab",
            standalone_mode=False,
        )
    except KvlabError as error:
        return _complain(str(error), error.exit_code)
    except click.NoSuchOption as error:
        known = [
            name
            for option in (error.ctx.command.params if error.ctx else [])
            for name in option.opts
        ]
        return _complain(
            f"no option {error.option_name}{did_you_mean(error.option_name, known)}", 2
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _complain(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("kvlab: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`kvlab ... | head`). Nothing is left to tell it; keep Python from
        # trying at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    return status if isinstance(status, int) else 0


def _complain(message: str, status: int) -> int:
    click.echo(f"kvlab: error: {' '.join(message.split())}", err=True)
    return status


def run() -> NoReturn:
    """The console script."""
    sys.exit(main())
