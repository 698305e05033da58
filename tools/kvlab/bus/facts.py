"""What a transfer takes on the bus of a board or a profile: facts/buses.json."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from commandline.errors import BadInput, did_you_mean
from kvlab.bus.kinds import KV_WRITE, WEIGHTS
from kvlab.facts import MODELS, Fact, read_checked

BUSES = MODELS.with_name("buses.json")
SCHEMA = MODELS.with_name("buses.schema.json")

_PS = 10**12


@dataclass(frozen=True)
class Figures:
    """A bus: bytes a second that are read and written, what each transfer takes beside them, and the rate of
    half reads and half writes in per cent of that of reads alone. weights: bytes a second where the core
    reads them in place, from another memory; 0: they lie with the caches, and may be fetched ahead.

    Times are whole picoseconds, rounded up, so that nothing depends on the order of sums.
    """

    name: str
    memory: str
    peak: int
    write: int
    overhead_ns: int = 0
    mixed_pct: int = 100
    weights: int = 0

    def transfer_ps(self, nbytes: int, kind: int, turned: int = 0, vectors: int = 0) -> int:
        """So long the bus is taken. turned: the bytes of the transfer before, if that went the other way.
        vectors: bytes of the main memory that are moved beside weights, wherever these lie.

        Where equal reads and writes take turns, every one of them is longer by what makes their rate
        mixed_pct of that of reads. Of unequal neighbours only as much is mixed as the smaller has.
        """
        beside = -(-vectors * _PS // self.peak)
        if kind == WEIGHTS and self.weights:
            return -(-nbytes * _PS // self.weights) + beside
        rate = self.write if kind == KV_WRITE else self.peak
        mixed = min(nbytes, turned) * (100 - self.mixed_pct)
        took = -(-(nbytes * self.mixed_pct + mixed) * _PS // (rate * self.mixed_pct))
        return self.overhead_ns * 1000 + took + beside


def names() -> list[str]:
    """Boards and profiles that have a bus there."""
    return list(_entries())


def facts(name: str) -> dict[str, Fact]:
    """The facts of one by name."""
    entry = _entry(name)
    return {key: Fact(**value) for key, value in entry.items() if isinstance(value, dict)}


def figures(name: str) -> Figures:
    """The bus of that board or profile. BadInput lists what there is when it is not known."""
    entry, of = _entry(name), facts(name)
    peak = of["peak_bytes_per_s"].value
    write = of["write_bytes_per_s"].value if "write_bytes_per_s" in of else peak
    beside = {key: of[key].value for key in ("overhead_ns", "mixed_pct") if key in of}
    weights = of["weights_bytes_per_s"].value if "weights_bytes_per_s" in of else 0
    return Figures(name, entry["memory"], peak, write, weights=weights, **beside)


@cache
def _entries() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for entry in read_checked(BUSES, SCHEMA)["buses"]:
        if entry["name"] in found:
            raise BadInput(f"{BUSES.name}: {entry['name']} is there twice")
        found[entry["name"]] = entry
    return found


def _entry(name: str) -> dict[str, Any]:
    found = _entries()
    if name not in found:
        raise BadInput(f"no bus is known of {name}{did_you_mean(name, names())} (known: {', '.join(found)})")
    return found[name]
