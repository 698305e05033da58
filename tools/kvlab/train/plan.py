"""The course of a run: how fast it learns when, and on how long texts."""

from __future__ import annotations

from dataclasses import dataclass

WARM_UP = 100  # steps, or a tenth of a run if that is less
STEADY = 0.6  # of a run at the full rate; then down to nothing in a line
SHORT = 128  # tokens a row while the rate is steady,
MIDDLE = 256  # then
LAST = 0.85  # and from this part of the run on the whole context


@dataclass(frozen=True)
class Plan:
    """`steps` steps of `batch_tokens` tokens each.

    Up to its last steady step a run does not depend on `steps` (if that is at least ten times
    WARM_UP): the length of a run may be settled while it runs.
    """

    steps: int
    batch_tokens: int
    seq_len: int

    def pace(self, step: int) -> float:
        """The learning rate of a step as a part of the full one."""
        warm = max(1, min(WARM_UP, self.steps // 10))
        down = (self.steps - step) / (self.steps * (1 - STEADY))
        return min(1.0, (step + 1) / warm, down)

    def shape(self, step: int) -> tuple[int, int]:
        """Rows and tokens a row of a step's batch."""
        part = step / self.steps
        length = SHORT if part < STEADY else MIDDLE if part < LAST else self.seq_len
        length = min(length, self.seq_len)
        return max(1, self.batch_tokens // length), length
