"""Reads boards/<name>/board.json: the single source of what is known of a board."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvlab import paths
from kvlab.errors import BadInput, did_you_mean
from unix_port.machine import Machine, Partition

SCHEMA = paths.BOARDS / "schema" / "board.schema.json"


@dataclass(frozen=True)
class Fact:
    """A value and where it comes from. `kind`: vendor, measured, secondary or derived."""

    value: Any
    kind: str
    source: str
    note: str = ""


@dataclass(frozen=True)
class Board:
    """A board. `facts` by "section.name"; `machine` is what the emulator takes of them."""

    name: str
    title: str
    chip: str
    port: str
    firmware: str
    facts: dict[str, Fact]
    machine: Machine

    @property
    def memory_mapped_flash(self) -> bool:
        """Python reads the storage where it lies, without a copy."""
        return bool(self.facts["flash.memory_mapped"].value)


def names() -> list[str]:
    """The boards there are, by their folders."""
    return sorted(path.parent.name for path in paths.BOARDS.glob("*/board.json"))


def load(name: str) -> Board:
    """The board of that name. BadInput lists what there is when it is not known."""
    if name not in names():
        hint = did_you_mean(name, names())
        raise BadInput(f"--board {name}: no such board{hint} (boards: {', '.join(names())})")
    return read(paths.BOARDS / name / "board.json")


def read(path: Path) -> Board:
    """A board from its file. BadInput names the place in the file that is wrong."""
    import jsonschema

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{paths.shown(path)}: not readable as JSON: {error}") from error
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    # The deepest complaint says most: "memory.heap_bytes.value: -1 is less than 1".
    wrong = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(data)
    )
    if wrong is not None:
        place = ".".join(str(step) for step in wrong.absolute_path) or "top level"
        raise BadInput(f"{paths.shown(path)}: {place}: {wrong.message}")
    facts = {
        f"{section}.{key}": Fact(**fact)
        for section in ("memory", "cpu", "flash")
        for key, fact in data[section].items()
    }
    _check(path, data["name"], data["port"], facts)
    partition = facts.get("flash.partition")
    machine = Machine(
        name=data["name"],
        port=data["port"],
        heap_bytes=facts["memory.heap_bytes"].value,
        largest_object_bytes=facts["memory.largest_object_bytes"].value,
        clock_hz=facts["cpu.clock_hz"].value,
        clock_max_hz=facts["cpu.clock_max_hz"].value,
        native_code_in_heap=facts["cpu.native_code_in_heap"].value,
        split_heap=facts["memory.split_heap"].value,
        flash_bytes=facts["flash.storage_bytes"].value,
        flash_erase_bytes=facts["flash.erase_bytes"].value,
        flash_program_bytes=facts["flash.program_bytes"].value,
        partition=Partition(**partition.value) if partition else None,
    )
    return Board(
        **{key: data[key] for key in ("name", "title", "chip", "port", "firmware")},
        facts=facts,
        machine=machine,
    )


def _check(path: Path, name: str, port: str, facts: dict[str, Fact]) -> None:
    """What a schema cannot say: the facts must agree with one another."""

    def value(key: str) -> int:
        number: int = facts[key].value
        return number

    claims = [
        (
            name == path.parent.name,
            f'name "{name}" is not that of its folder "{path.parent.name}"',
        ),
        (
            (port == "esp32") == ("flash.partition" in facts),
            "flash.partition belongs to esp32 boards, and only there",
        ),
    ]
    for small, large in (
        ("memory.largest_object_bytes", "memory.heap_bytes"),
        ("memory.heap_bytes", "memory.sram_bytes"),
        ("cpu.clock_hz", "cpu.clock_max_hz"),
        ("flash.storage_bytes", "flash.chip_bytes"),
        ("flash.program_bytes", "flash.erase_bytes"),
    ):
        claims.append(
            (
                value(small) <= value(large),
                f"{small} {value(small):,} is more than {large} {value(large):,}",
            )
        )
    for part, whole in (
        ("flash.program_bytes", "flash.erase_bytes"),
        ("flash.erase_bytes", "flash.storage_bytes"),
    ):
        claims.append(
            (
                value(whole) % value(part) == 0,
                f"{whole} {value(whole):,} is no multiple of {part} {value(part):,}",
            )
        )
    for true, otherwise in claims:
        if not true:
            raise BadInput(f"{paths.shown(path)}: {otherwise}")
