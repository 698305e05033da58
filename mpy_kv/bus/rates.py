"""Rates: how fast the tiers of memory really are, and that optional traffic yields where one is slow.

    rates = Rates(bus)                            # a Tracker, or None: measure only
    flash = rates.tier(low=4_000_000, high=6_000_000)
    start = time.ticks_us()
    ...
    rates.transfer(flash, start, time.ticks_us(), 4096)   # bytes/s

A tier is slow once the moving average of its transfers, which gains an eighth of each difference, falls below
`low`, and no longer once it reaches `high`. While any tier is slow, what optional tasks of the tracker get
above their guarantees shrinks by a 16th at a time, down to one, at most once in ramp_ms; then it grows back
the same way. So something optional always goes on, by which it shows that a tier has recovered.

Times are ticks of period 2^30 us, passed in; a transfer takes less than 2^29 us. A transfer without bytes,
or within one tick, is counted but tells no rate. Where there is native code, nothing is allocated after
set-up but by refusals, total() and time().
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..errors import BadArgument
from ..transient import load_module

# fields: rates, tier
_SLOW_TIERS = const(0)
_TIER_RECORDS = const(1)
_BELOW = const(0)
_FROM = const(1)
_SLOW = const(2)
_AVERAGE = const(3)
_TIER_LOW = const(5)
_TIER_HIGH = const(6)
_TIER_US_LOW = const(7)
_TIER_US_HIGH = const(8)
_TIER_WORDS = const(9)
# end of fields

_LATE = const(0x100000)  # see tracking/plain.py


class Rates:
    """tiers: how many there may be. ramp_ms: from one step of the ramp to the next."""

    def __init__(self, tracker=None, tiers=3, ramp_ms=100):
        _whole("tiers", tiers, 1, 1000)
        _whole("ramp_ms", ramp_ms, 0, 100000)
        setup = load_module("mpy_kv.bus.tracking.setup")
        self.tracker = tracker
        self.tiers = 0
        self.most_tiers = tiers
        self.elapsed = 0  # us of the last transfer
        self._most = setup.MOST
        self._most_bytes = setup.MOST_RECORDED - 1
        self._ramp_us = 1000 * ramp_ms
        self._stepped = -1
        self._note = setup.calls(("note",))["note"]
        self._rates = setup.words(_TIER_RECORDS + tiers * _TIER_WORDS)

    def tier(self, low=0, high=None):
        """A new tier, by its number. low, high: bytes/s, below and from which on it is slow and is not; 0: it
        never is."""
        if self.tiers == self.most_tiers:
            raise BadArgument("tiers: all %d are there: give Rates more" % self.tiers)
        _whole("low", low, 0, self._most)
        if high is None:
            high = low
        _whole("high", high, low, self._most)
        at = _TIER_RECORDS + self.tiers * _TIER_WORDS
        self._rates[at + _BELOW] = low
        self._rates[at + _FROM] = high
        self.tiers += 1
        return self.tiers - 1

    @micropython.native
    def transfer(self, tier, start, stop, nbytes):
        """Bytes/s of a transfer, None where no time went by. `elapsed` has its microseconds."""
        elapsed = (stop - start) & 0x3FFFFFFF
        if not 0 <= tier < self.tiers or not 0 <= nbytes <= self._most_bytes or elapsed > 0x1FFFFFFF:
            self._refuse(tier, start, stop, nbytes)
        self.elapsed = elapsed
        rates = self._rates
        rate = self._note(rates, tier, nbytes, elapsed)
        if rate < 0:
            return None
        if nbytes and self.tracker is not None:
            part = self.tracker.optional_part
            if rates[_SLOW_TIERS]:
                if part > 1:
                    self._ramp(part - 1, stop)
            elif part < 16:
                self._ramp(part + 1, stop)
        return rate

    def average(self, tier):
        """Bytes/s, None before the first rate."""
        found = self._rates[self._at(tier) + _AVERAGE]
        return found - 1 if found else None

    def slow(self, tier):
        return self._rates[self._at(tier) + _SLOW] != 0

    def total(self, tier):
        """(high, low) words of all its bytes: high * 2^30 + low."""
        at = self._at(tier)
        return self._rates[at + _TIER_HIGH], self._rates[at + _TIER_LOW]

    def time(self, tier):
        """(high, low) words of the microseconds of all its transfers."""
        at = self._at(tier)
        return self._rates[at + _TIER_US_HIGH], self._rates[at + _TIER_US_LOW]

    def reset(self):
        """All is as before the first transfer, but that the ramp goes on from where it is."""
        rates = self._rates
        self.elapsed = 0
        rates[_SLOW_TIERS] = 0
        for tier in range(self.tiers):
            at = self._at(tier)
            for field in range(_SLOW, _TIER_WORDS):
                rates[at + field] = 0

    def _at(self, tier):
        _whole("tier", tier, 0, self.tiers - 1)
        return _TIER_RECORDS + tier * _TIER_WORDS

    @micropython.native
    def _ramp(self, part, stop):
        """A step of the ramp, if it is time for one."""
        stop = stop & 0x3FFFFFFF
        since = (stop - self._stepped) & 0x3FFFFFFF
        if self._stepped < 0 or self._ramp_us <= since <= 0x3FFFFFFF - _LATE:
            self._stepped = stop
            self.tracker.yield_optional(part)

    def _refuse(self, tier, start, stop, nbytes):
        _whole("tier", tier, 0, self.tiers - 1)
        _whole("nbytes", nbytes, 0, self._most_bytes)
        raise BadArgument("stop must be less than 2^29 us after start, %r, got %r" % (start, stop))


def _whole(name, value, least, most):
    if type(value) is not int or not least <= value <= most:
        raise BadArgument("%s must be %d..%d, got %r" % (name, least, most, value))
