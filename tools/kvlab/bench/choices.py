"""What each element type and token policy costs, in instructions of the emulated board."""

from __future__ import annotations

from collections.abc import Mapping
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


def measure(done: Steps) -> dict[str, Any]:
    """What boards/apps/bench/choices.py counts, in the order of a table."""
    found = targets.run(targets.QEMU, "choices.py", [], done)
    order = (*SETS, *CODECS, RING, *POLICIES, "qk", "av", "append", "attend", "token")
    return {"target": targets.QEMU, **targets.ordered(found, "codecs", "policies", *order)}


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
