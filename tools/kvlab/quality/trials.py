"""What can be tried on a model, each under a name that tells it from all others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kvlab.models.reference import Reference

from . import decode, policies, teacher
from .kinds import Arrangement, Sealed
from .policies import Policy
from .teacher import EVERYTHING, View

Array = NDArray[Any]

TOGETHER = 32  # passages that are decoded side by side

COMPRESS = "compress"  # beside the policies
# After a prefill of half the passage; measured on the other half.
COMPRESS_RATIOS = (0.5, 0.25)
COMPRESS_LAST = 16  # newest tokens that stay in any case


@dataclass(frozen=True)
class Trial:
    """hidden(model, passages): (B, T, dim), what the classifier reads after each token of passages of one
    length. together: how many it takes at once. first: tokens before that one are not judged.
    """

    name: str
    hidden: Callable[[Reference, Sequence[Sequence[int]]], Array]
    together: int = 1
    first: int = 0


def stored(arrangement: Arrangement, view: View = EVERYTHING) -> Trial:
    """Keys and values read back as stored, of what is in view."""

    def hidden(model: Reference, passages: Sequence[Sequence[int]]) -> Array:
        return np.stack([teacher.hidden(model, ids, arrangement, view) for ids in passages])

    return Trial(f"stored {arrangement.name} {view.name}", hidden)


def evicted(policy: Policy, budget: int, arrangement: Arrangement) -> Trial:
    """At most `budget` tokens kept by `policy`, the current one included. The policies that only look at
    positions are views; any other needs the attention of each step, and kinds that are not sealed.
    """
    if policy.worth is policies.position:
        return stored(arrangement, View(budget - policy.sinks, policy.sinks, policy.near))
    store = _storing(arrangement)

    def hidden(model: Reference, passages: Sequence[Sequence[int]]) -> Array:
        return decode.hidden(model, passages, budget, decode.evicting(policy, budget), store=store)

    return Trial(f"evicted {policy.name} {budget} {arrangement.name}", hidden, TOGETHER)


def compressed(ratio: float, prefill: int, arrangement: Arrangement) -> Trial:
    """Compressed once to `ratio` after `prefill` tokens, by the attention added up with decay."""
    store = _storing(arrangement)

    def after(run: decode.Run) -> None:
        if run.table.step == prefill:
            run.keep(policies.compress(run.table, ratio, policies.decayed, COMPRESS_LAST))

    def hidden(model: Reference, passages: Sequence[Sequence[int]]) -> Array:
        return decode.hidden(model, passages, len(passages[0]), decode.growing, after, store=store)

    return Trial(f"compressed {ratio:g} after {prefill} {arrangement.name}", hidden, TOGETHER, prefill)


def chooses_tokens(policy: Policy) -> bool:
    """Whether a policy leaves holes, which sealed blocks cannot have."""
    return policy.worth is not policies.position


def _storing(arrangement: Arrangement) -> decode.Store:
    if any(isinstance(kind, Sealed) for pair in arrangement.kinds() for kind in pair):
        raise ValueError("sealed blocks keep or lose their tokens together: no policy chooses among them")

    def store(layer: int, k: Array, v: Array) -> tuple[Array, Array]:
        keys, values = teacher.read(arrangement, layer, k, v)
        return keys.new, values.new

    return store
