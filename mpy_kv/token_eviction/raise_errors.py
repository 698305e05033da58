"""What a BudgetCache says when it refuses a call: one function a reason, each raises. Off every hot path.

Transient (mpy_kv/transient.py), for the texts take memory. Beside those of mpy_kv/raise_errors.py.
"""

try:
    from micropython import const
except ImportError:
    from ..cpython import const

from ..errors import BadArgument, CacheFull

# fields: plan
_LIVE = const(21)
# end of fields


def prefill(cache, n, more, free):
    raise CacheFull(
        "a prefill of %d tokens needs as many free places, as only single steps evict: "
        "give them one by one, or compress first" % n,
        more,
        free,
        evictable=cache.plan[_LIVE],
    )


def end(cache, n):
    raise CacheFull("positions end at 2^29: start anew", n, (1 << 29) - cache.length)


def unseen(cache, position):
    raise BadArgument("position %r is not visible" % (position,))


def ratio(cache, keep_ratio):
    raise BadArgument("keep_ratio must be above 0 and at most 1, got %r" % (keep_ratio,))


def recent(cache, recent):
    raise BadArgument("recent must be a whole number of tokens, at least 0, got %r" % (recent,))
