"""A workload in simulated time (simpy), admitted by the device's own queue.

Each request is a process: it submits a ticket, waits until it is admitted, computes its prompt, and decodes
as far as its blocks reach. Then it grows, or, where there is no block for it, gives way: it waits again and
has to compute its prompt and the answer so far anew. There is one event for each stretch between two growths,
none a token. All requests have one priority, so none takes another's blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import simpy

from mpy_kv.admission.admission import MOST_TICKETS, Admission
from mpy_kv.admission.predictor import LengthPredictor
from mpy_kv.errors import NoRoom

from .workload import Job, Speed, Workload

RULES = ("maximum", "nothing", "predict")
TASKS = 64  # rows of the predictor


@dataclass(frozen=True)
class Pool:
    """blocks of block_tokens tokens each; quantile: of the predicted lengths, 0 .. 1."""

    blocks: int
    block_tokens: int
    quantile: float


@dataclass
class Outcome:
    """What became of the requests under one rule. In blocks unless a name says otherwise.

    reserved: asked for when a request came; used: taken by its prompt and whole answer. over_reserved,
    under_reserved: asked for beyond the use, and used beyond what was asked for, summed apart. sufficed_pct:
    share of the requests that used no more than they asked for.
    grown: growths granted; preempted: how often a running request gave way; recomputed_tokens: computed once
    more for it. waiting (also after giving way), response (all of it): of the finished requests.
    running_mean, running_most: requests that run at a time; filled_pct: share of the pool that holds tokens,
    over the whole time; idle_pct: share of the reserved blocks that holds none.
    """

    requests: int = 0
    finished: int = 0
    refused: int = 0
    reserved: int = 0
    used: int = 0
    over_reserved: int = 0
    under_reserved: int = 0
    sufficed_pct: float = 0.0
    grown: int = 0
    preempted: int = 0
    recomputed_tokens: int = 0
    waiting_mean_s: float = 0.0
    waiting_p95_s: float = 0.0
    response_mean_s: float = 0.0
    response_p95_s: float = 0.0
    running_mean: float = 0.0
    running_most: int = 0
    filled_pct: float = 0.0
    idle_pct: float = 0.0
    end_s: float = 0.0

    def figures(self) -> dict[str, Any]:
        return asdict(self)


def simulate(
    workload: Workload, pool: Pool, speed: Speed, rule: str, done: Callable[[int], None] = lambda _: None
) -> Outcome:
    """All requests under that rule, to the end of the last; done(1) after each."""
    per_mille = max(1, round(1000 * pool.quantile))
    queue = Admission(
        *(pool.blocks, pool.block_tokens),
        tickets=min(len(workload.jobs), MOST_TICKETS),
        levels=1,
        reserve=LengthPredictor(TASKS, per_mille) if rule == "predict" else rule,
    )
    return _Service(queue, speed, workload.max_tokens, done).serve(workload.jobs)


class _Service:
    """One run; `now` of its environment is the time."""

    def __init__(self, queue: Admission, speed: Speed, max_tokens: int, done: Callable[[int], None]) -> None:
        self.queue, self.speed, self.max_tokens, self.done = queue, speed, max_tokens, done
        self.env = simpy.Environment()
        self.found = Outcome()
        self.calls: dict[int, simpy.Event] = {}  # of each waiting ticket: what its admission sets
        self.waiting: list[float] = []
        self.response: list[float] = []
        self.running = self.sufficed = 0
        self.running_s = self.held_block_s = self.filled_block_s = 0.0

    def serve(self, jobs: list[Job]) -> Outcome:
        self.env.process(self.arrivals(jobs))
        self.env.run()
        found = self.found
        found.requests = len(jobs)
        found.preempted = self.queue.stats()["preempted"]
        found.end_s = self.env.now
        if self.response:
            found.sufficed_pct = 100 * self.sufficed / found.finished
            found.running_mean = self.running_s / self.env.now
            found.filled_pct = 100 * self.filled_block_s / (self.queue.total_blocks * self.env.now)
            found.idle_pct = 100 * (1 - self.filled_block_s / self.held_block_s)
            found.waiting_mean_s, found.waiting_p95_s = _mean_p95(self.waiting)
            found.response_mean_s, found.response_p95_s = _mean_p95(self.response)
        return found

    def arrivals(self, jobs: list[Job]) -> Generator[simpy.Event, None, None]:
        start = jobs[0].arrival_s
        for job in jobs:
            yield self.env.timeout(max(0.0, job.arrival_s - start - self.env.now))
            try:
                ticket = self.queue.submit(job.task, job.prompt_tokens, self.max_tokens)
            except NoRoom:
                self.found.refused += 1
                self.done(1)
            else:
                self.env.process(self.life(job, ticket))

    def life(self, job: Job, ticket: int) -> Generator[simpy.Event, None, None]:
        found, env = self.found, self.env
        came, waited = env.now, 0.0
        asked, needed = self.queue.blocks(ticket), job.blocks(self.queue.block_tokens)
        made = 0
        while made < job.output_tokens:
            since = env.now
            self.calls[ticket] = env.event()
            self.step()
            yield self.calls[ticket]
            del self.calls[ticket]
            waited += env.now - since
            if made:
                found.recomputed_tokens += job.prompt_tokens + made
            made = yield from self.run(job, ticket, made)
        self.queue.finish(ticket, made)
        self.step()
        found.finished += 1
        found.reserved += asked
        found.used += needed
        found.over_reserved += max(0, asked - needed)
        found.under_reserved += max(0, needed - asked)
        self.sufficed += asked >= needed
        self.waiting.append(waited)
        self.response.append(env.now - came)
        self.done(1)

    def run(self, job: Job, ticket: int, made: int) -> Generator[simpy.Event, None, int]:
        """From an admission to the end or to giving way; tokens of the answer that are there then."""
        self.running += 1
        self.found.running_most = max(self.found.running_most, self.running)
        filled = job.prompt_tokens + made
        yield self.spend(ticket, filled, filled, self.speed.seconds(filled, 0))
        while True:
            reach = self.queue.blocks(ticket) * self.queue.block_tokens - job.prompt_tokens
            more = min(job.output_tokens, reach) - made
            yield self.spend(ticket, filled, filled + more, self.speed.seconds(0, more))
            made, filled = made + more, filled + more
            if made == job.output_tokens or not self.queue.growth(ticket, self.queue.wanted(ticket, made)):
                self.running -= 1
                return made
            self.found.grown += 1

    def spend(self, ticket: int, before: int, after: int, seconds: float) -> simpy.Event:
        """So long, while the tokens held grow evenly from `before` to `after`."""
        self.running_s += seconds
        self.held_block_s += seconds * self.queue.blocks(ticket)
        self.filled_block_s += seconds * (before + after) / (2 * self.queue.block_tokens)
        return self.env.timeout(seconds)

    def step(self) -> None:
        for i in range(self.queue.step()):
            self.calls[self.queue.admitted[i]].succeed()


def _mean_p95(seconds: list[float]) -> tuple[float, float]:
    return float(np.mean(seconds)), float(np.percentile(seconds, 95))
