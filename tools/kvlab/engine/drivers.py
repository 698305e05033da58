"""Compiled loops over compiled transitions: what a pool costs when nothing else is in the way.

A loop takes the arrays apart before it begins: to take one out of a tuple is to count a user of it, which
costs more than alloc and free.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kvlab.engine.catalogue import Compiled
from kvlab.engine.compiled import compiled

Loop = Callable[..., int]


@cache
def loop(kind: Callable[[Compiled], Loop], pool: Compiled) -> Loop:
    """The loop of a kind below for a pool, made once."""
    return kind(pool)


def pairs(pool: Compiled) -> Loop:
    """loop(state, size, count): alloc and free one block, `count` times; the number of refusals."""
    alloc, free = pool.alloc, pool.free

    def loop(state, size, count):  # type: ignore[no-untyped-def]
        a, b, c, d, e, f = state
        refused = 0
        for _ in range(count):
            handle = alloc(a, b, c, d, e, f, size)
            if handle < 0 or free(a, b, c, d, e, f, handle) != 0:
                refused += 1
        return refused

    return compiled(loop)


def batches(pool: Compiled) -> Loop:
    """loop(state, size, held, count): alloc len(held) blocks, then free them, `count` times; refusals."""
    alloc, free = pool.alloc, pool.free

    def loop(state, size, held, count):  # type: ignore[no-untyped-def]
        a, b, c, d, e, f = state
        refused = 0
        for _ in range(count):
            for k in range(len(held)):
                held[k] = alloc(a, b, c, d, e, f, size)
            for k in range(len(held)):
                if held[k] < 0 or free(a, b, c, d, e, f, held[k]) != 0:
                    refused += 1
        return refused

    return compiled(loop)


def shuffled(pool: Compiled) -> Loop:
    """loop(state, size, held, order): for each place in `order` free what is held there and alloc anew."""
    alloc, free = pool.alloc, pool.free

    def loop(state, size, held, order):  # type: ignore[no-untyped-def]
        a, b, c, d, e, f = state
        refused = 0
        for k in range(len(order)):
            place = order[k]
            if free(a, b, c, d, e, f, held[place]) != 0:
                refused += 1
            held[place] = alloc(a, b, c, d, e, f, size)
        return refused

    return compiled(loop)


def traced(pool: Compiled) -> Loop:
    """loop(state, kinds, arguments, results): a trace of operations; results[k] is what the transition gave.

    kinds[k] 0: alloc of arguments[k] bytes. Else free of the handle that operation arguments[k] gave,
    whatever became of it since.
    """
    alloc, free = pool.alloc, pool.free

    def loop(state, kinds, arguments, results):  # type: ignore[no-untyped-def]
        a, b, c, d, e, f = state
        for k in range(len(kinds)):
            if kinds[k] == 0:
                results[k] = alloc(a, b, c, d, e, f, arguments[k])
            else:
                results[k] = free(a, b, c, d, e, f, results[arguments[k]])
        return 0

    return compiled(loop)
