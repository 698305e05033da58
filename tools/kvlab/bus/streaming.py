"""What a story takes on a Raspberry Pi Pico whose weights are streamed from flash while the core computes,
modelled: tokens/s, and what bounds them.

The core's cycles are those of kvlab.cost. The stream moves a word in the flash's clocks; it takes chunks in
their order, each once its place is free. What is assumed, each against streaming:
- the core computes all that reads no weights of a layer at once, where attention stands, so that the stream
  finds its places full sooner than it would;
- each line that the core's own code misses holds the stream up as long as it takes, and waits for the word
  that the stream is at;
- a token ends when all places are full, and the next begins with sampling, while nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvlab.boards import Board
from kvlab.bus import stream_counts
from kvlab.bus.stream_counts import USUAL_RING, Entry
from kvlab.cost import counted, cycles
from kvlab.cost.model import CHIP, USUAL_STORY, no_figure

# Clocks of the flash for an uncached word: 8 of address and mode, 4 dummy, 8 of data, quad without a command
# (pico-sdk, src/rp2040/boot_stage2/boot2_w25q080.S).
_WORD_CLOCKS = 20

# Of the core, for a chunk's three control blocks: four words each, read and written at one a cycle and a few
# to start a channel (RP2040 datasheet, section 2.5: a transfer a cycle); the stream's own start is a word's.
_BLOCK_CYCLES = 16
_BLOCKS = 3

_MATRICES = 7  # of a layer, of which three stand before attention
_BEFORE_ATTENTION = 3
_WARM_TOKENS = 2


@dataclass(frozen=True)
class Streamed:
    """Modelled; `note` says of what, or why there is no figure."""

    tokens_per_s: float | None = None
    ring_bytes: int | None = None
    ram_bytes: int | None = None
    flash_busy: float | None = None  # the part of the time in which the stream moves words
    core_waits: float | None = None  # the part in which the core waits for it
    bound: str | None = None  # "core" or "flash"
    note: str = ""


def pace(
    board: Board,
    shape: Any,
    codec: Any = "int8",
    *,
    tokens: int = USUAL_STORY,
    window: int = 256,
    sinks: int = 4,
    ring_bytes: int = USUAL_RING,
    clock_hz: int | None = None,
) -> Streamed:
    """Of a story of so many tokens without a prompt, its weights streamed through `ring_bytes` of RAM.
    shape: has the fields counted.SHAPE."""
    if board.chip != CHIP:
        return Streamed(note=no_figure(board))
    clock = clock_hz or board.machine.clock_hz
    entry = stream_counts.find(shape, codec, ring_bytes) if isinstance(codec, str) else None
    if entry is None or not clock:
        return Streamed(note="no figure: what such a model streams was not counted")
    times = [
        token(entry, shape.layers, min(position, window + sinks - 1), clock)
        for position in range(1, tokens + 1, 8)
    ]
    mean = sum(time.cycles for time in times) / len(times)
    streaming = sum(time.streaming for time in times) / len(times)
    waiting = sum(time.waiting for time in times) / len(times)
    return Streamed(
        clock / mean,
        entry.ring_bytes,
        entry.ram_bytes,
        streaming / mean,
        waiting / mean,
        "flash" if streaming > mean - waiting else "core",
        f"{clock / 1e6:g} MHz, the fastest kernels, weights streamed through {entry.ring_bytes} bytes",
    )


@dataclass(frozen=True)
class Time:
    """Of a token, in cycles of the core."""

    cycles: float
    streaming: float
    waiting: float


def token(entry: Entry, layers: int, position: int, clock_hz: float) -> Time:
    """A token at that position, once the tokens before it have filled the places."""
    miss, word = cycles.miss_cycles(clock_hz), _WORD_CLOCKS * cycles.flash_divider(clock_hz)
    step, beside = counted.at(entry.step, position), counted.at(entry.beside, position)
    own = step.cycles(miss + word) - sum(entry.chunk_cycles)  # all but the matrices
    held_up = step.misses * miss / len(entry.chunk_bytes)
    moving = [size / 4 * word + _BLOCKS * _BLOCK_CYCLES + word for size in entry.chunk_bytes]
    before = _before_attention(entry.matrices, layers)
    core = end = waited = 0.0
    freed: list[float] = [0.0] * entry.places  # when the places were given back, the oldest first
    count = len(moving)
    start = waiting = 0.0
    for _ in range(_WARM_TOKENS + 1):
        start, waiting = core, waited
        for i, compute in enumerate(entry.chunk_cycles):
            if i in before:
                core += own / layers
            end = max(end, freed[-entry.places]) + moving[i] + held_up
            waited += max(0.0, end - core)
            core = max(core, end) + compute
            freed.append(core)
        full = end
        for i in range(entry.places):
            full = max(full, freed[i - entry.places]) + moving[i % count]
        waited += max(0.0, full - core)
        core = max(core, full) + beside.cycles(miss)
    return Time(core - start, sum(moving) + step.misses * miss, waited - waiting)


def _before_attention(matrices: tuple[int, ...], layers: int) -> set[int]:
    """The chunk before which attention stands, of each layer: the first of what mixes its heads."""
    ends = [_MATRICES * layer + _BEFORE_ATTENTION for layer in range(layers)]
    return {sum(matrices[:end]) for end in ends}


def figures(found: Streamed) -> Mapping[str, Any]:
    """For JSON."""
    return {
        "tokens_per_s": found.tokens_per_s,
        "ring_bytes": found.ring_bytes,
        "ram_bytes": found.ram_bytes,
        "flash_busy": found.flash_busy,
        "core_waits": found.core_waits,
        "bound": found.bound,
        "modelled": found.note,
    }
