"""Runs a workload, and in each of its operations on the flash cuts the power of a copy of it.

The copy starts, recovers, is compared with what may be there, written on, and started once more. It is cut
a second time within its recovery, at one operation or at every one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kvlab.powercut.breaks import broken
from kvlab.powercut.expected import Expected, everything
from kvlab.powercut.flash import Nor, PowerCut
from kvlab.powercut.workload import Workload
from mpy_kv.flash_log.formatting import format_log
from mpy_kv.flash_log.log import FOOT_AT, SUPERBLOCKS

KINDS = ("payload", "summary", "superblock", "erase", "recovery")
STATES = ("wrapped", "full", "closed")


@dataclass(frozen=True)
class Plan:
    """What is cut. every: of so many operations one; whole: of so many of these cuts, evenly among them, the
    second one is made at every operation of the recovery."""

    sectors: int
    record_bytes: int
    operations: int = 500
    every: int = 1
    whole: int = 50
    kinds: tuple[str, ...] = ()  # only cuts in these; none: in all
    seed: int = 1
    broken: str | None = None
    most_violations: int = 20


@dataclass
class Outcome:
    """What came of it."""

    operations: int = 0
    cuts: int = 0
    second_cuts: int = 0
    whole: int = 0  # recoveries of which every operation was cut
    cuts_by_kind: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)
    payload_bytes: int = 0
    programmed_bytes: int = 0
    blank_bytes: int = 0
    wear: tuple[int, int] = (0, 0)

    @property
    def write_amplification(self) -> float:
        return (self.programmed_bytes + self.blank_bytes) / max(1, self.payload_bytes)


def kind_of(kind: str, sector: int, offset: int, data: bytes) -> str:
    if kind == "erase":
        return "erase"
    if sector < SUPERBLOCKS:
        return "superblock"
    last = offset + len(data) > FOOT_AT and data[-4:] != b"\xff\xff\xff\xff"
    return "summary" if last else "payload"


class Cuts:
    """One run."""

    def __init__(self, plan: Plan, progress: Callable[[], None] = lambda: None) -> None:
        self.plan = plan
        self.outcome = Outcome()
        self.progress = progress
        self._seen = 0
        self._erased: set[int] = set()

    def run(self) -> Outcome:
        with broken(self.plan.broken) as (made, opened):
            self._made, self._opened = made, opened
            nor = Nor(self.plan.sectors, self.plan.seed)
            format_log(self._new(nor))
            log = opened(self._new(nor))
            while log.step():
                pass
            self.work = Workload(log, self.plan.record_bytes, self.plan.seed)
            nor.before = self._before
            self._nor = nor
            before = nor.fresh_pages
            try:
                for fill in (False, True):
                    self.work.run(self.plan.operations // 2, fill)
            except _Enough:
                pass
            nor.before = None
            self._figures(nor, log, before)
        return self.outcome

    def _figures(self, nor: Any, log: Any, before: int) -> None:
        self.outcome.operations = self.work.operations
        self.outcome.payload_bytes = log.payload_bytes
        self.outcome.programmed_bytes = (nor.fresh_pages - before) * nor.page_bytes
        self.outcome.blank_bytes = log.blank_bytes
        wear = nor.wear[SUPERBLOCKS:]
        self.outcome.wear = (min(wear), max(wear))

    def _new(self, nor: Any) -> Any:
        blocks = self.plan.sectors * 4096 // self.plan.record_bytes + 8
        return self._made(nor, self.plan.record_bytes, slots=6, blocks=blocks)

    def _before(self, kind: str, sector: int, offset: int, data: bytes) -> None:
        """Of the flash, before each operation: cut it in a copy."""
        if kind == "erase":
            self._erased.add(sector)
        self._seen += 1
        if self._seen % self.plan.every:
            return
        of = kind_of(kind, sector, offset, data)
        if self.plan.kinds and of not in self.plan.kinds:
            return
        self.progress()
        torn = self._nor.copy(self._seen * 7919 + self.plan.seed)
        if kind == "erase":
            torn.cut_erase(sector)
        else:
            torn.cut_program(sector, offset, data)
        self.outcome.cuts += 1
        self.outcome.cuts_by_kind[of] += 1
        self._count_states()
        name = f"operation {self._seen} ({of})"
        recovery = self._check(torn.copy(self._seen), name)
        if recovery < 1:
            return
        points: list[int] = [torn.chance(recovery)]
        apart = max(1, self.plan.operations // 5 // self.plan.every)
        if self.outcome.whole < self.plan.whole and self.outcome.cuts > apart * self.outcome.whole:
            self.outcome.whole += 1
            points = list(range(recovery))
        for point in points:
            self._second(torn, point, name)

    def _count_states(self) -> None:
        states = self.outcome.states
        states["wrapped"] += len(self._erased) >= self.plan.sectors - SUPERBLOCKS
        states["full"] += self.work.full > 0
        states["closed"] += self.work.closed > 0

    def _second(self, torn: Any, point: int, name: str) -> None:
        """The same cut, and another one at that operation of the recovery."""
        nor = torn.copy(self._seen)
        try:
            nor.power_on()
            nor.cut_after = point
            log = self._opened(self._new(nor))
            while log.step():
                pass
            return  # by chance it needed fewer operations
        except PowerCut:
            pass
        except Exception as error:  # what a start raises is a violation, whatever it is
            self._violation(f"{name}, then at {point} of its recovery: {type(error).__name__}: {error}")
            return
        self.outcome.second_cuts += 1
        self.outcome.cuts_by_kind["recovery"] += 1
        self._check(nor, f"{name}, then at {point} of its recovery")

    def _check(self, nor: Any, name: str) -> int:
        """Start, compare, write on, start again. Returns the operations that the recovery took; -1: it
        failed."""
        nor.power_on()
        before = nor.programs + nor.erases
        expected: Expected = self.work.expected
        try:
            log = self._opened(self._new(nor))
            while log.step():
                pass
            took = int(nor.programs + nor.erases - before)
            faults = expected.faults(log)
            there = everything(log)
            self._write_on(log, there)
            nor.power_on()
            again = everything(self._opened(self._new(nor)))
        except Exception as error:  # as above
            self._violation(f"{name}: {type(error).__name__}: {error}")
            return -1
        if not faults and again != there:
            faults = ["another start, and a record that was written since, find other bytes"]
        for fault in faults:
            self._violation(f"{name}: {fault}")
        return -1 if faults else took

    def _write_on(self, log: Any, there: dict[int, list[bytes | None]]) -> None:
        """One record more, in a sequence that is there; add it to what is."""
        for slot in range(log.slots):
            if log.used[slot] and log.count[slot] and log.free > log.reserve + log.ahead:
                data = bytes([self._seen & 255]) * self.plan.record_bytes
                log.put(slot, log.count[slot], data, [0, len(data)])
                log.sync(slot)
                there[log.identity[slot]].append(data)
                return

    def _violation(self, says: str) -> None:
        self.outcome.violations.append(says)
        if len(self.outcome.violations) >= self.plan.most_violations:
            raise _Enough


class _Enough(BaseException):
    """So many violations that the rest tells nothing more."""
