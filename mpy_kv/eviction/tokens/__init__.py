"""Which token leaves when one sequence may keep only so many: one table of tokens for all layers.

    from mpy_kv.token_eviction import BudgetCache  # keeps it
    cache = BudgetCache(Geometry(..., window=64, sinks=0), policy="lru-peak")

A token's worth is a number made of the attention it gets; the least worthy leaves, of equals the older one,
never one of the newest. Definitions, shares being of all attention of a head, n the tokens visible:

    window         no worth: the oldest leaves
    lru-attention  steps since its shares' mean over all heads and layers exceeded 0.5 / n
    lru-peak       steps since some head of some layer gave it more than 8 / n
    window-lru     lru-attention, the newer half of the budget protected
    lfu            mean shares added up
    lfu-decay      the same, 61/64 of the sum left after each step; the newer half protected
    heavy-hitters  lfu, the newer half protected

Age is counted in steps up to 2^29 and stands still there; sums keep their proportions, all being halved
where one grows large. So no count ever wraps, whatever is rolled back.
The kernels are in plain.py and viper.py, as mpy_kv/kernels has its own.
"""

from ...errors import BadArgument
from ...kernels.kernel_registry import Family

FAMILY = Family(__name__, __file__[: __file__.rfind("/") + 1], ("uses", "survey", "watch", "move"))

# Name -> (kind of params.py, whether the largest share counts, whether half the budget is protected)
_USED, _MASS, _DECAYED, _BLIND = range(4)
POLICIES = {
    "window": (_BLIND, 0, 0),
    "lru-attention": (_USED, 0, 0),
    "lru-peak": (_USED, 1, 0),
    "window-lru": (_USED, 0, 1),
    "lfu": (_MASS, 0, 0),
    "lfu-decay": (_DECAYED, 0, 1),
    "heavy-hitters": (_MASS, 0, 1),
}


def made(name, budget, recent=None):
    """(kind, peak, how many of the newest tokens never leave) of a policy; `recent` instead of its own
    number. BadArgument names what is wrong."""
    if not isinstance(name, str) or name not in POLICIES:
        raise BadArgument("no token policy %r; there are %s" % (name, ", ".join(sorted(POLICIES))))
    kind, peak, half = POLICIES[name]
    if recent is None:
        recent = max(1, budget // 2) if half else 1
    elif type(recent) is not int or not 0 <= recent <= budget:
        raise BadArgument("recent must be 0..%d, the budget, got %r" % (budget, recent))
    return kind, peak, recent
