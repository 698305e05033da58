"""The `kvlab` command line: loads `kvlab/commands/NAME.py` when NAME is asked for, and turns
errors into one line.

Exit status: 0 done, 1 does not fit or fell short, 2 bad input or an output that cannot be written,
130 interrupted, 143 terminated, 129 hung up. A reader that went away (`kvlab ... | head`) is no error.
"""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click

from commandline import files
from commandline.errors import BadInput, CommandError, did_you_mean
from kvlab import INTERRUPTED, __version__, commands, output
from unix_port import processes
from unix_port.errors import PortError


class ReaderGone(Exception):
    """Nobody reads our stdout any more. No OSError: click would end with status 1 on that."""


@contextmanager
def _reader() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise ReaderGone from error


class Commands(click.Group):
    """One module of `kvlab.commands` a command, imported only when named or listed."""

    def make_context(self, *words: Any, **how: Any) -> click.Context:
        with _reader():  # --help prints here
            return super().make_context(*words, **how)

    def invoke(self, ctx: click.Context) -> Any:
        with _reader():
            return super().invoke(ctx)

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
    _open_streams()
    try:
        with processes.stopped_by_signals(), files.session(), output.streams(), _reader():
            status = _run(arguments)
            sys.stdout.flush()
            return status
    except (click.Abort, KeyboardInterrupt):
        return _say("kvlab: interrupted", INTERRUPTED)
    except processes.Terminated as end:
        return _say("kvlab: terminated", end.status)
    except ReaderGone:
        _drop_output()
        return 0
    except OSError as error:  # a full disk, no room for temporary files: nothing of ours is wrong
        _drop_output()
        return _complain(f"{error.filename or 'output'}: {error.strerror or error}", 2)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        status = kvlab.main(
            args=None if arguments is None else list(arguments),
            prog_name="kvlab",
            standalone_mode=False,
        )
    except CommandError as error:
        return _complain(str(error), error.exit_code)
    except PortError as error:
        return _complain(str(error), 2)
    except click.NoSuchOption as error:
        known = [name for option in (error.ctx.command.params if error.ctx else []) for name in option.opts]
        return _complain(f"no option {error.option_name}{did_you_mean(error.option_name, known)}", 2)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _complain(error.format_message(), 2)
    return status if isinstance(status, int) else 0


def _open_streams() -> None:
    """Streams that were closed go nowhere; what a terminal cannot show (bytes of a file name that are
    no UTF-8) is shown as an escape.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (open as long as we run)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What is still buffered can go nowhere: keep Python from trying again, and complaining, at exit."""
    with suppress(OSError, ValueError):  # no descriptor behind it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, status: int) -> int:
    return _say(f"kvlab: error: {' '.join(message.split())}", status)


def _say(line: str, status: int) -> int:
    with suppress(OSError):  # nobody reads that either
        click.echo(line, err=True)
    return status
