"""Waits for the bus: closed forms, the worst that a search finds, simulation."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kvlab.docs.registry import Cost, Producer, named


def _waits(_wanted: Collection[str]) -> Mapping[str, str]:
    from kvlab import boards
    from kvlab.bus import checked, formula, simulated
    from kvlab.docs.producers.bus_pictures import BOARD, MODEL, VISIBLE
    from kvlab.plan import models

    shape = models.find(MODEL)
    token = formula.token(shape, VISIBLE)
    found = checked.rows()
    for name in ("rp2040", BOARD):
        board = boards.load(name)
        row = checked.staggered(name, simulated.work(shape, token, None, board))
        found.append(checked.Row(f"{board.title}, {row.what}", row.unit, row.bound, row.found, row.simulated))
    lines = ["|  | closed form | found by a search | simulated |", "| --- | ---: | ---: | ---: |"]
    for row in found:
        cells = (row.bound, row.found, row.simulated)
        said = ("-" if x is None else f"{x:,.{1 if x < 100 else 0}f} {row.unit}" for x in cells)
        lines.append(f"| {' | '.join((row.what, *said))} |")
    return {"bus_waits": "\n".join(lines)}


PRODUCERS = (Producer("bus_waits", "kvlab bus", Cost.CHEAP, named("bus_waits"), _waits),)
