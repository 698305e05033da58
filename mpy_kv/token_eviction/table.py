"""Table: where the tokens of a budget cache lie, as Ring (mpy_kv/cache.py). Allocates one small object.

The sinks first, then slots of which the cache chooses those of a step.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from .. import cpython as micropython
    from ..cpython import const

# fields: attend, run, encode, plan
_N = const(0)
_RUNS = const(1)
_ROW = const(2)
_RUN = const(45)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_SINKS = const(3)
_RUN_WORDS = const(4)
_E_SLOT = const(1)
_E_AT = const(2)
_E_COUNT = const(3)
_RING = const(0)
_FIRST = const(9)
_HOLE = const(10)
_MOVING = const(25)
# end of fields

_len = len  # a module's own name is found at once, a built-in one behind a hundred others


class Table:
    """start: first position of the step at hand that is behind the sinks; it lies in slot FIRST of `plan`.
    kernels: of the policy (eviction/tokens/plain.py); rows: what a layer holds of a slot (setup.planes)."""

    def __init__(self, geometry, plan, one, kernels, rows):
        self.geometry = geometry
        self.plan = plan
        self.uses = kernels.uses
        self.floor = 0  # for good: a token that left is in no slot
        self.start = 0
        self._one = one
        self._copy = kernels.move
        self._rows = rows

    @micropython.native
    def aim(self, p, at):
        """Of a position of this step."""
        sinks = self.geometry.sinks
        e = self._one.e
        if p >= sinks:
            p += sinks + self.plan[_FIRST] - self.start
        e[_E_SLOT] = p
        e[_E_AT] = at * e[_E_COUNT]

    @micropython.native
    def look(self, p, a):
        """Of a position of this step: sinks, then by slots, less the one whose token leaves."""
        plan = self.plan
        sinks = self.geometry.sinks
        row = a[_ROW]
        ring = plan[_RING]
        hole = plan[_HOLE]
        total = 0
        slot = 0
        n = sinks if p >= sinks else p + 1
        by_sinks = 1
        j = _RUN
        while True:
            if n:
                a[j] = slot * row
                a[j + _RUN_SCALES] = slot * 2
                a[j + _RUN_COUNT] = n
                a[j + _RUN_SINKS] = by_sinks
                j += _RUN_WORDS
                total += n
            if by_sinks:
                by_sinks = 0
                slot = sinks
                n = hole
                if hole == ring:
                    n = plan[_FIRST] + 1 + p - self.start if p >= sinks else 0
            elif slot == sinks and hole < ring - 1:
                slot += hole + 1
                n = ring - 1 - hole
            else:
                break
        a[_N] = total
        a[_RUNS] = (j - _RUN) >> 2

    @micropython.native
    def close_up(self, at, worth):
        """Move tokens down until none lies behind an empty slot; `at` and `worth`: of the cache."""
        plan = self.plan
        copy = self._copy
        codes = self._one.codes
        buf = self._one.buffer
        rows = self._rows
        sinks = self.geometry.sinks
        end = _len(rows)
        low = 0
        high = plan[_RING] - 1
        while True:
            while low < high and at[low]:
                low += 1
            while low < high and not at[high]:
                high -= 1
            if low >= high:
                return
            plan[_MOVING] = high
            layer = self.geometry.layers
            while layer:
                layer -= 1
                i = 0
                while i < end:
                    # Rows of `size` bytes a slot, `n` times, `stride` apart.
                    size = rows[i + 1]
                    n = rows[i + 2]
                    to = codes[layer] + rows[i] + (sinks + low) * size
                    while n:
                        copy(buf, to, to + (high - low) * size, size)
                        to += rows[i + 3]
                        n -= 1
                    i += 4
            worth[low] = worth[high]
            at[low] = at[high]  # twice there until the next line; see mend()
            at[high] = 0
            plan[_MOVING] = plan[_RING]
