"""Facts with sources: how boards, profiles and models state them, and how their files are read.

`models.json` beside this file holds the shapes of published models, `buses.json` what a transfer takes on the
bus of each board and of the larger profiles.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from commandline.errors import BadInput
from kvlab import output, paths

SCHEMAS = paths.BOARDS / "schema"
MODELS = Path(__file__).parent / "models.json"


@dataclass(frozen=True)
class Fact:
    """A value and where it comes from. `kind`: vendor, measured, secondary, derived or chosen."""

    value: Any
    kind: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class Memory:
    """One memory of a board or a profile; what its role means is in facts.schema.json."""

    name: str
    role: str  # main, weights, cache or extension
    size_bytes: Fact
    read_bytes_per_s: Fact
    write_bytes_per_s: Fact | None = None
    latency_ns: Fact | None = None

    def facts(self) -> dict[str, Fact]:
        """Its facts by name."""
        names = ("size_bytes", "read_bytes_per_s", "write_bytes_per_s", "latency_ns")
        return {name: fact for name in names if (fact := getattr(self, name)) is not None}


def memories(data: Iterable[Mapping[str, Any]]) -> tuple[Memory, ...]:
    """The list `memories` of a checked file."""
    return tuple(
        Memory(m["name"], m["role"], **{k: Fact(**v) for k, v in m.items() if k not in ("name", "role")})
        for m in data
    )


def memory_of(known: Iterable[Memory], *roles: str) -> Memory:
    """The first memory with the first of `roles` that there is. LookupError when there is none."""
    for role in roles:
        for memory in known:
            if memory.role == role:
                return memory
    raise LookupError(f"no memory of role {' or '.join(roles)}")


def read_checked(path: Path, schema: Path) -> dict[str, Any]:
    """A JSON file that keeps its schema. BadInput names the place in the file that is wrong."""
    data: dict[str, Any] = read_json(path, paths.shown(path))
    check(data, schema, paths.shown(path))
    return data


def read_json(path: Path, name: str) -> Any:
    """What is in a JSON file, with or without a byte order mark. BadInput, which starts with `name`."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise BadInput(f"{name}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name}: not readable as JSON: {error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. ValueError names a key that is in it twice: which of the two holds is not said."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f'the key "{key[:80]}" is there twice')
        found[key] = value
    return found


def check(data: Any, schema: Path, name: str) -> None:
    """BadInput, which starts with `name`, names the place in `data` that does not keep the schema."""
    from jsonschema.exceptions import best_match

    # The deepest complaint says most: "memory.heap_bytes.value: -1 is less than 1".
    wrong = best_match(_checker(schema).iter_errors(data))
    if wrong is not None:
        place = ".".join(str(step) for step in wrong.absolute_path) or "top level"
        said = wrong.message  # with the value in it, which may be long
        if len(said) > 160:
            said = f"{said[:80]} ... {said[-80:]}"
        raise BadInput(f"{name}: {place}: {said}")


@cache
def _checker(schema: Path) -> Any:
    """A validator for the schema file. An integer is one as written: to JSON Schema 1.0e5 is one too."""
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry, Resource

    types = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _checker, value: isinstance(value, int) and not isinstance(value, bool)
    )
    shared = SCHEMAS / "facts.schema.json"
    registry: Any = Registry().with_resource(
        shared.name, Resource.from_contents(json.loads(shared.read_text(encoding="utf-8")))
    )
    kind: Any = validators.extend(Draft202012Validator, type_checker=types)
    return kind(json.loads(schema.read_text(encoding="utf-8")), registry=registry)


def shown(name: str, value: Any) -> str:
    """A value for people, with the unit that the end of its name tells."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return (", " if name.endswith("_hz") else " + ").join(shown(name, each) for each in value)
    if not isinstance(value, int):
        return json.dumps(value)
    if name.endswith("_bytes_per_s"):
        scale, unit = next((s, u) for s, u in ((10**9, "GB/s"), (10**6, "MB/s"), (1, "B/s")) if value >= s)
        return f"{value / scale:g} {unit}"
    if name.endswith("_bytes"):
        return output.size(value)
    if name.endswith("_hz"):
        return f"{value / 1e6:g} MHz"
    return f"{value:,} ns" if name.endswith("_ns") else f"{value:,}"


def cited(name: str, fact: Fact) -> str:
    """A fact's source and note in one line."""
    return f"{name}: {fact.source}" + (f" ({fact.note})" if fact.note else "")
