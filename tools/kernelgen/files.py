"""The files that are made, and their text."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from types import ModuleType

from kernelgen.kernel import Source

COMMAND = "python tools/generate_kernels.py --write"

# Name of a module of kernelgen.sources -> the file of its kernels.
FILES: Mapping[str, str] = {
    "int8": "mpy_kv/kernels/thumb.py",
    "float16": "mpy_kv/kernels/float16/thumb.py",
    "int8_int4": "mpy_kv/kernels/int8_int4/thumb.py",
    "int4": "mpy_kv/kernels/int4/thumb.py",
    "stories": "boards/apps/stories/kernels/thumb.py",
    "stream": "mpy_kv/bus/stream/thumb.py",
    "tokens": "mpy_kv/eviction/tokens/thumb.py",
}


def kernels(source: ModuleType) -> list[Source]:
    """In the order in which they are defined."""
    return [value for value in vars(source).values() if isinstance(value, Source)]


def text(name: str) -> str:
    """What the file of that source is to be."""
    source = importlib.import_module(f"kernelgen.sources.{name}")
    made = f"# Made by `{COMMAND}` from tools/kernelgen/sources/{name}.py: change that."
    said = inspect.getdoc(source) or ""
    end = "\n" if "\n" in said else ""
    head = f'{made}\n"""{said}{end}"""\n\nimport micropython\n'
    return "\n\n".join([head, *(kernel.text() for kernel in kernels(source))])
