"""A seeded run of an eviction policy, the same on every interpreter.

usage: policies.py plain|no-emitter SEED COUNT    prints a list of what `run` gives for each of CASES, as JSON
usage: policies.py allocation                     prints bytes allocated a method and policy, as JSON
CPython imports this file and calls `run`.
"""

import json
import sys

CASES = (
    ("fifo", 16, {}),
    ("lru", 16, {}),
    ("lfu", 16, {}),
    ("lfu", 16, {"most_count": 2}),
    ("hybrid", 16, {"window": 0}),
    ("hybrid", 16, {"window": 5}),
    ("hybrid", 16, {"most_count": 3}),
    ("sieve", 16, {}),
    ("s3fifo", 16, {}),
    ("s3fifo", 40, {"small": 9, "ghosts": 20}),
)


class Dice:
    """Marsaglia's xorshift of 32 bits."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        s = self.state
        s ^= (s << 13) & 0xFFFFFFFF
        s ^= s >> 17
        s ^= (s << 5) & 0xFFFFFFFF
        self.state = s
        return (s >> 4) % n


class Cache:
    """Keys in entries of a policy; now and then one is protected, unprotected or removed."""

    def __init__(self, policy, n):
        self.policy = policy
        self.where = {}
        self.free = list(range(n - 1, -1, -1))
        self.holds = [-1] * n
        self.victims = []
        self.hits = 0

    def access(self, key):
        """Whether it can be held now."""
        i = self.where.get(key, -1)
        if i >= 0:
            self.hits += 1
            return self.policy.touch(i) == 0
        if not self.free:
            i = self.policy.evict()
            if i < 0:
                return False
            self.victims.append(self.holds[i])
            del self.where[self.holds[i]]
            self.free.append(i)
        i = self.free.pop()
        self.holds[i] = key
        self.where[key] = i
        return self.policy.insert(i, key) == 0

    def disturb(self, what, i):
        if what == 0 and self.policy.remove(i) == 0:
            del self.where[self.holds[i]]
            self.free.append(i)
        elif what == 1:
            self.policy.protect(i)
        elif what > 1:
            self.policy.unprotect(i)


def run(name, n, options, seed, count, quiet=False, made=lambda policy: policy):
    """Victims, hits, statistics and soundness after so many accesses to keys, low ones the most often."""
    from mpy_kv import eviction

    dice = Dice(seed)
    cache = Cache(made(eviction.make(name, n, **options)), n)
    refused = broken = 0
    for turn in range(count):
        refused += not cache.access(dice.below(1 + dice.below(4 * n)))
        if not quiet and dice.below(8) == 0:
            cache.disturb(dice.below(5), dice.below(n))
        if turn % 64 == 0:
            broken += cache.policy.check()
    return {
        "victims": cache.victims,
        "hits": cache.hits,
        "refused": refused,
        "broken": broken + cache.policy.check(),
        "stats": cache.policy.stats(),
    }


def allocation():
    """{policy: {method: bytes}} by mem_total, over calls that do their work and calls that are refused."""
    import micropython
    from mpy_kv import eviction

    def touch(policy):
        for i in range(n):
            policy.touch(i)

    def turn(policy):
        for i in range(n):
            policy.insert(policy.evict(), i)

    def guard(policy):
        for i in range(n):
            policy.protect(i)
            policy.touch(i)
            policy.evict()
            policy.unprotect(i)

    def leave(policy):
        for i in range(n):
            policy.remove(i)
            policy.remove(i)
            policy.touch(i)
            policy.insert(i)
            policy.insert(i)

    def control(policy):
        for i in range(n):
            [i]

    n = 60
    a = b = 0
    found = {}
    for name in sorted(eviction.POLICIES):
        policy = eviction.make(name, n)
        for i in range(n):
            policy.insert(i, i)
        found[name] = {}
        for work in (touch, turn, guard, leave, control):
            work(policy)
            if work is not control:
                micropython.heap_lock()
                work(policy)
                micropython.heap_unlock()
            a = micropython.mem_total()
            work(policy)
            b = micropython.mem_total()
            found[name][work.__name__] = b - a
        found[name]["arrays"] = array_bytes(policy)
        found[name]["told"] = policy.metadata_bytes() * n
    return found


def array_bytes(policy):
    """Of all arrays that a policy keeps."""
    from array import array

    found = 0
    for name in dir(policy):
        value = getattr(policy, name)
        if isinstance(value, (array, bytearray)):
            found += len(bytes(memoryview(value)))
    return found


if __name__ == "__main__":
    if sys.argv[1] == "allocation":
        print(json.dumps(allocation()))
    else:
        if sys.argv[1] == "no-emitter":
            from mpy_kv import port

            port.EMITTER = False
        seed, count = int(sys.argv[2]), int(sys.argv[3])
        print(json.dumps([run(name, n, options, seed, count) for name, n, options in CASES]))
