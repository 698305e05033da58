"""The bus tracker, for worst.py: eight tasks ask for all sizes, at all paces, within a limit that is too low.

One in two tasks has a limit of its own; one is optional. Time goes by in steps of all magnitudes, up to where
the window is over and buckets are full.
"""

import micropython
from bench.tally import Record, begin, end, following
from mpy_kv.bus.rates import Rates
from mpy_kv.bus.tracker import Tracker
from mpy_kv.bus.tracking import inspect

TASKS = 8
BURST = 8192
LIMIT = 100000


class Bus:
    """A round asks for one task, with what comes beside it now and then."""

    operations = ("bus_request", "bus_request_refused", "bus_record", "bus_stats", "bus_transfer")

    def __init__(self):
        self.records = [Record() for _ in self.operations]
        self.tracker = Tracker(LIMIT, LIMIT, 100, TASKS)
        for i in range(TASKS):
            limit = LIMIT // 4 if i & 1 else 0
            self.tracker.task(i & 3, LIMIT // 20 + i, BURST, limit, i == TASKS - 1)
        self.rates = Rates(self.tracker)
        self.tier = self.rates.tier(1000000, 2000000)
        self.now = 0x3FF00000
        self.state = 1

    def first(self):
        for _ in range(64):
            self.round()

    @micropython.native
    def round(self):
        go, stop = begin, end
        request, refused, record, stats, transfer = self.records
        tracker = self.tracker
        state = following(self.state)
        random = state >> 8
        state = following(state)
        self.state = state
        gone = (1 << (random & 15)) + (state >> 8 & 15)
        if not random & 0x3F0000:
            gone += 200000
        # Their sum may be no small int.
        now = self.now - 0x3FFFFFFF + gone
        now = now + 0x3FFFFFFF if now < 1 else now - 1
        self.now = now
        task = random >> 4 & 7
        nbytes = ((state >> 8 & 0x1FFF) >> (random >> 7 & 7)) + 1
        what = random >> 10 & 7
        if what == 0:
            start = go()
            tracker.record(now, task, nbytes)
            n = stop(start)
            record.note(n)
        elif what == 1:
            start = go()
            tracker.stats(now)
            n = stop(start)
            stats.note(n)
        elif what == 2:
            rates = self.rates
            start = go()
            rates.transfer(0, now - gone & 0x3FFFFFFF, now, nbytes)
            n = stop(start)
            transfer.note(n)
        else:
            start = go()
            wait = tracker.request(now, task, nbytes)
            n = stop(start)
            if wait:
                refused.note(n)
            else:
                request.note(n)

    def check(self):
        return inspect.check(self.tracker)


def parts():
    return (Bus(),)
