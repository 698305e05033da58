"""Pictures of the bus: what they show of a run, and that they are drawn."""

from __future__ import annotations

import pytest

from kvlab.bus.contention import Outcome, Tail
from kvlab.bus.kinds import IO, KINDS, KV_READ, KV_WRITE, WEIGHTS
from kvlab.bus.wire import Span
from kvlab.plots import bus_kinds, bus_tail, bus_timeline

US = 10**6


def token(begin: int) -> list[Span]:
    """Two layers: two pieces written, read, and weights that the second write waits for."""
    found = []
    for layer in range(2):
        at = begin + 100 * US * layer
        found += [
            Span("model", WEIGHTS, 1 - layer, at, at, at + 40 * US, 400),
            Span("model", KV_WRITE, layer, at, at + 40 * US, at + 41 * US, 10),
            Span("model", KV_WRITE, layer, at + 41 * US, at + 41 * US, at + 42 * US, 10),
            Span("model", KV_READ, layer, at + 42 * US, at + 42 * US, at + 60 * US, 180),
        ]
    return [*found, Span("task 1", IO, -1, begin + 20 * US, begin + 60 * US, begin + 61 * US, 10)]


def test_the_last_token_is_shown_from_its_first_write_on():
    spans = sorted([*token(0), *token(1000 * US)], key=lambda span: span.asked_ps)
    begin, end, shown = bus_timeline.part(spans, 1)
    assert (begin, end) == (1000 * US, 1100 * US)
    assert {span.layer for span in shown} == {0, 1, -1}
    assert len(shown) == 5
    begin, end, shown = bus_timeline.part(spans, 3)
    assert (begin, end, len(shown)) == (1000 * US, 1160 * US, 9)
    assert bus_timeline.part([], 3) == (0, 0, [])


def test_times_are_told_in_a_unit_of_their_size():
    told = [bus_timeline.shown(us) for us in (0.0, 658.6, 9_999.4, 35_671.0, 411_628_810.0, 13_463_534.0)]
    assert told == ["0 µs", "659 µs", "9,999 µs", "35.7 ms", "412 s", "13.5 s"]


def test_they_are_drawn(tmp_path):
    runs = {"at will": Outcome(160.0, [41.0], 50.0, spans=token(0)), "in turns": Outcome(bound_us=45.0)}
    bus_timeline.draw(runs, "A token", tmp_path / "timeline.png")
    tails = [Tail(load, 1.0, 2.0, 3.0, 4.0) for load in (0.1, 0.9)]
    bus_tail.draw({"at will": tails, "in turns": tails}, "Waits", tmp_path / "tail.png")
    shares = dict(zip(KINDS, (0.2, 0.01, 0.785, 0.005)))
    bus_kinds.draw({"a model": shares}, "Bytes", tmp_path / "kinds.png")
    for name in ("timeline", "tail", "kinds"):
        assert (tmp_path / f"{name}.png").read_bytes()[1:4] == b"PNG"


def test_the_split_of_the_document_is_whole():
    assert sum(bus_kinds.DOCUMENT.values()) == pytest.approx(1)
    assert bus_kinds.DOCUMENT == {"KV read": 0.40, "KV write": 0.25, "weights": 0.30, "I/O": 0.05}
