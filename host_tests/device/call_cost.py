"""What a call of a kernel costs on the emulated board, for the scripts that measure element types."""

import gc

import micropython
from instructions import instructions, ticks


@micropython.native
def _repeat(n, f, a, b, c, d):
    """In native code, whose frame lies on the stack: what allocating takes depends on all that is loaded."""
    while n:
        f(a, b, c, d)
        n -= 1


def cost(runs, f, a, b, c, d):
    """Instructions of f(a, b, c, d), the mean of `runs` calls, the loop's included."""
    gc.collect()
    start = ticks()
    _repeat(runs, f, a, b, c, d)
    return instructions(start, ticks()) / runs
