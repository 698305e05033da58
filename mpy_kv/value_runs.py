"""What a token sees where rows of V have another length than those of K: a second table of runs.

Loaded by setup.py for element types that need it. Allocates nothing.
"""

try:
    import micropython
    from micropython import const
except ImportError:
    from . import cpython as micropython
    from .cpython import const

# fields: attend, run, v_run
_RUNS = const(1)
_ROW = const(2)
_V_ROW = const(39)
_V_RUNS = const(41)
_RUN = const(45)
_RUN_SCALES = const(1)
_RUN_COUNT = const(2)
_RUN_WORDS = const(4)
_V_RUN_COUNT = const(1)
_V_RUN_WORDS = const(2)
# end of fields


@micropython.native
def v_runs(a):
    """Write V's runs: the same slots as K's."""
    apart = a[_ROW] - 2
    less = a[_ROW] - a[_V_ROW]
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
