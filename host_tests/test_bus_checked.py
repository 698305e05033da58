"""Closed forms, searches and simulations of waits for the bus, held to one another."""

import pytest

from kvlab.bus import checked
from kvlab.bus.contention import Work

STORIES = Work(5, 470_240, 340, 283_812, 10_240, pieces=10, vectors=69_184)


@pytest.fixture(scope="module")
def rows():
    return checked.rows()


def test_the_simulation_is_within_two_per_cent_of_every_closed_form(rows):
    assert len(rows) == 5
    assert [row.what for row in rows if row.off > 0.02] == []


def test_a_search_reaches_nine_tenths_of_every_bound_and_exceeds_none(rows):
    searched = [row for row in rows if row.found is not None]
    assert len(searched) == 4
    for row in [*searched, checked.staggered("rp2040", STORIES), checked.staggered("esp32s3_psram", STORIES)]:
        assert 0.9 * row.bound <= row.found <= row.bound, row.what


def test_between_slots_the_device_is_held_to_the_formula():
    """The longest slot and a burst of each, which the device's own schedule says."""
    for name in ("rp2040", "esp32s3_psram", "rp2350"):
        row = checked.staggered(name, STORIES)
        assert 0.9 * row.bound <= row.simulated <= row.bound
        assert 0.98 * row.bound <= row.found <= row.bound
