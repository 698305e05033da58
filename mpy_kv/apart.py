"""What a token sees where rows of V have another length than those of K: a second table of runs.

Loaded by sequence.py for element types that need it. Allocates one small object a sequence, nothing a token.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from . import cpython as micropython
    from .cpython import const

# Of kernels/params.py
_RUNS = const(1)
_V_RUNS = const(41)
_RUN = const(43)


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
            a[j] = a[i] - (a[i] - a[i + 1]) // apart * less
            a[j + 1] = a[i + 2]
            i += 4
            j += 2
            n -= 1
