"""What streamed weights take, modelled: the fluid of chunks against cases whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kvlab import boards, shipped
from kvlab.bus import stream_counts, streaming
from kvlab.bus.stream_counts import RINGS, USUAL_RING, Entry
from kvlab.cost import counted, cycles, model
from kvlab.cost.cycles import Counts
from kvlab.models.image import Image

PICO = boards.load("rp2040")
SHAPE = Image.read(shipped.image(shipped.NAMES[0])).config
CLOCK = 125_000_000
WORD = 40  # cycles of the core for a word of the flash at that clock


def entry(sizes: Sequence[int], compute: Sequence[int], places: int, own: int = 0, beside: int = 0) -> Entry:
    """One layer of seven matrices, the first three before attention, each of one chunk but the last."""
    cut = (1,) * 6 + (len(sizes) - 6,)
    step = Counts(kernels={"other": own + sum(compute)})
    between = Counts(kernels={"other": beside})
    at = {1: step, 2: step}
    return Entry(64, places, 0, cut, tuple(sizes), tuple(compute), at, {1: between, 2: between})


def moved(size: int) -> float:
    return size / 4 * WORD + 3 * 16 + WORD


def test_a_core_that_needs_no_time_waits_for_every_word() -> None:
    sizes = [400, 80, 80, 400, 1200, 1200, 1600, 1600]
    found = streaming.token(entry(sizes, [0] * 8, 4), 1, 1, CLOCK)
    assert found.cycles == found.waiting == pytest.approx(sum(moved(size) for size in sizes))


def test_a_core_that_needs_long_waits_for_what_it_cannot_have_fetched() -> None:
    """All but the first is fetched while it computes; the last places are filled when a token ends."""
    sizes, compute = [400] * 8, [100_000] * 8
    found = streaming.token(entry(sizes, compute, 4), 1, 1, CLOCK)
    assert found.cycles == pytest.approx(sum(compute) + moved(400))


def test_one_place_does_one_thing_after_the_other() -> None:
    """But attention, which needs none: meanwhile a chunk is fetched."""
    sizes, compute = [400] * 8, [1000] * 8
    found = streaming.token(entry(sizes, compute, 1, own=5000, beside=700), 1, 1, CLOCK)
    assert found.cycles == pytest.approx(7 * moved(400) + sum(compute) + 5000 + 700)


def test_attention_hides_what_the_places_hold() -> None:
    """While it computes, the stream fills the places that are free, all but the one it waits for; more hide
    more."""
    sizes, compute = [4000] * 8, [10] * 8
    times = [
        streaming.token(entry(sizes, compute, places, own=10**6), 1, 1, CLOCK).cycles
        for places in (1, 2, 4, 8)
    ]
    assert times == sorted(times, reverse=True)
    assert times[0] == pytest.approx(10**6 + 80 + 7 * moved(4000))
    assert times[2] == pytest.approx(10**6 + 4 * 10 + 5 * moved(4000))


@pytest.mark.parametrize("name", shipped.NAMES)
def test_the_table_is_of_what_is_told(name: str) -> None:
    """As many instructions as of a story in place, but for the steps of the chunks; hardly a miss."""
    shape = Image.read(shipped.image(name)).config
    plain = counted.find(shape, "int8")
    for ring, places in RINGS:
        found = stream_counts.find(shape, "int8", ring)
        assert found is not None
        assert found.places == places
        assert len(found.chunk_bytes) == len(found.chunk_cycles) == sum(found.matrices)
        assert sum(found.matrices) % places == 0
        assert len(found.matrices) == 7 * shape.layers + 1
        for position in (1, 64, 255):
            told = found.step[position] + found.beside[position]
            more = told.cycles(0) - plain.token[position].cycles(0)
            # What the interpreter takes differs by where names lie in its heap.
            assert more > -0.005 * plain.token[position].cycles(0)
            assert more < 250 * len(found.chunk_bytes)
            assert told.misses < 0.05 * plain.token[position].misses
        # Each byte of the weights is a product but for scales and padding: 3.2 instructions and their cycles.
        assert 3.5 < sum(found.chunk_cycles) / sum(found.chunk_bytes) < 5


def test_a_pico_tells_more_than_thirty_tokens_a_second() -> None:
    plain = model.pace(PICO, SHAPE, "int8").tokens_per_s
    found = [streaming.pace(PICO, SHAPE, ring_bytes=ring) for ring, _ in RINGS]
    paces = [each.tokens_per_s for each in found]
    assert paces == sorted(paces)
    assert plain < paces[0]
    usual = streaming.pace(PICO, SHAPE)
    assert usual.ring_bytes == USUAL_RING
    assert usual.tokens_per_s > 30
    assert usual.bound == "flash"
    assert 0 < usual.core_waits < usual.flash_busy < 1
    # However much RAM: no sooner than the flash has moved every word.
    most = CLOCK / (sum(stream_counts.find(SHAPE, "int8", USUAL_RING).chunk_bytes) / 4 * WORD)
    assert paces[-1] < most
    slower = streaming.pace(PICO, SHAPE, clock_hz=133_000_000)
    assert cycles.flash_divider(133_000_000) == 4
    assert slower.tokens_per_s < usual.tokens_per_s


def test_of_what_was_not_counted_there_is_no_figure() -> None:
    assert "no figure" in streaming.pace(boards.load("rp2350"), SHAPE).note
    assert streaming.pace(PICO, SHAPE, ring_bytes=999).tokens_per_s is None
    assert streaming.pace(PICO, SHAPE, "int4").tokens_per_s is None
    assert streaming.figures(streaming.pace(PICO, SHAPE, "int4"))["modelled"].startswith("no figure")
