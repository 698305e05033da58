"""Closed forms of waits for the bus: values by hand, never exceeded, reached to nine tenths by a search."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from kvlab.bus import bounds

NEAR = Fraction(9, 10)

BUCKETS = {
    "a burst and a trickle": (1000, 2, 5, 300),
    "filled again many times while the server is taken": (64, Fraction(1, 3), 1, 1000),
    "as fast as the server": (5000, 10, 10, 20),
}
# Just more than whole slots: there the straight line is near what can be.
SLOTS = {
    "two slots full and a flow": (4000, 1, 100, 1000, 20),
    "two slots and a byte": (4001, 0, 100, 1000, 20),
    "as fast as its slot": (2000, 2, 100, 1000, 20),
    "less than a quarter of the cycle, small": (100, 0, 250, 1000, 8),
}
STAIRS = {
    **SLOTS,
    "half a slot": (1000, 1, 100, 1000, 20),
    "one slot, to the byte": (6000, 0, 300, 1000, 20),
}


def test_values_by_hand():
    """40 bytes and 2 a unit, into 5 a unit after 3: delay 3 + 8, backlog 40 + 6."""
    assert bounds.token_bucket(40, 2, 5, 3) == bounds.Bound(Fraction(11), Fraction(46))
    assert bounds.tdma_curve(20, 100, 5) == (1, 80)
    assert bounds.tdma_curve(20, 100, 5, piece=25) == (Fraction(3, 4), 85)
    assert bounds.tdma(40, 1, 20, 100, 5).delay == 120
    assert bounds.tdma_stairs(40, 1, 20, 100, 5) == 120  # 100 bytes at 60, the next one in the second slot
    assert bounds.tdma_stairs(40, Fraction(1, 2), 20, 100, 5) == 88
    assert bounds.staggered_io([70, 200, 30], 9) == 209
    assert bounds.blackout(30, 100) == 140
    assert bounds.md1_waiting(0.5, 8.0) == 4.0
    assert bounds.md1_waiting(0.0, 8.0) == 0.0


@pytest.mark.parametrize("case", BUCKETS)
def test_bucket_is_reached_and_never_exceeded(case):
    bound = bounds.token_bucket(*BUCKETS[case])
    delay, backlog = bounds.worst_token_bucket(*BUCKETS[case])
    assert NEAR * bound.delay <= delay <= bound.delay
    assert NEAR * bound.backlog <= backlog <= bound.backlog


@pytest.mark.parametrize("case", SLOTS)
def test_slot_is_reached_and_never_exceeded(case):
    assert NEAR <= bounds.worst_tdma(*SLOTS[case]) / bounds.tdma(*SLOTS[case]).delay <= 1


@pytest.mark.parametrize("case", STAIRS)
def test_stairs_are_reached_and_lie_below_the_line(case):
    exact = bounds.tdma_stairs(*STAIRS[case])
    assert NEAR <= bounds.worst_tdma(*STAIRS[case]) / exact <= 1
    assert exact <= bounds.tdma(*STAIRS[case]).delay


@pytest.mark.parametrize("slots", [(100, 300, 200), (10, 10), (5000, 20, 1)], ids=str)
def test_staggered_io_is_reached_and_never_exceeded(slots):
    bound = bounds.staggered_io(slots, 40)
    assert NEAR * bound <= bounds.worst_staggered_io(slots, 40) <= bound


@pytest.mark.parametrize("budget", [1, 10, 50, 90, 99])
def test_blackout_is_reached_and_never_exceeded(budget):
    bound = bounds.blackout(budget, 100)
    assert NEAR * bound <= bounds.worst_blackout(budget, 100) <= bound


def test_no_flow_and_server_exceed_their_bounds():
    """Any of 300, with arrivals and servers at random."""
    source = random.Random(3)
    for _ in range(300):
        burst, cycle, speed = source.randint(1, 900), source.randint(2, 200), source.randint(1, 30)
        slot = source.randint(1, cycle)
        rate = Fraction(speed * slot * source.randint(0, 100), cycle * 100)
        wishes = [(source.randint(0, 6 * cycle), source.randint(1, burst)) for _ in range(8)]
        arrivals = bounds.conforming(burst, rate, wishes)
        found = bounds.delays(arrivals, bounds.slotted(slot, cycle, speed, source.randint(0, cycle - 1)))
        assert max(found) <= bounds.tdma_stairs(burst, rate, slot, cycle, speed)
        latency = source.randint(0, cycle)
        found = bounds.delays(arrivals, bounds.blocked(speed, source.randint(0, latency)))
        assert max(found) <= bounds.token_bucket(burst, rate, speed, latency).delay


def test_a_bucket_holds_back_what_is_more_than_its_burst_and_rate():
    wishes = [(0, 100), (0, 100), (7, 100), (500, 30)]
    assert bounds.conforming(100, Fraction(1, 2), wishes) == [(0, 100), (7, Fraction(7, 2)), (500, 30)]


def test_a_slot_serves_across_its_borders():
    """From 95 on, in slots 10..30 of 100 at 5 bytes a unit: 250 bytes take 20 + 20 + 10."""
    assert bounds.slotted(20, 100, 5, 10)(Fraction(95), 250) == 320
    assert bounds.slotted(20, 100, 5, 10)(Fraction(95), 200) == 230
    assert bounds.slotted(20, 100, 5, 10)(Fraction(25), 20) == 29


def test_what_is_faster_than_its_server_is_refused():
    with pytest.raises(ValueError, match="faster than its server"):
        bounds.token_bucket(9, 6, 5, 3)
    with pytest.raises(ValueError, match="faster than its slot"):
        bounds.tdma_stairs(40, 2, 20, 100, 5)
