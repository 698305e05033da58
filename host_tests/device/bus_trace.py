"""A seeded trace of calls of the bus tracker and of Rates, the same on every interpreter.

usage: bus_trace.py SEED CALLS    prints [checksum over all answers, words of the tracker, of Rates] as JSON
CPython imports this file and calls `run`. Rates and sizes are what 32-bit boards can hold, to their ends.
"""

import binascii
import json
import sys

from mpy_kv.bus.rates import Rates
from mpy_kv.bus.tracker import Tracker
from mpy_kv.bus.tracking import inspect

MOST = (1 << 30) - 1
PERIOD = 1 << 30


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self.state >> 8) % n

    def any(self, bits):
        """A number of any magnitude below 2^bits."""
        x = self.below(1 << 15) << 15 | self.below(1 << 15)
        return x >> 30 - bits >> self.below(bits)


def run(seed, calls):
    random = Random(seed)
    limit = max(64, random.any(30))
    n = 1 + random.below(6)
    tracker = Tracker(limit, limit, 1 + random.below(16), n)
    bursts = []
    for i in range(n):
        guarantee = 1 + random.below(limit // n - 8)
        own = min(limit, guarantee + random.any(30)) if random.below(2) else 0
        bursts.append(1 + (random.any(28) if random.below(2) else random.any(12)))
        tracker.task(random.below(4), guarantee, bursts[i], own, random.below(2))
    rates = Rates(tracker, 2, random.below(20))
    for _ in range(2):
        low = random.any(28)
        rates.tier(low, low + random.any(20))
    now = PERIOD - 1 - random.below(1 << 16)
    seen = 0
    for _ in range(calls):
        gone = random.any(30) if random.below(8) == 0 else random.any(14)
        now = (now + gone) % PERIOD
        what = random.below(16)
        task = random.below(n)
        said = None
        if what < 10:
            at = now if what else (now - random.below(1 << 20)) % PERIOD
            said = tracker.request(at, task, 1 + random.any(28) % bursts[task])
        elif what < 12:
            tracker.record(now, task, random.any(29))
        elif what < 14:
            start = (now - random.any(29)) % PERIOD
            said = rates.transfer(random.below(2), start, now, random.any(28))
        else:
            said = tracker.stats(now).bandwidth_used
        seen = binascii.crc32(b"%d %d" % (-1 if said is None else said, tracker.optional_part), seen)
    words = [tracker._bus[i] for i in range(len(tracker._bus))]
    most = words.index(tracker._most)
    words[most] = 0  # how much a slice may count differs between interpreters
    return [seen, words, [rates._rates[i] for i in range(len(rates._rates))], inspect.check(tracker)]


if __name__ == "__main__":
    print(json.dumps(run(int(sys.argv[1]), int(sys.argv[2]))))
