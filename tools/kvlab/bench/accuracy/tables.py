"""What the search and the known inputs came to, as rows of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kvlab.bench.accuracy.known import Found, Kept
from kvlab.bench.accuracy.search import headline

Worst = Mapping[str, Mapping[str, Any]]
Rows = list[tuple[str, ...]]

NOTES = (
    "error: L2, of the values' RMS norm; far and beyond: of the result's where that is larger",
    "constant: in codes",
    "excess: by how much a result exceeds the largest magnitude stored in its channel, of that",
)
IN_CODES = ("constant",)  # what is counted so


def errors(worst: Worst, *, seeds: bool = True) -> tuple[Rows, tuple[str, ...]]:
    """Rows and header; seeds: each error with the seed it was found with."""
    rows = []
    for name in next(iter(worst.values())):
        cells = []
        for by in worst.values():
            found = headline(name, by[name])
            cells.append(_value(name, found["value"]) + f"\nseed {found['seed']}" * seeds)
        rows.append((name, *cells))
    return rows, ("", *worst)


def _value(name: str, value: float) -> str:
    return f"{value:.2f}" if name in IN_CODES else f"{100 * value:.2f} %"


def excess(worst: Worst) -> tuple[Rows, tuple[str, ...]]:
    rows: Rows = []
    for name in next(iter(worst.values())):
        found = [by[name]["excess"] for by in worst.values()]
        rows.append((name, *(f"{100 * of['value']:.2f} %\nseed {of['seed']}" for of in found)))
    return rows, ("", *worst)


def cases(found: Sequence[Found], kept: Sequence[tuple[Kept, float]]) -> tuple[Rows, tuple[str, ...]]:
    rows: Rows = [
        (
            of.known.name,
            of.codec,
            *(f"{value:.4g}" for value in (of.known.right, of.reference, of.result)),
            f"{100 * of.off:.2f} %",
            "" if of.good else "wrong",
        )
        for of in found
    ]
    rows += [
        (
            *(each.name, each.codec, f"{each.right:.4g}", "", f"{value:.4g}", ""),
            "" if each.good(value) else "wrong",
        )
        for each, value in kept
    ]
    return rows, ("", "", "right", "float64 over the codes", "computed", "off by", "")


def case_figures(found: Sequence[Found], kept: Sequence[tuple[Kept, float]]) -> list[dict[str, Any]]:
    figures: list[dict[str, Any]] = [
        {
            "name": of.known.name,
            "codec": of.codec,
            "right": of.known.right,
            "reference": of.reference,
            "computed": of.result,
            "l2": of.off,
            "excess": of.excess,
            "good": of.good,
        }
        for of in found
    ]
    return figures + [
        {
            "name": each.name,
            "codec": each.codec,
            "right": each.right,
            "computed": value,
            "good": each.good(value),
        }
        for each, value in kept
    ]
