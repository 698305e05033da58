"""A flash log in files of a real littlefs, on the emulated board: other files come and go beside it, the
power is cut in operations of either, and somebody makes files of the log anew while it is in use.

What happens on the board is boards/apps/bench/beside.py, which says itself where one harms the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kvlab import paths
from kvlab.boards import Board
from unix_port.launcher import FlashFile, Report, emulate

SCRIPT = paths.APPS / "bench" / "beside.py"
UNCHECKED = "unchecked"
_TIMEOUT_S = 60
HEAP_BYTES = 1 << 20  # the flash is tried here, and not whether a board has room


@dataclass
class Kept:
    """The sequence that the log has told to be kept, and how many records of it."""

    identity: int = 0
    records: int = 0

    def follow(self, said: str) -> None:
        """What is said of the log in a start."""
        for line in said.splitlines():
            word, _, rest = line.partition(" ")
            if word == "kept":
                self.identity, self.records = (int(each) for each in rest.split())
            elif word == "closing":
                self.identity = self.records = 0

    def faults(self, said: str) -> list[str]:
        """Of what the next start has found."""
        if not self.records:
            return []
        found = next((line.split()[1:] for line in said.splitlines() if line.startswith("found ")), None)
        if found is None or int(found[0]) != self.identity or int(found[1]) < self.records:
            return [f"sequence {self.identity}: {self.records} kept records, found {found}"]
        return []


@dataclass
class Outcome:
    starts: int = 0
    cuts: int = 0
    violations: list[str] = field(default_factory=list)


class Beside:
    """Runs starts on a board; `unchecked`: without the check before a block's first write."""

    def __init__(
        self,
        board: Board,
        operations: int,
        seed: int = 1,
        unchecked: bool = False,
        progress: Callable[[], None] = lambda: None,
    ) -> None:
        self.board = board
        self.operations = operations
        self.seed = seed
        self.unchecked = unchecked
        self.progress = progress
        self.outcome = Outcome()

    def run(self, cuts: int) -> Outcome:
        """A new file system, one that goes on with so many operations of it cut, and files made anew."""
        first = self.start("first", None)
        kept = Kept()
        kept.follow(first.stdout)
        self._judge("first", first, Kept())
        again = self.start("again", first.flash_after)
        self._judge("again", again, kept)
        for at in _spread(first, cuts // 4):
            self.cut("first", None, Kept(), at)
        for at in _spread(again, cuts - cuts // 4):
            self.cut("again", first.flash_after, kept, at)
        self._judge("replaced", self.start("replaced", first.flash_after), kept)
        return self.outcome

    def cut(self, start: str, flash: bytes | None, before: Kept, at: int) -> None:
        """That start with the power cut in that operation on the flash, then two more."""
        name = f"{start}, cut at operation {at}"
        done = self.start(start, flash, cut_after=at)
        if done.outcome != "power cut":
            self._judge(name, done, before)
            return
        self.outcome.cuts += 1
        kept = Kept(before.identity, before.records)
        self._said(name, done)
        kept.follow(done.stdout)
        if done.flash_after is None or start == "first" and "mounted" not in done.stdout:
            return  # there is no file system yet
        for _ in range(2):
            done = self.start("again", done.flash_after, operations=12)
            self._judge(f"{name}, then again", done, kept)
            kept.follow(done.stdout)

    def start(
        self, start: str, flash: bytes | None, cut_after: int | None = None, operations: int = 0
    ) -> Report:
        """The same each time, up to a cut."""
        self.outcome.starts += 1
        self.progress()
        words = [start, operations or self.operations, 1000 * self.seed + len(start) + operations]
        return emulate(
            SCRIPT,
            [*words, *([UNCHECKED] if self.unchecked else [])],
            self.board.machine,
            heap_bytes=HEAP_BYTES,
            keep_flash=True,
            cut_after=cut_after,
            flash=[FlashFile(flash)] if flash is not None else [],
            timeout_s=_TIMEOUT_S,
        )

    def _judge(self, name: str, done: Report, kept: Kept) -> None:
        self._said(name, done)
        if not done.ok:
            last = (done.stderr.strip() or done.outcome).splitlines()[-1]
            self.outcome.violations.append(f"{name}: {last}")
        else:
            self.outcome.violations += [f"{name}: {fault}" for fault in kept.faults(done.stdout)]

    def _said(self, name: str, done: Report) -> None:
        lines = [line for line in done.stdout.splitlines() if line.startswith("violation: ")]
        self.outcome.violations += [f"{name}: {line.removeprefix('violation: ')}" for line in lines]


def operations_of(done: Report) -> int:
    """On the flash."""
    return (done.flash_programs or 0) + (done.flash_erases or 0)


def _spread(done: Report, count: int) -> Iterable[int]:
    """So many of its operations on the flash, all where there are no more."""
    total = operations_of(done)
    step = max(1, total // count) if count else 0
    return range(step // 2, total, step) if step else ()
