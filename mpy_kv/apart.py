"""What a token sees where rows of V have another length than those of K: a second table of runs.

Loaded by sequence.py for element types that need it. Allocates one small object a sequence, nothing a token.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from . import cpython as micropython
    from .cpython import const

# fields: attend, run, v_run
_RUNS = const(1)
_V_RUNS = const(41)
_RUN = const(43)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_WORDS = const(4)
_V_RUN_COUNT = const(1)
_V_RUN_WORDS = const(2)
# end of fields


class Apart:
    """Stands in for the _look of a sequence, and calls it."""

    def __init__(self, sequence):
        g = sequence.geometry
        self._keys = sequence._look
        self._a = sequence._a
        self._row = g.row_bytes
        self._less = g.row_bytes - g.v_row_bytes

    @micropython.native
    def look(self, p):
        """The runs of what the token at position p sees, of K, then of V: the same slots."""
        self._keys(p)
        a = self._a
        apart = self._row - 2
        less = self._less
        i = _RUN
        j = a[_V_RUNS] >> 2
        n = a[_RUNS]
        while n:
            # Codes begin slot * row, scales slot * 2 behind the same place.
            a[j] = a[i] - (a[i] - a[i + _RUN_SCALES]) // apart * less
            a[j + _V_RUN_COUNT] = a[i + _RUN_COUNT]
            i += _RUN_WORDS
            j += _V_RUN_WORDS
            n -= 1
