"""What one token of the stories app costs on a target, and on the emulated board what bounds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kvlab.bench import first_word, shares, targets
from kvlab.bench.targets import Steps

POSITIONS = (1, 63, 255)
WINDOWS = 4  # of steps.py

ORDER = ("viper", "thumb", "int16", "float32", "hundredth", "early", "millionth")

COUNTED = "instructions_per_token"
TIMED = "ns_per_token"


def steps(target: str, positions: Sequence[int]) -> int:
    """Of the progress bar."""
    told = sum(position - 1 for position in set(positions))
    return told + (WINDOWS + len(first_word.STARTS) if target == targets.QEMU else 0)


def measure(target: str, model: Path | None, positions: Sequence[int], done: Steps) -> dict[str, Any]:
    """{"instructions_per_token" or "ns_per_token": {position: {kernels: ...}}, "prompt_token" likewise,
    "window", ...}; on the emulated board also "shares" by position (shares.py).

    Each position has a story of its own on a fresh board, so that its cost is the same whatever others are
    asked for. On the emulated board also "cache" (what steps.py counts),
    "limits" (limits.of_boards, at the last position), "first_word" and "first_word_remembered"
    (first_word.py). `model`: a board image; None for the one that a board has.
    """
    from kvlab.bench import limits  # slow to import

    figures: dict[str, Any] = {"target": target, "model": str(model) if model else None}
    by_position: dict[str, dict[str, int]] = {}
    prompt: dict[str, dict[str, int]] = {}
    of_kernels: dict[str, Any] = {}
    for position in sorted(set(positions)):
        words = [model or "", position]
        if target == targets.QEMU:
            found = targets.ordered(shares.run(words, done), *ORDER)
            of_kernels[str(position)] = found["shares"]
        else:
            found = _run(target, "tokens.py", words, done)
        (unit,) = found.keys() & {COUNTED, TIMED}
        by_position[str(position)] = found[unit]
        prompt[str(position)] = found["prompt_token"]
        more = {"shares": of_kernels} if of_kernels else {}
        figures |= {**found, unit: by_position, "prompt_token": prompt, **more}
    if target == targets.QEMU and model is not None:
        last = max(positions)
        figures["cache"] = _run(target, "steps.py", [], done)
        figures |= first_word.measure(model)
        done(len(first_word.STARTS))
        visible = min(last + 1, int(figures["window"] or 0))
        figures["limits"] = limits.of_boards(model, visible, costs(figures)[str(last)])
    return figures


def _run(target: str, script: str, words: Sequence[object], done: Steps) -> dict[str, Any]:
    return targets.ordered(targets.run(target, script, words, done), *ORDER)


def costs(figures: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Position -> kernels -> cost, in whatever unit."""
    found: dict[str, dict[str, int]] = figures.get(COUNTED) or figures.get(TIMED) or {}
    return found


def append_rows(cache: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What appends cost early and late, of "cache" in the figures of `measure`: rows for a table."""
    return [
        (f"append, one layer, {kind}, {name}", f"{by['hundredth']:,.0f}", f"{by['millionth']:,.0f}")
        for name, kinds in cache["append"].items()
        for kind, by in kinds.items()
    ]
