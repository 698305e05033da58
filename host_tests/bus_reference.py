"""The tracker's rules in exact rationals, the simplest way, and what is proven of any run of it.

Nothing here is taken from mpy_kv: buckets hold bytes as fractions, what is left over is split by looking for
the level up to which all are filled, times are true times that no counter wraps.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

PERIOD = 1 << 30


@dataclass
class Task:
    """One stream, and its bucket. `cap`: bytes/s that its bucket gets at most."""

    guarantee: int
    burst: int
    cap: int
    tokens: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self.tokens = Fraction(self.burst)


@dataclass
class Model:
    """Who is admitted when, from the text of the rules."""

    limit: int
    tasks: list[Task] = field(default_factory=list)
    now: int | None = None

    def pour(self, now: int) -> None:
        """What the limit has brought up to `now`, a true time in us."""
        if self.now is None:
            self.now = now
        if now <= self.now:
            return
        seconds = Fraction(now - self.now, 1_000_000)
        self.now = now
        left = self.limit * seconds
        rooms = []
        for task in self.tasks:
            given = min(task.burst - task.tokens, task.guarantee * seconds)
            task.tokens += given
            left -= given
            rooms.append(min(task.burst - task.tokens, task.cap * seconds - given))
        level = filled(rooms, left)
        for task, room in zip(self.tasks, rooms):
            task.tokens += min(room, level)

    def missing(self, i: int, nbytes: int) -> Fraction:
        return nbytes - self.tasks[i].tokens

    def rate(self, i: int) -> Fraction:
        """Bytes/s that a bucket gets which is not full, if all go on as they do."""
        open_ = [task for task in self.tasks if task.tokens < task.burst]
        free = Fraction(self.limit - sum(task.guarantee for task in open_))
        above = [Fraction(task.cap - task.guarantee) for task in open_]
        own = self.tasks[i]
        return own.guarantee + min(Fraction(own.cap - own.guarantee), filled(above, free))


def filled(rooms: list[Fraction], amount: Fraction) -> Fraction:
    """The most that each may get so that all together get `amount`, or all they can take."""
    rest = sorted(rooms)
    level = Fraction(0)
    while rest:
        step = min(rest[0] - level, amount / len(rest))
        level += step
        amount -= step * len(rest)
        if level < rest[0]:
            return level
        rest.pop(0)
    return level


class Curve:
    """What was admitted, told in order of true time: the most by which it ever got ahead of a rate."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.total = 0  # millionths of a byte, as bytes/s * us is
        self.least = 0
        self.ahead = 0
        self.begun = False

    def note(self, now: int, nbytes: int) -> None:
        # Over (t, t + d) that is admitted - rate * d; both ends at moments in which something is admitted.
        before = self.total - self.rate * now
        self.least = min(self.least, before) if self.begun else before
        self.begun = True
        self.total += nbytes * 1_000_000
        self.ahead = max(self.ahead, self.total - self.rate * now - self.least)

    def within(self, burst: int) -> bool:
        return self.ahead <= burst * 1_000_000
