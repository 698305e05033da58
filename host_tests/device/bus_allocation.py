"""What calls of the bus allocate: bytes by mem_total, which sees frames that a locked heap lets pass.

usage: bus_allocation.py    prints {"calls": bytes} as JSON. A run with the heap locked precedes each count.
"""

import gc
import json

import micropython
from mpy_kv.bus.rates import Rates
from mpy_kv.bus.tracker import Tracker

PERIOD = 1 << 30
MOST = PERIOD - 1

tracker = Tracker(MOST, MOST, 1, 4)
tracker.task(0, 100, 1 << 28)
tracker.task(1, MOST // 2, 1000, MOST)
tracker.task(2, 1000000, 500, 0, True)
tracker.task(3, 5, 70000, 1000)
rates = Rates(tracker, 2, 0)
rates.tier(1000000, 2000000)
rates.tier(MOST, MOST)
now = PERIOD - 3000


def later(gone):
    """Ticks go round; their sum would be no small int."""
    global now
    left = MOST - now
    now = now + gone if gone <= left else gone - left - 1


def requests(count):
    while count:
        later(1 + (count & 7) * 300)
        tracker.request(now, count & 3, 1 + (count & 255))
        tracker.request(now, 3, 70000)
        tracker.request(now, 0, 1 << 28)
        count -= 1


def silences(count):
    while count:
        later(400000000)
        tracker.request(now, count & 3, 500)
        tracker.request(now - 1 & MOST, count & 3, 500)
        count -= 1


def records(count):
    while count:
        later(count * 20)
        tracker.record(now, count & 3, count * 1000000)
        count -= 1


def stats(count):
    while count:
        later(7)
        tracker.stats(now)
        tracker.cancel(count & 3)
        tracker.allow(count & 3, 5)
        tracker.yield_optional(1 + (count & 15))
        count -= 1


def transfers(count):
    while count:
        later(50)
        rates.transfer(count & 1, now - 30 & MOST, now, count * 10)
        rates.transfer(0, now, now, 10)
        rates.transfer(1, now - 1 & MOST, now, 1 << 28)
        rates.transfer(0, now - 500000000 & MOST, now, 5)
        rates.average(0)
        rates.slow(1)
        count -= 1


def control(count):
    """What must be seen: a list a time."""
    while count:
        [count]
        count -= 1


def measure(work):
    """Names are made beforehand: a first store would grow a dict."""
    a = b = 0
    work(3)
    gc.collect()
    if work is not control:
        micropython.heap_lock()
        work(20)
        micropython.heap_unlock()
    gc.disable()
    a = micropython.mem_total()
    work(200)
    b = micropython.mem_total()
    gc.enable()
    return b - a


names = ("requests", "silences", "records", "stats", "transfers", "control")
print(json.dumps({name: measure(globals()[name]) for name in names}))
