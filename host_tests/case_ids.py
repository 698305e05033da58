"""The id of a test's case, from its parameters: what they are, nothing else.

Workers collect on their own and must agree, so an id holds no address, time, path or order of a set, nor
the place in a list of cases, which moves with the next case. Numbers, words and names of functions are ids
of themselves, containers and records of them are spelt out. Of anything else, such as packed bytes (which
often hold a time) and lambdas, the id is the kind: where the other parameters do not tell such cases apart,
pytest refuses them (`strict_parametrization_ids`), and they need `pytest.param(..., id="...")` or `ids=`.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import numbers
import re
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parent.parent
# Longer text is cut, with a digest of the whole.
MOST_CHARACTERS = 60


def case_id(value: object) -> str:
    """Of one parameter, at most MOST_CHARACTERS."""
    text = spelt(value)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[: MOST_CHARACTERS - 9]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def spelt(value: object) -> str:
    """The value in full, as far as it is one."""
    kind = type(value).__name__
    if isinstance(value, enum.Enum | bool | int | float | complex | None):
        return str(value)
    if isinstance(value, numbers.Number):
        return f"{kind} {value}"
    if isinstance(value, PurePath):
        return value.relative_to(ROOT).as_posix() if value.is_relative_to(ROOT) else value.name
    if isinstance(value, str):
        return value.replace(f"{ROOT}/", "").replace(str(ROOT), ".").encode("unicode_escape").decode()
    if isinstance(value, bytes) and re.fullmatch(rb"[\t\n\r -~]*", value):
        return f"bytes {spelt(value.decode())}"
    if isinstance(value, re.Pattern):
        return spelt(value.pattern)
    if isinstance(value, dict):
        return ",".join(f"{spelt(key)}={spelt(value[key])}" for key in value) or "nothing"
    if isinstance(value, list | tuple | range):
        return " ".join(map(spelt, value)) or "nothing"
    if isinstance(value, set | frozenset):
        return " ".join(sorted(map(spelt, value))) or "nothing"
    if isinstance(value, BaseException):
        return f"{kind} {spelt(value.args)}"
    if isinstance(value, type):
        return value.__name__
    if dataclasses.is_dataclass(value):
        return f"{kind} {spelt(vars(value))}"
    name = getattr(value, "__name__", kind)
    return kind if name == "<lambda>" else name
