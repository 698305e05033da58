"""Reads boards/<name>/board.json: the single source of what is known of a board."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commandline.errors import BadInput, did_you_mean
from kvlab import paths
from kvlab.facts import SCHEMAS, Fact, Memory, memories, read_checked
from unix_port.machine import Machine, Partition

SCHEMA = SCHEMAS / "board.schema.json"


@dataclass(frozen=True)
class Board:
    """A board. `facts` by "section.name"; `machine` is what the emulator takes of them.

    `memories` for the planner: where things lie and how fast they are read.
    """

    name: str
    title: str
    chip: str
    port: str
    firmware: str
    facts: dict[str, Fact]
    machine: Machine
    memories: tuple[Memory, ...]
    stands_for: str | None = None  # the board whose heap the emulated one has

    @property
    def areas_bytes(self) -> tuple[int, ...]:
        """What each area of the heap can hold; one object must fit one. One area if it is not split."""
        split = self.facts.get("memory.areas_bytes")
        return tuple(split.value) if split else (self.machine.heap_bytes,)

    @property
    def emulated(self) -> bool:
        """The machine exists in an emulator alone: no board to buy, none to deploy to."""
        return self.port == "qemu"

    @property
    def memory_mapped_flash(self) -> bool:
        """Python reads the storage where it lies, without a copy."""
        return bool(self.facts["flash.memory_mapped"].value)


def names() -> list[str]:
    """The boards there are, by their folders."""
    return sorted(path.parent.name for path in paths.BOARDS.glob("*/board.json"))


def real_names() -> list[str]:
    """Those that can be bought: not the machine that exists in an emulator alone."""
    return [name for name in names() if not load(name).emulated]


def firmware_of(board: Board) -> Board | None:
    """The emulated board that stands for `board` with its objects of 32 bits, if there is one."""
    known = (load(name) for name in names())
    return next((one for one in known if one.stands_for == board.name), None)


def load(name: str) -> Board:
    """The board of that name. BadInput lists what there is when it is not known."""
    if name not in names():
        hint = did_you_mean(name, names())
        raise BadInput(f"--board {name}: no such board{hint} (boards: {', '.join(names())})")
    return read(paths.BOARDS / name / "board.json")


def read(path: Path) -> Board:
    """A board from its file. BadInput names the place in the file that is wrong."""
    data = read_checked(path, SCHEMA)
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
        storage_at=facts["flash.storage_at_bytes"].value if "flash.storage_at_bytes" in facts else 0,
        chip=data["chip"],
    )
    return Board(
        **{key: data[key] for key in ("name", "title", "chip", "port", "firmware")},
        facts=facts,
        machine=machine,
        memories=memories(data["memories"]),
        stands_for=data.get("stands_for"),
    )


Claim = tuple[bool, str]  # what must be so, and what to say where it is not


def _belongings(path: Path, name: str, port: str, facts: dict[str, Fact]) -> list[Claim]:
    """Which facts a board has."""
    return [
        (
            name == path.parent.name,
            f'name "{name}" is not that of its folder "{path.parent.name}"',
        ),
        (
            (port == "esp32") == ("flash.partition" in facts),
            "flash.partition belongs to esp32 boards, and only there",
        ),
        (
            (port == "rp2") == ("flash.storage_at_bytes" in facts),
            "flash.storage_at_bytes belongs to rp2 boards, and only there",
        ),
        (
            "flash.firmware_bytes" not in facts or "flash.storage_at_bytes" in facts,
            "flash.firmware_bytes needs flash.storage_at_bytes",
        ),
        (
            ("memory.psram_bytes" in facts) == ("memory.psram_mapped_bytes" in facts),
            "memory.psram_bytes and memory.psram_mapped_bytes belong together",
        ),
        (
            facts["memory.split_heap"].value == ("memory.areas_bytes" in facts),
            "memory.areas_bytes belongs to boards with a split heap, and only there",
        ),
        (
            facts["cpu.clocks_hz"].value[-1] == facts["cpu.clock_max_hz"].value,
            "the last of cpu.clocks_hz is not cpu.clock_max_hz",
        ),
        (
            facts["cpu.clocks_hz"].value == sorted(set(facts["cpu.clocks_hz"].value)),
            "cpu.clocks_hz do not rise",
        ),
        (all(fact.kind != "chosen" for fact in facts.values()), "a board has no chosen facts"),
    ]


def _sizes(facts: dict[str, Fact]) -> list[Claim]:
    """What must be equal, not more, or a multiple."""

    def value(key: str) -> int:
        number: int = facts[key].value
        return number

    claims: list[Claim] = []
    areas = facts.get("memory.areas_bytes")
    if areas is not None:
        for key, total in (
            ("memory.heap_bytes", sum(areas.value)),
            ("memory.largest_object_bytes", max(areas.value)),
        ):
            claims.append(
                (value(key) == total, f"{key} {value(key):,} is not the {total:,} of memory.areas_bytes")
            )
    psram = "memory.psram_mapped_bytes" in facts
    if psram:
        claims.append(
            (
                value("memory.psram_mapped_bytes") <= value("memory.psram_bytes"),
                f"memory.psram_mapped_bytes {value('memory.psram_mapped_bytes'):,} is more than"
                f" memory.psram_bytes {value('memory.psram_bytes'):,}",
            )
        )
    for small, large in (
        ("memory.largest_object_bytes", "memory.heap_bytes"),
        ("memory.heap_bytes", "memory.psram_mapped_bytes" if psram else "memory.sram_bytes"),
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
    if "flash.storage_at_bytes" in facts:
        claims += _places(facts)
    return claims


def _places(facts: dict[str, Fact]) -> list[Claim]:
    """Where things lie in the flash of an rp2 board: firmware, then on a whole block the storage."""
    chip, begin, size, block = (
        facts[f"flash.{key}_bytes"].value for key in ("chip", "storage_at", "storage", "erase")
    )
    claims: list[Claim] = [
        (
            begin % block == 0,
            f"flash.storage_at_bytes {begin:,} is no multiple of flash.erase_bytes {block:,}",
        ),
        (
            begin + size <= chip,
            f"flash.storage_at_bytes and flash.storage_bytes end at {begin + size:,}, after the"
            f" {chip:,} of flash.chip_bytes",
        ),
    ]
    firmware = facts.get("flash.firmware_bytes")
    if firmware is not None:
        claims.append(
            (
                firmware.value <= begin,
                f"flash.firmware_bytes {firmware.value:,} is more than flash.storage_at_bytes {begin:,}",
            )
        )
    return claims


def _check(path: Path, name: str, port: str, facts: dict[str, Fact]) -> None:
    """What a schema cannot say: the facts must agree with one another."""
    for true, otherwise in _belongings(path, name, port, facts) + _sizes(facts):
        if not true:
            raise BadInput(f"{paths.shown(path)}: {otherwise}")
