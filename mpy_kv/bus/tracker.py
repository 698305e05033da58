"""Tracker: who may use the memory bus now, and how much of it was used.

    bus = Tracker(peak=100_000_000)
    weights = bus.task(WEIGHTS, guarantee=40_000_000, burst=65536)
    files = bus.task(IO, guarantee=1_000_000, burst=4096)
    wait = bus.request(time.ticks_us(), weights, 8192)   # 0: go on; else ask again in so many microseconds
    bus.record(time.ticks_us(), files, 512)              # what nobody could hold back
    bus.stats(time.ticks_us()).bandwidth_used

A task is a stream of traffic of one kind. It has a bucket of `burst` bytes, which starts full; what is
admitted is taken from it. The limit is poured into the buckets, byte by byte, and into nothing else:
1. a bucket that is not full gets the guarantee of its task;
2. what is left, the rest of the limit and what full buckets do not take, is split equally among those that
   are not full, each up to its task's own limit;
3. what nobody can take is lost.

What follows, for all times t and t + d, whoever asks for what and how often:
- In all, at most (sum of bursts) + limit * d is admitted: a byte is poured once and taken once, and at t the
  buckets hold no more than they can. Of a task, at most burst + (its own limit) * d, for the same reason.
- A request of n bytes is admitted after at most n * 10^6 / r microseconds, rounded up, if it is asked for
  again when the answer says so and the task asks for nothing else meanwhile. r is the guarantee + (limit -
  sum of guarantees) / (number of tasks), rounded down; less only if the task's own limit is. In each
  microsecond a bucket that is not full gets that much: there are never more takers than tasks. The answer
  never says more, as it divides what is missing by a rate of at least r. tracking/inspect.py has bound().
- Two tasks that always ask get the same part of what is left, and their guarantees.
- A waiter has no place and nothing that is kept for it. One that never comes back costs nobody more than
  its bucket, which its task may have full in any case; one that asks early changes nothing.

Amounts are kept in millionths of a byte, as bytes/s * us is: nothing is rounded, so nothing drifts.

Times are ticks of period 2^30 us (time.ticks_us), passed in. One that is up to a second behind the last
counts as the last. Ask at least once in 1,072 s: a longer silence looks shorter than it was, by a whole
period. Then buckets fill late and old bytes still count as used; never is too much admitted, nor too little
told. Where there is native code, nothing is allocated after set-up but by refusals and total(). Not for
interrupts or two threads.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

from ..transient import load_module

# fields: bus
_TASKS = const(6)
# end of fields

# Kinds of traffic.
KV_READ, KV_WRITE, WEIGHTS, IO = 0, 1, 2, 3
KINDS = 4


class Stats:
    """What stats() fills in; rates are in bytes/s.

    bandwidth_allocated: guaranteed to tasks. bandwidth_used: over the last window. peak_bandwidth: of the
    bus. window_ms: the window.
    """

    def __init__(self, peak, window_ms):
        self.bandwidth_allocated = 0
        self.bandwidth_used = 0
        self.peak_bandwidth = peak
        self.window_ms = window_ms


class Tracker:
    """peak: bytes/s of the bus. limit: bytes/s that may be admitted in all (default 95 % of peak).
    window_ms: over which used bandwidth is told. tasks: how many there may be."""

    def __init__(self, peak, limit=None, window_ms=100, tasks=8):
        load_module("mpy_kv.bus.tracking.setup").make(self, peak, limit, window_ms, tasks)

    def task(self, kind, guarantee, burst, limit=0, optional=False):
        """A new task, by its number. guarantee: bytes/s, may be 0 while the limit leaves something over.
        burst: bytes that it may take at once, and so the most that it may ask for. limit: bytes/s, 0: none of
        its own. optional: its part of what is left shrinks where yield_optional() says so."""
        setup = load_module("mpy_kv.bus.tracking.setup")
        return setup.add_task(self, kind, guarantee, burst, limit, optional)

    @micropython.native
    def request(self, now, task, nbytes):
        """0: the bytes are admitted, and counted. Else nothing is taken: ask again in so many us."""
        bus, bursts, step, pour, take = self._hot
        if not 0 <= task < bus[_TASKS] or not 0 < nbytes <= bursts[task]:
            self.allow(task, nbytes)
        since = step(bus, now)
        if since:
            pour(bus, since)
        if take(bus, task, nbytes, 0):
            return self._wait(bus, task)
        return 0

    def allow(self, task, nbytes):
        """BadArgument where a request for so much has no meaning, or would never be admitted."""
        if type(task) is not int or not 0 <= task < self.tasks:
            load_module("mpy_kv.bus.tracking.setup").refuse_task(self, task)
        if type(nbytes) is not int or not 0 < nbytes <= self._bursts[task]:
            load_module("mpy_kv.bus.tracking.setup").refuse_bytes(self, task, nbytes)

    def cancel(self, task):
        """A waiter of the task will not come back. As nothing is kept for one, nothing is given back."""
        if type(task) is not int or not 0 <= task < self.tasks:
            load_module("mpy_kv.bus.tracking.setup").refuse_task(self, task)

    @micropython.native
    def record(self, now, task, nbytes):
        """Traffic that nobody could hold back: counts as used, and is owed. The task's bucket gets what it
        gets until that is paid; a wait grows by what is owed."""
        bus, _, step, pour, take = self._hot
        if not 0 <= task < bus[_TASKS]:
            load_module("mpy_kv.bus.tracking.setup").refuse_task(self, task)
        if not 0 <= nbytes <= self.most_recorded:
            load_module("mpy_kv.bus.tracking.setup").refuse_recorded(self, nbytes)
        since = step(bus, now)
        if since:
            pour(bus, since)
        take(bus, task, nbytes, 1)

    @micropython.native
    def stats(self, now):
        """The same Stats each time, as they are at `now`.

        The window is told in 16 slices; the running one and the oldest, of which a part is over, count whole:
        what is told is never too low, and holds at most the bytes of 17 slices.
        """
        bus, _, step, pour, _ = self._hot
        since = step(bus, now)
        if since:
            pour(bus, since)
        found = self._stats
        n = self._used(bus)
        window_ms = found.window_ms
        # Bytes/s, rounded up, at most what a small int holds; nor does any step leave the small ints.
        whole = n // window_ms
        n -= whole * window_ms
        if whole < self._most // 1000:
            found.bandwidth_used = 1000 * whole + (1000 * n + window_ms - 1) // window_ms
        else:
            found.bandwidth_used = self._most
        return found

    def total(self, kind):
        """(high, low) words of all bytes of that kind: high * 2^30 + low."""
        if type(kind) is not int or not 0 <= kind < KINDS:
            load_module("mpy_kv.bus.tracking.setup").refuse_kind(kind)
        return load_module("mpy_kv.bus.tracking.setup").total(self, kind)

    def reset(self):
        """Totals and the window are 0. What was taken from buckets and is owed stays so: else calls of this
        would break the limit."""
        load_module("mpy_kv.bus.tracking.setup").reset(self)

    def yield_optional(self, part):
        """Optional tasks get at most their guarantee and so many 16ths, 1..16, of what may come above it."""
        if type(part) is not int or not 1 <= part <= 16:
            load_module("mpy_kv.bus.tracking.setup").refuse_part(part)
        self.optional_part = part
        self._yields(self._bus, part)
