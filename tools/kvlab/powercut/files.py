"""The same for records in plain files: in each operation on a poor file system the power is cut, and any part
of what was not synced is left.

The file system is the emulator's model, loaded by its path as it is no module of the host's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kvlab.powercut.expected import Story, everything, read
from kvlab.powercut.flash import module
from kvlab.powercut.workload import Workload
from mpy_kv.file_store import store as device
from mpy_kv.file_store.opening import open_store

RECORD_BYTES = 640
ROOM = 20  # records that the file system has room for
FOLDER = "/kv"

PoorFiles: Any = module("poor_files").PoorFiles
_Store: Any = device.FileStore


class _NoFlush(_Store):
    def _flush(self, f: Any) -> None:
        pass


class _NoSync(_Store):
    def _sync(self) -> None:
        pass


class _RemovedFirst(_Store):
    def _name(self, beside: str, target: str) -> None:
        slot = self.find(self.told(device.IDENTITY_AT))
        entry = self._entry(slot, self.told(device.RECORD_AT))
        if entry >= 0:
            self._remove(self.numbers[entry])
        super()._name(beside, target)


class _InPlace(_Store):
    def _beside(self, entry: int) -> str:
        return str(self.path(self.numbers[entry]) if entry >= 0 else super()._beside(entry))


FILE_BREAKS: dict[str, str] = {
    "flush-before-rename": "a file has its name before its bytes are on the storage",
    "name-sync": "what a file replaces is removed before its name is on the storage",
    "replace-order": "what a file replaces is removed before it has its name",
    "temporary": "a version is written over the one before",
}

_CLASSES: dict[str | None, type[Any]] = {
    "flush-before-rename": _NoFlush,
    "name-sync": _NoSync,
    "replace-order": _RemovedFirst,
    "temporary": _InPlace,
}


@dataclass
class FileOutcome:
    """What came of it. second_cuts: in a start after a cut."""

    operations: int = 0
    cuts: int = 0
    second_cuts: int = 0
    full: int = 0
    violations: list[str] = field(default_factory=list)


class _Cut(BaseException):
    """The power is gone."""


class FileCuts:
    """One run. every: of so many operations on the file system one is cut."""

    def __init__(
        self, operations: int, every: int = 1, seed: int = 1, broken: str | None = None, most: int = 20
    ) -> None:
        self.operations = operations
        self.every = every
        self.random = random.Random(seed)
        self.seed = seed
        self.most = most
        self.outcome = FileOutcome()
        self._made = _CLASSES.get(broken, _Store)
        self._seen = 0

    def run(self) -> FileOutcome:
        self.fs = PoorFiles(ROOM * (RECORD_BYTES + device.HEAD + device.TAIL) + 100)
        self.work = Workload(self._opened(self.fs), RECORD_BYTES, self.seed)
        self.fs.before = self._before
        for fill in (False, True):
            for _ in range(self.operations // 2):
                if len(self.outcome.violations) < self.most:
                    self.work.run(1, fill)
        self.outcome.operations = self.work.operations
        self.outcome.full = self.work.full
        return self.outcome

    def _opened(self, fs: Any) -> Any:
        return open_store(self._made(FOLDER, RECORD_BYTES, slots=6, blocks=64, fs=fs))

    def _before(self, kind: str, path: str) -> None:
        """Of the file system, before each operation: cut it in a copy."""
        self._seen += 1
        if self._seen % self.every or len(self.outcome.violations) >= self.most:
            return
        name = f"files, operation {self._seen} ({kind})"
        self.outcome.cuts += 1
        left = self.fs.after_cut(self.random.randrange)
        again = left.after_cut(self.random.randrange)  # nothing is pending: a copy
        self.outcome.violations += self._faults(left, name)
        steps = self._cut_start(again, self.random.randrange(3))
        if steps:
            self.outcome.second_cuts += 1
            other = again.after_cut(self.random.randrange)
            self.outcome.violations += self._faults(other, f"{name}, then at {steps} of a start")

    def _cut_start(self, fs: Any, last: int) -> int:
        """Cut the power in a start; the operation at which, 0: it needed fewer."""
        seen = 0

        def before(kind: str, path: str) -> None:
            nonlocal seen
            seen += 1
            if seen > last:
                raise _Cut

        fs.before = before
        try:
            self._opened(fs)
        except _Cut:
            fs.before = None
            return seen
        return 0

    def _faults(self, fs: Any, name: str) -> list[str]:
        """Start, compare, put one more, start again."""
        try:
            store = self._opened(fs)
            said = [*self._wrong(store)]
            if not said:
                there = everything(store)
                self._write_on(store, there)
                said = [*self._wrong_again(fs, there)]
        except Exception as error:  # what a start raises is a violation, whatever it is
            said = [f"{type(error).__name__}: {error}"]
        return [f"{name}: {each}" for each in said]

    def _wrong(self, store: Any) -> Iterator[str]:
        expected = self.work.expected
        for identity in expected.closed:
            if store.find(identity) >= 0:
                yield f"sequence {identity}: closed, and there again"
        for story in expected.open:
            slot = store.find(story.identity)
            for i in range(len(story.records) + 1):
                found = read(store, slot, i) if slot >= 0 else None
                yield from self._of(story, i, found)
            if slot >= 0 and store.count[slot] > len(story.records) + 1:
                yield f"sequence {story.identity}: {store.count[slot]} records"
        used = sum(
            len(data) + device.HEAD + device.TAIL
            for records in everything(store).values()
            for data in records
            if data is not None
        )
        if used != store.used_bytes:
            yield f"{store.used_bytes} bytes are told to be used, {used} are"

    def _of(self, story: Story, i: int, found: bytes | None) -> Iterator[str]:
        name = f"sequence {story.identity}, record {i}"
        may = story.records[i].versions() if i < len(story.records) else []
        putting = self.work.expected.putting
        if putting is not None and putting[0] is story and putting[1] == i:
            may = [*may, putting[2]]
        closing = story is self.work.expected.closing
        if found is None and i < len(story.records) and story.records[i].kept is not None and not closing:
            yield f"{name}: it was kept, and is a miss"
        if found is not None and found not in may:
            yield f"{name}: bytes that were never put, or were replaced for good"

    def _write_on(self, store: Any, there: dict[int, list[bytes | None]]) -> None:
        """One record more, in a sequence that is there; add it to what is."""
        for slot in range(store.slots):
            if store.used[slot]:
                data = bytes([self._seen & 255]) * RECORD_BYTES
                store.fs.room += 2 * RECORD_BYTES
                store.put(slot, store.count[slot], data, [0, len(data)])
                there[store.identity[slot]].append(data)
                return

    def _wrong_again(self, fs: Any, there: dict[int, list[bytes | None]]) -> Iterator[str]:
        """Everything synced is there at two more starts, and the second one changes nothing."""
        left = fs.after_cut(lambda n: n - 1)  # of what is not synced, all that names do
        if everything(self._opened(left)) != there:
            yield "another start, and a record that was written since, find other bytes"
        names = sorted(left.here)
        self._opened(left)
        if names != sorted(left.here):
            yield "a third start finds something to remove"


__all__ = ["FILE_BREAKS", "FileCuts", "FileOutcome"]
