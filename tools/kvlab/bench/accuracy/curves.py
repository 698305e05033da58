"""The error against the share of one heavy token, and against the number of tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kvlab.bench.accuracy import reference
from kvlab.bench.accuracy.distributions import with_share
from kvlab.bench.accuracy.inputs import Case, Drawn, within
from kvlab.bench.accuracy.runner import Run, on_unix
from kvlab.bench.accuracy.search import is_quick

Steps = Callable[[int], None]

HEAD_DIM = 8
SEEDS = 8
SHARES = tuple(round(0.01 * i, 2) for i in (1, 2, *range(4, 100, 4), 98, 99))
FEW = (3, 5, 9, 17, 33, 64)  # tokens, of the curve against shares
SHARES_OF_MANY = (0.2, 0.5, 0.8, 0.9, 0.99)
MOST_TOKENS = 1 << 16
TOKENS = tuple(1 << i for i in range(1, MOST_TOKENS.bit_length()))


def steps(codecs: Sequence[str]) -> int:
    """What `measure` reports."""
    return 2 * len(codecs)


def measure(codecs: Sequence[str], done: Steps, run: Run = on_unix) -> dict[str, Any]:
    """{"head_dim", "seeds", "shares", "tokens", "by_share": {codec: [percent]}, "by_tokens": likewise}: the
    worst L2 error of each share over the numbers of tokens FEW, and of each number over SHARES_OF_MANY."""
    found: dict[str, Any] = {"head_dim": HEAD_DIM, "seeds": SEEDS, "shares": SHARES, "tokens": TOKENS}
    found["by_share"], found["by_tokens"] = {}, {}
    for codec in codecs:
        off = [
            reference.errors(case, got).l2[0] for case, got in _results(codec, FEW, SHARES, run)
        ]  # of each share
        found["by_share"][codec] = [round(100 * float(x), 4) for x in np.max(off, axis=0)]
        done(1)
        counts = [n for n in TOKENS if is_quick(codec, n * HEAD_DIM)]
        worst = dict.fromkeys(counts, 0.0)
        for case, got in _results(codec, counts, SHARES_OF_MANY, run):
            n = len(case.keys)
            worst[n] = max(worst[n], float(reference.errors(case, got).l2.max()))
        found["by_tokens"][codec] = [round(100 * worst[n], 4) for n in counts]
        done(1)
    return found


def _results(codec: str, counts: Sequence[int], shares: Sequence[float], run: Run) -> Any:
    cases = [Case.of(codec, _drawn(seed, n, shares)) for n in counts for seed in range(_seeds(n))]
    return zip(cases, run(cases), strict=True)


def _seeds(tokens: int) -> int:
    """Of very many tokens one seed tells as much as the others."""
    return SEEDS if tokens <= 4096 else 1


def _drawn(seed: int, tokens: int, shares: Sequence[float]) -> Drawn:
    rng = np.random.default_rng([seed, tokens])
    places = np.zeros(tokens)
    places[rng.integers(tokens)] = 1
    drawn = with_share(rng, places, np.array(shares), HEAD_DIM)
    drawn.queries = within(drawn.keys, drawn.queries)
    return drawn
