"""What each element type and token policy costs, in instructions of the emulated board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvlab.bench import targets
from kvlab.bench.targets import Steps
from kvlab.element_types import HELD as CODECS
from mpy_kv.eviction.tokens import POLICIES

SETS = ("thumb", "viper")
RING = "ring"

STEPS = len(SETS) * (len(CODECS) + 1 + len(POLICIES))

Rows = list[tuple[str, ...]]

CODECS_HEADER = (
    *("", "QK", "AV"),
    *("append", "attend", "token, thumb", "token, viper"),
)
POLICIES_HEADER = ("", "token, thumb", "more than the ring", "token, viper", "more than the ring")


def measure(
    done: Steps,
    sets: Sequence[str] = SETS,
    codecs: Sequence[str] = CODECS,
    policies: Sequence[str] = (RING, *POLICIES),
) -> dict[str, Any]:
    """{"codecs": {kernels: {codec: COST}}, "policies": {kernels: {policy: COST}}, "target", "in_view"}, in
    the order of a table; boards/apps/bench/choices.py tells what a COST has.

    Each is counted on a board of its own, so that it costs the same whatever is measured beside it.
    """
    in_view = set()

    def cost(name: str, choice: str) -> dict[str, float]:
        found = targets.run(targets.QEMU, "choices.py", [name, choice], done)
        in_view.add(found.pop("in_view"))
        done(1)
        return targets.ordered(found, "qk", "av", "append", "attend", "token")

    figures: dict[str, Any] = {"target": targets.QEMU}
    for kind, choices in (("codecs", codecs), ("policies", policies)):
        figures[kind] = {name: {choice: cost(name, choice) for choice in choices} for name in sets}
    (figures["in_view"],) = in_view
    return figures


def codec_rows(figures: Mapping[str, Any]) -> Rows:
    """Of a table with CODECS_HEADER: parts by the fastest kernels."""
    by_set = figures["codecs"]
    return [
        (
            codec,
            *(f"{by['qk']:,.0f}", f"{by['av']:,.0f}", f"{by['append']:,.0f}", f"{by['attend']:,.0f}"),
            *(f"{by_set[name][codec]['token']:,.0f}" for name in SETS),
        )
        for codec, by in by_set["thumb"].items()
    ]


def policy_rows(figures: Mapping[str, Any]) -> Rows:
    """Of a table with POLICIES_HEADER."""
    by_set = figures["policies"]
    rows = []
    for policy in by_set["thumb"]:
        cells = []
        for name in SETS:
            token, ring = by_set[name][policy]["token"], by_set[name][RING]["token"]
            cells += [f"{token:,.0f}", "-" if policy == RING else f"{100 * (token / ring - 1):+.1f} %"]
        rows.append((policy, *cells))
    return rows
