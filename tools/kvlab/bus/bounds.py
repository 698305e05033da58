"""How long a wait for the bus can be at most, in closed form, and the longest that a search finds.

Times, bytes and rates are of any units that fit together (microseconds, bytes, bytes a microsecond), ints or
fractions, and all of it is exact. A closed form is proven for every arrival and every server of its kind; a
search plays the adversary, who chooses both, and must come near it from below.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

Number = int | Fraction
Arrival = tuple[Number, Number]  # when, and how many bytes


@dataclass(frozen=True)
class Bound:
    """`delay`: from a byte's arrival until it is through; `backlog`: bytes that wait at any time."""

    delay: Fraction
    backlog: Fraction


def token_bucket(burst: Number, rate: Number, service: Number, latency: Number) -> Bound:
    """A flow of at most burst + rate * t bytes in any t, into a server that gives any backlog
    service * (t - latency) bytes within t: the horizontal and the vertical distance of the two curves.

    Le Boudec and Thiran, Network Calculus (Springer LNCS 2050), theorems 1.4.1 and 1.4.2. ValueError where
    the flow is faster than the server, as its backlog grows for ever.
    """
    if rate > service:
        raise ValueError(f"a flow of {rate} is faster than its server of {service}")
    return Bound(latency + Fraction(burst) / service, Fraction(burst + rate * latency))


def tdma_curve(slot: Number, cycle: Number, speed: Number, piece: Number = 0) -> tuple[Fraction, Fraction]:
    """(rate, latency) that one slot of a cycle guarantees on a bus of that speed: speed * slot / cycle and
    cycle - slot.

    Wandeler and Thiele, Optimal TDMA time slot and cycle length allocation for hard real-time systems
    (ASP-DAC 2006). piece: of transfers that are never cut the longest, which a slot's end may leave unused.
    """
    lost = Fraction(piece) / speed
    return speed * (slot - lost) / Fraction(cycle), cycle - slot + lost


def tdma(burst: Number, rate: Number, slot: Number, cycle: Number, speed: Number, piece: Number = 0) -> Bound:
    """A flow of that bucket through its slot of a cycle, by the straight line below the stairs: near what can
    be where the burst is just more than whole slots take."""
    return token_bucket(burst, rate, *tdma_curve(slot, cycle, speed, piece))


def tdma_stairs(burst: Number, rate: Number, slot: Number, cycle: Number, speed: Number) -> Fraction:
    """The delay of the same by the stairs themselves: what can be, whatever the burst.

    After its burst a flow of no more than the slot's rate can only fall behind further where it first needs
    one more slot: from then on a slot's bytes take it a cycle or longer to send.
    """
    whole = Fraction(speed) * slot
    if rate * Fraction(cycle) > whole:
        raise ValueError(f"a flow of {rate} is faster than its slot of {whole / cycle}")
    wait = cycle - slot
    found = -(-Fraction(burst) // whole) * wait + Fraction(burst) / speed
    if rate:
        full = Fraction(burst) // whole + (1 if burst % whole else 0)  # slots that what came first fills
        comes = (full * whole - burst) / rate
        found = max(found, (full + 1) * wait + full * slot - comes)
    return found


def staggered_io(slots: Sequence[Number], burst: Number) -> Fraction:
    """From a request of input or output until it is through, where it is admitted between any two slots:
    the longest slot of others that may just have begun, and the time that one burst takes.

    What is admitted between two slots is one burst, of all tasks together; the others' slots cannot be
    cut, so nothing is there to wait for but the one that runs.
    """
    return Fraction(max(slots) + burst)


def blackout(budget: Number, period: Number) -> Fraction:
    """The longest time without service where a server gives `budget` in every period, at any time within it:
    given at once in one period, at the very end in the next.

    Shin and Lee, Periodic resource model for compositional real-time guarantees (RTSS 2003).
    """
    return Fraction(2 * (period - budget))


def md1_waiting(load: float, service: float) -> float:
    """The mean waiting of transfers that come at random times (Poisson) and all take as long.

    Pollaczek and Khinchine's formula for M/G/1, with no variance of service: load * service / (2 (1 - load)).
    """
    return load * service / (2 * (1 - load))


# Servers: each tells when bytes that wait from `start` on are through. They are asked in the order of time.
Server = Callable[[Fraction, Number], Fraction]


def blocked(service: Number, before: Number) -> Server:
    """A server that was just given to something else, for `before`, whenever a backlog begins."""
    last: list[Fraction] = []

    def through(start: Fraction, nbytes: Number) -> Fraction:
        begins = start if last and start <= last[-1] else start + before
        last[:] = [begins + Fraction(nbytes) / service]
        return last[-1]

    return through


def slotted(slot: Number, cycle: Number, speed: Number, phase: Number) -> Server:
    """A bus that serves from phase + k * cycle on, for `slot`."""

    def through(start: Fraction, nbytes: Number) -> Fraction:
        now, left = start, Fraction(nbytes) / speed
        into = (now - phase) % cycle
        if into >= slot:
            now, into = now + cycle - into, Fraction(0)
        if left <= slot - into:
            return now + left
        left -= slot - into
        now += cycle - into
        before = -(-left // slot) - 1  # whole slots before the one in which the last byte goes
        return now + before * cycle + left - before * slot

    return through


def delays(arrivals: Sequence[Arrival], server: Server) -> list[Fraction]:
    """How long each waits until its last byte is through, first come first served."""
    found, end = [], Fraction(0)
    for when, nbytes in arrivals:
        end = server(max(end, Fraction(when)), nbytes)
        found.append(end - when)
    return found


def _longest(arrivals: Sequence[Arrival], server: Server) -> Fraction:
    return max(delays(arrivals, server), default=Fraction(0))


def pairs(flat: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours, two by two."""
    return list(zip(flat[::2], flat[1::2]))


def conforming(burst: Number, rate: Number, wishes: Sequence[tuple[int, int]]) -> list[Arrival]:
    """Arrivals that a bucket of that burst and rate lets through: each wish a time and bytes, cut to what the
    bucket has then."""
    found: list[Arrival] = []
    level, now = Fraction(burst), 0
    for when, nbytes in sorted(wishes):
        level = min(Fraction(burst), level + rate * Fraction(when - now))
        now = when
        taken = min(level, Fraction(nbytes))
        if taken > 0:
            level -= taken
            found.append((now, taken))
    return found


def worst_token_bucket(
    burst: int, rate: Number, service: Number, latency: int, seed: int = 1
) -> tuple[Fraction, Fraction]:
    """(delay, backlog) of the worst that is found: arrivals of any size and distance, as many as fill the
    bucket again while the server is taken, which it is for as long as it may be, or less."""

    def delay(choice: Sequence[int]) -> Fraction:
        before, *wishes = choice
        return _longest(conforming(burst, rate, pairs(wishes)), blocked(service, before))

    def backlog(choice: Sequence[int]) -> Fraction:
        before, *wishes = choice
        return _backlog(conforming(burst, rate, pairs(wishes)), service, before)

    count = 2 + min(30, -(-Fraction(rate * latency) // burst))
    ranges = [(0, latency)] + [(0, latency), (0, burst)] * int(count)
    return worst(delay, ranges, seed), worst(backlog, ranges, seed)


def _backlog(arrivals: Sequence[Arrival], service: Number, before: int) -> Fraction:
    """The most bytes that wait at once: seen right after an arrival."""
    server, most = blocked(service, before), Fraction(0)
    waiting: list[tuple[Fraction, Fraction]] = []  # begin and end of each one's service
    end = Fraction(0)
    for when, nbytes in arrivals:
        end = server(max(end, Fraction(when)), nbytes)
        waiting.append((end - Fraction(nbytes) / service, end))
        left = [(e - max(b, Fraction(when))) * service for b, e in waiting if e > when]
        most = max(most, sum(left, Fraction(0)))
    return most


def worst_tdma(burst: int, rate: Number, slot: int, cycle: int, speed: Number, seed: int = 1) -> Fraction:
    """The longest delay that is found in a slot of a cycle: four arrivals, and where the cycle stands at the
    first moment. The unit of time should be a small part of a slot."""

    def delay(choice: Sequence[int]) -> Fraction:
        phase, *wishes = choice
        return _longest(conforming(burst, rate, pairs(wishes)), slotted(slot, cycle, speed, phase))

    return worst(delay, [(0, cycle - 1)] + [(0, 2 * cycle), (0, burst)] * 4, seed)


def worst_staggered_io(slots: Sequence[int], burst: int, seed: int = 1) -> Fraction:
    """The longest time from a request to the end of its burst: when it comes, and which of the gaps before it
    other bursts have taken, as long or shorter."""

    def response(choice: Sequence[int]) -> Fraction:
        now, (comes, *taken) = 0, choice
        for slot, gap in zip((*slots, *slots), taken):
            if comes <= now:
                break
            now += gap if comes > now + gap else 0
            now += slot
        return Fraction(max(now, comes) + burst - comes)

    most = 2 * sum(slots) + 2 * burst * len(slots)
    return worst(response, [(0, most // 2)] + [(0, burst)] * 2 * len(slots), seed)


def worst_blackout(budget: int, period: int, seed: int = 1) -> Fraction:
    """The longest time without service that is found: where in each of four periods the budget is given,
    whole or in two parts."""

    def without(places: Sequence[int]) -> Fraction:
        longest = last = 0
        for k in range(4):
            first, split, second = places[3 * k : 3 * k + 3]
            first = min(first, period - budget)
            second = max(first + split, min(second, period - budget + split))
            for at, length in ((first, split), (second, budget - split)):
                if length:
                    longest = max(longest, k * period + at - last)
                    last = k * period + at + length
        return Fraction(longest)

    return worst(without, [(0, period - budget), (0, budget), (0, period)] * 4, seed)


def worst(
    value: Callable[[Sequence[int]], Fraction], ranges: Sequence[tuple[int, int]], seed: int, starts: int = 6
) -> Fraction:
    """The largest value that is found, by moving one choice at a time from random starts, as long as that
    makes it larger."""
    source = random.Random(seed)
    found = []
    for _ in range(starts):
        found.append(_climb(value, ranges, [source.randint(*each) for each in ranges], source))
    return max(found)


def _climb(
    value: Callable[[Sequence[int]], Fraction],
    ranges: Sequence[tuple[int, int]],
    choice: list[int],
    source: random.Random,
) -> Fraction:
    best, moved = value(choice), True
    while moved:
        moved = False
        for i, (low, high) in enumerate(ranges):
            far = max(1, (high - low) // 16)
            near = {choice[i] + step for step in (-far, -1, 1, far)}
            for other in sorted({low, high, source.randint(low, high), *near}):
                if low <= other <= high:
                    found = value([*choice[:i], other, *choice[i + 1 :]])
                    if found > best:
                        best, moved = found, True
                        choice[i] = other
    return best
