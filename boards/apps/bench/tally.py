"""What the parts of worst.py share: counts of calls, numbers at random, rounds with the heap locked.

A part has `operations`, the names of what it calls; `records`, one of each; first(), in which happens all
that happens only once; round(), which calls some of them in native code with the heap locked; and check(),
the number of broken invariants. How it counts a call:

    go, stop = begin, end  # locals: to find a global would be counted
    start = go()
    f(x)
    n = stop(start)
    record.note(n)

Counts are right to within four and hold all that f(x) takes, the look-up of a method included.
"""

import gc

import micropython
from exact import begin, end

CHUNK = 500  # rounds between looks at the sums: these must stay small ints


@micropython.native
def _nothing(go, stop):
    start = go()
    return stop(start)


OVERHEAD = min([_nothing(begin, end) for _ in range(16)])


@micropython.viper
def following(state: int) -> int:
    """The next of 2^30 numbers at random, each once; the low eight bits are poor ones."""
    return state * 22695477 + 1 & 0x3FFFFFFF


@micropython.viper
def fill16(x: ptr16, n: int, state: int) -> int:
    """n random int16 of all magnitudes; returns the next state."""
    while n:
        state = state ^ (state << 13)
        state = state ^ (state >> 17 & 0x7FFF)
        state = state ^ (state << 5)
        x[0] = state << 16 >> (16 + (state >> 16 & 15))
        x = ptr16(int(x) + 2)
        n -= 1
    return state & 0x3FFFFFFF | 1


@micropython.viper
def fill32(x: ptr32, n: int, state: int) -> int:
    """n random float32 of both signs and 32 exponents below 2^5, with a zero now and then."""
    while n:
        state = state ^ (state << 13)
        state = state ^ (state >> 17 & 0x7FFF)
        state = state ^ (state << 5)
        x[0] = 0
        if state >> 26 & 31:
            x[0] = (state >> 31 << 31) + ((state >> 26 & 31) + 100 << 23) + (state & 0x7FFFFF)
        x = ptr32(int(x) + 4)
        n -= 1
    return state & 0x3FFFFFFF | 1


class Record:
    """Of one operation. note() allocates nothing; sums are moved on by fold(), which does."""

    def __init__(self):
        self.calls = self.low = self.high = self.at = self.some = self.total = 0

    @micropython.native
    def note(self, n):
        n -= self.overhead
        if self.calls == 0 or n < self.low:
            self.low = n
        if n > self.high:
            self.high = n
            self.at = self.calls
        self.some += n
        self.calls += 1

    overhead = OVERHEAD

    def fold(self):
        self.total += self.some
        self.some = 0

    def figures(self):
        """None if it was never called."""
        self.fold()
        if not self.calls:
            return None
        return {
            "calls": self.calls,
            "min": self.low,
            "mean": self.total / self.calls,
            "max": self.high,
            "max_at_call": self.at,
        }


def run(part, rounds):
    """{operation: figures} of so many rounds of a part; none of one that was never called. Prints "+N" for N
    rounds. RuntimeError if an invariant is broken at the end."""
    part.first()
    for record in part.records:
        record.__init__()
    while rounds:
        n = min(rounds, CHUNK)
        gc.collect()
        micropython.heap_lock()
        for _ in range(n):
            part.round()
        micropython.heap_unlock()
        for record in part.records:
            record.fold()
        rounds -= n
        print("+%d" % n)
    if part.check():
        raise RuntimeError("an invariant is broken")
    found = {}
    for name, record in zip(part.operations, part.records):
        figures = record.figures()
        if figures:
            found[name] = figures
    return found
