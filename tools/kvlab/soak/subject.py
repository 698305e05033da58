"""What is soaked: something that can take a random step and knows what must then hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

Steps = Callable[[int], None]

# The progress bar moves once in so many operations.
_STRIDE = 500


class Subject:
    """Base. `step` does one operation and returns its name; `inspect` holds all promises against the state.

    Both call `expect`, once a promise.
    """

    def __init__(self) -> None:
        self.checked = 0
        self.broken: list[str] = []

    def expect(self, holds: bool, promise: str) -> None:
        """Count a promise; keep it when it is broken."""
        self.checked += 1
        if not holds:
            self.broken.append(promise)

    def step(self) -> str:
        raise NotImplementedError

    def inspect(self) -> None:
        raise NotImplementedError


@dataclass
class Outcome:
    """Of one subject. `failed_at`: number of the operation after which the run ended, or None."""

    name: str
    asked: int
    operations: Counter[str] = field(default_factory=Counter)
    checked: int = 0
    violations: list[str] = field(default_factory=list)
    failed_at: int | None = None

    def figures(self) -> dict[str, object]:
        return {
            "operations": dict(sorted(self.operations.items())),
            "done": sum(self.operations.values()),
            "invariants_checked": self.checked,
            "violations": len(self.violations),
            "broken": self.violations,
            "failed_at": self.failed_at,
        }


def soak(name: str, subject: Subject, count: int, done: Steps) -> Outcome:
    """`count` operations, or as many as go well: what comes after a broken promise means nothing.

    Whatever a step raises is a broken promise too; subjects catch the refusals that they ask for.
    """
    outcome = Outcome(name, count)
    left = count
    for number in range(1, count + 1):
        what = "an operation"
        try:
            what = subject.step()
            subject.inspect()
        except Exception as error:
            subject.broken.append(f"{type(error).__name__}: {error}")
        outcome.operations[what] += 1
        if subject.broken:
            outcome.failed_at = number
            outcome.violations = [f"{what}: {promise}" for promise in subject.broken]
            break
        if number % _STRIDE == 0:
            done(_STRIDE)
            left -= _STRIDE
    done(left)
    outcome.checked = subject.checked
    return outcome
