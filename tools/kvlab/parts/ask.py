"""Which parts of mpy_kv a story takes: by its options, by the main.py of a board, by the model's image."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable
from typing import Any

from kvlab.parts.table import PARTS

ALL = "all"  # in the place of parts: the whole package

# What a story takes that is kept in a flash log.
OF_LOG = ("flash-log", "snapshot", "resume")

# Options of stories.main that need a part, whatever their value.
_OPTIONS = {
    **dict.fromkeys(("policy", "budget", "compress"), "token-eviction"),
    "requests": "paged",
    **dict.fromkeys(("save", "resume"), "snapshot"),
    "stream": "bus-stream",
}


def of_options(codecs: Iterable[str], policies: Iterable[str], requests: bool) -> list[str]:
    """Of element types and token policies by name, and of several stories at once. Policies share their code:
    one brings the others."""
    return [*codecs, *(["token-eviction"] if list(policies) else []), *(["paged"] if requests else [])]


def of_layers(codecs: Iterable[str]) -> list[str]:
    """Of an element type for each layer."""
    types = list(dict.fromkeys(codecs))
    return types if len(types) < 2 else [*types, "per-layer"]


def said_by_main(source: str) -> dict[str, Any]:
    """What a main.py calls stories.main with, where it stands there as a value."""
    found: dict[str, Any] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "stories.main":
            for option in node.keywords:
                with contextlib.suppress(ValueError):
                    found[str(option.arg)] = ast.literal_eval(option.value)
    return found


def of_main(source: str) -> list[str] | None:
    """Of what a main.py calls stories.main with; None where that cannot be read off its text."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != "stories.main":
            continue
        for option in node.keywords:
            if option.arg is None:
                return None
            try:
                value = ast.literal_eval(option.value)
            except ValueError:
                if option.arg == "codec":
                    return None
                value = option.arg
            if option.arg == "codec" and value is not None:
                named = of_layers([value] if isinstance(value, str) else value)
                found += [each for each in named if each in PARTS]
            elif option.arg in _OPTIONS and value is not None:
                found.append(_OPTIONS[option.arg])
    return found
