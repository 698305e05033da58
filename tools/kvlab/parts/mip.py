"""Lists of files that mip installs: package.json and its like."""

from __future__ import annotations

import json
from collections.abc import Iterable


def listed(urls: Iterable[tuple[str, str]], version: str, **more: str) -> str:
    """urls: where a file goes, and where it comes from, relative to the list. mip looks dependencies up in an
    index, so there are none. `more` is for people."""
    lines = ",\n".join(f"    {json.dumps(pair)}" for pair in urls)
    fields: dict[str, object] = {"deps": [], "version": version, **more}
    rest = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items())
    return f'{{\n  "urls": [\n{lines}\n  ],\n{rest}\n}}\n'
