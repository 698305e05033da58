"""How far a figure on a page may lie from what its producer makes."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A sign is one where no word or number stands right before it: 0.00 and +0.01 lie near each other.
_NUMBER = re.compile(r"((?:(?<![\w.])[+-])?\d(?:[\d,]*\d)?(?:\.\d+)?)( ?%)?")


@dataclass(frozen=True)
class Tolerance:
    """Of each number in a text; the words between must be the same. A number may differ by the larger of
    `absolute` and `relative` (a part of it, and one in the last place, which rounding may turn), one with %
    after it by `points`."""

    absolute: float = 0.0
    relative: float = 0.0
    points: float = 0.0

    def __str__(self) -> str:
        said = [f"{self.absolute:,g}" * bool(self.absolute), f"{self.relative:.1%}" * bool(self.relative)]
        said.append(f"{self.points:g} points" * bool(self.points))
        return " or ".join(text for text in said if text) or "exact"

    def allows(self, told: str, found: str) -> bool:
        """Whether `told` is near enough to `found`."""
        if told == found:
            return True
        if _NUMBER.sub("0", told) != _NUMBER.sub("0", found):
            return False
        return all(map(self._near, _NUMBER.findall(told), _NUMBER.findall(found)))

    def _near(self, told: tuple[str, str], found: tuple[str, str]) -> bool:
        if bool(told[1]) is not bool(found[1]):
            return False
        a, b = (float(text.replace(",", "")) for text, _ in (told, found))
        room = max(self.absolute, self.relative * abs(b))
        if self.relative:
            room += 10.0 ** -len(found[0].partition(".")[2])
        if told[1]:
            room = self.points
        return abs(a - b) <= room + 1e-9 * abs(b)


EXACT = Tolerance()
HEAP = Tolerance(absolute=512)  # bytes
INSTRUCTIONS = Tolerance(relative=0.005, points=1.0)
