"""Admission and Requests together: more stories than blocks, each told as if it were alone."""

from __future__ import annotations

from typing import Any

import pytest
from paged_cases import requests_of, ring_like, step

from mpy_kv.admission.admission import Admission
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.errors import NoRoom
from mpy_kv.paged.request import Request

BLOCKS, BLOCK_TOKENS = 9, 4


class Story:
    """A prompt and what follows from it: each next id depends on what the last token saw."""

    def __init__(self, number: int, length: int) -> None:
        self.ids = [1, 2, 3, 4, number]
        self.prompt = len(self.ids)
        self.length = length
        self.request: Request | None = None
        self.runs = 0

    def done(self) -> bool:
        return len(self.ids) == self.prompt + self.length

    def go_on(self, sequence: Any) -> None:
        """Run tokens until there is a new one."""
        while True:
            seen = step(sequence, self.ids[sequence.length])
            if sequence.length == len(self.ids):
                self.ids.append(int(abs(sum(seen)) * 1000) % 50)
                return


def told_alone(number: int, length: int) -> list[int]:
    story, ring = Story(number, length), ring_like(requests_of(BLOCKS))
    while not story.done():
        story.go_on(ring)
    return story.ids


def serve(stories: list[Story], reserve: Any, priorities: list[int]) -> Admission:
    """Round-robin a token each, blocks only as admission grants them."""
    requests = requests_of(BLOCKS, max_requests=len(stories))
    admission = Admission(BLOCKS, BLOCK_TOKENS, tickets=len(stories), reserve=reserve)
    tickets = {
        admission.submit(0, story.prompt, story.length, priority): story
        for story, priority in zip(stories, priorities)
    }

    def obey() -> None:
        for ticket in admission.preempted[: admission.n_preempted]:
            request = tickets[ticket].request
            assert request is not None
            request.close()
            tickets[ticket].request = None
        for ticket in admission.admitted[: admission.n_admitted]:
            story = tickets[ticket]
            share = admission.blocks(ticket) * BLOCK_TOKENS
            story.request = requests.open(tokens=story.ids, reserve_tokens=share)
            story.runs += 1

    turns = 0
    while tickets:
        turns += 1
        assert turns < 2000, "nothing moves"
        admission.step()
        obey()
        for ticket, story in list(tickets.items()):
            if story.request is None:
                continue
            if story.request.length >= admission.blocks(ticket) * BLOCK_TOKENS:
                more = admission.wanted(ticket, len(story.ids) - story.prompt)
                grown = admission.growth(ticket, more)
                obey()  # where it did not grow, it gives way itself
                if not grown:
                    continue
                story.request.reserve(admission.blocks(ticket) * BLOCK_TOKENS)
            story.go_on(story.request)
            assert requests.check() == admission.check() == 0
            if story.done():
                story.request.close()
                admission.finish(ticket, len(story.ids) - story.prompt)
                del tickets[ticket]
    stats = requests.stats()
    assert stats["available_blocks"] == BLOCKS
    assert stats["referenced_blocks"] == 0
    assert stats["reused_tokens"] > 0
    return admission


@pytest.mark.parametrize("reserve", ["maximum", "nothing", "predict"])
def test_every_story_ends_as_if_it_were_alone(reserve: str) -> None:
    lengths = [20, 9, 25, 4, 14, 20]
    stories = [Story(10 + i, length) for i, length in enumerate(lengths)]
    rule = LengthPredictor(least=2) if reserve == "predict" else reserve
    admission = serve(stories, rule, [0, 0, 1, 0, 2, 1])
    for i, (story, length) in enumerate(zip(stories, lengths)):
        assert story.ids == told_alone(10 + i, length)
    counted = admission.stats()
    assert counted["finished"] == len(stories)
    assert counted["preempted"] > 0 if reserve == "nothing" else counted["preempted"] == 0


def test_what_can_never_fit_is_refused_with_numbers() -> None:
    admission = Admission(BLOCKS, BLOCK_TOKENS)
    with pytest.raises(NoRoom) as refused:
        admission.submit(0, 20, 30)
    assert (refused.value.needed, refused.value.largest, refused.value.unit) == (13, 9, "blocks")
