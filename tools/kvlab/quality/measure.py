"""The figures of `kvlab quality`: every trial that was asked for, run at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kvlab import output
from kvlab.element_types import IN_IMAGES

from . import gate, policies, score, trials
from .harness import Harness
from .score import Sums
from .trials import COMPRESS, Trial

WINDOW = "window"  # the policy that others must beat


def codecs_and_policies(
    harness: Harness,
    codecs: Sequence[str],
    chosen: Sequence[str],
    budgets: Sequence[int],
    under: str,
    context: int,
) -> dict[str, Any]:
    """Each of `codecs` by its name; under "policies" each of `chosen`, keys and values stored as `under`, by
    budget, or by ratio where it compresses; beside a window each other has "against_window", of the same
    budget. Bytes are those of `context` tokens.
    """
    figures: dict[str, Any] = {}
    length = len(harness.passages[0])
    stored = harness.uniform(under)
    places: list[tuple[str, ...]] = []
    tried: list[Trial] = []
    for name in codecs:
        places.append((name,))
        tried.append(trials.stored(harness.uniform(name)))
    for name in chosen:
        if name == COMPRESS:
            for ratio in trials.COMPRESS_RATIOS:
                places.append(("policies", name, f"{ratio:g}"))
                tried.append(trials.compressed(ratio, length // 2, stored))
            continue
        for budget in budgets:
            places.append(("policies", name, str(budget)))
            tried.append(trials.evicted(policies.POLICIES[name], budget, stored))
    with output.progress("Measuring", harness.steps(tried)) as done:
        sums = harness.measure(tried, done)
    if sums:
        figures["float32_nats"] = _reference_nats(sums, tried)
    if chosen:
        figures["policies"] = {}
        figures["policy_codec"] = under
    for place, found in zip(places, sums, strict=True):
        target = figures
        for key in place[:-1]:
            target = target.setdefault(key, {})
        target[place[-1]] = score.figures(found)
    by_place = dict(zip(places, sums, strict=True))
    for place, found in by_place.items():
        window = by_place.get(("policies", WINDOW, place[-1]))
        if window is not None and place[-2] != WINDOW:
            figures["policies"][place[-2]][place[-1]]["against_window"] = score.against(found, window)
    for name in codecs:
        size = harness.uniform(name).bytes(context)
        figures[name]["bytes_per_token"] = size.exact / context
        figures[name]["allocated_bytes_per_token"] = size.allocated / context
        figures[name]["of_float16"] = size.exact / harness.uniform("float16").bytes(context).exact
    return figures


def _reference_nats(sums: Sequence[Sequence[Sums]], tried: Sequence[Trial]) -> float:
    """Of the float32 model, from a trial that judges whole passages where there is one."""
    best = min(range(len(tried)), key=lambda i: tried[i].first)
    return sum(p.reference_nats for p in sums[best]) / sum(p.tokens for p in sums[best])


def gated(harness: Harness, budget: float, context: int) -> dict[str, Any]:
    """What the gate chooses, as the codec of each layer in "layers", None where nothing passes. In "codecs"
    each codec in all layers: whether it is within the budget, and whether a device can hold it.
    """
    chooser = gate.Gate(harness, budget, context)
    with output.progress("Choosing", chooser.steps) as done:
        found = chooser.choose(done)
    codecs = {
        name: {
            "kld": each.kld,
            "bytes_per_token": each.bytes / context,
            "within": each.kld <= budget,
            "held": name in IN_IMAGES,
        }
        for name, each in chooser.uniform().items()
    }
    figures: dict[str, Any] = {
        "budget_kld": budget,
        "codecs": codecs,
        "layers": None,
        "refused": [
            {"layer": move.layer, "codec": move.codec, "kld": loss} for move, loss in chooser.refused.items()
        ],
    }
    if found is not None:
        figures.update({**found.figures, "bytes_per_token": found.bytes / context})
        figures["layers"] = list(found.codecs)
    return figures
