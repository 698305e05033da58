"""Operations on a log: 70 % append a record to a sequence, 20 % close one, 10 % put a record anew.

With `fill` nothing is closed until the log is full: then the longest sequence is.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kvlab.powercut.expected import Expected, Record, Story
from mpy_kv.errors import NoRoom, StepError

SEQUENCES = 4  # at a time


class Workload:
    """Does operations one by one on `log` and keeps what is to be `expected` of it."""

    def __init__(self, log: Any, record_bytes: int, seed: int) -> None:
        self.log = log
        self.record_bytes = record_bytes
        self.random = random.Random(seed)
        self.expected = Expected()
        self.identities = 0
        self.operations = 0
        self.full = 0  # times that the log was
        self.closed = 0

    def run(self, operations: int, fill: bool) -> None:
        for _ in range(operations):
            self.operations += 1
            self._one(fill)
            for story in self.expected.open:
                story.settle(self.log)

    def _one(self, fill: bool) -> None:
        stories = self.expected.open
        draw = self.random.random()
        if not fill and draw < 0.2 and stories:
            self._close(self.random.choice(stories))
            return
        if draw < 0.3 and any(story.records for story in stories):
            story = self.random.choice([story for story in stories if story.records])
            self._put(story, self.random.randrange(len(story.records)))
            return
        if len(stories) < SEQUENCES and self.random.random() < 0.5 or not stories:
            self._begin()
        story = self.random.choice(stories)
        if not self._put(story, len(story.records)):
            self.full += 1
            self._close(max(stories, key=lambda each: len(each.records)))

    def _begin(self) -> None:
        self.identities += 1
        slot = self._when_ready(lambda: self.log.begin(self.identities))
        self.expected.open.append(Story(self.identities, slot))

    def _put(self, story: Story, record: int) -> bool:
        """False where there is no room."""
        data = self.random.randbytes(self.record_bytes)
        self.expected.putting = (story, record, data)
        try:
            number = self._when_ready(lambda: self.log.put(story.slot, record, data, [0, self.record_bytes]))
        except NoRoom:
            self.expected.putting = None
            return False
        if record == len(story.records):
            story.records.append(Record())
        story.records[record].later.append((number, data))
        self.expected.putting = None
        return True

    def _close(self, story: Story) -> None:
        self.expected.closing = story
        self._when_ready(lambda: self.log.close(story.slot))
        self.expected.open.remove(story)
        self.expected.closed.append(story.identity)
        self.expected.closing = None
        self.closed += 1

    def _when_ready(self, what: Callable[[], Any]) -> Any:
        """Do it, after the steps that it needs; then one step more, as a program has time now and then."""
        for _ in range(1000):
            try:
                done = what()
            except StepError:
                self.log.step()
                continue
            self.log.step()
            return done
        raise AssertionError("step() leads nowhere")
