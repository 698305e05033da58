"""Facts with sources: how boards, profiles and models state them, and how their files are read.

`models.json` beside this file holds the shapes of published models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlab import output, paths
from kvlab.errors import BadInput

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
    import jsonschema
    from referencing import Registry, Resource

    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{paths.shown(path)}: not readable as JSON: {error}") from error
    shared = SCHEMAS / "facts.schema.json"
    registry: Any = Registry().with_resource(
        shared.name, Resource.from_contents(json.loads(shared.read_text(encoding="utf-8")))
    )
    checker = jsonschema.Draft202012Validator(
        json.loads(schema.read_text(encoding="utf-8")), registry=registry
    )
    # The deepest complaint says most: "memory.heap_bytes.value: -1 is less than 1".
    wrong = jsonschema.exceptions.best_match(checker.iter_errors(data))
    if wrong is not None:
        place = ".".join(str(step) for step in wrong.absolute_path) or "top level"
        raise BadInput(f"{paths.shown(path)}: {place}: {wrong.message}")
    return data


def shown(name: str, value: Any) -> str:
    """A value for people, with the unit that the end of its name tells."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " + ".join(shown(name, each) for each in value)
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
