"""Token policies, for worst.py: what they add to a step, and their kernels over 64 tokens.

Steps: a cache as in worst.py, of 8 tokens, under lfu-decay, whose commit does most. Its append begins the
step: it looks over the table, finds the victim and stores. A rollback now and then leaves gaps, so that the
next append also moves tokens. Kernels: shares of one head and their peaks, by scores at random from all alike
to one that outweighs all; the look over the table; what a commit makes of the shares, by kind of policy.
"""

from array import array

import micropython
from bench.tally import Record, begin, end, fill16, following
from mpy_kv import Geometry
from mpy_kv.token_eviction import BudgetCache
from mpy_kv.eviction import tokens
from mpy_kv.eviction.tokens import params as T
from mpy_kv.kernels import params as P
from mpy_kv.kernels.tables import TABLES

SHIFT = 9  # values up to 64
BUDGET = 64
STEPS = ("append", "append_gaps", "attend", "commit", "rollback")
KERNELS = ("shares", "peaks", "survey", "watch_used", "watch_mass", "watch_decayed")  # kinds 0, 1, 2


class Steps:
    operations = tuple(["budget_" + name for name in STEPS])

    def __init__(self):
        self.records = [Record() for _ in STEPS]
        self.cache = BudgetCache(Geometry(1, 8, 4, 8, window=8, sinks=0), kv_shift=SHIFT, policy="lfu-decay")
        self.arrays = tuple([array("h", [0] * n) for n in (32, 32, 64, 64)])
        self.state = 0x2545F491
        self.gaps = False

    def first(self):
        for _ in range(40):
            self.round()

    @micropython.native
    def round(self):
        go, stop = begin, end
        append, append_gaps, attend, commit, rollback = self.records
        cache = self.cache
        k, v, q, out = self.arrays
        state = fill16(k, 32, self.state)
        state = fill16(v, 32, state)
        state = fill16(q, 64, state)
        self.state = state
        start = go()
        cache.append(0, k, v)
        n = stop(start)
        (append_gaps if self.gaps else append).note(n)
        start = go()
        cache.attend(0, q, out)
        n = stop(start)
        attend.note(n)
        start = go()
        cache.commit()
        n = stop(start)
        commit.note(n)
        self.gaps = False
        if state & 28 == 4 and cache.length > 100:
            back = (state >> 5 & 3) + 1
            start = go()
            cache.rollback(back)
            n = stop(start)
            rollback.note(n)
            self.gaps = True

    def check(self):
        return self.cache.check()


class Kernels:
    """All arrays are those of a cache that never goes on: nothing but a kernel's own work."""

    operations = tuple(["%s_%d" % (name, BUDGET) for name in KERNELS])

    def __init__(self):
        self.records = [Record() for _ in KERNELS]
        self.kernels = tokens.FAMILY.best()
        cache = BudgetCache(Geometry(1, 1, 1, 8, window=BUDGET, sinks=0), kv_shift=SHIFT, policy="lfu")
        x, out = array("h", range(8)), array("h", [0] * 8)
        for _ in range(BUDGET + 1):
            cache.append(0, x, x)
            cache.attend(0, x, out)
            cache.commit()
        cache.append(0, x, x)
        cache.attend(0, x, out)
        self.cache = cache
        self.buffer, self.parameters = cache.kernel_arguments()
        self.state = 1

    def first(self):
        for _ in range(4):
            self.round()

    @micropython.native
    def round(self):
        go, stop = begin, end
        shares, peaks, look, used, mass, decayed = self.records
        kernels = self.kernels
        uses, survey, watch = kernels.uses, kernels.survey, kernels.watch
        cache = self.cache
        plan, at, worth = cache.plan, cache.at, cache.worth[0]
        new = cache.worth[1]
        self.draw()
        buf, a = self.buffer, self.parameters
        plan[T.PEAK] = 0
        start = go()
        uses(buf, plan, TABLES, a)
        n = stop(start)
        shares.note(n)
        start = go()
        watch(plan, worth, new, 0)
        n = stop(start)
        used.note(n)
        start = go()
        watch(plan, worth, new, 1)
        n = stop(start)
        mass.note(n)
        start = go()
        watch(plan, worth, new, 2)
        n = stop(start)
        decayed.note(n)
        plan[T.PEAK] = 1
        start = go()
        uses(buf, plan, TABLES, a)
        n = stop(start)
        peaks.note(n)
        start = go()
        survey(at, worth, plan, cache.length)
        n = stop(start)
        look.note(n)

    @micropython.native
    def draw(self):
        """Scores, how much they weigh, worths, and which slot is whose."""
        buf, a = self.buffer, self.parameters
        at, worth = self.cache.at, self.cache.worth[0]
        state = following(self.state)
        a[P.KEXP] = state >> 8 & 31
        start = a[P.SCORES]
        top = -1
        i = 0
        while i < BUDGET:
            state = following(state)
            x = state >> 6
            if x > top:
                top = x
            buf[start] = x & 255
            buf[start + 1] = x >> 8 & 255
            buf[start + 2] = x >> 16
            buf[start + 3] = 0
            start += 4
            worth[i] = state >> 14
            j = (state >> 8) % BUDGET
            at[i], at[j] = at[j], at[i]
            i += 1
        a[P.MAX] = top
        self.state = state

    def check(self):
        return 0


def parts():
    return [Steps(), Kernels()]
