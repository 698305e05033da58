"""Errors for the user to read: one line on stderr and an exit status, never a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class CommandError(Exception):
    """Base. The message is one line, names the numbers, and says which option to change."""

    exit_code = 2


class BadInput(CommandError):
    """The user gave something that cannot be used: exit status 2."""


class FellShort(CommandError):
    """Good input, and the answer is no: does not fit, or missed its target. Status 1."""

    exit_code = 1


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean "rp2040"?` for the nearest of `known`, or nothing when none is near."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""
