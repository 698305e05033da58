"""What may be in the log after a cut: of each record the newest version that was told to be kept, or a
later one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Record:
    """kept: the version that must be there, None: none must. later: put since, oldest first, with their
    numbers."""

    kept: bytes | None = None
    later: list[tuple[int, bytes]] = field(default_factory=list)

    def versions(self) -> list[bytes]:
        return [*([self.kept] if self.kept is not None else []), *(data for _, data in self.later)]

    @property
    def newest(self) -> bytes:
        return self.versions()[-1]


@dataclass
class Story:
    """A sequence: its identity, its slot, its records."""

    identity: int
    slot: int
    records: list[Record] = field(default_factory=list)

    @property
    def kept_count(self) -> int:
        """Records that must be there."""
        kept = [i + 1 for i, record in enumerate(self.records) if record.kept is not None]
        return max(kept, default=0)

    def settle(self, log: Any) -> None:
        """Take for kept what the log tells is."""
        for record in self.records:
            while record.later and log.durable(self.slot, record.later[0][0]):
                record.kept = record.later.pop(0)[1]


@dataclass
class Expected:
    """All sequences, and what is under way."""

    open: list[Story] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)  # identities
    closing: Story | None = None
    putting: tuple[Story, int, bytes] | None = None

    def faults(self, log: Any) -> list[str]:
        """What is wrong with the log as it was found."""
        said = [
            f"sequence {identity}: closed, and there again"
            for identity in self.closed
            if log.find(identity) >= 0
        ]
        for story in self.open:
            slot = log.find(story.identity)
            if slot < 0:
                if story is not self.closing and story.kept_count:
                    said.append(f"sequence {story.identity}: {story.kept_count} kept records are gone")
                continue
            said += self._of(log, story, slot)
        return said

    def _of(self, log: Any, story: Story, slot: int) -> list[str]:
        name = f"sequence {story.identity}"
        count = log.count[slot]
        putting = self.putting if self.putting is not None and self.putting[0] is story else None
        most = max(len(story.records), putting[1] + 1 if putting else 0)
        if not story.kept_count <= count <= most:
            return [f"{name}: {count} records, where {story.kept_count} to {most} can be"]
        said = []
        for i in range(count):
            found = read(log, slot, i)
            may = story.records[i].versions() if i < len(story.records) else []
            if putting and putting[1] == i:
                may = [*may, putting[2]]
            if found is None:
                said.append(f"{name}, record {i}: a miss")
            elif found not in may:
                said.append(f"{name}, record {i}: bytes that were never put, or were replaced for good")
        return said


def read(log: Any, slot: int, record: int) -> bytes | None:
    into = bytearray(log.record_bytes)
    size = log.read(slot, record, into)
    return bytes(into[:size]) if size >= 0 else None


def everything(log: Any) -> dict[int, list[bytes | None]]:
    """All that is in a log, by identity."""
    return {
        log.identity[slot]: [read(log, slot, i) for i in range(log.count[slot])]
        for slot in range(log.slots)
        if log.used[slot] and log.count[slot]
    }
