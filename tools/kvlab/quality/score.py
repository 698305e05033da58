"""How far a model drifts from itself: perplexity with its interval, KL divergence, agreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvlab.models.reference import Reference

Array = NDArray[Any]

RESAMPLES = 4000  # of the bootstrap; more moves the interval's ends by less than a fiftieth of its width
CONFIDENCE_PCT = 95
_ROWS = 256  # distributions compared at once


@dataclass(frozen=True)
class Sums:
    """Over the predicted tokens of one passage. In nats, against the reference's distributions."""

    tokens: int
    nats: float
    reference_nats: float
    kld: float
    agree: int

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def compare(model: Reference, reference: Array, other: Array, targets: Sequence[int], first: int = 0) -> Sums:
    """Two ways through the same model by what its classifier read, (T, dim) each; targets: the T next tokens.

    Tokens before `first` do not count.
    """
    tokens = nats = kld = agree = 0.0
    reference_nats = 0.0
    for start in range(first, len(targets), _ROWS):
        some = slice(start, start + _ROWS)
        p, q = _log_softmax(model.logits(reference[some])), _log_softmax(model.logits(other[some]))
        rows, next_ones = np.arange(len(p)), np.asarray(targets[some])
        tokens += len(p)
        nats -= float(q[rows, next_ones].sum())
        reference_nats -= float(p[rows, next_ones].sum())
        kld += float((np.exp(p) * (p - q)).sum())
        agree += int((p.argmax(-1) == q.argmax(-1)).sum())
    return Sums(int(tokens), nats, reference_nats, kld, int(agree))


def _log_softmax(logits: Array) -> Array:
    z = np.asarray(logits, np.float64)
    z = z - z.max(-1, keepdims=True)
    out: Array = z - np.log(np.exp(z).sum(-1, keepdims=True))
    return out


def figures(passages: Sequence[Sums]) -> dict[str, Any]:
    """The change of perplexity and the mean KL divergence with their intervals, and the agreement, over all
    tokens.

    The intervals come from drawing passages anew (bootstrap, seeded): tokens of one passage depend on each
    other, passages do not. They are None for a single passage.
    """
    tokens = np.array([p.tokens for p in passages], np.float64)
    change, interval = _mean([p.nats - p.reference_nats for p in passages], tokens)
    kld, kld_interval = _mean([p.kld for p in passages], tokens)
    return {
        "perplexity_change_pct": percent(change),
        "perplexity_change_interval_pct": interval and [percent(x) for x in interval],
        "kld": kld,
        "kld_interval": kld_interval,
        "top1_pct": 100 * sum(p.agree for p in passages) / float(tokens.sum()),
    }


def against(passages: Sequence[Sums], others: Sequence[Sums]) -> dict[str, Any]:
    """How two trials over the same passages differ: the perplexity of the first as a change of the second's,
    and its divergence less the other's. What both find hard falls out, so that the intervals are narrow."""
    tokens = np.array([p.tokens for p in passages], np.float64)
    change, interval = _mean([a.nats - b.nats for a, b in zip(passages, others, strict=True)], tokens)
    kld, kld_interval = _mean([a.kld - b.kld for a, b in zip(passages, others, strict=True)], tokens)
    return {
        "perplexity_change_pct": percent(change),
        "perplexity_change_interval_pct": interval and [percent(x) for x in interval],
        "kld_change": kld,
        "kld_change_interval": kld_interval,
    }


def _mean(sums: Sequence[float], tokens: Array) -> tuple[float, list[float] | None]:
    """Of the sums of passages, by token; and between what 95 % of means over passages drawn anew lie."""
    given = np.asarray(sums, np.float64)
    interval = None
    if len(given) > 1:
        rng = np.random.default_rng(0)
        drawn = rng.integers(len(given), size=(RESAMPLES, len(given)))
        means = given[drawn].sum(-1) / tokens[drawn].sum(-1)
        tail = (100 - CONFIDENCE_PCT) / 2
        interval = [float(x) for x in np.percentile(means, [tail, 100 - tail])]
    return float(given.sum() / tokens.sum()), interval


def percent(nats: float) -> float:
    """The change of perplexity that a change of the mean loss makes."""
    return 100 * float(np.expm1(nats))
