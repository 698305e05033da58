"""What a story takes on a Raspberry Pi Pico, modelled: tokens/s, seconds to the first word, prompt tokens/s.

The model lies in flash and is read in place. Other boards have other cores: for them there is no figure, and
the reason why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvlab.boards import Board
from kvlab.cost import counted, cycles
from kvlab.cost.cycles import Counts

IN_PLACE = "in place"
CHIP = "RP2040"
USUAL_STORY = 260  # tokens
USUAL_PROMPT = 40


@dataclass(frozen=True)
class Pace:
    """Modelled; `note` names the clock and what a miss costs, or why there is no figure."""

    tokens_per_s: float | None = None
    first_word_s: float | None = None  # of a first start, which checks the kernels
    first_word_remembered_s: float | None = None  # of every other
    prompt_tokens_per_s: float | None = None
    model_place: str | None = None
    clock_hz: int | None = None
    note: str = ""

    def figures(self) -> dict[str, Any]:
        return {
            "tokens_per_s": self.tokens_per_s,
            "first_word_s": self.first_word_s,
            "first_word_remembered_s": self.first_word_remembered_s,
            "prompt_tokens_per_s": self.prompt_tokens_per_s,
            "model_place": self.model_place,
            "modelled": self.note,
        }


def pace(
    board: Board,
    shape: Any,
    codec: Any,
    *,
    tokens: int = USUAL_STORY,
    prompt_tokens: int = 0,
    window: int = 256,
    sinks: int = 4,
    clock_hz: int | None = None,
) -> Pace:
    """Of a story of so many tokens behind a prompt of so many, which is read but not encoded here; without
    one its tokens/s are of a usual one. shape: has the fields counted.SHAPE."""
    if board.chip != CHIP:
        return Pace(note=no_figure(board))
    clock = clock_hz or board.machine.clock_hz
    entry = counted.find(shape, codec, counted.NOW) if isinstance(codec, str) else None
    if entry is None or not clock:
        return Pace(note="no figure: what such a model and cache take was not counted")
    miss = cycles.miss_cycles(clock)
    most = window + sinks - 1
    first = prompt_tokens + 1  # the token that starts a story is read before any other
    told = _mean(entry.token, first, tokens, most).cycles(miss)
    read = _mean(entry.prompt, 1, prompt_tokens or USUAL_PROMPT, most).cycles(miss)
    first_s, remembered_s = (
        None if start is None else (start.cycles(miss) + prompt_tokens * read) / clock
        for start in (entry.start, entry.remembered)
    )
    return Pace(
        clock / told,
        first_s,
        remembered_s,
        clock / read,
        IN_PLACE,
        int(clock),
        f"{clock / 1e6:g} MHz, the fastest kernels, the model in flash and read {IN_PLACE}, {miss:g} cycles a"
        " miss of the flash's cache",
    )


def no_figure(board: Board) -> str:
    """Why there is none for another chip."""
    return f"no figure: counted for the Cortex-M0+ of an {CHIP}, which {board.title} has not"


def rows_of(f: Mapping[str, Any]) -> list[tuple[str, str]]:
    """For a table: figures of a Pace, or among others."""
    if f["tokens_per_s"] is None:
        return [("modelled", f["modelled"])]
    return [
        (
            "modelled",
            f"{said(f)}: {f['modelled']}",
        )
    ]


def said(f: Mapping[str, Any]) -> str:
    """Figures of a Pace in a sentence."""
    again = f["first_word_remembered_s"]
    remembered = "" if again is None else f" ({again:.1f} s once its kernels are remembered)"
    return (
        f"{f['tokens_per_s']:.1f} tokens/s, first word after {f['first_word_s']:.1f} s{remembered}, a"
        f" prompt's {f['prompt_tokens_per_s']:.1f} tokens/s"
    )


def _mean(by_position: Mapping[int, Counts], first: int, n: int, most: int) -> Counts:
    """Of n tokens from position `first` on; behind `most` a token sees no more than the one there."""
    within = max(0, min(first + n - 1, most) - first + 1)
    places = sorted({p for p in by_position if first < p < first + within - 1} | {first, first + within - 1})
    if within < 1:
        return counted.at(by_position, most)
    total = counted.at(by_position, first)
    if len(places) > 1:
        total = Counts()
        for a, b in zip(places, places[1:]):  # the trapezium between two
            ends = counted.at(by_position, a) + counted.at(by_position, b)
            total += ends.times((b - a) / 2 / (within - 1))
    return total.times(within / n) + counted.at(by_position, most).times((n - within) / n)
