"""Pictures of the bus: a token on it, how long other tasks wait, and of what kinds its bytes are."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from kvlab.docs.picture import with_figures
from kvlab.docs.registry import PICTURES, Cost, Producer, named

TIMELINE = f"{PICTURES}bus_timeline.png"
BATCHING = f"{PICTURES}bus_batching.png"
TAIL = f"{PICTURES}bus_tail.png"
KINDS = f"{PICTURES}bus_kinds.png"

BOARD, MODEL, VISIBLE = "esp32s3_psram", "stories", 256
LOADS = (0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.97)


def _work() -> tuple[Any, Any, Any]:
    """(board, its bus, what a token moves) where nothing but memory is waited for."""
    from kvlab import boards
    from kvlab.bus import facts, formula, simulated
    from kvlab.plan import models

    board, shape = boards.load(BOARD), models.find(MODEL)
    made = simulated.work(shape, formula.token(shape, VISIBLE), None, board)
    return board, facts.figures(BOARD), made


def _drawn(name: str, figures: Any, plot: ModuleType, draw: Callable[[Path], None]) -> Mapping[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="kvlab-") as folder:
        path = Path(folder) / "drawn.png"
        draw(path)
        return {name: with_figures(path.read_bytes(), figures, plot)}


def _timeline(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab.bus import contention
    from kvlab.plots import bus_timeline

    board, bus, work = _work()
    runs = {
        name: contention.run(bus, work, staggered=staggered, batched=batched, tokens=20, hostile=True)
        for name, staggered, batched in (
            ("as it comes, each piece by itself", False, False),
            ("as it comes, one chain a layer", False, True),
            ("by turns, one chain a layer", True, True),
        )
    }
    figures = {name: run.figures() for name, run in runs.items()}
    title = f"Three layers of a token of {MODEL} in the {bus.memory} of an {board.chip}"
    return _drawn(TIMELINE, figures, bus_timeline, lambda path: bus_timeline.draw(runs, title, path))


def _batching(_wanted: Collection[str]) -> Mapping[str, bytes]:
    """Of a Pico, for which it is modelled what a start takes the core."""
    from dataclasses import replace

    from kvlab import boards
    from kvlab.bus import contention, facts, formula, pays, simulated
    from kvlab.plan import models
    from kvlab.plots import bus_timeline

    board, shape = boards.load("rp2040"), models.find(MODEL)
    start_us = pays.start_us(board, shape)
    assert start_us is not None
    pace = pays.pays(board, shape)[pays.PLAIN].tokens_per_s
    work = simulated.work(shape, formula.token(shape, VISIBLE), pace, board)
    work = replace(work, start_us=start_us)
    runs = {
        name: contention.run(facts.figures(board.name), work, staggered=True, batched=batched)
        for name, batched in (("each piece started by itself", False), ("one chain a layer", True))
    }
    figures = {name: run.figures() for name, run in runs.items()}
    title = f"A layer of a token of {MODEL} on a {board.title}, keys and values by DMA"
    return _drawn(
        BATCHING, figures, bus_timeline, lambda path: bus_timeline.draw(runs, title, path, layers=1)
    )


def _tail(_wanted: Collection[str]) -> Mapping[str, bytes]:
    from kvlab.bus import contention
    from kvlab.plots import bus_tail

    board, bus, work = _work()
    by = {
        name: contention.tail(bus, work, LOADS, staggered=staggered)
        for name, staggered in (("as it comes", False), ("by turns", True))
    }
    figures = {name: [asdict(tail) for tail in tails] for name, tails in by.items()}
    title = f"How long other tasks wait for the {bus.memory} of an {board.chip}"
    return _drawn(TAIL, figures, bus_tail, lambda path: bus_tail.draw(by, title, path))


def _kinds(_wanted: Collection[str]) -> Mapping[str, bytes]:
    """Of those whose bytes docs/BUS.md tells."""
    from kvlab.bus import access, kinds
    from kvlab.docs.producers import bus as told
    from kvlab.plots import bus_kinds

    (_, small), (_, large) = told._counted(), told._told()
    names = dict(zip(access.KINDS, kinds.KINDS))
    shares = {
        name: {names[kind]: part for kind, part in found.items()}
        for name, found in (
            (f"{told.MODEL}, {told.TOKENS} tokens in view", small),
            (f"{told.LARGE}, {told.LARGE_TOKENS:,}", large),
        )
    }
    title = "The bytes of a token by kind"
    return _drawn(KINDS, shares, bus_kinds, lambda path: bus_kinds.draw(shares, title, path))


PRODUCERS = tuple(
    Producer(name, "kvlab bus --plot FILE", Cost.CHEAP, named(picture), make, group="bus_pictures")
    for name, picture, make in (
        ("bus_timeline", TIMELINE, _timeline),
        ("bus_batching", BATCHING, _batching),
        ("bus_tail", TAIL, _tail),
        ("bus_kinds", KINDS, _kinds),
    )
)
