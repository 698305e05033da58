"""What a call of a kernel costs on the emulated board, for the scripts that measure element types."""

import gc

import instructions


def _repeat(n, f, a, b, c, d):
    while n:
        f(a, b, c, d)
        n -= 1


def cost(runs, f, a, b, c, d):
    """Instructions of f(a, b, c, d), the mean of `runs` calls, the loop's included."""
    gc.collect()
    return instructions.count(_repeat, runs, f, a, b, c, d) / runs
