"""Does it pay? Tokens/s of a story with the parts of the bus and without them, by the cost model.

plain: as a board tells by itself. staggered: layer by layer, each slot entered in a schedule. dma: keys and
values of a token go through the queue, a chain a layer. streamed: weights come from flash while the core
computes. What is added is counted in instructions on the emulated Cortex-M3 (costs.json, which `kvlab docs
--write bus_costs` renews), and taken to cost the modelled core what the firmware's other instructions do.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kvlab.boards import Board
from kvlab.bus import streaming
from kvlab.cost import counted, model
from kvlab.cost.cycles import FIRMWARE, table
from mpy_kv import geometry_for

COSTS = Path(__file__).with_name("costs.json")

PLAIN, STAGGERED, DMA, STREAMED = "plain", "staggered", "dma", "streamed"
WAYS = (PLAIN, STAGGERED, DMA, STREAMED)


@dataclass(frozen=True)
class Way:
    """tokens_per_s: None where there is no figure, and then `note` tells why."""

    tokens_per_s: float | None
    note: str


def pays(board: Board, shape: Any, codec: str = "int8", **story: int) -> dict[str, Way]:
    """By WAYS. shape: has the fields counted.SHAPE and head_dim; story: as of kvlab.cost.model.pace."""
    found = model.pace(board, shape, codec, **story)
    streamed = streaming.pace(board, shape, codec, **story)
    if found.tokens_per_s is None:
        ways = {name: Way(None, found.note) for name in (PLAIN, STAGGERED, DMA)}
    else:
        per_layer = of_chain(pieces(shape, codec))
        ways = {
            PLAIN: Way(found.tokens_per_s, found.note),
            STAGGERED: Way(
                _with(found, shape, codec, shape.layers * costs()["layer"]),
                "the same, and each layer's slots: other tasks wait a slot at most",
            ),
            DMA: Way(
                _with(found, shape, codec, shape.layers * per_layer),
                "the core writes what a token stores as before, for the channel to copy: nothing is saved",
            ),
        }
    return {**ways, STREAMED: _streamed(streamed)}


def _streamed(found: streaming.Streamed) -> Way:
    if found.tokens_per_s is None:
        return Way(None, found.note)
    more = f"{found.ram_bytes:,} bytes of RAM more; bound by the {found.bound}"
    return Way(found.tokens_per_s, f"{found.note}, {more}")


def pieces(shape: Any, codec: str = "int8") -> int:
    """Contiguous pieces of one token's keys and values in a layer of a ring: a row for each KV head and the
    scales of each group, of K and of V."""
    g = geometry_for(codec, shape.layers, shape.heads, shape.kv_heads, shape.head_dim, window=1)
    return 2 * (int(g.kv_heads) + int(g.groups))


def of_chain(descriptors: int) -> float:
    """Instructions of a chain of so many: pushed, started, seen to be done."""
    by = costs()
    return descriptors * (by["push"] + by["descriptor"]) + by["start"]


@cache
def costs() -> Mapping[str, float]:
    """Instructions of a call, by the names of boards/apps/bench/bus.py."""
    found: dict[str, float] = json.loads(COSTS.read_text(encoding="utf-8"))["calls"]
    return found


def _with(found: model.Pace, shape: Any, codec: str, instructions: float) -> float:
    """Tokens/s where every token takes so many instructions more."""
    assert found.tokens_per_s is not None
    assert found.clock_hz is not None
    return found.clock_hz / (found.clock_hz / found.tokens_per_s + instructions * _cycles(shape, codec))


def start_us(board: Board, shape: Any, codec: str = "int8") -> float | None:
    """What a start of a chain takes the core, until it is seen to be done; None where no core is modelled."""
    found = model.pace(board, shape, codec)
    if found.clock_hz is None:
        return None
    return 1e6 * costs()["start"] * _cycles(shape, codec) / found.clock_hz


def _cycles(shape: Any, codec: str) -> float:
    """Of the modelled core for an instruction of the firmware."""
    entry = counted.find(shape, codec)
    assert entry is not None
    one = next(iter(entry.token.values())).firmware
    return float(FIRMWARE * table(one) / sum(one.values()))
