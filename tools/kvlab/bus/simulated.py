"""A model's token on a board's bus: the work of the contention model, its runs, and what joining saves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kvlab.boards import Board
from kvlab.bus import contention, facts, overhead, pays
from kvlab.bus.contention import Outcome, Work
from kvlab.bus.formula import ByStage

PREFILL = 64  # tokens whose keys and values are joined
BURST = 512  # bytes that another task moves at a time

STAGGERED, AS_IT_COMES = "staggered", "as it comes"


def work(shape: Any, token: ByStage, tokens_per_s: float | None, board: Board) -> Work:
    """Of a token whose bytes these are, each slot with the vectors that go in and out of its kernels; and of
    other tasks, a burst of each a layer. Where it is known what a token takes on the board, what of that is
    no transfer is computed; else memory is all that it waits for."""
    model = token["model"] + token["sample"]
    made = Work(
        shape.layers,
        kv_read=(token["qk"] + token["av"]).total,
        kv_write=token["append"].total,
        weights=model.weights,
        vectors=model.total - model.weights,
        io=shape.layers * contention.OTHERS * BURST,
        pieces=pays.pieces(shape),
    )
    if tokens_per_s is None:
        return made
    rest = 1e6 / tokens_per_s - contention.bus_us(facts.figures(board.name), made)
    return replace(made, compute_us=max(0.0, rest))


def runs(board: Board, made: Work, staggered: Iterable[bool]) -> dict[str, Outcome]:
    """Tokens by name, with slots of the bus and without."""
    bus = facts.figures(board.name)
    return {_name(slots): contention.run(bus, made, staggered=slots, batched=True) for slots in staggered}


def waits(board: Board, made: Work, staggered: Iterable[bool]) -> dict[str, tuple[float, float]]:
    """Of other tasks, by the same names: what is proven, and the longest that a search finds, in us."""
    bus = facts.figures(board.name)
    return {_name(slots): contention.searched(bus, made, staggered=slots) for slots in staggered}


def _name(slots: bool) -> str:
    return STAGGERED if slots else AS_IT_COMES


def overhead_saved_pct(shape: Any) -> float:
    """Of what transfers take beside their bytes, where those of PREFILL tokens go as one chain a layer, as
    the device's own queue makes it, instead of one after another."""
    joined = overhead.of_tokens(1, shape.heads, shape.kv_heads, shape.head_dim, PREFILL)
    return overhead.saved(joined.pushes, joined.descriptors, 1)
