"""Reads the profiles beside this file: a level of hardware, its memories and the recommended defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commandline.errors import BadInput, did_you_mean
from kvlab.facts import Fact, Memory, memories, read_checked

FOLDER = Path(__file__).parent
SCHEMA = FOLDER / "profile.schema.json"


@dataclass(frozen=True)
class Profile:
    """A level of hardware, by one representative. `defaults`: what is recommended there."""

    name: str
    title: str
    level: str
    strategies: tuple[str, ...]
    memories: tuple[Memory, ...]
    reserved_bytes: Fact
    defaults: dict[str, Any]
    defaults_source: str


def names() -> list[str]:
    """The profiles there are, small to large."""
    found = {path.stem for path in FOLDER.glob("*.json") if path != SCHEMA}
    order = ("mcu", "soc", "edge", "server")
    return sorted(found, key=lambda name: (order.index(name) if name in order else len(order), name))


def load(name: str) -> Profile:
    """The profile of that name. BadInput lists what there is when it is not known."""
    if name not in names():
        hint = did_you_mean(name, names())
        raise BadInput(f"--profile {name}: no such profile{hint} (profiles: {', '.join(names())})")
    return read(FOLDER / f"{name}.json")


def read(path: Path) -> Profile:
    """A profile from its file. BadInput names the place in the file that is wrong."""
    data = read_checked(path, SCHEMA)
    if data["name"] != path.stem:
        raise BadInput(f'{path.name}: name "{data["name"]}" is not that of its file')
    known = memories(data["memories"])
    main = [memory for memory in known if memory.role == "main"]
    if len(main) != 1:
        raise BadInput(f"{path.name}: memories: {len(main)} of role main, one is needed")
    reserved = Fact(**data["reserved_bytes"])
    if reserved.value >= main[0].size_bytes.value:
        raise BadInput(f"{path.name}: reserved_bytes {reserved.value:,} is all of {main[0].name}")
    return Profile(
        *(data["name"], data["title"], data["level"], tuple(data["strategies"]), known, reserved),
        data["defaults"],
        data["defaults_source"],
    )
