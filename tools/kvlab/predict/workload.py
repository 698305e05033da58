"""The requests of a simulation, and what follows from them: the longest answer, the size of the pool."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from commandline.errors import BadInput
from kvlab.traces import Request

# Part of the trace that says how long an answer may be where --max-tokens does not.
FIRST_PART = 0.1
# The default pool has that many times the blocks that would be in use on average if nobody waited: at peaks
# somebody does.
PRESSURE = 1.25
MOST_BLOCKS = 1 << 28  # of an admission queue


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens a second of one request, however many run."""

    prefill: float
    decode: float

    def seconds(self, prefilled: int, decoded: int) -> float:
        return prefilled / self.prefill + decoded / self.decode


@dataclass(frozen=True, slots=True)
class Job:
    """A request as the simulation runs it: at least a token each way, its answer cut at the maximum."""

    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    task: int

    def blocks(self, block_tokens: int) -> int:
        """That its prompt and whole answer take."""
        return -(-(self.prompt_tokens + self.output_tokens) // block_tokens)


@dataclass(frozen=True)
class Workload:
    """jobs: in order of arrival; tasks: their names, by number; cut: answers longer than max_tokens."""

    jobs: list[Job]
    tasks: list[str]
    max_tokens: int
    cut: int

    @classmethod
    def of(
        cls,
        requests: Iterable[Request],
        max_tokens: int | None = None,
        limit: int | None = None,
        speedup: float = 1.0,
    ) -> Workload:
        """The first `limit` of `requests`, which are in order of arrival and come `speedup` times as fast.

        max_tokens None: see `longest`.
        """
        taken = list(islice(requests, limit))
        most = longest(taken) if max_tokens is None else max_tokens
        tasks: dict[str, int] = {}
        jobs = [
            Job(
                each.arrival_s / speedup,
                max(1, each.prompt_tokens),
                max(1, min(each.output_tokens, most)),
                tasks.setdefault(each.task, len(tasks)),
            )
            for each in taken
        ]
        return cls(jobs, list(tasks), most, sum(each.output_tokens > most for each in taken))

    def most_blocks(self, block_tokens: int) -> int:
        """Worst case of the largest request: its prompt and max_tokens."""
        return -(-(max(job.prompt_tokens for job in self.jobs) + self.max_tokens) // block_tokens)

    def demand(self, block_tokens: int, speed: Speed) -> float:
        """Blocks in use on average if nobody waited and each request held what it needs to its end."""
        busy = end = 0.0
        start = self.jobs[0].arrival_s
        for job in self.jobs:
            seconds = speed.seconds(job.prompt_tokens, job.output_tokens)
            busy += job.blocks(block_tokens) * seconds
            end = max(end, job.arrival_s + seconds)
        return busy / (end - start)

    def default_blocks(self, block_tokens: int, speed: Speed) -> int:
        """PRESSURE times the demand, and room for the largest request."""
        wanted = round(PRESSURE * self.demand(block_tokens, speed))
        return min(MOST_BLOCKS, max(wanted, self.most_blocks(block_tokens)))


def longest(requests: list[Request]) -> int:
    """The longest answer of the first tenth (at least one request), rounded up to a power of two."""
    first = requests[: max(1, round(len(requests) * FIRST_PART))]
    most = max(1, *(each.output_tokens for each in first))
    return 1 << (most - 1).bit_length()


def check_blocks(blocks: int, workload: Workload, block_tokens: int) -> None:
    """BadInput where not even the smallest request fits."""
    least = min(job.prompt_tokens for job in workload.jobs) + workload.max_tokens
    if least > blocks * block_tokens:
        raise BadInput(
            f"--blocks {blocks}: no request fits: the smallest prompt and --max-tokens {workload.max_tokens}"
            f" make {least:,} tokens, {-(-least // block_tokens):,} blocks of {block_tokens}"
        )
