"""What a transfer takes on each board's and profile's bus: facts with sources, times by hand, refusals."""

import json

import pytest

from commandline.errors import BadInput
from kvlab import boards, profiles
from kvlab.bus import facts
from kvlab.bus.facts import Figures
from kvlab.bus.kinds import KV_READ, KV_WRITE, WEIGHTS
from kvlab.facts import memory_of, read_checked

PROFILES = ("soc", "edge", "server")


def test_every_board_and_the_larger_profiles_have_a_bus():
    assert sorted(facts.names()) == sorted([*boards.names(), *PROFILES])


@pytest.mark.parametrize("name", facts.names())
def test_a_bus_leads_to_the_main_memory_with_facts_that_have_sources(name):
    place = profiles.load(name) if name in PROFILES else boards.load(name)
    main, bus = memory_of(place.memories, "main"), facts.figures(name)
    assert bus.memory == main.name
    # The memory's rate is what reads of one line reach, the bus's what is left without their overhead.
    assert main.read_bytes_per_s.value <= bus.peak <= 3 * main.read_bytes_per_s.value
    assert bus.write <= bus.peak
    for key, fact in facts.facts(name).items():
        assert len(fact.source) >= 8
        assert fact.kind != "derived" or fact.note, key


def test_what_a_transfer_takes():
    """1 MB/s is a microsecond a byte; writes take twice as long, and each transfer half one more."""
    bus = Figures("made", "RAM", peak=1_000_000, write=500_000, overhead_ns=500)
    assert bus.transfer_ps(64, KV_READ) == 64_500_000
    assert bus.transfer_ps(64, KV_WRITE) == 128_500_000
    assert bus.transfer_ps(64, KV_WRITE, 64) == 128_500_000  # nothing is lost by mixing here
    assert bus.transfer_ps(0, KV_READ) == 500_000
    assert Figures("made", "RAM", 3, 3).transfer_ps(1, KV_READ) == 333_333_333_334  # rounded up


def test_weights_that_are_read_in_place_take_what_their_own_memory_takes():
    """A microsecond for four of them, half a one for a byte of vectors; nothing is set up or turned."""
    bus = Figures("made", "RAM", 2_000_000, 2_000_000, overhead_ns=500, mixed_pct=80, weights=4_000_000)
    assert bus.transfer_ps(80, WEIGHTS, 80) == 20_000_000
    assert bus.transfer_ps(80, WEIGHTS, vectors=10) == 25_000_000
    assert bus.transfer_ps(80, KV_READ) == 40_500_000
    here = Figures("made", "RAM", 2_000_000, 2_000_000, overhead_ns=500)
    assert here.transfer_ps(80, WEIGHTS, vectors=10) == 45_500_000


@pytest.mark.parametrize("name", boards.names())
def test_weights_are_read_in_place_where_the_flash_is_mapped(name):
    board, bus = boards.load(name), facts.figures(name)
    assert bool(bus.weights) is board.memory_mapped_flash
    if name == "rp2040":
        from kvlab.cost import cycles

        assert bus.weights == 8 * board.machine.clock_hz / cycles.miss_cycles(board.machine.clock_hz)


def test_equal_reads_and_writes_that_take_turns_reach_the_mixed_rate():
    bus = Figures("made", "RAM", peak=1_000_000, write=1_000_000, mixed_pct=80)
    assert bus.transfer_ps(80, KV_WRITE, 80) == 100_000_000
    assert bus.transfer_ps(8000, KV_READ, 80) == 8_020_000_000  # no more of it is mixed than was written
    assert bus.transfer_ps(80, KV_WRITE, 8000) == 100_000_000


def test_a_line_of_psram_takes_what_was_measured():
    """58.11 MB/s and 84.16 MB/s in lines of 32 and 64 bytes, by the fit's own precision."""
    bus = facts.figures("esp32s3_psram")
    for line, rate in ((16, 36.99), (32, 58.11), (64, 84.16)):
        assert line * 1e6 / bus.transfer_ps(line, KV_READ) == pytest.approx(rate, rel=0.025)


def test_unknown():
    with pytest.raises(BadInput, match='did you mean "rp2040"'):
        facts.figures("rp2044")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"mixed_pct": {"value": 101, "kind": "measured", "source": "a long source"}},
            "mixed_pct.value: 101",
        ),
        ({"peak_bytes_per_s": {"value": 5000, "kind": "measured"}}, "'source' is a required property"),
        ({"speed": 3}, "'speed' was unexpected"),
    ],
    ids=["more than all", "no source", "not known"],
)
def test_a_file_that_is_wrong_is_refused_by_its_place(tmp_path, change, said):
    data = json.loads(facts.BUSES.read_text())
    data["buses"] = [{**data["buses"][0], **change}]
    (tmp_path / "buses.json").write_text(json.dumps(data))
    with pytest.raises(BadInput, match=said):
        read_checked(tmp_path / "buses.json", facts.SCHEMA)
