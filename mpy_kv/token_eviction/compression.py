"""compress() of a BudgetCache, and what mends its table after an exception in the midst of a change.

Transient (mpy_kv/transient.py): few programs need it, and once. `cache`: its table is settled and no step
pending, unless said.
"""

from ..transient import load_module

T = load_module("mpy_kv.eviction.tokens.params")

_SAFE = T.GONE - 1  # more than any worth


def compress(cache, part, whole, recent):
    """As BudgetCache.compress. O(slots) for each token that leaves."""
    length, plan, at = cache.length, cache.plan, cache.at
    worth = cache.worth[plan[T.BANK]]
    marks = cache.worth[1 - plan[T.BANK]]  # means nothing until a step is committed
    cache.survey(at, worth, plan, length)  # forgets what was rolled back
    live = plan[T.LIVE]
    safe = 0
    for r in range(plan[T.RING]):
        marks[r] = worth[r]
        if at[r] and at[r] > length - recent:
            marks[r] = _SAFE
            safe += 1
    leave = live - max(keep_count(live, part, whole), safe)
    for _ in range(leave):
        cache.survey(at, marks, plan, length + plan[T.RECENT])  # as if nothing were recent
        marks[plan[T.VICTIM]] = T.GONE
    plan[T.NEXT_EVICTED] = plan[T.EVICTED] + leave & 0x3FFFFFFF
    plan[T.SHRINKING] = 1  # decides: from here on they are gone
    cache.settle()
    return leave


def keep_count(tokens, part, whole=1):
    """How many of so many tokens stay of part / whole: to nearest, halves up, at least one."""
    return max(1, int((2 * tokens * part + whole) // (2 * whole))) if tokens else 0


def mend(cache):
    """Finish what an exception has cut: tokens to leave, or one that was being moved."""
    plan, at = cache.plan, cache.at
    if plan[T.SHRINKING]:
        marks = cache.worth[1 - plan[T.BANK]]
        for r in range(plan[T.RING]):
            if marks[r] == T.GONE:
                at[r] = 0
        plan[T.EVICTED] = plan[T.NEXT_EVICTED]
        plan[T.SHRINKING] = 0
    moving = plan[T.MOVING]
    if moving < plan[T.RING]:
        for r in range(moving):
            if at[r] and at[r] == at[moving]:
                at[moving] = 0
        plan[T.MOVING] = plan[T.RING]


def check(cache):
    """As BudgetCache.check."""
    length, plan = cache.length, cache.plan
    positions = cache.visible()
    bad = 0
    if positions != sorted(set(positions)):
        bad += 1
    kept = [x - 1 for x in cache.at if 0 < x <= length]
    if len(kept) >= plan[T.RING] or [p for p in kept if p < cache.geometry.sinks]:
        bad += 1
    # A table not yet closed up has been rolled back or shrunk; a step lies behind it, or in its last gap.
    if length + plan[T.ROWS] < plan[T.SINCE] or plan[T.BANK] not in (0, 1) or plan[T.EVICTED] < 0:
        bad += 1
    for x, worth in zip(cache.at, cache.worth[plan[T.BANK]]):
        if 0 < x <= length and not 0 <= worth <= T.NOW + 1:
            bad += 1
    newest_gone = not positions or positions[-1] != length - 1
    return bad + load_module("mpy_kv.inspect").check(cache, newest_gone)
