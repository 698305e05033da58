"""What an eviction policy costs here, in nanoseconds, beside a dict: both in the same `for` loop, loop
included.

usage: policies.py ENTRIES    prints a line "+1" for each policy and its figures as JSON: {POLICY:
{"touch_ns", "dict_ns", "touch_over_dict", "evict_insert_ns", "bytes_per_entry"}} Entries come in an order
that no processor foresees. All loops take turns, each in rounds of well under a millisecond so that a
busy machine interrupts few of them, and of each its best round counts.
"""

import json
import sys
import time

from mpy_kv import eviction

ROUNDS = 150
CALLS = 2000


def lookups(d, order):
    start = time.ticks_us()
    for k in order:
        d[k]
    return time.ticks_diff(time.ticks_us(), start)


def touches(policy, order):
    start = time.ticks_us()
    for k in order:
        policy.touch(k)
    return time.ticks_diff(time.ticks_us(), start)


def turnover(policy, order):
    start = time.ticks_us()
    for k in order:
        policy.insert(policy.evict(), k)
    return time.ticks_diff(time.ticks_us(), start)


def shuffled(n):
    """CALLS numbers below n (Marsaglia's xorshift of 32 bits)."""
    s = 2463534242
    found = []
    for _ in range(CALLS):
        s ^= (s << 13) & 0xFFFFFFFF
        s ^= s >> 17
        s ^= (s << 5) & 0xFFFFFFFF
        found.append((s >> 4) % n)
    return found


def measure(name, order, n):
    policy = eviction.make(name, n)
    d = {}
    for i in range(n):
        policy.insert(i, i)
        d[i] = i
    best = [1 << 29] * 3
    for _ in range(ROUNDS):
        for at, took in enumerate((lookups(d, order), touches(policy, order), turnover(policy, order))):
            best[at] = min(best[at], took)
    assert policy.check() == 0
    return {
        "touch_ns": best[1] * 1000 / CALLS,
        "dict_ns": best[0] * 1000 / CALLS,
        "touch_over_dict": best[1] / best[0],
        "evict_insert_ns": best[2] * 1000 / CALLS,
        "bytes_per_entry": policy.metadata_bytes(),
    }


if __name__ == "__main__":
    entries = int(sys.argv[1])
    places = shuffled(entries)
    figures = {}
    for each in sorted(eviction.POLICIES):
        figures[each] = measure(each, places, entries)
        print("+1")
    print(json.dumps(figures))
