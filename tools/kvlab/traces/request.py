"""What every trace is turned into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .lines import Source


@dataclass(frozen=True, slots=True)
class Blocks:
    """Ids of the blocks of a prompt, from its first token on: equal ids, equal tokens.

    Kept as runs of consecutive ids, (first id, how many): a prompt of a million tokens is a few numbers.
    """

    runs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, ids: list[int]) -> Blocks:
        runs: list[tuple[int, int]] = []
        for each in ids:
            if runs and each == sum(runs[-1]):
                runs[-1] = runs[-1][0], runs[-1][1] + 1
            else:
                runs.append((each, 1))
        return cls(tuple(runs))

    def __len__(self) -> int:
        return sum(count for _, count in self.runs)

    def __iter__(self) -> Iterator[int]:
        for first, count in self.runs:
            yield from range(first, first + count)


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a trace.

    arrival_s: seconds since the trace's own zero (see Trace.utc).
    task: kind of work, as far as the trace tells; session: conversation it belongs to, "" if unknown.
    blocks: prompt prefix by content; block_tokens: tokens of each but perhaps the last. Where blocks differ
    in size, block_tokens is 0 and `sizes` has one number a block.
    """

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    task: str
    session: str = ""
    blocks: Blocks = Blocks()
    block_tokens: int = 0
    sizes: tuple[int, ...] = ()

    def pieces(self) -> Iterator[tuple[int, int]]:
        """(id, tokens) of each block; tokens of the prompt behind the last of them are in none."""
        if self.sizes:
            yield from zip(self.blocks, self.sizes, strict=True)
            return
        left = self.prompt_tokens
        for each in self.blocks:
            yield each, min(self.block_tokens, left)
            left -= self.block_tokens


class Trace(ABC):
    """A file of requests. Iterating reads it from its beginning; BadInput at the line that is wrong.

    kind: name of the format. ordered: arrivals never go back (else see order.in_order).
    utc: arrivals count from 1970, so that two such traces share a clock; else from the trace's start.
    """

    kind: ClassVar[str]
    ordered: ClassVar[bool]
    utc: ClassVar[bool] = False

    def __init__(self, path: Path, option: str) -> None:
        self.path = path
        self.source = Source(path, option)

    @property
    def name(self) -> str:
        return self.path.name

    @abstractmethod
    def requests(self) -> Iterator[Request]:
        """The requests in the order of the file."""

    def __iter__(self) -> Iterator[Request]:
        empty = True
        for request in self.requests():
            empty = False
            yield request
        if empty:
            raise self.source.fault(None, "holds no requests; name a trace that does")
