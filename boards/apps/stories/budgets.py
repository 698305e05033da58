"""Which tokens a story may keep: policy and budget as a program asks for them, checked, and their cache.

Transient (mpy_kv/transient.py), and only where a policy, a budget or a compression is asked for. Raises
BadArgument naming the option to change.
"""

from mpy_kv.errors import BadArgument
from mpy_kv.eviction import tokens

from .sampling import thousandths

RING = "window"  # drops the oldest: what a ring does by itself


def chosen(image, policy, budget, window, most_window, sinks, codec, kernels):
    """(window, sinks, policy) of the cache; policy None: a ring does it.

    budget: tokens visible at once, sinks included; without it the window's size. Without sinks there are
    none, as the policies keep what is looked at, but four in a ring. Loads the kernels of the policies, while
    the heap has room.
    """
    known = sorted(tokens.POLICIES)
    if policy is None:
        raise BadArgument("budget %r needs --policy: one of %s" % (budget, ", ".join(known)))
    if not isinstance(policy, str) or policy not in tokens.POLICIES:
        raise BadArgument("policy %r is unknown; known: %s" % (policy, ", ".join(known)))
    ring = policy == RING
    if sinks is None:
        sinks = 4 if ring else 0
    if budget is not None:
        window = _window(image, budget, window, sinks)
    elif window is None and type(sinks) is int:
        window = max(1, min(most_window, image.seq_len - sinks))
    if ring:
        return window, sinks, None
    if not isinstance(codec, str):
        raise BadArgument(
            "policy %s needs one element type for all layers, the model's image names one for each: choose "
            "with --codec" % policy
        )
    if codec == "int4":
        raise BadArgument(
            "codec int4 seals blocks of 16 tokens, of which policy %s could drop none alone: take --policy "
            "window, or --codec int8-int4" % policy
        )
    if kernels != "plain":
        tokens.FAMILY.best()
        tokens.FAMILY.release()
    return window, sinks, policy


def _window(image, budget, window, sinks):
    """Recent tokens, or places for those that the policy keeps, beside the sinks."""
    if window is not None:
        raise BadArgument("budget %r holds window and sinks together: leave --window out" % (budget,))
    if type(budget) is not int or type(sinks) is not int or sinks < 0:
        raise BadArgument("budget and sinks must be whole numbers, got %r and %r" % (budget, sinks))
    if budget > image.seq_len:
        raise BadArgument(
            "budget %d is more than the %d tokens the model was trained for" % (budget, image.seq_len)
        )
    if budget < sinks + 1:
        raise BadArgument(
            "budget %d leaves no token beside %d sinks: at least %d" % (budget, sinks, sinks + 1)
        )
    return budget - sinks


def make(g, policy, **options):
    """A BudgetCache; options: what it takes."""
    from mpy_kv.token_eviction import BudgetCache

    cache = BudgetCache(g, policy=policy, **options)
    tokens.FAMILY.release()
    return cache


def ratio(cache, value):
    """What cache.compress takes, of a number from 0.001 to 1, or its text."""
    if not hasattr(cache, "compress"):
        raise BadArgument("compress needs --policy: one that weighs tokens, such as lru-attention")
    return thousandths("compress", value, 1, 1000), 1000
